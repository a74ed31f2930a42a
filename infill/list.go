package infill

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"

	"infill/internal/phrase"
	"infill/samplers"
	"infill/tokenize"
)

// A wordList holds the words of a blank's list, read as tokens of one vocabulary.
type wordList struct {
	words []string // as the user gave them
	fills []listed
	left  []string // each word that the model cannot write, and why
}

type listed struct {
	text string // as the user wrote it
	ids  []int
}

// list reads the words of a blank's list. It caches the last wordList of each
// blank number, because every record of a file repeats the list.
func (v *vocabulary) list(ctx context.Context, number int, words []string, b tokenize.Blank) (*wordList, error) {
	type key struct {
		number  int
		touches bool
	}
	at := key{number, b.TouchesLeft}
	known, ok := v.lists.Load(at)
	if ok && slices.Equal(known.(*wordList).words, words) {
		return known.(*wordList), nil
	}
	l := &wordList{words: slices.Clone(words)} // the caller may change its own
	for _, word := range words {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		ids, err := v.writable(word, b)
		if err != nil {
			l.left = append(l.left, fmt.Sprintf("%q: %v", word, err))
			continue
		}
		l.fills = append(l.fills, listed{strings.TrimSpace(word), ids})
	}
	v.lists.Store(at, l)
	return l, nil
}

// writable reads a word of the list of blank b as tokens that can fill a blank.
func (v *vocabulary) writable(word string, b tokenize.Blank) ([]int, error) {
	ids, err := v.candidate(word, b)
	if err != nil {
		return nil, err
	}
	if len(ids) > tokenize.MaxPieces {
		return nil, fmt.Errorf("it has %s, and a blank %d at most", phrase.Counted(len(ids), "token"),
			tokenize.MaxPieces)
	}
	for _, id := range ids {
		_, fills := slices.BinarySearch(v.fillable, id)
		if !fills {
			return nil, fmt.Errorf("%s fills no blank", v.tokenizer.Token(id))
		}
	}
	return ids, nil
}

// choices holds the listed words that have one number of pieces, sorted for
// look-ups by their known pieces.
type choices struct {
	forward  [][]int           // the words, ascending
	backward [][]int           // the words, in the order of compareBackward
	written  map[string]string // the user's spelling of each word, by its token ids as text
}

func newChoices(fills []listed) *choices {
	c := &choices{written: map[string]string{}}
	for _, f := range fills {
		c.forward = append(c.forward, f.ids)
		key := fmt.Sprint(f.ids)
		if c.written[key] == "" && !strings.HasPrefix(f.text, "##") {
			c.written[key] = f.text
		}
	}
	slices.SortFunc(c.forward, slices.Compare)
	c.forward = slices.CompactFunc(c.forward, slices.Equal)
	c.backward = slices.SortedFunc(slices.Values(c.forward), compareBackward)
	return c
}

// compareBackward compares words of equal length from their last pieces on.
func compareBackward(a, b []int) int {
	for i := len(a) - 1; i >= 0; i-- {
		if a[i] != b[i] {
			return a[i] - b[i]
		}
	}
	return 0
}

func distinctAt(words [][]int, place int) []int {
	pieces := make([]int, len(words))
	for i, word := range words {
		pieces[i] = word[place]
	}
	slices.Sort(pieces)
	return slices.Compact(pieces)
}

func (c *choices) next(known []int, piece int) iter.Seq[int] {
	return slices.Values(distinctAt(c.fitting(known), piece))
}

func (c *choices) has(known []int) bool {
	_, ok := slices.BinarySearchFunc(c.forward, known, slices.Compare)
	return ok
}

// fitting returns the words that agree with known.
func (c *choices) fitting(known []int) [][]int {
	front := known
	open := slices.Index(known, samplers.Open)
	if open >= 0 {
		front = known[:open]
	}
	// Words with the same first pieces are neighbours in forward.
	words := neighbours(c.forward, func(word []int) int { return slices.Compare(word[:len(front)], front) })
	if open == 0 {
		last := len(known)
		for known[last-1] != samplers.Open {
			last--
		}
		back := known[last:]
		words = neighbours(c.backward, func(word []int) int { return compareBackward(word[last:], back) })
	}
	fitting := make([][]int, 0, len(words))
	for _, word := range words {
		if agree(known, word) {
			fitting = append(fitting, word)
		}
	}
	return fitting
}

// neighbours returns the words, sorted by compare, for which that is 0.
func neighbours[W any](words []W, compare func(word W) int) []W {
	from := sort.Search(len(words), func(i int) bool { return compare(words[i]) >= 0 })
	to := sort.Search(len(words), func(i int) bool { return compare(words[i]) > 0 })
	return words[from:to]
}

func agree(known, word []int) bool {
	for i, token := range known {
		if token != samplers.Open && token != word[i] {
			return false
		}
	}
	return true
}
