package lab

import (
	"errors"
	"strings"
	"testing"
)

// A target is written as samplers are.
func TestNewProblem(t *testing.T) {
	p, err := NewProblem(t.Context(), "potts:size=2x3,field=0.5/0/-0.5,coupling=0.3", 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := described(p.Kind, p.Parameters); got != "potts, size 2x3, coupling 0.3, field 0.5,0,-0.5" {
		t.Error(got)
	}
	for text, want := range map[string]string{
		"isng":                             `target: "isng" is not one of ising, potts, rbm, table`,
		"":                                 `target: "": a sampler is missing`,
		"ising,potts":                      `target: "ising,potts" is not one of`,
		"ising:colour=red":                 "target: ising has no colour",
		"ising:size=3x":                    `size: "3x" is not a size as 5x5, or 5 for both sides`,
		"ising:coupling=x":                 `coupling: "x" is not a number`,
		"ising:coupling=nan":               "coupling: NaN is not a finite number",
		"ising:truth=guess":                `truth: "guess" is not one of auto, exact, run`,
		"ising:truth-sweeps=x":             `truth-sweeps: "x" is not a whole number`,
		"potts:field=1/x":                  `field: "1/x" is not numbers with commas between them`,
		"potts:states=0":                   `states: "0" is not a whole number from 1 to 256`,
		"potts:states=2,field=1/2":         "states: it excludes a field",
		"table:categories=3/2.5":           `categories: "3/2.5" is not whole numbers with commas between them`,
		"table:target-seed=-1":             `target-seed: "-1" is not a whole number from 0`,
		"rbm:reference=x":                  `reference: "x" is not one of auto, exact, block-gibbs`,
		"rbm:data=mnist":                   `data: "mnist" is not one of bars-and-stripes, none`,
		"table:categories=9/9/9/9/9/9/9/9": "categories: 9,9,9,9,9,9,9,9 give a table of 4.3e+07 states",
	} {
		var option *OptionError
		if _, err := NewProblem(t.Context(), text, 0); !errors.As(err, &option) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	for _, k := range Kinds() {
		if k.Title == "" || k.Help == "" {
			t.Errorf("%s has no description", k.Name)
		}
	}
}
