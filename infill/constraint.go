package infill

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"infill/tokenize"
)

// Constraints narrow what blanks may take. They restrict the support: the chains
// draw from the same distribution, conditional on the fills that are left, and
// log-likelihoods compare with those of a run without them.
type Constraints struct {
	// Words lists, by the number of a blank from 1, the fills it may take. A fill
	// is one word or several, of one piece or several; a blank without a length
	// of its own takes each at the number of its pieces.
	Words map[int][]string
	// Ban lists words that no blank may hold: their pieces side by side.
	Ban []string
	// WholeWords keeps a blank from beginning with a piece that continues the
	// word on its left. A blank that touches a word, as in "high[MASK]", always
	// begins with one.
	WholeWords bool
	// MinCharacters and MaxCharacters bound the characters of a fill, blanks
	// between its words not counted; 0 is no bound.
	MinCharacters, MaxCharacters int
	// MinPieces and MaxPieces are the number of pieces of blanks without a length
	// of their own and without a list; 0 is one piece. They also bound lists.
	MinPieces, MaxPieces int
}

// Any tells whether there is a constraint.
func (c *Constraints) Any() bool {
	return len(c.Words) > 0 || len(c.Ban) > 0 || c.WholeWords || c.MinCharacters > 0 || c.MaxCharacters > 0 || c.MaxPieces > 0
}

// rules are constraints in terms of one vocabulary.
type rules struct {
	Constraints
	filler *Filler
	lists  [][][]int // token ids of the fills, [blanks][fills]; nil without a list
	plain  bans      // as words stand by themselves
	joined bans      // as they continue a word
	length []int     // characters of each token, [vocabulary]; nil where none are counted
}

// bans are banned words: those of one piece, and the others.
type bans struct {
	single map[int]bool
	longer [][]int
}

func (b *bans) add(ids []int) {
	if len(ids) > 1 {
		b.longer = append(b.longer, ids)
		return
	}
	if b.single == nil {
		b.single = map[int]bool{}
	}
	b.single[ids[0]] = true
}

// begin tells whether tokens begin with a banned word.
func (b *bans) begin(ids []int) bool {
	return b.single[ids[0]] || slices.ContainsFunc(b.longer, func(ban []int) bool {
		return len(ids) >= len(ban) && slices.Equal(ids[:len(ban)], ban)
	})
}

