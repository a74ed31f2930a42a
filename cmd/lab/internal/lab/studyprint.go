package lab

import (
	"bytes"
	"encoding/csv"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"infill/internal/chart"
)

// Text is the report for a page of that many columns, 0 for any.
func (r *StudyReport) Text(width int) string {
	p := &printer{width: width}
	p.heading(r.Title)
	groups, repeats := r.groups(), 1
	var headers []string
	for _, l := range groups[0].labels {
		headers = append(headers, l.Name)
	}
	var columns []column
	for _, c := range r.plan.columns {
		if slices.ContainsFunc(groups, func(g *group) bool { return len(g.numbers(c.name)) > 0 }) {
			columns = append(columns, c)
			headers = append(headers, c.name)
		}
	}
	var rows [][]string
	for _, g := range groups {
		repeats = max(repeats, len(g.cells))
		var row []string
		for _, l := range g.labels {
			row = append(row, l.Value)
		}
		for _, c := range columns {
			text := ""
			if numbers := g.numbers(c.name); len(numbers) > 0 {
				text = MeanAndError(c.format, numbers)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	p.table(headers, rows)
	for _, c := range columns {
		if c.definition != "" {
			p.rest("%s: %s", c.name, c.definition)
		}
	}
	for _, note := range r.plan.notes {
		p.rest("%s", note)
	}
	if repeats > 1 {
		p.rest("± is a standard error between %s; seed %d", counted(repeats, "repetition"), r.Seed)
	} else {
		p.rest("one repetition: errors between repetitions are not known; seed %d", r.Seed)
	}
	return p.text.String()
}

// CSV is a row for each cell.
func (r *StudyReport) CSV() ([]byte, error) {
	var header []string
	for _, l := range r.Cells[0].Labels {
		header = append(header, l.Name)
	}
	for _, c := range r.plan.columns {
		header = append(header, c.name)
	}
	rows := [][]string{append(header, "signature")}
	for _, c := range r.Cells {
		var row []string
		for _, l := range c.Labels {
			row = append(row, l.Value)
		}
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
				row := []string{kind.name}
				for _, l := range c.Labels {
					row = append(row, l.Value)
				}
				rows = append(rows, append(row, decimal(s.X), decimal(s.Seconds), decimal(s.Y)))
			}
		}
	}
	if rows == nil {
		return nil, nil
	}
	header := []string{"curve"}
	for _, l := range r.Cells[0].Labels {
		header = append(header, l.Name)
	}
	return table(append([][]string{append(header, "x", "seconds", "y")}, rows...))
}

// Write puts report.json, results.csv, curves.csv and the plots into a folder.
// Each file is written whole or not at all.
func (r *StudyReport) Write(dir, format string) ([]string, error) {
	var pictures []string
	for _, c := range r.Cells {
		pictures = append(pictures, c.Pictures...)
	}
	files := []file{{"report.json", r.JSON}, {"results.csv", r.CSV}, {"curves.csv", r.curvesCSV}}
	return writeReport(dir, format, files, pictures, r.figures)
}

// figures draws every curve, by x and by seconds, and columns against labels.
// Lines are the first label; other labels have a figure each.
func (r *StudyReport) figures() (list []chart.Figure, failed error) {
	add := func(name string, p *plot.Plot, err error) {
		failed = errors.Join(failed, err)
		if p != nil {
			list = append(list, chart.Figure{Name: name, Plot: p})
		}
	}
	var panels []string
	of := map[string][]*group{}
	for _, g := range r.groups() {
		panel := strings.Join(values(g.labels[1:]), " ")
		if of[panel] == nil {
			panels = append(panels, panel)
		}
		of[panel] = append(of[panel], g)
	}
	for _, c := range r.plan.curves {
		for _, panel := range panels {
			name, title := c.name, r.Title
			if panel != "" {
				name += "-" + slug([]parameter{{"", panel}})
				title += ", " + panel
			}
			p, err := drawCurves(of[panel], c, title, c.x, func(s sample) float64 { return s.X })
			add(name, p, err)
			p, err = drawCurves(of[panel], c, title, "seconds of processor time (noisy)",
				func(s sample) float64 { return s.Seconds })
			add(name+"-by-second", p, err)
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
			l.At = append(l.At, plotter.XY{X: stat.Mean(xs, nil), Y: stat.Mean(ys, nil)})
		}
		list = append(list, l)
	}
	return chart.Lines(title, x, c.y, list, false)
}

// drawColumn draws a column against a label of numbers, a line for each value of the first label.
func (r *StudyReport) drawColumn(c column) (*plot.Plot, error) {
	var list []chart.Line
	for _, g := range r.groups() {
		for _, l := range g.labels {
			x, err := strconv.ParseFloat(l.Value, 64)
			if numbers := g.numbers(c.name); l.Name == c.against && err == nil && len(numbers) > 0 {
				list = chart.Add(list, g.labels[0].Value, math.Max(x, 1e-9), stat.Mean(numbers, nil))
			}
		}
	}
	return chart.Lines(r.Title, c.against, c.name, list, true)
}
