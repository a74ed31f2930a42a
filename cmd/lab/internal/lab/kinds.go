package lab

import (
	"context"
	"flag"
	"strings"

	"infill/samplers"
)

// A Kind is a kind of target.
type Kind struct {
	Name, Title, Help string
	setup
}

// setup holds the parameters of a kind.
type setup interface {
	register(f *flag.FlagSet)
	// problem finds exact means with random numbers of the seed, where it needs any.
	problem(ctx context.Context, seed uint64) (*Problem, error)
}

// Kinds lists the kinds of targets, with their default parameters.
func Kinds() []*Kind {
	ising, potts, table, rbm := defaultIsing(), defaultPotts(), defaultTable(), defaultRBM()
	return []*Kind{
		{"ising", "an Ising model", "An Ising model on a torus, U = a Σ_i Σ_k s_i s_k + b Σ_i s_i with s = ±1, where " +
			"the\ndouble sum counts every edge twice, as in the papers.", &ising},
		{"potts", "a Potts model",
			"A Potts model on a torus, U = J Σ_edges [θ_i = θ_k] + Σ_i h[θ_i], every edge once.", &potts},
		{"rbm", "a restricted Boltzmann machine", "A restricted Boltzmann machine, trained here on bars and stripes " +
			"by contrastive\ndivergence, or random. The chains' states are also compared with reference draws, " +
			"by\nthe maximum mean discrepancy (MMD).", &rbm},
		{"fhmm", "a factorial hidden Markov model", "The states of a factorial hidden Markov model given what was " +
			"observed: y_t is a weighted\nsum of binary chains that rarely change, with noise. Exact means come from " +
			"the forward and\nbackward recursions.",
			&fhmmOptions{times: 100, factors: 10, noise: 0.5, first: 0.1, keep: 0.95, seed: 1}},
		{"mixture", "a Bernoulli mixture", "A mixture of laws under which binary slots are independent. Means are " +
			"exact, and the\nchains' states are compared with exact draws (MMD).",
			&mixtureOptions{slots: 50, components: 10, scale: 1, reference: 500, seed: 1}},
		{"contacts", "the Potts model of a protein", "The Potts model of a protein family, U = Σ_i h_i[x_i] + " +
			"Σ_{i<j} J_ij[x_i, x_j], made up or\nfrom a file.", &sampledContacts{defaultContacts()}},
		{"table", "a random table", "A table of random energies, one for each state. Errors of the gradient and of " +
			"the\nconditionals make it as unkind as a language model: proposals then see estimates\nonly, and the " +
			"conditionals belong to no joint distribution.", &table},
	}
}

func flagsOf(s setup) *flag.FlagSet {
	f := flag.NewFlagSet("", flag.ContinueOnError)
	s.register(f)
	return f
}

// parameters are some of the flags of a setup, as they are set.
func parameters(s setup, names ...string) []parameter {
	f := flagsOf(s)
	list := make([]parameter, len(names))
	for i, name := range names {
		list[i] = parameter{name, f.Lookup(name).Value.String()}
	}
	return list
}

// NewProblem makes a target that is written as samplers are: "ising:size=3x3,coupling=0.2", "potts:field=0/0.1/0.2".
func NewProblem(ctx context.Context, text string, seed uint64) (*Problem, error) {
	list, err := samplers.ParseList(text)
	if err != nil {
		return nil, refuse("target", "%w", err)
	}
	var names []string
	for _, k := range Kinds() {
		if names = append(names, k.Name); k.Name != list[0].Name || len(list) != 1 {
			continue
		}
		flags := flagsOf(k)
		for _, a := range list[0].Settings {
			f := flags.Lookup(a.Setting)
			if f == nil {
				return nil, refuse("target", "%s has no %s", k.Name, a.Setting)
			}
			if err := f.Value.Set(a.Value); err != nil {
				return nil, refuse(a.Setting, "%q is not %w", a.Value, err)
			}
		}
		return k.problem(ctx, seed)
	}
	return nil, refuse("target", "%q is not one of %s", text, strings.Join(names, ", "))
}
