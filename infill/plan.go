package infill

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"infill/internal/phrase"
	"infill/lm"
	"infill/tokenize"
)

// Plan is a checked request that is ready to be filled. Only one goroutine may
// call Fill at a time.
type Plan struct {
	Request Request // with its defaults written out
	// Terse leaves out of results what takes time and nobody reads: the signature,
	// and the warnings about the text and the model's answer.
	Terse   bool
	filler  *Filler
	typed   *tokenize.Template // the template with each blank at its shortest
	layouts []*layout          // of each combination of lengths that has a fill, the shortest first
	// shortest is the layout of the shortest lengths, whether it has a fill or
	// not; what blanks hold by themselves is asked for there.
	shortest *layout
	lengths  int // the number of combinations of lengths, each as likely
	seen     int // the number of tokens of a too long text that the model sees; 0 if it sees all
	rules    *rules
	context  []int // tokens in front of the text
}

// Plan checks and prepares a request without running the model. It returns an
// *OptionError for an option that is wrong or does not fit the template, a
// *ConstraintError if nothing is allowed, and a *tokenize.InputError for a wrong
// template. If ctx ends, it reads no further word of a list, and returns ctx's error.
func (f *Filler) Plan(ctx context.Context, r Request) (*Plan, error) {
	r = r.Settled()
	err := r.check(f.Model())
	if err != nil {
		return nil, err
	}
	typed, err := f.tokenizer.Shortest(r.Template, string(r.Blank))
	if err != nil {
		return nil, err
	}
	p := &Plan{Request: r, filler: f, typed: typed}
	_, err = p.ask(typed) // before the rules, of which each blank has its own
	if err != nil {
		return nil, err
	}
	p.rules, err = f.vocabulary.rules(ctx, typed, r.Fit)
	if err != nil {
		return nil, err
	}
	p.context, err = f.context(string(r.Context))
	if err != nil {
		return nil, err
	}
	err = p.layOut()
	if err != nil {
		return nil, err
	}
	return p, r.Method.fits(p)
}

func (p *Plan) layOut() error {
	lengths := p.rules.lengths(p.typed)
	p.lengths = 1
	shortest := make([]int, len(lengths))
	for _, group := range p.typed.Groups {
		own := lengths[group[0]]
		p.lengths *= len(own)
		for _, blank := range group {
			shortest[blank] = own[0]
		}
	}
	templates, err := p.typed.Expand(p.rules.filled(lengths))
	if err != nil {
		return err
	}
	var first error // of a combination of lengths that has no fill
	for _, t := range templates {
		l, none, err := p.layout(t)
		if err != nil {
			return err
		}
		first = cmp.Or(first, none)
		if none == nil {
			p.layouts = append(p.layouts, l)
		}
	}
	if len(p.layouts) == 0 {
		return first
	}
	p.shortest = p.layouts[0]
	if slices.Equal(p.shortest.pieces(), shortest) {
		return nil
	}
	t, err := p.sized(shortest...)
	if err != nil {
		return err
	}
	p.shortest, _, err = p.layout(t)
	return err
}

// sized returns the template with blanks of given lengths, [blanks].
func (p *Plan) sized(lengths ...int) (*tokenize.Template, error) {
	var each [][]int
	for _, n := range lengths {
		each = append(each, []int{n})
	}
	templates, err := p.typed.Expand(each)
	if err != nil {
		return nil, err
	}
	return templates[0], nil
}

// layout makes the layout of a template whose blanks have known lengths. none says
// why it has no fill.
func (p *Plan) layout(t *tokenize.Template) (l *layout, none, err error) {
	t = p.spelled(t)
	l, none = newLayout(t, p.rules)
	l.question, err = p.ask(t)
	p.seen = max(p.seen, l.question.seen())
	return l, none, err
}

func (p *Plan) roots() int {
	if p.shortest == p.layouts[0] {
		return len(p.layouts)
	}
	return len(p.layouts) + 1
}

// spelled returns a template as its fills are written.
func (p *Plan) spelled(t *tokenize.Template) *tokenize.Template {
	fit := p.Request.Fit
	if fit.Fill == FillWords {
		t = t.Joined()
	}
	t.Spelling = tokenize.Spelling{KeepCase: fit.Case == CaseKeep, Written: p.rules.spelled,
		Originals: p.Request.Originals}
	return t
}

func (p *Plan) ask(t *tokenize.Template) (question, error) {
	q, ok := p.filler.newQuestion(t.IDs, t.Offsets, t.Slots, p.context)
	if !ok {
		return question{}, t.Apart(p.filler.room(p.context))
	}
	return q, nil
}

// question returns what the model reads for blanks of these lengths, [blanks].
func (p *Plan) question(lengths ...int) (question, error) {
	t, err := p.sized(lengths...)
	if err != nil {
		return question{}, err
	}
	return p.ask(p.spelled(t))
}

// context returns the tokens of the option context, or nil if the option is "".
func (f *Filler) context(text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > bytesOfToken*f.maxPositions/2 {
		return nil, misfit("context", "%d bytes are more than %d tokens have, half of those that the model sees: "+
			"shorten it", len(text), f.maxPositions/2)
	}
	ids, err := f.tokenizer.Context(text)
	if err != nil {
		return nil, misfit("context", "%v", err)
	}
	if len(ids) > f.maxPositions/2 {
		return nil, misfit("context", "%d tokens, at most half of the %d that the model sees may be context: "+
			"shorten it", len(ids), f.maxPositions)
	}
	return ids, nil
}

