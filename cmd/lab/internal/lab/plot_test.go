package lab

import (
	"fmt"
	"slices"
	"testing"

	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"

	"infill/internal/chart"
)

// TestFigure: twenty series look different from each other, the legend stands outside the
// frame, and no text leaves the picture.
func TestFigure(t *testing.T) {
	r := &StudyReport{Title: "a title that is much longer than the frame is wide, since it says of which model the " +
		"draws are, of how many chains, and how long they ran", plan: newComparisonPlan("", 2)}
	names := map[string]bool{}
	for i := range 20 {
		c := &cellResult{Labels: labels{{"sampler", fmt.Sprintf("dmala%d:step-size=0.%02d,balance=sqrt", i, i)}}}
		c.Numbers = map[string]float64{"acceptance": 0.5, "proposed": float64(i), "ess": float64(i + 1)}
		c.Errors, c.Curves = map[string]float64{"ess": 0.5}, map[string][]sample{}
		names[c.Labels[0].Value], names[fmt.Sprint("dmala", i)] = true, true
		for step := 1; step < 100; step *= 2 {
			c.Curves[byStep] = append(c.Curves[byStep], sample{X: float64(step), Y: float64(-i - step)})
		}
		r.Cells = append(r.Cells, c)
	}
	looks := map[string]bool{}
	for i := range r.Cells {
		looks[fmt.Sprint(chart.Style(i))] = true
	}
	if len(looks) != 20 {
		t.Errorf("20 series have %d looks", len(looks))
	}
	figures, err := r.draw()
	if err != nil || len(figures) < 3 {
		t.Fatal(figures, err)
	}
	for _, f := range figures {
		width, height := f.Size()
		var c recorder.Canvas
		f.Draw(draw.NewCanvas(&c, width, height))
		legend := 0
		for _, action := range c.Actions {
			s, ok := action.(*recorder.FillString)
			if !ok {
				continue
			}
			w := f.Plot.Legend.TextStyle.Width(s.String)
			if names[s.String] && s.Point.X > chart.Width {
				legend++
			}
			if s.String == f.Plot.Y.Label.Text { // it is turned
				continue
			}
			if s.Point.X < 0 || s.Point.X+w > width || s.Point.Y < 0 || s.Point.Y > height {
				t.Errorf("%s: %q at %v, %.0f wide, leaves the picture of %.0f × %.0f", f.Name, s.String, s.Point, w,
					width, height)
			}
		}
		if lines := slices.Contains([]string{"log-rmse", "acceptance-by-proposed"}, f.Name); lines && legend != 20 {
			t.Errorf("%s: %d of 20 names stand beside the frame", f.Name, legend)
		}
	}
}
