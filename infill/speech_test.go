package infill_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/infill"
	"infill/samplers"
)

// TestSpeech: words have the part of speech that is asked for, of one piece and
// of several, and their probabilities stay.
func TestSpeech(t *testing.T) {
	f := open(t)
	first := func(template string, m infill.Method, speech infill.Parts) *infill.Result {
		t.Helper()
		r, err := f.Fill(t.Context(), infill.Request{Template: template, Fit: infill.Fit{Speech: speech}, Top: 20,
			Method: m, Seed: 1}, nil)
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
	o := infill.Search{Budget: infill.Budget{Rows: 200}}
	free := first("she saw the [MASK] .", o, nil)
	nouns := first("she saw the [MASK] .", o, infill.Parts{0: {"noun"}})
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
	two := first("the [MASK] [MASK] stood there .", o, infill.Parts{1: {"adjective"}, 2: {"noun"}})
	if all := values(two, 0); !slices.Contains(all, "old") || slices.Contains(all, "door") {
		t.Errorf("adjectives: %q", all)
	}
	joined := first("the foot[MASK] lay on the floor .", o, infill.Parts{0: {"noun"}})
	if all := values(joined, 0); !slices.Contains(all, "man") || slices.Contains(all, "ed") {
		t.Errorf("nouns with foot: %q", all)
	}
	for _, fill := range first("it was a [MASK:2] .", o, infill.Parts{0: {"noun"}}).Fills {
		if strings.Contains(fill.Values[0], " ") {
			t.Errorf("%q are two words", fill.Values[0])
		}
	}
	// Two tokens are one word only if the second is a piece: "foot ball" is two.
	for word, want := range map[string]bool{"football": true, "foot ball": false} {
		_, err := f.Fill(t.Context(), infill.Request{Template: "it was a [MASK] .",
			Fit: infill.Fit{Slots: infill.Lists{1: {word}}, Speech: infill.Parts{1: {"noun"}}}}, nil)
		if (err == nil) != want || !want && !strings.Contains(err.Error(), "leave blank 1 no word of its list") {
			t.Errorf("%q as a noun: %v", word, err)
		}
	}
	// What is no word is no noun, though the letters beside it spell one.
	for template, kind := range map[string]infill.FillKind{"the hou[MASK]se is big .": infill.FillAny,
		"the zzqx[MASK:2=a] and the hou[MASK:2=a] are big .": infill.FillWords,
		"the hou[MASK:2=a] and the zzqx[MASK:2=a] are big .": infill.FillWords} {
		_, err := f.Fill(t.Context(), infill.Request{Template: template,
			Fit: infill.Fit{Fill: kind, Speech: infill.Parts{0: {"noun"}}}}, nil)
		if err == nil || !strings.Contains(err.Error(), "nothing is left for blank 1") {
			t.Errorf("%s: %v", template, err)
		}
	}
	gibbs := infill.Chains{Sampler: samplers.Gibbs{}}
	chained := first("she saw the [MASK] [MASK] .", gibbs, infill.Parts{2: {"noun"}})
	for _, value := range values(chained, 1) {
		if slices.Contains([]string{"was", "her", "of", "the"}, value) {
			t.Errorf("a chain drew %q for a noun", value)
		}
	}
	var option *infill.OptionError
	if _, err := f.Fill(t.Context(), infill.Request{Template: "she saw the [MASK] .",
		Fit: infill.Fit{Speech: infill.Parts{3: {"noun"}}}}, nil); !errors.As(err, &option) ||
		option.Option != "pos" {
		t.Errorf("of a third blank: %v", err)
	}
}

// TestListRows: a list is a filter, so it has the digits of the same words as a
// pattern, and costs no more rows.
func TestListRows(t *testing.T) {
	f := open(t)
	pattern, err := f.Fill(t.Context(),
		infill.Request{Template: "He had [MASK] the [MASK~door|window|gate]."}, nil)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := f.Fill(t.Context(), infill.Request{Template: "He had [MASK] the [MASK].",
		Fit: infill.Fit{Slots: infill.Lists{2: {"door", "window", "gate"}}}}, nil)
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

// TestMarksBeside: an accent is part of the letter before a blank, whether the two are
// one character or two.
func TestMarksBeside(t *testing.T) {
	f := open(t)
	for _, left := range []string{"r\u00e9", "re\u0301"} {
		_, err := f.Plan(t.Context(), infill.Request{Template: "the " + left + "[MASK] was here .",
			Fit: infill.Fit{Speech: infill.Parts{0: {"noun"}}}})
		if err == nil {
			t.Errorf("%q goes on as an English noun", left)
		}
	}
}
