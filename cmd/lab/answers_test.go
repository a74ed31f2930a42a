package main

import (
	"strings"
	"testing"

	"infill/infill"
)

// Two blanks are enumerated: auto has no error there, and chains of equal error cost
// more. Of three blanks intervals hold.
func TestCompareAnswers(t *testing.T) {
	model, err := openLanguage(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	c, err := model.compareAnswers(t.Context(), "they were [MASK] and [MASK] at the same time .", infill.JointPLL, 1)
	if err != nil {
		t.Fatal(err)
	}
	if c.method != infill.MethodExact || c.reference != infill.MethodExact || c.auto.error > 1e-9 || !(c.chains.error > 0.01) || !(c.auto.rows < c.chains.at(0.05).rows) {
		t.Errorf("%+v", c)
	}
	var out strings.Builder
	if err := model.coverage(t.Context(), &out, "he had not [MASK] the [MASK] since the [MASK] .", infill.JointPLL, 20, 20); err != nil {
		t.Fatal(err)
	}
	cells := strings.Split(out.String(), " | ")
	if len(cells) != 11 || cells[3] != "8000" || cells[4] == infill.MethodExact {
		t.Fatalf("coverage: %s", out.String())
	}
	if strings.HasPrefix(cells[6], "0.0") || cells[9] != "0" {
		t.Errorf("intervals do not hold: %s", out.String())
	}
}
