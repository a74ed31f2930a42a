package lab

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2/maybe"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	gtext "gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// PlotFormats lists the forms of plots; none leaves them out.
func PlotFormats() []string { return []string{"svg", "png", "none"} }

// figure is a plot and the name of its file.
type figure struct {
	name string
	plot *plot.Plot
}

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
func writeReport(dir, format string, files []file, pictures []string, figures func() ([]figure, error)) (paths []string, err error) {
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
		drawn, err := f.encode(format)
		if err != nil {
			return paths, fmt.Errorf("plot %s: %w", f.name, err)
		}
		if err := write(f.name+"."+format, drawn); err != nil {
			return paths, err
		}
	}
	return paths, nil
}

func (r *Report) figures() (list []figure, failed error) {
	add := func(name string, p *plot.Plot, err error) {
		failed = errors.Join(failed, err)
		if p != nil {
			list = append(list, figure{name, p})
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
		p, err := run.bars("effective sample size per step, with standard error between chains", func(r *Result) (float64, *float64) {
			return r.ESS.PerStep, times(r.ESS.StandardError, 1/float64(r.ESS.Kept))
		})
		add("ess-per-step"+suffix, p, err)
		p, err = run.bars("effective sample size per second, exact samplers (one run, noisy)", func(r *Result) (float64, *float64) {
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

// axis is what a curve is drawn against or of; NaN where a point has no such
// number.
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

func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding = vg.Points(6)
	p.Legend.Top, p.Legend.Left, p.Legend.ThumbnailWidth, p.Legend.Padding = true, true, vg.Points(34), vg.Points(2)
	p.Add(plotter.NewGrid())
	return p
}

// The frame of a plot and its title are that large. The legend stands to the right of it, and
// makes the picture wider.
const (
	plotWidth, plotHeight = 16 * vg.Centimeter, 11 * vg.Centimeter
	plotMargin            = 0.3 * vg.Centimeter
)

// size is that of the picture, with room for the legend.
func (f figure) size() (width, height vg.Length) {
	r := f.plot.Legend.Rectangle(draw.Canvas{}).Size()
	if r.X > 0 {
		r.X += 2 * plotMargin
	}
	return plotWidth + r.X + 2*plotMargin, max(plotHeight, r.Y+2*plotMargin) + 2*plotMargin
}

// encode draws it in a form.
func (f figure) encode(format string) ([]byte, error) {
	width, height := f.size()
	canvas, err := draw.NewFormattedCanvas(width, height, format)
	if err != nil {
		return nil, err
	}
	f.draw(draw.New(canvas))
	var b bytes.Buffer
	_, err = canvas.WriteTo(&b)
	return b.Bytes(), err
}

// draw draws the plot, and its legend beside it.
func (f figure) draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path()) // a page that shows the picture may be dark
	c = draw.Crop(c, plotMargin, -plotMargin, plotMargin, -plotMargin)
	p, legend := *f.plot, f.plot.Legend
	p.Title.Text = wrap(p.Title.TextStyle, p.Title.Text, plotWidth)
	p.Legend = plot.NewLegend()
	frame := draw.Crop(c, 0, plotWidth-c.Size().X, 0, 0)
	p.Draw(frame)
	legend.Draw(draw.Crop(c, plotWidth+2*plotMargin, 0, 0, 0))
}

// wrap breaks a title into lines that are no longer than that, at spaces.
func wrap(style gtext.Style, title string, width vg.Length) string {
	var lines []string
	for word := range strings.FieldsSeq(title) {
		if n := len(lines) - 1; n >= 0 && style.Width(lines[n]+" "+word) <= width {
			lines[n] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return strings.Join(lines, "\n")
}

// seriesColors can be told apart by those who see few colours, too (Okabe and Ito 2008, their yellow left
// out, which is too light for lines on white).
var seriesColors = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 158, 115, 255}, color.RGBA{204, 121, 167, 255},
	color.RGBA{0, 0, 0, 255}, color.RGBA{86, 180, 233, 255}, color.RGBA{230, 159, 0, 255},
}

// seriesDashes are of the lines after so many colours: solid, and then ever more broken.
var seriesDashes = [][]vg.Length{nil, {8, 3}, {2, 3}, {9, 3, 2, 3}, {9, 3, 2, 3, 2, 3}}

// series is the look of the line of that number: as many differ as there are colours times dashes.
func series(i int) draw.LineStyle {
	return draw.LineStyle{
		Color: seriesColors[i%len(seriesColors)], Width: vg.Points(1.4),
		Dashes: seriesDashes[i/len(seriesColors)%len(seriesDashes)],
	}
}

// line is one of a plot, and the number of its look.
type line struct {
	look int
	name string
	at   plotter.XYs
}

// lines draws lines with marks at their points, or without: then those of one place are left out.
// It is nil where nothing is drawn.
func lines(title, x, y string, list []line, marks bool) (*plot.Plot, error) {
	p, drawn := newPlot(title, x, y), false
	for _, l := range list {
		if n := len(l.at); !marks && (n < 2 || l.at[0].X == l.at[n-1].X) {
			continue
		}
		drawn = true
		line, points, err := plotter.NewLinePoints(l.at)
		if err != nil {
			return nil, err
		}
		line.LineStyle, points.Color, points.Shape = series(l.look), series(l.look).Color, plotutil.Shape(l.look)
		p.Add(line)
		thumbnails := []plot.Thumbnailer{line}
		if marks {
			p.Add(points)
			thumbnails = append(thumbnails, points)
		}
		p.Legend.Add(l.name, thumbnails...)
	}
	if !drawn {
		return nil, nil
	}
	return p, nil
}

// addTo adds a point to the line of that name, which is made where there is none.
func addTo(list []line, name string, x, y float64) []line {
	i := slices.IndexFunc(list, func(l line) bool { return l.name == name })
	if i < 0 {
		i = len(list)
		list = append(list, line{look: i, name: name})
	}
	list[i].at = append(list[i].at, plotter.XY{X: x, Y: y})
	return list
}

func (run *Run) title() string {
	if run.Title != "" {
		return run.Title
	}
	return run.describe()
}

// curves draws one line per sampler, nil where no point has the numbers.
func (run *Run) curves(x, y axis) (*plot.Plot, error) {
	var list []line
	for i, r := range run.Samplers {
		l := line{look: i, name: r.Sampler}
		for _, point := range r.Curve {
			if xy := (plotter.XY{X: x.of(point), Y: y.of(point)}); xy.X > 0 && finite(xy.Y) {
				l.at = append(l.at, xy)
			}
		}
		list = append(list, l)
	}
	p, err := lines(run.title(), x.label, y.label, list, false)
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
	p := newPlot(run.title(), label, "")
	var values plotter.Values
	var names []string
	var whiskers plotter.XErrors
	var at plotter.XYs
	for _, r := range slices.Backward(run.Samplers) {
		if r.ESS == nil {
			continue
		}
		v, e := of(r)
		if !finite(v) {
			continue
		}
		whisker := struct{ Low, High float64 }{}
		if e != nil {
			whisker.Low, whisker.High = -*e, *e
		}
		at = append(at, plotter.XY{X: v, Y: float64(len(values))})
		whiskers = append(whiskers, whisker)
		values, names = append(values, v), append(names, r.Sampler)
	}
	if len(values) == 0 {
		return nil, nil
	}
	bars, err := plotter.NewBarChart(values, vg.Points(12))
	if err != nil {
		return nil, err
	}
	bars.Horizontal, bars.Color = true, plotutil.SoftColors[2]
	spread, err := plotter.NewXErrorBars(struct {
		plotter.XYer
		plotter.XErrorer
	}{at, whiskers})
	if err != nil {
		return nil, err
	}
	p.Add(bars, spread)
	p.X.Max *= 1.04
	p.NominalY(names...)
	return p, nil
}

// movement draws acceptance against the slots a proposal changes, a line for
// each kernel that is given with several settings.
func (run *Run) movement() (*plot.Plot, error) {
	var list []line
	for _, r := range run.Samplers {
		list = addTo(list, r.Name, r.Proposed, r.Acceptance)
	}
	p, err := lines(run.title(), "slots that a proposal changes", "acceptance", list, true)
	if p != nil {
		p.Y.Min, p.Y.Max = 0, 1
	}
	return p, err
}

// plot draws a bias, its bound, its rate and what chains showed.
func (c *biasCurve) plot() (*plot.Plot, error) {
	p := newPlot(c.Title, c.Variable, "‖π_α - π‖₁")
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
			dots.Color, dots.Shape = series(i).Color, draw.CircleGlyph{}
			p.Add(dots)
			p.Legend.Add(s.name, dots)
			continue
		}
		l, err := plotter.NewLine(line)
		if err != nil {
			return nil, err
		}
		l.LineStyle = series(i)
		l.Dashes = seriesDashes[i%len(seriesDashes)] // also told apart where they lie on one another
		p.Add(l)
		p.Legend.Add(s.name, l)
	}
	return p, nil
}
