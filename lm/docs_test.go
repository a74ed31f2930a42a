package lm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// page is where the tables of models are.
var page = filepath.Join("..", "docs", "measured", "models.md")

// table gives the part of page between the marks "<!-- NAME: COMMAND -->" and
// "<!-- /NAME -->", COMMAND being what writes it.
func table(t testing.TB, name, command string) string {
	t.Helper()
	_, content, _ := cutTable(t, name, command)
	return content
}

// writeTable replaces it.
func writeTable(t testing.TB, name, command, content string) {
	t.Helper()
	before, _, after := cutTable(t, name, command)
	if err := os.WriteFile(page, []byte(before+"\n"+content+"\n"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func cutTable(t testing.TB, name, command string) (before, content, after string) {
	t.Helper()
	whole, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+": "+command+" -->\n", "<!-- /"+name+" -->\n"
	before, rest, found := strings.Cut(string(whole), begin)
	content, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no table between %q and %q", page, begin, end)
	}
	return before + begin, content, end + after
}
