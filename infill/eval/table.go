package eval

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/gonum/stat/distuv"

	"infill/metrics"
)

// Sets lists the sets of samples that scores are taken of, the default first:
// the likeliest final states of each sentence, or all of them.
func Sets() []string { return []string{"top", "all"} }

// Table is table 3 of the paper with intervals, and what it leaves out beside it.
type Table struct {
	Set         string
	Columns     []Column
	Rows        []Row
	Comparisons []ComparisonRow
	// Notes say how the numbers came about.
	Notes []string
	// Signature is that of the run.
	Signature string
}

// Column is a number of every method.
type Column struct {
	Key    string // "self_bleu", "unique_ngrams/tbc/2", "acceptance", …
	Title  string
	Digits int  // after the point
	Score  bool // of the text, with a bootstrap interval; else of the sampling, with a standard error
	Better int  // 1 where higher is better, −1 where lower is, 0 where neither
}

// Row is a method.
type Row struct {
	Model, Method string
	Cells         []Cell
}

// Cell is a number with its interval; a Value that is not defined has none.
type Cell struct{ Value, Low, High metrics.Value }

// ComparisonRow is a method against a baseline, in the columns that Table.Columns
// has scores in.
type ComparisonRow struct {
	Model, First, Second string
	Cells                map[string]ComparedScore // by Column.Key
}

func undefined() metrics.Value { return metrics.Value(math.NaN()) }

// cell has an interval that reaches so many standard errors to each side.
func (e *Estimate) cell(reach float64) Cell {
	if e == nil {
		return Cell{undefined(), undefined(), undefined()}
	}
	c := Cell{metrics.Value(e.Mean), undefined(), undefined()}
	if e.StandardError != nil {
		c.Low, c.High = metrics.Value(e.Mean-reach**e.StandardError), metrics.Value(e.Mean+reach**e.StandardError)
	}
	return c
}

func (m *MethodResult) report(set string) *metrics.Report {
	if set == "all" {
		return m.All
	}
	return m.Top
}

