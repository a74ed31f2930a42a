package infill_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/samplers"
)

var updateAPI = flag.Bool("update-api", false, "write testdata/api.txt anew")

// public are the packages that programs of others may import.
var public = []string{"infill", "samplers", "lm", "models", "tokenize", "metrics", "tui"}

// exported is an exported declaration of a package, or a method or field of one.
type exported struct {
	pkg, owner, name string // owner is the type of a method or field, else ""
	text             string // as testdata/api.txt has it
	method           bool
	types            types.Type
	tagged           bool // a field that JSON or an option reads
}

// declarations returns what the public packages export, sorted within each
// package.
func declarations(t *testing.T) []exported {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to read packages with")
	}
	args := []string{"list", "-deps", "-export", "-f", "{{.ImportPath}}\t{{.Export}}"}
	for _, name := range public {
		args = append(args, "./"+name)
	}
	command := exec.Command("go", args...)
	command.Dir = ".."
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[path] = file
	}
	read := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(files[path])
	})
	var all []exported
	for _, name := range public {
		pkg, err := read.Import("infill/" + name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, exportedBy(pkg)...)
	}
	return all
}

// exportedBy returns what a package exports.
func exportedBy(pkg *types.Package) []exported {
	short := func(other *types.Package) string {
		if other == pkg {
			return ""
		}
		return strings.TrimPrefix(other.Path(), "infill/")
	}
	var all []exported
	add := func(owner string, o types.Object, text string) *exported {
		_, method := o.(*types.Func)
		all = append(all, exported{pkg: pkg.Name(), owner: owner, name: o.Name(), method: method && owner != "",
			text: pkg.Name() + ": " + text, types: o.Type()})
		return &all[len(all)-1]
	}
	scope := pkg.Scope()
	for _, name := range scope.Names() {
		o := scope.Lookup(name)
		if !o.Exported() {
			continue
		}
		declared, ok := o.(*types.TypeName)
		if !ok {
			text := types.ObjectString(o, short)
			if c, ok := o.(*types.Const); ok {
				text += " = " + c.Val().ExactString()
			}
			add("", o, text)
			continue
		}
		under := declared.Type().Underlying()
		kind := types.TypeString(under, short)
		switch u := under.(type) {
		case *types.Struct:
			kind = "struct"
			for i := range u.NumFields() {
				f := u.Field(i)
				if f.Exported() {
					text := fmt.Sprintf("field %s.%s %s", name, f.Name(), types.TypeString(f.Type(), short))
					add(name, f, text).tagged = u.Tag(i) != ""
				}
			}
		case *types.Interface:
			kind = "interface"
		}
		add("", o, "type "+name+" "+kind)
		methods := types.NewMethodSet(types.NewPointer(declared.Type()))
		if types.IsInterface(under) {
			methods = types.NewMethodSet(declared.Type())
		}
		for i := range methods.Len() {
			m := methods.At(i).Obj()
			if m.Exported() && m.Pkg() == pkg {
				text := strings.TrimPrefix(types.TypeString(m.Type(), short), "func")
				add(name, m, "method "+name+"."+m.Name()+text)
			}
		}
	}
	slices.SortFunc(all, func(a, b exported) int { return strings.Compare(a.text, b.text) })
	return all
}

