package infill

import (
	"slices"
	"strings"
	"testing"
)

// TestBegun: a blank behind letters says which pattern has the vocabulary's whole
// words, if there are some.
func TestBegun(t *testing.T) {
	f := New(newModel(32, 1), newTokenizer(t))
	for template, want := range map[string]string{
		"the s[MASK] sat":           `"s[MASK]" takes only tokens that go on with "s": [MASK~s.*] takes the words that the vocabulary has as one token (2)`,
		"the S[MASK] sat":           `"S[MASK]" takes only tokens that go on with "S": [MASK~S.*] takes the words that the vocabulary has as one token (2)`,
		"the c[MASK=x] sat":         `"c[MASK=x]" takes only tokens that go on with "c": [MASK~c.*] takes`,
		"the un[MASK] sat":          "", // no word begins with un and goes on
		"the cat [MASK] sat":        "",
		"the [MASK~s.*] sat on":     "",
		"the s[MASK]at sat on":      `is read as a word with the text "at" behind it`,
		"the cat .[MASK] sat on it": "",
	} {
		result, err := f.Fill(t.Context(), Request{Template: template}, nil)
		if err != nil {
			t.Errorf("%s: %v", template, err)
			continue
		}
		got := slices.DeleteFunc(result.Warnings, func(w string) bool { return !strings.Contains(w, "[MASK~") })
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
			t.Errorf("%s: %q, want %q", template, got, want)
		}
	}
}

// TestLengthsDivide: a result says by how many lengths its probabilities are
// divided.
func TestLengthsDivide(t *testing.T) {
	f := New(newModel(32, 1), newTokenizer(t))
	one, err := f.Fill(t.Context(), Request{Template: "the [MASK] sat", Fit: Fit{Slots: Lists{1: {"cat"}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err := f.Fill(t.Context(), Request{Template: "the [MASK] sat",
		Fit: Fit{Slots: Lists{1: {"cat", "unknown"}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if one.Stats.Lengths != 0 || two.Stats.Lengths != 2 {
		t.Errorf("lengths %d and %d, want 0 and 2", one.Stats.Lengths, two.Stats.Lengths)
	}
	for _, fill := range two.Fills {
		if fill.Values[0] != "cat" {
			continue
		}
		ratio := *one.Fills[0].Probability / *fill.Probability
		if ratio < 1.9999 || ratio > 2.0001 {
			t.Errorf("cat has %g times the probability alone, want 2", ratio)
		}
	}
}
