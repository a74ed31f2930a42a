package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Of two blanks nearly all fills are proven, for a few rows.
func TestAnswers(t *testing.T) {
	corpus := filepath.Join(t.TempDir(), "own.txt")
	text := "the old man sat down by the fire and said nothing .\nshe took the letter from the table and read it " +
		"twice .\n" +
		"they walked along the river until the sun went down .\nhe had never seen such a large house in his life " +
		".\na short line .\n"
	if err := os.WriteFile(corpus, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, messages strings.Builder
	if code := run(t.Context(), []string{"answers", "--corpus", "own=" + corpus, "--blanks", "2", "--sentences", "4"},
		&out, &messages); code != 0 {
		t.Fatalf("exit %d: %s", code, messages.String())
	}
	if !strings.Contains(out.String(), "| own | 2 | 4 | ") || !strings.Contains(out.String(), " | 4 |  |  |") ||
		!strings.Contains(out.String(), "(lab:answers|model:small-uncased@") {
		t.Errorf("got %s", out.String())
	}
	if code := run(t.Context(), []string{"answers"}, &out, &messages); code == 0 ||
		!strings.Contains(messages.String(), "--corpus") {
		t.Errorf("without a corpus: %s", messages.String())
	}
}
