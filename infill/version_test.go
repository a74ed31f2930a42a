package infill_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"infill/infill"
)

// TestOneVersion: every place that names the version of this module names the
// same.
func TestOneVersion(t *testing.T) {
	for file, line := range map[string]string{
		"CITATION.cff":        "version: " + infill.Number + "\n",
		"docs/how-to/cite.md": "version = {" + infill.Number + "}",
		"CHANGELOG.md":        "\n## " + strings.TrimSuffix(infill.Number, "-dev") + " ",
	} {
		text, err := os.ReadFile(filepath.Join("..", file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), line) {
			t.Errorf("%s has no %q", file, line)
		}
	}
	got := infill.Version()
	if got != infill.Number && !strings.HasPrefix(got, infill.Number+"+") {
		t.Errorf("a build has the version %s", got)
	}
}
