package infill

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"infill/tokenize"
)

// Plan is a request that can be filled: read once, checked, and cut into what the model is
// asked for. One goroutine fills it at a time.
type Plan struct {
	Request
	filler  *Filler
	typed   *tokenize.Template // each blank at its shortest
	lengths [][2]int           // the fewest and the most slots of each blank
	plans   []*plan            // for each combination of lengths; nil where there are windows
	windows [][2]int           // of a long text: the first and the last blank of each
	first   *window            // what the first of them sees
}

// Plan reads a request without running the model, and refuses what cannot be filled.
// Errors: *OptionError for the options, those that do not fit the template among them,
// *tokenize.InputError for the template.
func (f *Filler) Plan(r Request) (*Plan, error) {
	if err := r.Options.Validate(); err != nil {
		return nil, err
	}
	typed, err := f.read(r.Template)
	if err != nil {
		return nil, err
	}
	return f.plan(typed, r, false)
}

// plan is Plan of checked options and a template that is read; escaped leaves the
// backslashes of \[MASK] in the texts of fills.
func (f *Filler) plan(typed *tokenize.Template, r Request, escaped bool) (*Plan, error) {
	rules, err := f.rules(typed, r.Options.Constraints, r.Options.Fill)
	if err != nil {
		return nil, err
	}
	p := &Plan{Request: r, filler: f, typed: typed, lengths: rules.lengths(typed.Blanks)}
	if p.tokens() > f.windowTokens(&r.Options) {
		err = p.divide()
	} else {
		p.plans, err = f.combinations(typed, rules, p.lengths, &p.Options, escaped)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// tokens is the most tokens that the text has, [CLS] and [SEP] included.
func (p *Plan) tokens() int { return len(p.typed.IDs) - len(p.typed.Slots) + p.Slots() }

// Slots is the most slots that the blanks have together.
func (p *Plan) Slots() (slots int) {
	for _, length := range p.lengths {
		slots += length[1]
	}
	return slots
}

// MaxRows bounds the model rows that Fill asks for; 0 where seconds bound it.
func (p *Plan) MaxRows() int {
	o := &p.Options
	times := float64(max(1, len(p.windows)))
	if o.answers() {
		if o.Joint != JointChain { // each combination of lengths has the whole budget
			times *= float64(max(1, len(p.plans)))
		}
		return int(min(times*float64(o.Budget.Rows), math.MaxInt32))
	}
	chains := float64(o.Chained().Chains) * float64(max(1, len(o.Ladder)))
	rows := chains * float64(o.Steps+1) * float64(p.Slots()) * float64(1+len(o.Together))
	return int(min(rows, math.MaxInt32))
}

// Fill fills the blanks and ranks the fills. observe, which may be nil, hears the initial
// states and every step, in order, and delays the run while it works; of a decoding it
// hears the end alone.
//
// Of a text that is longer than Options.Window the model sees the part around the blanks,
// see Result.Windows; blanks that are too far apart are filled one part after the other.
//
// A template whose blanks have several possible lengths is filled once for each
// combination of them, see Stats.Lengths.
//
// Errors: *OptionError and *tokenize.InputError for what shows first when a model is asked,
// or a part of a long text is filled; ctx.Err() when the run was cancelled, which stops a
// running call of the model: the result beside it is what was found by then, marked as
// Unfinished, or nil. The same request, model, machine and number of threads give the
// same result but for its Seconds, whatever was filled before.
func (p *Plan) Fill(ctx context.Context, observe func(Progress)) (*Result, error) {
	start := time.Now()
	if p.windows != nil {
		result, err := p.fillWindows(ctx, start, observe)
		return result, cancelled(ctx, err)
	}
	model, err := p.filler.open(ctx)
	if err != nil {
		return nil, err
	}
	f, o := p.filler, p.Options
	if o.searches() || o.draws() {
		result, err := f.prove(ctx, model, p.plans, o, start, observe)
		return result, cancelled(ctx, err)
	}
	results := make([]*Result, len(p.plans))
	for i, one := range p.plans {
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
// number, nil where that is nothing or the run was not called off.
func (p *Plan) interrupted(ctx context.Context, results []*Result, at int, start time.Time) *Result {
	result := results[0]
	if ctx.Err() == nil || result == nil {
		return nil
	}
	if at > 0 {
		result = merge(results[:at], p.Options)
		result.Unfinished = true
		result.Warnings = slices.Insert(result.Warnings, 0, fmt.Sprintf("unfinished: interrupted after %d of %d combinations of lengths", at, len(results)))
	}
	result.Fills = result.Fills[:min(p.Options.Top, len(result.Fills))]
	result.Stats.Seconds = time.Since(start).Seconds()
	return result
}

// Fill is [Filler.Plan] and [Plan.Fill] in one: of a template with options.
func (f *Filler) Fill(ctx context.Context, template string, o Options, observe func(Progress)) (*Result, error) {
	p, err := f.Plan(Request{Template: template, Options: o})
	if err != nil {
		return nil, err
	}
	return p.Fill(ctx, observe)
}

// fill takes a combination of lengths through the three steps.
func (f *Filler) fill(ctx context.Context, model LanguageModel, p *plan, o Options, start time.Time, observe func(Progress)) (*Result, error) {
	r, err := f.prepare(ctx, model, p, o)
	if err != nil {
		return nil, err
	}
	r.began = start
	result, err := r.result(ctx, observe)
	if err != nil {
		return r.unfinished(ctx), err
	}
	return result, nil
}

// result answers or samples, and ranks.
func (r *run) result(ctx context.Context, observe func(Progress)) (*Result, error) {
	if r.options.answers() {
		a, err := r.answer(ctx, observe)
		if err != nil {
			return nil, err
		}
		return r.answered(ctx, a)
	}
	s, err := r.sample(ctx, observe)
	if err != nil {
		return nil, err
	}
	return r.rank(ctx, s)
}
