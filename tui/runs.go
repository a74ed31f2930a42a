package tui

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"infill/infill/eval"
	"infill/metrics"
)

// runMethod is one sampler with one model.
type runMethod struct{ model, method string }

type (
	// runMsg carries what was read of a folder, and how long its process has been silent.
	runMsg struct {
		state  *eval.Watched
		silent time.Duration
	}
	watchMsg struct{}
)

// runBrowser is the view of an evaluation.
type runBrowser struct {
	folder   string
	state    *eval.Watched // the screen never changes it
	silent   time.Duration // since a process told that it is at work
	methods  []runMethod
	sentence int
	method   int // the first shown
	scrolled int
	table    bool
}

func (b *runBrowser) take(message runMsg) {
	b.state, b.silent, b.methods = message.state, message.silent, nil
	if b.state.Err != nil {
		return
	}
	for _, model := range b.state.Header.Models {
		for _, method := range b.state.Header.Configuration.Samplers {
			b.methods = append(b.methods, runMethod{model.Name, method.Name})
		}
	}
}

// loadRun reads the folder, from where the last reading ended.
func (m *Model) loadRun() tea.Cmd {
	if m.config.Folder == "" {
		return nil
	}
	m.runView.folder = m.config.Folder
	folder, last := m.config.Folder, m.runView.state
	return m.jobs.command(func(context.Context) tea.Msg { return readRun(folder, last, m.config.Now()) })
}

// readRun reads what is new in a folder, at the time now.
func readRun(folder string, last *eval.Watched, now time.Time) runMsg {
	message := runMsg{}
	if last == nil {
		message.state = eval.Watch(folder)
	} else {
		message.state = last.Again()
	}
	if status := message.state.Status; status != nil {
		message.silent = now.Sub(status.Written)
	}
	return message
}

// watchRun looks again soon at a run that is not complete.
func (m *Model) watchRun() tea.Cmd {
	if s := m.runView.state; s != nil && s.Err == nil && (s.Results != nil || m.runView.part()) && m.runView.complete() {
		return nil
	}
	const pause = time.Second
	return m.jobs.after(pause, watchMsg{})
}

// complete tells that every sentence was infilled by every method.
func (b *runBrowser) complete() bool { return b.state.Done() >= b.state.Total() }

// part tells that the folder is for a part of a run, which has no scores.
func (b *runBrowser) part() bool { return b.state.Header.Shard.Count > 0 }

// patience is how long a process may be silent before it is no longer believed to
// be at work. It tells of every second.
const patience = 15 * time.Second

// working is what a process does now, nil where none does.
func (b *runBrowser) working() *eval.Progress {
	if b.silent > patience {
		return nil
	}
	return b.state.Status
}

// key handles what is this view's own, and tells whether it was.
func (b *runBrowser) key(k tea.KeyPressMsg, keys keyMap) bool {
	if b.state == nil || b.state.Err != nil {
		return false
	}
	last := len(b.state.Prompts) - 1
	switch {
	case key.Matches(k, keys.Up):
		b.step(-1)
	case key.Matches(k, keys.Down):
		b.step(1)
	case key.Matches(k, keys.PageUp):
		b.scrolled = max(b.scrolled-5, 0)
	case key.Matches(k, keys.PageDown):
		b.scrolled += 5
	case key.Matches(k, keys.First):
		b.sentence, b.scrolled = 0, 0
	case key.Matches(k, keys.Last):
		b.sentence, b.scrolled = last, 0
	case key.Matches(k, keys.Left):
		b.method = max(b.method-1, 0)
	case key.Matches(k, keys.Right):
		b.method = min(b.method+1, len(b.methods)-1)
	case key.Matches(k, keys.Sort):
		b.table = !b.table
		b.scrolled = 0
	default:
		return false
	}
	return true
}

// step goes to another sentence, or through the table.
func (b *runBrowser) step(by int) {
	if b.state == nil || b.state.Err != nil {
		return
	}
	if b.table {
		b.scrolled = max(b.scrolled+by, 0)
		return
	}
	b.sentence, b.scrolled = min(max(b.sentence+by, 0), len(b.state.Prompts)-1), 0
}

