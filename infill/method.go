package infill

import (
	"context"
	"time"

	"infill/lm"
)

// MethodChains stands for all samplers where methods are named. The Method of a
// Result is the sampler's own name.
const MethodChains = "chains"

// A Method answers a request: [Search], [Draws] or [Chains].
type Method interface {
	// settled returns the method with its defaults written out. The other
	// methods are called on settled methods.
	settled() Method
	// check returns an *OptionError for a value that cannot be used in r.
	check(r *Request) error
	// fits returns an *OptionError if the method cannot answer the plan.
	fits(p *Plan) error
	// cost returns upper bounds of the model rows that a plan needs, 0 if only
	// seconds bound them, and of the bytes of memory, without the model's.
	cost(p *Plan) (rows int, bytes float64)
	// likely returns the model rows that a plan needs as a rule, at most rows.
	likely(p *Plan, rows int) int
	// solve finds fills, and tells w.observe on the way. When it fails, the
	// answer has the fills found so far; it is nil if there are none.
	solve(ctx context.Context, w *work) (*answer, error)
}

var _, _, _ Method = Search{}, Draws{}, Chains{}

// work holds a plan while a method works on it.
type work struct {
	plan    *Plan
	model   LanguageModel
	began   time.Time
	observe func(Progress)
	rows    int           // model rows so far, without those of the answer
	roots   [][][]float32 // log-probabilities of each layout with all slots masked, [layouts][slots][vocabulary]
}

// tell gives the observer a progress, unless nobody observes.
func (w *work) tell(p Progress) {
	if w.observe != nil {
		p.Template = w.plan.Request.Template
		w.observe(p)
	}
}

// These are bytes of memory for the estimates of cost.
const (
	bytesOfState       = 512     // of a state beside its slots
	bytesOfConditional = 4 << 10 // of a beginning with its list, and those that lead to it
)

// common returns the bytes that every method needs: the answer, and the rows with
// all slots masked.
func (p *Plan) common() float64 {
	n := float64(p.Slots())
	vocabulary := float64(p.filler.tokenizer.VocabularySize())
	return float64(4*int(p.Request.Top)+64)*(bytesOfState+16*n) + 4*float64(len(p.layouts))*n*vocabulary
}

// oneCaller marks the calls of a method that asks for many rows, so that others go
// first.
func oneCaller(ctx context.Context, m Method) context.Context {
	_, chains := m.(Chains)
	return lm.OneCaller(ctx, chains)
}
