package chart

import (
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

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
		if svg, err := (Figure{Plot: p}).Encode("svg"); err != nil || !strings.Contains(string(svg), "<svg ") {
			t.Error(err)
		}
	}
}
