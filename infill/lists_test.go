package infill

import (
	"slices"
	"strings"
	"testing"

	"infill/internal/object"
)

// TestListForEveryBlank: a list without a number is that of every blank without
// a list of its own, and blanks of one name have one list.
func TestListForEveryBlank(t *testing.T) {
	f := New(newModel(32, 1), newTokenizer(t))
	for _, c := range []struct {
		template, slot string
		want           []string // the fills, sorted, with spaces between the values
	}{
		{"the [MASK] sat", "cat,dog", []string{"cat", "dog"}},
		{"the [MASK] [MASK]", "cat,dog", []string{"cat cat", "cat dog", "dog cat", "dog dog"}},
		{"the [MASK] [MASK]", "cat,dog 2=sat", []string{"cat sat", "dog sat"}},
		{"the [MASK=x] [MASK] [MASK=x]", "cat,dog 1=mat", []string{"mat cat mat", "mat dog mat"}},
		{"the [MASK=x] [MASK] [MASK=x]", "cat,dog 3=mat", []string{"mat cat mat", "mat dog mat"}},
		{"the [MASK=x] [MASK=x]", "cat,dog", []string{"cat cat", "dog dog"}},
		{"the [MASK~.a.] sat", "cat,dog", []string{"cat"}},
	} {
		for _, given := range [][]Given{
			{MustGive("slot", c.slot)},
			{MustGive("slot", MustGive("slot", c.slot).Text())}, // as it is written
		} {
			r, err := NewRequest(c.template, append(given, MustGive("top", "100")))
			if err != nil {
				t.Fatal(err)
			}
			result, err := f.Fill(t.Context(), r, nil)
			if err != nil {
				t.Errorf("%s, %s: %v", c.template, c.slot, err)
				continue
			}
			var got []string
			for _, fill := range result.Fills {
				got = append(got, strings.Join(fill.Values, " "))
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("%s, %s: %q, want %q", c.template, c.slot, got, c.want)
			}
			if !strings.Contains(result.Signature, "|slot:") {
				t.Errorf("%s, %s: signature %s", c.template, c.slot, result.Signature)
			}
		}
	}
	for _, text := range []string{"x=cat", "cat,1=dog", "cat,", "=cat", "cat 1=dog 1=mat", "-1=cat",
		"0=cat", "1=cat; 2=dog",
		"1=cat;2=dog", "1=cat,2=dog", "1=cat, 2=dog"} {
		_, err := MustFind("slot").Given(text)
		if err == nil {
			t.Errorf("%s is read", text)
		}
	}
}

// TestListInJSON: a list of a record needs no number either.
func TestListInJSON(t *testing.T) {
	for _, value := range []string{`["cat", "dog"]`, `"cat,dog"`} {
		fields, err := object.Parse([]byte(`{"template": "the [MASK] sat", "slot": ` + value + `}`))
		if err != nil {
			t.Fatal(err)
		}
		record, err := ReadRecord(fields, "template")
		if err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		r, err := record.Request(nil)
		if err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		if !slices.Equal(r.Fit.Slots[0], []string{"cat", "dog"}) || len(r.Fit.Slots) != 1 {
			t.Errorf("%s: %v", value, r.Fit.Slots)
		}
	}
}

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

// TestGivenTwice: the values of several uses of a flag hold together, unless two
// are for the same blanks.
func TestGivenTwice(t *testing.T) {
	for _, c := range []struct{ option, one, other, want string }{
		{"slot", "1=cat", "2=dog", "1=cat 2=dog"},
		{"slot", "1=cat", "dog,mat", "dog,mat 1=cat"},
		{"slot", "cat", "dog", ""},
		{"slot", "1=cat 2=dog", "2=mat", ""},
		{"pos", "1=noun", "verb", "verb 1=noun"},
		{"pos", "noun", "verb", ""},
		{"ban", "cat", "dog,\"a,b\"", `cat,dog,"a,b"`},
	} {
		both, ok := MustGive(c.option, c.one).With(MustGive(c.option, c.other))
		if ok != (c.want != "") || ok && both.Text() != c.want {
			t.Errorf("%s: %s and %s: %v", c.option, c.one, c.other, ok)
		}
	}
}
