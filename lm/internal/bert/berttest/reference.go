package berttest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"infill/models"
)

// Reference is a bundle of ../testdata with what the family's reference implementation computes from it in double
// precision; how, generate_reference.py there says.
type Reference struct {
	Name   string // of the folder
	Bundle *models.Bundle
	MadeBy string `json:"made_by"`
	Mask   int
	Cases  []ReferenceCase
}

// ReferenceCase is a text and the rows in which one of its slots is masked.
type ReferenceCase struct {
	IDs   []int
	Slots []int
	// LogProbability is [slots × vocabulary], nats: row i masks slot i.
	LogProbability [][]float64 `json:"log_probability"`
	// Gradient is [slots × slots × width]: of row i's log-probability of slot
	// i's token, by the word embedding that enters at slot j.
	Gradient [][][]float64
}

// References reads the folders of dir, which is this package's ../testdata.
func References(t testing.TB, dir string) []Reference {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "reference.json"))
	must(t, err)
	if len(files) == 0 {
		t.Fatalf("no reference values in %s", dir)
	}
	var list []Reference
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		r := Reference{Name: filepath.Base(filepath.Dir(file))}
		must(t, json.Unmarshal(data, &r))
		r.Bundle, err = models.Open(filepath.Dir(file))
		must(t, err)
		list = append(list, r)
	}
	return list
}

// Embeddings are the word embeddings in double precision, [vocabulary × width].
func (r Reference) Embeddings(t testing.TB) []float64 {
	t.Helper()
	single, err := r.Bundle.Embeddings()
	must(t, err)
	double := make([]float64, len(single))
	for i, x := range single {
		double[i] = float64(x)
	}
	return double
}
