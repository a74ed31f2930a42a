package infill_test

import (
	"os/exec"
	"strings"
	"testing"
)

// layerList are the packages, the highest layer first. A new package gets a place here.
const layerList = `
cmd/infill cmd/infill/internal/commands cmd/lab cmd/release
cmd/infill/internal/eval cmd/infill/internal/fill cmd/infill/internal/gaps cmd/infill/internal/metrics cmd/infill/internal/models cmd/infill/internal/run cmd/infill/internal/score cmd/infill/internal/serve cmd/infill/internal/tui
cmd/infill/internal/cli
cmd/infill/internal/terminal tui
cmd/lab/internal/papers
cmd/lab/internal/bits cmd/lab/internal/energies cmd/lab/internal/fills
cmd/lab/internal/chains cmd/lab/internal/lab/labtest
cmd/lab/internal/lab
internal/eval internal/serve
internal/batch
internal/ask internal/eval/corpus
infill
internal/lmtest
internal/network lm
internal/bert internal/imported internal/ort
internal/graphs internal/ort/library
internal/modelstest internal/onnx
models
internal/hub internal/pytorch
internal/safetensors
internal/targets
metrics samplers tokenize
internal/journal internal/option internal/parallel
internal/check internal/floats internal/logmath internal/rawjson internal/phrase internal/picture internal/regular internal/wire
internal/lines
`

// TestLayers holds the imports to the list of layers: a package stands in it
// once, and imports what stands below its own line.
func TestLayers(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to list imports with")
	}
	layers := map[string]int{} // from 1 at the top
	for number, line := range strings.Split(strings.TrimSpace(layerList), "\n") {
		for _, name := range strings.Fields(line) {
			if layers[name] != 0 {
				t.Errorf("%s stands twice in the list", name)
			}
			layers[name] = number + 1
		}
	}
	command := exec.Command("go", "list", "-f", `{{.Module.Path}} {{.ImportPath}}{{range .Imports}} {{.}}{{end}}`,
		"./...")
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
			t.Errorf("%s stands in no layer: give it one in layerList", own)
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
