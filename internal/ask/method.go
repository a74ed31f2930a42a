package ask

import (
	"slices"

	"infill/infill"
	"infill/samplers"
)

// method is a method as those who ask choose and read it.
type method struct {
	zero infill.Method
	// chosenBy is the option that asks for the method; "" for a search.
	chosenBy string
	// columns are those of a table of fills that not every method fills.
	columns []string
}

// methods lists the methods: of those that are asked for, the last counts.
var methods = []method{
	{zero: infill.Search{}, columns: []string{"probability", "share", "proven", "left_out_at_most"}},
	{zero: infill.Draws{}, chosenBy: "samples", columns: []string{"probability", "count", "seed"}},
	{zero: infill.Chains{}, chosenBy: "sampler", columns: []string{"share", "share_error", "share_interval", "count",
		"final_count", "split_r_hat", "effective_draws", "seed"}},
}

// MethodFor returns the method that the options given choose, with its defaults: chains
// if a sampler is among them, draws if a number of samples is, else a search.
func MethodFor(given func(option string) bool) infill.Method {
	for _, m := range slices.Backward(methods) {
		if given(m.chosenBy) {
			return m.zero
		}
	}
	return infill.Search{}
}

// HasColumn reports whether a table of fills has a column, by the names of the methods of its
// results: a column that not every method fills needs one that does.
func HasColumn(column string, names []string) bool {
	fills := func(m method) bool { return slices.Contains(m.columns, column) }
	return !slices.ContainsFunc(methods, fills) || slices.ContainsFunc(names, func(name string) bool {
		at := slices.IndexFunc(methods, func(m method) bool { return m.zero.Name() == name })
		if at < 0 { // the name of a sampler
			at = len(methods) - 1
		}
		return fills(methods[at])
	})
}

// Samplers lists the samplers that can fill text by chains, dmala first.
func Samplers() []string {
	const first = "dmala"
	names := []string{first}
	for _, s := range samplers.All() {
		d := s.Describe()
		if d.OnText != nil && d.Name != first {
			names = append(names, d.Name)
		}
	}
	return names
}
