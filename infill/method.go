package infill

import (
	"context"
	"slices"
)

// A Method answers a request: [Search], [Draws] or [Chains]. What differs between
// methods is asked of the method: nothing else compares their names.
type Method interface {
	// Name returns MethodSearch, MethodDraws or MethodChains.
	Name() string
	// Columns returns the columns of a table of fills that the method fills, of
	// those that not every method does.
	Columns() []string
	// Random reports whether the seed changes the answer.
	Random() bool
	// Asks says what the method, settled, needs that a server may bound.
	Asks() Asked
	// Within returns the method with at most a number of model rows, where a bound
	// on them is one of its options.
	Within(rows int) Method

	// chosenBy is the option that asks for the method; "" for a search.
	chosenBy() string
	// settled returns the method with its defaults written out. The other
	// methods are called on settled methods.
	settled() Method
	// check returns an *OptionError for a value that cannot be used in r, or
	// with the model m.
	check(r *Request, m Model) error
	// fits returns an *OptionError if the method cannot answer the plan.
	fits(p *Plan) error
	// cost returns upper bounds of the model rows that a plan needs, 0 if only
	// seconds bound them, and of the bytes of memory, without the model's.
	cost(p *Plan) (rows int, bytes float64)
	// likely returns the model rows and the bytes that a plan needs as a rule, at most those
	// of cost.
	likely(p *Plan) (rows int, bytes float64)
	// heavy reports whether the method asks for so many rows that others go first.
	heavy() bool
	// solve finds fills, and tells w.observe on the way. When it fails, the
	// answer has the fills found so far; it is nil if there are none.
	solve(ctx context.Context, w *work) (*answer, error)
}

// Asked is what a method needs that a server may bound.
type Asked struct {
	Samples    int     // draws or chains; 0 for none
	Candidates int     // of a slot: 0 for none, and None for the whole vocabulary
	Seconds    float64 // of the budget; 0 if it has none
}

// methods returns all methods: of those that are asked for, the last counts. Each has a
// file of its own, which says what it does.
func methods() []Method { return []Method{Search{}, Draws{}, Chains{}} }

var _, _, _ Method = Search{}, Draws{}, Chains{}

// MethodOf returns the method of a result by [Result.Method]. Its options are the
// defaults.
func MethodOf(name string) Method {
	all := methods()
	at := slices.IndexFunc(all, func(m Method) bool { return m.Name() == name })
	if at < 0 { // the name of a sampler
		return Chains{}
	}
	return all[at]
}

// SpecialColumns returns the columns of a table of fills that not every method fills.
func SpecialColumns() (columns []string) {
	for _, m := range methods() {
		columns = append(columns, m.Columns()...)
	}
	return columns
}

// MethodFor returns the method that the options given choose, with its defaults: chains
// if a sampler is among them, draws if a number of samples is, else a search.
func MethodFor(given func(option string) bool) Method {
	for _, m := range slices.Backward(methods()) {
		if given(m.chosenBy()) {
			return m
		}
	}
	return Search{}
}

// Chains returns the method of the request, settled, if it has chains.
func (r Request) Chains() (c Chains, ok bool) {
	c, ok = r.Settled().Method.(Chains)
	return c, ok
}
