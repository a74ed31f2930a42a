package tokenize_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"infill/internal/check"
	"infill/tokenize"
)

// TestJoined: text directly after a blank continues the word in it, the longest
// piece first, and positions, offsets and slots go with it.
func TestJoined(t *testing.T) {
	words := append(vocabulary(), strings.Fields("ing erable ways in ##in ##e ##wa")...)
	tokenizer := check.Must(tokenize.New(words, tokenize.Options{}))(t)
	tests := []struct {
		text, tokens string
		slots        []int
	}{
		{"he [MASK]ing it", "[CLS] he [MASK] ##ing it [SEP]", []int{2}},
		{"he [MASK]ING it", "[CLS] he [MASK] ##ing it [SEP]", []int{2}},
		{"[MASK]erable [MASK]ways [MASK]", "[CLS] [MASK] ##er ##able [MASK] ##way ##s [MASK] [SEP]", []int{1, 4, 7}},
		{"[MASK:2]erable is [MASK:2].", "[CLS] [MASK] [MASK] ##er ##able is [MASK] [MASK] . [SEP]", []int{1, 2, 6, 7}},
		{"ing [MASK] ing", "[CLS] ing [MASK] ing [SEP]", []int{2}},
		{"high[MASK] ing", "[CLS] high [MASK] ing [SEP]", []int{2}},
		{"[MASK]red it", "[CLS] [MASK] red it [SEP]", []int{1}}, // no pieces
		{"[MASK]日 it", "[CLS] [MASK] 日 it [SEP]", []int{1}},     // no word with the blank
		{"[MASK]red[MASK]ing", "[CLS] [MASK] red [MASK] ##ing [SEP]", []int{1, 3}},
	}
	for _, test := range tests {
		typed := check.Must(tokenizer.Template(test.text))(t)
		before := fmt.Sprint(typed)
		joined := typed.Joined()
		if got := tokensOf(tokenizer, joined.IDs); got != test.tokens || !slices.Equal(joined.Slots, test.slots) {
			t.Errorf("%s: %s with slots at %v, want %s and %v", test.text, got, joined.Slots, test.tokens, test.slots)
		}
		if fmt.Sprint(typed) != before {
			t.Errorf("%s: Joined changed the template", test.text)
		}
		if len(joined.Offsets) != len(joined.IDs) {
			t.Fatalf("%s: %d offsets of %d tokens", test.text, len(joined.Offsets), len(joined.IDs))
		}
		for i, id := range joined.IDs[1 : len(joined.IDs)-1] {
			span := joined.Offsets[i+1]
			piece := tokenizer.Piece(id)
			if id != tokenizer.MaskID() && !strings.Contains(strings.ToLower(test.text[span[0]:span[1]]), piece) {
				t.Errorf("%s: %s has the text %q", test.text, tokenizer.Token(id), test.text[span[0]:span[1]])
			}
		}
	}
}

// TestContinuation: the first word of a fill is cut into pieces that continue a
// word; later words are as they are.
func TestContinuation(t *testing.T) {
	words := append(vocabulary(), strings.Fields("ing erable way##able")...)
	tokenizer := check.Must(tokenize.New(words, tokenize.Options{}))(t)
	tests := map[string]string{
		"ing": "##ing", "##ing": "##ing", "way": "##way", "erable": "##er ##able", "way red": "##way red",
		"way way": "##way way", "ferry": "no tokens", "erable ferry": "##er ##able ferry", "dogs": "no token",
		"highway": "no tokens", "wayable": "##way ##able", "way!": "##way !",
	}
	for text, want := range tests {
		ids, err := tokenizer.Continuation(text)
		if strings.HasPrefix(want, "no ") {
			check.Says(t, err, want)
			continue
		}
		check.OK(t, err)
		if got := tokensOf(tokenizer, ids); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestWindow: a window has room tokens around all blanks, as many on the left as
// on the right if there are as many, and begins at a word if one is near.
func TestWindow(t *testing.T) {
	tokenizer := newTokenizer(t, tokenize.Options{})
	words := func(n int) string { return strings.Repeat("the ", n) }
	tests := []struct {
		text     string
		room     int
		from, to int
	}{
		{words(4) + "[MASK] " + words(4), 9, 1, 9},
		{words(4) + "[MASK] " + words(4), 100, 1, 9},
		{words(4) + "[MASK] " + words(4), 8, 2, 9},
		{words(4) + "[MASK] " + words(4), 7, 2, 8},
		{words(4) + "[MASK] " + words(4), 1, 5, 5},
		{words(1) + "[MASK] " + words(8), 7, 1, 7},
		{words(8) + "[MASK] " + words(1), 7, 4, 10},
		{words(4) + "[MASK:3] " + words(4), 5, 4, 8},
		{words(4) + "[MASK] the [MASK] " + words(4), 3, 5, 7},
		// Half of the left part may go so that the window begins at a word.
		{"the unable unable unable [MASK] " + words(8), 9, 4, 12},
		{"the unable unable unable [MASK] " + words(8), 8, 6, 12},
		{"the unbelievable unable [MASK] " + words(8), 9, 5, 11},
		{"the unablewaysyersings [MASK] " + words(8), 9, 7, 15},
	}
	for _, test := range tests {
		template := check.Must(tokenizer.Template(test.text))(t)
		from, to, ok := tokenize.Window(template.Offsets, template.Slots, test.room)
		if !ok || from != test.from || to != test.to {
			t.Errorf("%s: %s in a room of %d: %d to %d, want %d to %d", test.text, tokensOf(tokenizer, template.IDs),
				test.room, from, to, test.from, test.to)
		}
	}
}

// TestWindowApart: blanks that are too far apart for one window are an error
// that says which fit together.
func TestWindowApart(t *testing.T) {
	tokenizer := newTokenizer(t, tokenize.Options{})
	tests := []struct {
		text   string
		room   int
		groups string
	}{
		{"the [MASK] the the [MASK]", 3, "1, then 2; give"},
		{"the [MASK] the [MASK] the [MASK]", 3, "1 to 2, then 3; give"},
		{"the [MASK] the the [MASK] the [MASK] the [MASK]", 5, "1 to 2, then 3 to 4; give"},
		{"the [MASK] the the [MASK] the [MASK:2]", 4, "1 to 2, then 3; give"},
		{"the [MASK] the the [MASK] the [MASK:2]", 3, "1, then 2, then 3; give"},
	}
	for _, test := range tests {
		template := check.Must(tokenizer.Template(test.text))(t)
		_, _, ok := tokenize.Window(template.Offsets, template.Slots, test.room)
		if ok {
			t.Errorf("%s: a window of %d", test.text, test.room)
		}
		check.Says(t, template.Apart(test.room), fmt.Sprintf("sees %d tokens at once", test.room),
			"these fit together: "+test.groups)
	}
}
