package eval

import (
	"bytes"
	"encoding/csv"
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
func (*Results) Sets() []string { return []string{"top", "all"} }

// table is table 3 of the paper with intervals, and what it leaves out beside it.
type table struct {
	Set     string   `json:"set"`
	Methods []row    `json:"methods"`
	Tests   []test   `json:"tests"`
	Notes   []string `json:"notes"` // how the numbers came about
	// Signature is that of the run.
	Signature string `json:"signature"`

	Columns []column `json:"-"`
}

// column is a number of every method.
type column struct {
	Key    string // "self_bleu", "unique_ngrams/tbc/2", "acceptance_rate", …
	Title  string
	digits int
	Score  bool // of the text, with a jackknife interval; else of the sampling, with a standard error
	of     func(*methodResult) cell
}

// row is a method, by the keys of the columns.
type row struct {
	Model   string          `json:"model"`
	Method  string          `json:"method"`
	Numbers map[string]cell `json:"numbers"`
}

// test is a method against a baseline, in the columns that have one.
type test struct {
	Model    string                   `json:"model"`
	Method   string                   `json:"method"`
	Baseline string                   `json:"baseline"`
	Scores   map[string]comparedScore `json:"scores"`
}

// cell is a number with its interval; a Value that is not defined has none.
type cell struct {
	Value metrics.Value `json:"value"`
	Low   metrics.Value `json:"low"`
	High  metrics.Value `json:"high"`
}

var undefined = metrics.Value(math.NaN())

// cell has an interval that reaches so many standard errors to each side, within bounds; none where that is not known.
func (e *Estimate) cell(reach, lowest, highest float64) cell {
	c := cell{undefined, undefined, undefined}
	if e != nil {
		c.Value = metrics.Value(e.Mean)
		if e.StandardError != nil && !math.IsNaN(reach) {
			c.Low, c.High = metrics.Value(max(e.Mean-reach**e.StandardError, lowest)),
				metrics.Value(min(e.Mean+reach**e.StandardError, highest))
		}
	}
	return c
}

// scoreCell is a score of a report by its name.
func scoreCell(r *metrics.Report, name string) cell {
	c := cell{undefined, undefined, undefined}
	if r == nil {
		return c
	}
	if s, ok := r.Score(name); ok {
		c.Value = s.Value
		if s.Interval != nil {
			c.Low, c.High = s.Interval.Low, s.Interval.High
		}
	}
	if strings.Contains(name, "bleu") {
		c.Value, c.Low, c.High = matched(c.Value), matched(c.Low), matched(c.High)
	}
	return c
}

// matched is a BLEU, 0 if there is no n-gram of some length in common, as it is defined: NLTK, which package
// metrics follows, puts the smallest float instead of such a 0, and comes to 1e-76.
func matched(bleu metrics.Value) metrics.Value {
	const least = 1e-9 // far below what one match of each length in all texts of the world comes to
	if math.Abs(float64(bleu)) < least {
		return 0
	}
	return bleu
}

// columnsOf are those of a set.
func (r *Results) columnsOf(set string, reach float64) []column {
	report := func(m *methodResult) *metrics.Report {
		if set == "all" {
			return m.All
		}
		return m.Top
	}
	var list []column
	score := func(key, title string) {
		list = append(list,
			column{key, title, 2, true, func(m *methodResult) cell { return scoreCell(report(m), key) }})
	}
	score(metrics.MetricSelfBLEU, "self-BLEU ↓")
	unique := func(reference, title string) {
		for _, n := range comparedOrders() {
			score(fmt.Sprintf("%s/%s/%d", metrics.MetricUniqueNGrams, reference, n), fmt.Sprintf(title, n))
		}
	}
	unique(metrics.Self, "unique %d-grams ↑")
	for _, c := range r.Corpora {
		unique(c.Name, strings.ReplaceAll(c.Name, "%", "%%")+" %d ↑")
	}
	score(metrics.MetricCorpusBLEU+"/"+metrics.Union, "BLEU ↑")
	// What cannot be below 0 has no interval that reaches there.
	sampling := func(key, title string, digits int, lowest, highest float64, of func(*methodResult) *Estimate) {
		list = append(list,
			column{key, title, digits, false, func(m *methodResult) cell { return of(m).cell(reach, lowest, highest) }})
	}
	infinite := math.Inf(1)
	sampling("acceptance_rate", "acceptance", 2, 0, 1, func(m *methodResult) *Estimate { return m.AcceptanceRate })
	sampling("changed_slots_per_step", "changed/step", 2, 0, infinite,
		func(m *methodResult) *Estimate { return &m.ChangedSlotsPerStep })
	sampling("log_likelihood", "mean U ↑", 2, -infinite, infinite,
		func(m *methodResult) *Estimate { return &m.LogLikelihood })
	if set == "top" {
		list[len(list)-1].of = func(m *methodResult) cell { return scoreCell(m.Top, metrics.MetricLogLikelihoodMean) }
	}
	sampling("seconds_per_sample", "s/sample", 3, 0, infinite,
		func(m *methodResult) *Estimate { return &m.SecondsPerSample })
	sampling("model_rows_per_sample", "rows/sample", 1, 0, infinite,
		func(m *methodResult) *Estimate { return &m.ModelRowsPerSample })
	return list
}

// table makes the table of one of Sets().
func (r *Results) Table(set string) *table {
	c := r.Configuration
	// As for scores: Student's t over the sentences, and nothing of very few.
	reach, sampling := math.NaN(), "none of so few sentences"
	if p := c.Metrics.Confidence; c.Sentences >= metrics.FewestUnits && p > 0 && p < 1 {
		reach = distuv.StudentsT{Sigma: 1, Nu: float64(c.Sentences - 1)}.Quantile((1 + p) / 2)
		sampling = fmt.Sprintf("mean over sentences ± %.2f standard errors", reach)
	}
	t := &table{Set: set, Methods: []row{}, Tests: []test{}, Signature: r.Signature, Columns: r.columnsOf(set, reach)}
	for i := range r.Methods {
		m := &r.Methods[i]
		numbers := map[string]cell{}
		for _, c := range t.Columns {
			numbers[c.Key] = c.of(m)
		}
		t.Methods = append(t.Methods, row{m.Model, m.Method, numbers})
	}
	which := fmt.Sprintf("the %d likeliest of %d samples of each of %d sentences", c.Top, c.Chains, c.Sentences)
	if set == "all" {
		which = fmt.Sprintf("all %d samples of each of %d sentences", c.Chains, c.Sentences)
	}
	t.Notes = append(t.Notes,
		"of "+which+"; all scores in percent: unique n-grams are those that the samples have once, and under the "+
			"name of a corpus those that it has not",
		"a BLEU, of all corpora together, is 0 where no 4-gram is in common",
		fmt.Sprintf("intervals of scores: %g %% by the jackknife over sentences; of acceptance, changed slots, "+
			"seconds and rows: %s", 100*c.Metrics.Confidence, sampling),
		r.referenceNote())
	if set == "top" {
		for _, k := range r.Comparisons {
			scores := map[string]comparedScore{}
			for _, s := range k.Scores {
				name := s.Score
				if name == metrics.MetricLogLikelihoodMean {
					name = "log_likelihood"
				}
				scores[name] = s
			}
			t.Tests = append(t.Tests, test{k.Model, k.Second, k.First, scores})
		}
	}
	if len(t.Tests) > 0 {
		t.Notes = append(t.Notes, "method against baseline: "+comparisonNote)
	}
	return t
}

// referenceNote says what the samples were compared with.
func (r *Results) referenceNote() string {
	var parts []string
	if len(r.Methods) == 0 || r.Methods[0].Top == nil {
		return "compared with nothing"
	}
	for _, ref := range r.Methods[0].Top.References {
		if ref.Name == metrics.Union {
			continue
		}
		part := fmt.Sprintf("%d sentences of %s", ref.Sentences, ref.Name)
		if ref.Excluded > 0 {
			part += fmt.Sprintf(" (%d left out: the masked ones and their copies)", ref.Excluded)
		}
		parts = append(parts, part)
	}
	return "compared with " + strings.Join(parts, ", ")
}

const comparisonNote = "difference to the baseline, paired by sentence; p: two-sided approximate randomisation, " +
	"after Holm's correction for the number of comparisons in the column"

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

// Value is a number as the column shows it.
func (c column) Value(v cell) string { return format(v.Value, c.digits) }

// Interval is the interval of a number, "" for none; that of a percentage has one digit fewer.
func (c column) Interval(v cell) string {
	digits := c.digits - indicator(c.Score)
	switch {
	case !v.Low.Defined():
		return ""
	case v.Low >= 0:
		return format(v.Low, digits) + "–" + format(v.High, digits)
	}
	return format(v.Low, digits) + " to " + format(v.High, digits)
}

// Tested are the columns that have tests.
func (t *table) Tested() []column {
	return slices.DeleteFunc(slices.Clone(t.Columns), func(c column) bool {
		_, ok := t.Tests[0].Scores[c.Key]
		return !ok
	})
}

// block is a table of cells of one line or two, the head first.
type block [][][]string

// blocks are the table of the numbers and that of the tests, if there are any.
func (t *table) blocks() []block {
	several := slices.ContainsFunc(t.Methods, func(m row) bool { return m.Model != t.Methods[0].Model })
	label := func(model, method string) string {
		if several {
			return method + ", " + model
		}
		return method
	}
	head := func(title string, columns []column) block {
		cells := [][]string{{title}}
		for _, c := range columns {
			cells = append(cells, []string{c.Title})
		}
		return block{cells}
	}
	numbers := head("method", t.Columns)
	for _, m := range t.Methods {
		cells := [][]string{{label(m.Model, m.Method)}}
		for _, c := range t.Columns {
			lines := []string{c.Value(m.Numbers[c.Key])}
			if interval := c.Interval(m.Numbers[c.Key]); interval != "" {
				lines = append(lines, interval)
			}
			cells = append(cells, lines)
		}
		numbers = append(numbers, cells)
	}
	if len(t.Tests) == 0 {
		return []block{numbers}
	}
	columns := t.Tested()
	tests := head("method against baseline", columns)
	for _, k := range t.Tests {
		cells := [][]string{{label(k.Model, k.Method) + " against " + k.Baseline}}
		for _, c := range columns {
			s := k.Scores[c.Key]
			cells = append(cells, []string{format(s.Difference.Difference, c.digits), "p " + format(s.AdjustedP, 3)})
		}
		tests = append(tests, cells)
	}
	return []block{numbers, tests}
}

// text writes a block to fit a width, 0 for none: columns that do not fit come in another block below, after the first.
func (g block) text(width int) string {
	line := func(cell []string, n int) string {
		if n < len(cell) {
			return cell[n]
		}
		return ""
	}
	widths := make([]int, len(g[0]))
	for _, cells := range g {
		for i, cell := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(line(cell, 0)), utf8.RuneCountInString(line(cell, 1)))
		}
	}
	var out strings.Builder
	for from := 1; from < len(widths); {
		to, total := from, widths[0]
		for to < len(widths) && (to == from || width == 0 || total+2+widths[to] <= width) {
			total += 2 + widths[to]
			to++
		}
		if from > 1 {
			out.WriteString("\n")
		}
		for _, cells := range g {
			for n := range 2 {
				text := fmt.Sprintf("%-*s", widths[0], line(cells[0], n))
				for i := from; i < to; i++ {
					text += fmt.Sprintf("  %*s", widths[i], line(cells[i], n))
				}
				if text = strings.TrimRight(text, " "); text != "" {
					out.WriteString(text + "\n")
				}
			}
		}
		from = to
	}
	return out.String()
}

