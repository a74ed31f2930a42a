package tui

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"infill/infill"
)

// barNats is the log-likelihood below the best fill, in nats, at which a bar is
// empty. A fixed scale keeps the bars from jumping while fills come in.
const barNats = 12

// order is how fills are sorted.
type order int

const (
	byLikelihood order = iota
	byFrequency
	byNovelty
	orders
)

func (o order) String() string { return [...]string{"likelihood", "frequency", "novelty"}[o] }

// fillsPage lists the fills. The one that is selected here is what the other
// pages look at.
type fillsPage struct {
	m              *model
	listed         []fill
	selected       int
	chosen         string // key of the selected fill, "" to stay at the top
	offset         int
	sort           order
	filter         string
	onlyFavourites bool
	favourites     []fill
}

var _ page = (*fillsPage)(nil)

// list sorts and filters the fills again, keeping the selection at its fill.
func (p *fillsPage) list() {
	var from []fill
	if s := p.m.run.snapshot; s != nil {
		from = s.Fills
	}
	if p.onlyFavourites {
		known := map[string]fill{}
		for _, f := range from {
			known[f.key()] = f
		}
		from = nil
		for _, f := range p.favourites {
			if present, ok := known[f.key()]; ok {
				f = present
			} else {
				f.Kept = true
			}
			from = append(from, f)
		}
	}
	p.listed = nil
	for _, f := range from {
		if p.matches(&f) {
			p.listed = append(p.listed, f)
		}
	}
	likelihood := func(a, b fill) int { return cmp.Compare(b.rating(), a.rating()) }
	switch p.sort {
	case byFrequency:
		slices.SortStableFunc(p.listed, func(a, b fill) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(b.Frequency, a.Frequency), likelihood(a, b))
		})
	case byNovelty:
		slices.SortStableFunc(p.listed,
			func(a, b fill) int { return cmp.Or(cmp.Compare(b.NewWords, a.NewWords), likelihood(a, b)) })
	}
	if p.selected = p.find(p.listed, p.chosen); p.selected < 0 {
		p.selected, p.chosen = 0, ""
	}
}

func (p *fillsPage) find(list []fill, k string) int {
	return slices.IndexFunc(list, func(f fill) bool { return f.key() == k })
}

// matches reports whether a fill passes the filter: every word of it stands in the
// fill's own words, or "2:word" in those of the second blank.
func (p *fillsPage) matches(f *fill) bool {
	for _, want := range strings.Fields(strings.ToLower(p.filter)) {
		in := strings.ToLower(strings.Join(f.Values, "\n"))
		if number, word, ok := strings.Cut(want, ":"); ok {
			if blank, err := strconv.Atoi(number); err == nil && blank >= 1 && blank <= len(f.Values) {
				in, want = strings.ToLower(f.Values[blank-1]), word
			}
		}
		if !strings.Contains(in, want) {
			return false
		}
	}
	return true
}

// current is the selected fill, nil for none.
func (p *fillsPage) current() *fill {
	if p.selected >= len(p.listed) {
		return nil
	}
	return &p.listed[p.selected]
}

func (p *fillsPage) move(by int) {
	if len(p.listed) > 0 {
		p.selected = min(max(p.selected+by, 0), len(p.listed)-1)
		p.chosen = ""
		if p.selected > 0 {
			p.chosen = p.current().key()
		}
	}
}

func (p *fillsPage) turn(by int) { p.m.turnBlank(by) }

// key handles what is done to the selected fill.
func (p *fillsPage) key(k tea.KeyPressMsg) tea.Cmd {
	m, keys, f := p.m, p.m.keys, p.current()
	switch {
	case key.Matches(k, keys.Filter):
		m.prompt = &prompt{input: newInput(p.filter, 400)}
	case key.Matches(k, keys.Sort):
		p.sort = (p.sort + 1) % orders
		p.list()
	case key.Matches(k, keys.OnlyFavourites):
		p.onlyFavourites = !p.onlyFavourites
		p.chosen = ""
		p.list()
	case key.Matches(k, keys.Save):
		if len(p.toSave()) == 0 {
			m.fail("nothing to save yet")
			return nil
		}
		m.prompt = &prompt{saving: true, fresh: true, input: newInput("fills.txt", 400)}
	case k.String() == "esc" && p.filter != "":
		p.filter = ""
		p.list()
	case f == nil:
	case key.Matches(k, keys.Pick):
		m.picked = &Picked{Text: f.Text, Result: m.resultOf([]fill{*f})}
		return tea.Quit
	case key.Matches(k, keys.Favourite):
		p.favour(f)
	case key.Matches(k, keys.Copy):
		// The words are not the screen's: a sequence cannot break out of base64.
		m.say("copied, if the terminal allows it (OSC 52)")
		return tea.SetClipboard(f.Text)
	case key.Matches(k, keys.Pin):
		return p.pin(f, nil)
	}
	return nil
}

