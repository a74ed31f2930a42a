// Package infill fills the slots of a text jointly: it samples all of them
// together from a masked language model by discrete Markov chain Monte Carlo,
// and ranks the fills by likelihood.
//
// The pipeline, in the order it runs: a template becomes token ids and slots
// (package tokenize); the model's log-probabilities with every slot masked
// narrow each slot to its candidates and give the chains their initial states;
// the model's energy over the slots is the target (package lm); a kernel of
// package samplers moves the chains, adapting its step size during a warm-up;
// the states after the warm-up are ranked.
package infill

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"infill/tokenize"
)

// Filler fills templates with one model. It serves several goroutines at once.
type Filler struct {
	tokenizer    *tokenize.Tokenizer
	fillable     []int
	maxPositions int

	load   func(ctx context.Context) (Model, error)
	mutex  sync.Mutex // guards the two below
	model  Model
	closed bool
}

// New makes a filler of a model and the tokenizer of the same bundle. Closing
// the model stays with the caller.
func New(model Model, tokenizer *tokenize.Tokenizer) *Filler {
	return newFiller(tokenizer, model.Positions(), func(context.Context) (Model, error) { return model, nil })
}

func newFiller(tokenizer *tokenize.Tokenizer, maxPositions int, load func(context.Context) (Model, error)) *Filler {
	return &Filler{tokenizer: tokenizer, fillable: tokenizer.Fillable(), maxPositions: maxPositions, load: load}
}

// ErrClosed is returned by calls on a closed filler.
var ErrClosed = errors.New("the filler is closed")

// open returns the model, loading it at the first call.
func (f *Filler) open(ctx context.Context) (Model, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.closed {
		return nil, ErrClosed
	}
	if f.model == nil {
		model, err := f.load(ctx)
		if err != nil {
			return nil, err
		}
		f.model = model
	}
	return f.model, nil
}

// Close releases the model that Open's filler has loaded, once the calls of the
// model that are running have ended.
func (f *Filler) Close() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.closed = true
	if c, ok := f.model.(interface{ Close() error }); ok {
		return c.Close()
	}
	return nil
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
