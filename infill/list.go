package infill

import (
	"fmt"
	"slices"
	"strings"

	"infill/samplers"
	"infill/tokenize"
)

// A wordList holds the words of a blank's list, read as tokens of one vocabulary.
type wordList struct {
	words []string // as the user gave them
	fills []listed
	left  []string // each word that the model cannot write, and why
}

// listed is a word of a list, as text and as token ids.
type listed struct {
	text string // as the user wrote it
	ids  []int
}

// list reads the words of a blank's list. It caches the last wordList of each blank number, because every record of a
// file repeats the list.
func (v *vocabulary) list(number int, words []string, b tokenize.Blank) *wordList {
	type key struct {
		number  int
		touches bool
	}
	at := key{number, b.TouchesLeft}
	if known, ok := v.lists.Load(at); ok && slices.Equal(known.(*wordList).words, words) {
		return known.(*wordList)
	}
	l := &wordList{words: words}
	var continuing map[string]int
	if b.TouchesLeft {
		continuing = v.continuations()
	}
	for _, word := range words {
		ids, err := v.candidate(word, b, continuing)
		if err == nil && len(ids) > maxPieces {
			err = fmt.Errorf("it has %s, and a blank %d at most", countPieces(len(ids)), maxPieces)
		}
		if err == nil {
			if at := slices.IndexFunc(ids, func(id int) bool {
				_, ok := slices.BinarySearch(v.fillable, id)
				return !ok
			}); at >= 0 {
				err = fmt.Errorf("%s fills no blank", v.tokenizer.Token(ids[at]))
			}
		}
		if err != nil {
			l.left = append(l.left, fmt.Sprintf("%q: %v", word, err))
			continue
		}
		l.fills = append(l.fills, listed{strings.TrimSpace(word), ids})
	}
	v.lists.Store(at, l)
	return l
}

// choices holds the listed words that have one number of pieces, sorted for look-ups by their known pieces.
type choices struct {
	forward  [][]int           // the words, ascending
	backward [][]int           // the words, in the order of compareBackward
	first    map[int][]int     // the pieces that each place may take while no piece is known
	written  map[string]string // the user's spelling of each word, by its token ids as text
}

func newChoices(fills []listed) *choices {
	c := &choices{first: map[int][]int{}, written: map[string]string{}}
	for _, f := range fills {
		c.forward = append(c.forward, f.ids)
		if key := fmt.Sprint(f.ids); c.written[key] == "" && !strings.HasPrefix(f.text, "##") {
			c.written[key] = f.text
		}
	}
	slices.SortFunc(c.forward, slices.Compare)
	c.forward = slices.CompactFunc(c.forward, slices.Equal)
	c.backward = slices.SortedFunc(slices.Values(c.forward), compareBackward)
	for place := range c.forward[0] {
		c.first[place] = distinctAt(c.forward, place)
	}
	return c
}

// compareBackward compares words of equal length by their last pieces, then by the pieces before.
func compareBackward(a, b []int) int {
	for i := len(a) - 1; i >= 0; i-- {
		if a[i] != b[i] {
			return a[i] - b[i]
		}
	}
	return 0
}

// distinctAt returns the distinct pieces at one place of the words, ascending.
func distinctAt(words [][]int, place int) []int {
	var pieces []int
	for _, word := range words {
		pieces = append(pieces, word[place])
	}
	slices.Sort(pieces)
	return slices.Compact(pieces)
}

// at returns the pieces, ascending, that a place may take given the known pieces of the word. known holds samplers.Open
// for each unknown piece.
func (c *choices) at(known []int, place int) []int {
	if !slices.ContainsFunc(known, func(piece int) bool { return piece != samplers.Open }) {
		return c.first[place]
	}
	fits := func(word []int) bool {
		for i, piece := range known {
			if piece != samplers.Open && piece != word[i] {
				return false
			}
		}
		return true
	}
	// In forward, the words with the same first pieces are neighbours; in backward, those with the same last pieces.
	words, n := c.forward, slices.Index(known, samplers.Open)
	if n > 0 {
		from, _ := slices.BinarySearchFunc(words, known[:n], func(word, known []int) int {
			return slices.Compare(word[:n], known)
		})
		words = words[from:]
	} else {
		words = c.backward
		from, _ := slices.BinarySearchFunc(words, known, func(word, known []int) int {
			for i := len(known) - 1; i >= 0 && known[i] != samplers.Open; i-- {
				if word[i] != known[i] {
					return word[i] - known[i]
				}
			}
			return 0
		})
		words = words[from:]
	}
	var fitting [][]int
	for _, word := range words {
		if n > 0 && !slices.Equal(word[:n], known[:n]) || n == 0 && known[len(known)-1] != samplers.Open &&
			word[len(known)-1] != known[len(known)-1] {
			break
		}
		if fits(word) {
			fitting = append(fitting, word)
		}
	}
	return distinctAt(fitting, place)
}
