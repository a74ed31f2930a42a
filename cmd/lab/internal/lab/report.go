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
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/renameio/v2/maybe"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"infill/internal/chart"
	"infill/internal/logmath"
	"infill/internal/object"
	"infill/samplers"
)

// StudyReport holds the results of a study.
type StudyReport struct {
	Study       string            `json:"study"`
	Title       string            `json:"title"`
	Signature   string            `json:"signature"` // all that the numbers depend on
	Seed        uint64            `json:"seed"`
	Parameters  []parameter       `json:"parameters"`
	Cells       []*cellResult     `json:"cells"`
	Notes       []string          `json:"notes,omitempty"`
	Definitions map[string]string `json:"definitions"`

	plan *plan
}

// WithoutTimes removes all that depends on the clock.
func (r *StudyReport) WithoutTimes() {
	for _, cell := range r.Cells {
		for _, c := range r.plan.columns {
			if c.timed {
				delete(cell.Numbers, c.name)
				delete(cell.Errors, c.name)
			}
		}
		for _, list := range cell.Curves {
			for i := range list {
				list[i].Seconds = 0
			}
		}
	}
	r.plan.columns = slices.DeleteFunc(r.plan.columns, func(c column) bool { return c.timed })
}

// Warnings are sentences about the limits of the results.
func (r *StudyReport) Warnings() []string {
	list := slices.Clone(r.plan.warnings)
	for _, c := range r.Cells {
		for _, w := range c.Warnings {
			list = append(list, c.Labels.String()+": "+w)
		}
	}
	return list
}

// group is the repetitions of a cell.
type group []*cellResult

func (r *StudyReport) groups() []group {
	return partition[group](r.Cells, func(c *cellResult) string { return group{c}.labels().String() })
}

// labels returns the labels that the repetitions share.
func (g group) labels() labels {
	return slices.DeleteFunc(slices.Clone(g[0].Labels), func(p parameter) bool { return p.Name == repeatLabel })
}

// numbers returns the values of a number, from the repetitions that found one.
func (g group) numbers(name string) (list []float64) {
	for _, c := range g {
		if x, found := c.Numbers[name]; found {
			list = append(list, x)
		}
	}
	return list
}

// panel is the groups that are compared and drawn together: they differ in their first label.
type panel []group

func (r *StudyReport) panels() []panel {
	return partition[panel](r.groups(), func(g group) string { return panel{g}.name() })
}

// name is the other labels.
func (p panel) name() string { return p[0].labels()[1:].String() }

// partition groups the elements that have the same key.
func partition[P ~[]T, T any](list []T, key func(T) string) (parts []P) {
	known := map[string]int{}
	for _, x := range list {
		i, met := known[key(x)]
		if !met {
			i, parts = len(parts), append(parts, nil)
			known[key(x)] = i
		}
		parts[i] = append(parts[i], x)
	}
	return parts
}

// atEqualBudgets fills in the columns that say where every curve of a panel was when the smallest budget that one of
// them has was spent, and completes their definitions.
func (r *StudyReport) atEqualBudgets() {
	for _, panel := range r.panels() {
		for i, c := range r.plan.columns {
			spent := func(s sample) float64 {
				if c.timed {
					return s.Seconds
				}
				return s.X
			}
			budget := math.Inf(1)
			for _, g := range panel {
				if points := g[0].Curves[c.follows]; len(points) > 0 {
					budget = min(budget, spent(points[len(points)-1]))
				}
			}
			for _, g := range panel {
				for _, s := range g[0].Curves[c.follows] {
					if spent(s) > budget {
						continue
					}
					if put(&g[0].Numbers, c.name, s.Y); s.Error > 0 {
						put(&g[0].Errors, c.name, s.Error)
					}
				}
			}
			if logmath.Finite(budget) {
				text := fmt.Sprintf(", %.4g of %s", budget, panel.name())
				r.plan.columns[i].definition += strings.TrimSuffix(text, " of ")
			}
		}
	}
}

// JSON is the whole report, indented, with a line end.
func (r *StudyReport) JSON() ([]byte, error) {
	r.Definitions, r.Notes = map[string]string{}, r.plan.notes
	for _, c := range r.plan.columns {
		if c.definition != "" {
			r.Definitions[c.name] = c.definition
		}
	}
	text, err := object.EncodeIndent(r, "", "  ")
	return append(text, '\n'), err
}

