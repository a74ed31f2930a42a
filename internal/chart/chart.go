// Package chart draws lines, points and bars, by gonum's plot, with the legend beside the frame.
package chart

import (
	"bytes"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	gtext "gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Figure is a plot and its name, as of a file.
type Figure struct {
	Name string
	Plot *plot.Plot
}

// New returns a plot with nothing in it.
func New(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding = vg.Points(6)
	p.Legend.Top, p.Legend.Left, p.Legend.ThumbnailWidth, p.Legend.Padding = true, true, vg.Points(34), vg.Points(2)
	p.Add(plotter.NewGrid())
	return p
}

// The frame of a plot and its title are that large. The legend stands to the right of it, and makes the picture wider.
const (
	Width, height = 16 * vg.Centimeter, 11 * vg.Centimeter
	margin        = 0.3 * vg.Centimeter
)

// Size is that of the picture, with room for the legend.
func (f Figure) Size() (w, h vg.Length) {
	r := f.Plot.Legend.Rectangle(draw.Canvas{}).Size()
	if r.X > 0 {
		r.X += 2 * margin
	}
	return Width + r.X + 2*margin, max(height, r.Y+2*margin) + 2*margin
}

// Encode draws it in a form: "svg" or "png".
func (f Figure) Encode(format string) ([]byte, error) {
	w, h := f.Size()
	canvas, err := draw.NewFormattedCanvas(w, h, format)
	if err != nil {
		return nil, err
	}
	f.Draw(draw.New(canvas))
	var b bytes.Buffer
	_, err = canvas.WriteTo(&b)
	return b.Bytes(), err
}

// Draw draws the plot, and its legend beside it.
func (f Figure) Draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path()) // a page that shows the picture may be dark
	c = draw.Crop(c, margin, -margin, margin, -margin)
	p, legend := *f.Plot, f.Plot.Legend
	p.Title.Text = wrap(p.Title.TextStyle, p.Title.Text, Width)
	p.Legend = plot.NewLegend()
	frame := draw.Crop(c, 0, Width-c.Size().X, 0, 0)
	p.Draw(frame)
	legend.Draw(draw.Crop(c, Width+2*margin, 0, 0, 0))
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

// Colours that people who see few colours can tell apart (Okabe and Ito 2008, their yellow left
// out, which is too light for lines on white).
var Colours = []color.RGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {0, 0, 0, 255},
	{86, 180, 233, 255}, {230, 159, 0, 255},
}

// Dashes are of the lines after so many colours: solid, and then ever more broken.
var Dashes = [][]vg.Length{nil, {8, 3}, {2, 3}, {9, 3, 2, 3}, {9, 3, 2, 3, 2, 3}}

// Style is the look of the line of that number: as many differ as there are colours times dashes.
func Style(i int) draw.LineStyle {
	return draw.LineStyle{Color: Colours[i%len(Colours)], Width: vg.Points(1.4),
		Dashes: Dashes[i/len(Colours)%len(Dashes)]}
}

// Line is one of a plot, and the number of its look.
type Line struct {
	Look int
	Name string
	At   plotter.XYs
}

// Lines draws lines with marks at their points, or without: then those of one place are left out.
// It is nil if nothing is drawn.
func Lines(title, x, y string, list []Line, marks bool) (*plot.Plot, error) {
	p, drawn := New(title, x, y), false
	for _, l := range list {
		if n := len(l.At); !marks && (n < 2 || l.At[0].X == l.At[n-1].X) {
			continue
		}
		drawn = true
		line, points, err := plotter.NewLinePoints(l.At)
		if err != nil {
			return nil, err
		}
		line.LineStyle, points.Color, points.Shape = Style(l.Look), Style(l.Look).Color, plotutil.Shape(l.Look)
		p.Add(line)
		thumbnails := []plot.Thumbnailer{line}
		if marks {
			p.Add(points)
			thumbnails = append(thumbnails, points)
		}
		p.Legend.Add(l.Name, thumbnails...)
	}
	if !drawn {
		return nil, nil
	}
	return p, nil
}

// Add adds a point to the line of that name, which is made if there is none.
func Add(list []Line, name string, x, y float64) []Line {
	i := slices.IndexFunc(list, func(l Line) bool { return l.Name == name })
	if i < 0 {
		i = len(list)
		list = append(list, Line{Look: i, Name: name})
	}
	list[i].At = append(list[i].At, plotter.XY{X: x, Y: y})
	return list
}

// Bar is a value with its interval.
type Bar struct {
	Name             string
	Value, Low, High float64
}

// Bars draws a bar for each value, the first at the top. It is nil if there is none.
func Bars(title, label string, list []Bar) (*plot.Plot, error) {
	if len(list) == 0 {
		return nil, nil
	}
	p := New(title, label, "")
	var values plotter.Values
	var names []string
	var whiskers plotter.XErrors
	var at plotter.XYs
	for i, b := range slices.Backward(list) {
		at = append(at, plotter.XY{X: b.Value, Y: float64(len(list) - 1 - i)})
		whiskers = append(whiskers, struct{ Low, High float64 }{b.Low - b.Value, b.High - b.Value})
		values, names = append(values, b.Value), append(names, b.Name)
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
