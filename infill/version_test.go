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
		"CITATION.cff":                    "version: " + infill.Number + "\n",
		"docs/how-to/cite.md":             "version = {" + infill.Number + "}",
		"README.md":                       "dist/infill-" + infill.Number + "-py3-none-",
		"docs/how-to/use-it-in-python.md": "dist/infill-" + infill.Number + "-py3-none-",
	} {
		text, err := os.ReadFile(filepath.Join("..", file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), line) {
			t.Errorf("%s has no %q", file, line)
		}
	}
	if got := infill.Version(); got != infill.Number+"-dev" && !strings.HasPrefix(got, infill.Number+"-dev+") {
		t.Errorf("a build that is no release has the version %s", got)
	}
}
