package lines_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"infill/internal/check"
	"infill/internal/lines"
)

func init() { check.SameDraws() }

// TestCharacters: ranges of bytes and of characters turn into each other, in any order.
func TestCharacters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runes := []rune(rapid.StringOfN(rapid.SampledFrom([]rune("aé猫👍\u0301")), 0, 12, -1).Draw(t, "text"))
		var spans, bytes [][2]int
		for range rapid.IntRange(0, 6).Draw(t, "spans") {
			from := rapid.IntRange(0, len(runes)).Draw(t, "from")
			to := rapid.IntRange(from, len(runes)).Draw(t, "to")
			spans = append(spans, [2]int{from, to})
			bytes = append(bytes, [2]int{len(string(runes[:from])), len(string(runes[:to]))})
		}
		text := string(runes)
		if got := lines.Characters(text, bytes); !slices.Equal(got, spans) {
			t.Errorf("%q: bytes %v are %v, want %v", text, bytes, got, spans)
		}
		if got := lines.Bytes(text, spans); !slices.Equal(got, bytes) {
			t.Errorf("%q: characters %v are %v, want %v", text, spans, got, bytes)
		}
	})
}
