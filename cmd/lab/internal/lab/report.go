package lab

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/renameio/v2/maybe"

	"infill/internal/logmath"
	"infill/internal/phrase"
	"infill/internal/picture"
	"infill/internal/rawjson"
	"infill/samplers"
)

type StudyReport struct {
	Study       string            `json:"study"`
	Title       string            `json:"title"`
	Signature   string            `json:"signature"` // text that names all on which the numbers depend
	Seed        uint64            `json:"seed"`
	Parameters  []Label           `json:"parameters"`
	Inputs      []Label           `json:"inputs,omitempty"` // files and models, each with the beginning of its SHA-256
	Cells       []*CellResult     `json:"cells"`
	Notes       []string          `json:"notes,omitempty"`
	Definitions map[string]string `json:"definitions"`

	// Plan is what the study planned: tests look at it.
	Plan *Plan `json:"-"`
}

// WithoutTimes removes all numbers that depend on time measurements.
func (r *StudyReport) WithoutTimes() {
	for _, cell := range r.Cells {
		for _, c := range r.Plan.Columns {
			if c.Timed {
				delete(cell.Numbers, c.Name)
				delete(cell.Errors, c.Name)
			}
		}
		for _, list := range cell.Curves {
			for i := range list {
				list[i].Seconds = 0
			}
		}
	}
	r.Plan.Columns = slices.DeleteFunc(r.Plan.Columns, func(c Column) bool { return c.Timed })
}

func (r *StudyReport) Warnings() (list []string) {
	for _, c := range r.Cells {
		for _, w := range c.Warnings {
			list = append(list, c.Labels.String()+": "+w)
		}
	}
	return list
}

// group holds the results of all repetitions of a cell.
type group []*CellResult

func (r *StudyReport) groups() []group {
	return partition[group](r.Cells, func(c *CellResult) string { return group{c}.labels().String() })
}

// labels returns the labels that all repetitions share.
func (g group) labels() Labels {
	return slices.DeleteFunc(slices.Clone(g[0].Labels), func(p Label) bool { return p.Name == RepeatLabel })
}

// numbers returns a number's values, of the repetitions that have it.
func (g group) numbers(name string) (list []float64) {
	for _, c := range g {
		if x, found := c.Numbers[name]; found {
			list = append(list, x)
		}
	}
	return list
}

// panel holds groups to draw together, which differ in their first label.
type panel []group

func (r *StudyReport) panels() []panel {
	return partition[panel](r.groups(), func(g group) string { return panel{g}.name() })
}

// name joins the labels that all groups share.
func (p panel) name() string { return p[0].labels()[1:].String() }

// partition splits a list into parts of elements with equal keys.
func partition[P ~[]T, T any](list []T, key func(T) string) (parts []P) {
	known := map[string]int{}
	for _, x := range list {
		i, met := known[key(x)]
		if !met {
			i = len(parts)
			parts = append(parts, nil)
			known[key(x)] = i
		}
		parts[i] = append(parts[i], x)
	}
	return parts
}

// atEqualBudgets fills the columns that follow curves or reach a level. A
// column that follows takes each curve's value at the smallest budget in its
// panel, and its definition says which that is.
func (r *StudyReport) atEqualBudgets() {
	for _, panel := range r.panels() {
		cells := slices.Concat(panel...)
		for i, c := range r.Plan.Columns {
			budget := math.Inf(1)
			for _, cell := range cells {
				cell.reach(c, r.Plan.Level)
				points := cell.Curves[c.Follows]
				if len(points) > 0 {
					budget = min(budget, points[len(points)-1].spent(c.Budget))
				}
			}
			for _, cell := range cells {
				cell.follow(c, budget, r.Plan.chains > 1)
			}
			if logmath.Finite(budget) {
				text := fmt.Sprintf(", %.4g of %s", budget, panel.name())
				r.Plan.Columns[i].Definition += strings.TrimSuffix(text, " of ")
			}
		}
	}
}

// reach puts down the seconds at which the curve that c reaches is at a level.
func (cell *CellResult) reach(c Column, level float64) {
	list := cell.Curves[c.Reaches]
	at := slices.IndexFunc(list, func(s Sample) bool { return s.Y <= level })
	if at >= 0 {
		Put(&cell.Numbers, c.Name, list[at].Seconds)
	}
}

// follow puts down the last point within the budget of the curve that c follows:
// its value or, if c tells progress, how far it is. A single chain knows no error.
func (cell *CellResult) follow(c Column, budget float64, chains bool) {
	points := cell.Curves[c.Follows]
	if len(points) > 0 && c.Progress {
		Put(&cell.Numbers, c.Name, 0)
	}
	for _, s := range slices.Backward(points) {
		if s.spent(c.Budget) > budget {
			continue
		}
		number := s.Y
		if c.Progress {
			number = s.X
		}
		Put(&cell.Numbers, c.Name, number)
		if s.Error > 0 || chains {
			Put(&cell.Errors, c.Name, s.Error)
		}
		return
	}
}

