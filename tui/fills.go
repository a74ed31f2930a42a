package tui

import (
	"fmt"
	"math"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"infill/infill"
)

// barNats is the log-likelihood below the best fill, in nats, at which a bar is
// empty. A fixed scale keeps the bars from jumping while fills come in.
const barNats = 12

// fillTable lists fills.
type fillTable struct {
	styles     *styles
	fills      []Fill
	selected   int
	offset     int
	rows       int     // with the head line
	best       float64 // log-likelihood at which a bar is full
	favourites map[string]bool
	pins       map[int]pin
	provisional,
	focused bool
	empty string // what to say where there are none
}

// columns of the table, given the width of the whole.
func (t *fillTable) layout(columns int) (text, barWidth, drawn int) {
	barWidth, drawn = 6, 7
	switch {
	case columns >= 100:
		barWidth, drawn = 18, 13
	case columns >= 76:
		barWidth, drawn = 10, 13
	}
	return columns - 4 - 2 - barWidth - 1 - 7 - 2 - drawn, barWidth, drawn
}

// Render draws the table.
func (t *fillTable) Render(columns int) string {
	s := t.styles
	textWidth, barWidth, drawnWidth := t.layout(columns)
	drawn := "drawn"
	if t.provisional {
		drawn = "warm-up"
	}
	likelihood := "log-likelihood"
	if barWidth+8 < len(likelihood)+1 {
		likelihood = "log-lik."
	}
	if len(t.fills) > 0 && t.fills[0].Score != nil {
		likelihood = "score"
	}
	lines := []string{s.title.Render("    " + fit("fill", textWidth) + "  " + right(likelihood, barWidth+8) + "  " + right(drawn, drawnWidth))}
	if len(t.fills) == 0 {
		lines = append(lines, "", "    "+s.faint.Render(ansi.Truncate(t.empty, columns-4, "…")))
	}
	// All rows are cut alike, so that they stay aligned.
	end := min(len(t.fills), t.offset+t.rows-len(lines))
	allowed := commonAllowance(t.fills[min(t.offset, end):end], textWidth)
	for i := t.offset; i < end; i++ {
		lines = append(lines, t.row(i, allowed, textWidth, barWidth, drawnWidth))
	}
	return stack(columns, t.rows, strings.Join(lines, "\n"))
}

// commonAllowance is the allowance that suits all of the fills.
func commonAllowance(fills []Fill, columns int) int {
	allowed := 1 << 20
	for i := range fills {
		allowed = min(allowed, allowance(parts(fills[i].Text, fills[i].Spans), columns))
	}
	return allowed
}

func (t *fillTable) row(i, allowed, textWidth, barWidth, drawnWidth int) string {
	s, f := t.styles, &t.fills[i]
	look, marker := s.text, "  "
	if i == t.selected && t.focused {
		look, marker = s.selected, "▸ "
	}
	star := "  "
	if t.favourites[f.key()] {
		star = "★ "
	}
	list := shorten(parts(f.Text, f.Spans), allowed)
	if allowed < 3 {
		list = fillsAlone(f)
	}
	length := 0
	for _, p := range list {
		length += width(p.text)
	}
	text := s.marked(list, look, t.pins)
	if length > textWidth {
		text = ansi.Truncate(text, textWidth, "…")
		length = width(text)
	}
	pad := look.Render(strings.Repeat(" ", max(textWidth-length, 0)+2))
	u, share := "?", 0.0
	if rating := f.rating(); !math.IsNaN(rating) {
		u = fmt.Sprintf("%.2f", rating)
		share = 1 - (t.best-rating)/barNats
	}
	drawn := "kept"
	if !f.Kept {
		drawn = percent(f.Frequency, f.FrequencyStandardError, drawnWidth > 8)
	}
	return s.marker.Inherit(look).Render(marker) + s.favourite.Inherit(look).Render(star) + text + pad +
		s.bar.Inherit(look).Bold(false).Render(bar(share, barWidth)) + look.Render(" "+right(u, 7)+"  ") +
		s.faint.Inherit(look).Bold(false).Render(right(drawn, drawnWidth))
}