func (b *runBrowser) keys(k keyMap) []key.Binding {
	if b.state == nil || b.state.Err != nil {
		return nil
	}
	named := func(b key.Binding, shown, help string) key.Binding { b.SetHelp(shown, help); return b }
	if b.table {
		return []key.Binding{named(k.Down, "↓", "more"), named(k.Sort, "s", "sentences"), named(k.Right, "→", "more scores")}
	}
	return []key.Binding{named(k.Down, "↑↓", "sentence"), named(k.Right, "←→", "sampler"), named(k.PageDown, "pgdn", "more fills"), named(k.Sort, "s", "scores"), named(k.Pick, "enter", "try it")}
}

// Render draws the view.
func (b *runBrowser) Render(s *styles, columns, rows int) string {
	switch {
	case b.folder == "":
		return stack(columns, rows, "", s.faint.Render("    no evaluation is open: infill tui FOLDER shows one"))
	case b.state == nil:
		return stack(columns, rows, "", s.faint.Render("    reading "+harmless(b.folder)+" …"))
	case b.state.Err != nil:
		text := "  " + strings.ReplaceAll(ansi.Wrap(harmless(b.state.Err.Error()), columns-4, ""), "\n", "\n  ")
		return stack(columns, rows, "", s.fault.Render(text), "", s.faint.Render("    looked at again every second"))
	}
	lines := []string{b.head(s, columns)}
	if pace := b.pace(); pace != "" {
		lines = append(lines, "  "+s.faint.Render(ansi.Truncate(pace, columns-2, "…")))
	}
	if note := b.state.Note; note != "" {
		lines = append(lines, "  "+s.warning.Render(ansi.Truncate(harmless(note), columns-2, "…")))
	}
	if b.table {
		return stack(columns, rows, strings.Join(lines, "\n"), b.scores(s, columns, rows-len(lines)))
	}
	return stack(columns, rows, strings.Join(lines, "\n"), b.sentencePage(s, columns, rows-len(lines)))
}

// head names the run and says how far it is.
func (b *runBrowser) head(s *styles, columns int) string {
	r := b.state
	done, all := r.Done(), r.Total()
	left := "  " + s.strong.Render(harmless(filepath.Base(b.folder))) + s.faint.Render(fmt.Sprintf("  %s, %d chains, seed %d",
		cmp.Or(harmless(r.Header.Configuration.Preset), "own settings"), r.Header.Configuration.Chains, r.Header.Configuration.Seed))
	state := s.good.Render("✓ ") + s.faint.Render("complete")
	if done < all {
		state = s.warmUp.Render(fmt.Sprintf("● %d of %d", done, all))
	} else if b.part() {
		state = s.good.Render("✓ ") + s.faint.Render("part "+r.Header.Shard.String()+" is complete")
	} else if r.Results == nil {
		state = s.warmUp.Render("● scores to come")
	}
	return between(left, state+" ", columns)
}

// pace says in a line what the process at work does, how fast, and how long still.
func (b *runBrowser) pace() string {
	r := b.state
	if b.complete() {
		return ""
	}
	w := b.working()
	if w == nil {
		text := "no process is at work here"
		if r.Status != nil {
			text = "the process at work has been silent for " + roundTime(b.silent)
		}
		return text + "; the command that began the run goes on with it"
	}
	var facts []string
	if w.ChainsPerSecond > 0 {
		digits := 1
		if w.ChainsPerSecond >= 10 {
			digits = 0
		}
		facts = append(facts, fmt.Sprintf("%.*f chains/s", digits, w.ChainsPerSecond))
	}
	if w.SecondsLeft != nil {
		facts = append(facts, roundTime(time.Duration(*w.SecondsLeft*float64(time.Second)))+" left")
	}
	now := fmt.Sprintf("%s at sentence %d, step %d of %d", w.Method, w.Sentence+1, w.Step, w.Steps)
	if w.LogLikelihood != nil {
		now += fmt.Sprintf(", mean log-likelihood %.1f", *w.LogLikelihood)
	}
	return harmless(strings.Join(append(facts, now), ", "))
}