// TooLong returns the warning that the model reads only a window of the text, or nil
// if it reads the whole text.
func (p *Plan) TooLong() []string {
	return tooLong(len(p.shortest.template.IDs), p.seen, "the blanks")
}

// Template returns the template with each blank at its shortest.
func (p *Plan) Template() *tokenize.Template { return p.typed }

// Slots returns the number of slots of all blanks together, at their longest.
func (p *Plan) Slots() (slots int) {
	for _, l := range p.layouts {
		slots = max(slots, len(l.question.slots))
	}
	return slots
}

// Cost is what an answer needs of a model: rows, and what they cost, as a number of tokens;
// and bytes of memory, without the model's. Rows and tokens are 0 if only seconds bound them.
type Cost struct {
	Rows          int
	Tokens, Bytes float64
}

// Cost returns what Fill likely needs, by the number of slots, and an upper bound.
func (p *Plan) Cost() (likely, most Cost) {
	tokens := 0.0
	for _, l := range p.layouts {
		tokens = max(tokens, float64(l.question.size()))
	}
	rows, bytes := p.Request.Method.likely(p)
	likely = Cost{rows, tokens * float64(rows), bytes}
	rows, bytes = p.Request.Method.cost(p)
	return likely, Cost{rows, tokens * float64(rows), bytes}
}

// For returns the plan as c asks for its rows: see [Filler.For].
func (p *Plan) For(c *lm.Caller) *Plan {
	own := *p
	own.filler = p.filler.For(c)
	return &own
}

// Fill fills the blanks and ranks the fills. If observe is not nil, Fill
// calls observe with the initial states and then after every step, and waits
// until it returns.
//
// Errors: *OptionError and *tokenize.InputError for faults that only the model
// shows. If ctx ends, Fill stops the running call of the model and returns
// ctx.Err() with the result so far, marked as Unfinished, or nil. The same
// request, model and machine give the same result, except for its Seconds.
func (p *Plan) Fill(ctx context.Context, observe func(Progress)) (*Result, error) {
	w := &work{plan: p, began: time.Now(), observe: observe}
	var err error
	w.asker, err = p.filler.asker(ctx, p.Request.Method.heavy())
	if err != nil {
		return nil, err
	}
	for _, l := range p.layouts {
		logp, err := w.asker.root(ctx, l.question)
		if err != nil {
			return nil, cancelled(ctx, err)
		}
		w.roots = append(w.roots, logp)
	}
	w.alone = w.roots[0]
	if p.shortest != p.layouts[0] {
		w.alone, err = w.asker.root(ctx, p.shortest.question)
		if err != nil {
			return nil, cancelled(ctx, err)
		}
	}
	a, err := p.Request.Method.solve(ctx, w)
	if err == nil {
		return w.result(a), nil
	}
	if ctx.Err() == nil || a == nil || len(a.fills) == 0 || errors.Is(context.Cause(ctx), ErrUnwanted) {
		return nil, cancelled(ctx, err)
	}
	result := w.result(a)
	result.Unfinished = true
	result.Place = a.place
	why := "unfinished: interrupted " + a.place
	if result.LeftOutAtMost != nil {
		why += ": nothing left out has more than " + phrase.AtMost(*result.LeftOutAtMost)
	}
	result.Warnings = slices.Insert(result.Warnings, 0, why)
	result.Ends++
	return result, ctx.Err()
}

// Fill calls Filler.Plan for the request, and then Plan.Fill.
func (f *Filler) Fill(ctx context.Context, r Request, observe func(Progress)) (*Result, error) {
	p, err := f.Plan(ctx, r)
	if err != nil {
		return nil, err
	}
	return p.Fill(ctx, observe)
}

// ErrUnwanted, as the cause of a cancelled context, tells Plan.Fill that nobody
// reads an unfinished result. Plan.Fill then returns at once, without a result.
var ErrUnwanted = errors.New("nobody waits for the result")

// Unwanted returns a context that is cancelled with the cause ErrUnwanted when
// ctx ends. done releases the context.
func Unwanted(ctx context.Context) (own context.Context, done func()) {
	own, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { end(ErrUnwanted) })
	return own, func() { stop(); end(nil) }
}

type work struct {
	plan    *Plan
	asker   *asker
	began   time.Time
	observe func(Progress)
	roots   [][][]float32 // log-probabilities of each layout with all slots masked, [layouts][slots][vocabulary]
	alone   [][]float32   // those of the plan's shortest layout, [slots][vocabulary]
}

func (w *work) tell(p Progress) {
	if w.observe != nil {
		p.Template = w.plan.Request.Template
		p.Method = w.plan.Request.Method.Name()
		w.observe(p)
	}
}

// bytesOfToken is more than the tokens of a context have on average. A longer one is not
// read, because it is read again for each text of a request.
const bytesOfToken = 64

// These are bytes of memory for the estimates of cost.
const (
	bytesOfState       = 512     // of a state beside its slots
	bytesOfConditional = 4 << 10 // of a beginning with its list, and those that lead to it
)

// common returns the bytes of an answer and of the rows with all slots masked.
func (p *Plan) common() float64 {
	n := float64(p.Slots())
	vocabulary := float64(p.filler.tokenizer.VocabularySize())
	return float64(4*int(p.Request.Top)+64)*(bytesOfState+16*n) + 4*float64(p.roots())*n*vocabulary
}
