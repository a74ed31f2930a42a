package infill

import (
	"fmt"
	"slices"
	"strings"

	"infill/samplers"
	"infill/tokenize"
)

// A wordList is a list of words as the tokens of one vocabulary.
type wordList struct {
	words []string // as the user gave them
	fills []listed
	left  []string // words that the model cannot write, and why
}

// listed is a word of a list.
type listed struct {
	text string // as it was written
	ids  []int
}

// list reads the words of a blank's list. It keeps the last list of each blank's number, because every record of a file
// repeats it.
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

// choices holds the listed words of one number of pieces, sorted for look-ups by their known pieces.
type choices struct {
	forward  [][]int           // ascending
	backward [][]int           // ascending from their last pieces on
	first    map[int][]int     // the pieces that a place may take while no piece is known
	written  map[string]string // how words were written, by their tokens
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

// compareBackward compares words from their last pieces on.
func compareBackward(a, b []int) int {
	for i := len(a) - 1; i >= 0; i-- {
		if a[i] != b[i] {
			return a[i] - b[i]
		}
	}
	return 0
}

// distinctAt returns the distinct pieces that words have in a place, ascending.
func distinctAt(words [][]int, place int) []int {
	var pieces []int
	for _, word := range words {
		pieces = append(pieces, word[place])
	}
	slices.Sort(pieces)
	return slices.Compact(pieces)
}

// at returns the pieces, ascending, that a place may take given the known pieces of the word; samplers.Open in known
// stands for the others.
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
	// The words that begin, or end, with the known pieces stand together.
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