// roundTime is a duration to two parts at most.
func roundTime(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// shownMethods is how many methods stand side by side.
func (b *runBrowser) shownMethods(columns int) (from, number int) {
	const narrowest = 34
	number = min(max(columns/narrowest, 1), len(b.methods), 5)
	if columns < 80 && len(b.methods) > 1 && columns >= leastColumns {
		number = min(2, len(b.methods))
	}
	return min(b.method, len(b.methods)-number), number
}

func (b *runBrowser) sentencePage(s *styles, columns, rows int) string {
	r := b.state
	b.sentence = min(b.sentence, len(r.Prompts)-1)
	p := r.Prompts[b.sentence]
	where := s.faint.Render(fmt.Sprintf("  sentence %d of %d, %s line %d", b.sentence+1, len(r.Prompts), harmless(p.Corpus), p.Line))
	template := s.marked(templateParts(p.Template, p.Words), s.text, nil)
	wrapped := strings.Split(ansi.Wrap(template, columns-4, ""), "\n")
	most := max(min(len(wrapped), rows/4), 1)
	lines := []string{where}
	for i, line := range wrapped[:most] {
		if i == most-1 && most < len(wrapped) {
			line = ansi.Truncate(line+" …", columns-4, "…")
		}
		lines = append(lines, s.rule.Render(" ▎ ")+line)
	}
	if rows >= 14 {
		lines = append(lines, "")
	}
	from, number := b.shownMethods(columns)
	columnWidth := (columns - 1 - 3*(number-1)) / number
	room := rows - len(lines)
	text := ""
	for i := from; i < from+number; i++ {
		column := b.column(s, b.methods[i], i, columnWidth, room)
		if i == from {
			text = column
		} else {
			text = beside(s.rule.Render(" │ "), room, text, column)
		}
	}
	return strings.Join(lines, "\n") + "\n" + text
}

// templateParts shows a sentence with the words that were masked.
func templateParts(template string, words []string) []part {
	var list []part
	from, word := 0, 0
	for _, at := range blankPattern().FindAllStringIndex(template, -1) {
		list = append(list, part{harmless(template[from:at[0]]), -1})
		masked := template[at[0]:at[1]]
		if word < len(words) {
			masked = words[word]
		}
		list = append(list, part{harmless(masked), word})
		word++
		from = at[1]
	}
	return append(list, part{harmless(template[from:]), -1})
}

// column lists what one method made of the sentence.
func (b *runBrowser) column(s *styles, method runMethod, number, columns, rows int) string {
	r := b.state
	name := harmless(method.method)
	if len(r.Header.Models) > 1 {
		name += s.faint.Render(" " + harmless(method.model))
	}
	head := "  " + s.strong.Render(name)
	if number == b.method {
		head = s.marker.Render("▸ ") + s.activeTab.Render(harmless(method.method)) + strings.TrimPrefix(name, harmless(method.method))
	}
	record := r.Record(method.model, method.method, b.sentence)
	if record == nil {
		if w := b.working(); w != nil && (runMethod{w.Model, w.Method}) == method && w.Sentence == b.sentence {
			return stack(columns, rows, head, s.warmUp.Render(fmt.Sprintf("● step %d of %d", w.Step, w.Steps)))
		}
		return stack(columns, rows, head, s.faint.Render("  not yet"))
	}
	facts := fmt.Sprintf("%.1f s, %d rows", record.Seconds, record.ModelRows)
	if record.AcceptanceRate != nil {
		facts = fmt.Sprintf("accepted %.2f, ", *record.AcceptanceRate) + facts
	}
	lines := []string{ansi.Truncate(head, columns, "…"), "  " + s.faint.Render(ansi.Truncate(facts, columns-2, "…"))}
	// Chains that end in the same fill are one line with their number.
	type group struct {
		fills []string
		u     float64
		count int
	}
	var groups []group
	at := map[string]int{}
	for _, c := range record.Likeliest(len(record.Chains)) {
		chain := record.Chains[c]
		if i, seen := at[chain.Text]; seen {
			groups[i].count++
			continue
		}
		at[chain.Text] = len(groups)
		groups = append(groups, group{chain.Fills, chain.LogLikelihood, 1})
	}
	b.scrolled = min(b.scrolled, max(len(record.Chains)-1, 0))
	for _, g := range groups[min(b.scrolled, len(groups)):] {
		if len(lines) >= rows {
			break
		}
		count := "   "
		if g.count > 1 {
			count = s.warning.Render(fit(fmt.Sprintf("×%d", g.count), 3))
		}
		room := columns - 2 - 3 - 8
		fills := ""
		for i, fill := range g.fills {
			if i > 0 {
				fills += s.faint.Render(" · ")
			}
			fills += s.slot(i).Render(harmless(fill))
		}
		mark := "  "
		if strings.EqualFold(strings.Join(g.fills, " "), strings.Join(r.Prompts[b.sentence].Words, " ")) {
			mark = s.good.Render("= ") // the words that were masked
		}
		lines = append(lines, mark+fit(ansi.Truncate(fills, room, "…"), room)+" "+count+right(fmt.Sprintf("%.2f", g.u), 7))
	}
	return stack(columns, rows, strings.Join(lines, "\n"))
}

// scores is the table of the methods.
func (b *runBrowser) scores(s *styles, columns, rows int) string {
	r := b.state
	if r.Results == nil {
		text := "the scores come when every sentence is done"
		if b.part() {
			text = "the parts of a run have no scores: infill eval merge puts them together"
		}
		return "\n" + s.faint.Render("    "+ansi.Truncate(text, columns-4, "…"))
	}
	type column struct {
		name string
		cell func(i int) string
	}
	value := func(x float64, format string) string {
		if math.IsNaN(x) {
			return "–"
		}
		return fmt.Sprintf(format, x)
	}
	estimate := func(e *eval.Estimate, format string) string {
		if e == nil {
			return "–"
		}
		text := value(e.Mean, format)
		if e.StandardError != nil {
			text += " ± " + value(*e.StandardError, format)
		}
		return text
	}
	methods := r.Results.Methods
	list := []column{
		{"log-likelihood", func(i int) string { return estimate(&methods[i].LogLikelihood, "%.2f") }},
		{"acceptance", func(i int) string { return estimate(methods[i].AcceptanceRate, "%.2f") }},
		{"rows/sample", func(i int) string { return estimate(&methods[i].ModelRowsPerSample, "%.1f") }},
	}
	var names []string
	for _, method := range methods {
		if method.Top == nil {
			continue
		}
		for _, score := range method.Top.Scores {
			if name := scoreName(score); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		list = append(list, column{name, func(i int) string {
			if top := methods[i].Top; top != nil {
				for _, score := range top.Scores {
					if scoreName(score) == name {
						text := value(float64(score.Value), "%.1f")
						if in := score.Interval; in != nil && in.Low.Defined() {
							text += fmt.Sprintf(" [%.1f, %.1f]", in.Low, in.High)
						}
						return text
					}
				}
			}
			return "–"
		}})
	}
	nameWidth := 8
	for _, method := range methods {
		nameWidth = max(nameWidth, min(width(harmless(method.Method)), columns/3))
	}
	// → leaves columns out at the left.
	list = list[min(b.method, max(len(list)-1, 0)):]
	head, widths := "  "+fit("method", nameWidth), []int{}
	for _, c := range list {
		w := width(c.name)
		for i := range methods {
			w = max(w, width(c.cell(i)))
		}
		if width(head)+2+w > columns {
			break
		}
		widths = append(widths, w)
		head += "  " + right(harmless(c.name), w)
	}
	lines := []string{"", s.title.Render(head)}
	b.scrolled = min(b.scrolled, max(len(methods)-1, 0))
	for i, method := range methods {
		if i < b.scrolled || len(lines) >= rows-2 {
			continue
		}
		line := "  " + s.strong.Render(fit(harmless(method.Method), nameWidth))
		for n, w := range widths {
			line += "  " + right(list[n].cell(i), w)
		}
		lines = append(lines, line)
	}
	lines = append(lines, "", s.faint.Render("  of the likeliest final states; the intervals are those of metrics.json"))
	return strings.Join(lines, "\n")
}

// scoreName is a score in a few words, such as "corpus BLEU tbc" or "unique 2-grams".
func scoreName(c metrics.Score) string {
	words := map[string]string{"self_bleu": "self-BLEU", "corpus_bleu": "BLEU", "unique_ngrams": "unique", "distinct_ngrams": "distinct"}
	text := cmp.Or(words[c.Metric], strings.ReplaceAll(c.Metric, "_", " "))
	if c.N > 0 {
		text += fmt.Sprintf(" %d", c.N)
	}
	if c.Reference != "" {
		text += " " + c.Reference
	}
	return harmless(text)
}
