package lab

import (
	"cmp"
	"errors"
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
)

// drawings maps names of files to plots.
type drawings map[string]*plot.Plot

// draw plots every curve, against x and against seconds, and columns against
// labels and other columns. A line shows one value of the first label. Each
// value of the other labels has a plot of its own.
func (r *StudyReport) draw() (drawings, error) {
	list := drawings{}
	failed := error(nil)
	add := func(name string, p *plot.Plot, err error) {
		failed = errors.Join(failed, err)
		if p != nil {
			list[name] = p
		}
	}
	for _, panel := range r.panels() {
		suffix := ""
		title := r.subject()
		if panel.name() != "" {
			suffix = "-" + plain(panel.name())
			title = panel.name()
		}
		for _, c := range r.plan.curves {
			p, err := panel.curves(c, title, c.x, func(s sample) float64 { return s.X })
			add(c.name+suffix, p, err)
			p, err = panel.curves(c, title, "seconds of processor time (noisy)",
				func(s sample) float64 { return s.Seconds })
			add(c.name+suffix+"-by-second", p, err)
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

// curves plots a curve of every group, averaged over the group's repetitions.
func (p panel) curves(c curve, title, x string, at func(sample) float64) (*plot.Plot, error) {
	var list []line
	for _, g := range p {
		l := line{name: g.labels()[0].Value}
		for k := 0; ; k++ {
			var xs, ys []float64
			for _, cell := range g {
				if s := cell.Curves[c.name]; k < len(s) {
					xs = append(xs, at(s[k]))
					ys = append(ys, s[k].Y)
				}
			}
			if xs == nil {
				break
			}
			if at := (plotter.XY{X: stat.Mean(xs, nil), Y: stat.Mean(ys, nil)}); !c.log || at.X > 0 {
				l.at = append(l.at, at)
			}
		}
		list = append(list, l)
	}
	drawn, err := drawLines(title, x, c.y, list)
	if drawn != nil && c.log {
		drawn.X.Scale = plot.LogScale{}
		drawn.X.Tick.Marker = plot.LogTicks{Prec: -1}
	}
	return drawn, err
}

// drawColumn plots a column. Against a label of numbers, each value of the
// first label has a line. Against another column, a line joins the settings of
// each sampler.
func (r *StudyReport) drawColumn(c column) (*plot.Plot, error) {
	var list []line
	for _, g := range r.groups() {
		y := g.numbers(c.name)
		if len(y) == 0 {
			continue
		}
		if x := g.numbers(c.against); len(x) > 0 {
			name, _, _ := strings.Cut(g.labels()[0].Value, ":")
			list = addPoint(list, name, stat.Mean(x, nil), stat.Mean(y, nil))
		}
		if x, err := strconv.ParseFloat(g.labels().value(c.against), 64); err == nil {
			list = addPoint(list, g.labels()[0].Value, math.Max(x, 1e-9), stat.Mean(y, nil))
		}
	}
	for _, l := range list {
		slices.SortStableFunc(l.at, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
	}
	return drawLines(r.subject(), c.against, c.name, list)
}

// subject returns the title without the settings, for which a plot has no room.
func (r *StudyReport) subject() string { return r.Title[:strings.IndexAny(r.Title+",", ":,")] }

// line is a line of a plot.
type line struct {
	name string
	at   plotter.XYs
}

// addPoint adds a point to the line with the given name, and makes that line if
// it does not exist.
func addPoint(list []line, name string, x, y float64) []line {
	i := slices.IndexFunc(list, func(l line) bool { return l.name == name })
	if i < 0 {
		i = len(list)
		list = append(list, line{name: name})
	}
	list[i].at = append(list[i].at, plotter.XY{X: x, Y: y})
	return list
}

func newPlot(title, x, y string) *plot.Plot {
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
	return p
}

// fewPoints is the largest number of points of a line that are marked.
const fewPoints = 20

// drawLines plots lines, except those of several points with the same x. If no
// line is left, it returns nil.
func drawLines(title, x, y string, list []line) (*plot.Plot, error) {
	p := newPlot(title, x, y)
	drawn := false
	for i, l := range list {
		n := len(l.at)
		if n == 0 || n > 1 && l.at[0].X == l.at[n-1].X {
			continue
		}
		drawn = true
		path, points, err := plotter.NewLinePoints(l.at)
		if err != nil {
			return nil, err
		}
		path.Color = picture.Colour(i)
		path.Dashes = plotutil.Dashes(i / picture.Colours)
		path.Width = vg.Points(1.4)
		points.Color = path.Color
		points.Shape = plotutil.Shape(i)
		p.Add(path)
		thumbnails := []plot.Thumbnailer{path}
		if n <= fewPoints {
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
