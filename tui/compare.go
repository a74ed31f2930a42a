package tui

import (
	"fmt"
	"math"
	"slices"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"infill/infill"
)

// comparePage shows two samplers on one template.
type comparePage struct {
	m      *model
	chosen int // the side
	offset int
}

var _ page = (*comparePage)(nil)

func (p *comparePage) move(by int) {
	most := 0
	for _, side := range p.m.sides {
		if side.snapshot != nil {
			most = max(most, len(side.snapshot.Fills)-1)
		}
	}
	p.offset = min(max(p.offset+by, 0), most)
}

func (p *comparePage) turn(by int)                 { p.chosen = min(max(p.chosen+by, 0), 1) }
func (p *comparePage) key(tea.KeyPressMsg) tea.Cmd { return nil }
func (p *comparePage) limits() []string            { return nil }

func (p *comparePage) hints(k keyMap) []key.Binding {
	return []key.Binding{as(k.Right, "side"), as(k.Settings, "its options"), p.m.runHint(), as(k.Write, "write")}
}

func (p *comparePage) render(columns, rows int) string {
	half := (columns - 3) / 2
	shared := map[string]int{}
	for i, side := range p.m.sides {
		p.m.zone(i*(columns+1)/2, p.m.top, columns/2, rows, func(int, int) tea.Cmd { p.chosen = i; return nil })
		if side.snapshot != nil {
			for _, f := range side.snapshot.Fills {
				shared[f.key()]++
			}
		}
	}
	return beside(p.m.line.Render(" │ "), rows, p.side(0, half, rows, shared), p.side(1, columns-3-half, rows, shared))
}

func (p *comparePage) side(i, columns, rows int, shared map[string]int) string {
	m, side := p.m, &p.m.sides[i]
	name := fmt.Sprintf("%c  %s", 'A'+i, side.options.Sampler)
	head := "  " + m.strong.Render(name)
	if i == p.chosen {
		head = m.accent.Render("▸ ") + m.active.Render(name)
	}
	state := m.faint.Render(side.state())
	if width(head)+2+width(state) >= columns {
		state = ""
	}
	lines := []string{between(head, state+" ", columns)}
	figures, named := figuresOf(side.snapshot), 0
	if rows < 16 {
		figures = figures[:min(max(rows-6, 2), len(figures))]
	}
	// The numbers keep their room: names give way, to shorter ones and then to their beginning.
	numbers, called := 0, func(f figure) string { return f.name }
	for _, f := range figures {
		named, numbers = max(named, width(f.name)), max(numbers, width(f.value))
	}
	if 2+named+1+numbers > columns {
		called, named = func(f figure) string { return f.short }, 0
		for _, f := range figures {
			named = max(named, width(f.short))
		}
		named = min(named, max(columns-3-numbers, 4))
	}
	for _, f := range figures {
		lines = append(lines, "  "+m.faint.Render(fit(called(f), named))+" "+fit(f.value, columns-3-named))
	}
	if rows >= 20 {
		lines = append(lines, "")
	}
	rating, share, shareWidth := "log-lik.", "drawn", 8
	switch s := side.snapshot; {
	case s == nil:
	case s.Answer:
		share = "prob."
	case s.Several:
		share, shareWidth = "", 0 // draws are of one length each, and are not shares of all
	}
	if s := side.snapshot; s != nil && s.Several {
		rating = "score"
	}
	lines = append(lines, m.faint.Render(between("  fill", right(rating, 9)+right(share, shareWidth), columns)))
	if s := side.snapshot; s != nil {
		textWidth := columns - 2 - 9 - shareWidth
		fills := s.Fills[min(p.offset, len(s.Fills)):]
		fills = fills[:min(len(fills), max(rows-len(lines), 0))]
		allowed := commonAllowance(fills, textWidth)
		for n := range fills {
			f := &fills[n]
			mark := "  "
			if shared[f.key()] > 1 {
				mark = m.good.Render("= ")
			}
			drawn := ""
			if shareWidth > 0 {
				drawn = right(percent(f.Frequency, nil, false), shareWidth)
			}
			lines = append(lines, mark+fit(m.within(f, allowed, textWidth, m.text, m.pins), textWidth)+
				right(number("%.2f", f.rating()), 9)+m.faint.Render(drawn))
		}
	} else if side.fault != "" {
		lines = append(lines, m.styles.fault.Render(cut("  "+side.fault, columns)))
	}
	return stack(columns, rows, lines...)
}

