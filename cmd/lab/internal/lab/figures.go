package lab

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"infill/internal/chart"
)

// draw draws every curve, by x and by seconds, bars, and columns against labels and other columns.
// Lines are the first label; other labels have a figure each.
func (r *StudyReport) draw() (list []chart.Figure, failed error) {
	add := func(name string, p *plot.Plot, err error) {
		failed = errors.Join(failed, err)
		if p != nil {
			list = append(list, chart.Figure{Name: name, Plot: p})
		}
	}
	for _, panel := range r.panels() {
		suffix, title := "", r.Title
		if panel.name != "" {
			suffix, title = "-"+slug(labels{{"", panel.name}}), title+", "+panel.name
		}
		for _, c := range r.plan.curves {
			p, err := drawCurves(panel.groups, c, title, c.x, func(s sample) float64 { return s.X })
			add(c.name+suffix, p, err)
			if !c.byXAlone {
				p, err = drawCurves(panel.groups, c, title, "seconds of processor time (noisy)",
					func(s sample) float64 { return s.Seconds })
				add(c.name+suffix+"-by-second", p, err)
			}
		}
		for _, c := range r.plan.columns {
			if c.bar {
				p, err := drawBars(panel.groups, c, title)
				add(c.name+suffix, p, err)
			}
		}
	}
	for _, c := range r.plan.columns {
		if c.against != "" {
			p, err := r.drawColumn(c)
			add(c.name+"-by-"+c.against, p, err)
		}
	}
	return list, failed
}

// drawBars draws a bar with its error for each group that has the number.
func drawBars(groups []*group, c column, title string) (*plot.Plot, error) {
	var list []chart.Bar
	for _, g := range groups {
		if numbers := g.numbers(c.name); len(numbers) > 0 {
			mean, e := stat.Mean(numbers, nil), g.cells[0].Errors[c.name]
			list = append(list, chart.Bar{Name: g.labels[0].Value, Value: mean, Low: mean - e, High: mean + e})
		}
	}
	return chart.Bars(title, c.name, list)
}

// drawCurves draws one curve of every group, the mean of its repetitions.
func drawCurves(groups []*group, c curve, title, x string, at func(sample) float64) (*plot.Plot, error) {
	var list []chart.Line
	for i, g := range groups {
		l := chart.Line{Look: i, Name: g.labels[0].Value}
		for k := 0; ; k++ {
			var xs, ys []float64
			for _, cell := range g.cells {
				if s := cell.Curves[c.name]; k < len(s) {
					xs, ys = append(xs, at(s[k])), append(ys, s[k].Y)
				}
			}
			if xs == nil {
				break
			}
			if at := (plotter.XY{X: stat.Mean(xs, nil), Y: stat.Mean(ys, nil)}); !c.log || at.X > 0 {
				l.At = append(l.At, at)
			}
		}
		list = append(list, l)
	}
	p, err := chart.Lines(title, x, c.y, list, false)
	if p != nil && c.log {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	return p, err
}

// drawColumn draws a column against a label of numbers, a line for each value of the first label, or against
// another column, a line for each sampler that has several settings.
func (r *StudyReport) drawColumn(c column) (*plot.Plot, error) {
	var list []chart.Line
	for _, g := range r.groups() {
		y := g.numbers(c.name)
		if len(y) == 0 {
			continue
		}
		if x := g.numbers(c.against); len(x) > 0 {
			name, _, _ := strings.Cut(g.labels[0].Value, ":")
			list = chart.Add(list, name, stat.Mean(x, nil), stat.Mean(y, nil))
		}
		if x, err := strconv.ParseFloat(g.labels.value(c.against), 64); err == nil {
			list = chart.Add(list, g.labels[0].Value, math.Max(x, 1e-9), stat.Mean(y, nil))
		}
	}
	return chart.Lines(r.Title, c.against, c.name, list, true)
}
