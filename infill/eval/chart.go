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
func (p *page) scatter(title string, x, y tick) (*plot.Plot, error) {
	c := chart.New(title, x.title, y.title)
	xs, ys := p.column(x.key), p.column(y.key)
	for i, s := range p.Series {
		if !xs[i].Value.Defined() || !ys[i].Value.Defined() {
			continue
		}
		at := plotter.XYs{{X: float64(xs[i].Value), Y: float64(ys[i].Value)}}
		points, err := plotter.NewScatter(at)
		if err != nil {
			return nil, err
		}
		points.GlyphStyle = draw.GlyphStyle{Color: chart.Style(i).Color, Radius: 4, Shape: shapes[s.Dash]}
		across, err := plotter.NewXErrorBars(struct {
			plotter.XYer
			plotter.XErrorer
		}{at, plotter.XErrors{whiskers(xs[i])}})
		if err != nil {
			return nil, err
		}
		up, err := plotter.NewYErrorBars(struct {
			plotter.XYer
			plotter.YErrorer
		}{at, plotter.YErrors{whiskers(ys[i])}})
		if err != nil {
			return nil, err
		}
		across.LineStyle.Color, up.LineStyle.Color = chart.Style(i).Color, chart.Style(i).Color
		c.Add(across, up, points)
		c.Legend.Add(s.label(), points)
	}
	chart.Digits(&c.X, p.digits(x.key))
	chart.Digits(&c.Y, p.digits(y.key))
	return c, nil
}

// whiskers are how far an interval reaches to both sides, nowhere where there is none.
func whiskers(c cell) struct{ Low, High float64 } {
	if !c.Low.Defined() || !c.High.Defined() {
		return struct{ Low, High float64 }{}
	}
	return struct{ Low, High float64 }{float64(c.Low - c.Value), float64(c.High - c.Value)}
}

// bars draws a column.
func (p *page) bars(title string, x tick) (*plot.Plot, error) {
	var list []chart.Bar
	for i, c := range p.column(x.key) {
		if c.Value.Defined() {
			w := whiskers(c)
			value := float64(c.Value)
			list = append(list, chart.Bar{Name: p.Series[i].label(), Value: value, Low: value + w.Low, High: value + w.High})
		}
	}
	c, err := chart.Bars(title, x.title, list)
	if c == nil {
		return chart.New(title, "all accept always", ""), err
	}
	chart.Digits(&c.X, p.digits(x.key))
	return c, err
}

// lines draws the mean U by step.
func (p *page) lines(title string) (*plot.Plot, error) {
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
	c, err := chart.Lines(title, "step", "mean U, nats", list, false)
	if c == nil {
		return chart.New(title, "no steps", ""), err
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
func drawing(p *plot.Plot) (template.HTML, error) {
	title := p.Title.Text
	p.Title.Text = "" // it stands above
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
	quality := tick{metrics.MetricCorpusBLEU + "/" + metrics.Union, "corpus BLEU, %"}
	for _, c := range []struct {
		title, caption string
		draw           func(title string) (*plot.Plot, error)
	}{
		{"Diversity against quality", "Down is more diverse, right is closer to the corpora. The lines are the scores’ intervals over sentences. What sets methods apart is in the paired tests above.",
			func(title string) (*plot.Plot, error) {
				return p.scatter(title, quality, tick{metrics.MetricSelfBLEU, "self-BLEU, %"})
			}},
		{"Diversity against likelihood", "Up is more diverse, right is what the model finds likelier. A sampler that is diverse because it left the model’s distribution stands to the left.",
			func(title string) (*plot.Plot, error) {
				return p.scatter(title, tick{"log_likelihood", "mean log-likelihood U, nats"}, tick{metrics.MetricUniqueNGrams + "/self/2", "unique 2-grams among the samples, %"})
			}},
		{"Log-likelihood by step", "Mean U over the chains of all sentences.", p.lines},
		{"Acceptance", fmt.Sprintf("Share of proposals taken after the warm-up, with %g %% intervals over sentences; methods that accept always are left out.", 100*p.Configuration.Metrics.Confidence),
			func(title string) (*plot.Plot, error) { return p.bars(title, tick{"acceptance_rate", "acceptance"}) }},
		{"Cost in model rows", "Token sequences that went through the model for one sample.",
			func(title string) (*plot.Plot, error) {
				return p.bars(title, tick{"model_rows_per_sample", "rows per sample"})
			}},
		{"Cost in seconds", "On the machine of this run, for one sample.",
			func(title string) (*plot.Plot, error) {
				return p.bars(title, tick{"seconds_per_sample", "seconds per sample"})
			}},
	} {
		drawn, err := c.draw(c.title)
		if err != nil {
			return fmt.Errorf("chart %q: %w", c.title, err)
		}
		of := pageChart{Title: c.title, Caption: c.caption}
		if of.Drawing, err = drawing(drawn); err != nil {
			return fmt.Errorf("chart %q: %w", c.title, err)
		}
		p.Charts = append(p.Charts, of)
	}
	return nil
}
