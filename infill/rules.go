package infill

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"infill/internal/phrase"
	"infill/samplers"
	"infill/tokenize"
)

// rules says which tokens and words the blanks of one template may hold.
type rules struct {
	vocabulary *vocabulary
	fill       FillKind
	distinct   bool
	blanks     []blankRules
	bans       bans
	lexicons   map[string]*lexicon
	warnings   []string // warnings about words that no blank can hold
}

// blankRules are the rules of one blank.
type blankRules struct {
	list    map[int]*choices // listed words that may stand there, by number of pieces; nil without a list
	lengths []int            // numbers of pieces of the words that the list has in the typed range, ascending
	pattern *regexp.Regexp   // nil without a pattern
	part    *part            // nil if any part of speech is allowed
}

func (v *vocabulary) rules(ctx context.Context, t *tokenize.Template, o Fit) (*rules, error) {
	r := &rules{vocabulary: v, fill: o.Fill, distinct: bool(o.Distinct), blanks: make([]blankRules, len(t.Blanks)),
		bans: bans{plain: map[int][][]int{}, joined: map[int][][]int{}}, lexicons: map[string]*lexicon{}}
	for number, parts := range o.Speech {
		if number > len(t.Blanks) {
			return nil, misfit("pos", "there is no blank %d: the template has %d", number, len(t.Blanks))
		}
		for i, b := range t.Blanks {
			if number == i+1 || number == 0 && o.Speech[i+1] == nil {
				r.blanks[i].part = newPart(t, b, parts)
			}
		}
	}
	for _, word := range o.Ban {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		r.banned(word)
	}
	lists := o.Slots.of(t)
	for i, b := range t.Blanks {
		if b.Pattern == "" {
			continue
		}
		pattern := anchored(b.Pattern)
		if !v.tokenizer.Cased() {
			pattern = `(?i)` + pattern
		}
		var err error
		r.blanks[i].pattern, err = regexp.Compile(pattern)
		if err != nil {
			return nil, constrained("blank %d: %v", i+1, err)
		}
		if lists[i+1] == nil && b.High > 1 {
			return nil, constrained("blank %d: a pattern is for words of one token: leave the length out, or "+
				"give the blank a list of words", i+1)
		}
	}
	if err := named(t, lists); err != nil {
		return nil, err
	}
	for _, number := range slices.Sorted(maps.Keys(lists)) {
		if number > len(t.Blanks) {
			return nil, misfit("slot", "there is no blank %d: the template has %d", number, len(t.Blanks))
		}
	}
	for _, group := range t.Groups {
		if err := r.share(ctx, t, group, lists); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// anchored returns the pattern of texts that a pattern matches from end to end.
func anchored(pattern string) string { return `\A(?:` + pattern + `)\z` }

// banned adds a word that the option ban lists to r.bans.
func (r *rules) banned(word string) {
	// No fill can hold a word that the model cannot write.
	ids, err := r.vocabulary.tokenizer.Candidate(word)
	if err == nil {
		add(r.bans.plain, ids)
	}
	ids, err = r.vocabulary.tokenizer.Continuation(word)
	if err == nil {
		add(r.bans.joined, ids)
	}
}

func (r *rules) bansOf(b tokenize.Blank) bans {
	if b.TouchesLeft {
		return r.bans
	}
	return bans{plain: r.bans.plain}
}

// named returns an error if two blanks of one name cannot hold the same tokens.
func named(t *tokenize.Template, lists Lists) error {
	for _, group := range t.Groups {
		first := group[0]
		listed := first    // the first with a list
		patterned := first // the first with a pattern
		for _, i := range group {
			if lists[listed+1] == nil {
				listed = i
			}
			if t.Blanks[patterned].Pattern == "" {
				patterned = i
			}
			pattern := t.Blanks[i].Pattern
			switch {
			case t.Blanks[first].TouchesLeft != t.Blanks[i].TouchesLeft:
				return misfit("slot", "blanks %d and %d have one name, but only one of them continues a word", first+1,
					i+1)
			case lists[i+1] != nil && !reflect.DeepEqual(lists[listed+1], lists[i+1]):
				return misfit("slot", "blanks %d and %d have one name and different lists", listed+1, i+1)
			case pattern != "" && t.Blanks[patterned].Pattern != pattern:
				return constrained("blanks %d and %d have one name and different patterns", patterned+1, i+1)
			}
		}
	}
	return nil
}

// share gives the blanks of a group the pattern and the list of any of them.
func (r *rules) share(ctx context.Context, t *tokenize.Template, group []int, lists Lists) error {
	var pattern *regexp.Regexp
	listed := -1
	for _, blank := range group {
		if pattern == nil {
			pattern = r.blanks[blank].pattern
		}
		if listed < 0 && lists[blank+1] != nil {
			listed = blank
		}
	}
	for _, blank := range group {
		r.blanks[blank].pattern = pattern
	}
	if listed < 0 {
		return nil
	}
	return r.listed(ctx, t, group, listed+1, lists[listed+1])
}

// listed reads the list of words of blank number, counted from 1, for its group.
func (r *rules) listed(ctx context.Context, t *tokenize.Template, group []int, number int, words []string) error {
	b := t.Blanks[number-1]
	pattern := r.blanks[number-1].pattern
	low := 1
	high := tokenize.MaxPieces
	if b.High > 0 {
		low = b.Low
		high = b.High
	}
	read, err := r.vocabulary.list(ctx, number, words, b)
	if err != nil {
		return err
	}
	left := len(read.left)
	if left == len(words) {
		return misfit("slot", "blank %d cannot take %s", number, read.left[0])
	} else if left > 0 {
		r.warnings = append(r.warnings, fmt.Sprintf("%d of the %d words of blank %d are left out, which the model "+
			"cannot write; the first is %s", left, len(words), number, read.left[0]))
	}
	// The one word of a list is asked for by its probability. A typed length
	// says that its pieces are known.
	if len(words) == 1 && b.High == 0 && len(read.fills[0].ids) > 1 {
		word := read.fills[0]
		r.warnings = append(r.warnings, fmt.Sprintf("%q has %s in blank %d: its probability does not compare with "+
			"that of a word of one token", word.text, phrase.Counted(len(word.ids), "token"), number))
	}
	fitting := map[int][]listed{}
	lengths := map[int]bool{}
	long := ""
	for _, f := range read.fills {
		n := len(f.ids)
		if n < low || n > high {
			long = fmt.Sprintf("%q has %s, and the blank is %s", f.text, phrase.Counted(n, "token"),
				t.Text[b.Start:b.End])
			continue
		}
		lengths[n] = true
		switch {
		case pattern != nil && !pattern.MatchString(f.text):
		case b.TouchesLeft && r.vocabulary.classes()[f.ids[0]] == wordToken: // it begins a word
		case slices.ContainsFunc(group, func(blank int) bool { return !r.allows(blank, t.Blanks[blank], f.ids) }):
		default:
			fitting[n] = append(fitting[n], f)
		}
	}
	if len(fitting) == 0 {
		if long != "" {
			return misfit("slot", "blank %d takes no word of its list: %s", number, long)
		}
		return misfit("slot", "the other constraints leave blank %d no word of its list", number)
	}
	list := map[int]*choices{}
	for n, fills := range fitting {
		list[n] = newChoices(fills)
	}
	for _, blank := range group {
		r.blanks[blank].lengths = slices.Sorted(maps.Keys(lengths))
		r.blanks[blank].list = list
	}
	return nil
}

// spelled returns a listed word of a blank as typed, or "" for other ids.
func (r *rules) spelled(blank int, ids []int) string {
	c := r.blanks[blank].list[len(ids)]
	if c != nil {
		return c.written[fmt.Sprint(ids)]
	}
	return ""
}

// lengths returns the numbers of pieces that each blank may have, ascending: of its
// list's words, or as typed. They are part of the question: constraints change none.
func (r *rules) lengths(t *tokenize.Template) [][]int {
	lengths := make([][]int, len(t.Blanks))
	for i, b := range t.Blanks {
		lengths[i] = r.blanks[i].lengths
		if r.blanks[i].list != nil {
			continue
		}
		for n := max(1, b.Low); n <= max(1, b.High); n++ {
			lengths[i] = append(lengths[i], n)
		}
	}
	return lengths
}

// filled returns those of lengths for which the constraints leave a listed word.
func (r *rules) filled(lengths [][]int) [][]int {
	filled := slices.Clone(lengths)
	for i, own := range r.blanks {
		if own.list != nil {
			filled[i] = slices.Sorted(maps.Keys(own.list))
		}
	}
	return filled
}

// begins reports whether a token may be the first in blank b.
func (r *rules) begins(b tokenize.Blank, token int) bool {
	class := r.vocabulary.classes()[token]
	switch {
	case b.TouchesLeft:
		return class&continuingToken != 0 || r.fill != FillWords && class&wordToken == 0 // as "!" after "Stop"
	case r.fill == FillAny:
		return true
	}
	return b.Opens || class&continuingToken == 0
}

// takes reports whether the option fill allows a token in a blank without a list.
func (r *rules) takes(token int) bool {
	return r.fill != FillWords || r.vocabulary.classes()[token]&wordToken != 0
}

// allows reports whether a blank's tokens are not banned and of its part.
func (r *rules) allows(number int, b tokenize.Blank, ids []int) bool {
	p := r.blanks[number].part
	if p != nil && !p.takes(r.vocabulary.wordOf(ids)) {
		return false
	}
	return !r.bansOf(b).within(ids)
}

// spellings returns what the blanks of one name, or one blank, may hold. numbers
// counts them from 0. err says why that is nothing.
func (r *rules) spellings(t *tokenize.Template, numbers []int) (*spellings, error) {
	number := numbers[0]
	b := t.Blanks[number]
	own := r.blanks[number]
	if own.list != nil && own.list[b.Slots] == nil {
		return nil, r.nothing(number, b, 0)
	}
	if own.list != nil {
		return newSpellings(own.list[b.Slots], bans{}, b.Slots), nil
	}
	pieces := make(supports, b.Slots)
	for piece := range pieces {
		pieces[piece] = r.place(number, b, piece)
		for _, other := range numbers[1:] {
			own := r.place(other, t.Blanks[other], piece)
			pieces[piece] = slices.DeleteFunc(slices.Clone(pieces[piece]), func(token int) bool {
				_, ok := slices.BinarySearch(own, token)
				return !ok
			})
		}
		if len(pieces[piece]) == 0 {
			return nil, r.nothing(number, b, piece)
		}
	}
	var words words = pieces
	var longer bans
	speaks := func(number int) bool { return r.blanks[number].part != nil }
	if b.Slots > 1 && slices.ContainsFunc(numbers, speaks) {
		words = r.lexicon(t, numbers, pieces)
	}
	if b.Slots > 1 && r.bansOf(b).longer() {
		longer = r.bansOf(b)
	}
	s := newSpellings(words, longer, b.Slots)
	if !s.fillable(slices.Repeat([]int{samplers.Open}, b.Slots)) {
		return nil, r.nothing(number, b, 0)
	}
	return s, nil
}

// lexicon returns the lexicon of the blanks of one name, or of one blank. Blanks
// of equal rules share one, whatever their lengths.
func (r *rules) lexicon(t *tokenize.Template, numbers []int, pieces [][]int) *lexicon {
	key := ""
	for _, number := range numbers {
		key += fmt.Sprint(t.Blanks[number].TouchesLeft, t.Blanks[number].Opens, r.blanks[number].part)
	}
	if r.lexicons[key] == nil {
		r.lexicons[key] = newLexicon(r.words(numbers), r.vocabulary.lower(), pieces[0], pieces[1])
	}
	return r.lexicons[key]
}

// words returns the words, sorted, that have the parts of speech of some blanks.
func (r *rules) words(numbers []int) []string {
	var words []string
	limited := false // by a blank before
	for _, number := range numbers {
		p := r.blanks[number].part
		switch {
		case p == nil:
			continue
		case limited:
			words = slices.DeleteFunc(words, func(word string) bool { return !p.takes(word) })
		default:
			words = p.words()
		}
		limited = true
	}
	return words
}

// nothing is the error for a blank, from 0, with a piece that takes no token.
func (r *rules) nothing(number int, b tokenize.Blank, piece int) error {
	none := len(r.kinds(b, piece == 0)) == 0
	switch {
	case none && b.TouchesLeft && piece == 0:
		return misfit("fill", "blank %d continues the word on its left, and the model's vocabulary has no tokens "+
			"that continue a word: write a space before the blank", number+1)
	case none:
		return misfit("fill", "the model's vocabulary (vocab.txt or tokenizer.json) has nothing that blank %d may "+
			"take: fill=any takes every token", number+1)
	case r.blanks[number].pattern != nil:
		advice := "loosen it"
		odd := func(c rune) bool { return c > unicode.MaxASCII || unicode.IsUpper(c) }
		if !r.vocabulary.tokenizer.Cased() && strings.ContainsFunc(b.Pattern, odd) {
			advice = "its words have no capitals, and mostly no accents; loosen it"
		}
		return constrained("no word of the vocabulary fits %s: %s, or give the blank a list of words",
			b.Pattern, advice)
	}
	return constrained("nothing is left for blank %d: loosen what it may take", number+1)
}

// place returns the token ids, ascending, that a blank without a list may take as
// piece number piece, from 0, whatever its other pieces are.
func (r *rules) place(number int, b tokenize.Blank, piece int) []int {
	list := r.kinds(b, piece == 0)
	own := r.blanks[number]
	bans := r.bansOf(b)
	if own.pattern == nil && own.part == nil && bans.none() {
		return list
	}
	var support []int
	one := make([]int, 1)
	for _, id := range list {
		one[0] = id
		switch {
		case own.part != nil && piece > 0 && r.vocabulary.classes()[id]&continuingToken == 0: // it holds one word
		case b.Slots == 1 && !r.allows(number, b, one):
		case own.pattern != nil && !own.pattern.MatchString(r.vocabulary.tokenizer.Piece(id)):
		case starts(bans.plain, one) || piece == 0 && starts(bans.joined, one):
		default:
			support = append(support, id)
		}
	}
	return support
}

// kinds returns the tokens, ascending, that the option fill allows as the first
// piece of a blank or, if first is false, as a later piece. The vocabulary
// caches the tokens for all templates.
func (r *rules) kinds(b tokenize.Blank, first bool) []int {
	type kind struct {
		fill                      FillKind
		first, touchesLeft, opens bool
	}
	key := kind{r.fill, first, first && b.TouchesLeft, first && b.Opens}
	if list, ok := r.vocabulary.kinds.Load(key); ok {
		return list.([]int)
	}
	var list []int
	for _, id := range r.vocabulary.fillable {
		if r.takes(id) && (!first || r.begins(b, id)) {
			list = append(list, id)
		}
	}
	kept, _ := r.vocabulary.kinds.LoadOrStore(key, slices.Clip(list))
	return kept.([]int)
}