// TestAPI compares what the public packages export with testdata/api.txt.
// CONTRIBUTING.md says when it may change.
func TestAPI(t *testing.T) {
	var now bytes.Buffer
	for _, e := range declarations(t) {
		fmt.Fprintln(&now, e.text)
	}
	file := filepath.Join("..", "testdata", "api.txt")
	if *updateAPI {
		err := os.WriteFile(file, now.Bytes(), 0o644)
		if err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	diff := cmp.Diff(strings.Split(string(stored), "\n"), strings.Split(now.String(), "\n"))
	if diff != "" {
		t.Errorf("what the packages export differs from testdata/api.txt; if that is meant, "+
			"run go test ./infill -run TestAPI -update-api\n%s", diff)
	}
}

// TestSize: the engine stays one that a person can know.
func TestSize(t *testing.T) {
	names, methods := 0, 0
	for _, e := range declarations(t) {
		switch {
		case e.pkg != "infill":
		case e.method:
			methods++
		case e.owner == "":
			names++
		}
	}
	if names > 75 || methods > 70 {
		t.Errorf("infill exports %d names and %d methods, want 75 and 70 at most", names, methods)
	}
}

// TestNothingInternal: what a public package exports, others can also make.
func TestNothingInternal(t *testing.T) {
	for _, e := range declarations(t) {
		named := map[string]bool{}
		types.TypeString(e.types, func(p *types.Package) string { named[p.Path()] = true; return "" })
		for path := range named {
			if strings.Contains(path, "internal/") && strings.HasPrefix(path, "infill/") {
				t.Errorf("%s names a type of %s", e.text, path)
			}
		}
	}
}

// TestUsers: everything exported is used outside its package, by another
// package, an example, or a page. A type is used if a used declaration names it,
// a constant if its type is, a field if JSON or an option reads it, and a
// sampler as one of samplers.All.
func TestUsers(t *testing.T) {
	uses := map[string]map[string]bool{} // the words that each folder selects, as in x.Word, Word: and pkg.Word
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		if path != "." && strings.HasPrefix(path, ".") && d.IsDir() {
			return fs.SkipDir // git writes there at any time
		}
		if err != nil || d.IsDir() {
			return err
		}
		example := strings.HasPrefix(filepath.Base(path), "example")
		page := strings.HasPrefix(path, "docs/how-to/") && strings.HasSuffix(path, ".md") || path == "README.md"
		code := strings.HasSuffix(path, ".go") && (!strings.HasSuffix(path, "_test.go") || example)
		if !page && !code {
			return nil
		}
		text, err := os.ReadFile(filepath.Join("..", path))
		dir := filepath.Dir(path)
		if example {
			dir += " examples"
		}
		if uses[dir] == nil {
			uses[dir] = map[string]bool{}
		}
		for _, word := range selected.FindAllString(string(text), -1) {
			uses[dir][word] = true
			_, field, _ := strings.Cut(word, ".")
			uses[dir]["."+field] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	used := func(e exported) bool {
		if implicit[e.name] || e.tagged || e.pkg == "models" && mirrors[e.owner] && !e.method {
			return true
		}
		for dir, words := range uses {
			if dir == e.pkg {
				continue
			}
			if e.owner == "" && words[e.pkg+"."+e.name] {
				return true
			}
			if e.owner != "" && (words["."+e.name] || words[e.name+":"] || words[") "+e.name+"("]) {
				return true
			}
		}
		return false
	}
	named := map[string]bool{} // what used declarations name, as "pkg.Type"
	for _, s := range samplers.All() {
		named[strings.TrimPrefix(fmt.Sprintf("%T", s), "*")] = true
	}
	all := declarations(t)
	var left []exported
	for more := true; more; {
		left = nil
		more = false
		for _, e := range all {
			if !used(e) && !named[e.pkg+"."+e.name] {
				left = append(left, e)
				continue
			}
			text := types.TypeString(e.types, func(p *types.Package) string { return p.Name() })
			for _, name := range selected.FindAllString(text, -1) {
				more = more || !named[name]
				named[name] = true
			}
		}
	}
	for _, e := range left {
		_, constant := e.types.(*types.Named)
		if constant && strings.Contains(e.text, ": const ") {
			continue
		}
		t.Errorf("nobody uses %s", e.text)
	}
}

// selected matches what a program selects, sets or implements: pkg.Name,
// value.Field, Field: and ") Method(".
var selected = regexp.MustCompile(`\w*\.\w+|\b\w+:|\) \w+\(`)

// mirrors are structs of which the fields stand for those of a file.
var mirrors = map[string]bool{"Config": true, "PreNorm": true, "RelativeAttention": true} // config.json

// implicit are methods that the standard library calls.
var implicit = map[string]bool{"Error": true, "Unwrap": true, "Is": true, "String": true, "MarshalText": true,
	"UnmarshalText": true, "MarshalJSON": true, "UnmarshalJSON": true}
