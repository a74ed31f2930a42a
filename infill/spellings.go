package infill

import (
	"iter"
	"slices"

	"infill/samplers"
)

// spellings are what a blank, or the blanks of one name, may hold: sequences of
// tokens of one length. Of a known piece, known has the token; of another one it
// has samplers.Open, [pieces]. The known pieces are the first or the last ones.
type spellings interface {
	// next returns the tokens, ascending, that an open piece may take so that
	// the pieces that are still open can be filled, too. The caller must not
	// change the slice.
	next(known []int, piece int) []int
	// wholes yields the allowed sequences that agree with known. It yields one
	// slice again and again, with other tokens.
	wholes(known []int) iter.Seq[[]int]
}

var _, _, _ spellings = (*choices)(nil), (*freely)(nil), (*spoken)(nil)

// some reports whether s allows a sequence that agrees with known.
func some(s spellings, known []int) bool {
	for range s.wholes(known) {
		return true
	}
	return false
}

// freely are the spellings of a blank whose pieces may be chosen one by one,
// unless they spell a banned word side by side.
type freely struct {
	pieces [][]int // the tokens that each piece may take, ascending
	bans   bans
}

// next implements spellings.
func (f *freely) next(known []int, piece int) []int {
	if !f.bans.longer() {
		return f.pieces[piece]
	}
	return filtered(f, f.pieces[piece], known, piece)
}

// filtered returns those of tokens that a piece may take so that s allows a
// sequence.
func filtered(s spellings, tokens, known []int, piece int) []int {
	var list []int
	own := slices.Clone(known)
	for _, token := range tokens {
		own[piece] = token
		if some(s, own) {
			list = append(list, token)
		}
	}
	return list
}

// wholes implements spellings.
func (f *freely) wholes(known []int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		for piece, token := range known {
			if token == samplers.Open {
				continue
			}
			_, ok := slices.BinarySearch(f.pieces[piece], token)
			if !ok {
				return
			}
		}
		f.extend(slices.Clone(known), yield)
	}
}

// extend yields the sequences that agree with known, and reports whether yield
// wants more.
func (f *freely) extend(known []int, yield func([]int) bool) bool {
	if f.bans.within(known) {
		return true
	}
	piece := slices.Index(known, samplers.Open)
	if piece < 0 {
		return yield(known)
	}
	for _, token := range f.pieces[piece] {
		known[piece] = token
		if !f.extend(known, yield) {
			return false
		}
	}
	known[piece] = samplers.Open
	return true
}

// bans hold banned words as token ids, by the first token of each.
type bans struct {
	plain  map[int][][]int // anywhere in a blank
	joined map[int][][]int // at the start of a blank that continues a word
}

// add adds a word to a map of bans.
func add(words map[int][][]int, ids []int) { words[ids[0]] = append(words[ids[0]], ids) }

// starts reports whether ids, not all of which need be known, begin with one of
// words.
func starts(words map[int][][]int, ids []int) bool {
	for _, word := range words[ids[0]] {
		if len(ids) >= len(word) && slices.Equal(ids[:len(word)], word) {
			return true
		}
	}
	return false
}

// within reports whether a banned word is among the known tokens of a blank.
func (b bans) within(known []int) bool {
	for at := range known {
		if starts(b.plain, known[at:]) {
			return true
		}
	}
	return starts(b.joined, known)
}

// longer reports whether any banned word has several tokens.
func (b bans) longer() bool {
	several := func(word []int) bool { return len(word) > 1 }
	for _, words := range []map[int][][]int{b.plain, b.joined} {
		for _, list := range words {
			if slices.ContainsFunc(list, several) {
				return true
			}
		}
	}
	return false
}
