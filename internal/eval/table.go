package eval

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"infill/internal/phrase"
	"infill/metrics"
)

// Sets lists the two sets of samples that have scores, the default
// first: "top", the likeliest final states of each sentence, and "all",
// all final states.
func Sets() []string { return []string{"top", "all"} }

// tableOrders are the lengths of n-grams in table 3 of the paper.
var tableOrders = []int{2, 3}

// Table is table 3 of the discrete Langevin paper with intervals, and with
// columns that the paper does not have.
type Table struct {
	Set       string   `json:"set"`
	Methods   []row    `json:"methods"`
	Notes     []string `json:"notes"` // sentences that say how the numbers were computed
	Signature string   `json:"signature"`

	columns []column
}

type column struct {
	key            string // "self_bleu", "unique_ngrams/tbc/2", "acceptance_rate", …
	title          string
	digits         int
	intervalDigits int
	number         func(*methodResult) cell
}

// row holds the numbers of one method. The keys of Numbers are those of the columns.
type row struct {
	Model   string          `json:"model"`
	Method  string          `json:"method"`
	Numbers map[string]cell `json:"numbers"`
}

// cell is a number with its interval, which are undefined together.
type cell struct {
	Value metrics.Value `json:"value"`
	Low   metrics.Value `json:"low"`
	High  metrics.Value `json:"high"`
}

var undefined = metrics.Value(math.NaN())

// cell returns the mean with its interval, e.StandardError times reach to each
// side but within lowest and highest.
func (e *Estimate) cell(reach, lowest, highest float64) cell {
	c := cell{undefined, undefined, undefined}
	if e != nil {
		c.Value = metrics.Value(e.Mean)
		if e.StandardError != nil && !math.IsNaN(reach) {
			c.Low = metrics.Value(max(e.Mean-reach**e.StandardError, lowest))
			c.High = metrics.Value(min(e.Mean+reach**e.StandardError, highest))
		}
	}
	return c
}

func scoreCell(r *metrics.Report, name string) cell {
	c := cell{undefined, undefined, undefined}
	if r == nil {
		return c
	}
	s, ok := r.Score(name)
	if ok {
		c.Value = s.Value
		if s.Interval != nil {
			c.Low = s.Interval.Low
			c.High = s.Interval.High
		}
	}
	if strings.Contains(name, "bleu") {
		c.Value, c.Low, c.High = matched(c.Value), matched(c.Low), matched(c.High)
	}
	return c
}

// matched returns 0 for a BLEU that is 0 because the texts share no n-gram of
// some length, and other BLEUs unchanged. NLTK, which package metrics follows,
// takes the smallest float for such a match, and so gets 1e-76 instead of 0.
func matched(bleu metrics.Value) metrics.Value {
	const least = 1e-9 // far below the smallest BLEU with a match of each length in any text
	if math.Abs(float64(bleu)) < least {
		return 0
	}
	return bleu
}

// makeColumns returns the columns for one of Sets(). For columns that are not
// scores, the interval has reach standard errors on each side.
func (r *Results) makeColumns(set string, reach float64) []column {
	var list []column
	score := func(key, metric, title string, intervalDigits int) {
		list = append(list, column{key, title, 2, intervalDigits, func(m *methodResult) cell {
			if set == "all" {
				return scoreCell(m.All, metric)
			}
			return scoreCell(m.Top, metric)
		}})
	}
	score(metrics.MetricSelfBLEU, metrics.MetricSelfBLEU, "self-BLEU ↓", 1)
	unique := func(reference, title string) {
		for _, n := range tableOrders {
			key := fmt.Sprintf("%s/%s/%d", metrics.MetricUniqueNGrams, reference, n)
			score(key, key, strings.Replace(title, "N", strconv.Itoa(n), 1), 1)
		}
	}
	unique(metrics.Self, "unique N-grams ↑")
	for _, c := range r.Corpora {
		unique(c.Name, c.Name+" N ↑")
	}
	union := metrics.MetricCorpusBLEU + "/" + metrics.Union
	score(union, union, "BLEU ↑", 1)
	// Intervals of these columns end at lowest and highest.
	sampling := func(key, title string, digits int, lowest, highest float64, value func(*methodResult) *Estimate) {
		list = append(list, column{key, title, digits, digits,
			func(m *methodResult) cell { return value(m).cell(reach, lowest, highest) }})
	}
	infinite := math.Inf(1)
	sampling("acceptance_rate", "acceptance", 2, 0, 1, func(m *methodResult) *Estimate { return m.AcceptanceRate })
	sampling("changed_slots_per_step", "changed/step", 2, 0, infinite,
		func(m *methodResult) *Estimate { return &m.ChangedSlotsPerStep })
	if set == "top" {
		score("log_likelihood", metrics.MetricLogLikelihoodMean, "mean U ↑", 2)
	} else {
		sampling("log_likelihood", "mean U ↑", 2, -infinite, infinite,
			func(m *methodResult) *Estimate { return &m.LogLikelihood })
	}
	sampling("seconds_per_sample", "s/sample", 3, 0, infinite,
		func(m *methodResult) *Estimate { return &m.SecondsPerSample })
	sampling("model_rows_per_sample", "rows/sample", 1, 0, infinite,
		func(m *methodResult) *Estimate { return &m.ModelRowsPerSample })
	number := r.Configuration.Chains
	if set == "top" {
		number = r.Configuration.Top
	}
	for _, j := range r.joined {
		title := j.name
		if name, found := strings.CutPrefix(j.name, judged); found {
			model, _, _ := strings.Cut(name, "@")
			title = "log P, " + model + " ↑"
		}
		sampling(j.name, title, 2, -infinite, infinite, func(m *methodResult) *Estimate {
			records, err := r.header.recordsOf(r.records, m.Model, m.Method)
			if err != nil {
				return nil // never happens, as the run is whole
			}
			return j.of(r.header, records, number)
		})
	}
	return list
}

