package eval

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"strings"

	"infill/internal/chart"
	"infill/internal/eval/corpus"
	"infill/metrics"
)

//go:embed report.html.tmpl
var reportPage string

// page is what the report shows.
type page struct {
	*Results
	Header    *header
	Title     string
	Facts     []string
	Top, All  *table
	Series    []series // of the methods
	Charts    []pageChart
	Sentences []pageSentence
	Notes     []string
}

type pageChart struct {
	Title, Caption string
	Drawing        template.HTML
}

// pageSentence holds the likeliest fills of a sentence, by method.
type pageSentence struct {
	corpus.Prompt
	Number  int
	Methods []pageFills
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

// pageWord is what a slot was filled with; Repeat reports that a likelier sample of the method has the same there.
type pageWord struct {
	Text   string
	Repeat bool
}

// report is a page for people: one file that needs nothing else.
func report(h *header, r *Results, records map[key]*Record) ([]byte, error) {
	c := r.Configuration
	p := page{Results: r, Header: h, Series: allSeries(r), Title: "Samplers compared", Top: r.Table("top"),
		All: r.Table("all")}
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
		fmt.Sprintf("%d sentences, %s", c.Sentences, masked), fmt.Sprintf("%d samples of each", c.Chains),
		fmt.Sprintf("seed %d", c.Seed),
	}
	if err := p.charts(); err != nil {
		return nil, err
	}
	p.fills(h.Prompts(), records)
	p.notes()
	tmpl, err := template.New("report").Funcs(template.FuncMap{
		"series": p.series, "split": strings.Split, "join": strings.Join, "colours": colours,
		"p": func(v metrics.Value) string { return format(v, 3) },
		"signed": func(c column, v metrics.Value) string {
			if v > 0 {
				return "+" + format(v, c.digits)
			}
			return format(v, c.digits)
		},
		"interval": func(c column, s comparedScore) string {
			return c.Interval(cell{s.Difference.Difference, s.Interval.Low, s.Interval.High})
		},
	}).Parse(reportPage)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = tmpl.Execute(&b, p)
	return b.Bytes(), err
}

// colours are those of the charts.
func colours() (list []template.CSS) {
	for _, c := range chart.Colours {
		list = append(list, template.CSS(fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)))
	}
	return list
}

func (p *page) series(model, method string) series {
	for i, m := range p.Methods {
		if m.Model == model && m.Method == method {
			return p.Series[i]
		}
	}
	return series{Name: method}
}

// fills lists the likeliest fills of every sentence, by method.
func (p *page) fills(prompts []corpus.Prompt, records map[key]*Record) {
	for number, prompt := range prompts {
		s := pageSentence{Prompt: prompt, Number: number + 1}
		for i, m := range p.Methods {
			record := records[key{m.Model, m.Method, number}]
			if record == nil {
				continue
			}
			fills := pageFills{series: p.Series[i]}
			seen := map[string]bool{}
			whole := map[string]bool{}
			for _, chain := range record.Likeliest(p.Configuration.Top) {
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
	p.Notes = append(p.Notes, p.Warnings...)
	note := func(name, doing string, skipped []corpus.Skip) {
		for _, skip := range skipped {
			p.Notes = append(p.Notes, fmt.Sprintf("corpus %s: %d × %s left out while %s (such as line %d)", name,
				skip.Count, skip.Reason, doing, skip.Line))
		}
	}
	for _, k := range p.Corpora {
		note(k.Name, "reading", k.Skipped)
	}
	for _, s := range p.Header.Selection {
		note(s.Corpus, "choosing sentences", s.Skipped)
	}
}
