package infill

import (
	"iter"
	"slices"

	"infill/samplers"
)

// spellings are what a blank, or the blanks of one name, may hold: sequences of
// tokens of one length. Of a known piece, known has the token; of another one it
// has samplers.Open, [pieces]. The known pieces are the first or the last ones.
type spellings struct {
	words words
	bans  bans // none, if no word of several tokens is banned
	// open has the tokens of each piece while all pieces are open, or nil as
	// long as nobody has asked.
	open [][]int
	free bool // whether open holds, whatever the other pieces are
}

// words are what pieces spell together where no word is banned.
type words interface {
	// next yields the tokens that an open piece may take so that the other open
	// pieces can be filled, too, each once. It reads known before the first
	// token: extend changes it meanwhile.
	next(known []int, piece int) iter.Seq[int]
	// has reports whether pieces that are all known spell a word.
	has(known []int) bool
}

var _, _, _ words = (supports)(nil), (*choices)(nil), (*lexicon)(nil)

// supports are the tokens of words whose pieces are free, ascending, [pieces].
type supports [][]int

func (s supports) next(_ []int, piece int) iter.Seq[int] { return slices.Values(s[piece]) }

func (s supports) has(known []int) bool {
	for piece, token := range known {
		_, ok := slices.BinarySearch(s[piece], token)
		if !ok {
			return false
		}
	}
	return true
}

// newSpellings returns the spellings of a number of pieces. b has bans only if one
// is of several tokens: the words hold no banned token.
func newSpellings(w words, b bans, pieces int) *spellings {
	apart, ok := w.(supports)
	if ok && b.none() {
		return &spellings{words: w, open: apart, free: true}
	}
	return &spellings{words: w, bans: b, open: make([][]int, pieces)}
}

// next returns what an open piece may take, ascending, so that the open ones after
// it can be filled. The caller must not change it.
func (s *spellings) next(known []int, piece int) []int {
	open := s.free || !slices.ContainsFunc(known, func(token int) bool { return token != samplers.Open })
	if open && s.open[piece] != nil {
		return s.open[piece]
	}
	tokens := slices.Sorted(s.words.next(known, piece))
	if !s.bans.none() {
		own := slices.Clone(known)
		tokens = slices.DeleteFunc(tokens, func(token int) bool {
			own[piece] = token
			return !s.fillable(own)
		})
	}
	if open {
		s.open[piece] = tokens
	}
	return tokens
}

// fillable reports whether the open pieces can be filled or, if none is open,
// whether the pieces are allowed.
func (s *spellings) fillable(known []int) bool {
	for range s.wholes(known) {
		return true
	}
	return false
}

// wholes yields the allowed sequences that agree with known. It yields one slice
// again and again, with other tokens.
func (s *spellings) wholes(known []int) iter.Seq[[]int] {
	return func(yield func([]int) bool) { s.extend(slices.Clone(known), yield) }
}

// extend does the work of wholes, and reports whether yield wants more.
func (s *spellings) extend(known []int, yield func([]int) bool) bool {
	if s.bans.within(known) {
		return true
	}
	piece := slices.Index(known, samplers.Open)
	if piece < 0 {
		return !s.words.has(known) || yield(known)
	}
	for token := range s.words.next(known, piece) {
		known[piece] = token
		if !s.extend(known, yield) {
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

func add(words map[int][][]int, ids []int) { words[ids[0]] = append(words[ids[0]], ids) }

// starts reports whether ids, some perhaps open, begin with one of words.
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

func (b bans) none() bool { return len(b.plain)+len(b.joined) == 0 }

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