func (p *fillsPage) favour(f *fill) {
	if at := p.find(p.favourites, f.key()); at >= 0 {
		p.favourites = slices.Delete(p.favourites, at, at+1)
	} else {
		p.favourites = append(p.favourites, *f)
	}
	p.list()
}

// toSave are the favourites, or else what is listed.
func (p *fillsPage) toSave() []fill {
	if len(p.favourites) > 0 {
		return p.favourites
	}
	return p.listed
}

// pin keeps the chosen blank at the selected word, or at one of its own values,
// and resamples the others, or frees it again.
func (p *fillsPage) pin(f *fill, v *infill.Marginal) tea.Cmd {
	m, s := p.m, p.m.run.snapshot
	switch {
	case f.Kept || s == nil || m.stale:
		m.fail("this fill is of another template: pick one of the present run")
		return nil
	case s.Several:
		m.fail("fills of several lengths cannot be pinned: give the blank one length, as in [MASK:2]")
		return nil
	}
	blank := s.Template.Blanks[m.blank]
	want := pin{f.TokenIDs[blank.First : blank.First+blank.Slots], f.Values[m.blank]}
	if v != nil {
		want = pin{v.TokenIDs, v.Text}
	}
	// Blanks of one name take the same fill, so they are pinned together.
	same := []int{m.blank}
	for i, b := range s.Template.Blanks {
		if i != m.blank && b.Name != "" && b.Name == blank.Name {
			same = append(same, i)
		}
	}
	old, pinned := m.pins[m.blank]
	switch {
	case pinned && (v == nil || slices.Equal(old.ids, want.ids)):
		for _, i := range same {
			delete(m.pins, i)
		}
		return m.start()
	case !pinned && len(m.pins)+len(same) >= len(s.Template.Blanks):
		m.fail("a slot has to stay free: nothing would be left to sample")
		return nil
	}
	for _, i := range same {
		m.pins[i] = want
	}
	p.chosen = ""
	return m.start()
}

func (p *fillsPage) hints(k keyMap) []key.Binding {
	return []key.Binding{as(k.Pick, "pick"), as(k.Write, "write"), p.m.pinHint(), as(k.Favourite, "★"), k.Filter,
		k.Sort, k.Save, k.Copy, as(k.Settings, "options"), p.m.runHint()}
}

func (p *fillsPage) limits() (notes []string) {
	m := p.m
	if p.onlyFavourites {
		notes = append(notes, m.amber.Render("★ only"))
	} else if len(p.favourites) > 0 {
		notes = append(notes, m.amber.Render(fmt.Sprintf("%d ★", len(p.favourites))))
	}
	if p.filter != "" {
		notes = append(notes, m.amber.Render("/"+harmless(cut(p.filter, 12))))
	}
	if p.sort != byLikelihood || m.width >= 84 {
		by := p.sort.String()
		if s := m.run.snapshot; p.sort == byLikelihood && s != nil && s.Several {
			by = "score"
		}
		notes = append(notes, m.faint.Render("by "+by))
	}
	return notes
}

// empty says why no fill is listed.
func (p *fillsPage) empty() string {
	m, a := p.m, &p.m.run
	switch {
	case m.modelFault != "":
		return "press o for another model, or q"
	case p.onlyFavourites && len(p.favourites) == 0:
		return "no favourites yet: f marks one; F lists all"
	case p.filter != "":
		return "no fill matches; esc drops the filter"
	case a.stream != nil && a.snapshot != nil && a.snapshot.Several:
		return "the fills come when every length was sampled"
	case m.opening || a.stream != nil:
		return "the chains are starting …"
	}
	return "the fills come here"
}

// render draws the list, beside it the selected fill where there is room, and else
// below it what the pipeline warns of.
func (p *fillsPage) render(columns, rows int) string {
	m, s := p.m, p.m.run.snapshot
	if m.wide() {
		details := min(max(columns*2/5, 46), 64)
		return beside(m.line.Render(" │ "), rows, p.table(columns-details-4, rows), p.detail(details, rows))
	}
	var said []string
	if !m.stale && rows >= 8 {
		said = warnings(s)
	}
	said = said[:min(len(said), 2)]
	text := p.table(columns-1, rows-len(said))
	for _, w := range said {
		text += "\n    " + m.amber.Render(cut(w, columns-6))
	}
	return text
}

// fillColumns are the widths of a table's columns.
type fillColumns struct{ text, bar, drawn int }

