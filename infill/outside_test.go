package infill_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"infill/internal/check"
)

// A module of somebody else imports this one as the README says, step by step:
// the program there builds, and with it every package that is public.
func TestOutsideModule(t *testing.T) {
	root := moduleRoot(t)
	dir := t.TempDir()
	run := func(in string, args ...string) string {
		t.Helper()
		out, err := outsideGo(in, args...)
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(out)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(readme), "\n## As a library\n")
	section, _, _ = strings.Cut(section, "\n## ")
	steps := regexp.MustCompile("(?s)```(go|)\n(.*?)```\n").FindAllStringSubmatch(section, -1)
	if !found || len(steps) != 3 {
		t.Fatalf("the README has %d steps, want commands, a program, and commands", len(steps))
	}
	var public strings.Builder
	public.WriteString("package main\n")
	list := exec.Command("go", "list", "-f", `{{.Module.Path}} {{if ne .Name "main"}}{{.ImportPath}}{{end}}`, "./...")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	module := ""
	for line := range strings.Lines(string(out)) {
		var name string
		if module, name, _ = strings.Cut(strings.TrimSuffix(line, "\n"), " "); name != "" &&
			!strings.Contains(name, "/internal/") {
			fmt.Fprintf(&public, "import _ %q\n", name)
		}
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.sum", string(sums))
	// go mod tidy may fetch. This does the same from what is here: it drops what
	// no program imports, and adds this module's own requirements.
	tidy := func() {
		t.Helper()
		if _, err := os.Stat(filepath.Join(dir, "main.go")); err != nil {
			t.Fatal("go mod tidy comes before the program that imports the module, and drops it")
		}
		var needs struct {
			Require []struct{ Path, Version string }
		}
		if err := json.Unmarshal([]byte(run(root, "mod", "edit", "-json")), &needs); err != nil {
			t.Fatal(err)
		}
		edit := []string{"mod", "edit"}
		for _, r := range needs.Require {
			edit = append(edit, "-require", r.Path+"@"+r.Version)
		}
		run(dir, edit...)
	}
	ran := false
	for _, step := range steps {
		if step[1] == "go" {
			write("main.go", step[2])
			continue
		}
		for command := range strings.Lines(step[2]) {
			command = strings.TrimSpace(strings.ReplaceAll(command, module+"=../infill", module+"="+root))
			switch command {
			case "go mod tidy":
				tidy()
			case "go run .":
				ran = true
				run(dir, "build", "-o", os.DevNull, ".")
			default:
				run(dir, strings.Fields(command)[1:]...)
			}
		}
	}
	if !ran {
		t.Error("the README does not run the program")
	}
	write("public.go", public.String())
	run(dir, "vet", ".") // reads all packages, and links none
}

// TestOwnTarget: the programs of the page about targets and samplers of one's own build in
// a module of somebody else, run, print what the page says, and write traces that the
// laboratory draws.
func TestOwnTarget(t *testing.T) {
	root := moduleRoot(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "how-to", "sample-your-own-target.md"))
	if err != nil {
		t.Fatal(err)
	}
	programs := regexp.MustCompile("(?s)```go\n(.*?)```\n.*?\n    ([^\n]*)\n").FindAllStringSubmatch(string(page), -1)
	if len(programs) != 2 {
		t.Fatalf("the page has %d programs, want 2", len(programs))
	}
	for _, program := range programs {
		if strings.Contains(program[1], "/internal/") {
			t.Error("a program imports what others cannot")
		}
		dir := outsideModule(t, root, program[1])
		trace := filepath.Join(dir, "trace.csv")
		file, err := os.Create(trace)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("go", "run", ".")
		cmd.Dir = dir
		var told strings.Builder
		cmd.Stdout, cmd.Stderr = file, &told
		err = errors.Join(cmd.Run(), file.Close())
		_, line, _ := strings.Cut(strings.TrimSpace(told.String()), ":") // behind the time
		if err != nil || !check.SameNumbers(program[2], line[min(len(line), len("00:00 ")):]) {
			t.Errorf("error %v, and no %q in\n%.500s", err, program[2], told.String())
		}
		out, err := outsideGo(root, "run", "./cmd/lab", "trace", "--file", trace, "-q")
		if err != nil || !strings.Contains(out, "U of the chains of a trace") {
			t.Errorf("lab trace: %v\n%.500s", err, out)
		}
	}
}

// moduleRoot returns the folder of this module, or skips a test that builds programs where
// it cannot.
func moduleRoot(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds programs")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build a module with")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// outsideGo runs a go command in the folder of a module of somebody else. It fetches
// nothing: what this module was built of is there.
func outsideGo(dir string, args ...string) (out string, err error) {
	command := exec.Command("go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	output, err := command.CombinedOutput()
	return string(output), err
}

// outsideModule makes a module of somebody else, whose requirements are here,
// with one program, and returns its folder.
func outsideModule(t *testing.T, root, program string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "go.mod" {
			renamed := strings.Replace(string(content), "module infill", "module example.org/outside", 1)
			content = fmt.Appendf(nil, "%s\nrequire infill v0.0.0\nreplace infill => %s\n", renamed, root)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// moved are the variables that the page about moving from 0.3 takes as known.
const moved = `package main

import (
	"context"

	"infill/infill"
	"infill/lm"
	"infill/models"
	"infill/samplers"
)

func main() {}

var (
	ctx    context.Context
	f      *infill.Filler
	r      infill.Request
	p      *infill.Plan
	text   string
	tokens []int
	logp   []float32
	target samplers.Target
	_      models.Reading
	_      lm.Caller
	admit  func(context.Context) error
)
`

// TestMovePage: what the page about moving from 0.3 says to write in Go builds
// in a module of somebody else.
func TestMovePage(t *testing.T) {
	root := moduleRoot(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "how-to", "move-from-0.3.md"))
	if err != nil {
		t.Fatal(err)
	}
	before, table, found := strings.Cut(string(page), "\n## Go\n")
	if !found {
		t.Fatal("the page has no heading Go")
	}
	number := strings.Count(before, "\n") + 3 // of the line
	var program strings.Builder
	program.WriteString(moved)
	pieces := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if strings.HasPrefix(line, "| ") && len(cells) != 2 {
			t.Errorf("line %d of the page has %d cells, want 2", number, len(cells))
		}
		if len(cells) == 2 {
			for _, code := range regexp.MustCompile("`(?:\\w+\\.)[^`]*`").FindAllString(cells[1], -1) {
				code = strings.Trim(code, "`")
				if expression, err := parser.ParseExpr(code); err == nil {
					if _, calls := expression.(*ast.CallExpr); !calls {
						code = "_ = " + code
					}
				}
				fmt.Fprintf(&program, "\n//line move-from-0.3.md:%d\nfunc _() { %s }\n", number, code)
				pieces++
			}
		}
		number++
	}
	if pieces < 10 {
		t.Errorf("the page has %d pieces of Go, want 10 or more", pieces)
	}
	out, err := outsideGo(outsideModule(t, root, program.String()), "build", "-gcflags=-e", "-o", os.DevNull, ".")
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
