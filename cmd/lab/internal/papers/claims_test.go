package papers

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestNumbers: some numbers, read from the papers by eye, and the count of each
// table.
func TestNumbers(t *testing.T) {
	all := Numbers()
	for p, want := range map[Place]Printed{
		{"DLP", "1", "Omniglot", "EBM (DULA)"}:                          {Value: -145.68},
		{"DLP", "2", "News", "test RMSE, DMALA"}:                        {Value: 0.0943, Error: 0.0009},
		{"DLP", "2", "COMPAS", "training log-likelihood, Gibbs"}:        {Value: -0.4063, Error: 0.0016},
		{"DLP", "3", "BERT-large, DULA", "unique 3-grams, TBC"}:         {Value: 42.14},
		{"DLP", "3", "BERT-base, Gibbs", "corpus BLEU"}:                 {Value: 23.82},
		{"DLP", "4", "Adult", "training log-likelihood, batchsize=500"}: {Value: -0.3233, Error: 0.0009},
		{"GWG", "deep energies", "Omniglot", "DBN"}:                     {Value: -100.78},
		{"ARM", "2", "RELAX", "two layers"}:                             {Value: 100.9, Bound: true},
		{"ARM", "2", "ARM", "two layers"}:                               {Value: 96.7, Error: 0.3},
		{"ARM", "3", "Concrete", "nonlinear"}:                           {Value: 116.7},
		{"ARM", "4", "SF", "lower half of MNIST"}:                       {Value: 72},
	} {
		if got, found := all[p]; !found || got != want {
			t.Errorf("%s: %+v, want %+v", p, got, want)
		}
	}
	counts := map[string]int{}
	for p := range all {
		counts[p.Document+" "+p.Table]++
	}
	want := map[string]int{"DLP 1": 20, "DLP 2": 32, "DLP 3": 64, "DLP 4": 32, "GWG deep energies": 26, "ARM 2": 21,
		"ARM 3": 18, "ARM 4": 7}
	if !maps.Equal(counts, want) {
		t.Errorf("%v, want %v", counts, want)
	}
	for text, want := range map[string]string{
		"h,h,h,h,h,h,h\nDLP,1,a,b,<,1,\n":                 `"<" is not`,
		"h,h,h,h,h,h,h\nDLP,1,a,b,=,x,\n":                 "invalid syntax",
		"h,h,h,h,h,h,h\nDLP,1,a,b,=,1,\nDLP,1,a,b,=,2,\n": "is there twice",
	} {
		if _, err := readNumbers([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// TestOrder: a difference counts above 1.96 of its errors, and bounds have none.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		a, b Place
		want Order
	}{
		{Place{"ARM", "2", "ARM", "linear"}, Place{"ARM", "2", "REBAR", "linear"}, Below},         // 0.5 > 0.196
		{Place{"ARM", "2", "ARM", "linear"}, Place{"ARM", "2", "Concrete", "linear"}, Even},       // 0.1 < 0.196
		{Place{"ARM", "2", "ARM", "linear"}, Place{"ARM", "2", "MuProp", "linear"}, Bounded},      //
		{Place{"ARM", "2", "ARM", "two layers"}, Place{"ARM", "2", "REBAR", "two layers"}, Above}, //
		{Place{"ARM", "2", "ARM", "nonlinear"}, Place{"ARM", "2", "WS", "nonlinear"}, Missing},    //
	} {
		if got := order(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

// TestClaims: each number of the papers is judged by a claim, or is named as not
// judged with its reason; each cell that a claim names is in the papers, or the
// paper leaves it out, as its claim says.
func TestClaims(t *testing.T) {
	all := Numbers()
	judged := map[Place]bool{}
	for _, row := range Rows() {
		for _, c := range row.Left { // the row has the reason
			for _, set := range c.Sets {
				judged[set.Low], judged[set.High] = true, true
			}
		}
		for _, c := range row.Claims {
			if c.Place == "" {
				t.Errorf("%s, %s: %s has no place in the paper", row.Of, row.Shows, c.Text)
			}
			if !c.Stated && len(c.Sets) == 0 {
				t.Errorf("%s, %s: %s has neither words nor cells", row.Of, row.Shows, c.Text)
			}
			so, opposite, _ := c.paperSays()
			known := 0
			for _, set := range c.Sets {
				for _, p := range []Place{set.Low, set.High} {
					if _, found := all[p]; found {
						judged[p] = true
						known++
					}
				}
			}
			if len(c.Sets) > 0 && known < 2 {
				t.Errorf("%s, %s: %s names no two cells of the paper", row.Of, row.Shows, c.Text)
			}
			text, directed := c.inPaper()
			if !c.Stated && directed != (len(opposite) == 0 && len(so) > 0) {
				t.Errorf("%s: %v, but %d cells for it and %d against", text, directed, len(so), len(opposite))
			}
			if c.Stated && len(opposite) > 0 && !strings.Contains(text, "opposite") {
				t.Errorf("%s: the cells contradict it, and the row is silent", c.Text)
			}
			for _, name := range c.results() {
				if _, known := RunOf(name); !known {
					t.Errorf("%s, %s: no run makes %s", row.Of, row.Shows, name)
				}
			}
		}
	}
	for p := range all {
		at := slices.IndexFunc(Claims().Numbers, func(n NotJudged) bool {
			return n.Place == p.Document+" "+p.Table && (n.Says == p.Row || n.Says == p.Column)
		})
		if !judged[p] && at < 0 {
			t.Errorf("%s is neither judged nor named as not judged", p)
		}
	}
}

// TestReadClaims: a claim is a line of the file, and a wrong one is refused.
func TestReadClaims(t *testing.T) {
	file := func(lines ...string) []byte {
		return []byte("sections:\n- section: S\n  rows:\n  - shows: R\n    statements:\n    - says: 7.1\n      " +
			strings.Join(lines, "\n      "))
	}
	d, err := readClaims(file("number: x u", "where: [steps=1, steps=5]", "claims:",
		"- gwg-x:radius=4 below gibbs dmala:step-size=0.4", "- half as much = a within 1.25 times 0.5 of b"))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, c := range d.Sections[0].Rows[0].Claims {
		texts = append(texts, c.Text)
	}
	want := []string{"gwg-4 below gibbs (steps 1)", "gwg-4 below dmala (steps 1)", "gwg-4 below gibbs (steps 5)",
		"gwg-4 below dmala (steps 5)", "half as much (steps 1)", "half as much (steps 5)"}
	if !slices.Equal(texts, want) {
		t.Errorf("%q, want %q", texts, want)
	}
	ratio := d.Sections[0].Rows[0].Claims[5]
	if ratio.Low.String() != "x u sampler=a;steps=5" || !ratio.Low.Log || ratio.Margin != math.Log(1.25) ||
		ratio.Shift != math.Log(0.5) {
		t.Errorf("%+v", ratio)
	}
	for want, text := range map[string][]byte{
		`S, R: 7.1: "a beside b" is not A below B`:       file("claims: [a beside b]"),
		`"a within much of b": strconv.ParseFloat: `:     file("claims: [a within much of b]"),
		`"a below b c": words of its own are for one`:    file("claims: [first = a below b c]"),
		`cells "DLP|1" are not DOCUMENT|TABLE|ROW|COLUM`: file("claims: [a below b]", "sets: [s]", "cells: DLP|1"),
		`method "ARM" is not NAME = LABEL`:               file("methods: [ARM]"),
		`unknown field "numbr"`:                          file("numbr: x u"),
	} {
		if _, err := readClaims(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

// TestInPaper: what the papers have, by their own cells.
func TestInPaper(t *testing.T) {
	texts := map[string]string{}
	for _, row := range Rows() {
		texts[row.Of+", "+row.Shows] = row.paper()
	}
	for _, want := range []string{
		"no order of ARM and REBAR: below in OMNIGLOT, above in MNIST", // two layers: 95.4 is below 96.7
		"no order of Gibbs and DULA: below in Static MNIST, Dynamic MNIST, Caltech Silhouettes, above in Omniglot",
		"ARM below NVIL: MNIST, OMNIGLOT",
		"VAE (Conv) below GWG, but its table has the opposite: Dynamic MNIST",
		"self-BLEU of Gibbs 86.84, GWG 81.97",
	} {
		if !slices.ContainsFunc(slices.Collect(maps.Values(texts)), func(s string) bool {
			return strings.Contains(s,
				want)
		}) {
			t.Errorf("no row says %q", want)
		}
	}
}
