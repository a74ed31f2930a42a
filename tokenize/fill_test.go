package tokenize_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/internal/check"
	"infill/tokenize"
)

func TestFill(t *testing.T) {
	tests := []struct {
		name  string
		text  string
		ids   []string
		want  string
		fills []string // nil: the tokens as they stand
	}{
		{name: "plain", text: "he had [MASK] me", ids: []string{"told"}, want: "he had told me"},
		{name: "user's text untouched", text: " \tÉCOLE  İ, [MASK]\nß e\u0301\u200b ", ids: []string{"told"},
			want: " \tÉCOLE  İ, told\nß e\u0301\u200b "},
		{name: "piece drops the blank", text: "the ferr [MASK] left", ids: []string{"##y"}, want: "the ferry left",
			fills: []string{"y"}},
		{name: "piece drops all blanks", text: "the ferr \t\u00a0[MASK]", ids: []string{"##y"}, want: "the ferry",
			fills: []string{"y"}},
		{name: "piece after punctuation", text: "ferry ( [MASK])", ids: []string{"##s"}, want: "ferry (s)",
			fills: []string{"s"}},
		{name: "piece with nothing on its left", text: "  [MASK] left", ids: []string{"##y"}, want: "  y left",
			fills: []string{"y"}},
		{name: "text on the left", text: "a high[MASK]", ids: []string{"way"}, want: "a highway"},
		{name: "text on the left, piece", text: "a high[MASK]", ids: []string{"##way"}, want: "a highway",
			fills: []string{"way"}},
		{name: "text on the right", text: "[MASK]ing it", ids: []string{"see"}, want: "seeing it"},
		{name: "bare ## is text", text: "a [MASK]", ids: []string{"##"}, want: "a ##"},
		{name: "touching", text: "[MASK][MASK] is", ids: []string{"new", "york"}, want: "new york is"},
		{name: "touching, piece", text: "[MASK][MASK] is", ids: []string{"un", "##able"}, want: "unable is",
			fills: []string{"un", "able"}},
		{name: "touching, full stop", text: "it [MASK][MASK]", ids: []string{"left", "."}, want: "it left."},
		{name: "blank between", text: "[MASK] [MASK] is", ids: []string{"new", "york"}, want: "new york is"},
		{name: "blank between, piece", text: "[MASK] [MASK] is", ids: []string{"un", "##able"}, want: "unable is",
			fills: []string{"un", "able"}},
		{name: "blank between, full stop", text: "it [MASK] [MASK]", ids: []string{"left", "."}, want: "it left ."},
		{name: "one blank of three pieces", text: "it is [MASK:3].", ids: []string{"un", "##believ", "##able"},
			want: "it is unbelievable.", fills: []string{"unbelievable"}},
		{name: "one blank of three words", text: "it is [MASK:3].", ids: []string{"not", "new", "york"},
			want: "it is not new york.", fills: []string{"not new york"}},
		{name: "one blank that ends a sentence", text: "it [MASK:2]", ids: []string{"left", "!"}, want: "it left!",
			fills: []string{"left!"}},
		{name: "one blank of pieces, glued", text: "un [MASK:2] it", ids: []string{"##believ", "##able"},
			want: "unbelievable it", fills: []string{"believable"}},
		{name: "named", text: "[MASK=x] and [MASK=x]", ids: []string{"red", "red"}, want: "red and red"},

		{name: "start of the text", text: "[MASK] told Me", ids: []string{"he"}, want: "He told Me",
			fills: []string{"He"}},
		{name: "start of an uncased text", text: "[MASK] told me", ids: []string{"he"}, want: "he told me"},
		{name: "capitals of a slot and of [UNK] do not count", text: "[MASK=X] told [UNK]", ids: []string{"he"},
			want: "he told [UNK]"},
		{name: "inside a sentence", text: "She had [MASK] me", ids: []string{"told"}, want: "She had told me"},
		{name: "second sentence", text: "It left. [MASK] told me", ids: []string{"he"}, want: "It left. He told me",
			fills: []string{"He"}},
		{name: "capital in a later sentence only", text: "it left. [MASK] told me. She left", ids: []string{"he"},
			want: "it left. He told me. She left", fills: []string{"He"}},
		{name: "set apart as in a corpus", text: "It left . \" [MASK] told me", ids: []string{"he"},
			want: "It left . \" He told me", fills: []string{"He"}},
		{name: "question, quotation mark", text: "\"Is it?\" [MASK] asked", ids: []string{"she"},
			want: "\"Is it?\" She asked", fills: []string{"She"}},
		{name: "opening quotation mark", text: "“[MASK] left,” She told me", ids: []string{"he"},
			want: "“He left,” She told me", fills: []string{"He"}},
		{name: "brackets", text: "(It left.) ([MASK] told me)", ids: []string{"he"}, want: "(It left.) (He told me)",
			fills: []string{"He"}},
		{name: "ellipsis", text: "Wait... [MASK] left", ids: []string{"he"}, want: "Wait... he left"},
		{name: "abbreviation", text: "She left at 3 a.m. [MASK] told me", ids: []string{"and"},
			want: "She left at 3 a.m. and told me"},
		{name: "no blank after the full stop", text: "See example.[MASK]", ids: []string{"he"}, want: "See example.he"},
		{name: "comma", text: "Wait, [MASK] left", ids: []string{"he"}, want: "Wait, he left"},
		{name: "after a filled full stop", text: "It left [MASK] [MASK] told me", ids: []string{".", "he"},
			want: "It left . He told me", fills: []string{".", "He"}},
		{name: "after a filled comma", text: "It left [MASK] [MASK] told me", ids: []string{",", "he"},
			want: "It left , he told me"},
		{name: "after a filled quotation mark", text: "[MASK] [MASK] left, She told me", ids: []string{"\"", "he"},
			want: "\" He left, She told me", fills: []string{"\"", "He"}},
		{name: "piece at a start", text: "It left. [MASK] told me", ids: []string{"##s"}, want: "It left.s told me",
			fills: []string{"s"}},
		{name: "piece at the very start", text: " [MASK] Left", ids: []string{"##y"}, want: " y Left",
			fills: []string{"y"}},
		{name: "letter without a capital", text: "[MASK] Left", ids: []string{"日"}, want: "日 Left"},
		{name: "several words at a start", text: "[MASK:2] is a way. It is not", ids: []string{"new", "york"},
			want: "New York is a way. It is not", fills: []string{"New York"}},
		{name: "a name inside", text: "It is [MASK] way", ids: []string{"york"}, want: "It is York way",
			fills: []string{"York"}},
		{name: "a name in a text without capitals", text: "it is [MASK] way", ids: []string{"york"},
			want: "it is york way"},
		{name: "no name where letters follow", text: "It is [MASK]ing", ids: []string{"york"}, want: "It is yorking"},
		{name: "among capitals", text: "IT IS [MASK], TOLD", ids: []string{"york"}, want: "IT IS YORK, TOLD",
			fills: []string{"YORK"}},
		{name: "a piece among capitals", text: "IT [MASK] TOLD", ids: []string{"##ing"}, want: "ITING TOLD",
			fills: []string{"ING"}},
		{name: "one word in capitals", text: "the USA [MASK]", ids: []string{"way"}, want: "the USA way"},
		{name: "letters in capitals", text: "I [MASK] A", ids: []string{"told"}, want: "I told A"},

		{name: "special tokens", text: "a [MASK] b [MASK]", ids: []string{"[MASK]", "[UNK]"}, want: "a [MASK] b [UNK]"},
	}
	tokenizer := newTokenizer(t, tokenize.Options{})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			template := check.Must(tokenizer.Template(test.text))(t)
			filled := template.Fill(lookUp(t, tokenizer, test.ids...))
			if filled.Text != test.want {
				t.Errorf("text %q, want %q", filled.Text, test.want)
			}
			fills := test.fills
			if fills == nil {
				fills = test.ids
			}
			if diff := cmp.Diff(fills, filled.Fills); diff != "" {
				t.Errorf("fills (-want +got):\n%s", diff)
			}
			for i, span := range filled.Spans {
				if got := filled.Text[span[0]:span[1]]; got != filled.Fills[i] {
					t.Errorf("span %v holds %q, want the fill %q", span, got, filled.Fills[i])
				}
			}
		})
	}
}