// figure is a number that runs are compared by; short is its name where there is
// little room.
type figure struct{ name, short, value string }

// figuresOf are what two runs are compared by, the most telling first.
func figuresOf(s *snapshot) []figure {
	if s == nil {
		return []figure{{}}
	}
	best, stepSize := math.NaN(), math.NaN()
	if len(s.Fills) > 0 {
		best = s.Fills[0].rating()
	}
	if size := s.stepSize(); size > 0 {
		stepSize = size
	}
	seconds, rows := s.Elapsed.Seconds(), "…"
	if s.Result != nil {
		seconds, rows = s.Result.Stats.Seconds, fmt.Sprint(s.Result.Stats.ModelRows)
	}
	cost := figure{"seconds, model rows", "seconds, rows", fmt.Sprintf("%.2f, %s", seconds, rows)}
	if s.Several {
		return append(ofLengths(s), figure{"best score", "best score", number("%.2f", best)}, cost)
	}
	if s.Answer {
		method := "…"
		if s.Result != nil {
			method = s.Result.Method
		}
		return []figure{{"method", "method", method}, {"fills known", "fills known", fmt.Sprint(s.Distinct)},
			{"best log-likelihood", "best log-lik.", number("%.2f", best)}, cost}
	}
	return []figure{
		{"mean log-likelihood", "mean log-lik.", withError(s.meanLogLikelihood())},
		{"distinct of all draws", "distinct of", fmt.Sprintf("%d of %d", s.Distinct, s.Rounds*s.Chains)},
		{"R-hat, ESS", "R-hat, ESS", number("%.3f", s.RHat) + ", " + number("%.0f", s.ESS)},
		{"acceptance", "acceptance", withError(s.acceptance())},
		{"best log-likelihood", "best log-lik.", number("%.2f", best)},
		{"step size", "step size", number("%.3g", stepSize)},
		{"ESS a second", "ESS a second", number("%.0f", s.ESS/seconds)},
		cost,
	}
}

// ofLengths are the figures of a run whose blanks have several lengths. Each length
// has chains of its own, whose draws add up; means over lengths would mean nothing.
func ofLengths(s *snapshot) []figure {
	if s.Result == nil {
		return []figure{{"fills listed", "fills listed", "…"}}
	}
	draws, distinct, lowest, highest := 0, 0, math.Inf(1), math.Inf(-1)
	for _, l := range s.Result.Stats.Lengths {
		draws += l.Draws
		distinct += l.DistinctFills
		if l.AcceptanceRate != nil {
			lowest, highest = min(lowest, *l.AcceptanceRate), max(highest, *l.AcceptanceRate)
		}
	}
	acceptance := "–"
	if lowest <= highest {
		acceptance = fmt.Sprintf("%.2f to %.2f", lowest, highest)
	}
	list := []figure{
		{"lengths", "lengths", fmt.Sprint(len(s.Result.Stats.Lengths))},
		{"fills listed", "fills listed", fmt.Sprint(s.Distinct)},
	}
	if draws > 0 {
		list = append(list, figure{"distinct of all draws", "distinct of", fmt.Sprintf("%d of %d", distinct, draws)},
			figure{"acceptance by length", "acceptance", acceptance})
	}
	return list
}

// other is a sampler to compare with: the first that is not the given one.
func other(sampler string) string {
	names := infill.Samplers()
	return names[max(slices.IndexFunc(names, func(name string) bool { return name != sampler }), 0)]
}
