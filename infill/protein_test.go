package infill

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// openProteins opens a small ESM with random weights.
func openProteins(t *testing.T) *Filler {
	t.Helper()
	f, err := Open(OpenOptions{Model: "../lm/internal/bert/testdata/esm"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestProteinSites: three sites hold 20³ fills, and the likeliest are the likeliest of all.
func TestProteinSites(t *testing.T) {
	f := openProteins(t)
	const template = "MKT<mask>LV<mask>A<mask>"
	o := DefaultOptions()
	o.Top = 12
	r := fill(t, f, template, o)
	plan, err := f.Plan(Request{Template: template, Options: o})
	if err != nil {
		t.Fatal(err)
	}
	layout := plan.layouts[0]
	var rows int64
	model, err := f.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := f.newLaw(t.Context(), model, layout, 1, &rows)
	if err != nil {
		t.Fatal(err)
	}
	law, err := text.law(o.Order, 0)
	if err != nil {
		t.Fatal(err)
	}
	// A protein that is longer than the model takes is read around the blank.
	if long := fill(t, f, strings.Repeat("MKTAYIAKQRLVG", 4)+"<mask>"+strings.Repeat("MKTAYIAKQRLVG", 4),
		DefaultOptions()); len(long.Fills) != 5 || len(long.Windows) != 1 || long.Windows[0].Tokens < 18 {
		t.Errorf("%d fills, windows %+v", len(long.Fills), long.Windows)
	}
	states := [][]int{nil}
	for _, v := range layout.variables {
		var longer [][]int
		for _, state := range states {
			for _, token := range v.support {
				longer = append(longer, append(slices.Clone(state), token))
			}
		}
		states = longer
	}
	logp, err := law.LogProbability(t.Context(), states)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(logp)
	slices.Reverse(logp)
	if len(logp) != 8000 || !*r.Proven || len(r.Fills) != 12 {
		t.Fatalf("%d fills in all, %d found, proven %v", len(logp), len(r.Fills), *r.Proven)
	}
	for i, fill := range r.Fills {
		if math.Abs(fill.LogLikelihood-logp[i]) > 1e-6 {
			t.Errorf("fill %d has log-likelihood %v, want %v", i+1, fill.LogLikelihood, logp[i])
		}
	}
}

// TestMutants holds the scores of variants against the reference implementation's, in double precision.
func TestMutants(t *testing.T) {
	f := openProteins(t)
	content, err := os.ReadFile("../lm/internal/bert/testdata/esm/mutants.json")
	if err != nil {
		t.Fatal(err)
	}
	var stored struct {
		Text  string
		Rated []map[string]any
	}
	if err := json.Unmarshal(content, &stored); err != nil {
		t.Fatal(err)
	}
	var mutants []string
	for _, rated := range stored.Rated {
		mutants = append(mutants, rated["mutant"].(string))
	}
	for _, method := range MutantMethods() {
		scores, err := f.Mutants(t.Context(), stored.Text, mutants, method)
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range scores {
			if want := stored.Rated[i][string(method)].(float64); !(math.Abs(got-want) < 1e-4) {
				t.Errorf("%s of %s is %v, want %v", method, mutants[i], got, want)
			}
		}
	}
	for mutant, says := range map[string]string{
		"A5G": "the wild type has Y at place 5", "A4G:A4C": "names place 4 twice",
		"A40G": "the wild type has 13 residues",
		"4G":   "is not like A24G", "A4J": "the model has no residue J", "A4G,K2R": "is not like A24G or A24G:K30R",
		"": "is not like A24G",
	} {
		if _, err := f.Mutants(t.Context(), stored.Text, []string{mutant}, MaskedMarginals); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v does not say %q", mutant, err, says)
		}
	}
	if _, err := f.Mutants(t.Context(), strings.Repeat("A", 30), []string{"A4G"}, MaskedMarginals); err == nil ||
		!strings.Contains(err.Error(), "the model takes 18") {
		t.Errorf("error %v of a protein that is too long", err)
	}
	if _, err := openMini(t).Mutants(t.Context(), "he had told me", []string{"A4G"}, MaskedMarginals); err == nil ||
		!strings.Contains(err.Error(), "take a model of proteins") {
		t.Errorf("error %v of a model of words", err)
	}
}
