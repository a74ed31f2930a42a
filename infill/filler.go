// Package infill fills the slots of a text jointly, and tells how probable each fill
// is by a masked language model: exactly where all fills can be enumerated, by weighted
// draws of the chain rule where they cannot, and by discrete Markov chain Monte Carlo
// where a sampler is named.
//
// The pipeline has three steps, a file for each. Prepare: a template becomes token
// ids and slots (package tokenize), one plan for each combination of lengths; the
// model's log-probabilities with every slot masked narrow each slot to its
// candidates and give chains their starts; the model's energy over the slots is the
// target (package lm). Answer: all fills are enumerated, or draws of the chain rule
// weighed; or, where a sampler is named, a kernel of package samplers moves chains,
// adapting its step size during a warm-up, and what they visit is pooled. Rank: the
// likeliest fills are put in order, and the texts are written.
package infill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"infill/lm"
	"infill/tokenize"
)

// LanguageModel is what the pipeline asks of a masked language model. Ids are token
// ids, [CLS] and [SEP] included; slots are positions in them.
type LanguageModel interface {
	// Description tells what runs, and on what.
	Description() lm.Description
	// Positions is the longest text the model takes, in tokens.
	Positions() int
	// MaskedLogProbabilities returns log p of every token for each slot while
	// all slots hold [MASK], [slots][vocabulary], nats. It runs one row.
	MaskedLogProbabilities(ctx context.Context, ids, slots []int) ([][]float32, error)
	// LogProbabilities returns log p of every token at the position of each row, nats,
	// [rows × vocabulary].
	LogProbabilities(ctx context.Context, rows []lm.Row) ([][]float32, error)
	// NewTarget makes the distribution over the slots of a text.
	NewTarget(ids, slots []int, o lm.TargetOptions) (lm.Target, error)
	// Score returns the log probability of the token at each query's position, nats.
	Score(ctx context.Context, ids []int, queries []lm.Query) ([]float64, error)
}

var _ LanguageModel = (*lm.MaskedLM)(nil)

// Model says what fills.
type Model struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // of the bundle, 64 hexadecimal digits
	// Tokenizer is the SHA-256 of the tokenizer, and Cased whether it keeps capitals.
	Tokenizer string `json:"-"`
	Cased     bool   `json:"-"`
	// Runtime is the version of onnxruntime, Device where it runs, "cpu" or "cuda:N",
	// and Precision the arithmetic; Note says why "auto" did not take CUDA. All are ""
	// until the model has been loaded.
	Runtime   string       `json:"-"`
	Device    string       `json:"-"`
	Precision lm.Precision `json:"-"`
	Note      string       `json:"-"`
	// PLLTemperature is T of exp(U/T) that was fitted to the model for JointPLL, 0 where
	// none was.
	PLLTemperature float64 `json:"-"`
}

// Filler fills templates with one model. It serves several goroutines at once.
type Filler struct {
	tokenizer    *tokenize.Tokenizer
	fillable     []int
	classes      func() []tokenClass // of each token, [vocabulary]
	reads        func() []string     // the letters of each that is a word or a piece of one
	going        func() []int        // the pieces that go on with a word
	kinds        sync.Map            // the tokens of each kind of blank, see rules.kinds
	maxPositions int

	load   func(ctx context.Context) (LanguageModel, error)
	mutex  sync.Mutex // guards the three below
	loaded LanguageModel
	model  Model
	closed bool
}

// New makes a filler of a model and the tokenizer of the same bundle.
func New(m LanguageModel, tokenizer *tokenize.Tokenizer) *Filler {
	f := newFiller(tokenizer, m.Positions(), func(context.Context) (LanguageModel, error) { return m, nil })
	f.describe(m.Description())
	return f
}

func newFiller(tokenizer *tokenize.Tokenizer, maxPositions int, load func(context.Context) (LanguageModel, error)) *Filler {
	f := &Filler{tokenizer: tokenizer, fillable: tokenizer.Fillable(), maxPositions: maxPositions, load: load,
		model: Model{Tokenizer: tokenizer.SHA256(), Cased: tokenizer.Cased()}}
	f.classes = sync.OnceValue(func() []tokenClass { return classify(tokenizer) })
	f.reads, f.going = sync.OnceValue(f.readTokens), sync.OnceValue(f.goingTokens)
	return f
}

func (f *Filler) describe(d lm.Description) {
	m := &f.model
	m.Name, m.SHA256, m.Runtime, m.Device, m.Precision, m.Note = d.Name, d.SHA256, d.Runtime, d.Device, cmp.Or(d.Precision, lm.FP32), d.Note
	m.PLLTemperature = d.PLLTemperature
}

