package infill_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestLayers holds the imports to the list of layers in docs/architecture.md: a package stands in it once, and imports what
// stands below its own line.
func TestLayers(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to list imports with")
	}
	text, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "Imports point downwards")
	_, list, found := strings.Cut(list, "\n\n")
	if !found {
		t.Fatal("docs/architecture.md has no list of layers")
	}
	layers := map[string]int{} // from 1 at the top
	number := 0
	for line := range strings.Lines(list) {
		if !strings.HasPrefix(line, "    ") {
			break
		}
		number++
		for _, name := range strings.Fields(line) {
			if layers[name] != 0 {
				t.Errorf("%s stands twice in the list", name)
			}
			layers[name] = number
		}
	}
	command := exec.Command("go", "list", "-f", `{{.Module.Path}} {{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, "./...")
	command.Dir = ".."
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		own := strings.TrimPrefix(words[1], words[0]+"/")
		packages[own] = true
		if layers[own] == 0 {
			t.Errorf("%s stands in no layer: give it one in docs/architecture.md", own)
			continue
		}
		for _, path := range words[2:] {
			if other, ours := strings.CutPrefix(path, words[0]+"/"); ours && layers[other] <= layers[own] {
				t.Errorf("%s, layer %d, imports %s, layer %d", own, layers[own], other, layers[other])
			}
		}
	}
	for name := range layers {
		if !packages[name] {
			t.Errorf("%s stands in a layer and is no package", name)
		}
	}
}
