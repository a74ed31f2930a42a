package eval

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"regexp"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"infill/internal/chart"
	"infill/metrics"
)

// series is how a method looks in every chart and table: a number, in the colour and with the dashes of the charts'
// lines, so that nobody has to tell eleven colours apart.
type series struct {
	Number int // from 1
	Colour int
	Dash   int
	Name   string
}

// allSeries are those of the methods, with the model where there are several.
func allSeries(r *Results) []series {
	var list []series
	for i, m := range r.Methods {
		name := m.Method
		if len(r.Models) > 1 {
			name += ", " + m.Model
		}
		list = append(list, series{i + 1, i % len(chart.Colours), min(2, i/len(chart.Colours)), name})
	}
	return list
}

// label is what a method is in a chart: its number, which the page has beside its name.
func (s series) label() string { return fmt.Sprint(s.Number) }

// shapes of the points go with the dashes of the lines.
var shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}}

// tick is an axis: a column of the table, its title in the chart.
type tick struct {
	key, title string
}

// scatter draws the methods by two columns, with crosses for the intervals.
func (p *page) scatter(x, y tick) (*plot.Plot, error) {
	c := chart.New("", x.title, y.title)
	xs, ys := p.column(x.key), p.column(y.key)
	for i, s := range p.Series {
		if !xs[i].Value.Defined() || !ys[i].Value.Defined() {
			continue
		}
		at := plotter.XY{X: float64(xs[i].Value), Y: float64(ys[i].Value)}
		left, right := xs[i].interval()
		bottom, top := ys[i].interval()
		for _, reach := range []plotter.XYs{{{X: left, Y: at.Y}, {X: right, Y: at.Y}},
			{{X: at.X, Y: bottom}, {X: at.X, Y: top}}} {
			line, err := plotter.NewLine(reach)
			if err != nil {
				return nil, err
			}
			line.Color = chart.Style(i).Color
			c.Add(line)
		}
		point, err := plotter.NewScatter(plotter.XYs{at})
		if err != nil {
			return nil, err
		}
		point.GlyphStyle = draw.GlyphStyle{Color: chart.Style(i).Color, Radius: 4, Shape: shapes[s.Dash]}
		c.Add(point)
		c.Legend.Add(s.label(), point)
	}
	chart.Digits(&c.X, p.digits(x.key))
	chart.Digits(&c.Y, p.digits(y.key))
	return c, nil
}

// interval is that of a number, the number itself if there is none.
func (c cell) interval() (low, high float64) {
	if !c.Low.Defined() || !c.High.Defined() {
		return float64(c.Value), float64(c.Value)
	}
	return float64(c.Low), float64(c.High)
}

// bars draws a column.
func (p *page) bars(x tick) (*plot.Plot, error) {
	var list []chart.Bar
	for i, c := range p.column(x.key) {
		if c.Value.Defined() {
			low, high := c.interval()
			list = append(list, chart.Bar{Name: p.Series[i].label(), Value: float64(c.Value), Low: low, High: high})
		}
	}
	c, err := chart.Bars("", x.title, list)
	if c == nil {
		return chart.New("", "all accept always", ""), err
	}
	chart.Digits(&c.X, p.digits(x.key))
	return c, err
}

// lines draws the mean U by step.
func (p *page) lines() (*plot.Plot, error) {
	var list []chart.Line
	for i, m := range p.Methods {
		l := chart.Line{Look: i, Name: p.Series[i].label()}
		for _, at := range m.Trace {
			if at.LogLikelihood != nil {
				l.At = append(l.At, plotter.XY{X: float64(at.Step), Y: *at.LogLikelihood})
			}
		}
		list = append(list, l)
	}
	c, err := chart.Lines("", "step", "mean U, nats", list, false)
	if c == nil {
		return chart.New("", "no steps", ""), err
	}
	chart.Digits(&c.Y, p.digits("log_likelihood"))
	return c, err
}

// column are the numbers of the likeliest samples in a column.
func (p *page) column(key string) []cell {
	var cells []cell
	for _, m := range p.Top.Methods {
		cells = append(cells, m.Numbers[key])
	}
	return cells
}

// digits are those that the table shows of a column.
func (p *page) digits(key string) int {
	for _, c := range p.Top.Columns {
		if c.Key == key {
			return c.digits
		}
	}
	return 2
}

// outside is what of an SVG file has no place in a page.
var outside = regexp.MustCompile(`(?s)^.*?<svg |xmlns(:xlink)?="[^"]*"`)

// drawing is a plot within a page.
func drawing(title string, p *plot.Plot) (template.HTML, error) {
	svg, err := chart.Figure{Plot: p}.Encode("svg")
	svg = outside.ReplaceAllFunc(svg, func(part []byte) []byte {
		if bytes.HasSuffix(part, []byte("<svg ")) {
			return []byte(`<svg role="img" aria-label="` + html.EscapeString(title) + `" `)
		}
		return nil
	})
	return template.HTML(svg), err
}

// charts draws all.
func (p *page) charts() error {
	bars := func(key, title string) func() (*plot.Plot, error) {
		return func() (*plot.Plot, error) { return p.bars(tick{key, title}) }
	}
	for _, c := range []struct {
		title, caption string
		draw           func() (*plot.Plot, error)
	}{
		{"Diversity against quality", "Down is more diverse, right is closer to the corpora. The lines are the " +
			"scores’ intervals over sentences. What sets methods apart is in the paired tests above.",
			func() (*plot.Plot, error) {
				return p.scatter(tick{metrics.MetricCorpusBLEU + "/" + metrics.Union, "corpus BLEU, %"},
					tick{metrics.MetricSelfBLEU, "self-BLEU, %"})
			}},
		{"Diversity against likelihood", "Up is more diverse, right is what the model finds likelier. A sampler that " +
			"is diverse because it left the model’s distribution stands to the left.",
			func() (*plot.Plot, error) {
				return p.scatter(tick{"log_likelihood", "mean log-likelihood U, nats"},
					tick{metrics.MetricUniqueNGrams + "/self/2", "unique 2-grams among the samples, %"})
			}},
		{"Log-likelihood by step", "Mean U over the chains of all sentences.", p.lines},
		{"Acceptance", fmt.Sprintf("Share of proposals taken after the warm-up, with %g %% intervals over sentences; "+
			"methods that accept always are left out.", 100*p.Configuration.Metrics.Confidence),
			bars("acceptance_rate", "acceptance")},
		{"Cost in model rows", "Token sequences that went through the model for one sample.",
			bars("model_rows_per_sample", "rows per sample")},
		{"Cost in seconds", "On the machine of this run, for one sample.",
			bars("seconds_per_sample", "seconds per sample")},
	} {
		drawn, err := c.draw()
		if err != nil {
			return fmt.Errorf("chart %q: %w", c.title, err)
		}
		svg, err := drawing(c.title, drawn)
		if err != nil {
			return fmt.Errorf("chart %q: %w", c.title, err)
		}
		p.Charts = append(p.Charts, pageChart{c.title, c.caption, svg})
	}
	return nil
}
