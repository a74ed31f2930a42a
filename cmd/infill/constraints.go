package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"infill/infill"
)

// addConstraints defines the flags that narrow what blanks may take.
func addConstraints(cmd *cobra.Command, c *infill.Constraints) {
	flags := cmd.Flags()
	flags.Var(slotList{c}, "slot", "what blank N, counted from 1, may take; once for each blank, see infill help templates")
	flags.Var(words{&c.Ban}, "ban", "words that no blank may hold")
	flags.BoolVar(&c.WholeWords, "whole-words", false, "no blank begins with a piece that continues the word on its left")
	flags.Var(bounds{&c.MinCharacters, &c.MaxCharacters, true}, "characters", "bounds on the characters of a fill: 3-8, 3-, -8 or 3")
	flags.Var(bounds{&c.MinPieces, &c.MaxPieces, false}, "pieces", "number of pieces of every blank without a length of its own: 2 or 1-3; bounds --slot as well")
}

// constrained tells whether any constraint is given.
func constrained(c *infill.Constraints) bool {
	return len(c.Slots) > 0 || len(c.Ban) > 0 || c.WholeWords || c.MinCharacters > 0 || c.MaxCharacters > 0 || c.MinPieces > 0 || c.MaxPieces > 0
}

// splitWords cuts a list at commas; an empty word is none.
func splitWords(text string) ([]string, bool) {
	list := strings.Split(text, ",")
	for i, word := range list {
		if list[i] = strings.TrimSpace(word); list[i] == "" {
			return nil, false
		}
	}
	return list, true
}

// slotList is the lists of words by blank.
type slotList struct{ constraints *infill.Constraints }

var _ pflag.Value = slotList{}

func (s slotList) Set(text string) error {
	number, list, found := strings.Cut(text, "=")
	n, err := strconv.Atoi(strings.TrimSpace(number))
	fills, ok := splitWords(list)
	switch {
	case !found || err != nil || n < 1 || !ok:
		return errors.New("a blank's number and the words it may take, as in 1=red,dark blue")
	case s.constraints.Slots[n] != nil:
		return fmt.Errorf("the only list for blank %d: give all its words at once", n)
	case s.constraints.Slots == nil:
		s.constraints.Slots = map[int][]string{}
	}
	s.constraints.Slots[n] = fills
	return nil
}

func (s slotList) String() string {
	if s.constraints == nil {
		return ""
	}
	var lists []string
	for _, n := range slices.Sorted(maps.Keys(s.constraints.Slots)) {
		lists = append(lists, strconv.Itoa(n)+"="+strings.Join(s.constraints.Slots[n], ","))
	}
	return strings.Join(lists, " ")
}

func (s slotList) Type() string { return "N=WORD,..." }

// words is a list that grows with each use of its flag.
type words struct{ value *[]string }

var _ pflag.Value = words{}

func (w words) Set(text string) error {
	list, ok := splitWords(text)
	if !ok {
		return errors.New("a list of words, as in red,blue")
	}
	*w.value = append(*w.value, list...)
	return nil
}

func (w words) String() string {
	if w.value == nil {
		return ""
	}
	return strings.Join(*w.value, ",")
}

func (w words) Type() string { return "WORD,..." }

// bounds is a range of whole numbers of 1 or more, both ends in it. An open one
// may lack an end, which is then 0.
type bounds struct {
	low, high *int
	open      bool
}

var _ pflag.Value = bounds{}

func (b bounds) Set(text string) error {
	first, last, ranged := strings.Cut(text, "-")
	if !ranged {
		last = first
	}
	low, lowOK := b.end(first)
	high, highOK := b.end(last)
	if !lowOK || !highOK || low == 0 && high == 0 {
		if b.open {
			return errors.New("a number or a range of 1 or more, as in 3, 3-8, 3- or -8")
		}
		return errors.New("a number or a range of 1 or more, as in 2 or 1-3")
	}
	*b.low, *b.high = low, high
	return nil
}

func (b bounds) end(text string) (n int, ok bool) {
	if text == "" {
		return 0, b.open
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 1
}

func (b bounds) String() string {
	if b.low == nil || *b.low == 0 && *b.high == 0 {
		return ""
	}
	end := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	return end(*b.low) + "-" + end(*b.high)
}

func (b bounds) Type() string { return "MIN-MAX" }

// initial is where chains start: one of infill.Initials(), or a fill.
type initial struct{ value *string }

var _ pflag.Value = initial{}

// givenFill is the form of the fill in usage and errors.
const givenFill = infill.InitialFill + "WORD,..."

func (s initial) Set(text string) error {
	if !slices.Contains(infill.Initials(), text) && !strings.HasPrefix(text, infill.InitialFill) {
		return fmt.Errorf("one of %s, %s", strings.Join(infill.Initials(), ", "), givenFill)
	}
	*s.value = text
	return nil
}

func (s initial) String() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

func (s initial) Type() string { return "NAME" }