// Table makes the table of one of Sets().
func (r *Results) Table(set string) *Table {
	t := &Table{Set: set, Signature: r.Signature}
	score := func(key, title string, better int) {
		t.Columns = append(t.Columns, Column{Key: key, Title: title, Digits: 2, Score: true, Better: better})
	}
	score(metrics.MetricSelfBLEU, "self-BLEU ↓", -1)
	names := []string{metrics.Self}
	for _, c := range r.Corpora {
		names = append(names, c.Name)
	}
	for _, name := range names {
		for _, n := range comparedOrders() {
			score(fmt.Sprintf("%s/%s/%d", metrics.MetricUniqueNGrams, name, n), fmt.Sprintf("%s %d ↑", name, n), 1)
		}
	}
	score(metrics.MetricCorpusBLEU+"/"+metrics.Union, "BLEU ↑", 1)
	t.Columns = append(t.Columns,
		Column{Key: "acceptance_rate", Title: "acceptance", Digits: 2},
		Column{Key: "changed_slots_per_step", Title: "changed/step", Digits: 2},
		Column{Key: "log_likelihood", Title: "mean U ↑", Digits: 2, Better: 1},
		Column{Key: "seconds_per_sample", Title: "s/sample", Digits: 3},
		Column{Key: "model_rows_per_sample", Title: "rows/sample", Digits: 1},
	)
	confidence := r.Configuration.Metrics.Confidence
	reach := distuv.UnitNormal.Quantile((1 + confidence) / 2)
	for i := range r.Methods {
		m := &r.Methods[i]
		row := Row{Model: m.Model, Method: m.Method}
		// What cannot be below 0 has no interval that reaches there.
		bounded := func(c Cell, highest float64) Cell {
			if c.Low.Defined() {
				c.Low, c.High = max(c.Low, 0), min(c.High, metrics.Value(highest))
			}
			return c
		}
		report := m.report(set)
		for _, c := range t.Columns {
			cell := Cell{undefined(), undefined(), undefined()}
			switch {
			case c.Score:
				if s, ok := report.Score(c.Key); ok {
					cell.Value = s.Value
					if s.Interval != nil {
						cell.Low, cell.High = s.Interval.Low, s.Interval.High
					}
				}
			case c.Key == "acceptance_rate":
				cell = bounded(m.AcceptanceRate.cell(reach), 1)
			case c.Key == "changed_slots_per_step":
				cell = bounded(m.ChangedSlotsPerStep.cell(reach), math.Inf(1))
			case c.Key == "log_likelihood" && set == "top":
				if s, ok := report.Score(metrics.MetricLogLikelihoodMean); ok {
					cell.Value = s.Value
					if s.Interval != nil {
						cell.Low, cell.High = s.Interval.Low, s.Interval.High
					}
				}
			case c.Key == "log_likelihood":
				cell = m.LogLikelihood.cell(reach)
			case c.Key == "seconds_per_sample":
				cell = bounded(m.SecondsPerSample.cell(reach), math.Inf(1))
			case c.Key == "model_rows_per_sample":
				cell = bounded(m.ModelRowsPerSample.cell(reach), math.Inf(1))
			}
			row.Cells = append(row.Cells, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	c := r.Configuration
	which := fmt.Sprintf("the %d likeliest of %d samples of each of %d sentences", c.Top, c.Chains, c.Sentences)
	if set == "all" {
		which = fmt.Sprintf("all %d samples of each of %d sentences", c.Chains, c.Sentences)
	}
	t.Notes = append(t.Notes,
		"of "+which+"; self-BLEU, unique 2- and 3-grams (self; not in a corpus) and corpus BLEU against all corpora in percent",
		fmt.Sprintf("intervals of scores: %g %% bootstrap over sentences; of acceptance, changed slots, seconds and rows: mean over sentences ± %.2f standard errors", 100*confidence, reach))
	t.Notes = append(t.Notes, r.referenceNote())
	if set == "top" {
		for _, k := range r.Comparisons {
			row := ComparisonRow{k.Model, k.First, k.Second, map[string]ComparedScore{}}
			for _, s := range k.Scores {
				name := s.Score
				if name == metrics.MetricLogLikelihoodMean {
					name = "log_likelihood"
				}
				row.Cells[name] = s
			}
			t.Comparisons = append(t.Comparisons, row)
		}
	}
	return t
}

// referenceNote says what the samples were compared with.
func (r *Results) referenceNote() string {
	var parts []string
	for _, m := range r.Methods[:min(1, len(r.Methods))] {
		for _, ref := range m.Top.References {
			if ref.Name == metrics.Union {
				continue
			}
			part := fmt.Sprintf("%d sentences of %s", ref.Sentences, ref.Name)
			if ref.Excluded > 0 {
				part += fmt.Sprintf(" (%d left out: the masked ones and their copies)", ref.Excluded)
			}
			parts = append(parts, part)
		}
	}
	return "compared with " + strings.Join(parts, ", ")
}

const comparisonNote = "difference to the baseline, paired by sentence; p: two-sided approximate randomisation, after Holm's correction for the number of comparisons in the column"

func format(v metrics.Value, digits int) string {
	if !v.Defined() {
		return "–"
	}
	text := strconv.FormatFloat(float64(v), 'f', digits, 64)
	if strings.HasPrefix(text, "-") {
		text = "−" + text[1:] // a minus, as wide as a digit
	}
	return text
}

func (c Cell) interval(digits int) string {
	if !c.Low.Defined() {
		return ""
	}
	if c.Low >= 0 {
		return format(c.Low, digits) + "–" + format(c.High, digits)
	}
	return format(c.Low, digits) + " to " + format(c.High, digits)
}

// block is a grid of cells of one or two lines.
type block struct {
	head []string
	rows [][][]string // row, column, lines
}

// text writes the grid to fit a width, 0 for none: columns that do not fit come
// in another grid below, after the first.
func (b block) text(width int) string {
	widths := make([]int, len(b.head))
	for i, title := range b.head {
		widths[i] = utf8.RuneCountInString(title)
		for _, row := range b.rows {
			for _, line := range row[i] {
				widths[i] = max(widths[i], utf8.RuneCountInString(line))
			}
		}
	}
	var out strings.Builder
	for from := 1; from < len(b.head); {
		to, total := from, widths[0]
		for to < len(b.head) && (to == from || width == 0 || total+2+widths[to] <= width) {
			total += 2 + widths[to]
			to++
		}
		if from > 1 {
			out.WriteString("\n")
		}
		line := func(cell func(column int) string) {
			var l strings.Builder
			first := cell(0)
			l.WriteString(first + strings.Repeat(" ", widths[0]-utf8.RuneCountInString(first)))
			for i := from; i < to; i++ {
				text := cell(i)
				l.WriteString("  " + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)) + text)
			}
			if text := strings.TrimRight(l.String(), " "); text != "" {
				out.WriteString(text + "\n")
			}
		}
		line(func(i int) string { return b.head[i] })
		for _, row := range b.rows {
			lines := 1
			for _, i := range append([]int{0}, seq(from, to)...) {
				lines = max(lines, len(row[i]))
			}
			for n := range lines {
				line(func(i int) string {
					if n < len(row[i]) {
						return row[i][n]
					}
					return ""
				})
			}
		}
		from = to
	}
	return out.String()
}

func seq(from, to int) []int {
	var list []int
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

// severalModels tells whether methods need their model beside them.
func (t *Table) severalModels() bool {
	return slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Model != t.Rows[0].Model })
}

func (t *Table) label(model, method string) string {
	if t.severalModels() {
		return method + ", " + model
	}
	return method
}

func (t *Table) grid() block {
	b := block{head: []string{"method"}}
	for _, c := range t.Columns {
		b.head = append(b.head, c.Title)
	}
	for _, row := range t.Rows {
		cells := [][]string{{t.label(row.Model, row.Method)}}
		for i, c := range row.Cells {
			lines := []string{format(c.Value, t.Columns[i].Digits)}
			if interval := c.interval(t.Columns[i].intervalDigits()); interval != "" {
				lines = append(lines, interval)
			}
			cells = append(cells, lines)
		}
		b.rows = append(b.rows, cells)
	}
	return b
}