// percent writes a share with its standard error.
func percent(share float64, standardError *float64, withError bool) string {
	if math.IsNaN(share) {
		return "–"
	}
	if withError && standardError != nil && !math.IsNaN(*standardError) {
		return fmt.Sprintf("%.1f ± %.1f %%", 100*share, 100**standardError)
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// detail tells of one fill and of the run, beside the list on wide terminals.
type detail struct {
	styles   *styles
	fill     *Fill
	snapshot *Snapshot
	pins     map[int]pin
	given    conditionals
	rows     int
}

// Render draws the detail.
func (d *detail) Render(columns int) string {
	s := d.styles
	var lines []string
	add := func(text string) { lines = append(lines, strings.Split(text, "\n")...) }
	if f := d.fill; f != nil {
		add(ansi.Wrap(s.marked(parts(f.Text, f.Spans), s.text, d.pins), columns, ""))
		add("")
		if f.Kept {
			add(s.faint.Render("a favourite of an earlier run"))
		} else {
			row := func(name, value string) {
				add(s.faint.Render(fit(name, 17)) + value)
			}
			if !math.IsNaN(f.LogLikelihood) {
				row("log-likelihood", fmt.Sprintf("%.2f nats", f.LogLikelihood))
			}
			if f.Score != nil {
				row("score", fmt.Sprintf("%.2f nats a word", *f.Score))
			}
			if !math.IsNaN(f.Frequency) {
				row("drawn", percent(f.Frequency, f.FrequencyStandardError, true)+s.faint.Render(fmt.Sprintf("  %d times", f.Count)))
			}
			row("last state of", fmt.Sprintf("%d of %d chains", f.FinalCount, d.snapshot.Chains))
			if f.NewWords > 0 {
				row("new words", fmt.Sprintf("%d of %d slots", f.NewWords, len(f.Values)))
			}
			if d.snapshot.Several {
				add(s.faint.Render(ansi.Wrap("log-likelihoods of several lengths do not compare: the list is by score", columns, "")))
			}
			add("")
			if !d.snapshot.Several {
				add(d.bySlot(f, columns))
			}
		}
		add("")
	}
	if d.snapshot != nil {
		for _, line := range summary(d.snapshot) {
			add(s.faint.Render(ansi.Wrap(line, columns, "")))
		}
	}
	return stack(columns, d.rows, strings.Join(lines, "\n"))
}

// bySlot lists how often each slot of the fill held its word.
func (d *detail) bySlot(f *Fill, columns int) string {
	s := d.styles
	wordWidth := 8
	for _, fill := range f.Values {
		wordWidth = min(max(wordWidth, width(fill)), max(columns/2-8, 8))
	}
	lines := []string{s.title.Render(fit("slot", wordWidth+4) + right("sampled", 13) + right("model", 9))}
	for blank, fill := range f.Values {
		value, model := Value{Error: math.NaN()}, "…"
		for _, v := range d.snapshot.Values[blank] {
			if v.Text == fill {
				value = v
				break
			}
		}
		if p, known := d.given.probability(d.snapshot, blank, f); known {
			model = fmt.Sprintf("%.1f %%", 100*p)
		}
		lines = append(lines, s.faint.Render(fit(fmt.Sprintf("%d", blank+1), 4))+s.slot(blank).Render(fit(harmless(fill), wordWidth))+
			right(percent(value.Frequency, &value.Error, true), 13)+right(model, 9))
	}
	return strings.Join(append(lines, s.faint.Render(ansi.Wrap("model: of the slot alone, the others as in this fill", columns, ""))), "\n")
}

// summary tells of a run in a few lines.
func summary(p *Snapshot) []string {
	o := p.Options
	by := o.Sampler
	switch o.Mode {
	case infill.ModeBest:
		by = "the best, by " + o.Sampler
	case infill.ModeDecode:
		by = "decoded"
	}
	lines := []string{fmt.Sprintf("%s, %d chains × %d steps, seed %d", by, o.Chains, o.Steps, o.Seed)}
	numbers := []string{}
	if size := lastStepSize(p); size > 0 {
		numbers = append(numbers, fmt.Sprintf("step size %.3g", size))
	}
	if rate, e := p.acceptance(); !math.IsNaN(rate) {
		numbers = append(numbers, "acceptance "+withError("%.2f", rate, e))
	}
	switch {
	case p.Several && p.Result != nil:
		numbers = append(numbers, fmt.Sprintf("the best %d fills", p.Distinct))
	case p.Several:
	default:
		numbers = append(numbers, fmt.Sprintf("%d distinct fills in %d draws", p.Distinct, p.Rounds*p.Chains))
	}
	if len(numbers) > 0 {
		lines = append(lines, strings.Join(numbers, ", "))
	}
	return append(lines, warnings(p)...)
}

// warnings are what the pipeline says of a run. That fewer fills were found than
// the command would print is of no interest here, where all are listed.
func warnings(p *Snapshot) []string {
	if p == nil || p.Result == nil {
		return nil
	}
	var list []string
	for _, w := range p.Result.Warnings {
		if p.Distinct >= p.Options.Top || !strings.Contains(w, "were asked for") {
			list = append(list, harmless(w))
		}
	}
	return list
}

func lastStepSize(p *Snapshot) float64 {
	if len(p.StepSizes) == 0 {
		return 0
	}
	return p.StepSizes[len(p.StepSizes)-1]
}

func withError(format string, mean, standardError float64) string {
	text := fmt.Sprintf(format, mean)
	if !math.IsNaN(standardError) {
		text += " ± " + fmt.Sprintf(format, standardError)
	}
	return text
}
