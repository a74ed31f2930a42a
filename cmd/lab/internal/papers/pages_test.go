package papers

import (
	"bytes"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the blocks of the pages again")

var docs = filepath.Join("..", "..", "..", "..", "docs")

func stored(t *testing.T) map[string]Results {
	t.Helper()
	all, err := Read(filepath.Join(docs, "measured", "laboratory"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPages: the tables and the verdicts of the pages are those of the stored
// results.
func TestPages(t *testing.T) {
	all := stored(t)
	for _, page := range []string{"measured/laboratory.md", "reference/laboratory.md", "measured/calibration.md",
		"measured/models.md", "measured/proofs.md", "measured/samplers.md", "measured/evaluation.md",
		"../models/small-uncased/README.md"} {
		path := filepath.Join(docs, filepath.FromSlash(page))
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(block.FindAllString(string(text), -1)) == 0 {
			t.Errorf("%s has no block of results", page)
		}
		want, err := Fill(string(text), all)
		if err != nil {
			t.Errorf("%s: %v", page, err)
		}
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if want != string(text) {
			t.Errorf("%s says otherwise than the results (-page +results):\n%s", page, cmp.Diff(string(text), want))
		}
	}
}

// TestLines: no line of the laboratory's page is too long to be read.
func TestLines(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(docs, "reference", "laboratory.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if n := utf8.RuneCountInString(line); n > 900 {
			t.Errorf("line %d has %d characters: %.60s...", i+1, n, line)
		}
	}
}

// TestClaimTable: the file of claims has what the stored results say.
func TestClaimTable(t *testing.T) {
	lines, err := ClaimTable(stored(t))
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	err = csv.NewWriter(&want).WriteAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(docs, "measured", "claims.csv")
	if *update {
		err = os.WriteFile(path, want.Bytes(), 0o644)
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s says otherwise than the results (-file +results), %v:\n%s", path, err,
			cmp.Diff(string(got), want.String()))
	}
}

// TestScores: the scores that infill eval printed of a run, in evaluation.md, are
// those of the run's stored sentences, and those of the file of claims.
func TestScores(t *testing.T) {
	columns := []string{"self-bleu", "self-2", "self-3", "tbc-2", "tbc-3", "wt103-2", "wt103-3", "bleu"}
	text, err := os.ReadFile(filepath.Join(docs, "measured", "evaluation.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(text), "\n## Scores\n")
	lines, err := ClaimTable(stored(t))
	if err != nil {
		t.Fatal(err)
	}
	claimed := map[string]string{} // a cell's number, by its name
	for _, line := range lines {
		claimed[line[5]], claimed[line[6]] = line[7], line[8]
	}
	results := stored(t)["infilling"]
	for _, sampler := range results.values("sampler") {
		_, row, found := strings.Cut(page, "\n| "+sampler+" | ")
		if !found {
			t.Fatalf("the page has no row of %s", sampler)
		}
		cells := strings.Split(row, " | ")
		for i, column := range columns {
			e, err := results.where(map[string]string{"sampler": sampler}).number(column)
			if err != nil {
				t.Fatal(err)
			}
			if got, _, _ := strings.Cut(cells[i], " ("); got != fmt.Sprintf("%.2f", e.Mean) {
				t.Errorf("%s of %s: %s on the page, and %.2f in the results", column, sampler, got, e.Mean)
			}
			name := Cell{Results: "infilling", Number: column, Where: map[string]string{"sampler": sampler}}.String()
			if claimed[name] != fmt.Sprintf("%.4g", e.Mean) {
				t.Errorf("%s: %s among the claims, and %.4g in the results", name, claimed[name], e.Mean)
			}
		}
	}
}

// Each row has either claims or the reason why it has none, and a test that it
// names exists.
func TestRows(t *testing.T) {
	for _, row := range Rows() {
		reasons := 0
		for _, given := range []bool{len(row.Claims) > 0, len(row.Exact) > 0, row.Test != "", row.Without != ""} {
			if given {
				reasons++
			}
		}
		if reasons != 1 {
			t.Errorf("%s, %s: %d kinds of reasons for the verdict", row.Of, row.Shows, reasons)
		}
		if row.Test == "" {
			continue
		}
		folder, name, _ := strings.Cut(row.Test, " ")
		paths, err := filepath.Glob(filepath.Join(docs, "..", folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			found = found || regexp.MustCompile(`(?m)^func `+name+`\(`).Match(text)
		}
		if !found {
			t.Errorf("%s: no test %s in %s", row.Of, name, folder)
		}
	}
}

// TestStored: each stored result has a run, and each run its result unless it says
// why it has not been run. A result names the commit of its program.
func TestStored(t *testing.T) {
	all := stored(t)
	for _, run := range Runs() {
		if _, found := all[run.Name]; found != (run.NotRun == "") {
			t.Errorf("%s: stored %v, and not run because of %q", run.Name, found, run.NotRun)
		}
	}
	commit := regexp.MustCompile(`\|version:[0-9.]+(-dev)?\+[0-9a-f]{12}$`)
	for name, results := range all {
		if _, known := RunOf(name); !known {
			t.Errorf("no run makes %s", name)
		}
		for i, row := range results {
			if !commit.MatchString(row["signature"]) {
				t.Errorf("%s, row %d: signature %q", name, i+1, row["signature"])
				break
			}
		}
	}
}