func (p *fillsPage) table(columns, rows int) string {
	m, s := p.m, p.m.run.snapshot
	w := fillColumns{bar: 6, drawn: 7}
	switch {
	case columns >= 100:
		w.bar, w.drawn = 18, 13
	case columns >= 76:
		w.bar, w.drawn = 10, 13
	}
	w.text = columns - 4 - 2 - w.bar - 1 - 7 - 2 - w.drawn
	drawn, likelihood, best := s.shares("drawn"), "log-likelihood", math.Inf(-1)
	if s != nil && s.WarmUp {
		drawn = "warm-up"
	}
	if s != nil && len(s.Fills) > 0 {
		best = s.Fills[0].rating()
	}
	if w.drawn < len(drawn) && s.Answer {
		drawn = "prob."
	}
	if w.bar+8 < len(likelihood)+1 {
		likelihood = "log-lik."
	}
	if len(p.listed) > 0 && p.listed[0].Score != nil {
		likelihood = "score"
	}
	lines := []string{m.faint.Render("    " + fit("fill", w.text) + "  " + right(likelihood, w.bar+8) + "  " +
		right(drawn, w.drawn))}
	if len(p.listed) == 0 {
		lines = append(lines, "", "    "+m.faint.Render(cut(p.empty(), columns-4)))
	}
	p.offset = scroll(p.offset, p.selected, rows-1, len(p.listed))
	end := min(len(p.listed), p.offset+rows-len(lines))
	// All rows are cut alike, so that they stay aligned.
	allowed := commonAllowance(p.listed[min(p.offset, end):end], w.text)
	for i := p.offset; i < end; i++ {
		m.zone(0, m.top+len(lines), columns, 1, func(x, _ int) tea.Cmd {
			if i < len(p.listed) {
				m.writing = false
				p.move(i - p.selected)
				if x >= 2 && x < 4 {
					p.favour(p.current())
				}
			}
			return nil
		})
		lines = append(lines, p.row(i, allowed, w, best))
	}
	return stack(columns, rows, lines...)
}

// commonAllowance is the allowance that suits all of the fills.
func commonAllowance(fills []fill, columns int) int {
	allowed := 1 << 20
	for i := range fills {
		allowed = min(allowed, allowance(parts(fills[i].Text, fills[i].Spans), columns))
	}
	return allowed
}

// within draws a fill in as many columns, or its words alone where the text around
// them has no room.
func (s *styles) within(f *fill, allowed, columns int, row lipgloss.Style, pins map[int]pin) string {
	list := shorten(parts(f.Text, f.Spans), allowed)
	if allowed < 3 {
		list = nil
		for blank, text := range f.Values {
			if blank > 0 {
				list = append(list, part{" … ", -1})
			}
			list = append(list, part{harmless(text), blank})
		}
	}
	return cut(s.marked(list, row, pins), columns)
}

func (p *fillsPage) row(i, allowed int, w fillColumns, best float64) string {
	m, f := p.m, &p.listed[i]
	look, marker, star := m.text, "  ", "  "
	if i == p.selected && !m.writing {
		look, marker = m.selected, "▸ "
	}
	if p.find(p.favourites, f.key()) >= 0 {
		star = "★ "
	}
	text := m.within(f, allowed, w.text, look, m.pins)
	u, share := "?", 0.0
	if rating := f.rating(); !math.IsNaN(rating) {
		u = fmt.Sprintf("%.2f", rating)
		share = 1 - (best-rating)/barNats
	}
	drawn := "kept"
	if !f.Kept {
		drawn = percent(f.Frequency, f.FrequencyStandardError, w.drawn > 8)
	}
	return m.accent.Inherit(look).Render(marker) + m.amber.Inherit(look).Render(star) + text + look.Render(
		spaces(w.text-width(text)+2)) +
		m.bar.Inherit(look).Bold(false).Render(bar(share, w.bar)) + look.Render(" "+right(u, 7)+"  ") +
		m.faint.Inherit(look).Bold(false).Render(right(drawn, w.drawn))
}

