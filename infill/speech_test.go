package infill_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/infill"
)

// TestSpeech: words have the part of speech that is asked for, of one piece and of several, and their probabilities
// stay.
func TestSpeech(t *testing.T) {
	f := open(t)
	first := func(template string, o infill.Options, speech infill.Lists) *infill.Result {
		t.Helper()
		o.Speech, o.Top = speech, 20
		if o.Chains == nil {
			o.Budget.Rows = 200
		}
		r, err := f.Fill(t.Context(), template, o, nil)
		if err != nil {
			t.Fatal(template, err)
		}
		return r
	}
	values := func(r *infill.Result, blank int) (list []string) {
		for _, fill := range r.Fills {
			list = append(list, fill.Values[blank])
		}
		return list
	}
	o := infill.DefaultOptions()
	free := first("she saw the [MASK] .", o, nil)
	nouns := first("she saw the [MASK] .", o, infill.Lists{0: {"noun"}})
	if all := values(nouns, 0); !slices.Contains(all, "door") || slices.Contains(all, "old") ||
		slices.Contains(all, "her") || slices.Contains(all, "same") {
		t.Errorf("nouns: %q", all)
	}
	for _, fill := range nouns.Fills {
		if at := slices.Index(values(free, 0), fill.Values[0]); at >= 0 &&
			*free.Fills[at].Probability != *fill.Probability {
			t.Errorf("%s had %v, and as a noun %v", fill.Values[0], *free.Fills[at].Probability, *fill.Probability)
		}
	}
	two := first("the [MASK] [MASK] stood there .", o, infill.Lists{1: {"adjective"}, 2: {"noun"}})
	if all := values(two, 0); !slices.Contains(all, "old") || slices.Contains(all, "door") {
		t.Errorf("adjectives: %q", all)
	}
	joined := first("the foot[MASK] lay on the floor .", o, infill.Lists{0: {"noun"}})
	if all := values(joined, 0); !slices.Contains(all, "man") || slices.Contains(all, "ed") {
		t.Errorf("nouns with foot: %q", all)
	}
	for _, fill := range first("it was a [MASK:2] .", o, infill.Lists{0: {"noun"}}).Fills {
		if strings.Contains(fill.Values[0], " ") {
			t.Errorf("%q are two words", fill.Values[0])
		}
	}
	chained := o
	c := infill.DefaultChains("gibbs")
	chained.Chains, chained.Seed = &c, 1
	for _, value := range values(first("she saw the [MASK] [MASK] .", chained, infill.Lists{2: {"noun"}}), 1) {
		if slices.Contains([]string{"was", "her", "of", "the"}, value) {
			t.Errorf("a chain drew %q for a noun", value)
		}
	}
	o.Speech = infill.Lists{3: {"noun"}}
	var option *infill.OptionError
	if _, err := f.Fill(t.Context(), "she saw the [MASK] .", o, nil); !errors.As(err, &option) ||
		option.Option != "pos" {
		t.Errorf("of a third blank: %v", err)
	}
}

// TestSpeechOption: parts of speech are written as flags and JSON have them, and back.
func TestSpeechOption(t *testing.T) {
	option := infill.Find("pos")
	for text, want := range map[string]string{
		"noun": "noun", "noun,verb": "noun,verb", "1=noun 2=adjective, adverb": "1=noun 2=adjective,adverb",
		"verb 2=noun": "verb 2=noun",
		"nouns":       "", "1=": "", "1=noun 1=verb": "", "1=red": "",
	} {
		o := infill.DefaultOptions()
		if err := option.Set(&o, text); (err == nil) != (want != "") || option.Get(&o) != want {
			t.Errorf("%q: %v, %q; want %q", text, err, option.Get(&o), want)
		}
	}
}

// TestListRows: a list is a filter, so it has the digits of the same words as a pattern, and costs no more rows.
func TestListRows(t *testing.T) {
	f := open(t)
	o := infill.DefaultOptions()
	pattern, err := f.Fill(t.Context(), "The [MASK] was painted [MASK~red|green|blue].", o, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Slots = infill.Lists{2: {"red", "green", "blue"}}
	listed, err := f.Fill(t.Context(), "The [MASK] was painted [MASK].", o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pattern.Fills, listed.Fills); diff != "" || !*listed.Proven || listed.Seed != nil {
		t.Error(diff)
	}
	if rows := listed.Stats.ModelRows; rows > pattern.Stats.ModelRows {
		t.Errorf("the list took %d rows, the pattern %d", rows, pattern.Stats.ModelRows)
	}
}
