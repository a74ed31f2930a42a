package infill_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMap: each function that the page about the architecture names is in its file.
func TestMap(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "explanation", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	places := regexp.MustCompile("`([a-z_/]+\\.go)`: (`[^`]+`(?:, `[^`]+`)*)")
	for _, place := range places.FindAllStringSubmatch(string(page), -1) {
		code, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(place[1])))
		if err != nil {
			t.Error(err)
			continue
		}
		for name := range strings.SplitSeq(strings.ReplaceAll(place[2], "`", ""), ", ") {
			named++
			of, method, found := strings.Cut(name, ".")
			declared := `(?m)^func ` + of + `[\[(]`
			if found {
				declared = `(?m)^func \([a-z]+ \*?` + of + `(\[\w+\])?\) ` + method + `\(`
			}
			if !regexp.MustCompile(declared).Match(code) {
				t.Errorf("%s has no function %s", place[1], name)
			}
		}
	}
	if named < 15 {
		t.Errorf("the page names %d functions", named)
	}
}
