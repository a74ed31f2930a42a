package lab_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/internal/check"
	"infill/internal/targets"
	"infill/samplers"
)

// TestPerceptron: the derivatives by all weights and inputs against finite
// differences.
func TestPerceptron(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	sizes := []int{3, 4, 1, 2}
	n := lab.WeightsOf(sizes)
	seed, both := lab.Matrix(5, 2, targets.Normals(r, 10, 1)), targets.Normals(r, n+15, 1)
	sum := func(x []float64) float64 {
		return floats.Dot(lab.Perceptron{Sizes: sizes, Weights: x[:n]}.Forward(lab.Matrix(5, 3, x[n:]))[3].Data,
			seed.Data)
	}
	p, got := lab.Perceptron{Sizes: sizes, Weights: both[:n]}, make([]float64, n)
	units := p.Forward(lab.Matrix(5, 3, both[n:]))
	p.Backward(units, seed, got)
	got = append(got, p.Backward(units, seed, nil).Data...)
	for i, want := range fd.Gradient(nil, sum, both, &fd.Settings{Formula: fd.Central}) {
		labtest.Near(t, fmt.Sprintf("derivative %d", i), got[i], want, 1e-6)
	}
}

func TestBarsAndStripes(t *testing.T) {
	for side := 2; side <= 5; side++ {
		data := lab.BarsAndStripes(side)
		if len(data) != 1<<(side+1)-2 {
			t.Errorf("side %d: %d patterns", side, len(data))
		}
		seen := map[string]bool{}
		for _, pattern := range data {
			seen[fmt.Sprint(pattern)] = true
			bars, stripes := true, true
			for i, v := range pattern {
				bars = bars && v == pattern[i%side]
				stripes = stripes && v == pattern[i/side*side]
			}
			if !bars && !stripes {
				t.Errorf("side %d: %v is neither", side, pattern)
			}
		}
		if len(seen) != len(data) {
			t.Errorf("side %d: patterns repeat", side)
		}
	}
}

// TestAdam by hand: the first update is the rate times the gradient's sign.
func TestAdam(t *testing.T) {
	a := lab.NewAdam(2)
	x := []float64{1, 1}
	a.Ascend(x, []float64{3, -0.5}, 0.1, 1)
	labtest.Near(t, "first", x[0], 1.1, 1e-7)
	labtest.Near(t, "second", x[1], 0.9, 1e-7)
	// A gradient that turns leaves m̂ = (0.09·3·... ) as the definition has it.
	a.Ascend(x, []float64{-3, -0.5}, 0.1, 2)
	first, second := 0.9*0.3-0.1*3, 0.999*0.009+0.001*9
	labtest.Near(t, "turned", x[0], 1.1+0.1*(first/(1-0.81))/math.Sqrt(second/(1-0.999*0.999)), 1e-7)
}

