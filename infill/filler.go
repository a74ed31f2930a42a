// Package infill fills the blanks of a text jointly with a masked language
// model. By default it searches for the likeliest fills under the chain rule,
// proves them, and gives the model's own probability of each. It also makes
// independent draws by the chain rule. With a named sampler it runs the Markov
// chains of a paper over an energy.
//
// A [Request] becomes a [Plan]: token ids, slots (package tokenize), the tokens
// that each slot may take, and a layout for each combination of lengths. A
// method solves the plan, and Plan.Fill makes a [Result] of the answer.
// docs/explanation/architecture.md follows a command through the files.
package infill

import (
	"context"
	"errors"
	"sync"

	"infill/lm"
	"infill/tokenize"
)

// LanguageModel has the methods of a masked language model that a Filler calls.
// Ids are token ids, [CLS] and [SEP] included; slots are positions in the ids.
type LanguageModel interface {
	// Description returns the names of the model and of the device on
	// which the model runs.
	Description() lm.Description
	// Positions returns the largest number of tokens that the model reads at
	// once, [CLS] and [SEP] included.
	Positions() int
	// MaskedLogProbabilities returns log p of every token for each slot while
	// all slots hold [MASK], [slots][vocabulary], nats. It runs one row.
	MaskedLogProbabilities(ctx context.Context, ids, slots []int) ([][]float32, error)
	// LogProbabilities returns log p of every token at the Position of each
	// row, nats, [rows][vocabulary].
	LogProbabilities(ctx context.Context, rows []lm.Row) ([][]float32, error)
	// NewTarget makes the distribution over the slots of a text.
	NewTarget(ids, slots []int, o lm.TargetOptions) (lm.Target, error)
	// Score returns the log probability of the token at each query's position, nats.
	Score(ctx context.Context, ids []int, queries []lm.Query) ([]float64, error)
}

var _ LanguageModel = (*lm.MaskedLM)(nil)

// Model describes a model.
type Model struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // of the bundle, 64 hexadecimal digits
	// Tokenizer is the SHA-256 of the tokenizer. Cased reports whether the
	// tokenizer keeps capitals.
	Tokenizer string `json:"-"`
	Cased     bool   `json:"-"`
	// Runtime is the version of onnxruntime, and Device is "cpu" or "cuda:N".
	// If the device "auto" became the CPU, Note says why CUDA was not used. All
	// three are "" until the model is loaded.
	Runtime string `json:"-"`
	Device  string `json:"-"`
	Note    string `json:"-"`
	// Segments is the number of segments that the model distinguishes.
	Segments int `json:"-"`
}

// Filler fills templates with one model. Many goroutines may use it at once;
// their rows share model calls.
type Filler struct {
	vocabulary   *vocabulary
	tokenizer    *tokenize.Tokenizer
	maxPositions int

	load   func(ctx context.Context) (LanguageModel, error)
	mutex  sync.Mutex // guards loaded, model and closed
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

func newFiller(tokenizer *tokenize.Tokenizer, maxPositions int,
	load func(context.Context) (LanguageModel, error)) *Filler {
	return &Filler{vocabulary: newVocabulary(tokenizer), tokenizer: tokenizer, maxPositions: maxPositions, load: load,
		model: Model{Tokenizer: tokenizer.SHA256(), Cased: tokenizer.Cased()}}
}

func (f *Filler) describe(d lm.Description) {
	m := &f.model
	m.Name = d.Name
	m.SHA256 = d.SHA256
	m.Runtime = d.Runtime
	m.Device = d.Device
	m.Note = d.Note
}

// Model describes the model.
func (f *Filler) Model() Model {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.model
}

var errClosed = errors.New("the filler is closed")

// Load loads the model now, so that the first call of the model need not load it.
func (f *Filler) Load(ctx context.Context) error {
	_, err := f.open(ctx)
	return err
}

// open returns the model, and loads it at the first call.
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

// Close waits for running model calls and releases the model.
func (f *Filler) Close() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.closed = true
	c, ok := f.loaded.(interface{ Close() error })
	if ok {
		return c.Close()
	}
	return nil
}

// Tokenizer returns the model's tokenizer.
func (f *Filler) Tokenizer() *tokenize.Tokenizer { return f.tokenizer }

// Calls returns the number of model calls and the rows in them. Both are 0 if
// the model does not count them.
func (f *Filler) Calls() (calls, rows int64) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	m, ok := f.loaded.(interface{ Calls() (calls, rows int64) })
	if ok {
		return m.Calls()
	}
	return 0, 0
}

// Rate returns how many tokens of model rows run in a second, or 0 if it is not
// known yet.
func (f *Filler) Rate() float64 {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	m, ok := f.loaded.(interface{ Rate() float64 })
	if ok {
		return m.Rate()
	}
	return 0
}

// cancelled returns ctx.Err() if ctx has ended and err is not nil. Otherwise it
// returns err unchanged.
func cancelled(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
