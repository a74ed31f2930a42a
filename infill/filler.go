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
	"fmt"
	"slices"
	"strings"
	"sync"

	"infill/lm"
	"infill/models"
	"infill/tokenize"
)

// LanguageModel has the methods of a masked language model that a Filler calls.
// Ids are token ids, [CLS] and [SEP] included; slots are positions in the ids.
type LanguageModel interface {
	// Description returns the names of the model and of its device.
	Description() lm.Description
	// Positions returns the largest number of tokens that the model reads at
	// once, [CLS] and [SEP] included.
	Positions() int
	// For returns the model as c asks it.
	For(c *lm.Caller) lm.Asker
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
	// NoGradient says why the model cannot be differentiated; "" if it can be.
	NoGradient string `json:"-"`
}

// Filler fills templates with one model. Many goroutines may use it at once;
// their rows share model calls.
type Filler struct {
	vocabulary   *vocabulary
	tokenizer    *tokenize.Tokenizer
	maxPositions int
	source       *source
	caller       *lm.Caller // nil: each fill, score and exercise asks for itself
}

type source struct {
	load   func(ctx context.Context) (LanguageModel, error)
	ready  func(Model) // called when the model is loaded
	mutex  sync.Mutex  // guards loaded, model and closed
	loaded LanguageModel
	model  Model
	closed bool
}

// For returns the filler of the same model whose rows c asks for. Without For,
// each fill, score and exercise is a caller of its own.
func (f *Filler) For(c *lm.Caller) *Filler {
	own := *f
	own.caller = c
	return &own
}

// New makes a filler of a model and the tokenizer of the same bundle.
func New(m LanguageModel, tokenizer *tokenize.Tokenizer) *Filler {
	f := newFiller(tokenizer, m.Positions(), func(context.Context) (LanguageModel, error) { return m, nil })
	f.source.describe(m.Description())
	return f
}

func newFiller(tokenizer *tokenize.Tokenizer, maxPositions int,
	load func(context.Context) (LanguageModel, error)) *Filler {
	model := Model{Tokenizer: tokenizer.SHA256(), Cased: tokenizer.Cased()}
	return &Filler{vocabulary: newVocabulary(tokenizer), tokenizer: tokenizer, maxPositions: maxPositions,
		source: &source{load: load, ready: func(Model) {}, model: model}}
}

func (s *source) describe(d lm.Description) {
	m := &s.model
	m.Name = d.Name
	m.SHA256 = d.SHA256
	m.Runtime = d.Runtime
	m.Device = d.Device
	m.Note = d.Note
	m.Segments = d.Segments
	m.NoGradient = d.NoGradient
}

// Model describes the model.
func (f *Filler) Model() Model {
	f.source.mutex.Lock()
	defer f.source.mutex.Unlock()
	return f.source.model
}

var errClosed = errors.New("the filler is closed")

// Load loads the model now, so that the first call of the model need not load it.
func (f *Filler) Load(ctx context.Context) error {
	_, err := f.source.open(ctx)
	return err
}

// open returns the model, and loads it at the first call.
func (s *source) open(ctx context.Context) (LanguageModel, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if s.loaded == nil {
		m, err := s.load(ctx)
		if err != nil {
			return nil, err
		}
		s.loaded = m
		s.describe(m.Description())
		s.ready(s.model)
	}
	return s.loaded, nil
}

// Close waits for running model calls and releases the model.
func (f *Filler) Close() error {
	f.source.mutex.Lock()
	defer f.source.mutex.Unlock()
	f.source.closed = true
	c, ok := f.source.loaded.(interface{ Close() error })
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
	f.source.mutex.Lock()
	defer f.source.mutex.Unlock()
	m, ok := f.source.loaded.(interface{ Calls() (calls, rows int64) })
	if ok {
		return m.Calls()
	}
	return 0, 0
}

// Measure runs rows if too few have run for Rate to tell.
func (f *Filler) Measure(ctx context.Context) error {
	loaded, err := f.source.open(ctx)
	if err != nil {
		return err
	}
	m, ok := loaded.(interface{ Measure(context.Context) error })
	if !ok {
		return nil
	}
	return m.Measure(ctx)
}

// Rate returns the tokens of model rows that run in a second, 0 if not known yet.
func (f *Filler) Rate() float64 {
	f.source.mutex.Lock()
	defer f.source.mutex.Unlock()
	m, ok := f.source.loaded.(interface{ Rate() float64 })
	if ok {
		return m.Rate()
	}
	return 0
}

