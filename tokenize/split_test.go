package tokenize_test

import (
	"testing"

	"infill/tokenize"
)

// TestGPT2Length: the pattern of GPT-2 takes short forms whole, and only these.
func TestGPT2Length(t *testing.T) {
	for text, want := range map[string]int{"'re": 3, "'ve ": 3, "'ll": 3, "'rx": 1, "'v": 1, "'lL": 1, "'s": 2,
		"'sx": 2, "' re": 1, "'": 1, "''re": 2, " re": 3, "  re": 1, "re's": 2} {
		if got := tokenize.GPT2Length([]rune(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
