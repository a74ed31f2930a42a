package eval

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"strings"

	"infill/infill/eval/internal/corpus"
	"infill/metrics"
)

//go:embed report.html.tmpl
var reportPage string

// page is what the report shows.
type page struct {
	Header  *Header
	Results *Results
	Title   string
	Facts   []string
	Series  []series
	Tables  []pageTable
	Tests   *pageTests
	Charts  []pageChart
	// Sentences hold the fills side by side.
	Sentences []pageSentence
	Top       int
	Notes     []string
	Methods   []pageMethod
}

type pageTable struct {
	Title string
	Open  bool
	*Table
	Lines []pageLine
}

type pageLine struct {
	series
	Cells []pageCell
}

type pageCell struct{ Value, Interval string }

type pageTests struct {
	Columns []string
	Lines   []pageTest
	Note    string
}

type pageTest struct {
	First, Second series
	Cells         []pageTestCell
}

type pageTestCell struct {
	Difference, Interval, P string
	Clear                   bool // below 0.05
}

type pageChart struct {
	Title, Caption string
	Drawing        template.HTML
}

type pageMethod struct {
	series
	Signature string
}

type pageSentence struct {
	Number   int
	Corpus   string
	Line     int
	Template []pagePart
	Words    string
	Methods  []pageFills
}

type pagePart struct {
	Text string
	Slot bool
}

type pageFills struct {
	series
	Lines    []pageFill
	Distinct int
}

type pageFill struct {
	Words []pageWord
	U     string
}

// pageWord is what a slot was filled with; Repeat tells that a likelier sample of
// the method has the same there.
type pageWord struct {
	Text   string
	Repeat bool
}

// Report is a page for people: one file that needs nothing else.
func Report(h *Header, r *Results, records map[key]*Record) ([]byte, error) {
	c := r.Configuration
	p := page{Header: h, Results: r, Series: allSeries(r.Methods), Top: c.Top, Title: "Samplers compared"}
	switch c.Preset {
	case "dlp":
		p.Title += ": the protocol of the discrete Langevin paper"
	case "discs":
		p.Title += ": the DISCS protocol"
	}
	var models, texts []string
	for _, m := range r.Models {
		models = append(models, m.Name)
	}
	for _, k := range r.Corpora {
		texts = append(texts, fmt.Sprintf("%s (%d of %d sentences)", k.Name, k.Masked, k.Sentences))
	}
	masked := fmt.Sprintf("%g %% of the words masked", 100*c.Select.Mask.Fraction)
	if c.Select.Mask.Count > 0 {
		masked = fmt.Sprintf("%d words masked", c.Select.Mask.Count)
	}
	p.Facts = []string{
		"model " + strings.Join(models, ", "), "corpora " + strings.Join(texts, ", "),
		fmt.Sprintf("%d sentences, %s", c.Sentences, masked), fmt.Sprintf("%d samples of each", c.Chains), fmt.Sprintf("seed %d", c.Seed),
	}
	for i, set := range Sets() {
		t := r.Table(set)
		title := fmt.Sprintf("The %d likeliest samples of each sentence", c.Top)
		if set == "all" {
			title = fmt.Sprintf("All %d samples of each sentence", c.Chains)
		}
		p.Tables = append(p.Tables, pageTable{title, i == 0, t, p.lines(t)})
		if len(t.Comparisons) > 0 {
			p.Tests = p.tests(t)
		}
	}
	p.charts()
	p.fills(records)
	p.notes()
	for i, m := range r.Methods {
		p.Methods = append(p.Methods, pageMethod{p.Series[i], m.Signature})
	}
	tmpl, err := template.New("report").Parse(reportPage)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = tmpl.Execute(&b, p)
	return b.Bytes(), err
}

func (p *page) lines(t *Table) []pageLine {
	var list []pageLine
	for i, row := range t.Rows {
		line := pageLine{series: p.Series[i]}
		for k, c := range row.Cells {
			digits := t.Columns[k].Digits
			line.Cells = append(line.Cells, pageCell{format(c.Value, digits), c.interval(t.Columns[k].intervalDigits())})
		}
		list = append(list, line)
	}
	return list
}

func (p *page) series(model, method string) series {
	for i, m := range p.Results.Methods {
		if m.Model == model && m.Method == method {
			return p.Series[i]
		}
	}
	return series{Name: method}
}

func (p *page) tests(t *Table) *pageTests {
	tests := &pageTests{Note: comparisonNote}
	var columns []Column
	for _, c := range t.Columns {
		if _, ok := t.Comparisons[0].Cells[c.Key]; ok {
			columns = append(columns, c)
			tests.Columns = append(tests.Columns, c.Title)
		}
	}
	for _, row := range t.Comparisons {
		line := pageTest{First: p.series(row.Model, row.First), Second: p.series(row.Model, row.Second)}
		for _, c := range columns {
			s := row.Cells[c.Key]
			line.Cells = append(line.Cells, pageTestCell{
				Difference: signed(s.Difference.Difference, c.Digits),
				Interval:   Cell{s.Difference.Difference, s.Interval.Low, s.Interval.High}.interval(c.intervalDigits()),
				P:          format(s.AdjustedP, 3), Clear: s.AdjustedP < 0.05,
			})
		}
		tests.Lines = append(tests.Lines, line)
	}
	return tests
}

