package lab

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2/maybe"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg/draw"

	"infill/internal/chart"
	"infill/internal/logmath"
)

// PlotFormats lists the forms of plots; none leaves them out.
func PlotFormats() []string { return []string{"svg", "png", "none"} }

// file is one of a report: nothing is written where its content is nil.
type file struct {
	name    string
	content func() ([]byte, error)
}

// Write puts report.json and the plots into a folder, which it makes, and
// returns the files' paths. Each file is written whole or not at all.
func (r *Report) Write(dir, format string) ([]string, error) {
	return writeReport(dir, format, []file{{"report.json", r.JSON}}, nil, r.figures)
}

// writeReport writes files and figures beside pictures that are there already.
func writeReport(dir, format string, files []file, pictures []string,
	figures func() ([]chart.Figure, error)) (paths []string, err error) {
	if !slices.Contains(PlotFormats(), format) {
		return nil, refuse("plots", "%q is not one of %v", format, PlotFormats())
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	write := func(name string, content []byte) error {
		path := filepath.Join(dir, name)
		if err := maybe.WriteFile(path, content, 0o666); err != nil {
			return err
		}
		paths = append(paths, path)
		return nil
	}
	for _, f := range files {
		content, err := f.content()
		if err == nil && content != nil {
			err = write(f.name, content)
		}
		if err != nil {
			return paths, err
		}
	}
	for _, name := range pictures {
		paths = append(paths, filepath.Join(dir, name))
	}
	if format == "none" {
		return paths, nil
	}
	list, err := figures()
	if err != nil {
		return paths, fmt.Errorf("plots: %w", err)
	}
	for _, f := range list {
		drawn, err := f.Encode(format)
		if err != nil {
			return paths, fmt.Errorf("plot %s: %w", f.Name, err)
		}
		if err := write(f.Name+"."+format, drawn); err != nil {
			return paths, err
		}
	}
	return paths, nil
}

func (r *Report) figures() (list []chart.Figure, failed error) {
	add := func(name string, p *plot.Plot, err error) {
		failed = errors.Join(failed, err)
		if p != nil {
			list = append(list, chart.Figure{Name: name, Plot: p})
		}
	}
	for i, c := range r.Bias {
		p, err := c.plot()
		add(fmt.Sprintf("bias-%d", i+1), p, err)
	}
	for i, run := range r.Runs {
		suffix := ""
		if len(r.Runs) > 1 {
			suffix = fmt.Sprintf("-%d", i+1)
		}
		for _, c := range []struct {
			name string
			x, y axis
		}{
			{"log-rmse-by-step", byStep, logRMSE},
			{"log-rmse-by-evaluation", byEvaluation, logRMSE},
			{"log-rmse-by-second", bySecond, logRMSE},
			{"log-mmd-by-step", byStep, logMMD},
			{"log-mmd-by-second", bySecond, logMMD},
		} {
			p, err := run.curves(c.x, c.y)
			add(c.name+suffix, p, err)
		}
		p, err := run.bars("effective sample size per step, with standard error between chains",
			func(r *Result) (float64, *float64) {
				return r.ESS.PerStep, times(r.ESS.StandardError, 1/float64(r.ESS.Kept))
			})
		add("ess-per-step"+suffix, p, err)
		p, err = run.bars("effective sample size per second, exact samplers (one run, noisy)",
			func(r *Result) (float64, *float64) {
				if r.Timing == nil || !r.Exact {
					return math.NaN(), nil
				}
				return r.Timing.ESSPerSecond, r.Timing.ESSPerSecondStandardError
			})
		add("ess-per-second"+suffix, p, err)
		p, err = run.movement()
		add("acceptance-by-slots"+suffix, p, err)
	}
	return list, failed
}

// axis is what a curve is drawn against or of; NaN where a point has no such number.
type axis struct {
	label string
	of    func(point) float64
}

var (
	byStep       = axis{"step", func(p point) float64 { return float64(p.Step) }}
	byEvaluation = axis{"evaluations of each chain", func(p point) float64 { return p.Evaluations }}
	bySecond     = axis{"seconds of all chains (one run, noisy)", func(p point) float64 { return orNaN(p.Seconds) }}
	logRMSE      = axis{"log RMSE (natural)", func(p point) float64 { return float64(p.LogRMSE) }}
	logMMD       = axis{"log MMD² (natural)", func(p point) float64 { return math.Log(orNaN(p.MMD2)) }}
)

func orNaN(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

func (run *Run) title() string {
	if run.Title != "" {
		return run.Title
	}
	return run.describe()
}

// curves draws one line per sampler, nil where no point has the numbers.
func (run *Run) curves(x, y axis) (*plot.Plot, error) {
	var list []chart.Line
	for i, r := range run.Samplers {
		l := chart.Line{Look: i, Name: r.Sampler}
		for _, point := range r.Curve {
			if xy := (plotter.XY{X: x.of(point), Y: y.of(point)}); xy.X > 0 && logmath.Finite(xy.Y) {
				l.At = append(l.At, xy)
			}
		}
		list = append(list, l)
	}
	p, err := chart.Lines(run.title(), x.label, y.label, list, false)
	if p == nil {
		return nil, err
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	if y.label == logMMD.label && run.Floor != nil && run.Floor.MMD2 > 0 {
		floor := plotter.NewFunction(func(float64) float64 { return math.Log(run.Floor.MMD2) })
		floor.Dashes = plotutil.Dashes(1)
		p.Add(floor)
		p.Legend.Add("draws of the reference's law", floor)
	}
	return p, nil
}

// bars draws a bar with an error for each sampler that has the number, which is
// asked of those with an effective sample size.
func (run *Run) bars(label string, of func(*Result) (value float64, standardError *float64)) (*plot.Plot, error) {
	var list []chart.Bar
	for _, r := range run.Samplers {
		if r.ESS == nil {
			continue
		}
		v, e := of(r)
		if !logmath.Finite(v) {
			continue
		}
		b := chart.Bar{Name: r.Sampler, Value: v, Low: v, High: v}
		if e != nil {
			b.Low, b.High = v-*e, v+*e
		}
		list = append(list, b)
	}
	return chart.Bars(run.title(), label, list)
}

// movement draws acceptance against the slots a proposal changes, a line for
// each kernel that is given with several settings.
func (run *Run) movement() (*plot.Plot, error) {
	var list []chart.Line
	for _, r := range run.Samplers {
		list = chart.Add(list, r.Name, r.Proposed, r.Acceptance)
	}
	p, err := chart.Lines(run.title(), "slots that a proposal changes", "acceptance", list, true)
	if p != nil {
		p.Y.Min, p.Y.Max = 0, 1
	}
	return p, err
}

// plot draws a bias, its bound, its rate and what chains showed.
func (c *biasCurve) plot() (*plot.Plot, error) {
	p := chart.New(c.Title, c.Variable, "‖π_α - π‖₁")
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	for i, s := range []struct {
		name   string
		of     func(biasPoint) *float64
		points bool
	}{
		{"exact", func(b biasPoint) *float64 { return &b.Exact }, false},
		{"bound of theorem 5.1", func(b biasPoint) *float64 { return b.Bound }, false},
		{"multiple of exp(-1/(2α))", func(b biasPoint) *float64 { return b.Rate }, false},
		{"observed", func(b biasPoint) *float64 { return b.Observed }, true},
		{"noise of the observed", func(b biasPoint) *float64 { return b.Noise }, false},
	} {
		var line plotter.XYs
		for _, b := range c.Points {
			if y := s.of(b); y != nil && *y > 1e-12 {
				line = append(line, plotter.XY{X: b.X, Y: *y})
			}
		}
		if len(line) == 0 {
			continue
		}
		if s.points {
			dots, err := plotter.NewScatter(line)
			if err != nil {
				return nil, err
			}
			dots.Color, dots.Shape = chart.Style(i).Color, draw.CircleGlyph{}
			p.Add(dots)
			p.Legend.Add(s.name, dots)
			continue
		}
		l, err := plotter.NewLine(line)
		if err != nil {
			return nil, err
		}
		l.LineStyle = chart.Style(i)
		l.Dashes = chart.Dashes[i%len(chart.Dashes)] // also told apart where they lie on one another
		p.Add(l)
		p.Legend.Add(s.name, l)
	}
	return p, nil
}
