package lab

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/renameio/v2/maybe"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"infill/internal/chart"
)

// Text is the report for a page of that many columns, 0 for any.
func (r *StudyReport) Text(width int) string {
	p := &printer{width: width}
	p.text.WriteString(p.wrap(r.Title) + "\n\n")
	groups := r.groups()
	columns := slices.DeleteFunc(slices.Clone(r.plan.columns), func(c column) bool {
		return !slices.ContainsFunc(groups, func(g *group) bool { return len(g.numbers(c.name)) > 0 })
	})
	for len(columns) > 0 {
		n := slices.IndexFunc(columns, func(c column) bool { return c.table != columns[0].table })
		if n < 0 {
			n = len(columns)
		}
		p.columns(groups, columns[:n])
		columns = columns[n:]
	}
	for _, note := range r.plan.notes {
		p.rest("%s", note)
	}
	repeats := 1
	for _, g := range groups {
		repeats = max(repeats, len(g.cells))
	}
	if between := cmp.Or(r.plan.between, counted(repeats, "repetition")); r.plan.between != "" || repeats > 1 {
		p.rest("± is a standard error between %s; seed %d", between, r.Seed)
	} else {
		p.rest("one repetition: errors between repetitions are not known; seed %d", r.Seed)
	}
	return p.text.String()
}

// namesAndValues are those of labels.
func namesAndValues(labels []parameter) (names, values []string) {
	for _, l := range labels {
		names, values = append(names, l.Name), append(values, l.Value)
	}
	return names, values
}

// columns writes a table, and what its columns are.
func (p *printer) columns(groups []*group, columns []column) {
	headers, _ := namesAndValues(groups[0].labels)
	for _, c := range columns {
		headers = append(headers, c.name)
	}
	var rows [][]string
	for _, g := range groups {
		_, row := namesAndValues(g.labels)
		for _, c := range columns {
			row = append(row, g.text(c))
		}
		rows = append(rows, row)
	}
	p.table(headers, rows)
	for _, c := range columns {
		if c.definition != "" {
			p.rest("%s: %s", c.name, c.definition)
		}
	}
	p.text.WriteString("\n")
}

// text is the mean of a number with its error between repetitions, or with its own of a single one.
func (g *group) text(c column) string {
	numbers := g.numbers(c.name)
	switch {
	case len(numbers) == 0:
		return ""
	case c.words != nil:
		return c.words[int(numbers[0])]
	case len(numbers) == 1:
		if e, known := g.cells[0].Errors[c.name]; known {
			return withError(c.format, numbers[0], &e)
		}
	}
	return MeanAndError(c.format, numbers)
}

// CSV is a row for each cell.
func (r *StudyReport) CSV() ([]byte, error) {
	header, _ := namesAndValues(r.Cells[0].Labels)
	for _, c := range r.plan.columns {
		header = append(header, c.name)
	}
	rows := [][]string{append(header, "signature")}
	for _, c := range r.Cells {
		_, row := namesAndValues(c.Labels)
		for _, column := range r.plan.columns {
			text := ""
			if x, found := c.Numbers[column.name]; found {
				text = decimal(x)
			}
			row = append(row, text)
		}
		rows = append(rows, append(row, c.Signature))
	}
	return table(rows)
}

func table(rows [][]string) ([]byte, error) {
	var b bytes.Buffer
	err := csv.NewWriter(&b).WriteAll(rows)
	return b.Bytes(), err
}

// curvesCSV is a row for each point of each curve.
func (r *StudyReport) curvesCSV() ([]byte, error) {
	var rows [][]string
	for _, kind := range r.plan.curves {
		for _, c := range r.Cells {
			for _, s := range c.Curves[kind.name] {
				_, row := namesAndValues(c.Labels)
				rows = append(rows, slices.Concat([]string{kind.name}, row,
					[]string{decimal(s.X), decimal(s.Seconds), decimal(s.Y)}))
			}
		}
	}
	if rows == nil {
		return nil, nil
	}
	header, _ := namesAndValues(r.Cells[0].Labels)
	header = slices.Concat([]string{"curve"}, header, []string{"x", "seconds", "y"})
	return table(append([][]string{header}, rows...))
}

// PlotFormats lists the forms of plots; none leaves them out.
func PlotFormats() []string { return []string{"svg", "png", "none"} }

// Write puts report.json, results.csv, curves.csv and the plots into a folder, which it makes, beside pictures that are
// there already, and returns the files' paths. Each file is written whole or not at all.
func (r *StudyReport) Write(dir, format string) (paths []string, err error) {
	if !slices.Contains(PlotFormats(), format) {
		return nil, refuse("plots", "%q is not one of %v", format, PlotFormats())
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	write := func(name string, content []byte, err error) error {
		if path := filepath.Join(dir, name); err == nil && content != nil {
			err = maybe.WriteFile(path, content, 0o666)
			paths = append(paths, path)
		}
		return err
	}
	for _, f := range []struct {
		name    string
		content func() ([]byte, error)
	}{{"report.json", r.JSON}, {"results.csv", r.CSV}, {"curves.csv", r.curvesCSV}} {
		content, err := f.content()
		if err := write(f.name, content, err); err != nil {
			return paths, err
		}
	}
	for _, c := range r.Cells {
		for _, name := range c.Pictures {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	if format == "none" {
		return paths, nil
	}
	list, err := r.figures()
	if err != nil {
		return paths, fmt.Errorf("plots: %w", err)
	}
	for _, f := range list {
		drawn, err := f.Encode(format)
		if err := write(f.Name+"."+format, drawn, err); err != nil {
			return paths, fmt.Errorf("plot %s: %w", f.Name, err)
		}
	}
	return paths, nil
}

// panel is the groups that are drawn together: they differ in their first label.
type panel struct {
	name   string // the other labels
	groups []*group
}

func (r *StudyReport) panels() (list []panel) {
	for _, g := range r.groups() {
		name := strings.Join(values(g.labels[1:]), " ")
		i := slices.IndexFunc(list, func(p panel) bool { return p.name == name })
		if i < 0 {
			i, list = len(list), append(list, panel{name: name})
		}
		list[i].groups = append(list[i].groups, g)
	}
	return list
}

// figures draws every curve, by x and by seconds, bars, and columns against labels and other columns.
// Lines are the first label; other labels have a figure each.
func (r *StudyReport) figures() (list []chart.Figure, failed error) {
	add := func(name string, p *plot.Plot, err error) {
		failed = errors.Join(failed, err)
		if p != nil {
			list = append(list, chart.Figure{Name: name, Plot: p})
		}
	}
	for _, panel := range r.panels() {
		suffix, title := "", r.Title
		if panel.name != "" {
			suffix, title = "-"+slug([]parameter{{"", panel.name}}), title+", "+panel.name
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
	if r.plan.draw != nil {
		more, err := r.plan.draw(r)
		list, failed = append(list, more...), errors.Join(failed, err)
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
		for _, l := range g.labels {
			if x, err := strconv.ParseFloat(l.Value, 64); l.Name == c.against && err == nil {
				list = chart.Add(list, g.labels[0].Value, math.Max(x, 1e-9), stat.Mean(y, nil))
			}
		}
	}
	return chart.Lines(r.Title, c.against, c.name, list, true)
}
