package ask

import (
	"slices"
	"strings"
	"testing"

	"infill/internal/rawjson"
)

// TestListForEveryBlank: a list without a number is that of every blank without
// a list of its own, and blanks of one name have one list.
func TestListForEveryBlank(t *testing.T) {
	f := newFake(t)
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
		fields, err := rawjson.Parse([]byte(`{"template": "the [MASK] sat", "slot": ` + value + `}`))
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

// TestSpeechOption: parts of speech are written as flags and JSON have them, and back.
func TestSpeechOption(t *testing.T) {
	option := MustFind("pos")
	for text, want := range map[string]string{
		"noun": "noun", "noun,verb": "noun,verb", "1=noun 2=adjective, adverb": "1=noun 2=adjective,adverb",
		"verb 2=noun": "verb 2=noun",
		"nouns":       "", "1=": "", "1=noun 1=verb": "", "1=red": "",
	} {
		g, err := option.Given(text)
		if (err == nil) != (want != "") || err == nil && g.Text() != want {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}
