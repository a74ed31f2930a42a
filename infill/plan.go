package infill

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"infill/lm"
	"infill/samplers"
	"infill/tokenize"
)

// Plan is a checked request that is ready to be filled. Only one goroutine may call Fill at a time.
type Plan struct {
	Request
	filler  *Filler
	typed   *tokenize.Template // the template with each blank at its shortest
	layouts []*layout          // of each combination of lengths that has a fill, the shortest first
	lengths int                // the number of combinations of lengths, each as likely
	seen    int                // the number of tokens of a too long text that the model sees; 0 if it sees all
	rules   *rules
}

// Plan checks and prepares a request without running the model. It returns an *OptionError for an option that is wrong
// or does not fit the template, and a *tokenize.InputError for a wrong template.
func (f *Filler) Plan(r Request) (*Plan, error) {
	o := &r.Options
	if err := o.Validate(); err != nil {
		return nil, err
	}
	typed, err := f.tokenizer.Shortest(r.Template, o.Blank)
	if err != nil {
		return nil, err
	}
	p := &Plan{Request: r, filler: f, typed: typed}
	if p.rules, err = f.vocabulary.rules(typed, o); err != nil {
		return nil, err
	}
	context, err := f.context(o)
	if err != nil {
		return nil, err
	}
	templates, err := typed.Expand(p.rules.lengths(typed))
	if err != nil {
		return nil, err
	}
	spelling := tokenize.Spelling{KeepCase: o.Case == caseKeep, Written: p.rules.spelled, Originals: r.Originals}
	var first error // of a combination of lengths that has no fill
	for _, t := range templates {
		if o.Fill == fillWords {
			t = t.Joined()
		}
		t.Spelling = spelling
		l, err := newLayout(t, p.rules)
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		from, to, err := t.Window(f.maxPositions - 2 - len(context))
		if err != nil {
			return nil, err
		}
		l.see(from, to, context)
		if to-from+3 < len(t.IDs) {
			p.seen = max(p.seen, len(l.ids))
		}
		_, err = l.order(o.Order)
		if err != nil {
			return nil, err
		}
		p.layouts = append(p.layouts, l)
	}
	if len(p.layouts) == 0 {
		return nil, first
	}
	p.lengths = len(templates)
	if o.Chains != nil {
		return p, p.movable()
	}
	return p, nil
}

// context returns the tokens of the option context, or nil if the option is "".
func (f *Filler) context(o *Options) ([]int, error) {
	if o.Context == "" {
		return nil, nil
	}
	ids, err := f.tokenizer.Context(o.Context)
	if err != nil {
		return nil, misfit("context", "%v", err)
	}
	if len(ids) > f.maxPositions/2 {
		return nil, misfit("context", "%d tokens, at most half of the %d that the model sees may be context: "+
			"shorten it", len(ids), f.maxPositions)
	}
	return ids, nil
}

// Slots returns the number of slots of all blanks together, at their longest.
func (p *Plan) Slots() (slots int) {
	for _, l := range p.layouts {
		slots = max(slots, len(l.slots))
	}
	return slots
}

// MaxRows returns an upper bound of the model rows that Fill needs, or 0 if the
// budget bounds only seconds.
func (p *Plan) MaxRows() int {
	o := &p.Options
	slots, budget, layouts := float64(p.Slots()), float64(o.Budget.Rows), float64(len(p.layouts))
	rows := 0.0
	switch {
	case o.Chains != nil:
		rows = layouts + float64(p.chains())*float64(o.Chains.Steps+1)*slots
	case slots == 1: // the row with all slots masked gives every probability
		return len(p.layouts)
	case o.Samples > 0:
		rows = max(budget, layouts)
	case o.Budget.Rows > 0: // a search goes on to its first fill, whatever the budget
		rows = max(budget, layouts+slots-1)
	}
	return int(min(rows, math.MaxInt32))
}

// chains returns the number of chains.
func (p *Plan) chains() int {
	if p.Options.Samples > 0 {
		return p.Options.Samples
	}
	return defaultSamples
}