// signed is a difference with its sign.
func signed(v metrics.Value, digits int) string {
	text := format(v, digits)
	if v > 0 {
		return "+" + text
	}
	return text
}

// column gives the cells of a column by its key.
func column(t *Table, key string) []Cell {
	for k, c := range t.Columns {
		if c.Key == key {
			cells := make([]Cell, len(t.Rows))
			for i, row := range t.Rows {
				cells[i] = row.Cells[k]
			}
			return cells
		}
	}
	return nil
}

func (p *page) charts() {
	t := p.Tables[0].Table
	add := func(title, caption string, drawing template.HTML) {
		p.Charts = append(p.Charts, pageChart{title, caption, drawing})
	}
	points := func(x, y string) []point {
		xs, ys := column(t, x), column(t, y)
		list := make([]point, len(p.Series))
		for i, s := range p.Series {
			list[i] = point{s, xs[i], ys[i]}
		}
		return list
	}
	barsOf := func(key string) []bar {
		list := make([]bar, len(p.Series))
		for i, c := range column(t, key) {
			list[i] = bar{p.Series[i], c}
		}
		return list
	}
	all := metrics.MetricCorpusBLEU + "/" + metrics.Union
	add("Diversity against quality", "Down is more diverse, right is closer to the corpora. The lines are the scores’ intervals over sentences; they may run out of the frame. What sets methods apart is in the paired tests above.",
		scatter("Self-BLEU against corpus BLEU", "corpus BLEU, %", "self-BLEU, %", points(all, metrics.MetricSelfBLEU)))
	add("Diversity against likelihood", "Up is more diverse, right is what the model finds likelier. A sampler that is diverse because it left the model’s distribution stands to the left.",
		scatter("Unique 2-grams against log-likelihood", "mean log-likelihood U, nats", "unique 2-grams among themselves, %", points("log_likelihood", metrics.MetricUniqueNGrams+"/self/2")))
	var curves []line
	for i, m := range p.Results.Methods {
		c := line{series: p.Series[i]}
		for _, at := range m.Trace {
			if at.LogLikelihood != nil {
				c.xs, c.ys = append(c.xs, float64(at.Step)), append(c.ys, *at.LogLikelihood)
			}
		}
		curves = append(curves, c)
	}
	add("Log-likelihood by step", "Mean U over the chains of all sentences.", lines("Mean log-likelihood by step", "step", "mean U, nats", curves))
	add("Acceptance", "Share of proposals taken after the warm-up, with 95 % intervals over sentences.", bars("Acceptance by method", "acceptance", 2, barsOf("acceptance_rate")))
	add("Cost in model rows", "Token sequences that went through the model for one sample.", bars("Model rows per sample", "rows per sample", 1, barsOf("model_rows_per_sample")))
	add("Cost in seconds", "On the machine of this run, for one sample.", bars("Seconds per sample", "seconds per sample", 3, barsOf("seconds_per_sample")))
}

// fills lists the likeliest fills of every sentence, by method.
func (p *page) fills(records map[key]*Record) {
	for number, prompt := range p.Header.Prompts() {
		s := pageSentence{Number: number + 1, Corpus: prompt.Corpus, Line: prompt.Line, Words: strings.Join(prompt.Words, ", ")}
		for i, text := range strings.Split(prompt.Template, corpus.Slot) {
			if i > 0 {
				s.Template = append(s.Template, pagePart{corpus.Slot, true})
			}
			if text != "" {
				s.Template = append(s.Template, pagePart{text, false})
			}
		}
		for i, m := range p.Results.Methods {
			record := records[key{m.Model, m.Method, number}]
			if record == nil {
				continue
			}
			fills := pageFills{series: p.Series[i]}
			seen := map[string]bool{}
			whole := map[string]bool{}
			for _, c := range record.Likeliest(p.Top) {
				chain := record.Chains[c]
				line := pageFill{U: format(metrics.Value(chain.LogLikelihood), 1)}
				for slot, word := range chain.Fills {
					at := fmt.Sprint(slot, " ", word)
					line.Words = append(line.Words, pageWord{word, seen[at]})
					seen[at] = true
				}
				whole[strings.Join(chain.Fills, "\x00")] = true
				fills.Lines = append(fills.Lines, line)
			}
			fills.Distinct = len(whole)
			s.Methods = append(s.Methods, fills)
		}
		p.Sentences = append(p.Sentences, s)
	}
}

// notes are what a reader must know of the sample.
func (p *page) notes() {
	p.Notes = append(p.Notes, p.Results.Warnings...)
	for _, k := range p.Results.Corpora {
		for _, skip := range k.Skipped {
			p.Notes = append(p.Notes, fmt.Sprintf("corpus %s: %d × %s left out while reading (such as line %d)", k.Name, skip.Count, skip.Reason, skip.Line))
		}
	}
	for _, s := range p.Header.Selection {
		for _, skip := range s.Skipped {
			p.Notes = append(p.Notes, fmt.Sprintf("corpus %s: %d × %s left out while choosing sentences (such as line %d)", s.Corpus, skip.Count, skip.Reason, skip.Line))
		}
	}
}
