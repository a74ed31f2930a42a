package chains

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/internal/check"
	"infill/internal/targets"
	"infill/samplers"
)

func isingTorus(rows, columns int, coupling, field float64) torus {
	return torus{lab.Size{Rows: rows, Columns: columns},
		[][]float64{{2 * coupling, -2 * coupling}, {-2 * coupling, 2 * coupling}},
		[]float64{-field, field}}
}

// TestTransferMatrix: equal to listing every state, for long and short sides.
func TestTransferMatrix(t *testing.T) {
	agree := func(name string, target samplers.Target, lattice torus) {
		d := &distribution{Target: target, observables: indicators(target.Categories())}
		_, listed, err := d.enumerate(t.Context())
		check.OK(t, err)
		law := check.Must(lattice.transferMatrix())(t)
		for i, p := range listed {
			labtest.Near(t, fmt.Sprintf("%s %v: probability %d", name, lattice.size, i), law[i%len(law)], p, 1e-11)
		}
	}
	for _, at := range [][2]int{{3, 3}, {4, 3}, {3, 5}, {4, 4}} {
		for _, parameters := range [][2]float64{{0.1, 0.2}, {-0.3, 0.5}, {0.5, -0.1}, {0, 1}} {
			target := check.Must(targets.NewIsing(at[0], at[1], parameters[0], parameters[1]))(t)
			agree("ising", target, isingTorus(at[0], at[1], parameters[0], parameters[1]))
		}
	}
	field := []float64{0.3, -0.2, 0.1}
	edge := [][]float64{{0.7, 0, 0}, {0, 0.7, 0}, {0, 0, 0.7}}
	for _, at := range [][2]int{{3, 3}, {3, 4}} {
		target := check.Must(pottsTorus(lab.Size{Rows: at[0], Columns: at[1]}, 0.7, field))(t)
		agree("potts", target, torus{lab.Size{Rows: at[0], Columns: at[1]}, edge, field})
	}
}

// TestSymmetry: without a field the means are known on a lattice of any size,
// and are those of the transfer matrix on a small one.
func TestSymmetry(t *testing.T) {
	ising := opened(t, "ising:size=40x40,coupling=0.3,field=0")
	law := check.Must(isingTorus(3, 3, 0.3, 0).transferMatrix())(t)
	labtest.Near(t, "mean spin", ising.truth.means[999], law[1]-law[0], 1e-12)
	potts := opened(t, "potts:size=30x30,coupling=1,field=2/2/2")
	law = check.Must(torus{lab.Size{Rows: 3, Columns: 3}, [][]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
		[]float64{2, 2, 2}}.transferMatrix())(t)
	labtest.Near(t, "share of a state", potts.truth.means[999], law[1], 1e-12)
}

// TestEnumerate: energies so far apart, and rising, that sums of exponentials
// overflow.
func TestEnumerate(t *testing.T) {
	table := check.Must(targets.NewTable([]int{2, 3}, samplers.Streams(1, "", 1)[0], targets.TableOptions{}))(t)
	d := &distribution{Target: table, observables: indicators(table.Categories())}
	want := make([]float64, 5)
	for i, state := range [][]int{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}} {
		table.Set(state, 900+math.Log(float64(i+1)))
		want[state[0]] += float64(i+1) / 21
		want[2+state[1]] += float64(i+1) / 21
	}
	_, got, err := d.enumerate(t.Context())
	check.OK(t, err)
	for i := range want {
		labtest.Near(t, fmt.Sprintf("probability %d", i), got[i], want[i], 1e-12)
	}
	d.Target, _ = targets.NewIsing(5, 5, 0, 0)
	if _, _, err := d.enumerate(t.Context()); err == nil {
		t.Error("2^25 states were listed")
	}
}

