package tui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// The files of an evaluation's folder, as far as they are shown. Fields that are
// not here are passed over, so that runs of later versions can be looked at.
type (
	runHeader struct {
		Configuration struct {
			Preset   string `json:"preset"`
			Samples  int    `json:"samples"`
			Seed     uint64 `json:"seed"`
			Samplers []struct {
				Name string `json:"name"`
			} `json:"samplers"`
		} `json:"configuration"`
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
		Selection []struct {
			Prompts []runPrompt `json:"prompts"`
		} `json:"selection"`
		Shard string `json:"shard"` // "I/N" for a part of a run
	}
	// runStatus is what a process tells while it is at work.
	runStatus struct {
		Model           string    `json:"model"`
		Method          string    `json:"method"`
		Sentence        int       `json:"sentence"`
		Step            int       `json:"step"`
		Steps           int       `json:"steps"`
		LogLikelihood   *float64  `json:"log_likelihood"`
		ChainsPerSecond float64   `json:"chains_per_second"`
		SecondsLeft     *float64  `json:"seconds_left"`
		Written         time.Time `json:"written"`
	}
	runPrompt struct {
		Corpus   string   `json:"corpus"`
		Line     int      `json:"line"`
		Template string   `json:"template"`
		Words    []string `json:"words"`
	}
	runRecord struct {
		Model               string     `json:"model"`
		Method              string     `json:"method"`
		Sentence            int        `json:"sentence"`
		Chains              []runChain `json:"chains"`
		AcceptanceRate      *float64   `json:"acceptance_rate"`
		ChangedSlotsPerStep float64    `json:"changed_slots_per_step"`
		ModelRows           int64      `json:"model_rows"`
		Seconds             float64    `json:"seconds"`
	}
	runChain struct {
		Text          string   `json:"text"`
		Fills         []string `json:"fills"`
		LogLikelihood float64  `json:"log_likelihood"`
	}
	runMetrics struct {
		Methods []struct {
			Model         string       `json:"model"`
			Method        string       `json:"method"`
			Acceptance    *runEstimate `json:"acceptance_rate"`
			LogLikelihood runEstimate  `json:"log_likelihood"`
			Rows          runEstimate  `json:"model_rows_per_sample"`
			Top           *struct {
				Scores []runScore `json:"scores"`
			} `json:"top"`
		} `json:"methods"`
	}
	runEstimate struct {
		Mean          *float64 `json:"mean"`
		StandardError *float64 `json:"standard_error"`
	}
	runScore struct {
		Metric    string   `json:"metric"`
		Reference string   `json:"reference"`
		N         int      `json:"n"`
		Value     *float64 `json:"value"`
		Interval  *struct {
			Low  *float64 `json:"low"`
			High *float64 `json:"high"`
		} `json:"interval"`
	}
)

// runMethod is one sampler with one model.
type runMethod struct{ model, method string }

type runKey struct {
	runMethod
	sentence int
}

// runState is what was read of a folder so far. A message carries a new one; the
// screen never changes it.
type runState struct {
	header  *runHeader
	prompts []runPrompt
	methods []runMethod
	records map[runKey]*runRecord
	offset  int64 // of samples.jsonl, whole lines
	lines   int
	bad     int // lines that could not be read, and the first of them
	badLine int
	metrics *runMetrics
	status  *runStatus    // nil: no process tells that it is at work
	silent  time.Duration // since it told so
	fault   string        // of the whole folder
	note    string        // of a part of it
}

type (
	runMsg   struct{ state *runState }
	watchMsg struct{}
)

// runBrowser is the view of an evaluation.
type runBrowser struct {
	folder   string
	state    *runState
	sentence int
	method   int // the first shown
	scrolled int
	table    bool
}

func (b *runBrowser) take(message runMsg) { b.state = message.state }

// loadRun reads the folder, from where the last reading ended.
func (m *Model) loadRun() tea.Cmd {
	if m.config.Folder == "" {
		return nil
	}
	m.runView.folder = m.config.Folder
	folder, last := m.config.Folder, m.runView.state
	return m.jobs.command(func(context.Context) tea.Msg { return runMsg{readRun(folder, last, m.config.Now())} })
}

// watchRun looks again soon at a run that is not complete.
func (m *Model) watchRun() tea.Cmd {
	if s := m.runView.state; s != nil && s.fault == "" && (s.metrics != nil || s.part()) && s.complete() {
		return nil
	}
	const pause = time.Second
	return m.jobs.after(pause, watchMsg{})
}