// Text is the table for people, in lines of at most width columns; 0 is no limit.
func (t *table) Text(width int) string {
	var texts []string
	for _, g := range t.blocks() {
		texts = append(texts, g.text(width))
	}
	return strings.Join(texts, "\n")
}

// Markdown is the table for pages.
func (t *table) Markdown() string {
	clean := strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;")
	var texts []string
	for _, g := range t.blocks() {
		var out strings.Builder
		for i, cells := range g {
			for _, lines := range cells {
				text := lines[0]
				if len(lines) > 1 {
					text += " (" + lines[1] + ")"
				}
				out.WriteString("| " + clean.Replace(text) + " ")
			}
			out.WriteString("|\n")
			if i == 0 {
				out.WriteString("| --- |" + strings.Repeat(" ---: |", len(cells)-1) + "\n")
			}
		}
		texts = append(texts, out.String())
	}
	for _, note := range append(t.Notes, "signature `"+t.Signature+"`") {
		texts = append(texts, note+"\n")
	}
	return strings.Join(texts, "\n")
}

// CSV has a row for each method, all digits, intervals in columns of their own.
func (t *table) CSV() ([]byte, error) {
	head := []string{"model", "method", "set"}
	for _, c := range t.Columns {
		head = append(head, c.Key, c.Key+"_low", c.Key+"_high")
	}
	rows := [][]string{append(head, "signature")}
	for _, m := range t.Methods {
		line := []string{m.Model, m.Method, t.Set}
		for _, c := range t.Columns {
			n := m.Numbers[c.Key]
			for _, v := range []metrics.Value{n.Value, n.Low, n.High} {
				text := ""
				if v.Defined() {
					text = strconv.FormatFloat(float64(v), 'g', -1, 64)
				}
				line = append(line, text)
			}
		}
		rows = append(rows, append(line, t.Signature))
	}
	var b bytes.Buffer
	err := csv.NewWriter(&b).WriteAll(rows)
	return b.Bytes(), err
}
