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
	figures := figuresOf(side.snapshot)
	if rows < 16 {
		figures = figures[:min(max(rows-6, 2), len(figures))]
	}
	nameWidth := min(22, columns/2)
	for _, f := range figures {
		lines = append(lines, "  "+m.faint.Render(fit(f[0], nameWidth))+fit(f[1], columns-2-nameWidth))
	}
	if rows >= 20 {
		lines = append(lines, "")
	}
	lines = append(lines, m.faint.Render(between("  fill", right("log-lik.", 9)+right("drawn", 8), columns)))
	if s := side.snapshot; s != nil {
		textWidth := columns - 2 - 9 - 8
		fills := s.Fills[min(p.offset, len(s.Fills)):]
		fills = fills[:min(len(fills), max(rows-len(lines), 0))]
		allowed := commonAllowance(fills, textWidth)
		for n := range fills {
			f := &fills[n]
			mark := "  "
			if shared[f.key()] > 1 {
				mark = m.good.Render("= ")
			}
			lines = append(lines, mark+fit(m.within(f, allowed, textWidth, m.text, m.pins), textWidth)+
				right(number("%.2f", f.rating()), 9)+m.faint.Render(right(percent(f.Frequency, nil, false), 8)))
		}
	} else if side.fault != "" {
		lines = append(lines, m.styles.fault.Render(cut("  "+side.fault, columns)))
	}
	return stack(columns, rows, lines...)
}

// figuresOf are what two runs are compared by, the most telling first.
func figuresOf(s *snapshot) [][2]string {
	if s == nil {
		return [][2]string{{"", ""}}
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
	return [][2]string{
		{"mean log-likelihood", withError(s.meanLogLikelihood())},
		{"distinct fills", fmt.Sprintf("%d of %d draws", s.Distinct, s.Rounds*s.Chains)},
		{"R-hat, ESS", number("%.3f", s.RHat) + ", " + number("%.0f", s.ESS)},
		{"acceptance", withError(s.acceptance())},
		{"best log-likelihood", number("%.2f", best)},
		{"step size", number("%.3g", stepSize)},
		{"ESS a second", number("%.0f", s.ESS/seconds)},
		{"seconds, model rows", fmt.Sprintf("%.2f, %s", seconds, rows)},
	}
}

// other is a sampler to compare with: the first that is not the given one.
func other(sampler string) string {
	names := infill.Samplers()
	return names[max(slices.IndexFunc(names, func(name string) bool { return name != sampler }), 0)]
}