// CSV is a row for each cell.
func (r *StudyReport) CSV() ([]byte, error) {
	rows := [][]string{slices.Concat(r.Cells[0].Labels.names(), names(r.plan.columns), []string{"signature"})}
	for _, c := range r.Cells {
		row := c.Labels.values()
		for _, name := range names(r.plan.columns) {
			text := ""
			if x, found := c.Numbers[name]; found {
				text = decimal(x)
			}
			row = append(row, text)
		}
		rows = append(rows, append(row, c.Signature))
	}
	return table(rows)
}

func names(columns []column) (list []string) {
	for _, c := range columns {
		list = append(list, c.name)
	}
	return list
}

// curvesCSV is a row for each point of each curve.
func (r *StudyReport) curvesCSV() ([]byte, error) {
	rows := [][]string{slices.Concat([]string{"curve"}, r.Cells[0].Labels.names(), []string{"x", "seconds", "y"})}
	for _, kind := range r.plan.curves {
		for _, c := range r.Cells {
			for _, s := range c.Curves[kind.name] {
				rows = append(rows, slices.Concat([]string{kind.name}, c.Labels.values(),
					[]string{decimal(s.X), decimal(s.Seconds), decimal(s.Y)}))
			}
		}
	}
	if len(rows) == 1 {
		return nil, nil
	}
	return table(rows)
}

func table(rows [][]string) ([]byte, error) {
	var b bytes.Buffer
	err := csv.NewWriter(&b).WriteAll(rows)
	return b.Bytes(), err
}

// PlotFormats lists the forms of plots; none leaves them out.
func PlotFormats() []string { return []string{"svg", "png", "none"} }

