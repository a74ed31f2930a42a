package eval

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strings"

	"infill/metrics"
)

// The charts are small SVG drawings without styles of their own: their classes
// take the colours of the page, so that they follow it into the dark. A method is
// a numbered badge everywhere, so that nobody has to tell eleven colours apart.

// series is how a method looks in every chart and table.
type series struct {
	Number int // from 1
	Colour int // of the palette, by sampler
	Dash   int // 0 solid, 1 and 2 for further variants of a sampler
	Name   string
}

const paletteSize = 8

// allSeries gives variants of a sampler its colour and different strokes.
func allSeries(methods []MethodResult) []series {
	var samplers []string
	seen := map[string]int{}
	list := make([]series, len(methods))
	several := slices.ContainsFunc(methods, func(m MethodResult) bool { return m.Model != methods[0].Model })
	for i, m := range methods {
		colour := slices.Index(samplers, m.Settings.Sampler)
		if colour < 0 {
			colour = len(samplers)
			samplers = append(samplers, m.Settings.Sampler)
		}
		name := m.Method
		if several {
			name += ", " + m.Model
		}
		list[i] = series{i + 1, colour % paletteSize, min(2, seen[m.Settings.Sampler]), name}
		seen[m.Settings.Sampler]++
	}
	return list
}

// badge draws a method's number.
func (s series) badge(b *strings.Builder, x, y float64, title string) {
	fmt.Fprintf(b, `<g class="badge c%d d%d"><title>%s</title><circle cx="%.1f" cy="%.1f" r="8.5"/><text x="%.1f" y="%.1f">%d</text></g>`,
		s.Colour, s.Dash, html.EscapeString(title), x, y, x, y+3.6, s.Number)
}

// frame maps data to a drawing with axes.
type frame struct {
	width, height            float64
	left, right, top, bottom float64 // margins
	x, y                     axis
}

type axis struct {
	low, high float64
	title     string
	ticks     []float64
}

// newAxis covers the values with round ticks.
func newAxis(title string, values []float64) axis {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high {
		low, high = 0, 1
	}
	if low == high {
		low, high = low-1, high+1
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if (high-low)/(step*factor) <= 6 {
			step *= factor
			break
		}
	}
	a := axis{low: math.Floor(low/step) * step, high: math.Ceil(high/step) * step, title: title}
	for k := 0; ; k++ {
		tick := a.low + float64(k)*step
		if tick > a.high+step/2 {
			return a
		}
		a.ticks = append(a.ticks, tick)
	}
}

func (f frame) px(x float64) float64 {
	return f.left + (x-f.x.low)/(f.x.high-f.x.low)*(f.width-f.left-f.right)
}

func (f frame) py(y float64) float64 {
	return f.height - f.bottom - (y-f.y.low)/(f.y.high-f.y.low)*(f.height-f.top-f.bottom)
}

func tickText(tick float64) string {
	text := fmt.Sprintf("%.4g", tick+0) // no −0
	return strings.Replace(text, "-", "−", 1)
}

// open draws the frame with its grid.
func (f frame) open(b *strings.Builder, title string) {
	fmt.Fprintf(b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, f.width, f.height, html.EscapeString(title))
	for _, t := range f.y.ticks {
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text class="tick end" x="%.1f" y="%.1f">%s</text>`,
			f.left, f.width-f.right, f.py(t), f.py(t), f.left-8, f.py(t)+4, tickText(t))
	}
	for _, t := range f.x.ticks {
		fmt.Fprintf(b, `<text class="tick middle" x="%.1f" y="%.1f">%s</text>`, f.px(t), f.height-f.bottom+18, tickText(t))
	}
	fmt.Fprintf(b, `<line class="axis" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, f.left, f.width-f.right, f.height-f.bottom, f.height-f.bottom)
	fmt.Fprintf(b, `<text class="label middle" x="%.1f" y="%.1f">%s</text>`, (f.left+f.width-f.right)/2, f.height-6, html.EscapeString(f.x.title))
	fmt.Fprintf(b, `<text class="label" x="%.1f" y="%.1f">%s</text>`, 4.0, 14.0, html.EscapeString(f.y.title))
}