func TestReadPictures(t *testing.T) {
	digits := check.Must(lab.ReadPictures(&lab.Inputs{}, "data", "digits", 0))(t)
	// The first line of the file: 005d91... of a zero.
	if len(digits.Train) != 1797*64 || digits.Train[2] != 5.0/16 || digits.Train[3] != 13.0/16 {
		t.Errorf("%d digits, the first %v", len(digits.Train)/64, digits.Train[:8])
	}
	idx := []byte{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 255, 51, 0, 255, 255, 0, 102}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write(idx)
	_ = w.Close()
	for _, path := range []string{labtest.Saved(t, "file", string(idx)), labtest.Saved(t, "file", z.String())} {
		p := check.Must(lab.ReadPictures(&lab.Inputs{}, "data", path, 0))(t)
		if len(p.Train) != 8 || p.Rows != 2 || p.Train[1] != 1 || p.Train[2] != 0.2 {
			t.Errorf("%s: %+v", path, p)
		}
	}
	amat := func(text string) string { return labtest.Saved(t, "static.amat", text) }
	p := check.Must(lab.ReadPictures(&lab.Inputs{}, "data", amat("0 1 0.2 0\n1.0000e+00 1 0 0.4\n"), 0))(t)
	if len(p.Train) != 8 || p.Rows != 2 || p.Columns != 2 || p.Train[1] != 1 || p.Train[2] != 0.2 || p.Train[4] != 1 {
		t.Errorf("static: %+v", p)
	}
	for want, path := range map[string]string{
		"line 2 has 3 numbers":   amat("0 1 1 0\n1 1 0\n"),
		"line 1 has 3 numbers":   amat("0 1 1\n"),
		"is not a number from":   amat("0 1 1 0\n1 1 0 2\n"),
		"it has no images":       amat(""),
		"begins with 0, 0, 8, 3": labtest.Saved(t, "file", "no"),
		"8 bytes of pixels, and its header": labtest.Saved(t, "file",
			string(append(bytes.Clone(idx[:7]), append([]byte{3}, idx[8:]...)...))),
		"there can be": labtest.Saved(t, "file",
			string([]byte{0, 0, 8, 3, 255, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2, 0})),
		"name a file, or one of digits": filepath.Join(t.TempDir(), "none"),
	} {
		if _, err := lab.ReadPictures(&lab.Inputs{}, "data", path, 0); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestRegressions(t *testing.T) {
	for name, want := range map[string][2]int{"diabetes": {442, 10}, "election": {944, 9}, "breast-cancer": {569, 30}} {
		table := check.Must(lab.ReadRegression(&lab.Inputs{}, name))(t)
		if len(table.Y) != want[0] || table.Inputs != want[1] || len(table.X) != want[0]*want[1] {
			t.Errorf("%s: %d examples of %d inputs", name, len(table.Y), table.Inputs)
		}
		s := table.Split(labtest.Bare(1).Stream("split"), "standard")
		if len(s.TrainY)+len(s.TestY) != want[0] || len(s.TestY) != want[0]/5 {
			t.Errorf("%s: split into %d and %d", name, len(s.TrainY), len(s.TestY))
		}
		var column []float64
		for i := 1; i < len(s.TrainX); i += table.Inputs {
			column = append(column, s.TrainX[i])
		}
		mean, deviation := stat.PopMeanStdDev(column, nil)
		labtest.Near(t, name+": mean of a column", mean, 0, 1e-9)
		labtest.Near(t, name+": its deviation", deviation, 1, 1e-9)
		unit := table.Split(labtest.Bare(1).Stream("split"), "unit")
		column = column[:0]
		for i := 1; i < len(unit.TrainX); i += table.Inputs {
			column = append(column, unit.TrainX[i])
		}
		labtest.Near(t, name+": least of a column", slices.Min(column), 0, 0)
		labtest.Near(t, name+": most of a column", slices.Max(column), 1, 1e-12)
	}
	for content, want := range map[string]string{
		"a,b\n1,2\n3,x\n4,5\n6,7\n8,9\n": `line 3, column b: "x" is not a finite number`,
		"a,b\n1,2\n3,4,5\n":              "wrong number of fields",
		"a\n1\n2\n3\n4\n5\n":             "1 columns",
		"a,b\n1,2\n":                     "2 lines",
		"a,b\n1,2\n2,2\n3,2\n4,2\n5,2\n": "nothing to predict",
		"":                               "0 lines",
	} {
		var option *lab.OptionError
		_, err := lab.ReadRegression(&lab.Inputs{}, labtest.Saved(t, "file", content))
		if !errors.As(err, &option) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", content, err)
		}
	}
	if _, err := lab.ReadRegression(&lab.Inputs{}, filepath.Join(t.TempDir(), "none.csv")); err == nil ||
		!strings.Contains(err.Error(), "name a file, or one of diabetes") {
		t.Errorf("no file: %v", err)
	}
}

func TestParseSpecs(t *testing.T) {
	list := "gibbs, dmala:step-size=0.4,balance=ratio,gwg:steps=9,dula:steps=7,terms=2"
	specs := check.Must(lab.ParseSpecs(list))(t)
	var got []string
	for _, s := range specs {
		got = append(got, fmt.Sprintf("%s|%s|%d", s.Label, samplers.Text(s.Sampler), s.Steps))
	}
	want := []string{
		"gibbs|gibbs|0", "dmala:step-size=0.4,balance=ratio|dmala:step-size=0.4,balance=ratio|0",
		"gwg:steps=9|gwg|9", "dula:steps=7,terms=2|dula:terms=2|7",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("label, sampler and steps (-want +got):\n%s", d)
	}
}