// Write puts report.json, results.csv, curves.csv and the plots into a folder, which it makes, beside pictures that are
// there already, and returns the files' paths. Each file is written whole or not at all.
func (r *StudyReport) Write(dir, format string) (paths []string, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	write := func(name string, content []byte, failed error) {
		if path := filepath.Join(dir, name); failed == nil && content != nil {
			failed = maybe.WriteFile(path, content, 0o666)
			paths = append(paths, path)
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", name, failed))
		}
	}
	content, failed := r.JSON()
	write("report.json", content, failed)
	content, failed = r.CSV()
	write("results.csv", content, failed)
	content, failed = r.curvesCSV()
	write("curves.csv", content, failed)
	for _, c := range r.Cells {
		for _, name := range c.Pictures {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	if format == "none" {
		return paths, err
	}
	list, failed := r.plan.figures(r)
	for _, f := range list {
		content, failed := f.Encode(format)
		write(f.Name+"."+format, content, failed)
	}
	return paths, errors.Join(err, failed)
}

// Text is the report for a page of that many columns, 0 for any.
func (r *StudyReport) Text(width int) string {
	p := &printer{width: width}
	p.line(r.Title)
	p.text.WriteString("\n")
	groups := r.groups()
	columns := slices.DeleteFunc(slices.Clone(r.plan.columns), func(c column) bool {
		return !slices.ContainsFunc(groups, func(g group) bool { return len(g.numbers(c.name)) > 0 })
	})
	for _, own := range partition[[]column](columns, func(c column) string { return strconv.Itoa(c.table) }) {
		p.columns(groups, own)
	}
	for _, note := range r.plan.notes {
		p.line(note)
	}
	repeats := 1
	for _, g := range groups {
		repeats = max(repeats, len(g))
	}
	between := "one repetition: errors between repetitions are not known"
	if r.plan.between != "" || repeats > 1 {
		between = "± is a standard error between " + cmp.Or(r.plan.between, counted(repeats, "repetition"))
	}
	p.line(fmt.Sprintf("%s; seed %d", between, r.Seed))
	return p.text.String()
}

// text is the mean of a number with its error between repetitions, or with its own of a single one.
func (g group) text(c column) string {
	numbers := g.numbers(c.name)
	switch {
	case len(numbers) == 0:
		return ""
	case c.words != nil:
		return c.words[int(numbers[0])]
	case len(numbers) == 1:
		if e, known := g[0].Errors[c.name]; known {
			return withError(c.format, numbers[0], &e)
		}
	}
	return MeanAndError(c.format, numbers)
}

// MeanAndError writes a mean with its standard error, of one value without.
func MeanAndError(format string, values []float64) string {
	mean, e := samplers.MeanAndError(values)
	return withError(format, mean, e)
}

// withError is a mean with its standard error, where that is known.
func withError(format string, mean float64, standardError *float64) string {
	text := fmt.Sprintf(format, mean)
	if standardError != nil {
		text += " ± " + fmt.Sprintf(format, *standardError)
	}
	return text
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// printer writes for people.
type printer struct {
	text  strings.Builder
	width int
}

// line writes a text, broken between words where it is wider than the page.
func (p *printer) line(text string) {
	text = strings.Join(strings.Fields(text), " ")
	if p.width > 0 {
		text = ansi.Wordwrap(text, p.width, "")
	}
	p.text.WriteString(text + "\n")
}

// columns writes a table and the meaning of its columns. The first label is aligned left, and all else right.
func (p *printer) columns(groups []group, columns []column) {
	rows := [][]string{append(groups[0].labels().names(), names(columns)...)}
	for _, g := range groups {
		row := g.labels().values()
		for _, c := range columns {
			row = append(row, g.text(c))
		}
		rows = append(rows, row)
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		line := fmt.Sprintf("  %-*s", widths[0], row[0])
		for i, cell := range row[1:] {
			line += fmt.Sprintf("  %*s", widths[i+1], cell)
		}
		p.text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	p.text.WriteString("\n")
	for _, c := range columns {
		if c.definition != "" {
			p.line(c.name + ": " + c.definition)
		}
	}
	p.text.WriteString("\n")
}

// draw draws every curve, by x and by seconds, bars, and columns against labels and other columns.
// Lines are the first label; other labels have a figure each.
func (r *StudyReport) draw() (list []chart.Figure, failed error) {
	add := func(name string, p *plot.Plot, err error) {
		failed = errors.Join(failed, err)
		if p != nil {
			list = append(list, chart.Figure{Name: name, Plot: p})
		}
	}
	for _, panel := range r.panels() {
		suffix, title := "", r.Title
		if panel.name() != "" {
			suffix, title = "-"+slug(labels{{"", panel.name()}}), title+", "+panel.name()
		}
		for _, c := range r.plan.curves {
			p, err := drawCurves(panel, c, title, c.x, func(s sample) float64 { return s.X })
			add(c.name+suffix, p, err)
			if !c.byXAlone {
				p, err = drawCurves(panel, c, title, "seconds of processor time (noisy)",
					func(s sample) float64 { return s.Seconds })
				add(c.name+suffix+"-by-second", p, err)
			}
		}
		for _, c := range r.plan.columns {
			if c.bar {
				p, err := drawBars(panel, c, title)
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
	return list, failed
}

// drawBars draws a bar with its error for each group that has the number.
func drawBars(groups []group, c column, title string) (*plot.Plot, error) {
	var list []chart.Bar
	for _, g := range groups {
		if numbers := g.numbers(c.name); len(numbers) > 0 {
			mean, e := stat.Mean(numbers, nil), g[0].Errors[c.name]
			list = append(list, chart.Bar{Name: g.labels()[0].Value, Value: mean, Low: mean - e, High: mean + e})
		}
	}
	return chart.Bars(title, c.name, list)
}

// drawCurves draws one curve of every group, the mean of its repetitions.
func drawCurves(groups []group, c curve, title, x string, at func(sample) float64) (*plot.Plot, error) {
	var list []chart.Line
	for i, g := range groups {
		l := chart.Line{Look: i, Name: g.labels()[0].Value}
		for k := 0; ; k++ {
			var xs, ys []float64
			for _, cell := range g {
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
			name, _, _ := strings.Cut(g.labels()[0].Value, ":")
			list = chart.Add(list, name, stat.Mean(x, nil), stat.Mean(y, nil))
		}
		if x, err := strconv.ParseFloat(g.labels().value(c.against), 64); err == nil {
			list = chart.Add(list, g.labels()[0].Value, math.Max(x, 1e-9), stat.Mean(y, nil))
		}
	}
	return chart.Lines(r.Title, c.against, c.name, list, true)
}