func (t *Table) comparisonGrid() block {
	b := block{head: []string{"method against baseline"}}
	var columns []Column
	for _, c := range t.Columns {
		if _, ok := t.Comparisons[0].Cells[c.Key]; ok {
			columns = append(columns, c)
			b.head = append(b.head, c.Title)
		}
	}
	for _, row := range t.Comparisons {
		cells := [][]string{{t.label(row.Model, row.Second) + " against " + row.First}}
		for _, c := range columns {
			s := row.Cells[c.Key]
			cells = append(cells, []string{format(s.Difference.Difference, c.Digits), "p " + format(s.AdjustedP, 3)})
		}
		b.rows = append(b.rows, cells)
	}
	return b
}

// intervalDigits are those of the ends of an interval: of percent one fewer.
func (c Column) intervalDigits() int {
	if c.Score {
		return c.Digits - 1
	}
	return c.Digits
}

// Text is the table for people, in lines of at most width columns; 0 is no limit.
func (t *Table) Text(width int) string {
	var out strings.Builder
	out.WriteString(t.grid().text(width))
	if len(t.Comparisons) > 0 {
		out.WriteString("\n" + t.comparisonGrid().text(width))
	}
	return out.String()
}

// Markdown is the table for pages.
func (t *Table) Markdown() string {
	var out strings.Builder
	write := func(b block) {
		clean := strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;")
		line := func(cells []string) {
			for i := range cells {
				cells[i] = clean.Replace(cells[i])
			}
			out.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		}
		line(slices.Clone(b.head))
		out.WriteString("| --- |" + strings.Repeat(" ---: |", len(b.head)-1) + "\n")
		for _, row := range b.rows {
			var cells []string
			for _, lines := range row {
				text := lines[0]
				if len(lines) > 1 {
					text += " (" + lines[1] + ")"
				}
				cells = append(cells, text)
			}
			line(cells)
		}
	}
	write(t.grid())
	if len(t.Comparisons) > 0 {
		out.WriteString("\n")
		write(t.comparisonGrid())
	}
	for _, note := range t.AllNotes() {
		out.WriteString("\n" + note + "\n")
	}
	out.WriteString("\nsignature `" + t.Signature + "`\n")
	return out.String()
}

// AllNotes are the notes, and that of the comparisons where there are any.
func (t *Table) AllNotes() []string {
	notes := slices.Clone(t.Notes)
	if len(t.Comparisons) > 0 {
		notes = append(notes, "method against baseline: "+comparisonNote)
	}
	return notes
}

// MarshalJSON names every number by its column.
func (t *Table) MarshalJSON() ([]byte, error) {
	type number struct {
		Value metrics.Value `json:"value"`
		Low   metrics.Value `json:"low"`
		High  metrics.Value `json:"high"`
	}
	type method struct {
		Model   string            `json:"model"`
		Method  string            `json:"method"`
		Numbers map[string]number `json:"numbers"`
	}
	type test struct {
		Model    string                   `json:"model"`
		Method   string                   `json:"method"`
		Baseline string                   `json:"baseline"`
		Scores   map[string]ComparedScore `json:"scores"`
	}
	methods, tests := []method{}, []test{}
	for _, row := range t.Rows {
		m := method{row.Model, row.Method, map[string]number{}}
		for i, c := range row.Cells {
			m.Numbers[t.Columns[i].Key] = number(c)
		}
		methods = append(methods, m)
	}
	for _, row := range t.Comparisons {
		tests = append(tests, test{row.Model, row.Second, row.First, row.Cells})
	}
	return json.Marshal(struct {
		Set     string   `json:"set"`
		Methods []method `json:"methods"`
		Tests   []test   `json:"tests"`
		Notes   []string `json:"notes"`
		// Signature is that of the run.
		Signature string `json:"signature"`
	}{t.Set, methods, tests, t.AllNotes(), t.Signature})
}

// CSV has a row for each method, all digits, intervals in columns of their own.
func (t *Table) CSV() ([]byte, error) {
	head := []string{"model", "method", "set"}
	for _, c := range t.Columns {
		head = append(head, c.Key, c.Key+"_low", c.Key+"_high")
	}
	rows := [][]string{append(head, "signature")}
	number := func(v metrics.Value) string {
		if !v.Defined() {
			return ""
		}
		return strconv.FormatFloat(float64(v), 'g', -1, 64)
	}
	for _, row := range t.Rows {
		line := []string{row.Model, row.Method, t.Set}
		for _, c := range row.Cells {
			line = append(line, number(c.Value), number(c.Low), number(c.High))
		}
		rows = append(rows, append(line, t.Signature))
	}
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	err := w.WriteAll(rows)
	return b.Bytes(), err
}
