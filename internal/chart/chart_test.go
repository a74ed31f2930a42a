package chart

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// TestDigits: an axis tells no digits that its numbers do not have, whatever it is of.
func TestDigits(t *testing.T) {
	for name, c := range map[string]struct {
		low, high, wantLow, wantHigh float64
	}{
		"nothing":         {math.Inf(1), math.Inf(-1), 0, 1},
		"noise":           {0, 1e-76, 0, 0.04},
		"all the same":    {3, 3, 2.98, 3.02},
		"wide":            {-7, 12, -7, 12},
		"below, and near": {-0.001, 0.001, -0.02, 0.02},
	} {
		p := New("", "x", "y")
		p.X.Min, p.X.Max = c.low, c.high
		Digits(&p.X, 2)
		if math.Abs(p.X.Min-c.wantLow)+math.Abs(p.X.Max-c.wantHigh) > 1e-9 {
			t.Errorf("%s: from %v to %v", name, p.X.Min, p.X.Max)
		}
		for _, tick := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
			if _, digits, _ := strings.Cut(tick.Label, "."); len(digits) > 2 {
				t.Errorf("%s: %q", name, tick.Label)
			}
		}
		if _, err := (Figure{Plot: p}).Encode("svg"); err != nil {
			t.Error(name, err)
		}
	}
}

// TestNothing: what has nothing to draw is nil, and one value is drawn.
func TestNothing(t *testing.T) {
	bars, err := Bars("", "x", nil)
	if bars != nil || err != nil {
		t.Error(bars, err)
	}
	lines, err := Lines("", "x", "y", []Line{{Name: "a", At: plotter.XYs{{X: 1, Y: 1}}}}, false)
	if lines != nil || err != nil {
		t.Error(lines, err)
	}
	one, err := Bars("", "x", []Bar{{"a", 0, 0, 0}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*plot.Plot{one, New("", "", "")} {
		Digits(&p.X, 2)
		if svg, err := (Figure{Plot: p}).Encode("svg"); err != nil || !strings.Contains(string(svg), "<svg ") {
			t.Error(err)
		}
	}
}
