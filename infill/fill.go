package infill

import (
	"context"
	"fmt"
	"slices"
	"time"

	"infill/lm"
	"infill/tokenize"
)

// Fill fills the blanks and ranks the fills. observe, if not nil, is called in order with the initial states and
// every step; for a decoding, only at the end. The run waits for it.
//
// If a text is longer than Options.Window, the model sees only the part around the blanks, see Result.Windows.
// Blanks that are too far apart are filled one part after the other.
//
// A template whose blanks have several possible lengths is filled once for each
// combination of them, see Stats.Lengths.
//
// Errors: *OptionError and *tokenize.InputError for faults that only the model or a part of a long text shows.
// If ctx ends, Fill stops the running call of the model and returns ctx.Err() with what was found by then,
// marked as Unfinished, or nil. The same request, model, machine and number of threads give the same result,
// except for its Seconds.
func (p *Plan) Fill(ctx context.Context, observe func(Progress)) (*Result, error) {
	start := time.Now()
	ctx = lm.OneCaller(ctx, false)
	if p.windows != nil {
		result, err := p.fillWindows(ctx, start, observe)
		return result, cancelled(ctx, err)
	}
	f, o := p.filler, p.Options
	if _, list := f.words(); list != nil && o.searches() && p.layouts[0].rules != nil {
		go list() // the lexicon is read while the model opens
	}
	model, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	if o.searches() || o.draws() {
		result, err := f.prove(ctx, model, p.layouts, o, start, observe)
		return result, cancelled(ctx, err)
	}
	results := make([]*Result, len(p.layouts))
	for i, one := range p.layouts {
		if results[i], err = f.fill(ctx, model, one, o, start, observe); err != nil {
			return p.interrupted(ctx, results, i, start), cancelled(ctx, err)
		}
	}
	result := results[0]
	if len(results) > 1 {
		result = merge(results, o)
	}
	result.Stats.Seconds = time.Since(start).Seconds()
	return result, nil
}

// interrupted is what was found of a run that ended at the combination of lengths of that
// number, nil if that is nothing or the run was not called off.
func (p *Plan) interrupted(ctx context.Context, results []*Result, at int, start time.Time) *Result {
	result := results[0]
	if ctx.Err() == nil || result == nil {
		return nil
	}
	if at > 0 {
		result = merge(results[:at], p.Options)
		result.Unfinished = true
		result.Warnings = slices.Insert(result.Warnings, 0,
			fmt.Sprintf("unfinished: interrupted after %d of %d combinations of lengths", at, len(results)))
	}
	result.Fills = result.Fills[:min(p.Options.Top, len(result.Fills))]
	result.Stats.Seconds = time.Since(start).Seconds()
	return result
}

// Fill plans and fills a template with options: Filler.Plan and Plan.Fill in one call.
func (f *Filler) Fill(ctx context.Context, template string, o Options, observe func(Progress)) (*Result, error) {
	p, err := f.Plan(Request{Template: template, Options: o})
	if err != nil {
		return nil, err
	}
	return p.Fill(ctx, observe)
}

// fill takes a combination of lengths through the three steps.
func (f *Filler) fill(ctx context.Context, model LanguageModel, p *layout, o Options, start time.Time,
	observe func(Progress)) (*Result, error) {
	r, weights, err := f.prepare(ctx, model, p, o, start)
	if err != nil {
		return nil, err
	}
	if o.answers() {
		r := &run{problem: r}
		a, err := r.answer(ctx, observe)
		var result *Result
		if err == nil {
			result, err = r.answered(ctx, a)
		}
		if err != nil {
			return r.unfinished(ctx, err)
		}
		return result, nil
	}
	c, err := newChains(ctx, r, o, weights)
	if err != nil {
		return nil, err
	}
	var result *Result
	if err = c.sample(ctx, observe); err == nil {
		result, err = c.rank(ctx)
	}
	if err != nil {
		return (&run{problem: r, sofar: c.finds.answer}).unfinished(ctx, err)
	}
	return result, nil
}

// fillWindows fills the blanks of a long text in groups that have room in one window, from
// left to right. Each group is filled jointly, in the part of the text around it, with the
// likeliest fills of the groups before it in their places.
func (p *Plan) fillWindows(ctx context.Context, start time.Time, observe func(Progress)) (*Result, error) {
	var whole *Result
	var interrupted error // beside what was found by then
	end := 0              // of the last blank that was filled, in the text
	w := p.first
	for number, blanks := range p.windows {
		var result *Result
		if result, interrupted = w.fill(ctx, blanks, len(p.windows) > 1, observe); result == nil {
			break
		}
		if whole == nil {
			whole = result
		} else {
			whole = join(whole, result, end, p.Options.Top)
		}
		if interrupted != nil || number == len(p.windows)-1 {
			break
		}
		best := &result.Fills[0]
		end = best.Spans[blanks[1]-blanks[0]][1]
		rest, err := p.filler.read(best.Text)
		if err == nil {
			w, err = p.window(number+1, rest)
		}
		if err != nil {
			return nil, err
		}
	}
	if whole == nil || interrupted != nil && ctx.Err() == nil {
		return nil, interrupted
	}
	if interrupted != nil && !whole.Unfinished {
		whole.Unfinished, whole.Warnings = true,
			slices.Insert(whole.Warnings, 0, "unfinished: interrupted before the last blanks")
	}
	// Until here the backslashes kept what is text from becoming a blank.
	for i := range whole.Fills {
		fill := &whole.Fills[i]
		fill.Text = tokenize.Unescape(fill.Text, fill.Spans)
	}
	whole.Template, whole.Blanks = p.typed.Text, nil
	for _, b := range p.typed.Blanks {
		whole.Blanks = append(whole.Blanks, [2]int{b.Start, b.End})
	}
	whole.Stats.Seconds = time.Since(start).Seconds()
	whole.Warnings = append([]string{windowed(len(p.typed.IDs), whole.Windows)}, whole.Warnings...)
	return whole, interrupted
}

// fill fills the blanks of a window; the result is that of the whole text.
func (w *window) fill(ctx context.Context, blanks [2]int, several bool, observe func(Progress)) (*Result, error) {
	result, err := w.plan.Fill(ctx, observe)
	if result == nil {
		return nil, err
	}
	result.Windows = []Window{{Blanks: [2]int{blanks[0] + 1, blanks[1] + 1}, Tokens: len(w.plan.typed.IDs)}}
	text := w.rest.Text
	for i := range result.Fills {
		fill := &result.Fills[i]
		fill.Text = text[:w.span[0]] + fill.Text + text[w.span[1]:]
		if several && fill.Pieces == nil {
			for _, b := range w.rest.Blanks[:blanks[1]-blanks[0]+1] {
				fill.Pieces = append(fill.Pieces, b.Slots)
			}
		}
		for k := range fill.Spans {
			fill.Spans[k][0] += w.span[0]
			fill.Spans[k][1] += w.span[0]
		}
	}
	return result, err
}