// A cased model writes its own capitals.
func TestFillCasedModel(t *testing.T) {
	tokenizer := newTokenizer(t, tokenize.Options{Cased: true})
	template := check.Must(tokenizer.Template("[MASK] left. It is red"))(t)
	if got, want := template.Fill(lookUp(t, tokenizer, "he")).Text, "he left. It is red"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Ids that do not fit the template give a text all the same.
func TestFillWrongIDs(t *testing.T) {
	tokenizer := newTokenizer(t, tokenize.Options{})
	template := check.Must(tokenizer.Template("It left. [MASK][MASK:2], [MASK] left"))(t)
	he := lookUp(t, tokenizer, "he")[0]
	tests := []struct {
		name string
		ids  []int
		want tokenize.Filled
	}{
		{"none", nil, tokenize.Filled{Text: "It left. [MASK][MASK:2], [MASK] left",
			Fills: []string{"[MASK]", "[MASK:2]", "[MASK]"}, Spans: [][2]int{{9, 15}, {15, 23}, {25, 31}}}},
		{"half a blank", []int{he, he},
			tokenize.Filled{Text: "It left. He he [MASK], [MASK] left", Fills: []string{"He", "he [MASK]", "[MASK]"},
				Spans: [][2]int{{9, 11}, {12, 21}, {23, 29}}}},
		{"the last blank", []int{-1, -1, -1, he},
			tokenize.Filled{Text: "It left. [MASK][MASK:2], he left", Fills: []string{"[MASK]", "[MASK:2]", "he"},
				Spans: [][2]int{{9, 15}, {15, 23}, {25, 27}}}},
		{"outside the vocabulary", []int{1 << 20, 1 << 30, he, he, he}, tokenize.Filled{
			Text:  "It left. [UNK] [UNK] he, he left",
			Fills: []string{"[UNK]", "[UNK] he", "he"}, Spans: [][2]int{{9, 14}, {15, 23}, {25, 27}}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, template.Fill(test.ids)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := new(tokenize.Template).Fill([]int{1}); got.Text != "" || len(got.Fills) != 0 {
		t.Errorf("the zero template gives %+v", got)
	}
}

// Names of one and of several words, and initials, are written as most texts
// have them, also with the user's words beside the blank. A text that begins
// with a blank and ends a sentence begins with a capital, and what stood in the
// blank says more of both.
func TestFillNames(t *testing.T) {
	tokenizer := loadBuiltin(t)
	for _, c := range []struct{ template, original, fill, want string }{
		{"He watched the [MASK] every day.", "", "bbc", "He watched the BBC every day."},
		{"He watched the [MASK] every day.", "", "ii", "He watched the II every day."},
		{"He watched the [MASK] every day.", "", "mcdonald", "He watched the McDonald every day."},
		{"He watched the [MASK] every day.", "", "london", "He watched the London every day."},
		{"He watched the [MASK] every day.", "", "news", "He watched the news every day."},
		{"Berlin and [MASK] York.", "", "new", "Berlin and New York."},
		{"He lives in [MASK:3].", "", "new york city", "He lives in New York City."},
		{"He lives in [MASK] [MASK] now.", "", "new york", "He lives in New York now."},
		{"He saw the [MASK:2].", "", "white house", "He saw the White House."},
		{"He saw the [MASK] house.", "", "white", "He saw the white house."},
		{"He works for the United [MASK].", "", "nations", "He works for the United Nations."},
		{"He has a [MASK] car.", "", "new", "He has a new car."},
		{"he lives in [MASK:2].", "", "new york", "he lives in new york."},
		{"then [MASK] left", "", "i", "then I left"},
		{"then i said [MASK] left", "", "i", "then i said i left"},
		{"  [MASK] was a wonderful film.", "", "it", "  It was a wonderful film."},
		{"[MASK] was a wonderful film", "", "it", "it was a wonderful film"},
		{"[MASK] was a film . it was good .", "", "it", "it was a film . it was good ."},
		{"[MASK] hated this film and left early.", "Claude", "he", "He hated this film and left early."},
		{"[MASK] film was bad.", "The", "a", "A film was bad."},
		{"[MASK] film was bad", "The", "a", "A film was bad"},
		{"[MASK] film was bad.", "the", "a", "a film was bad."},
		{"yesterday [MASK] left", "Anna", "york", "yesterday York left"},
		{"Then she met [MASK] .", "Claude", "him", "Then she met him ."},
		{"Then she met [MASK] .", "Claude", "seed", "Then she met Seed ."},
		{"Then she went to [MASK] .", "church", "london", "Then she went to London ."},
		{"Then [MASK] went away.", "I", "everybody", "Then everybody went away."},
	} {
		template := check.Must(tokenizer.Template(c.template))(t)
		ids := check.Must(tokenizer.Candidate(c.fill))(t)
		if len(ids) != len(template.Slots) {
			t.Fatal(c.fill, ids)
		}
		if c.original != "" {
			template.Originals = []string{c.original}
		}
		if got := template.Fill(ids).Text; got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