// rules reads the constraints for the blanks of a template.
func (f *Filler) rules(t *tokenize.Template, c Constraints) (*rules, error) {
	r := &rules{Constraints: c, filler: f, lists: make([][][]int, len(t.Blanks))}
	if c.MinCharacters > 1 || c.MaxCharacters > 0 {
		r.length = make([]int, f.tokenizer.VocabularySize())
		for _, id := range f.fillable {
			r.length[id] = utf8.RuneCountInString(f.pieceText(id))
		}
	}
	var continuing map[string]int
	if slices.ContainsFunc(t.Blanks, func(b tokenize.Blank) bool { return b.TouchesLeft }) && (len(c.Words) > 0 || len(c.Ban) > 0) {
		continuing = f.continuations()
	}
	for _, word := range c.Ban {
		// A word that the model cannot write comes in no fill.
		if ids, err := f.candidate(word, tokenize.Blank{}, nil); err == nil {
			r.plain.add(ids)
		}
		if ids, err := f.candidate(word, tokenize.Blank{TouchesLeft: true}, continuing); err == nil {
			r.joined.add(ids)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(c.Words)) {
		if number > len(t.Blanks) {
			return nil, misfit("slot", "there is no blank %d: the template has %d", number, len(t.Blanks))
		}
		if err := r.list(t, number-1, c.Words[number], continuing); err != nil {
			return nil, err
		}
	}
	return r, r.named(t)
}

// list reads the fills of one blank.
func (r *rules) list(t *tokenize.Template, blank int, words []string, continuing map[string]int) error {
	b := t.Blanks[blank]
	low, high := 1, maxPieces
	if b.High > 0 {
		low, high = b.Low, b.High
	}
	if r.MaxPieces > 0 {
		low, high = max(low, r.MinPieces), min(high, r.MaxPieces)
	}
	for _, word := range words {
		ids, err := r.filler.candidate(word, b, continuing)
		if err != nil {
			return misfit("slot", "blank %d cannot take %q: %v", blank+1, word, err)
		}
		for _, id := range ids {
			if _, ok := slices.BinarySearch(r.filler.fillable, id); !ok {
				return misfit("slot", "blank %d cannot take %q: %s fills no slot", blank+1, word, r.filler.tokenizer.Token(id))
			}
		}
		if len(ids) < low || len(ids) > high {
			return misfit("slot", "blank %d cannot take %q: it has %s, %s has %s", blank+1, word, countPieces(len(ids)), t.Text[b.Start:b.End], span(low, high))
		}
		if !r.banned(b, ids) && r.rightLength(ids) && r.begins(b, ids[0]) {
			r.lists[blank] = append(r.lists[blank], ids)
		}
	}
	if r.lists[blank] == nil {
		return misfit("slot", "the other constraints leave blank %d no word of its list", blank+1)
	}
	slices.SortFunc(r.lists[blank], slices.Compare)
	r.lists[blank] = slices.CompactFunc(r.lists[blank], slices.Equal)
	return nil
}

func countPieces(n int) string {
	if n == 1 {
		return "1 piece"
	}
	return strconv.Itoa(n) + " pieces"
}

// named gives the blanks of one name one list, and refuses those that cannot
// hold the same tokens.
func (r *rules) named(t *tokenize.Template) error {
	first := map[string]int{}
	for i, b := range t.Blanks {
		if b.Name == "" {
			continue
		}
		j, seen := first[b.Name]
		if !seen {
			first[b.Name] = i
			continue
		}
		if t.Blanks[j].TouchesLeft != b.TouchesLeft {
			return misfit("slot", "blanks %d and %d have one name, but only one of them continues a word", j+1, i+1)
		}
		switch {
		case r.lists[i] == nil:
		case r.lists[j] == nil:
			r.lists[j] = r.lists[i]
		case !slices.EqualFunc(r.lists[i], r.lists[j], slices.Equal):
			return misfit("slot", "blanks %d and %d have one name and different lists", j+1, i+1)
		}
	}
	for i, b := range t.Blanks {
		if b.Name != "" {
			r.lists[i] = r.lists[first[b.Name]]
		}
	}
	return nil
}

// lengths are the fewest and the most pieces of each blank, [blanks]: those that
// were typed, or those of its list, or the bounds for all.
func (r *rules) lengths(blanks []tokenize.Blank) [][2]int {
	lengths := make([][2]int, len(blanks))
	for i, b := range blanks {
		low, high := max(r.MinPieces, 1), max(r.MaxPieces, 1)
		switch list := r.lists[i]; {
		case b.High > 0:
			low, high = b.Low, b.High
		case list != nil:
			low, high = len(list[0]), len(list[0])
			for _, ids := range list {
				low, high = min(low, len(ids)), max(high, len(ids))
			}
		}
		lengths[i] = [2]int{low, high}
	}
	return lengths
}

// fits tells whether every list has a fill of its blank's length.
func (r *rules) fits(t *tokenize.Template) bool {
	for i, b := range t.Blanks {
		if r.lists[i] != nil && len(r.ofLength(i, b.Slots)) == 0 {
			return false
		}
	}
	return true
}

// ofLength is the part of a blank's list that has a number of pieces.
func (r *rules) ofLength(blank, pieces int) [][]int {
	var fills [][]int
	for _, ids := range r.lists[blank] {
		if len(ids) == pieces {
			fills = append(fills, ids)
		}
	}
	return fills
}

// begins tells whether a token may be the first of a blank.
func (r *rules) begins(b tokenize.Blank, token int) bool {
	if b.TouchesLeft {
		return r.filler.tokenizer.Continues(token)
	}
	return !r.WholeWords || !r.filler.tokenizer.Continues(token)
}

// banned tells whether a blank's tokens hold a banned word.
func (r *rules) banned(b tokenize.Blank, ids []int) bool {
	for at := range ids {
		if r.plain.begin(ids[at:]) {
			return true
		}
	}
	return b.TouchesLeft && r.joined.begin(ids)
}

// rightLength tells whether a fill has as many characters as it should.
func (r *rules) rightLength(ids []int) bool {
	if r.length == nil {
		return true
	}
	n := 0
	for _, id := range ids {
		n += r.length[id]
	}
	return n >= r.MinCharacters && (r.MaxCharacters == 0 || n <= r.MaxCharacters)
}

// compile writes the variables of a template, and what judges their tokens together.
func (r *rules) compile(t *tokenize.Template, pins []int) (list []variable, allowed func(tokens []int) bool, err error) {
	blankOf := make([]int, 0, len(t.Slots))
	for i, b := range t.Blanks {
		for range b.Slots {
			blankOf = append(blankOf, i)
		}
	}
	joint := false
	for _, slots := range tied(len(t.Slots), t.Ties) {
		blank := blankOf[slots[0]]
		b := t.Blanks[blank]
		v := variable{slots: slots}
		switch fills := r.ofLength(blank, b.Slots); {
		case r.lists[blank] != nil && b.Slots > 1 && slots[0] != b.First:
			continue // moves with the blank's first slot
		case r.lists[blank] != nil && b.Slots > 1:
			v.slots, v.words = r.together(slots, fills)
		case r.lists[blank] != nil:
			v.listed = true
			for _, ids := range fills {
				v.support = append(v.support, ids[0])
			}
		default:
			v.support = r.support(b, slots[0]-b.First)
			joint = joint || b.Slots > 1 && (r.length != nil || len(r.plain.longer)+len(r.joined.longer) > 0)
		}
		if pins != nil && pins[v.slots[0]] != Free || v.words != nil {
			v = pinned(v, pins)
		}
		if v.categories() == 0 {
			return nil, nil, misfit("slot", "nothing is left for blank %d: loosen its constraints", blank+1)
		}
		list = append(list, v)
	}
	if joint {
		allowed = func(tokens []int) bool {
			for i, b := range t.Blanks {
				ids := tokens[b.First : b.First+b.Slots]
				if b.Slots > 1 && r.lists[i] == nil && (r.banned(b, ids) || !r.rightLength(ids)) {
					return false
				}
			}
			return true
		}
	}
	return list, allowed, nil
}

// together are the slots of a blank and of those of its name, and the words that
// fill all of them; first are the first slots of each.
func (r *rules) together(first []int, fills [][]int) (slots []int, words [][]int) {
	pieces := len(fills[0])
	for _, slot := range first {
		for piece := range pieces {
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
	whole := !b.TouchesLeft && !r.WholeWords || piece > 0
	if whole && r.length == nil && len(r.plain.single) == 0 {
		return r.filler.fillable
	}
	var support []int
	for _, id := range r.filler.fillable {
		switch {
		case piece == 0 && !r.begins(b, id):
		case r.plain.single[id]:
		case piece == 0 && b.TouchesLeft && r.joined.single[id]:
		case b.Slots == 1 && !r.rightLength([]int{id}):
		case r.length != nil && r.MaxCharacters > 0 && r.length[id] > r.MaxCharacters:
		default:
			support = append(support, id)
		}
	}
	return support
}

// pinned keeps a variable to what its slots are pinned to.
func pinned(v variable, pins []int) variable {
	if pins == nil {
		return v
	}
	if v.words == nil {
		v.support = []int{pins[v.slots[0]]}
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

// pieceText is a token as it reads, without the mark of a piece or the blank of
// a word.
func (f *Filler) pieceText(id int) string {
	text := strings.TrimSpace(f.tokenizer.Decode([]int{id}))
	if f.tokenizer.Continues(id) {
		return strings.TrimPrefix(text, "##")
	}
	return text
}

// continuations are the tokens that continue a word, by how they read.
func (f *Filler) continuations() map[string]int {
	tokens := map[string]int{}
	for _, id := range f.fillable {
		if f.tokenizer.Continues(id) {
			tokens[f.pieceText(id)] = id
		}
	}
	return tokens
}

// candidate reads a fill of a blank: where the blank touches a word, as pieces
// that continue it. continuing is continuations(), not needed for other blanks.
func (f *Filler) candidate(text string, b tokenize.Blank, continuing map[string]int) ([]int, error) {
	if !b.TouchesLeft {
		return f.tokenizer.Candidate(text)
	}
	if id, ok := continuing[text]; ok {
		return []int{id}, nil
	}
	ids, err := f.tokenizer.Candidate(text)
	if err != nil {
		return nil, err
	}
	if ids = f.join(ids, continuing); ids == nil {
		return nil, errors.New("the vocabulary has no pieces that continue a word with it")
	}
	return ids, nil
}

// join cuts a candidate's first word into pieces that continue a word, the
// longest first, as WordPiece does; nil where the vocabulary has none.
func (f *Filler) join(ids []int, continuing map[string]int) []int {
	if f.tokenizer.Continues(ids[0]) {
		return ids
	}
	end := 1
	for end < len(ids) && f.tokenizer.Continues(ids[end]) {
		end++
	}
	var word strings.Builder
	for _, id := range ids[:end] {
		word.WriteString(f.pieceText(id))
	}
	var joined []int
	for rest := word.String(); rest != ""; {
		length := len(rest)
		for length > 0 {
			if id, ok := continuing[rest[:length]]; ok {
				joined = append(joined, id)
				break
			}
			length--
		}
		if length == 0 {
			return nil
		}
		rest = rest[length:]
	}
	return append(joined, ids[end:]...)
}
