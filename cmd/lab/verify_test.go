package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"infill/cmd/lab/internal/papers"
)

// TestVerify: the command of a stored result gives its numbers again, and a
// number that was changed is found.
func TestVerify(t *testing.T) {
	folder := filepath.Join("..", "..", "docs", "measured", "laboratory")
	out, messages, code := runLab(t.Context(), "verify gwg --results "+folder)
	if code != 0 || messages != "" || !strings.Contains(out, " numbers are equal, in 4 of 4 cells\n") {
		t.Errorf("exit code %d, %q:\n%s", code, messages, out)
	}
	text, err := os.ReadFile(filepath.Join(folder, "gwg.csv"))
	if err != nil {
		t.Fatal(err)
	}
	changed := t.TempDir()
	row := strings.Index(string(text), "\ngibbs,1,,1,")
	if row < 0 {
		t.Fatal("gwg.csv has another form")
	}
	edited := string(text[:row]) + "\ngibbs,1,,0.9," + string(text[row+len("\ngibbs,1,,1,"):])
	if err := os.WriteFile(filepath.Join(changed, "gwg.csv"), []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	out, messages, code = runLab(t.Context(), "verify gwg --results "+changed)
	if code != 1 || messages != "lab: gwg differs from the stored result\n" ||
		!strings.Contains(out, "    gibbs: acceptance is 1, stored 0.9\n") {
		t.Errorf("a changed number: exit code %d, %q:\n%s", code, messages, out)
	}
	for line, want := range map[string]string{
		"verify nothing":                      `lab: "nothing" is no stored result: lab verify lists them: see --help`,
		"verify infilling":                    "lab: infilling needs the run of infill eval",
		"verify fhmm --results " + changed:    "lab: " + changed + " has no fhmm.csv",
		"verify gwg --results " + t.TempDir(): "has no results: name a folder",
	} {
		if _, messages, code := runLab(t.Context(), line); code == 0 || !strings.Contains(messages, want) {
			t.Errorf("%s: exit code %d, %q", line, code, messages)
		}
	}
	if out, _, _ := runLab(t.Context(), "verify"); !strings.Contains(out, "gwg: lab ising --samplers gibbs,") {
		t.Errorf("the list:\n%s", out)
	}
}

// TestVerdictsOfRuns: a row is judged by what its commands have written, and one
// whose results are missing says which command makes them.
func TestVerdictsOfRuns(t *testing.T) {
	dir := t.TempDir()
	_, messages, code := runLab(t.Context(), "ising --samplers gibbs,gwg:balance=sqrt,gwg:balance=1,gwg:gradient=none "+
		"--seed 2 -q -o "+filepath.Join(dir, "gwg"))
	if code != 0 {
		t.Fatal(messages)
	}
	out, messages, code := runLab(t.Context(), "verdicts --results "+dir)
	if code != 0 || messages != "" {
		t.Fatalf("exit code %d, %q", code, messages)
	}
	for _, want := range []string{
		"GWG algorithm 1, one slot by gradient: yes\n    gwg above gibbs: holds; ess differs by -",
		"GWG, FHMM, posterior of hidden chains, by steps: not run here\n    lab fhmm --chains 10",
		"3 distinct claims are tested: 3 hold",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

// TestStoredCommands: each stored result was made by the command that stands for it:
// its signature has the command's flags, given or by default.
func TestStoredCommands(t *testing.T) {
	all, err := papers.Read(filepath.Join("..", "..", "docs", "measured", "laboratory"))
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range papers.Runs() {
		if run.NotRun != "" {
			continue
		}
		cmd, given, err := newRoot(io.Discard, io.Discard).Find(append(strings.Fields(run.Command), "--seed", "1"))
		if err == nil {
			err = cmd.ParseFlags(given)
		}
		if err != nil {
			t.Errorf("%s: %v", run.Name, err)
			continue
		}
		signature := all[run.Name][0]["signature"]
		name := strings.TrimPrefix(cmd.CommandPath(), "lab ")
		if name == "lab" {
			name = "preset"
		}
		if !strings.HasPrefix(signature, "lab:"+name+"|") {
			t.Errorf("%s is stored of another command: %s", run.Name, signature)
		}
		said := map[string][]string{}
		for field := range strings.SplitSeq(signature, "|") {
			name, value, _ := strings.Cut(field, ":")
			said[name] = append(said[name], value)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if values, known := said[f.Name]; known && !slices.Contains(values, f.Value.String()) {
				t.Errorf("%s: --%s is %q, and %q in the stored result", run.Name, f.Name, f.Value, values)
			}
		})
	}
}
