package batch

import (
	"testing"

	"infill/infill"
)

// TestSettings: parts that were filled with another lexicon are not merged.
func TestSettings(t *testing.T) {
	for lexicon, want := range map[string]string{"": "", "english": "", "none": "none"} {
		f, err := infill.Open(infill.OpenOptions{Lexicon: lexicon})
		if err != nil {
			t.Fatal(err)
		}
		o := infill.DefaultOptions()
		if got := settings(f, &o)["lexicon"]; got != want {
			t.Errorf("--lexicon %s is the setting %q, want %q", lexicon, got, want)
		}
		f.Close()
	}
}