// reach returns how many standard errors an interval over sentences has on each
// side. As for scores, that is Student's t; NaN if the sentences are too few.
func (c *Config) reach() float64 {
	p := c.Metrics.Confidence
	if c.Sentences < metrics.FewestUnits || p <= 0 || p >= 1 {
		return math.NaN()
	}
	return distuv.StudentsT{Sigma: 1, Nu: float64(c.Sentences - 1)}.Quantile((1 + p) / 2)
}

func (r *Results) Table(set string) *Table {
	c := r.Configuration
	reach := c.reach()
	sampling := "none of so few sentences"
	if !math.IsNaN(reach) {
		sampling = fmt.Sprintf("mean over sentences ± %.2f standard errors", reach)
	}
	t := &Table{Set: set, Methods: []row{}, Signature: r.Signature, columns: r.makeColumns(set, reach)}
	for i := range r.Methods {
		m := &r.Methods[i]
		numbers := map[string]cell{}
		for _, c := range t.columns {
			numbers[c.key] = c.number(m)
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
	for _, j := range r.joined {
		note := "by the samples' ids"
		if strings.HasPrefix(j.name, judged) {
			note = "mean log P of a filled word by that model, which did not sample: left to right, in its own " +
				"tokens, nats"
		}
		t.Notes = append(t.Notes, fmt.Sprintf("%s: %s; %d of %d samples have a number; interval: %s", j.name, note,
			len(j.numbers), len(r.records)*c.Chains, sampling))
	}
	return t
}

func (r *Results) referenceNote() string {
	var parts []string
	if len(r.Methods) == 0 || r.Methods[0].Top == nil {
		return "compared with nothing"
	}
	for _, ref := range r.Methods[0].Top.References {
		if ref.Name == metrics.Union {
			continue
		}
		part := phrase.Counted(ref.Sentences, "sentence") + " of " + ref.Name
		if ref.Excluded > 0 {
			part += fmt.Sprintf(" (%d left out: the masked ones and their copies)", ref.Excluded)
		}
		parts = append(parts, part)
	}
	return "compared with " + strings.Join(parts, ", ")
}

func format(v metrics.Value, digits int) string {
	if !v.Defined() {
		return "–"
	}
	text := strconv.FormatFloat(float64(v), 'f', digits, 64)
	if strings.HasPrefix(text, "-") {
		text = "−" + text[1:] // a minus sign, as wide as a digit
	}
	return text
}

// interval returns a number's interval as text, or "" if it has none.
func (c column) interval(v cell) string {
	separator := "–"
	switch {
	case !v.Low.Defined():
		return ""
	case v.Low < 0:
		separator = " to "
	}
	return "\n" + format(v.Low, c.intervalDigits) + separator + format(v.High, c.intervalDigits)
}

// Grid returns the cells of the table as texts, the head first. A cell may have
// a second line with an interval.
func (t *Table) Grid() [][]string {
	several := slices.ContainsFunc(t.Methods, func(m row) bool { return m.Model != t.Methods[0].Model })
	grid := [][]string{{"method"}}
	for _, c := range t.columns {
		grid[0] = append(grid[0], c.title)
	}
	for _, m := range t.Methods {
		line := []string{m.Method}
		if several {
			line[0] += ", " + m.Model
		}
		for _, c := range t.columns {
			v := m.Numbers[c.key]
			line = append(line, format(v.Value, c.digits)+c.interval(v))
		}
		grid = append(grid, line)
	}
	return grid
}

// Rows returns the head and a row for each method, numbers with all digits, and
// intervals in columns of their own.
func (t *Table) Rows() [][]string {
	head := []string{"model", "method", "set"}
	for _, c := range t.columns {
		head = append(head, c.key, c.key+"_low", c.key+"_high")
	}
	rows := [][]string{append(head, "signature")}
	for _, m := range t.Methods {
		line := []string{m.Model, m.Method, t.Set}
		for _, c := range t.columns {
			n := m.Numbers[c.key]
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
	return rows
}
