package infill

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"infill/tokenize"
)

// rules are constraints in terms of one vocabulary.
type rules struct {
	Constraints
	fill       FillKind
	vocabulary *vocabulary
	// lists are the token ids of the fills that a blank may take, by their number of
	// pieces, [blanks]; nil without a list.
	lists   []map[int][][]int
	written []map[string]string // how the words of the lists were written, by their tokens, [blanks]
	// patterns are those of the blanks, [blanks]; nil without one.
	patterns []*pattern
	exist    func() *lexicon   // words with a pattern may be longer where it has them; nil without one
	existing []map[int][][]int // what existingWords returned, [blanks]
	spoken   map[int]spoken    // by where a blank starts in the text
	plain    bans              // as words stand by themselves
	joined   bans              // as they continue a word
	length   []int             // characters of each token, [vocabulary]; nil if none are counted
}

// bans are banned words, by their first token.
type bans map[int][][]int

// begin reports whether tokens begin with a banned word.
func (b bans) begin(ids []int) bool {
	return slices.ContainsFunc(b[ids[0]],
		func(ban []int) bool { return len(ids) >= len(ban) && slices.Equal(ids[:len(ban)], ban) })
}

// rules reads the constraints for the blanks of a template.
func (v *vocabulary) rules(t *tokenize.Template, c Constraints, fill FillKind) (*rules, error) {
	r := &rules{Constraints: c, fill: fill, vocabulary: v, lists: make([]map[int][][]int, len(t.Blanks)),
		written: make([]map[string]string, len(t.Blanks)), spoken: map[int]spoken{}, plain: bans{}, joined: bans{},
		existing: make([]map[int][][]int, len(t.Blanks))}
	if c.MinCharacters > 1 || c.MaxCharacters > 0 {
		r.length = make([]int, v.tokenizer.VocabularySize())
		for _, id := range v.fillable {
			r.length[id] = utf8.RuneCountInString(v.pieceText(id))
		}
	}
	for number, parts := range c.Speech {
		if number > len(t.Blanks) {
			return nil, misfit("pos", "there is no blank %d: the template has %d", number, len(t.Blanks))
		}
		for i, b := range t.Blanks {
			if number == i+1 || number == 0 && c.Speech[i+1] == nil {
				r.spoken[b.Start] = newSpoken(t, b, parts)
			}
		}
	}
	var continuing map[string]int
	if slices.ContainsFunc(t.Blanks, func(b tokenize.Blank) bool { return b.TouchesLeft }) &&
		(len(c.Words) > 0 || len(c.Ban) > 0) {
		continuing = v.continuations()
	}
	for _, word := range c.Ban {
		// A word that the model cannot write comes in no fill.
		if ids, err := v.candidate(word, tokenize.Blank{}, nil); err == nil {
			r.plain[ids[0]] = append(r.plain[ids[0]], ids)
		}
		if ids, err := v.candidate(word, tokenize.Blank{TouchesLeft: true}, continuing); err == nil {
			r.joined[ids[0]] = append(r.joined[ids[0]], ids)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(c.Words)) {
		if number > len(t.Blanks) {
			return nil, misfit("slot", "there is no blank %d: the template has %d", number, len(t.Blanks))
		}
		var err error
		if r.lists[number-1], err = r.list(t, number, c.Words[number], continuing); err != nil {
			return nil, err
		}
	}
	r.patterns = make([]*pattern, len(t.Blanks))
	for i, b := range t.Blanks {
		if b.Pattern == "" {
			continue
		}
		var err error
		if r.patterns[i], err = v.newPattern(b.Pattern, r.openings(b)); err != nil {
			return nil, misfit("pattern", "blank %d: %v", i+1, err)
		}
	}
	return r, r.named(t.Blanks)
}

// openings are the pieces that may begin the word of a blank, ascending.
func (r *rules) openings(b tokenize.Blank) []int {
	var list []int
	for _, id := range r.vocabulary.fillable {
		if class := r.vocabulary.classes()[id]; class&wordToken != 0 &&
			(b.Opens || (class&continuingToken != 0) == b.TouchesLeft) {
			list = append(list, id)
		}
	}
	return list
}

// list reads the fills of the blank of that number, from 1.
func (r *rules) list(t *tokenize.Template, number int, words []string,
	continuing map[string]int) (map[int][][]int, error) {
	b := t.Blanks[number-1]
	low, high := 1, maxPieces
	if b.High > 0 {
		low, high = b.Low, b.High
	}
	low = max(low, r.MinPieces)
	if r.MaxPieces > 0 {
		high = min(high, r.MaxPieces)
	}
	fills, written := map[int][][]int{}, map[string]string{}
	r.written[number-1] = written
	for _, word := range words {
		ids, err := r.vocabulary.candidate(word, b, continuing)
		if err != nil {
			return nil, misfit("slot", "blank %d cannot take %q: %v", number, word, err)
		}
		for _, id := range ids {
			if _, ok := slices.BinarySearch(r.vocabulary.fillable, id); !ok {
				return nil, misfit("slot", "blank %d cannot take %q: %s fills no slot", number, word,
					r.vocabulary.tokenizer.Token(id))
			}
		}
		if n := len(ids); n < low || n > high {
			return nil, misfit("slot", "blank %d cannot take %q: it has %s, %s has %s", number, word, countPieces(n),
				t.Text[b.Start:b.End], span(low, high))
		} else if (!b.TouchesLeft || r.begins(b, ids[0])) && r.allows(b, ids) {
			fills[n] = append(fills[n], ids)
			if key := fmt.Sprint(ids); written[key] == "" && !strings.HasPrefix(word, "##") {
				written[key] = strings.TrimSpace(word)
			}
		}
	}
	if len(fills) == 0 {
		return nil, misfit("slot", "the other constraints leave blank %d no word of its list", number)
	}
	for n := range fills {
		slices.SortFunc(fills[n], slices.Compare)
		fills[n] = slices.CompactFunc(fills[n], slices.Equal)
	}
	return fills, nil
}

// spelled tells how a word of the list of a blank was written, or "".
func (r *rules) spelled(blank int, ids []int) string {
	if r.written[blank] == nil {
		return ""
	}
	return r.written[blank][fmt.Sprint(ids)]
}

// named gives the blanks of one name one list, and refuses those that cannot
// hold the same tokens.
func (r *rules) named(blanks []tokenize.Blank) error {
	first := make([]int, len(blanks)) // the first blank of a blank's name, or itself
	for i, b := range blanks {
		first[i] = slices.IndexFunc(blanks,
			func(other tokenize.Blank) bool { return other.Start == b.Start || b.Name != "" && other.Name == b.Name })
		j := first[i]
		switch {
		case blanks[j].TouchesLeft != b.TouchesLeft:
			return misfit("slot", "blanks %d and %d have one name, but only one of them continues a word", j+1, i+1)
		case r.lists[j] == nil:
			r.lists[j], r.written[j] = r.lists[i], r.written[i]
		case r.lists[i] != nil && !reflect.DeepEqual(r.lists[i], r.lists[j]):
			return misfit("slot", "blanks %d and %d have one name and different lists", j+1, i+1)
		}
	}
	for i, j := range first {
		r.lists[i], r.written[i] = r.lists[j], r.written[j]
		switch p, q := r.patterns[i], r.patterns[j]; {
		case q == nil:
			r.patterns[j] = p
		case p != nil && p.text != q.text:
			return misfit("pattern", "blanks %d and %d have one name and different patterns", j+1, i+1)
		}
	}
	for i, j := range first {
		if r.patterns[i] = r.patterns[j]; r.patterns[i] != nil && r.lists[i] != nil {
			return misfit("slot", "blank %d has a pattern: give it a list or a pattern", i+1)
		}
	}
	return nil
}

// lengths are the fewest and the most pieces of each blank, [blanks]: those that
// were typed, or those of its list, or the bounds for all.
func (r *rules) lengths(t *tokenize.Template) [][2]int {
	lengths := make([][2]int, len(t.Blanks))
	longest := make([]int, len(t.Blanks)) // word of a lexicon
	for i, b := range t.Blanks {
		switch pieces := slices.Collect(maps.Keys(r.lists[i])); {
		case b.High > 0:
			lengths[i] = [2]int{b.Low, b.High}
		case pieces != nil:
			lengths[i] = [2]int{slices.Min(pieces), slices.Max(pieces)}
		case r.patterns[i] != nil && r.MaxPieces == 0:
			lengths[i] = [2]int{1, r.patternPieces()}
			for n := range r.existingWords(i, b) {
				longest[i] = max(longest[i], n)
			}
		default:
			lengths[i] = [2]int{max(r.MinPieces, 1), max(r.MinPieces, r.MaxPieces, 1)}
		}
	}
	for most := slices.Max(longest); most > r.patternPieces(); most-- {
		longer := slices.Clone(lengths)
		for i, n := range longest {
			longer[i][1] = max(longer[i][1], min(n, most))
		}
		if _, err := t.Expand(longer); err == nil { // not too many combinations
			return longer
		}
	}
	return lengths
}

// existingWords are the words of a lexicon that the pattern of a blank fits, by their number of pieces: those that have
// more than words that are put together.
func (r *rules) existingWords(blank int, b tokenize.Blank) map[int][][]int {
	if r.existing[blank] == nil {
		r.existing[blank] = map[int][][]int{}
		if r.exist != nil && r.fill == fillWords && !b.TouchesLeft && !b.TouchesRight {
			r.existing[blank] = r.patterns[blank].among(r.exist(), r.patternPieces())
		}
	}
	return r.existing[blank]
}

// mustExist reports whether only a word of a lexicon has as many pieces as a blank.
func (r *rules) mustExist(blank int, b tokenize.Blank) bool {
	return r.patterns[blank] != nil && b.High == 0 && r.MaxPieces == 0 && b.Slots > r.patternPieces()
}

// needsLexicon reports whether a blank of a template has so many pieces.
func (r *rules) needsLexicon(t *tokenize.Template) bool {
	for i, b := range t.Blanks {
		if r.mustExist(i, b) {
			return true
		}
	}
	return false
}

// patternPieces are the most pieces that a word has that is put together for a pattern. Every combination of
// lengths is a run of its own, so that several patterns have fewer.
func (r *rules) patternPieces() int {
	different := map[*pattern]bool{} // those of one name are one
	for _, p := range r.patterns {
		different[p] = p != nil
	}
	delete(different, nil)
	switch count := len(different); {
	case count == 1:
		return patternPieces
	case count <= 3:
		return 2
	}
	return 1
}

// misses reports whether a list or a pattern has no fill of its blank's length.
func (r *rules) misses(t *tokenize.Template) (bool, error) {
	for i, b := range t.Blanks {
		switch {
		case r.lists[i] != nil && r.lists[i][b.Slots] == nil:
			return true, nil
		case r.patterns[i] != nil:
			words, err := r.matching(i, b, nil)
			if err != nil || len(words) == 0 {
				return true, err
			}
		}
	}
	return false, nil
}

// matching are the words of a blank's length that its pattern and the other constraints
// allow: all of one piece, and of more those that logp, [slots][vocabulary], finds likeliest;
// without it, some.
func (r *rules) matching(blank int, b tokenize.Blank, logp [][]float32) ([][]int, error) {
	number := patternWords
	if b.Slots == 1 {
		number = len(r.patterns[blank].starts)
	}
	if logp != nil {
		logp = logp[b.First:]
	}
	var words [][]int
	var err error
	if r.mustExist(blank, b) {
		words = slices.Clone(r.existingWords(blank, b)[b.Slots])
		if logp != nil {
			words = bestWords(words, number, logp)
		}
	} else {
		words, err = r.patterns[blank].words(b, b.Slots, number, logp)
	}
	return slices.DeleteFunc(words, func(ids []int) bool { return !r.allows(b, ids) }), err
}

// begins reports whether a token may be the first of a blank.
func (r *rules) begins(b tokenize.Blank, token int) bool {
	class := r.vocabulary.classes()[token]
	switch {
	case b.TouchesLeft:
		return class&continuingToken != 0 || r.fill != fillWords && class&wordToken == 0 // "Stop" and "!"
	case r.fill == FillAny:
		return true
	}
	return b.Opens || class&continuingToken == 0
}

// takes reports whether a blank without a list may hold a token.
func (r *rules) takes(token int) bool {
	return r.fill != fillWords || r.vocabulary.classes()[token]&wordToken != 0
}

// allows reports whether a blank's tokens hold no banned word, and have as many
// characters as they should and the part of speech.
func (r *rules) allows(b tokenize.Blank, ids []int) bool {
	if spoken, ok := r.spoken[b.Start]; ok && !spoken.takes(r.vocabulary.wordOf(ids)) {
		return false
	}
	characters := 0
	for at, id := range ids {
		if r.plain.begin(ids[at:]) || at == 0 && b.TouchesLeft && r.joined.begin(ids) {
			return false
		}
		if r.length != nil {
			characters += r.length[id]
		}
	}
	return r.length == nil || characters >= r.MinCharacters && (r.MaxCharacters == 0 || characters <= r.MaxCharacters)
}

// compile writes the variables of a template, and what judges their tokens together; cut
// judges the words that have a pattern.
func (r *rules) compile(t *tokenize.Template,
	pins []int) (list []variable, allowed, cut func(tokens []int) bool, err error) {
	judged := map[int]tokenize.Blank{}
	var spelled []tokenize.Blank
	for _, slots := range tied(len(t.Slots), t.Ties) {
		blank := slices.IndexFunc(t.Blanks, func(b tokenize.Blank) bool { return slots[0] < b.First+b.Slots })
		b := t.Blanks[blank]
		v := variable{slots: slots}
		switch fills := r.lists[blank][b.Slots]; {
		case r.patterns[blank] != nil && b.Slots == 1:
			words, err := r.matching(blank, b, nil)
			if err != nil {
				return nil, nil, nil, err
			}
			for _, ids := range words {
				v.support = append(v.support, ids[0])
			}
			slices.Sort(v.support)
		case r.patterns[blank] != nil && slots[0] != b.First:
			continue // moves with the blank's first slot
		case r.patterns[blank] != nil:
			v.slots, _ = together(slots, [][]int{make([]int, b.Slots)})
			v.find = func(logp [][]float32) ([][]int, error) {
				words, err := r.matching(blank, b, logp)
				_, words = together(slots, append(words, make([]int, b.Slots)))
				found := variable{slots: v.slots, words: words[:len(words)-1]}
				if pins != nil {
					found = found.pinned(pins)
				}
				if err == nil && len(found.words) == 0 {
					err = misfit("constraints", "nothing is left for blank %d: loosen them", blank+1)
				}
				return found.words, err
			}
			if v.spell = r.patterns[blank].possible; r.mustExist(blank, b) {
				words := r.existingWords(blank, b)[b.Slots]
				v.spell = func(word []int, place int) []int { return agreeing(words, word, place) }
			}
			spelled = append(spelled, b)
			list = append(list, v)
			continue
		case fills == nil:
			v.support = r.support(b, slots[0]-b.First)
			_, said := r.spoken[b.Start]
			if b.Slots > 1 && (said || r.length != nil || r.plain.longer() || r.joined.longer()) {
				judged[blank] = b
			}
		case b.Slots == 1:
			v.listed = true
			for _, ids := range fills {
				v.support = append(v.support, ids[0])
			}
		case slots[0] != b.First:
			continue // moves with the blank's first slot
		default:
			v.listed = true
			v.slots, v.words = together(slots, fills)
		}
		if pins != nil {
			v = v.pinned(pins)
		}
		if v.categories() == 0 {
			return nil, nil, nil, misfit("constraints", "nothing is left for blank %d: loosen them", blank+1)
		}
		list = append(list, v)
	}
	differ := r.differing(t)
	if len(judged) > 0 || differ != nil {
		allowed = func(tokens []int) bool {
			for _, b := range judged {
				if !r.allows(b, tokens[b.First:b.First+b.Slots]) {
					return false
				}
			}
			return differ == nil || differ(tokens)
		}
	}
	if spelled != nil {
		cut = func(tokens []int) bool {
			for _, b := range spelled {
				word := tokens[b.First : b.First+b.Slots]
				if !r.allows(b, word) || !r.vocabulary.cutSo(b, word) {
					return false
				}
			}
			return true
		}
	}
	return list, allowed, cut, nil
}

// differing reports whether no two blanks hold the same tokens, those of one name excepted;
// nil if there is nothing to tell.
func (r *rules) differing(t *tokenize.Template) func(tokens []int) bool {
	var pairs [][2]tokenize.Blank
	for i, a := range t.Blanks {
		for _, b := range t.Blanks[:i] {
			if r.Distinct && a.Slots == b.Slots && (a.Name == "" || a.Name != b.Name) {
				pairs = append(pairs, [2]tokenize.Blank{a, b})
			}
		}
	}
	if pairs == nil {
		return nil
	}
	return func(tokens []int) bool {
		for _, p := range pairs {
			if slices.Equal(tokens[p[0].First:p[0].First+p[0].Slots], tokens[p[1].First:p[1].First+p[1].Slots]) {
				return false
			}
		}
		return true
	}
}

// longer reports whether there is a word of several tokens.
func (b bans) longer() bool {
	for _, list := range b {
		if slices.ContainsFunc(list, func(ban []int) bool { return len(ban) > 1 }) {
			return true
		}
	}
	return false
}

// together are the slots of a blank and of those of its name, and the words that
// fill all of them; first are the first slots of each.
func together(first []int, fills [][]int) (slots []int, words [][]int) {
	for _, slot := range first {
		for piece := range fills[0] {
			slots = append(slots, slot+piece)
		}
	}
	for _, ids := range fills {
		words = append(words, slices.Repeat(ids, len(first)))
	}
	return slots, words
}

// support is what a slot without a list may take: a blank's given piece.
func (r *rules) support(b tokenize.Blank, piece int) []int {
	if !b.TouchesLeft && !r.Any() && r.fill == FillAny {
		return r.vocabulary.fillable
	}
	list := r.kinds(b, piece == 0)
	if !r.Any() {
		return list
	}
	var support []int
	one := make([]int, 1)
	_, said := r.spoken[b.Start]
	for _, id := range list {
		switch one[0] = id; {
		case said && piece > 0 && r.vocabulary.classes()[id]&continuingToken == 0: // a single word is asked for
		case b.Slots == 1 && !r.allows(b, one):
		case r.plain.begin(one) || piece == 0 && b.TouchesLeft && r.joined.begin(one):
		case r.length != nil && r.MaxCharacters > 0 && r.length[id] > r.MaxCharacters:
		default:
			support = append(support, id)
		}
	}
	return support
}

// kinds are the tokens of the kind that a blank takes, ascending, in its first place or in
// another. They are found once for all templates.
func (r *rules) kinds(b tokenize.Blank, first bool) []int {
	type kind struct {
		fill                      FillKind
		first, touchesLeft, opens bool
	}
	find := func() []int {
		var list []int
		for _, id := range r.vocabulary.fillable {
			if r.takes(id) && (!first || r.begins(b, id)) {
				list = append(list, id)
			}
		}
		return slices.Clip(list)
	}
	key := kind{r.fill, first, first && b.TouchesLeft, first && b.Opens}
	if list, ok := r.vocabulary.kinds.Load(key); ok {
		return list.([]int)
	}
	list, _ := r.vocabulary.kinds.LoadOrStore(key, find())
	return list.([]int)
}

// pinned keeps a variable to what its slots are pinned to.
func (v variable) pinned(pins []int) variable {
	if v.words == nil {
		if pin := pins[v.slots[0]]; pin != Free {
			v.support, v.listed = []int{pin}, true
		}
		return v
	}
	v.words = slices.DeleteFunc(slices.Clone(v.words), func(word []int) bool {
		for i, slot := range v.slots {
			if pins[slot] != Free && pins[slot] != word[i] {
				return true
			}
		}
		return false
	})
	return v
}