func (r *StudyReport) JSON() ([]byte, error) {
	r.Definitions = map[string]string{}
	r.Notes = r.Plan.Notes
	for _, c := range r.Plan.Columns {
		if c.Definition != "" {
			r.Definitions[c.Name] = c.Definition
		}
	}
	text, err := rawjson.EncodeIndent(r, "", "  ")
	return append(text, '\n'), err
}

// CSV returns a header and a row for each cell: labels, numbers, and standard
// errors where single cells have them, with the number of chains behind those.
func (r *StudyReport) CSV() ([]byte, error) {
	numbers := names(r.Plan.Columns)
	withErrors := slices.DeleteFunc(slices.Clone(numbers), func(name string) bool {
		return !slices.ContainsFunc(r.Cells, func(c *CellResult) bool { return field(c.Errors, name) != "" })
	})
	head := append(r.Cells[0].Labels.names(), numbers...)
	for _, name := range withErrors {
		head = append(head, name+ErrorSuffix)
	}
	rows := [][]string{append(head, ChainsColumn, "signature")}
	for _, c := range r.Cells {
		row := c.Labels.values()
		for _, name := range numbers {
			row = append(row, field(c.Numbers, name))
		}
		for _, name := range withErrors {
			row = append(row, field(c.Errors, name))
		}
		rows = append(rows, append(row, strconv.Itoa(r.Plan.chains), c.Signature))
	}
	var b bytes.Buffer
	err := csv.NewWriter(&b).WriteAll(rows)
	return b.Bytes(), err
}

// Names in results.csv: a number's standard error is in the column with this
// suffix, and the chains behind it, or 0, in this column.
const (
	ErrorSuffix  = "-error"
	ChainsColumn = "chains"
)

func field(numbers map[string]float64, name string) string {
	x, found := numbers[name]
	if !found {
		return ""
	}
	return Decimal(x)
}

func names(columns []Column) (list []string) {
	for _, c := range columns {
		list = append(list, c.Name)
	}
	return list
}

// Write makes the folder dir, writes report.json, results.csv and the plots to
// it, and returns the paths of all files.
func (r *StudyReport) Write(dir string) (paths []string, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	write := func(name string, content []byte, failed error) {
		if path := filepath.Join(dir, name); failed == nil {
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
	for _, c := range r.Cells {
		for _, name := range c.Files {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	list, failed := r.Draw()
	for _, name := range slices.Sorted(maps.Keys(list)) {
		content, failed := picture.SVG(list[name])
		write(name+".svg", content, failed)
	}
	return paths, errors.Join(err, failed)
}

func (r *StudyReport) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.Title)
	groups := r.groups()
	columns := slices.DeleteFunc(slices.Clone(r.Plan.Columns), func(c Column) bool {
		return !slices.ContainsFunc(groups, func(g group) bool { return g.has([]Column{c}) })
	})
	for _, own := range partition[[]Column](columns, func(c Column) string { return strconv.Itoa(c.Table) }) {
		rows := slices.DeleteFunc(slices.Clone(groups), func(g group) bool { return !g.has(own) })
		writeColumns(&b, rows, own)
	}
	for _, note := range r.Plan.Notes {
		fmt.Fprintln(&b, note)
	}
	repeats := 1
	for _, g := range groups {
		repeats = max(repeats, len(g))
	}
	between := "one repetition: errors between repetitions are not known"
	if r.Plan.Between != "" || repeats > 1 {
		between = "± is a standard error between " + cmp.Or(r.Plan.Between, phrase.Counted(repeats, "repetition"))
	}
	fmt.Fprintf(&b, "%s; seed %d\n", between, r.Seed)
	fmt.Fprintf(&b, "signature: %s\n", r.Signature)
	return b.String()
}

func (g group) has(columns []Column) bool {
	return slices.ContainsFunc(columns, func(c Column) bool { return len(g.numbers(c.Name)) > 0 })
}

// text returns the mean of a number over the repetitions with its error. A
// single repetition has its own error.
func (g group) text(c Column) string {
	numbers := g.numbers(c.Name)
	switch {
	case len(numbers) == 0:
		return ""
	case c.Words != nil:
		return c.Words[int(numbers[0])]
	case len(numbers) == 1:
		if e, known := g[0].Errors[c.Name]; known {
			return withError(c.Format, numbers[0], e)
		}
	}
	mean, e := samplers.MeanAndError(numbers) // a single number has no error
	return withError(c.Format, mean, e)
}

func withError(format string, mean, standardError float64) string {
	if math.IsNaN(standardError) {
		return fmt.Sprintf(format, mean)
	}
	return fmt.Sprintf(format+" ± "+format, mean, standardError)
}

// writeColumns writes a table and the meaning of its columns. The first label
// is aligned left, all else right.
func writeColumns(b *strings.Builder, groups []group, columns []Column) {
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
		fmt.Fprintln(b, strings.TrimRight(line, " "))
	}
	fmt.Fprintln(b)
	for _, c := range columns {
		if c.Definition != "" {
			fmt.Fprintf(b, "%s: %s\n", c.Name, c.Definition)
		}
	}
	fmt.Fprintln(b)
}
