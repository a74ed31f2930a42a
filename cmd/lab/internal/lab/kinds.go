package lab

import (
	"context"
	"flag"
	"strings"

	"infill/samplers"
)

// A kind is a kind of targets.
type kind struct {
	name, title, help string
	// flags defines the parameters, with their defaults, and returns what makes the target of those that are set.
	flags func(f *flag.FlagSet) maker
}

// maker makes a target, and finds exact means with random numbers of the seed, where it needs any.
type maker func(ctx context.Context, seed uint64) (*distribution, error)

func kinds() []kind {
	return []kind{
		{"ising", "an Ising model", "An Ising model on a torus, U = a Σ_i Σ_k s_i s_k + b Σ_i s_i with s = ±1, where " +
			"the\ndouble sum counts every edge twice, as in the papers.", newIsing},
		{"potts", "a Potts model",
			"A Potts model on a torus, U = J Σ_edges [θ_i = θ_k] + Σ_i h[θ_i], every edge once.", newPotts},
		{"rbm", "a restricted Boltzmann machine", "A restricted Boltzmann machine, trained here on bars and stripes " +
			"by contrastive\ndivergence, or random. The chains' states are also compared with reference draws, " +
			"by\nthe maximum mean discrepancy (MMD).", newRBM},
		{"fhmm", "a factorial hidden Markov model", "The states of a factorial hidden Markov model given what was " +
			"observed: y_t is a weighted\nsum of binary chains that rarely change, with noise. Exact means come from " +
			"the forward and\nbackward recursions.", newHiddenChains},
		{"mixture", "a Bernoulli mixture", "A mixture of laws under which binary slots are independent. Means are " +
			"exact, and the\nchains' states are compared with exact draws (MMD).", newBernoulliMixture},
		{"contacts", "the Potts model of a protein", "The Potts model of a protein family, U = Σ_i h_i[x_i] + " +
			"Σ_{i<j} J_ij[x_i, x_j], made up.", newContacts},
		{"table", "a random table", "A table of random energies, one for each state. Errors of the gradient and of " +
			"the\nconditionals make it as unkind as a language model: proposals then see estimates\nonly, and the " +
			"conditionals belong to no joint distribution.", newTable},
	}
}

// settings are some of the flags, as they are set.
func settings(f *flag.FlagSet, names ...string) []parameter {
	list := make([]parameter, len(names))
	for i, name := range names {
		list[i] = parameter{name, f.Lookup(name).Value.String()}
	}
	return list
}

// newDistribution makes a target that is written as samplers are: "ising:size=3x3,coupling=0.2",
// "potts:field=0/0.1/0.2".
func newDistribution(ctx context.Context, text string, seed uint64) (*distribution, error) {
	list, err := samplers.ParseList(text)
	if err != nil {
		return nil, refuse("target", "%w", err)
	}
	var names []string
	for _, k := range kinds() {
		if names = append(names, k.name); k.name != list[0].Name || len(list) != 1 {
			continue
		}
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		make := k.flags(flags)
		for _, a := range list[0].Settings {
			f := flags.Lookup(a.Setting)
			if f == nil {
				return nil, refuse("target", "%s has no %s", k.name, a.Setting)
			}
			if err := f.Value.Set(a.Value); err != nil {
				return nil, refuse(a.Setting, "%q is not %w", a.Value, err)
			}
		}
		return make(ctx, seed)
	}
	return nil, refuse("target", "%q is not one of %s", text, strings.Join(names, ", "))
}
