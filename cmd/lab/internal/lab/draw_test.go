package lab

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"infill/internal/picture"
)

// TestDrawIntervals: many points have a band from one standard error below to
// one above, few have bars, and seven lines differ without their colours.
func TestDrawIntervals(t *testing.T) {
	s := &Study{description: description{Repeats: "Discrete Langevin paper, figure 5",
		Curves: []Curve{{Name: "u", X: "step", Y: "U"}}}}
	r := &StudyReport{Plan: s.NewPlan("learning: x")}
	for sampler := range 7 {
		for repeat := range 2 {
			c := &CellResult{Labels: Labels{{"sampler", fmt.Sprint("s", sampler)}, {"steps", "5"},
				{RepeatLabel, fmt.Sprint(repeat)}}}
			for k := range 10 + 10*sampler {
				c.Curves = map[string][]Sample{"u": append(c.Curves["u"],
					Sample{X: float64(k), Y: float64(k + 2*repeat)})}
			}
			r.Cells = append(r.Cells, c)
		}
	}
	p, err := r.panels()[0].curves(r.Plan.Curves[0], "title", "x", func(s Sample) float64 { return s.X })
	if err != nil {
		t.Fatal(err)
	}
	// Values 2 apart have a mean 1 above the lower, and a standard error of 1.
	if p.Y.Min != 0 || p.Y.Max != 71 || p.Y.Label.Text != "U, ± one standard error" {
		t.Errorf("the intervals are from %v to %v, %q", p.Y.Min, p.Y.Max, p.Y.Label.Text)
	}
	list, err := r.Draw()
	if err != nil {
		t.Fatal(err)
	}
	if title := list["u-5"].Title.Text; title != "Discrete Langevin paper, figure 5:\nlearning\nsteps 5" {
		t.Errorf("the title is %q", title)
	}
	svg, err := picture.SVG(list["u-5"])
	if err != nil {
		t.Fatal(err)
	}
	drawn := string(svg)
	if n := strings.Count(drawn, "fill-opacity"); n != 6 {
		t.Errorf("%d bands of 6 lines of many points", n)
	}
	looks := map[string]bool{}
	for _, style := range regexp.MustCompile(`stroke-width:1.4[^"]*`).FindAllString(drawn, -1) {
		looks[style] = true
	}
	if len(looks) != 7 {
		t.Errorf("7 lines have %d dashes", len(looks))
	}
}

// TestBudgetsOfRepetitions: every repetition stands at the smallest budget of
// all of them.
func TestBudgetsOfRepetitions(t *testing.T) {
	s := &Study{description: description{Columns: []Column{{Name: "y-at-seconds", Follows: "y", Budget: "seconds"}}}}
	r := &StudyReport{Plan: s.NewPlan("")}
	for i, sampler := range []string{"a", "a", "b", "b"} {
		c := &CellResult{Labels: Labels{{"sampler", sampler}, {RepeatLabel, strconv.Itoa(i % 2)}}}
		for second := range 4 + i {
			s := Sample{Seconds: float64(second), Y: float64(10*i + second)}
			c.Curves = map[string][]Sample{"y": append(c.Curves["y"], s)}
		}
		r.Cells = append(r.Cells, c)
	}
	r.atEqualBudgets()
	for i, c := range r.Cells {
		if got := c.Numbers["y-at-seconds"]; got != float64(10*i+3) {
			t.Errorf("cell %d has %v, want that of the third second", i, got)
		}
	}
}