// MaxBytes estimates the bytes of memory that Fill needs for rows model rows, without the memory of the model.
func (p *Plan) MaxBytes(rows int) float64 {
	o, vocabulary := &p.Options, float64(p.filler.tokenizer.VocabularySize())
	n, r, l := float64(p.Slots()), float64(rows), float64(len(p.layouts))
	const (
		conditional = 4 << 10 // bytes of a search node, with the nodes that lead to it
		category    = 48      // bytes of a map entry
		state       = 512     // bytes of a state beside its slots
	)
	bytes := float64(4*o.Top+64)*(state+16*n) + 4*l*n*vocabulary
	switch {
	case o.Chains != nil:
		candidates := float64(o.Chains.Candidates)
		if candidates == 0 {
			candidates = vocabulary
		}
		chains := float64(p.chains())
		return bytes + min(4*keptNumbers, 4*r*n*candidates)*3/2 + chains*n*candidates*8*6 +
			chains*float64(o.Chains.Steps+1)*4 + r/n*(state+8*n)
	case o.Samples > 0:
		return bytes + min(4*keptNumbers*l, 4*r*vocabulary) + float64(o.Samples)*(state+2*n*(state+8*n))
	}
	// The first slot of an order has only one node, and only one list of categories.
	return bytes + r*conditional + 2*l*((n-1)*min(r*conditional/8, vocabulary)+conditional/8)*category
}

// A method answers a plan by a search, by draws, or by chains.
type method interface {
	// solve writes w.answer, and calls w.observe on the way if it is not nil. When solve fails, w.answer holds the
	// fills found so far.
	solve(ctx context.Context, w *work) error
}

var _, _, _ method = search{}, draws{}, (*chainRun)(nil)

// work holds a plan while a method works on its result.
type work struct {
	plan    *Plan
	model   LanguageModel
	began   time.Time
	observe func(Progress)
	rows    int           // model rows so far, without those of answer.rows
	roots   [][][]float32 // log-probabilities of each layout with all slots masked, [layouts][slots][vocabulary]
	answer  answer
}

// Fill fills the blanks and ranks the fills. If observe is not nil, Fill calls observe with the initial states and then
// after every step, and waits until it returns.
//
// Errors: *OptionError and *tokenize.InputError for faults that only the model shows. If ctx ends, Fill stops the
// running call of the model and returns ctx.Err() with the result so far, marked as Unfinished, or nil. The same
// request, model, machine and number of threads give the same result, except for its Seconds.
func (p *Plan) Fill(ctx context.Context, observe func(Progress)) (*Result, error) {
	w := &work{plan: p, began: time.Now(), observe: observe}
	ctx = lm.OneCaller(ctx, p.Options.Chains != nil) // chains ask for many rows, so others go first
	var err error
	if w.model, err = p.filler.open(ctx); err != nil {
		return nil, err
	}
	for _, l := range p.layouts {
		logp, err := w.model.MaskedLogProbabilities(ctx, l.ids, l.slots)
		if err != nil {
			return nil, cancelled(ctx, err)
		}
		w.rows++
		w.roots = append(w.roots, logp)
	}
	if err := p.method().solve(ctx, w); err != nil {
		if ctx.Err() == nil || len(w.answer.fills) == 0 || errors.Is(context.Cause(ctx), ErrUnwanted) {
			return nil, cancelled(ctx, err)
		}
		result := w.result()
		result.Unfinished = true
		result.Warnings = slices.Insert(result.Warnings, 0, "unfinished: interrupted "+w.answer.place)
		return result, ctx.Err()
	}
	return w.result(), nil
}

// method returns the method that the options choose: chains, draws or a search.
func (p *Plan) method() method {
	switch {
	case p.Options.Chains != nil:
		return &chainRun{}
	case p.Options.Samples > 0:
		return draws{}
	}
	return search{}
}

// Fill calls Filler.Plan for the template and options, and then Plan.Fill.
func (f *Filler) Fill(ctx context.Context, template string, o Options, observe func(Progress)) (*Result, error) {
	p, err := f.Plan(Request{Template: template, Options: o})
	if err != nil {
		return nil, err
	}
	return p.Fill(ctx, observe)
}

// laws returns the law by the chain rule for each layout. All combinations of
// lengths have the same weight, also those without a fill.
func (w *work) laws() ([]samplers.Law, error) {
	var laws []samplers.Law
	mask := w.plan.filler.tokenizer.MaskID()
	for i, l := range w.plan.layouts {
		order, err := l.order(w.plan.Options.Order)
		if err != nil {
			return nil, err
		}
		target := &law{model: w.model, masked: l.masked(mask), slots: l.slots, root: w.roots[i], rows: &w.rows}
		laws = append(laws, samplers.Law{Target: target, Order: order, Choices: l.choices,
			LogWeight: -math.Log(float64(w.plan.lengths))})
	}
	return laws, nil
}

// ErrUnwanted, as the cause of a cancelled context, tells Plan.Fill that nobody reads an unfinished result. Plan.Fill
// then returns at once, without a result.
var ErrUnwanted = errors.New("nobody waits for the result")

// Unwanted returns a context that is cancelled with the cause ErrUnwanted when ctx ends. done releases the context.
func Unwanted(ctx context.Context) (own context.Context, done func()) {
	own, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { end(ErrUnwanted) })
	return own, func() { stop(); end(nil) }
}
