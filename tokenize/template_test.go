package tokenize_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/internal/check"
	"infill/tokenize"
)

// vocabulary is small enough to see every token of a test.
func vocabulary() []string {
	return append([]string{"[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}, strings.Fields(`
		the a he she it ferry ferr left had was told asked me and not new york way high un able is see wait
		##y ##s ##way ##able ##believ ##ing ##er . , ! ? " ' ( ) - # ## é c'est red dark blue ß 日 [unused] [unusedx]`)...)
}

func newTokenizer(t testing.TB, o tokenize.Options) *tokenize.Tokenizer {
	t.Helper()
	tokenizer := check.Must(tokenize.New(vocabulary(), o))(t)
	return tokenizer
}

// lookUp gives the ids of tokens that must be in the vocabulary.
func lookUp(t testing.TB, tokenizer *tokenize.Tokenizer, tokens ...string) []int {
	t.Helper()
	ids := make([]int, len(tokens))
	for i, token := range tokens {
		id, ok := tokenizer.ID(token)
		if !ok {
			t.Fatalf("%q is not in the vocabulary", token)
		}
		ids[i] = id
	}
	return ids
}

func tokensOf(tokenizer *tokenize.Tokenizer, ids []int) string {
	tokens := make([]string, len(ids))
	for i, id := range ids {
		tokens[i] = tokenizer.Token(id)
	}
	return strings.Join(tokens, " ")
}

func TestTemplate(t *testing.T) {
	tokenizer := newTokenizer(t, tokenize.Options{})
	tests := []struct {
		text   string
		tokens string
		slots  []int
		blanks []tokenize.Blank
		named  [][]int // the groups of several blanks
	}{
		{
			text: "He had [MASK] me", tokens: "[CLS] he had [MASK] me [SEP]", slots: []int{3},
			blanks: []tokenize.Blank{{Start: 7, End: 13, Slots: 1}},
		},
		{
			text: "high[MASK] [MASK]ing", tokens: "[CLS] high [MASK] [MASK] [UNK] [SEP]", slots: []int{2, 3},
			blanks: []tokenize.Blank{{Start: 4, End: 10, Slots: 1, TouchesLeft: true},
				{Start: 11, End: 17, First: 1, Slots: 1, TouchesRight: true}},
		},
		{
			text: "[MASK][MASK].", tokens: "[CLS] [MASK] [MASK] . [SEP]", slots: []int{1, 2},
			blanks: []tokenize.Blank{{Start: 0, End: 6, Slots: 1}, {Start: 6, End: 12, First: 1, Slots: 1}},
		},
		{
			text: "é[MASK:3]é [MASK]", tokens: "[CLS] [UNK] [MASK] [MASK] [MASK] [UNK] [MASK] [SEP]",
			slots: []int{2, 3, 4, 6},
			blanks: []tokenize.Blank{{Start: 2, End: 10, Slots: 3, Low: 3, High: 3, TouchesLeft: true,
				TouchesRight: true}, {Start: 13, End: 19, First: 3, Slots: 1}},
		},
		{
			text: "[MASK=x] and [MASK] and [MASK=x]", tokens: "[CLS] [MASK] and [MASK] and [MASK] [SEP]",
			slots: []int{1, 3, 5},
			blanks: []tokenize.Blank{{End: 8, Name: "x", Slots: 1}, {Start: 13, End: 19, First: 1, Slots: 1},
				{Start: 24, End: 32, Name: "x", First: 2, Slots: 1}},
			named: [][]int{{0, 2}},
		},
		{
			text: "[MASK:2=a] [MASK=b] is [MASK=b] [MASK:2=a] [MASK=c]", tokens: "[CLS] [MASK] [MASK] [MASK] is " +
				"[MASK] [MASK] [MASK] [MASK] [SEP]", slots: []int{1, 2, 3, 5, 6, 7, 8},
			blanks: []tokenize.Blank{
				{End: 10, Name: "a", Slots: 2, Low: 2, High: 2}, {Start: 11, End: 19, Name: "b", First: 2, Slots: 1},
				{Start: 23, End: 31, Name: "b", First: 3, Slots: 1},
				{Start: 32, End: 42, Name: "a", First: 4, Slots: 2, Low: 2, High: 2},
				{Start: 43, End: 51, Name: "c", First: 6, Slots: 1},
			},
			named: [][]int{{0, 3}, {1, 2}},
		},
		{
			text: "[UNK] [MASK] [mask] [MASKED", tokens: "[CLS] [UNK] [MASK] [UNK] [UNK] [UNK] [UNK] [UNK] [SEP]",
			slots:  []int{2},
			blanks: []tokenize.Blank{{Start: 6, End: 12, Slots: 1}},
		},
		{
			text: "the\t[MASK]\r\nleft\n", tokens: "[CLS] the [MASK] left [SEP]", slots: []int{2},
			blanks: []tokenize.Blank{{Start: 4, End: 10, Slots: 1}},
		},
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			template := check.Must(tokenizer.Template(test.text))(t)
			if got := tokensOf(tokenizer, template.IDs); got != test.tokens {
				t.Errorf("tokens %s, want %s", got, test.tokens)
			}
			if len(template.Offsets) != len(template.IDs) {
				t.Errorf("%d offsets for %d ids", len(template.Offsets), len(template.IDs))
			}
			if diff := cmp.Diff(test.slots, template.Slots); diff != "" {
				t.Errorf("slots (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.blanks, template.Blanks, cmp.AllowUnexported(tokenize.Blank{})); diff != "" {
				t.Errorf("blanks (-want +got):\n%s", diff)
			}
			var named [][]int
			for _, group := range template.Groups {
				if len(group) > 1 {
					named = append(named, group)
				}
			}
			if diff := cmp.Diff(test.named, named); diff != "" {
				t.Errorf("groups of several blanks (-want +got):\n%s", diff)
			}
			all := slices.Sorted(slices.Values(slices.Concat(template.Groups...)))
			for i := range template.Blanks {
				if len(all) != len(template.Blanks) || all[i] != i {
					t.Fatalf("groups %v, want each of %d blanks once", template.Groups, len(template.Blanks))
				}
			}
			for _, blank := range template.Blanks {
				for _, slot := range template.Slots[blank.First : blank.First+blank.Slots] {
					if got, want := template.Offsets[slot], [2]int{blank.Start, blank.End}; got != want {
						t.Errorf("slot at %d has offset %v, want that of its blank, %v", slot, got, want)
					}
				}
			}
			if template.Text != test.text {
				t.Errorf("text %q", template.Text)
			}
		})
	}
}

// expand reads a text in every combination of lengths.
func expand(tokenizer *tokenize.Tokenizer, text string) ([]*tokenize.Template, error) {
	template, err := tokenizer.Shortest(text, "")
	if err != nil {
		return nil, err
	}
	return template.Expand(nil)
}

func TestExpand(t *testing.T) {
	tokenizer := newTokenizer(t, tokenize.Options{})
	tests := []struct {
		text string
		want []string // "lengths of the blanks: tokens"
	}{
		{"the [MASK]", []string{"1: [CLS] the [MASK] [SEP]"}},
		{"the [MASK:2-3] left",
			[]string{"2: [CLS] the [MASK] [MASK] left [SEP]", "3: [CLS] the [MASK] [MASK] [MASK] left [SEP]"}},
		{"[MASK:1-2] is [MASK:1-2]", []string{
			"1 1: [CLS] [MASK] is [MASK] [SEP]", "1 2: [CLS] [MASK] is [MASK] [MASK] [SEP]",
			"2 1: [CLS] [MASK] [MASK] is [MASK] [SEP]", "2 2: [CLS] [MASK] [MASK] is [MASK] [MASK] [SEP]",
		}},
		{"[MASK:1-2=x] is [MASK:1-2=x]",
			[]string{"1 1: [CLS] [MASK] is [MASK] [SEP]", "2 2: [CLS] [MASK] [MASK] is [MASK] [MASK] [SEP]"}},
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			templates := check.Must(expand(tokenizer, test.text))(t)
			var got []string
			for _, template := range templates {
				var lengths []string
				for _, blank := range template.Blanks {
					lengths = append(lengths, fmt.Sprint(blank.Slots))
				}
				got = append(got, strings.Join(lengths, " ")+": "+tokensOf(tokenizer, template.IDs))
				if template.Text != test.text {
					t.Errorf("text %q", template.Text)
				}
				for _, slot := range template.Slots {
					if template.IDs[slot] != tokenizer.MaskID() {
						t.Errorf("slot at %d holds id %d", slot, template.IDs[slot])
					}
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestExpandGiven: lengths that are given take the place of those that were typed.
func TestExpandGiven(t *testing.T) {
	tokenizer := newTokenizer(t, tokenize.Options{})
	template := check.Must(tokenizer.Shortest("the [MASK=x] or [MASK:2-3] or [MASK=x]", ""))(t)
	var typed [][2]int
	for _, b := range template.Blanks {
		typed = append(typed, [2]int{b.Low, b.High})
	}
	if fmt.Sprint(typed) != "[[0 0] [2 3] [0 0]]" {
		t.Errorf("lengths as typed: %v", typed)
	}
	templates := check.Must(template.Expand([][]int{{1, 2}, {3}, {9}}))(t)
	var got []string
	for _, tpl := range templates {
		got = append(got, fmt.Sprint(tpl.Blanks[0].Slots, tpl.Blanks[1].Slots, tpl.Blanks[2].Slots, tpl.Groups))
	}
	if diff := cmp.Diff([]string{"1 3 1 [[0 2] [1]]", "2 3 2 [[0 2] [1]]"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTemplateErrors(t *testing.T) {
	tokenizer := newTokenizer(t, tokenize.Options{})
	tests := []struct {
		name   string
		text   string
		fault  tokenize.Fault
		offset int
		says   string // part of the message
	}{
		{"no slot", "he had told me", tokenize.ErrNoBlank, -1, "write [MASK]"},
		{"lower-case slot", "he had [mask] me", tokenize.ErrNoBlank, -1, `"[mask]" at byte offset 7`},
		{"other case", "é [Mask:2]", tokenize.ErrNoBlank, -1, `"[Mask:" at byte offset 3`},
		{"letters the wrong way round", "he had [MSAK] me", tokenize.ErrNoBlank, -1, `"[MSAK]" at byte offset 7`},
		{"another word", "he had [BLANK] me", tokenize.ErrNoBlank, -1, `"[BLANK]" at byte offset 7`},
		{"only a slot", "[MASK]", tokenize.ErrOnlyBlanks, -1, "add at least one word"},
		{"only slots", " [MASK:2] [MASK]\u200b ", tokenize.ErrOnlyBlanks, -1, ""},
		{"empty", "", tokenize.ErrEmpty, -1, ""},
		{"blank", " \t\n\u00a0\u3000", tokenize.ErrEmpty, -1, ""},
		{"invalid byte", "é [MASK] \xff", tokenize.ErrInvalidUTF8, 10, "0xff"},
		{"cut character", "a [MASK] \xe4\xb8", tokenize.ErrInvalidUTF8, 9, "0xe4"},
		{"surrogate", "a [MASK] \xed\xa0\x80", tokenize.ErrInvalidUTF8, 9, ""},
		{"escape", "a [MASK] \x1b[31m", tokenize.ErrControl, 9, "U+001B"},
		{"nul", "\x00a [MASK]", tokenize.ErrControl, 0, "U+0000"},
		{"delete", "a\x7f [MASK]", tokenize.ErrControl, 1, "U+007F"},
		{"next line", "a\u0085 [MASK]", tokenize.ErrControl, 1, "U+0085"},
		{"vertical tab", "a\v[MASK]", tokenize.ErrControl, 1, "U+000B"},
		{"separator", "a [MASK] [SEP] b", tokenize.ErrSpecialToken, 9, "[SEP]"},
		{"first of several", "[PAD] [MASK] [CLS]", tokenize.ErrSpecialToken, 0, "[PAD]"},
		{"first of several, other order", "[CLS] [MASK] [PAD]", tokenize.ErrSpecialToken, 0, "[CLS]"},
		{"classifier", "a[CLS][MASK]", tokenize.ErrSpecialToken, 1, "[CLS]"},
		{"too long", strings.Repeat("the ferry ", 110_000) + "[MASK]", tokenize.ErrTooLong, -1, "1100006 bytes"},
		{"one long word", strings.Repeat("x", 1<<20+1), tokenize.ErrTooLong, -1, ""},
		{"zero pieces", "a [MASK:0]", tokenize.ErrBlankSyntax, 2, `"[MASK:0]"`},
		{"too many pieces", "a [MASK:17]", tokenize.ErrBlankSyntax, 2, "1 to 16"},
		{"no number", "a [MASK:]", tokenize.ErrBlankSyntax, 2, ""},
		{"signed number", "a [MASK:+3]", tokenize.ErrBlankSyntax, 2, ""},
		{"letters", "a [MASK:many]", tokenize.ErrBlankSyntax, 2, "[MASK:3]"},
		{"backwards", "a [MASK:3-1]", tokenize.ErrBlankSyntax, 2, "backwards"},
		{"half a range", "a [MASK:3-]", tokenize.ErrBlankSyntax, 2, ""},
		{"no name", "a [MASK=]", tokenize.ErrBlankSyntax, 2, "name"},
		{"bad name", "a [MASK=x y]", tokenize.ErrBlankSyntax, 2, "name"},
		{"long name", "a [MASK=" + strings.Repeat("x", 33) + "]", tokenize.ErrBlankSyntax, 2, "name"},
		{"name before length", "a [MASK=x:2]", tokenize.ErrBlankSyntax, 2, ""},
		{"not closed", "a [MASK:3", tokenize.ErrBlankSyntax, 2, "closing ]"},
		{"second is bad", "a [MASK] [MASK:x]", tokenize.ErrBlankSyntax, 9, ""},
		{"names of two lengths", "[MASK:2=x] and [MASK=x]", tokenize.ErrBlankSyntax, 15, "[MASK:2=x] at byte offset 0"},
		{"unknown length", "a [MASK:1-3]", tokenize.ErrBlankLength, 2, "[MASK:1-3]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			template, err := tokenizer.Template(test.text)
			checkInputError(t, err, test.fault, test.offset, test.says)
			if template != nil {
				t.Error("a template beside the error")
			}
			if test.fault != tokenize.ErrBlankLength {
				_, err = expand(tokenizer, test.text)
				checkInputError(t, err, test.fault, test.offset, test.says)
			}
		})
	}
	t.Run("too many lengths", func(t *testing.T) {
		_, err := expand(tokenizer, "[MASK:1-8] is [MASK:1-8] is [MASK:1-2]")
		checkInputError(t, err, tokenize.ErrTooManyLengths, 28, "64")
	})
}

// checkInputError checks the kind, the place and the form of an error: one
// line, that says what it should.
func checkInputError(t *testing.T, err error, fault tokenize.Fault, offset int, says string) {
	t.Helper()
	if !errors.Is(err, fault) {
		t.Fatalf("error %v, want %q", err, fault)
	}
	var inputErr *tokenize.InputError
	if !errors.As(err, &inputErr) {
		t.Fatalf("error is a %T", err)
	}
	if inputErr.Offset != offset {
		t.Errorf("offset %d, want %d", inputErr.Offset, offset)
	}
	message := err.Error()
	if !strings.HasPrefix(message, string(fault)) || !strings.Contains(message, says) {
		t.Errorf("message %q, want it to start with %q and to hold %q", message, fault, says)
	}
	if strings.ContainsAny(message, "\n\r\t\x1b") || len(message) > 300 {
		t.Errorf("message %q is not one short line", message)
	}
	if offset >= 0 && !strings.Contains(message, fmt.Sprintf("at byte offset %d", offset)) {
		t.Errorf("message %q does not name byte offset %d", message, offset)
	}
}

func TestPlain(t *testing.T) {
	tokenizer := newTokenizer(t, tokenize.Options{})
	encoding := check.Must(tokenizer.Plain("The unbelievable Ferrys (日 [UNK]) left."))(t)
	want := &tokenize.Encoding{
		IDs: lookUp(t, tokenizer, "[CLS]", "the", "un", "##believ", "##able", "ferry", "##s", "(", "日", "[UNK]",
			")", "left", ".", "[SEP]"),
		Tokens: []string{"[CLS]", "the", "un", "##believ", "##able", "ferry", "##s", "(", "日", "[UNK]", ")", "left",
			".", "[SEP]"},
		Offsets: [][2]int{{0, 0}, {0, 3}, {4, 6}, {6, 12}, {12, 16}, {17, 22}, {22, 23}, {24, 25}, {25, 28}, {29, 34},
			{34, 35}, {36, 40}, {40, 41}, {0, 0}},
		Words: []int{-1, 0, 1, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, -1},
	}
	if diff := cmp.Diff(want, encoding); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	tests := []struct {
		text   string
		fault  tokenize.Fault
		offset int
	}{
		{"", tokenize.ErrEmpty, -1},
		{"\u200b\u00ad", tokenize.ErrEmpty, -1},
		{"he had [MASK] me", tokenize.ErrUnwantedBlank, 7},
		{"[MASK:3] left", tokenize.ErrUnwantedBlank, 0},
		{"[MASK:x] left", tokenize.ErrBlankSyntax, 0},
		{"he\x1b", tokenize.ErrControl, 2},
		{"he \xff", tokenize.ErrInvalidUTF8, 3},
		{"he [SEP]", tokenize.ErrSpecialToken, 3},
		{strings.Repeat("a ", tokenize.MaxText/2) + "a", tokenize.ErrTooLong, -1},
	}
	for _, test := range tests {
		_, err := tokenizer.Plain(test.text)
		checkInputError(t, err, test.fault, test.offset, "")
	}
	if _, err := tokenizer.Plain(strings.Repeat("a ", tokenize.MaxText/2)); err != nil {
		t.Errorf("a text of just MaxText bytes: %v", err)
	}
}

func TestCandidate(t *testing.T) {
	tokenizer := newTokenizer(t, tokenize.Options{})
	for text, want := range map[string]string{
		"red": "red", "Dark  Blue": "dark blue", "unbelievable": "un ##believ ##able", "##ing": "##ing", "###": "# # #",
		"##": "# #",
	} {
		ids, err := tokenizer.Candidate(text)
		if got := tokensOf(tokenizer, ids); err != nil || got != want {
			t.Errorf("Candidate(%q) = %s, %v; want %s", text, got, err, want)
		}
	}
	tests := []struct {
		text   string
		fault  tokenize.Fault
		offset int
	}{
		{"", tokenize.ErrEmpty, -1},
		{"dark zebra", tokenize.ErrUnknownWord, 5},
		{"[UNK]", tokenize.ErrUnknownWord, 0},
		{"a [MASK]", tokenize.ErrUnwantedBlank, 2},
		{strings.Repeat("zebra", 20) + "\u200d" + strings.Repeat("é", 20), tokenize.ErrUnknownWord, 0},
	}
	for _, test := range tests {
		_, err := tokenizer.Candidate(test.text)
		checkInputError(t, err, test.fault, test.offset, "")
	}
	// The space that a token holds is not the user's, and moves no offset.
	_, err := loadFamily(t, "roberta", "").Candidate("a\x01")
	checkInputError(t, err, tokenize.ErrControl, 1, "")
}

func TestFillable(t *testing.T) {
	// The last two would clear a terminal.
	tokenizer := check.Must(tokenize.New(append(vocabulary(), "\x1b[2J", "a\u009b2J"), tokenize.Options{}))(t)
	fillable := tokenizer.Fillable()
	if !slices.IsSorted(fillable) {
		t.Error("not ascending")
	}
	want := len(vocabulary()) - 6 // five special tokens and [unused0]; [unused] and [unusedx] are ordinary
	if len(fillable) != want {
		t.Errorf("%d ids, want %d", len(fillable), want)
	}
	for _, token := range []string{"[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"} {
		if slices.Contains(fillable, lookUp(t, tokenizer, token)[0]) {
			t.Errorf("%s is fillable", token)
		}
	}
	fillable[0] = -1
	if tokenizer.Fillable()[0] == -1 {
		t.Error("callers share one slice")
	}
	// The built-in vocabulary: 30,522 less five special and 99 unused tokens.
	if got := len(loadBuiltin(t).Fillable()); got != 30522-5-99 {
		t.Errorf("built-in model: %d ids", got)
	}
}

// TestBlankSpans: what is coloured while a text is written is what will be
// read as a blank.
func TestBlankSpans(t *testing.T) {
	for text, want := range map[string][]string{
		`they [MASK~st..d] up`:                           {"[MASK~st..d]"},
		`a [MASK~[[:alpha:]]ave] .`:                      {"[MASK~[[:alpha:]]ave]"},
		`a [MASK~[^[:space:]]] [MASK~[a-z[:^digit:]]] .`: {"[MASK~[^[:space:]]]", "[MASK~[a-z[:^digit:]]]"},
		`a [MASK~[[:alpha:]] .`:                          nil,
		`a [MASK~[[:]] .`:                                {"[MASK~[[:]]"},
		`a [MASK~[^\]a b]+] [MASK:1-3=who] .`:            {`[MASK~[^\]a b]+]`, "[MASK:1-3=who]"},
		`\[MASK] and [MASK] [MASKED] [mask]`:             {"[MASK]"},
		`wrong [MASK:x] is one`:                          {"[MASK:x]"},
		`[MASK] and [MASK:`:                              {"[MASK]"},
		`[MASK`:                                          nil,
	} {
		var got []string
		for _, span := range tokenize.BlankSpans(text, "") {
			got = append(got, text[span[0]:span[1]])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

// TestSpellings reads what people write for a blank, by every tokenizer; a
// backslash makes it text.
func TestSpellings(t *testing.T) {
	tokenizer := loadBuiltin(t)
	want := check.Must(tokenizer.Template("a [MASK] day"))(t)
	for text, further := range map[string]string{"a ___ day": "", "a _______ day": "", "a <mask> day": "",
		"a {} day": "{}",
		"a __ day": "__", "a [blank] day": "[blank]"} {
		got, err := tokenizer.Shortest(text, further)
		if err != nil || !slices.Equal(got.IDs, want.IDs) || !slices.Equal(got.Slots, want.Slots) || got.Text != text {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"a __ day", "a \\___ day", "a \\<mask> day", "a \\[MASK] day", "a {} day"} {
		if _, err := tokenizer.Template(text); !errors.Is(err, tokenize.ErrNoBlank) {
			t.Errorf("%q: %v", text, err)
		}
	}
	got, err := tokenizer.Template("\\___ and \\<mask> and \\[MASK:2] are ___ here")
	if err != nil || len(got.Blanks) != 1 {
		t.Fatal(got, err)
	}
	if text := got.Fill([]int{want.IDs[len(want.IDs)-2]}).Text; text != "___ and <mask> and [MASK:2] are day here" {
		t.Error(text)
	}
	// Of backslashes before a blank each pair is one, and an odd one makes text.
	for typed, text := range map[string]string{
		`is \\[MASK] here`:                  `is \day here`,
		`a \\\\[MASK] is`:                   `a \\day is`,
		`\\___ is`:                          `\day is`,
		`a \\\\<mask> is`:                   `a \\day is`,
		`\[SEP] and [CLS\] of \\\[PAD] ___`: `[SEP] and [CLS\] of \[PAD] day`,
		`a \ b \\ c ___`:                    `a \ b \\ c day`,
	} {
		got, err := tokenizer.Template(typed)
		if err != nil || len(got.Blanks) != 1 {
			t.Errorf("%s: %+v, %v", typed, got, err)
			continue
		}
		if filled := got.Fill([]int{want.IDs[len(want.IDs)-2]}).Text; filled != text {
			t.Errorf("%s: %s, want %s", typed, filled, text)
		}
	}
	sep, err := tokenizer.Plain(`a \[SEP] day`)
	if err != nil || !slices.Equal(sep.Tokens[1:len(sep.Tokens)-1], []string{"a", "[", "sep", "]", "day"}) {
		t.Errorf("%+v, %v", sep, err)
	}
	for _, family := range familyNames {
		template, err := loadFamily(t, family, "").Template("a ___ and <mask> sat")
		if err != nil || len(template.Blanks) != 2 {
			t.Errorf("%s: %v, %v", family, template, err)
		}
	}
}
