package infill

import "context"

// A Method answers a request: [Search], [Draws] or [Chains]. What differs between
// methods is asked of the method: nothing else compares their names.
type Method interface {
	// Name returns MethodSearch, MethodDraws or MethodChains.
	Name() string

	// random reports whether the seed changes the answer.
	random() bool
	// settled returns the method with its defaults written out. The other
	// methods are called on settled methods.
	settled() Method
	// check returns an *OptionError for a value that r or the model m cannot have.
	check(r *Request, m Model) error
	// fits returns an *OptionError if the method cannot answer the plan.
	fits(p *Plan) error
	// cost returns upper bounds of the model rows that a plan needs, 0 if only
	// seconds bound them, and of the bytes of memory, without the model's.
	cost(p *Plan) (rows int, bytes float64)
	// likely returns the rows and bytes needed as a rule, at most those of cost.
	likely(p *Plan) (rows int, bytes float64)
	// heavy reports whether the method asks for so many rows that others go first.
	heavy() bool
	// solve finds fills, and tells w.observe on the way. When it fails, the
	// answer has the fills found so far; it is nil if there are none.
	solve(ctx context.Context, w *work) (*answer, error)
}

var _, _, _ Method = Search{}, Draws{}, Chains{}

// Chains returns the method of the request, settled, if it has chains.
func (r Request) Chains() (c Chains, ok bool) {
	c, ok = r.Settled().Method.(Chains)
	return c, ok
}
