package tui

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"infill/internal/eval"
	"infill/internal/phrase"
	"infill/tokenize"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

type (
	runMsg   struct{ state *eval.Watched }
	watchMsg struct{}
)

type runsPage struct {
	m        *model
	state    *eval.Watched // what is known of the evaluation; never changed by the page
	methods  []runMethod
	sentence int
	method   int // index of the first method shown
	scrolled int
}

var _ page = (*runsPage)(nil)

type runMethod struct{ model, method string }

func (p *runsPage) load() tea.Cmd {
	folder := p.m.config.Folder
	last := p.state
	if folder == "" {
		return nil
	}
	return p.m.jobs.command(func(context.Context) tea.Msg {
		if last == nil {
			return runMsg{eval.Watch(folder)}
		}
		return runMsg{last.Again()}
	})
}

// take shows what load has read, and loads again until it is complete.
func (p *runsPage) take(s *eval.Watched) tea.Cmd {
	p.state = s
	p.methods = nil
	if s.Err == nil {
		for _, model := range s.Header.Models {
			for _, method := range s.Header.Configuration.Samplers {
				p.methods = append(p.methods, runMethod{model.Name, method.Name})
			}
		}
		if s.Results != nil && p.complete() {
			return nil
		}
	}
	const pause = time.Second
	return p.m.jobs.after(pause, watchMsg{})
}

func (p *runsPage) shows() bool { return p.state != nil && p.state.Err == nil }

// complete reports whether every method has filled every sentence.
func (p *runsPage) complete() bool { return p.state.Done() >= p.state.Total() }

func (p *runsPage) move(by int) {
	if p.shows() {
		p.sentence = min(max(p.sentence+by, 0), len(p.state.Prompts)-1)
		p.scrolled = 0
	}
}

func (p *runsPage) turn(by int) {
	if p.shows() {
		p.method = min(max(p.method+by, 0), len(p.methods)-1)
	}
}

// leaf scrolls through the fills of the sentence.
func (p *runsPage) leaf(by int) { p.scrolled = max(p.scrolled+min(max(by, -5), 5), 0) }

// key makes the shown sentence the template if k is "enter".
func (p *runsPage) key(k string) tea.Cmd {
	switch {
	case k != "enter":
		return p.m.idle(k, unknownKey)
	case !p.shows():
		return p.m.idle(k, "no evaluation is open, and 1 shows the fills")
	}
	p.m.editor = newEditor(p.state.Prompts[p.sentence].Template)
	p.m.view = fillsView
	return p.m.edited()
}

func (p *runsPage) hints() []hint {
	if !p.shows() {
		return nil
	}
	return []hint{{"↑↓", "sentence"}, {"←→", "sampler"}, {"pgdn", "more fills"}, {"enter", "try it"}}
}

func (p *runsPage) render(columns, rows int) string {
	m := p.m
	folder := harmless(m.config.Folder)
	switch {
	case folder == "":
		return m.note("no evaluation is open: infill tui FOLDER shows one", columns, rows)
	case p.state == nil:
		return m.note("reading "+folder+" …", columns, rows)
	case p.state.Err != nil:
		text := "  " + strings.ReplaceAll(ansi.Wrap(harmless(p.state.Err.Error()), columns-4, ""), "\n", "\n  ")
		return stack(columns, rows, "", m.styles.fault.Render(text), "",
			m.faint.Render("    looked at again every second"))
	}
	lines := []string{p.head(columns)}
	if !p.complete() {
		const hint = "if no process is at work here, the command that began the run goes on with it"
		lines = append(lines, "  "+m.faint.Render(cut(hint, columns-2)))
	}
	note := p.state.Note
	if note != "" {
		lines = append(lines, "  "+m.amber.Render(cut(harmless(note), columns-2)))
	}
	return stack(columns, rows, append(lines, p.sentencePage(columns, rows-len(lines))...)...)
}

func (p *runsPage) head(columns int) string {
	m := p.m
	r := p.state
	c := r.Header.Configuration
	left := "  " + m.strong.Render(harmless(filepath.Base(m.config.Folder))) +
		m.faint.Render(fmt.Sprintf("  %s, %s, seed %d", cmp.Or(harmless(c.Preset), "own settings"),
			phrase.Counted(c.Chains, "chain"), c.Seed))
	state := m.good.Render("✓ ") + m.faint.Render("complete")
	switch {
	case !p.complete():
		state = m.amber.Render(fmt.Sprintf("● %d of %d", r.Done(), r.Total()))
	case r.Results == nil:
		state = m.amber.Render("● scores to come")
	}
	return between(left, state+" ", columns)
}