// cancelled returns ctx.Err() if ctx has ended and err is not nil, else err.
func cancelled(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// OpenOptions say which model fills, and where the model runs. The zero value
// means the default model on the best device that the machine has.
type OpenOptions struct {
	// Model is the name of a model or the folder of a bundle; "" means the default
	// model: that of the variable INFILL_MODEL, or else the built-in one.
	Model string
	// Device is "auto" (or ""), "cpu", "cuda" or "cuda:N".
	Device string
	// Threads is the number of cores to use on a CPU, each for a model call; 0 means
	// all. Results do not depend on it.
	Threads int
	// FindLibrary, if not nil, returns the path of the onnxruntime library when
	// the model loads. If FindLibrary is nil, package lm finds the library, or
	// downloads it silently.
	FindLibrary func(ctx context.Context) (path string, err error)
	// Loaded, if not nil, is called with the model as soon as the model is ready to run.
	Loaded func(Model)
}

// Open reads and verifies a bundle and its tokenizer. It does not load
// onnxruntime: the first call that runs the model does, so that an error in a
// template appears at once. The caller closes the filler.
func Open(o OpenOptions) (*Filler, error) {
	err := lm.CheckLimits()
	if err != nil {
		return nil, err
	}
	bundle, err := models.Open(o.Model)
	if err != nil {
		return nil, err
	}
	err = lm.CheckDevice(bundle, o.Device)
	if err != nil {
		return nil, err
	}
	tokenizer, err := bundle.Tokenizer()
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", bundle.Name, err)
	}
	f := newFiller(tokenizer, bundle.Config.MaxPositions, func(ctx context.Context) (LanguageModel, error) {
		options := lm.Options{MaskID: tokenizer.MaskID(), SeparatorID: tokenizer.SeparatorID(), Device: o.Device,
			Threads: o.Threads}
		if o.FindLibrary != nil {
			path, err := o.FindLibrary(ctx)
			if err != nil {
				return nil, err
			}
			options.Library = path
		}
		return lm.Open(ctx, bundle, options)
	})
	if o.Loaded != nil {
		f.source.ready = o.Loaded
	}
	f.source.describe(lm.Description{Name: bundle.Name, SHA256: bundle.SHA256, Segments: bundle.Config.Segments,
		NoGradient: bundle.NoGradient()})
	return f, nil
}

// vocabulary is a tokenizer with properties of its tokens, for rules and layouts.
type vocabulary struct {
	tokenizer *tokenize.Tokenizer
	fillable  []int
	classes   func() []tokenClass // class of each token, [vocabulary]
	reads     func() []string     // text of each word or piece, else "", [vocabulary]
	lower     func() []string     // the same in lower case
	shown     func() []string     // what each token shows, in lower case, [vocabulary]
	all       func() []int        // every token id
	kinds     sync.Map            // cache of rules.kinds
	lists     sync.Map            // cache of vocabulary.list
}

func newVocabulary(tokenizer *tokenize.Tokenizer) *vocabulary {
	v := &vocabulary{tokenizer: tokenizer, fillable: tokenizer.Fillable()}
	v.classes = sync.OnceValue(func() []tokenClass { return classify(tokenizer) })
	v.reads = sync.OnceValue(v.readTokens)
	v.all = sync.OnceValue(func() []int {
		ids := make([]int, tokenizer.VocabularySize())
		for id := range ids {
			ids[id] = id
		}
		return ids
	})
	v.shown = sync.OnceValue(func() []string {
		texts := make([]string, tokenizer.VocabularySize())
		for id := range texts {
			texts[id] = strings.ToLower(tokenizer.Spelled([]int{id}))
		}
		return texts
	})
	v.lower = sync.OnceValue(func() []string {
		texts := slices.Clone(v.reads())
		for i, text := range texts {
			texts[i] = strings.ToLower(text)
		}
		return texts
	})
	return v
}

// A tokenClass says whether a token is a word, and whether it continues a word.
type tokenClass uint8

const (
	wordToken       tokenClass = 1 << iota // only letters and digits
	continuingToken                        // continues the word on its left
)

func classify(t *tokenize.Tokenizer) []tokenClass {
	classes := make([]tokenClass, t.VocabularySize())
	for id := range classes {
		if t.Word(id) {
			classes[id] |= wordToken
		}
		if t.Continues(id) {
			classes[id] |= continuingToken
		}
	}
	return classes
}

// readTokens returns the text of each token that is a word or a piece of one,
// and "" for other tokens, [vocabulary].
func (v *vocabulary) readTokens() []string {
	reads := make([]string, v.tokenizer.VocabularySize())
	for _, id := range v.fillable {
		if v.classes()[id]&wordToken != 0 {
			reads[id] = v.tokenizer.Piece(id)
		}
	}
	return reads
}

func (v *vocabulary) begins(letters string) int {
	texts := v.reads()
	if !v.tokenizer.Cased() {
		texts = v.lower()
		letters = strings.ToLower(letters)
	}
	count := 0
	for id, text := range texts {
		if v.classes()[id]&continuingToken == 0 && len(text) > len(letters) && strings.HasPrefix(text, letters) {
			count++
		}
	}
	return count
}

// candidate reads text as a fill of b, which continues a word that b touches.
func (v *vocabulary) candidate(text string, b tokenize.Blank) ([]int, error) {
	if b.TouchesLeft {
		return v.tokenizer.Continuation(text)
	}
	return v.tokenizer.Candidate(text)
}

// wordOf returns the word that the pieces of a blank make, or "" for no word.
func (v *vocabulary) wordOf(ids []int) string {
	text := ""
	for i, id := range ids {
		class := v.classes()[id]
		if class&wordToken == 0 || i > 0 && class&continuingToken == 0 {
			return ""
		}
		text += v.reads()[id]
	}
	return text
}
