package lab

import (
	"cmp"
	"errors"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"infill/internal/picture"
	"infill/samplers"
)

// Draw plots every curve, against x and against seconds, and columns against
// labels and other columns. A line shows one value of the first label. Each
// value of the other labels has a plot of its own.
func (r *StudyReport) Draw() (map[string]*plot.Plot, error) {
	list := map[string]*plot.Plot{} // by the names of their files
	failed := error(nil)
	add := func(name string, p *plot.Plot, err error) {
		failed = errors.Join(failed, err)
		if p != nil {
			list[name] = p
		}
	}
	for _, panel := range r.panels() {
		suffix := ""
		title := r.Plan.Caption
		if panel.name() != "" {
			suffix = "-" + Plain(panel.name())
			title += "\n" + panel.words()
		}
		for _, c := range r.Plan.Curves {
			p, err := panel.curves(c, title, c.X, func(s Sample) float64 { return s.X })
			add(c.Name+suffix, p, err)
			p, err = panel.curves(c, title, "seconds of processor time (noisy)",
				func(s Sample) float64 { return s.Seconds })
			add(c.Name+suffix+"-by-second", p, err)
		}
	}
	for _, c := range r.Plan.Columns {
		if c.Against != "" {
			p, err := r.drawColumn(c)
			add(c.Name+"-by-"+c.Against, p, err)
		}
	}
	return list, failed
}

// words names the labels that all groups share, with their values.
func (p panel) words() string {
	var words []string
	for _, l := range p[0].labels()[1:] {
		if l.Value != AllSamplers {
			words = append(words, l.Name+" "+l.Value)
		}
	}
	return strings.Join(words, ", ")
}

// legend returns the value of a label, with the label's name before a number.
func (l Label) legend() string {
	_, err := strconv.ParseFloat(l.Value, 64)
	if err == nil {
		return l.Name + " " + l.Value
	}
	return l.Value
}

// standardErrors says what the bands are of points without intervals.
const standardErrors = "± one standard error"

// curves plots a curve of every group, averaged over the group's repetitions.
func (p panel) curves(c Curve, title, x string, at func(Sample) float64) (*plot.Plot, error) {
	var list []line
	for _, g := range p {
		l := line{name: g.labels()[0].legend()}
		for k := 0; ; k++ {
			var xs []float64
			var points []Sample
			for _, cell := range g {
				if s := cell.Curves[c.Name]; k < len(s) {
					xs = append(xs, at(s[k]))
					points = append(points, s[k])
				}
			}
			if xs == nil {
				break
			}
			if x := stat.Mean(xs, nil); !c.Log || x > 0 {
				l.add(x, average(points))
			}
		}
		list = append(list, l)
	}
	drawn, err := drawLines(title, x, c.Y, cmp.Or(c.Interval, standardErrors), list)
	if drawn == nil || err != nil {
		return drawn, err
	}
	if c.Log {
		drawn.X.Scale = plot.LogScale{}
		drawn.X.Tick.Marker = plot.LogTicks{Prec: -1}
	}
	if c.Shares {
		drawn.X.Min = 0
		drawn.X.Max = 100
		drawn.Y.Min = 0
		drawn.Y.Max = 100
		equal := plotter.NewFunction(func(x float64) float64 { return x })
		equal.Dashes = plotutil.Dashes(1)
		drawn.Add(equal)
		drawn.Legend.Add("as said", equal)
	}
	return drawn, nil
}

// average returns the mean of the points of several repetitions, with the
// standard error between them. A single point has its own interval.
func average(points []Sample) Sample {
	if len(points) == 1 {
		s := points[0]
		if s.Low == 0 && s.High == 0 {
			s.Low = s.Y - s.Error
			s.High = s.Y + s.Error
		}
		return s
	}
	var ys []float64
	for _, s := range points {
		ys = append(ys, s.Y)
	}
	return around(ys)
}

// around returns a mean with one standard error to each side.
func around(values []float64) Sample {
	mean, e := samplers.MeanAndError(values)
	if math.IsNaN(e) {
		e = 0
	}
	return Sample{Y: mean, Low: mean - e, High: mean + e}
}

// drawColumn plots a column. Against a label of numbers, each value of the
// first label has a line. Against another column, a line joins the settings of
// each sampler.
func (r *StudyReport) drawColumn(c Column) (*plot.Plot, error) {
	var list []line
	for _, g := range r.groups() {
		values := g.numbers(c.Name)
		if len(values) == 0 {
			continue
		}
		y := around(values)
		if len(values) == 1 {
			y.Low -= g[0].Errors[c.Name]
			y.High += g[0].Errors[c.Name]
		}
		if x := g.numbers(c.Against); len(x) > 0 {
			name, _, _ := strings.Cut(g.labels()[0].Value, ":")
			lineOf(&list, name).add(stat.Mean(x, nil), y)
		}
		if x, err := strconv.ParseFloat(g.labels().Value(c.Against), 64); err == nil {
			lineOf(&list, g.labels()[0].legend()).add(math.Max(x, 1e-9), y)
		}
	}
	for _, l := range list {
		slices.SortStableFunc(l.points, func(a, b Sample) int { return cmp.Compare(a.X, b.X) })
	}
	return drawLines(r.Plan.Caption, c.Against, c.Name, standardErrors, list)
}