// total is the number of fills of the run, or of the part of it that the folder is
// for: of N parts, part I has every Nth sentence from the Ith on.
func (s *runState) total() int {
	sentences := len(s.prompts)
	var part, parts int
	if n, err := fmt.Sscanf(s.header.Shard, "%d/%d", &part, &parts); err == nil && n == 2 && part >= 1 && part <= parts {
		sentences = (len(s.prompts) - part + parts) / parts
	}
	return sentences * len(s.methods)
}

// complete tells that every sentence was infilled by every method.
func (s *runState) complete() bool { return s.header != nil && len(s.records) >= s.total() }

// part tells that the folder is for a part of a run, which has no scores.
func (s *runState) part() bool { return s.header.Shard != "" }

// patience is how long a process may be silent before it is no longer believed to
// be at work. It tells of every second.
const patience = 15 * time.Second

// working is what a process does now, nil where none does.
func (s *runState) working() *runStatus {
	if s.status == nil || s.silent > patience {
		return nil
	}
	return s.status
}

// mostBytes is the longest file that is read at a time, and mostLine the longest
// line: what is longer is no run's.
const mostBytes, mostLine = 64 << 20, 16 << 20

// readRun reads what is new in a folder, at the time now. Whatever is in it, the result can be
// shown; a run that is being written is read as far as it is whole.
func readRun(folder string, last *runState, now time.Time) *runState {
	s := &runState{records: map[runKey]*runRecord{}}
	content, err := readWhole(filepath.Join(folder, "run.json"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.fault = "there is no run.json in " + folder + ": it holds no evaluation, or one that is about to begin"
		return s
	case err != nil:
		s.fault = "run.json cannot be read: " + reason(err)
		return s
	}
	s.header = &runHeader{}
	if err := json.Unmarshal(content, s.header); err != nil {
		s.fault = "run.json is damaged: " + err.Error()
		return s
	}
	for _, selection := range s.header.Selection {
		s.prompts = append(s.prompts, selection.Prompts...)
	}
	for _, model := range s.header.Models {
		for _, method := range s.header.Configuration.Samplers {
			s.methods = append(s.methods, runMethod{model.Name, method.Name})
		}
	}
	if len(s.prompts) == 0 || len(s.methods) == 0 {
		s.fault = "run.json names no sentences or no samplers: it is not a run's"
		return s
	}
	if last != nil && last.header != nil && last.fault == "" {
		for k, record := range last.records {
			s.records[k] = record
		}
		s.offset, s.lines, s.bad, s.badLine = last.offset, last.lines, last.bad, last.badLine
	}
	if err := s.readSamples(filepath.Join(folder, "samples.jsonl")); err != nil {
		s.note = "samples.jsonl: " + reason(err)
	}
	if content, err := readWhole(filepath.Join(folder, ".status.json")); err == nil {
		// It is replaced as a whole, and one that cannot be read says nothing.
		if status := (&runStatus{}); json.Unmarshal(content, status) == nil {
			s.status, s.silent = status, now.Sub(status.Written)
		}
	}
	if content, err := readWhole(filepath.Join(folder, "metrics.json")); err == nil {
		s.metrics = &runMetrics{}
		if err := json.Unmarshal(content, s.metrics); err != nil {
			s.metrics, s.note = nil, "metrics.json is damaged: "+err.Error()
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		s.note = "metrics.json: " + reason(err)
	}
	return s
}

func readWhole(path string) ([]byte, error) {
	file, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, mostBytes+1))
	if err == nil && len(content) > mostBytes {
		return nil, fmt.Errorf("it is larger than %d MiB", mostBytes>>20)
	}
	return content, err
}

// openRegular opens a file, but no pipe or device, which could be waited for
// without end.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no file")
	}
	return os.Open(path)
}

// readSamples reads whole lines from the offset on.
func (s *runState) readSamples(path string) error {
	file, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil {
		return err
	} else if info.Size() < s.offset {
		// Begun anew, or its torn end was cut off.
		s.records, s.offset, s.lines, s.bad, s.badLine = map[runKey]*runRecord{}, 0, 0, 0, 0
	}
	if _, err := file.Seek(s.offset, io.SeekStart); err != nil {
		return err
	}
	content, err := io.ReadAll(io.LimitReader(file, mostBytes))
	if err != nil {
		return err
	}
	for {
		end := bytes.IndexByte(content, '\n')
		if end < 0 {
			if len(content) > mostLine {
				return fmt.Errorf("line %d is longer than %d MiB", s.lines+1, mostLine>>20)
			}
			return nil // what has no end yet is being written
		}
		line := content[:end]
		content = content[end+1:]
		s.offset += int64(end + 1)
		s.lines++
		var r runRecord
		k := runKey{}
		err := json.Unmarshal(line, &r)
		if err == nil {
			k = runKey{runMethod{r.Model, r.Method}, r.Sentence}
		}
		if err != nil || r.Sentence < 0 || r.Sentence >= len(s.prompts) || !slices.Contains(s.methods, k.runMethod) || len(r.Chains) == 0 {
			if s.bad++; s.bad == 1 {
				s.badLine = s.lines
			}
			continue
		}
		slices.SortStableFunc(r.Chains, func(a, b runChain) int { return cmp.Compare(b.LogLikelihood, a.LogLikelihood) })
		s.records[k] = &r
	}
}

