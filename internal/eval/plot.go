package eval

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"infill/internal/picture"
	"infill/metrics"
)

// PlotScore is the score of a plot unless another is asked for.
const PlotScore = "self_bleu"

// Plot draws a score of all final states against their mean U, as SVG: a point
// for each method and model, with the intervals of both over sentences. score is
// a name such as "self_bleu" or "corpus_bleu/tbc". Points without a value are
// left out.
func (r *Results) Plot(score string) ([]byte, error) {
	p := plot.New()
	p.Title.Text = "all samples, with intervals over sentences"
	p.Y.Label.Text = "mean U of all samples, nats"
	p.Legend.Top = true
	p.Legend.Padding = vg.Points(4)
	found := false
	for i, m := range r.Methods {
		s, there := m.All.Score(score)
		if !there {
			continue
		}
		found = true
		p.X.Label.Text = fmt.Sprintf("%s, %s", s.Title(), s.Unit)
		if !s.Value.Defined() {
			continue
		}
		name := m.Method
		if len(r.Models) > 1 {
			name += ", " + m.Model
		}
		err := addPoint(p, i, name, s, m.LogLikelihood, r.Configuration.reach())
		if err != nil {
			return nil, err
		}
	}
	if !found {
		return nil, fmt.Errorf("no score is called %q: there are %s", score, strings.Join(r.scoreNames(), ", "))
	}
	return picture.SVG(p)
}

func (r *Results) scoreNames() (names []string) {
	if len(r.Methods) == 0 {
		return []string{"none"}
	}
	for _, s := range r.Methods[0].All.Scores {
		names = append(names, s.Name())
	}
	return names
}

// addPoint adds the point of a method with its two intervals. That of U has
// reach standard errors on each side.
func addPoint(p *plot.Plot, i int, name string, x metrics.Score, u Estimate, reach float64) error {
	value := float64(x.Value)
	at := plotter.XYs{{X: value, Y: u.Mean}}
	point, err := plotter.NewScatter(at)
	if err != nil {
		return err
	}
	point.Color = picture.Colour(i)
	point.Shape = plotutil.Shape(i)
	point.Radius = vg.Points(4)
	if x.Interval != nil && x.Interval.Low.Defined() && x.Interval.High.Defined() {
		bar, err := plotter.NewXErrorBars(struct {
			plotter.XYs
			plotter.XErrors
		}{at, plotter.XErrors{{Low: value - float64(x.Interval.Low), High: float64(x.Interval.High) - value}}})
		if err != nil {
			return err
		}
		bar.Color = point.Color
		p.Add(bar)
	}
	if u.StandardError != nil && !math.IsNaN(reach) {
		half := reach * *u.StandardError
		bar, err := plotter.NewYErrorBars(struct {
			plotter.XYs
			plotter.YErrors
		}{at, plotter.YErrors{{Low: half, High: half}}})
		if err != nil {
			return err
		}
		bar.Color = point.Color
		p.Add(bar)
	}
	p.Add(point)
	p.Legend.Add(name, point)
	return nil
}
