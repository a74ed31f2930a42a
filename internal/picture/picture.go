// Package picture writes plots as SVG that can be read on a light page and on a
// dark one, and without colours.
package picture

import (
	"bytes"
	"image/color"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// colours can be told apart by people who see no red or no green (Okabe and Ito,
// 2008, without their yellow).
var colours = [Colours]color.RGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {0, 0, 0, 255},
	{86, 180, 233, 255}, {230, 159, 0, 255},
}

// Colours is the number of different colours of a plot.
const Colours = 7

// Colour returns the i-th colour of a plot.
func Colour(i int) color.RGBA { return colours[i%Colours] }

// short labels ticks with the fewest digits: 25 instead of 25.00.
type short struct{ ticker plot.Ticker }

// Ticks implements plot.Ticker.
func (s short) Ticks(low, high float64) []plot.Tick {
	ticks := s.ticker.Ticks(low, high)
	for i, t := range ticks {
		value, err := strconv.ParseFloat(t.Label, 64)
		if err == nil {
			ticks[i].Label = strconv.FormatFloat(value, 'f', -1, 64)
		}
	}
	return ticks
}

// SVG draws a plot on a white page. The legend is to the right of the frame,
// where it hides nothing.
func SVG(p *plot.Plot) ([]byte, error) {
	const width, height, margin = 16 * vg.Centimeter, 11 * vg.Centimeter, vg.Centimeter / 3
	legend := p.Legend
	size := legend.Rectangle(draw.Canvas{}).Size()
	canvas := vgsvg.New(width+size.X+3*margin, max(height, size.Y)+2*margin)
	c := draw.New(canvas)
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path()) // the page around the picture may be dark
	frame := *p
	frame.Legend = plot.NewLegend()
	for _, axis := range []*plot.Axis{&frame.X, &frame.Y} {
		axis.Tick.Marker = short{axis.Tick.Marker}
	}
	frame.Draw(draw.Crop(c, margin, -size.X-2*margin, margin, -margin))
	legend.Draw(draw.Crop(c, width+2*margin, 0, 0, -margin))
	var b bytes.Buffer
	_, err := canvas.WriteTo(&b)
	return b.Bytes(), err
}
