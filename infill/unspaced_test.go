package infill

import (
	"strings"
	"testing"
)

// TestUnspacedScripts: blanks between letters of scripts that write no blanks
// take words, one character or more, and lists.
func TestUnspacedScripts(t *testing.T) {
	f, err := Open(OpenOptions{Model: "../internal/bert/testdata/mmbert"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	o := asked{}
	o.Top = 40
	for _, template := range []string{"我[MASK]苹果", "[MASK]喜欢苹果", "今日は[MASK]です", "我[MASK]苹果,他[MASK]书"} {
		r := fill(t, f, template, o)
		if len(r.Fills) != 40 || !*r.Proven || strings.Contains(r.Fills[0].Text, " ") {
			t.Errorf("%s: %d fills, proven %v, the first %q", template, len(r.Fills), *r.Proven, r.Fills[0].Text)
		}
	}
	o.Slots = Lists{1: {"喜欢", "看", "良い"}}
	r := fill(t, f, "我[MASK]苹果", o)
	texts := map[string]bool{}
	for _, fill := range r.Fills {
		texts[fill.Text] = true
	}
	if len(texts) != 3 || !texts["我喜欢苹果"] || !texts["我看苹果"] || !texts["我良い苹果"] {
		t.Errorf("fills of a list: %v", texts)
	}
}