// percent writes a share with its standard error, where that has a digit to show.
func percent(share float64, standardError *float64, withError bool) string {
	if math.IsNaN(share) {
		return "–"
	}
	if withError && standardError != nil && *standardError >= 0.0005 {
		return fmt.Sprintf("%.1f ± %.1f %%", 100*share, 100**standardError)
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// detail tells of the selected fill and of the run, beside the list on wide
// terminals.
func (p *fillsPage) detail(columns, rows int) string {
	m, s, f := p.m, p.m.run.snapshot, p.current()
	var lines []string
	add := func(text string) { lines = append(lines, text) }
	told := func(text string) { add(m.faint.Render(ansi.Wrap(text, columns, ""))) }
	row := func(name, value string) { add(m.faint.Render(fit(name, 17)) + value) }
	if f != nil && !m.stale {
		add(ansi.Wrap(m.marked(parts(f.Text, f.Spans), m.text, m.pins), columns, "") + "\n")
		if f.Kept {
			told("a favourite of an earlier run")
		} else {
			if !math.IsNaN(f.LogLikelihood) {
				row("log-likelihood", fmt.Sprintf("%.2f nats", f.LogLikelihood))
			}
			if f.Score != nil {
				row("score", fmt.Sprintf("%.2f nats a word", *f.Score))
			}
			if !math.IsNaN(f.Frequency) {
				if s.Answer {
					row("probability", percent(f.Frequency, f.FrequencyStandardError, true))
				} else {
					row("drawn", percent(f.Frequency, f.FrequencyStandardError,
						true)+m.faint.Render(fmt.Sprintf("  %d times", f.Count)))
				}
			}
			if !s.Answer {
				row("last state of", fmt.Sprintf("%d of %d chains", f.FinalCount, s.Chains))
			}
			if f.NewWords > 0 {
				row("new words", fmt.Sprintf("%d of %d slots", f.NewWords, len(f.Values)))
			}
			if s.Several && !s.Answer {
				told("log-likelihoods of several lengths do not compare: the list is by score")
			}
			add("")
			if !s.Several {
				p.bySlot(f, columns, add)
			}
		}
		add("")
	}
	if s != nil {
		for _, line := range summary(s) {
			told(line)
		}
	}
	return stack(columns, rows, lines...)
}

// bySlot lists how often each slot of the fill held its word.
func (p *fillsPage) bySlot(f *fill, columns int, add func(string)) {
	m, s := p.m, p.m.run.snapshot
	wordWidth := 8
	for _, text := range f.Values {
		wordWidth = min(max(wordWidth, width(text)), max(columns/2-8, 8))
	}
	add(m.faint.Render(fit("slot", wordWidth+4) + right(s.shares("sampled"), 13) + right("model", 9)))
	for blank, text := range f.Values {
		v, model := infill.Marginal{StandardError: math.NaN()}, "…"
		if at := slices.IndexFunc(s.Values[blank], func(v infill.Marginal) bool { return v.Text == text }); at >= 0 {
			v = s.Values[blank][at]
		}
		if p, known := m.given.probability(s, blank, f); known {
			model = fmt.Sprintf("%.1f %%", 100*p)
		}
		add(m.faint.Render(fit(fmt.Sprint(blank+1), 4)) + m.styles.blankLook(blank).Render(
			fit(harmless(text), wordWidth)) +
			right(percent(v.Probability, &v.StandardError, true), 13) + right(model, 9))
	}
	add(m.faint.Render(ansi.Wrap("model: of the slot alone, the others as in this fill", columns, "")))
}

// summary tells of a run in a few lines.
func summary(s *snapshot) []string {
	o := s.Options
	lines := []string{fmt.Sprintf("%s, %d chains × %d steps, seed %d", o.Sampler, o.Chains, o.Steps, o.Seed)}
	if s.Answer {
		lines = []string{o.Sampler}
		if r := s.Result; r != nil {
			lines[0] = fmt.Sprintf("%s, %d model rows", r.Method, r.Stats.ModelRows)
			if r.Seed != nil {
				lines[0] += fmt.Sprintf(", seed %d", *r.Seed)
			}
			if held := r.Stats.ListedProbability; held != nil {
				lines = append(lines,
					fmt.Sprintf("together the %d likeliest fills have %.1f %%", s.Distinct, 100**held))
			}
		}
		return append(lines, warnings(s)...)
	}
	var numbers []string
	if size := s.stepSize(); size > 0 {
		numbers = append(numbers, fmt.Sprintf("step size %.3g", size))
	}
	if rate, e := s.acceptance(); !math.IsNaN(rate) {
		numbers = append(numbers, "acceptance "+withError(rate, e))
	}
	switch {
	case s.Several && s.Result != nil:
		numbers = append(numbers, fmt.Sprintf("the best %d fills", s.Distinct))
	case !s.Several:
		numbers = append(numbers, fmt.Sprintf("%d distinct fills in %d draws", s.Distinct, s.Rounds*s.Chains))
	}
	if len(numbers) > 0 {
		lines = append(lines, strings.Join(numbers, ", "))
	}
	return append(lines, warnings(s)...)
}

// warnings are what the pipeline says of a run. That fewer fills were found than
// the command would print is of no interest here, where all are listed.
func warnings(s *snapshot) (list []string) {
	if s == nil || s.Result == nil {
		return nil
	}
	for _, w := range s.Result.Warnings {
		if s.Distinct >= s.Options.Top || !strings.Contains(w, "were asked for") {
			list = append(list, harmless(w))
		}
	}
	return list
}

// withError writes a mean with its standard error, "–" for none.
func withError(mean, standardError float64) string {
	text := number("%.2f", mean)
	if !math.IsNaN(mean) && !math.IsNaN(standardError) {
		text += fmt.Sprintf(" ± %.2f", standardError)
	}
	return text
}