// sentencePage draws the fills of the chosen sentence, with several methods side by side.
func (p *runsPage) sentencePage(columns, rows int) []string {
	m := p.m
	r := p.state
	p.sentence = min(p.sentence, len(r.Prompts)-1)
	prompt := r.Prompts[p.sentence]
	lines := []string{m.faint.Render(
		fmt.Sprintf("  sentence %d of %d, %s line %d", p.sentence+1, len(r.Prompts), harmless(prompt.Corpus),
			prompt.Line))}
	text := m.marked(templateParts(prompt.Template, prompt.Words), m.text, nil)
	for _, line := range wrapped(text, columns-4, max(rows/4, 1)) {
		lines = append(lines, m.line.Render(" ▎ ")+line)
	}
	if rows >= 14 {
		lines = append(lines, "")
	}
	const narrowest = 34
	number := min(max(columns/narrowest, 1), len(p.methods), 5)
	if columns < 80 && columns >= leastColumns {
		number = min(2, len(p.methods))
	}
	from := min(p.method, len(p.methods)-number)
	var list []string
	for i := from; i < from+number; i++ {
		list = append(list, p.column(i, (columns-1-3*(number-1))/number, rows-len(lines)))
	}
	return append(lines, beside(m.line.Render(" │ "), rows-len(lines), list...))
}

// templateParts returns a template as parts, with the masked words.
func templateParts(template string, words []string) []part {
	list := parts(template, tokenize.BlankSpans(template, ""))
	for i := range list {
		at := list[i].blank
		if at >= 0 && at < len(words) {
			list[i].text = harmless(words[at])
		}
	}
	return list
}

func (p *runsPage) column(i, columns, rows int) string {
	m := p.m
	r := p.state
	method := p.methods[i]
	name := "  " + m.strong.Render(harmless(method.method))
	if i == p.method {
		name = m.accent.Render("▸ ") + m.active.Render(harmless(method.method))
	}
	if len(r.Header.Models) > 1 {
		name += m.faint.Render(" " + harmless(method.model))
	}
	record := r.Record(method.model, method.method, p.sentence)
	if record == nil {
		return stack(columns, rows, name, m.faint.Render("  not yet"))
	}
	facts := fmt.Sprintf("%.1f s, %s", record.Seconds, phrase.Counted(int(record.ModelRows), "row"))
	if record.AcceptanceRate != nil {
		facts = fmt.Sprintf("accepted %.2f, ", *record.AcceptanceRate) + facts
	}
	lines := []string{cut(name, columns), "  " + m.faint.Render(cut(facts, columns-2))}
	// Chains that end in the same fill share a line, which gives their number.
	counts := map[string]int{}
	var distinct []int
	chains := record.Likeliest(len(record.Chains))
	for at, chain := range chains {
		counts[chain.Text]++
		if counts[chain.Text] == 1 {
			distinct = append(distinct, at)
		}
	}
	p.scrolled = min(p.scrolled, max(len(record.Chains)-1, 0))
	for _, at := range distinct[min(p.scrolled, len(distinct)):] {
		chain := chains[at]
		count := "   "
		mark := "  "
		fills := ""
		n := counts[chain.Text]
		if n > 1 {
			count = m.amber.Render(fit(fmt.Sprintf("×%d", n), 3))
		}
		for blank, text := range chain.Fills {
			if blank > 0 {
				fills += m.faint.Render(" · ")
			}
			fills += m.styles.blankLook(blank).Render(harmless(text))
		}
		if strings.EqualFold(strings.Join(chain.Fills, " "), strings.Join(r.Prompts[p.sentence].Words, " ")) {
			mark = m.good.Render("= ") // the fill has the words that were masked
		}
		lines = append(lines,
			mark+fit(fills, columns-2-3-8)+" "+count+right(fmt.Sprintf("%.2f", chain.LogLikelihood), 7))
	}
	return stack(columns, rows, lines...)
}
