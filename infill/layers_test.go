package infill_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLayers holds the imports to the list of layers in docs/explanation/architecture.md: a package stands in it once,
// and imports what stands below its own line.
func TestLayers(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to list imports with")
	}
	text, err := os.ReadFile("../docs/explanation/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "Imports point down")
	_, list, found := strings.Cut(list, "\n\n")
	if !found {
		t.Fatal("docs/explanation/architecture.md has no list of layers")
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
			t.Errorf("%s stands in no layer: give it one in docs/explanation/architecture.md", own)
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

// TestFileOrder holds the files of this package to their list in docs/explanation/architecture.md: what a
// file uses stands below it, with few exceptions.
func TestFileOrder(t *testing.T) {
	const most = 15 // pairs of files of which the upper one is used by the lower one
	text, err := os.ReadFile("../docs/explanation/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "The files of `infill`")
	_, list, found := strings.Cut(list, "\n\n")
	if !found {
		t.Fatal("docs/explanation/architecture.md has no list of the files of infill")
	}
	places := map[string]int{} // from 1 at the top
	for line := range strings.Lines(list) {
		if !strings.HasPrefix(line, "    ") {
			break
		}
		names, _, _ := strings.Cut(line, ":")
		for _, name := range strings.Fields(names) {
			places[name+".go"] = len(places) + 1
		}
	}
	set := token.NewFileSet()
	var files []*ast.File
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
		if places[path] == 0 {
			t.Errorf("%s stands nowhere in the list of docs/explanation/architecture.md", path)
		}
	}
	if len(files) != len(places) {
		t.Errorf("%d files, %d in the list", len(files), len(places))
	}
	// Other packages stay unknown: references within this one are enough.
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(set, "gc",
		func(string) (io.ReadCloser, error) { return nil, os.ErrNotExist }), Error: func(error) {}}
	own, _ := config.Check("infill", set, files, info)
	up := map[string]string{}
	for ident, object := range info.Uses {
		if v, variable := object.(*types.Var); object.Pkg() != own ||
			variable && (v.IsField() || v.Parent() != own.Scope()) {
			continue
		}
		from, to := filepath.Base(set.Position(ident.Pos()).Filename),
			filepath.Base(set.Position(object.Pos()).Filename)
		if places[from] > places[to] {
			up[from+" uses "+to] = object.Name()
		}
	}
	if len(up) > most {
		t.Errorf("%d files use others above them, at most %d may: %v", len(up), most, up)
	}
}
