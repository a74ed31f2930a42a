package samplers

import (
	"flag"
	"slices"
)

// Description describes a sampler.
type Description struct {
	Name  string // as [New] takes it
	Title string // in words
	Paper string // authors, title, year
	Exact bool   // whether the chain's stationary law is the target
	// Interacting reports whether the move of a chain depends on the other chains.
	Interacting bool
	Target      string // the law that the chain converges to
	Cost        string // the evaluations of one step of one chain
	// Conditionals reports whether the target must be a [ConditionalTarget] or a [MaskedConditionalTarget].
	Conditionals bool
	Settings     []Setting // the settings that a [Spec] can have, by name
	Tunes        string    // the setting that a warm-up tunes; "" for none
	OnText       *OnText   // nil for samplers that cannot run on the slots of a text
}

// A Setting is a setting of a sampler.
type Setting struct {
	Name, Help string
	Default    string // "" if no value means the same as leaving it out
}

// OnText says how to run a sampler on text: over tens of thousands of categories, with a language model's gradients.
type OnText struct {
	Settings []Assignment // those that differ from the sampler's own defaults
	// Gradient is the gradient that serves it best: "local", the direct term, which needs no backward pass, or
	// "full"; "" if it uses none.
	Gradient string
}

// entry describes one kernel for the registry. The kernel's file defines it.
type entry struct {
	Description
	settings func() settings
	// adaptation makes the adaptation that tunes the setting named Tunes.
	adaptation func(mover) adaptation
}

const (
	onlyExp   = "exp(U) on the categories"
	oneForAll = "1 energy and gradient"
)

// registry is the one list of kernels, in the order of the documentation.
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

// find returns the entry of a name, the zero value if there is none.
func find(name string) entry {
	for _, e := range registry() {
		if e.Name == name {
			return e
		}
	}
	return entry{}
}

// Describe returns the description of a sampler; the zero value for an unknown name.
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

// Names lists the samplers, in the order of the documentation.
func Names() []string {
	entries := registry()
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	return names
}
