package infill_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A module of somebody else imports this one as the README says: the program
// there builds, and with it every package that is public.
func TestOutsideModule(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build a module with")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(in string, args ...string) string {
		t.Helper()
		command := exec.Command("go", args...)
		command.Dir = in
		// Nothing is fetched: what this module was built of is there.
		command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, program, found := strings.Cut(string(readme), "```go\n")
	program, _, closed := strings.Cut(program, "```\n")
	if !found || !closed || !strings.HasPrefix(program, "package main\n") {
		t.Fatal("the README has no program")
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
	for name, content := range map[string]string{"main.go": program, "public.go": public.String(),
		"go.sum": string(sums)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run(dir, "mod", "init", "example.org/outside")
	run(dir, "mod", "edit", "-require", module+"@v0.0.0", "-replace", module+"="+root)
	// What go mod tidy would add, which may fetch: this module's own requirements.
	var needs struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal([]byte(run(root, "mod", "edit", "-json")), &needs); err != nil {
		t.Fatal(err)
	}
	for _, r := range needs.Require {
		run(dir, "mod", "edit", "-require", r.Path+"@"+r.Version)
	}
	run(dir, "build", "-o", filepath.Join(dir, "outside"), ".")
}