// TestSolved: summing over either side gives what listing the visible states
// gives, and draws have those means.
func TestSolved(t *testing.T) {
	random := func(visible, hidden int) *targets.RBM {
		return check.Must(targets.NewRandomRBM(visible, hidden, 1, samplers.Streams(3, "machine", 1)[0]))(t)
	}
	for _, at := range [][2]int{{7, 3}, {3, 7}, {4, 4}, {1, 1}} {
		m := random(at[0], at[1])
		e := labtest.Enumerated(t, m)
		s := check.Must(solve(t.Context(), m))(t)
		labtest.Near(t, "log normaliser", s.all.LogNormaliser, e.LogNormaliser, 1e-10)
		const n = 20000
		states := s.draw(n, samplers.Streams(4, "draws", 1)[0])
		for j, p := range s.means {
			want := e.Mean(func(state []int) float64 { return float64(state[j]) })
			labtest.Near(t, fmt.Sprintf("mean of unit %d", j), p, want, 1e-12)
			on := 0
			for i := j; i < len(states); i += len(s.means) {
				on += states[i]
			}
			labtest.Near(t, fmt.Sprintf("drawn mean of unit %d", j), float64(on)/n, p, 5*math.Sqrt(p*(1-p)/n)+1e-9)
		}
	}
	if _, err := solve(t.Context(), random(21, 22)); !errors.Is(err, errTooLarge) {
		t.Errorf("2^21 states were summed: %v", err)
	}
}

// TestStart: an independent start follows the field alone.
func TestStart(t *testing.T) {
	p := opened(t, "potts:size=1x2,coupling=3,field=0/"+lab.Decimal(math.Log(3)))
	const chains = 4000
	positions := check.Must(p.positions("independent", samplers.Streams(1, "", chains)))(t)
	ones := 0
	for _, v := range positions {
		ones += v
	}
	labtest.Near(t, "share of state 1", float64(ones)/(2*chains), 0.75, 5*math.Sqrt(0.75*0.25/(2*chains)))

	table := opened(t, "table")
	if _, err := table.positions("independent", nil); err == nil || !strings.Contains(err.Error(), "choose uniform") {
		t.Errorf("a table has an independent law: %v", err)
	}
}

