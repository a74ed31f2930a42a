package samplers

import (
	"flag"
	"slices"
)

// Description describes a sampler.
type Description struct {
	Name  string // the name that [New] takes
	Title string // the name in words
	Paper string // authors, title, year
	Exact bool   // whether the stationary law of the chain is the target
	// Interacting reports whether the move of a chain depends on the other chains.
	Interacting bool
	Target      string // law to which the chain converges
	Cost        string // evaluations in one step of one chain
	// Conditionals reports whether the target must be a [ConditionalTarget] or
	// a [MaskedConditionalTarget].
	Conditionals bool
	Settings     []Setting // settings that a [Spec] can have, by name
	Tunes        string    // the setting that a warm-up tunes; "" if there is none
	OnText       *OnText   // nil if the sampler cannot run on the slots of a text
}

// A Setting describes a setting of a sampler.
type Setting struct {
	Name, Help string
	Default    string // "" if no value means the same as leaving the setting out
}

// OnText says how to run a sampler on text, over tens of thousands of
// categories and with a language model's gradients.
type OnText struct {
	Settings []Assignment // settings that differ from the sampler's own defaults
	// Gradient is the gradient that suits the sampler best: "local" (the direct
	// term, which needs no backward pass) or "full". It is "" if the sampler
	// uses no gradient.
	Gradient string
}

// entry describes one sampler in the registry. The sampler's file defines it.
type entry struct {
	Description
	settings func() settings
	// adaptation returns the adaptation that tunes the setting named Tunes.
	adaptation func(mover) adaptation
}

const (
	onlyExp   = "exp(U) on the categories"
	oneForAll = "1 energy and gradient"
)

// registry returns the entries of all samplers, in the order of the documentation.
func registry() []entry {
	return []entry{
		gibbsEntry(),
		mlmMetropolisEntry(),
		gwgEntry(),
		gwgXEntry(),
		pathAuxiliaryEntry(),
		dulaEntry(),
		dmalaEntry(),
		adaptiveDMALAEntry(),
		dlmcEntry(),
		dlmcEulerEntry(),
		cyclicalEntry(),
		ordinalDULAEntry(),
		ordinalDMALAEntry(),
		locallyBalancedEntry(),
		blockGibbsEntry(),
		hammingBallEntry(),
		latentGibbsEntry(),
		relaxedMALAEntry(),
		relaxedHMCEntry(),
		steinDescentEntry(),
	}
}

// find returns the entry of a name, or the zero entry for an unknown name.
func find(name string) entry {
	for _, e := range registry() {
		if e.Name == name {
			return e
		}
	}
	return entry{}
}

// Describe returns the description of a sampler, or the zero Description for
// an unknown name.
func Describe(name string) Description {
	e := find(name)
	if e.settings != nil {
		flags := flag.NewFlagSet(name, flag.ContinueOnError)
		e.settings().register(flags)
		flags.VisitAll(func(f *flag.Flag) {
			e.Settings = append(e.Settings, Setting{f.Name, f.Usage, f.DefValue})
		})
	}
	return e.Description
}

// Has reports whether the sampler has a setting.
func (d Description) Has(setting string) bool {
	return slices.ContainsFunc(d.Settings, func(s Setting) bool { return s.Name == setting })
}

// Names lists the names of all samplers, in the order of the documentation.
func Names() []string {
	entries := registry()
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	return names
}