// point is a method in a scatter chart, with its intervals.
type point struct {
	series
	x, y cell
}

func values(cells ...cell) []float64 {
	var list []float64
	for _, c := range cells {
		list = append(list, float64(c.Value), float64(c.Low), float64(c.High))
	}
	return list
}

// around is an axis over the values themselves and some way into their
// intervals, which the sentences make far wider than the methods differ.
func around(title string, cells []cell) axis {
	low, high := math.Inf(1), math.Inf(-1)
	for _, c := range cells {
		if c.Value.Defined() {
			low, high = min(low, float64(c.Value)), max(high, float64(c.Value))
		}
	}
	margin := 0.35 * (high - low)
	return newAxis(title, []float64{low - margin, high + margin})
}

// scatter draws points with the crosses of their intervals, which end at the
// frame, and the badges beside them, none upon another.
func scatter(title, xTitle, yTitle string, points []point) template.HTML {
	points = slices.DeleteFunc(slices.Clone(points), func(p point) bool { return !p.x.Value.Defined() || !p.y.Value.Defined() })
	var xs, ys []cell
	for _, p := range points {
		xs, ys = append(xs, p.x), append(ys, p.y)
	}
	f := frame{width: 560, height: 380, left: 48, right: 16, top: 32, bottom: 48, x: around(xTitle, xs), y: around(yTitle, ys)}
	var b strings.Builder
	f.open(&b, title)
	inX := func(v metrics.Value) float64 { return f.px(min(max(float64(v), f.x.low), f.x.high)) }
	inY := func(v metrics.Value) float64 { return f.py(min(max(float64(v), f.y.low), f.y.high)) }
	places := make([]place, len(points))
	for i, p := range points {
		x, y := f.px(float64(p.x.Value)), f.py(float64(p.y.Value))
		places[i] = place{x, y}
		if p.x.Low.Defined() {
			fmt.Fprintf(&b, `<line class="whisker c%d" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, p.Colour, inX(p.x.Low), inX(p.x.High), y, y)
		}
		if p.y.Low.Defined() {
			fmt.Fprintf(&b, `<line class="whisker c%d" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, p.Colour, x, x, inY(p.y.Low), inY(p.y.High))
		}
	}
	apart(places, f)
	for i, p := range points {
		x, y := f.px(float64(p.x.Value)), f.py(float64(p.y.Value))
		fmt.Fprintf(&b, `<line class="leader c%d" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/><circle class="dot c%d" cx="%.1f" cy="%.1f" r="3"/>`,
			p.Colour, x, y, places[i].x, places[i].y, p.Colour, x, y)
	}
	for i, p := range points {
		p.badge(&b, places[i].x, places[i].y, fmt.Sprintf("%s: %s %s, %s %s", p.Name, xTitle, format(p.x.Value, 2), yTitle, format(p.y.Value, 2)))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// place is where a badge goes.
type place struct{ x, y float64 }

// apart moves badges away from each other until none touches another.
func apart(places []place, f frame) {
	const distance = 21
	for range 200 {
		moved := false
		for i := range places {
			for j := range i {
				dx, dy := places[i].x-places[j].x, places[i].y-places[j].y
				between := math.Hypot(dx, dy)
				if between >= distance {
					continue
				}
				if between < 1e-6 {
					// The same place: each pair parts in a direction of its own.
					angle := float64(7*i + j)
					dx, dy, between = math.Cos(angle), math.Sin(angle), 1
				}
				push := (distance - between) / 2 / between
				places[i].x, places[i].y = places[i].x+dx*push, places[i].y+dy*push
				places[j].x, places[j].y = places[j].x-dx*push, places[j].y-dy*push
				moved = true
			}
		}
		for i := range places {
			places[i].x = min(max(places[i].x, f.left+9), f.width-f.right-9)
			places[i].y = min(max(places[i].y, f.top+9), f.height-f.bottom-9)
		}
		if !moved {
			return
		}
	}
}

// line is a method in a chart by step.
type line struct {
	series
	xs, ys []float64
}

// lines draws curves, each with its badge at the end.
func lines(title, xTitle, yTitle string, curves []line) template.HTML {
	var xs, ys []float64
	for _, c := range curves {
		xs, ys = append(xs, c.xs...), append(ys, c.ys...)
	}
	f := frame{width: 560, height: 380, left: 48, right: 40, top: 32, bottom: 48, x: newAxis(xTitle, xs), y: newAxis(yTitle, ys)}
	var b strings.Builder
	f.open(&b, title)
	var ends []end
	for _, c := range curves {
		if len(c.xs) == 0 {
			continue
		}
		var path strings.Builder
		for i := range c.xs {
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(i, 1)], f.px(c.xs[i]), f.py(c.ys[i]))
		}
		fmt.Fprintf(&b, `<path class="curve c%d d%d" d="%s"/>`, c.Colour, c.Dash, path.String())
		last := len(c.xs) - 1
		ends = append(ends, end{c.series, f.px(c.xs[last]), f.py(c.ys[last]), f.py(c.ys[last]), c.ys[last]})
	}
	spread(ends, f.top, f.height-f.bottom)
	for _, e := range ends {
		fmt.Fprintf(&b, `<line class="leader c%d" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, e.Colour, e.x, e.at, e.x+14, e.y)
		e.badge(&b, e.x+24, e.y, fmt.Sprintf("%s: ends at %.2f", e.Name, e.value))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// end is where a curve ends, and where its badge goes.
type end struct {
	series
	x, at, y, value float64
}

// spread moves badges apart, no further than needed.
func spread(ends []end, top, bottom float64) {
	const apart = 18
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.y, b.y) })
	for i := 1; i < len(ends); i++ {
		ends[i].y = max(ends[i].y, ends[i-1].y+apart)
	}
	if n := len(ends); n > 0 && ends[n-1].y > bottom {
		ends[n-1].y = bottom
		for i := n - 2; i >= 0; i-- {
			ends[i].y = min(ends[i].y, ends[i+1].y-apart)
		}
		if ends[0].y < top {
			for i := range ends {
				ends[i].y = top + (bottom-top)*float64(i)/float64(max(1, n-1))
			}
		}
	}
}

// bar is a method in a bar chart.
type bar struct {
	series
	cell
}

// bars draws one row for each method, with its interval.
func bars(title, xTitle string, digits int, list []bar) template.HTML {
	all := []float64{0}
	for _, r := range list {
		all = append(all, values(r.cell)...)
	}
	const row = 27
	f := frame{width: 560, height: 32 + row*float64(len(list)) + 48, left: 30, right: 70, top: 32, bottom: 48, x: newAxis(xTitle, all), y: axis{low: 0, high: 1}}
	f.x.low = 0 // a negative end of an interval is no negative number
	f.x.ticks = slices.DeleteFunc(f.x.ticks, func(t float64) bool { return t < 0 })
	var b strings.Builder
	f.open(&b, title)
	for _, t := range f.x.ticks {
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, f.px(t), f.px(t), f.top-8, f.height-f.bottom)
	}
	for i, r := range list {
		y := f.top + row*(float64(i)+0.5) - 4
		r.badge(&b, 13, y, r.Name)
		if !r.Value.Defined() {
			fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%.1f">accepts always</text>`, f.left+6, y+4)
			continue
		}
		x := f.px(float64(r.Value))
		fmt.Fprintf(&b, `<rect class="bar c%d d%d" x="%.1f" y="%.1f" width="%.1f" height="16" rx="3"><title>%s: %s</title></rect>`,
			r.Colour, r.Dash, f.left, y-8, max(1, x-f.left), html.EscapeString(r.Name), format(r.Value, digits))
		end := x
		if r.Low.Defined() {
			end = f.px(float64(r.High))
			fmt.Fprintf(&b, `<line class="whisker ink" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, f.px(max(0, float64(r.Low))), end, y, y)
		}
		fmt.Fprintf(&b, `<text class="value" x="%.1f" y="%.1f">%s</text>`, end+7, y+4, format(r.Value, digits))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}