// Model tells what fills.
func (f *Filler) Model() Model {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.model
}

var errClosed = errors.New("the filler is closed")

// open returns the model, loading it at the first call.
func (f *Filler) open(ctx context.Context) (LanguageModel, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.closed {
		return nil, errClosed
	}
	if f.loaded == nil {
		m, err := f.load(ctx)
		if err != nil {
			return nil, err
		}
		f.loaded = m
		f.describe(m.Description())
	}
	return f.loaded, nil
}

// Close releases the model, if it was used and can be closed, once the calls of it
// that are running have ended.
func (f *Filler) Close() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.closed = true
	if c, ok := f.loaded.(interface{ Close() error }); ok {
		return c.Close()
	}
	return nil
}

// Fill samples the slots of a template and ranks the fills. observe, which may
// be nil, hears the initial states and every step, in order, and delays the run
// while it works; of a decoding it hears the end alone.
//
// Of a text that is longer than Options.Window the model sees the part around the blanks,
// see Result.Windows; blanks that are too far apart are filled one part after the other.
//
// A template whose blanks have several possible lengths is filled once for each
// combination of them, see Stats.Lengths.
//
// Errors: *OptionError for the options, those that do not fit the template among
// them, *tokenize.InputError for the template; ctx.Err() when the run was
// cancelled, which stops a running call of the model: the result beside it is
// what was found by then, marked as Unfinished, or nil. The same options, template,
// model, machine and number of threads give the same result but for its Seconds,
// whatever was filled before.
func (f *Filler) Fill(ctx context.Context, template string, o Options, observe func(Progress)) (*Result, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return f.fillText(ctx, template, o, false, observe)
}

// fillText is Fill of checked options; escaped leaves the backslashes of \[MASK] in the
// texts of fills.
func (f *Filler) fillText(ctx context.Context, template string, o Options, escaped bool, observe func(Progress)) (*Result, error) {
	start := time.Now()
	ctx = lm.OneCaller(ctx)
	if typed, lengths, long := f.long(template, &o); long {
		if o.Together != nil {
			return nil, misfit("together", "the first text has more tokens than the window of %d: shorten it, or give a larger window", f.windowTokens(&o))
		}
		result, err := f.fillLong(ctx, typed, lengths, o, observe)
		return result, cancelled(ctx, err)
	}
	plans, err := f.plans(template, o)
	if err != nil {
		return nil, err
	}
	for _, p := range plans {
		p.template.KeepEscapes = escaped
	}
	model, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	if o.searches() || o.draws() {
		result, err := f.prove(ctx, model, plans, o, start, observe)
		return result, cancelled(ctx, err)
	}
	results := make([]*Result, len(plans))
	for i, p := range plans {
		if results[i], err = f.fill(ctx, model, p, o, start, observe); err != nil {
			if i > 0 {
				results[0] = merge(results[:i], o)
				results[0].Unfinished = true
				results[0].Warnings = slices.Insert(results[0].Warnings, 0, fmt.Sprintf("unfinished: interrupted after %d of %d combinations of lengths", i, len(plans)))
			}
			if ctx.Err() != nil && results[0] != nil {
				results[0].Fills = results[0].Fills[:min(o.Top, len(results[0].Fills))]
				results[0].Stats.Seconds = time.Since(start).Seconds()
				return results[0], ctx.Err()
			}
			return nil, cancelled(ctx, err)
		}
	}
	result := results[0]
	if len(plans) > 1 {
		result = merge(results, o)
	}
	result.Stats.Seconds = time.Since(start).Seconds()
	return result, nil
}

// fill takes a plan through the three steps.
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

// cancelled gives the plain reason of a run that was called off, without the
// place it happened to be at.
func cancelled(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Template reads a template without running the model. Errors are
// *tokenize.InputError: what Fill would say of it.
func (f *Filler) Template(text string) (*tokenize.Template, error) {
	template, err := f.tokenizer.Template(text)
	if err != nil {
		return nil, err
	}
	if err := f.checkLength(len(template.IDs)); err != nil {
		return nil, err
	}
	return template, nil
}

// checkLength refuses a text of more tokens than the model has positions.
func (f *Filler) checkLength(tokens int) error {
	if tokens <= f.maxPositions {
		return nil
	}
	return &tokenize.InputError{Fault: tokenize.ErrTooLong, Offset: -1, Detail: fmt.Sprintf(
		"%d tokens found, the model takes %d (its [CLS] and [SEP] included); shorten the text or split it", tokens, f.maxPositions)}
}