type line struct {
	name   string
	points []Sample
}

func (l *line) add(x float64, y Sample) {
	y.X = x
	l.points = append(l.points, y)
}

func (l *line) Len() int { return len(l.points) }

// YError returns how far the interval of a point reaches down and up.
func (l *line) YError(i int) (down, up float64) {
	p := l.points[i]
	return p.Y - p.Low, p.High - p.Y
}

func (l *line) XY(i int) (x, y float64) { return l.points[i].X, l.points[i].Y }

func (l *line) uncertain() bool {
	return slices.ContainsFunc(l.points, func(p Sample) bool { return p.Low < p.High })
}

// lineOf returns the line of a name, and makes it if need be.
func lineOf(list *[]line, name string) *line {
	i := slices.IndexFunc(*list, func(l line) bool { return l.name == name })
	if i < 0 {
		i = len(*list)
		*list = append(*list, line{name: name})
	}
	return &(*list)[i]
}

// fewPoints is the largest number of points of a line that are marked, each
// with its interval. Of more points, this many are marked, and a band shows the
// intervals.
const fewPoints = 12

// drawLines plots lines, except those of several points with the same x. If no
// line is left, it returns nil. Colours, dashes and marks tell lines apart.
func drawLines(title, x, y, interval string, list []line) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text = x
	p.Y.Label.Text = y
	p.Legend.Top = true
	p.Legend.Left = true
	p.Legend.ThumbnailWidth = vg.Points(34)
	p.Legend.Padding = vg.Points(2)
	p.Title.Padding = vg.Points(6)
	p.Add(plotter.NewGrid())
	drawn := 0
	for i := range list {
		l := &list[i]
		n := l.Len()
		if n == 0 || n > 1 && l.points[0].X == l.points[n-1].X {
			continue
		}
		err := l.draw(p, drawn)
		if err != nil {
			return nil, err
		}
		drawn++
	}
	if drawn == 0 {
		return nil, nil
	}
	if slices.ContainsFunc(list, func(l line) bool { return l.uncertain() }) {
		p.Y.Label.Text += ", " + interval
	}
	return p, nil
}

func (l *line) draw(p *plot.Plot, i int) error {
	colour := picture.Colour(i)
	if l.uncertain() {
		interval, err := l.intervals(colour)
		if err != nil {
			return err
		}
		p.Add(interval)
	}
	path, err := plotter.NewLine(l)
	if err != nil {
		return err
	}
	path.Color = colour
	// At the next turn of the colours, dashes differ, and then marks.
	path.Dashes = plotutil.Dashes(i + i/picture.Colours)
	path.Width = vg.Points(1.4)
	marks, err := plotter.NewScatter(l.marks(i))
	if err != nil {
		return err
	}
	marks.Color = colour
	marks.Shape = plotutil.Shape(i + i/len(plotutil.DefaultGlyphShapes))
	marks.Radius = vg.Points(3)
	p.Add(path, marks)
	p.Legend.Add(l.name, path, marks)
	return nil
}

// marks returns the points to mark: all if they are few, else some, at other
// places than those of the lines before.
func (l *line) marks(i int) (at plotter.XYs) {
	stride := (l.Len() + fewPoints - 1) / fewPoints
	for k := i % stride; k < l.Len(); k += stride {
		at = append(at, plotter.XY{X: l.points[k].X, Y: l.points[k].Y})
	}
	return at
}

// intervals draws the intervals of few points as bars, and of many as a band.
func (l *line) intervals(colour color.RGBA) (plot.Plotter, error) {
	if l.Len() <= fewPoints {
		bars, err := plotter.NewYErrorBars(l)
		if err != nil {
			return nil, err
		}
		bars.Color = colour
		return bars, nil
	}
	var edge plotter.XYs
	for _, p := range l.points {
		edge = append(edge, plotter.XY{X: p.X, Y: p.Low})
	}
	for _, p := range slices.Backward(l.points) {
		edge = append(edge, plotter.XY{X: p.X, Y: p.High})
	}
	band, err := plotter.NewPolygon(edge)
	if err != nil {
		return nil, err
	}
	const opacity = 50 // of 255
	band.Color = color.NRGBA{colour.R, colour.G, colour.B, opacity}
	band.LineStyle.Width = 0
	return band, nil
}
