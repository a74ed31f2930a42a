package lab

import (
	"errors"
	"strings"
	"testing"
)

// A target is written as samplers are.
func TestNewDistribution(t *testing.T) {
	d := opened(t, "potts:size=2x3,field=0.5/0/-0.5,coupling=0.3", 0)
	if got := d.String(); got != "potts, size 2x3, coupling 0.3, field 0.5,0,-0.5" {
		t.Error(got)
	}
	const machine = "rbm:data=none,visible=21,hidden=21,"
	for text, want := range map[string]string{
		"isng":                       `target: "isng" is not one of ising, potts, rbm, fhmm, mixture, contacts, table`,
		"":                           `target: "": a sampler is missing`,
		"ising,potts":                `target: "ising,potts" is not one of`,
		"ising:colour=red":           "target: ising has no colour",
		"ising:size=3x":              `size: "3x" is not a size as 5x5, or 5 for both sides, up to 65536 sites`,
		"ising:size=0":               `size: "0" is not a size`,
		"ising:size=1048576x1048576": `size: "1048576x1048576" is not a size`,
		"ising:coupling=x":           `coupling: "x" is not a finite number`,
		"ising:coupling=nan":         `coupling: "nan" is not a finite number`,
		"ising:field=inf":            `field: "inf" is not a finite number`,
		"ising:truth=guess":          `truth: "guess" is not one of auto, exact, run`,
		"ising:truth-sweeps=-1":      `truth-sweeps: "-1" is not a whole number from 0 to`,
		"ising:size=11,truth=exact": "truth: too large for exact means: a torus of 11 × 11 sites " +
			"with 2 categories has 2.05e+03 states of its shorter side: the transfer matrix takes at most 1024: " +
			"choose run",
		"potts:field=1/x":          `field: "1/x" is not finite numbers with commas between them`,
		"potts:field=0/nan":        `field: "0/nan" is not finite numbers`,
		"potts:states=0":           `states: "0" is not a whole number from 1 to 256`,
		"potts:states=2,field=1/2": "states: it excludes a field",
		"table:categories=3/2.5":   `categories: "3/2.5" is not whole numbers from 1 to 256 with commas between them`,
		"table:categories=3/0":     `categories: "3/0" is not whole numbers`,
		"table:categories=9/9/9/9/9/9/9/9": "categories: 9,9,9,9,9,9,9,9 give a table of 4.3e+07 states, " +
			"too large to keep with its gradients: take fewer or smaller slots",
		"table:scale=0":           `scale: "0" is not a finite number above 0`,
		"table:gradient-error=-1": `gradient-error: "-1" is not a finite number of 0 or more`,
		"table:terms=0":           `terms: "0" is not a whole number from 1 to`,
		"table:target-seed=-1":    `target-seed: "-1" is not a whole number of 0 or more`,
		"fhmm:keep=1":             "keep: noise 0.5, first 0.1, keep 1",
		"fhmm:factors=17":         `factors: "17" is not a whole number from 1 to 16`,
		"contacts:size=100x100":   "size: 10000 sites: there can be 2 to 512",
		"contacts:truth=exact":    "truth: too large for exact means: 9.5e+13 states: choose run",
		"rbm:data=mnist":          `data: "mnist" is not one of bars-and-stripes, none`,
		"rbm:reference=x":         `reference: "x" is not one of auto, exact, block-gibbs`,
		"rbm:hidden=0":            `hidden: "0" is not a whole number from 1 to 4096`,
		"rbm:side=1":              `side: "1" is not a whole number from 2 to 16`,
		"rbm:reference-samples=1": `reference-samples: "1" is not a whole number from 2 to 16384`,
		"rbm:learning-rate=0":     `learning-rate: "0" is not a finite number above 0`,
		machine + "truth=exact": "truth: too large for exact means: 21 visible and 21 hidden " +
			"units, and one side must have at most 20 to be summed over: choose run",
		machine + "truth-sweeps=10,reference=exact": "reference: there are no exact draws of this machine: choose " +
			"block-gibbs",
	} {
		var option *OptionError
		if _, err := newDistribution(t.Context(), text, 0); !errors.As(err, &option) ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	for _, k := range kinds() {
		if k.title == "" || k.help == "" {
			t.Errorf("%s has no description", k.name)
		}
	}
}
