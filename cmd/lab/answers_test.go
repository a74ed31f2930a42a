package main

import (
	"strings"
	"testing"

	"infill/infill"
)

// Two blanks are enumerated: auto has no error there, and chains of equal error cost more.
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
}

// Of three blanks intervals hold, and the likeliest fills are listed, those of blanks that
// copy each other too.
func TestCoverage(t *testing.T) {
	var out, messages strings.Builder
	for _, c := range []struct{ joint, candidates, fills, template string }{
		{"pll", "19", "6859", "he had not [MASK] the [MASK] since the [MASK] ."},
		{"chain", "32", "32768", "they were [MASK] and [MASK] at the same [MASK] ."},
	} {
		out.Reset()
		if code := run(t.Context(), []string{"coverage", "--joint", c.joint, "--candidates", c.candidates, "--seeds", "20", c.template}, &out, &messages); code != 0 {
			t.Fatalf("exit %d: %s", code, messages.String())
		}
		for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n")[2:] {
			cells := strings.Split(line, " | ")
			if len(cells) != 11 || cells[3] != c.fills || strings.HasPrefix(cells[5], "0.0") || cells[8] != "0" || cells[9] != "0" {
				t.Errorf("coverage: %s", line)
			}
		}
	}
	if code := run(t.Context(), []string{"coverage", "--candidates", "3", "a [MASK] [MASK]"}, &out, &messages); code == 0 || !strings.Contains(messages.String(), "give more blanks") {
		t.Errorf("two blanks: %s", messages.String())
	}
}
