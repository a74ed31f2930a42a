package tui

import (
	"fmt"
	"math"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"infill/infill"
	"infill/samplers"
)

// comparison shows two samplers on one template.
type comparison struct {
	styles *styles
	sides  [2]*side
	chosen int
	offset int
	rows   int
	pins   map[int]pin
}

// Render draws both.
func (c *comparison) Render(columns int) string {
	half := (columns - 3) / 2
	shared := map[string]int{}
	for _, s := range c.sides {
		if s.snapshot != nil {
			for _, f := range s.snapshot.Fills {
				shared[f.key()]++
			}
		}
	}
	left := c.side(0, half, shared)
	rightSide := c.side(1, columns-3-half, shared)
	return beside(c.styles.rule.Render(" │ "), c.rows, left, rightSide)
}

func (c *comparison) side(i, columns int, shared map[string]int) string {
	s, side := c.styles, c.sides[i]
	name := fmt.Sprintf("%c  %s", 'A'+i, side.options.Sampler)
	head := "  " + s.strong.Render(name)
	if i == c.chosen {
		head = s.marker.Render("▸ ") + s.activeTab.Render(name)
	}
	state := s.faint.Render(side.state())
	if width(head)+2+width(state) >= columns {
		state = ""
	}
	lines := []string{between(head, state+" ", columns)}
	figures := c.figures(side)
	shown := len(figures)
	if c.rows < 16 {
		shown = min(max(c.rows-6, 2), shown)
	}
	nameWidth := min(22, columns/2)
	for _, f := range figures[:shown] {
		lines = append(lines, "  "+s.faint.Render(fit(f[0], nameWidth))+fit(f[1], columns-2-nameWidth))
	}
	if c.rows >= 20 {
		lines = append(lines, "")
	}
	lines = append(lines, s.title.Render(between("  fill", right("log-lik.", 9)+right("drawn", 8), columns)))
	if p := side.snapshot; p != nil {
		textWidth := columns - 2 - 9 - 8
		end := min(len(p.Fills), c.offset+max(c.rows-len(lines), 0))
		fills := p.Fills[min(c.offset, end):end]
		allowed := commonAllowance(fills, textWidth)
		for n := range fills {
			f := &fills[n]
			mark := "  "
			if shared[f.key()] > 1 {
				mark = s.good.Render("= ")
			}
			list := shorten(parts(f.Text, f.Spans), allowed)
			if allowed < 3 {
				list = fillsAlone(f)
			}
			text := s.marked(list, s.text, c.pins)
			text = ansi.Truncate(text, textWidth, "…")
			lines = append(lines, mark+fit(text, textWidth)+right(number("%.2f", f.rating()), 9)+s.faint.Render(right(percent(f.Frequency, nil, false), 8)))
		}
	} else if side.fault != "" {
		lines = append(lines, s.fault.Render(ansi.Truncate("  "+side.fault, columns, "…")))
	}
	return stack(columns, c.rows, strings.Join(lines, "\n"))
}

// figures are what the two are compared by, the most telling first.
func (c *comparison) figures(side *side) [][2]string {
	p := side.snapshot
	if p == nil {
		return [][2]string{{"", ""}}
	}
	mean, e := p.meanLogLikelihood()
	rate, rateError := p.acceptance()
	best := math.NaN()
	if len(p.Fills) > 0 {
		best = p.Fills[0].rating()
	}
	figures := [][2]string{
		{"mean log-likelihood", number2(mean, e)},
		{"distinct fills", fmt.Sprintf("%d of %d draws", p.Distinct, p.Rounds*p.Chains)},
		{"R-hat, ESS", number("%.3f", p.RHat) + ", " + number("%.0f", p.ESS)},
		{"acceptance", number2(rate, rateError)},
		{"best log-likelihood", number("%.2f", best)},
		{"step size", number("%.3g", zeroToNaN(lastStepSize(p)))},
	}
	seconds, rows := p.Elapsed.Seconds(), "…"
	if p.Result != nil {
		seconds, rows = p.Result.Stats.Seconds, fmt.Sprint(p.Result.Stats.ModelRows)
	}
	figures = append(figures, [2]string{"ESS a second", number("%.0f", p.ESS/seconds)}, [2]string{"seconds, model rows", fmt.Sprintf("%.2f, %s", seconds, rows)})
	return figures
}

func zeroToNaN(x float64) float64 {
	if x == 0 {
		return math.NaN()
	}
	return x
}

func number2(mean, standardError float64) string {
	if math.IsNaN(mean) {
		return "–"
	}
	return withError("%.2f", mean, standardError)
}

// hasRejections tells whether an acceptance rate of a sampler says something:
// unadjusted ones and Gibbs take every proposal.
func hasRejections(sampler string) bool {
	return samplers.Describe(sampler).Exact
}

// meanLogLikelihood is that of the draws, with its standard error between chains.
func (s *Snapshot) meanLogLikelihood() (mean, standardError float64) {
	if s.Rounds == 0 {
		return math.NaN(), math.NaN()
	}
	sum, squares, n := 0.0, 0.0, float64(s.Chains)
	for _, history := range s.LogLikelihoods {
		m := 0.0
		draws := history[max(len(history)-s.Rounds, 0):]
		for _, u := range draws {
			m += float64(u) / float64(len(draws))
		}
		sum += m
		squares += m * m
	}
	mean = sum / n
	if n < 2 {
		return mean, math.NaN()
	}
	return mean, math.Sqrt(max(squares/n-mean*mean, 0) / (n - 1))
}

// other is a sampler to compare with: the first that is not the given one.
func other(sampler string) string {
	for _, name := range infill.Samplers() {
		if name != sampler {
			return name
		}
	}
	return sampler
}

// fillsAlone is a fill without the text around it, for where that has no room.
func fillsAlone(f *Fill) []part {
	var list []part
	for blank, fill := range f.Values {
		if blank > 0 {
			list = append(list, part{" … ", -1})
		}
		list = append(list, part{harmless(fill), blank})
	}
	return list
}
