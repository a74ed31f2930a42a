package tokenize

import (
	"fmt"
	"strings"
)

// Window chooses the tokens that a model sees of a text, from position from to
// position to of IDs, without [CLS] and [SEP]. room is the largest number of
// such tokens. A longer text keeps the tokens around its blanks, about as many
// on the left as on the right. The window starts at the beginning of a word if
// one is near. If the blanks themselves are too far apart, the *InputError says
// which of them fit together.
func (tpl *Template) Window(room int) (from, to int, err error) {
	last := len(tpl.IDs) - 2 // the last token before [SEP]
	if last <= room {
		return 1, last, nil
	}
	first := tpl.Slots[0]
	end := tpl.Slots[len(tpl.Slots)-1]
	spare := room - (end - first + 1)
	if spare < 0 {
		return 0, 0, tpl.apart(room)
	}
	left := min(first-1, spare/2)
	right := min(last-end, spare-left)
	left = min(first-1, spare-right)
	from = first - left
	for p := from; p <= first-left/2; p++ {
		if p == 1 || tpl.spaced(p) {
			return p, end + right, nil
		}
	}
	return from, end + right, nil
}

// spaced reports whether white space stands before the token at a position.
func (tpl *Template) spaced(position int) bool {
	return tpl.Offsets[position-1][1] < tpl.Offsets[position][0]
}

// apart returns an error that lists the groups of blanks that fit together into
// a window of room tokens.
func (tpl *Template) apart(room int) error {
	var groups []string
	start := 0
	for i := range tpl.Blanks {
		if i+1 < len(tpl.Blanks) && tpl.span(start, i+1) <= room {
			continue
		}
		group := fmt.Sprint(start + 1)
		if i > start {
			group = fmt.Sprintf("%d to %d", start+1, i+1)
		}
		groups = append(groups, group)
		start = i + 1
	}
	return inputFault(ErrTooLong, -1, "the model sees %d tokens at once, and the blanks are further apart; "+
		"these fit together: %s; give each group its part of the text", room, strings.Join(groups, ", then "))
}

// span returns the number of tokens from the start of one blank to the end of
// another.
func (tpl *Template) span(first, last int) int {
	b := tpl.Blanks[last]
	return tpl.Slots[b.First+b.Slots-1] - tpl.Slots[tpl.Blanks[first].First] + 1
}
