// Package labtest has what tests of the laboratory share.
package labtest

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"infill/cmd/lab/internal/lab"
	"infill/internal/check"
	"infill/internal/targets"
	"infill/samplers"
)

// Apart are couplings without those within blocks of sites.
func Apart(r *rand.Rand, n, block int) []float64 {
	w := lab.SymmetricNormals(n, 0.5, r)
	for i := range w {
		if i/n/block == i%n/block {
			w[i] = 0
		}
	}
	return w
}

// Study is the study of a name, with flags and their values as settings.
func Study(t *testing.T, list []*lab.Study, name string, settings ...string) *lab.Study {
	t.Helper()
	at := slices.IndexFunc(list, func(s *lab.Study) bool { return s.Name == name })
	if at < 0 {
		t.Fatalf("no study %s", name)
	}
	for pair := range slices.Chunk(settings, 2) {
		if err := list[at].Flags.Set(pair[0], pair[1]); err != nil {
			t.Fatalf("%s: %v", pair[0], err)
		}
	}
	return list[at]
}

// Studied is the report of a study that runs without an error.
func Studied(t *testing.T, s *lab.Study, o lab.StudyOptions) *lab.StudyReport {
	t.Helper()
	return check.Must(s.Run(t.Context(), o))(t)
}

// Bare is a bench without a folder.
func Bare(seed uint64) *lab.Bench {
	return &lab.Bench{Seed: seed, Repeat: "1", Observe: func(int, int) {}, Start: lab.Clock(),
		Result: &lab.CellResult{}}
}

// Saved is the path of a new file.
func Saved(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	check.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Near fails unless two numbers agree to a tolerance.
func Near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: got %v, want %v within %v", what, got, want, tolerance)
	}
}

// Text is a value as JSON.
func Text(t *testing.T, v any) string {
	t.Helper()
	b := check.Must(json.MarshalIndent(v, "", " "))(t)
	return string(b)
}

// Enumerated lists the states of a target.
func Enumerated(t *testing.T, target samplers.Target) *targets.Enumeration {
	t.Helper()
	return check.Must(targets.Enumerate(t.Context(), target))(t)
}