// A target is written as samplers are.
func TestNewDistribution(t *testing.T) {
	d := opened(t, "potts:size=2x3,field=0.5/0/-0.5,coupling=0.3")
	if got := d.String(); got != "potts, size 2x3, coupling 0.3, field 0.5,0,-0.5" {
		t.Error(got)
	}
	for text, want := range map[string]string{
		"isng":                       `target: "isng" is not one of ising, potts, rbm, fhmm, table`,
		"":                           `target: "": a sampler is missing`,
		"ising,potts":                `target: "ising,potts" is not one of`,
		"ising:colour=red":           "target: ising has no colour",
		"ising:size=3x":              `size: "3x" is not a size as 5x5, or 5 for both sides, up to 65536 sites`,
		"ising:size=0":               `size: "0" is not a size`,
		"ising:size=1048576x1048576": `size: "1048576x1048576" is not a size`,
		"ising:coupling=x":           `coupling: "x" is not a finite number`,
		"ising:coupling=nan":         `coupling: "nan" is not a finite number`,
		"ising:field=inf":            `field: "inf" is not a finite number`,
		"potts:field=1/x":            `field: "1/x" is not finite numbers with commas between them`,
		"potts:field=0/nan":          `field: "0/nan" is not finite numbers`,
		"table:categories=3/2.5":     `categories: "3/2.5" is not whole numbers from 1 to 256 with commas between them`,
		"table:categories=3/0":       `categories: "3/0" is not whole numbers`,
		"table:categories=9/9/9/9/9/9/9/9": "categories: 9,9,9,9,9,9,9,9 give a table of 4.3e+07 states, " +
			"too large to keep with its gradients: take fewer or smaller slots",
		"table:scale=0":           `scale: "0" is not a finite number above 0`,
		"table:gradient-error=-1": `gradient-error: "-1" is not a finite number of 0 or more`,
		"table:target-seed=-1":    `target-seed: "-1" is not a whole number of 0 or more`,
		"fhmm:keep=1":             "keep: noise 0.5, first 0.1, keep 1",
		"fhmm:factors=17":         `factors: "17" is not a whole number from 1 to 16`,
		"rbm:data=mnist":          "data: mnist: stat mnist: no such file",
		"rbm:reference=x":         `reference: "x" is not one of auto, block-gibbs`,
		"rbm:reference-samples=1": `reference-samples: "1" is not a whole number from 2 to 16384`,
	} {
		var option *lab.OptionError
		if _, err := NewDistribution(t.Context(), &lab.Inputs{}, text, 0); !errors.As(err, &option) ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	for _, k := range kinds() {
		if s := newComparison(k); s.Short == "" || len(s.Help) != 2 {
			t.Errorf("%s has no description", k.name)
		}
	}
}

const smallTraining = "rbm:side=3,hidden=10,divergence-steps=5,batch=14,learning-rate=0.05,"

// TestTraining: contrastive divergence moves the probability to the patterns,
// by the exact sum, and repeats with its seed.
func TestTraining(t *testing.T) {
	before, after := opened(t, smallTraining+"updates=1"), opened(t, smallTraining+"updates=400")
	again, other := opened(t, smallTraining+"updates=400"), opened(t, smallTraining+"updates=400,target-seed=2")
	judge := func(d *distribution) (mass, logLikelihood float64) {
		e := labtest.Enumerated(t, d.Target)
		for _, pattern := range lab.BarsAndStripes(3) {
			p := e.Probability[e.Index(pattern)]
			mass, logLikelihood = mass+p, logLikelihood+math.Log(p)/14
		}
		return mass, logLikelihood
	}
	// Untrained, the 14 patterns are 14 of 512 states.
	mass, logLikelihood := judge(before)
	labtest.Near(t, "mass before", mass, 14.0/512, 0.02)
	if mass, l := judge(after); !(mass > 0.5) || !(l > logLikelihood+2) || l > -math.Log(14) {
		t.Errorf("trained: mass %v, log-likelihood %v (before: %v)", mass, l, logLikelihood)
	}
	if !slices.Equal(after.truth.means, again.truth.means) {
		t.Error("two trainings of one seed differ")
	}
	if slices.Equal(after.truth.means, other.truth.means) {
		t.Error("two seeds train one machine")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := NewDistribution(cancelled, &lab.Inputs{}, smallTraining+"updates=400", 0)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled training: %v", err)
	}
}

// TestReference: exact draws and long block Gibbs stand for the same law; the
// chains of block Gibbs come down to the floor, a chain that stands does not.
func TestReference(t *testing.T) {
	p := opened(t, smallTraining+"updates=400,reference=block-gibbs,reference-samples=300,reference-steps=200")
	run := compared(t, p, "rbm-gibbs,dula:step-size=0.05",
		func(o *compareOptions) { o.Chains, o.Steps, o.Initial = 40, 100, "uniform" })
	floor, deviation, err := p.reference.floor(40)
	check.OK(t, err)
	if p.reference.method != "block-gibbs" || p.reference.samples != 300 ||
		!slices.ContainsFunc(p.parameters, func(q lab.Label) bool {
			return q.Name == "reference" && q.Value == "block-gibbs,samples:300,steps:200"
		}) {
		t.Errorf("reference %+v of %v", p.reference, p.parameters)
	}
	// Two sets of 300 draws of one law are closer than 40 draws to 300.
	draws := check.Must(solve(t.Context(), p.Target.(*targets.RBM)))(t).draw(300, samplers.Streams(1, "exact", 1)[0])
	if a, _ := p.reference.discrepancy(draws); !(a < floor) {
		t.Errorf("block Gibbs from exact draws: %v; floor %v", a, floor)
	}
	for i, c := range run.Cells {
		points := c.Curves[mmd]
		above := (math.Exp(points[len(points)-1].Y) - floor) / deviation
		if i == 0 && !(math.Abs(above) < 3) {
			t.Errorf("%v ends %v deviations above the floor", c.Labels, above)
		}
		if i == 1 && !(above > 3) {
			t.Errorf("%v, which hardly moves, ends %v deviations above the floor", c.Labels, above)
		}
	}
	if !(floor > 0) {
		t.Errorf("floor %v", floor)
	}
}

// TestLargeMachine: where neither side can be summed over, there are no exact
// means, and the reference is block Gibbs.
func TestLargeMachine(t *testing.T) {
	p := opened(t, "rbm:data=none,visible=22,hidden=21,reference-steps=20,reference-samples=50")
	if !strings.HasPrefix(p.truth.method, "none, and no log RMSE: too large") || p.truth.means != nil ||
		p.reference.method != "block-gibbs" || p.independent != nil {
		t.Errorf("truth %+v, reference %+v, a start by %v", p.truth, p.reference, p.independent)
	}
	run := compared(t, p, "gwg", func(o *compareOptions) { o.Steps, o.Initial = 20, "uniform" })
	if _, known := run.Cells[0].Numbers[byStep]; known || len(run.Cells[0].Curves[mmd]) == 0 {
		t.Errorf("numbers %v", run.Cells[0].Numbers)
	}
}
