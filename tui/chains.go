package tui

import (
	"fmt"
	"math"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"infill/infill"
	"infill/internal/phrase"
	"infill/samplers"
)

// shownNats is how far below the best log-likelihood a curve's lowest block is,
// so that a chain with a distant start does not flatten the other curves.
const shownNats = 12

type chainsPage struct {
	m      *model
	offset int
	more   bool // whether there are more chains than rows for them
}

var _ page = (*chainsPage)(nil)

func (p *chainsPage) move(by int) {
	s := p.m.run.shown
	if s != nil {
		p.offset = max(min(p.offset+by, len(s.moves)-1), 0)
	}
}

func (p *chainsPage) leaf(by int)          { p.move(by) }
func (p *chainsPage) turn(int)             {}
func (p *chainsPage) key(k string) tea.Cmd { return p.m.idle(k, unknownKey) }

func (p *chainsPage) hints() []hint {
	list := []hint{{"o", "options"}, p.m.runHint(), {"i", "write"}}
	if p.more {
		list = slices.Insert(list, 0, hint{"↓", "more chains"})
	}
	return list
}

func (p *chainsPage) head(s *snapshot, columns int) []string {
	m := p.m
	c := s.stats()
	figure := func(name, value string) string { return m.faint.Render(name+" ") + m.strong.Render(value) }
	var figures []string
	if !s.warmUp {
		figures = append(figures, figure("R-hat", number("%.3f", c.SplitRHat)),
			figure("ESS", number("%.0f", c.EffectiveDraws))+m.faint.Render(fmt.Sprintf(" of %d", s.result.Stats.Draws)))
	}
	if c.AcceptanceRate != nil {
		rate := fmt.Sprintf("%.2f", *c.AcceptanceRate)
		if c.AcceptanceStandardError != nil && columns >= 76 {
			rate += fmt.Sprintf(" ± %.2f", *c.AcceptanceStandardError)
		}
		figures = append(figures, figure("acceptance", rate))
	}
	if s.stepSize > 0 {
		figures = append(figures, figure("α", fmt.Sprintf("%.3g", s.stepSize)))
	}
	lines := []string{cut(strings.Join(figures, m.faint.Render(" · ")), columns)}
	for line := range strings.SplitSeq(ansi.Wrap(verdict(s), columns, ""), "\n") {
		lines = append(lines, m.faint.Render(line))
	}
	return lines
}

// verdict says what R-hat and the other figures show, and what they cannot show.
func verdict(s *snapshot) string {
	c := s.stats()
	r := s.stats().SplitRHat
	const blind = " Both look at U alone: chains caught in one mode look the same as chains that have seen all."
	switch {
	case s.warmUp:
		return "R-hat and ESS begin after the warm-up."
	case r == nil && !s.over:
		return "U of this sampler is worked out when it is done, or more draws are needed."
	case r == nil:
		return "Too few draws, or all of the same fill, for R-hat and ESS."
	case *r >= infill.CappedRHat:
		return "No chain moves, and they stand at different fills: nothing can be said of the distribution."
	case c.Chains == 1:
		return "A single chain cannot tell whether others would agree."
	case *r > samplers.LargestRHat:
		return fmt.Sprintf("R-hat is above %g: the halves of the chains disagree, so run longer (now %d steps).",
			samplers.LargestRHat, c.Steps) + blind
	}
	return "The halves of the chains agree." + blind
}

// number formats a figure, or returns "–" if x is nil.
func number(format string, x *float64) string {
	if x == nil {
		return "–"
	}
	return fmt.Sprintf(format, *x)
}

// inTwo colours a sparkline: the warm-up in one colour, later steps in another.
func (p *chainsPage) inTwo(s *snapshot, text string, values int) string {
	runes := []rune(text)
	at := len(runes)
	switch {
	case s.warmUp:
	case s.warm == 0:
		at = 0
	default:
		at = min((s.warm+1)*len(runes)/max(values, 1), len(runes))
	}
	return p.m.faint.Render(string(runes[:at])) + p.m.done.Render(string(runes[at:]))
}

func (p *chainsPage) render(columns, rows int) string {
	m := p.m
	s := m.run.shown
	if s.stats() == nil {
		return m.note("no chains: a search has none; o names a sampler, such as dmala", columns, rows)
	}
	columns--
	var lines []string
	for _, line := range p.head(s, columns-2) {
		lines = append(lines, "  "+line)
	}
	if rows >= 18 {
		lines = append(lines, "")
	}
	low := math.Inf(1)
	high := math.Inf(-1)
	for _, history := range s.logLikelihoods {
		for _, u := range history {
			if u == u {
				low = min(low, float64(u))
				high = max(high, float64(u))
			}
		}
	}
	low = max(low, high-shownNats)
	const uWidth, rateWidth = 8, 6
	spark := 14
	accept := 8
	switch {
	case columns >= 120:
		spark = 44
		accept = 18
	case columns >= 84:
		spark = 26
		accept = 12
	}
	moveWidth := columns - 5 - spark - uWidth - 2 - accept - rateWidth - 2
	title := "U"
	if low < high {
		title = fmt.Sprintf("U, %.1f to %.1f", low, high)
	}
	lines = append(lines, m.faint.Render(right("chain", 5)+" "+fit(title, spark+uWidth+1)+" "+
		fit("accepted", accept+rateWidth+1)+fit("last move", moveWidth)))
	p.more = len(s.moves) > rows-len(lines)
	p.offset = max(min(p.offset, len(s.moves)-(rows-len(lines))), 0)
	for chain := p.offset; chain < len(s.moves) && len(lines) < rows; chain++ {
		history := s.logLikelihoods[chain]
		accepted := s.accepted[chain]
		steps := accepted[min(1, len(accepted)):] // leave out the start
		rate := "–"
		mean := mean(steps)
		if mean == mean {
			rate = fmt.Sprintf("%.0f %%", 100*mean)
		}
		lines = append(lines, m.faint.Render(right(fmt.Sprint(chain+1), 4))+"  "+
			fit(p.inTwo(s, sparkline(history, spark, low, high), len(history)), spark)+
			right(decimal(float64(history[len(history)-1])), uWidth)+"  "+
			fit(p.inTwo(s, sparkline(steps, accept, 0, 1), len(accepted)), accept)+
			m.faint.Render(right(rate, rateWidth))+"  "+p.lastMove(s, s.moves[chain], moveWidth))
	}
	return stack(columns, rows, lines...)
}

func mean(values []float32) float64 {
	sum := 0.0
	for _, x := range values {
		sum += float64(x)
	}
	return sum / float64(len(values))
}

// lastMove describes the last change of a chain, and how long ago it was.
func (p *chainsPage) lastMove(s *snapshot, last move, columns int) string {
	m := p.m
	if last.step == 0 {
		return m.faint.Render("has not moved")
	}
	ago := ""
	if n := s.step - last.step; n > 0 {
		ago = m.faint.Render("  " + phrase.Counted(n, "step") + " ago")
	}
	text := ""
	for i, blank := range last.blanks {
		if i > 0 {
			text += m.faint.Render(", ")
		}
		text += m.faint.Render(harmless(last.from[i])+" → ") + m.styles.blankLook(blank).Render(harmless(last.to[i]))
	}
	if width(text)+width(ago) > columns && len(last.blanks) > 1 {
		text = m.faint.Render(phrase.Counted(len(last.blanks), "blank"))
	}
	return cut(text+ago, columns)
}
