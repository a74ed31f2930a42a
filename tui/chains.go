package tui

import (
	"fmt"
	"math"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// chainTable shows how each chain moves.
type chainTable struct {
	styles   *styles
	snapshot *Snapshot
	offset   int
	rows     int
}

// head is what is said above the chains.
func (t *chainTable) head(columns int) []string {
	s, p := t.styles, t.snapshot
	var lines []string
	figure := func(name, value string) string { return s.faint.Render(name+" ") + s.strong.Render(value) }
	figures := []string{figure("R-hat", number("%.3f", p.RHat)),
		figure("ESS", number("%.0f", p.ESS)) + s.faint.Render(fmt.Sprintf(" of %d draws", p.Rounds*p.Chains))}
	if rate, e := p.acceptance(); !math.IsNaN(rate) {
		if columns < 76 {
			e = math.NaN()
		}
		figures = append(figures, figure("acceptance", withError("%.2f", rate, e)))
	}
	if size := lastStepSize(p); size > 0 {
		figures = append(figures, figure("α", fmt.Sprintf("%.3g", size)))
	}
	lines = append(lines, ansi.Truncate(strings.Join(figures, s.faint.Render(" · ")), columns, "…"))
	if t.rows >= 9 && len(p.StepSizes) > 1 {
		values := make([]float32, len(p.StepSizes))
		low, high := math.Inf(1), math.Inf(-1)
		for i, a := range p.StepSizes {
			values[i] = float32(math.Log(a))
			low, high = min(low, float64(values[i])), max(high, float64(values[i]))
		}
		cells := min(max(columns-44, 10), 60)
		text := sparkline(values, cells, low, high)
		told := fmt.Sprintf(" from %.3g to %.3g", p.StepSizes[0], lastStepSize(p))
		switch {
		case low == high: // not adapted
			text, told = "", fmt.Sprintf("%.3g throughout", p.StepSizes[0])
		case p.WarmUp:
			told += ", still adapting"
		default:
			told += ", fixed since"
		}
		lines = append(lines, ansi.Truncate(s.faint.Render("step size α ")+t.inTwo(text, len(values))+s.faint.Render(told), columns, "…"))
	}
	caveats := t.caveats()
	room := 1
	if t.rows >= 12 {
		room = 3
	}
	wrapped := strings.Split(ansi.Wrap(strings.Join(caveats, " "), columns, ""), "\n")
	if len(wrapped) > room {
		wrapped = wrapped[:room]
		wrapped[room-1] = ansi.Truncate(wrapped[room-1], columns-1, "") + "…"
	}
	for _, line := range wrapped {
		lines = append(lines, s.faint.Render(line))
	}
	return lines
}

// caveats say what the figures can and cannot tell.
func (t *chainTable) caveats() []string {
	p := t.snapshot
	var list []string
	switch {
	case p.WarmUp:
		list = append(list, "R-hat and ESS begin after the warm-up.")
	case math.IsInf(p.RHat, 1):
		list = append(list, "No chain moves, and they stand at different fills: nothing can be said of the distribution.")
	case math.IsNaN(p.RHat) && p.Result == nil:
		list = append(list, "The log-likelihoods of this sampler are worked out when it is done, or more draws are needed.")
	case math.IsNaN(p.RHat):
		list = append(list, "Too few draws, or all of the same fill, for R-hat and ESS.")
	case p.RHat > 1.01:
		list = append(list, fmt.Sprintf("R-hat is above 1.01: the halves of the chains disagree, so run longer (now %d steps).", p.Options.Steps))
	default:
		list = append(list, "The halves of the chains agree.")
	}
	if !math.IsNaN(p.ESS) {
		list = append(list, "Both look at the log-likelihood alone: chains caught in one mode look the same as chains that have seen all.")
		if p.Chains == 1 {
			list = append(list, "A single chain cannot tell.")
		}
	}
	return list
}

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
func (t *chainTable) inTwo(text string, values int) string {
	s, runes := t.styles, []rune(text)
	if len(runes) == 0 {
		return ""
	}
	cut := len(runes)
	if !t.snapshot.WarmUp {
		cut = min((t.snapshot.WarmUpSteps+1)*len(runes)/max(values, 1), len(runes))
		if t.snapshot.WarmUpSteps == 0 {
			cut = 0
		}
	}
	return s.faint.Render(string(runes[:cut])) + s.done.Render(string(runes[cut:]))
}

// Render draws the chains.
func (t *chainTable) Render(columns int) string {
	s, p := t.styles, t.snapshot
	if p == nil {
		return stack(columns, t.rows, s.faint.Render("  no chains yet: write a template"))
	}
	head := t.head(columns - 2)
	for i := range head {
		head[i] = "  " + head[i]
	}
	if t.rows >= 18 {
		head = append(head, "")
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, history := range p.LogLikelihoods {
		for _, u := range history {
			if u == u {
				low, high = min(low, float64(u)), max(high, float64(u))
			}
		}
	}
	low = max(low, high-barNats)
	const uWidth, rateWidth = 7, 6
	spark, accept := 14, 8
	switch {
	case columns >= 120:
		spark, accept = 44, 18
	case columns >= 84:
		spark, accept = 26, 12
	}
	moveWidth := columns - 5 - spark - uWidth - 2 - accept - rateWidth - 2
	lines := append(head, s.title.Render(right("chain", 5)+" "+fit("log-likelihood", spark+uWidth+1)+" "+fit("accepted", accept+rateWidth+1)+fit("last move", moveWidth)))
	t.offset = min(t.offset, max(p.Chains-(t.rows-len(lines)), 0))
	for chain := t.offset; chain < p.Chains && len(lines) < t.rows; chain++ {
		history, accepted := p.LogLikelihoods[chain], p.Accepted[chain]
		u := float64(history[len(history)-1])
		rate := math.NaN()
		if n := len(accepted); n > 1 {
			rate = 0
			for _, a := range accepted[1:] {
				rate += float64(a) / float64(n-1)
			}
		}
		move := s.faint.Render("has not moved")
		if m := p.Moves[chain]; m.Step > 0 {
			move = ""
			for i, blank := range m.Blanks {
				if i > 0 {
					move += s.faint.Render(", ")
				}
				move += s.faint.Render(harmless(m.From[i])+" → ") + s.slot(blank).Render(harmless(m.To[i]))
			}
			if m.Step < p.Step {
				steps := "steps"
				if p.Step-m.Step == 1 {
					steps = "step"
				}
				move += s.faint.Render(fmt.Sprintf("  %d %s ago", p.Step-m.Step, steps))
			}
		}
		if moveWidth < width(move) {
			move = ansi.Truncate(move, moveWidth, "…")
		}
		lines = append(lines, s.faint.Render(right(fmt.Sprint(chain+1), 4))+"  "+
			fit(t.inTwo(sparkline(history, spark, low, high), len(history)), spark)+right(number("%.2f", u), uWidth)+"  "+
			fit(t.inTwo(sparkline(accepted[min(1, len(accepted)):], accept, 0, 1), len(accepted)), accept)+
			s.faint.Render(right(number("%.0f %%", 100*rate), rateWidth))+"  "+move)
	}
	return stack(columns, t.rows, strings.Join(lines, "\n"))
}