// key handles what is this view's own, and tells whether it was.
func (b *runBrowser) key(k tea.KeyPressMsg, keys keyMap) bool {
	if b.state == nil || b.state.fault != "" {
		return false
	}
	last := len(b.state.prompts) - 1
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
		b.method = min(b.method+1, len(b.state.methods)-1)
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
	if b.state == nil || b.state.fault != "" {
		return
	}
	if b.table {
		b.scrolled = max(b.scrolled+by, 0)
		return
	}
	b.sentence, b.scrolled = min(max(b.sentence+by, 0), len(b.state.prompts)-1), 0
}

func (b *runBrowser) keys(k keyMap) []key.Binding {
	if b.state == nil || b.state.fault != "" {
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
	case b.state.fault != "":
		text := "  " + strings.ReplaceAll(ansi.Wrap(harmless(b.state.fault), columns-4, ""), "\n", "\n  ")
		return stack(columns, rows, "", s.fault.Render(text), "", s.faint.Render("    looked at again every second"))
	}
	lines := []string{b.head(s, columns)}
	if pace := b.pace(); pace != "" {
		lines = append(lines, "  "+s.faint.Render(ansi.Truncate(pace, columns-2, "…")))
	}
	if note := b.note(); note != "" {
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
	done, all := len(r.records), r.total()
	left := "  " + s.strong.Render(harmless(filepath.Base(b.folder))) + s.faint.Render(fmt.Sprintf("  %s, %d chains, seed %d",
		cmp.Or(harmless(r.header.Configuration.Preset), "own settings"), r.header.Configuration.Samples, r.header.Configuration.Seed))
	state := s.good.Render("✓ ") + s.faint.Render("complete")
	if done < all {
		state = s.warmUp.Render(fmt.Sprintf("● %d of %d", done, all))
	} else if r.part() {
		state = s.good.Render("✓ ") + s.faint.Render("part "+harmless(r.header.Shard)+" is complete")
	} else if r.metrics == nil {
		state = s.warmUp.Render("● scores to come")
	}
	return between(left, state+" ", columns)
}

// pace says in a line what the process at work does, how fast, and how long still.
func (b *runBrowser) pace() string {
	r := b.state
	if r.complete() {
		return ""
	}
	w := r.working()
	if w == nil {
		text := "no process is at work here"
		if r.status != nil {
			text = "the process at work has been silent for " + roundTime(r.silent)
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

func (b *runBrowser) note() string {
	switch r := b.state; {
	case r.note != "":
		return r.note
	case r.bad == 1:
		return fmt.Sprintf("line %d of samples.jsonl is damaged and left out", r.badLine)
	case r.bad > 1:
		return fmt.Sprintf("%d lines of samples.jsonl are damaged and left out, the first is line %d", r.bad, r.badLine)
	}
	return ""
}

// shownMethods is how many methods stand side by side.
func (b *runBrowser) shownMethods(columns int) (from, number int) {
	const narrowest = 34
	number = min(max(columns/narrowest, 1), len(b.state.methods), 5)
	if columns < 80 && len(b.state.methods) > 1 && columns >= leastColumns {
		number = min(2, len(b.state.methods))
	}
	return min(b.method, len(b.state.methods)-number), number
}

func (b *runBrowser) sentencePage(s *styles, columns, rows int) string {
	r := b.state
	b.sentence = min(b.sentence, len(r.prompts)-1)
	p := r.prompts[b.sentence]
	where := s.faint.Render(fmt.Sprintf("  sentence %d of %d, %s line %d", b.sentence+1, len(r.prompts), harmless(p.Corpus), p.Line))
	template := s.marked(templateParts(p), s.text, nil)
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
		column := b.column(s, r.methods[i], i, columnWidth, room)
		if i == from {
			text = column
		} else {
			text = beside(s.rule.Render(" │ "), room, text, column)
		}
	}
	return strings.Join(lines, "\n") + "\n" + text
}

// templateParts shows a sentence with the words that were masked.
func templateParts(p runPrompt) []part {
	var list []part
	from, word := 0, 0
	for _, at := range blankPattern().FindAllStringIndex(p.Template, -1) {
		list = append(list, part{harmless(p.Template[from:at[0]]), -1})
		masked := p.Template[at[0]:at[1]]
		if word < len(p.Words) {
			masked = p.Words[word]
		}
		list = append(list, part{harmless(masked), word})
		word++
		from = at[1]
	}
	return append(list, part{harmless(p.Template[from:]), -1})
}

// column lists what one method made of the sentence.
func (b *runBrowser) column(s *styles, method runMethod, number, columns, rows int) string {
	r := b.state
	name := harmless(method.method)
	if len(r.header.Models) > 1 {
		name += s.faint.Render(" " + harmless(method.model))
	}
	head := "  " + s.strong.Render(name)
	if number == b.method {
		head = s.marker.Render("▸ ") + s.activeTab.Render(harmless(method.method)) + strings.TrimPrefix(name, harmless(method.method))
	}
	record := r.records[runKey{method, b.sentence}]
	if record == nil {
		if w := r.working(); w != nil && (runKey{runMethod{w.Model, w.Method}, w.Sentence}) == (runKey{method, b.sentence}) {
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
	for _, chain := range record.Chains {
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
		if strings.EqualFold(strings.Join(g.fills, " "), strings.Join(r.prompts[b.sentence].Words, " ")) {
			mark = s.good.Render("= ") // the words that were masked
		}
		lines = append(lines, mark+fit(ansi.Truncate(fills, room, "…"), room)+" "+count+right(fmt.Sprintf("%.2f", g.u), 7))
	}
	return stack(columns, rows, strings.Join(lines, "\n"))
}

// scores is the table of the methods.
func (b *runBrowser) scores(s *styles, columns, rows int) string {
	r := b.state
	if r.metrics == nil {
		text := "the scores come when every sentence is done"
		if r.part() {
			text = "the parts of a run have no scores: infill eval merge puts them together"
		}
		return "\n" + s.faint.Render("    "+ansi.Truncate(text, columns-4, "…"))
	}
	type column struct {
		name string
		cell func(i int) string
	}
	value := func(x *float64, format string) string {
		if x == nil || math.IsNaN(*x) {
			return "–"
		}
		return fmt.Sprintf(format, *x)
	}
	estimate := func(e *runEstimate, format string) string {
		if e == nil {
			return "–"
		}
		text := value(e.Mean, format)
		if e.StandardError != nil {
			text += " ± " + value(e.StandardError, format)
		}
		return text
	}
	list := []column{
		{"log-likelihood", func(i int) string { return estimate(&r.metrics.Methods[i].LogLikelihood, "%.2f") }},
		{"acceptance", func(i int) string { return estimate(r.metrics.Methods[i].Acceptance, "%.2f") }},
		{"rows/sample", func(i int) string { return estimate(&r.metrics.Methods[i].Rows, "%.1f") }},
	}
	var names []string
	for _, method := range r.metrics.Methods {
		if method.Top == nil {
			continue
		}
		for _, score := range method.Top.Scores {
			if name := score.name(); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		list = append(list, column{name, func(i int) string {
			if top := r.metrics.Methods[i].Top; top != nil {
				for _, score := range top.Scores {
					if score.name() == name {
						text := value(score.Value, "%.1f")
						if in := score.Interval; in != nil && in.Low != nil && in.High != nil {
							text += fmt.Sprintf(" [%.1f, %.1f]", *in.Low, *in.High)
						}
						return text
					}
				}
			}
			return "–"
		}})
	}
	nameWidth := 8
	for _, method := range r.metrics.Methods {
		nameWidth = max(nameWidth, min(width(harmless(method.Method)), columns/3))
	}
	// → leaves columns out at the left.
	list = list[min(b.method, max(len(list)-1, 0)):]
	head, widths := "  "+fit("method", nameWidth), []int{}
	for _, c := range list {
		w := width(c.name)
		for i := range r.metrics.Methods {
			w = max(w, width(c.cell(i)))
		}
		if width(head)+2+w > columns {
			break
		}
		widths = append(widths, w)
		head += "  " + right(harmless(c.name), w)
	}
	lines := []string{"", s.title.Render(head)}
	b.scrolled = min(b.scrolled, max(len(r.metrics.Methods)-1, 0))
	for i, method := range r.metrics.Methods {
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

// name is the score in a few words, such as "corpus BLEU tbc" or "unique 2-grams".
func (c runScore) name() string {
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
