package tui

import (
	"fmt"
	"math"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// chainsPage shows how each chain moves.
type chainsPage struct {
	m      *model
	offset int
}

var _ page = (*chainsPage)(nil)

func (p *chainsPage) move(by int) {
	if s := p.m.run.snapshot; s != nil {
		p.offset = min(max(p.offset+by, 0), s.Chains-1)
	}
}

func (p *chainsPage) turn(by int)                 { p.m.turnBlank(by) }
func (p *chainsPage) key(tea.KeyPressMsg) tea.Cmd { return nil }
func (p *chainsPage) limits() []string            { return nil }

func (p *chainsPage) hints(k keyMap) []key.Binding {
	return []key.Binding{as(k.Down, "more chains"), as(k.Settings, "options"), p.m.runHint(), as(k.Write, "write")}
}

// head is what is said above the chains.
func (p *chainsPage) head(s *snapshot, columns, rows int) []string {
	m := p.m
	var lines []string
	figure := func(name, value string) string { return m.faint.Render(name+" ") + m.strong.Render(value) }
	of := fmt.Sprintf(" of %d draws", s.Rounds*s.Chains)
	if columns < 76 {
		of = strings.TrimSuffix(of, " draws")
	}
	figures := []string{figure("R-hat", number("%.3f", s.RHat)),
		figure("ESS", number("%.0f", s.ESS)) + m.faint.Render(of)}
	if rate, e := s.acceptance(); !math.IsNaN(rate) {
		if columns < 76 {
			e = math.NaN()
		}
		figures = append(figures, figure("acceptance", withError(rate, e)))
	}
	if size := s.stepSize(); size > 0 {
		figures = append(figures, figure("α", fmt.Sprintf("%.3g", size)))
	}
	lines = append(lines, cut(strings.Join(figures, m.faint.Render(" · ")), columns))
	if rows >= 9 && len(s.StepSizes) > 1 {
		values := make([]float32, len(s.StepSizes))
		low, high := math.Inf(1), math.Inf(-1)
		for i, a := range s.StepSizes {
			values[i] = float32(math.Log(a))
			low, high = min(low, float64(values[i])), max(high, float64(values[i]))
		}
		text := sparkline(values, min(max(columns-44, 10), 60), low, high)
		told := fmt.Sprintf(" from %.3g to %.3g", s.StepSizes[0], s.stepSize())
		switch {
		case low == high: // not adapted
			text, told = "", fmt.Sprintf("%.3g throughout", s.StepSizes[0])
		case s.WarmUp:
			told += ", still adapting"
		default:
			told += ", fixed since"
		}
		lines = append(lines,
			cut(m.faint.Render("step size α ")+p.inTwo(s, text, len(values))+m.faint.Render(told), columns))
	}
	room := 1
	if rows >= 12 {
		room = 3
	}
	told := strings.Split(ansi.Wrap(strings.Join(caveats(s), " "), columns, ""), "\n")
	if len(told) > room {
		told = told[:room]
		told[room-1] = ansi.Truncate(told[room-1], columns-1, "") + "…"
	}
	for _, line := range told {
		lines = append(lines, m.faint.Render(line))
	}
	return lines
}

// caveats say what the figures can and cannot tell.
func caveats(s *snapshot) []string {
	var list []string
	switch {
	case s.WarmUp:
		list = append(list, "R-hat and ESS begin after the warm-up.")
	case s.RHat >= 1000:
		list = append(list,
			"No chain moves, and they stand at different fills: nothing can be said of the distribution.")
	case math.IsNaN(s.RHat) && s.Result == nil:
		list = append(list,
			"The log-likelihoods of this sampler are worked out when it is done, or more draws are needed.")
	case math.IsNaN(s.RHat):
		list = append(list, "Too few draws, or all of the same fill, for R-hat and ESS.")
	case s.RHat > 1.01:
		list = append(list, fmt.Sprintf("R-hat is above 1.01: the halves of the chains disagree, so run longer (now "+
			"%d steps).", s.Options.Steps))
	default:
		list = append(list, "The halves of the chains agree.")
	}
	if !math.IsNaN(s.ESS) {
		list = append(list, "Both look at the log-likelihood alone: chains caught in one mode look the same as "+
			"chains that have seen all.")
		if s.Chains == 1 {
			list = append(list, "A single chain cannot tell.")
		}
	}
	return list
}

// number writes a figure, "–" if it is not known.
func number(format string, x float64) string {
	if math.IsNaN(x) {
		return "–"
	}
	if math.IsInf(x, 1) {
		return "∞"
	}
	return fmt.Sprintf(format, x)
}

// inTwo colours a sparkline of values: the warm-up and what follows.
func (p *chainsPage) inTwo(s *snapshot, text string, values int) string {
	runes := []rune(text)
	if len(runes) == 0 {
		return ""
	}
	at := len(runes)
	switch {
	case s.WarmUp:
	case s.WarmUpSteps == 0:
		at = 0
	default:
		at = min((s.WarmUpSteps+1)*len(runes)/max(values, 1), len(runes))
	}
	return p.m.faint.Render(string(runes[:at])) + p.m.done.Render(string(runes[at:]))
}

func (p *chainsPage) render(columns, rows int) string {
	m, s := p.m, p.m.run.snapshot
	switch {
	case s == nil:
		return stack(columns, rows, m.faint.Render("  no chains yet: write a template"))
	case s.Answer:
		return m.note("there are no chains where the sampler is auto: o names another", columns, rows)
	case s.Several:
		return m.note("chains are shown where every blank has one length, as in [MASK:2]", columns, rows)
	}
	columns--
	var lines []string
	for _, line := range p.head(s, columns-2, rows) {
		lines = append(lines, "  "+line)
	}
	if rows >= 18 {
		lines = append(lines, "")
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, history := range s.LogLikelihoods {
		for _, u := range history {
			if u == u {
				low, high = min(low, float64(u)), max(high, float64(u))
			}
		}
	}
	low = max(low, high-barNats)
	const uWidth, rateWidth = 8, 6
	spark, accept := 14, 8
	switch {
	case columns >= 120:
		spark, accept = 44, 18
	case columns >= 84:
		spark, accept = 26, 12
	}
	moveWidth := columns - 5 - spark - uWidth - 2 - accept - rateWidth - 2
	lines = append(lines,
		m.faint.Render(right("chain", 5)+" "+fit("log-likelihood", spark+uWidth+1)+" "+
			fit("accepted", accept+rateWidth+1)+fit("last move", moveWidth)))
	p.offset = min(p.offset, max(s.Chains-(rows-len(lines)), 0))
	for chain := p.offset; chain < s.Chains && len(lines) < rows; chain++ {
		history, accepted := s.LogLikelihoods[chain], s.Accepted[chain]
		steps := accepted[min(1, len(accepted)):] // without the start
		rate := mean(steps)
		lines = append(lines, m.faint.Render(right(fmt.Sprint(chain+1), 4))+"  "+
			fit(p.inTwo(s, sparkline(history, spark, low, high), len(history)),
				spark)+right(number("%.2f", float64(history[len(history)-1])), uWidth)+"  "+
			fit(p.inTwo(s, sparkline(steps, accept, 0, 1), len(accepted)), accept)+
			m.faint.Render(right(number("%.0f %%", 100*rate), rateWidth))+"  "+
			cut(p.lastMove(s, s.Moves[chain]), moveWidth))
	}
	return stack(columns, rows, lines...)
}

// mean is that of values, NaN of none.
func mean(values []float32) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	mean := 0.0
	for _, x := range values {
		mean += float64(x) / float64(len(values))
	}
	return mean
}

// lastMove says what a chain changed last, and how long ago.
func (p *chainsPage) lastMove(s *snapshot, last move) string {
	m := p.m
	if last.Step == 0 {
		return m.faint.Render("has not moved")
	}
	text := ""
	for i, blank := range last.Blanks {
		if i > 0 {
			text += m.faint.Render(", ")
		}
		text += m.faint.Render(harmless(last.From[i])+" → ") + m.styles.blankLook(blank).Render(harmless(last.To[i]))
	}
	switch ago := s.Step - last.Step; ago {
	case 0:
	case 1:
		text += m.faint.Render("  1 step ago")
	default:
		text += m.faint.Render(fmt.Sprintf("  %d steps ago", ago))
	}
	return text
}
