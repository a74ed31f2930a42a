package samplers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// Options are the settings of all kernels. A zero field stands for the
// kernel's default. [New] refuses a setting the kernel has no use for.
type Options struct {
	// StepSize is α in the convention of the package, +Inf for no penalty.
	StepSize float64
	// Balance is the balancing function; the zero value is the square root.
	Balance Balance
	// Preconditioner is g, one value above 0 per slot: α g_j is the slot's
	// own step size.
	Preconditioner []float64
	// Temperature T samples from exp(U/T).
	Temperature float64
	// Terms, when not 0, is the size of the random subset of the energy's
	// terms that each step takes the gradient of. TermStream draws the
	// subset; it must not be a chain's stream.
	Terms      int
	TermStream *rand.Rand
}

// Description tells what a registered kernel is.
type Description struct {
	Name  string // as [New] takes it
	Title string // in words
	Paper string // authors, title, year
	// Exact tells whether the chain's stationary law is the target.
	Exact bool
	// Target is what the chain converges to.
	Target string
	// Cost is what one step of one chain evaluates.
	Cost string
	// Tunable tells whether the kernel is a [StepSizer].
	Tunable bool
}

// entry is one kernel of the registry.
type entry struct {
	Description
	// refused says, by option, why the kernel has no use for it.
	refused map[option]string
	make    func(Target, Options) (Kernel, error)
}

// An option is a setting a kernel may refuse.
type option string

const (
	stepSizeOption       option = "step size"
	balanceOption        option = "balance"
	preconditionerOption option = "preconditioner"
	termsOption          option = "stochastic gradient"
)

// given lists the refusable options that are set.
func (o Options) given() []option {
	var given []option
	if o.StepSize != 0 {
		given = append(given, stepSizeOption)
	}
	if o.Balance != (Balance{}) {
		given = append(given, balanceOption)
	}
	if o.Preconditioner != nil {
		given = append(given, preconditionerOption)
	}
	if o.Terms != 0 {
		given = append(given, termsOption)
	}
	return given
}

const (
	onlyExp   = "exp(U) on the categories"
	oneForAll = "1 energy and gradient"
)

// refusals gives one reason for several options.
func refusals(reason string, options ...option) map[option]string {
	refused := make(map[option]string, len(options))
	for _, o := range options {
		refused[o] = reason
	}
	return refused
}

// registry is the one list of kernels, in the order of the documentation.
func registry() []entry {
	return []entry{
		{
			Description: Description{
				Name: "gibbs", Title: "Gibbs on the target's conditionals, random scan",
				Paper:  "Wang and Cho, BERT has a Mouth, and It Must Speak, 2019",
				Exact:  false,
				Target: "exp(U) if the conditionals are its own; no exact joint target for a masked language model",
				Cost:   "1 conditional",
			},
			refused: refusals("it draws from the conditionals as they are", stepSizeOption, balanceOption, preconditionerOption, termsOption),
			make:    func(t Target, o Options) (Kernel, error) { return NewGibbs(t, o) },
		},
		{
			Description: Description{
				Name: "gwg", Title: "Gibbs with gradients",
				Paper: "Grathwohl et al., Oops I Took A Gradient, ICML 2021",
				Exact: true, Target: onlyExp, Cost: oneForAll,
			},
			refused: refusals("it moves exactly one slot a step", stepSizeOption, preconditionerOption),
			make:    func(t Target, o Options) (Kernel, error) { return NewGWG(t, o) },
		},
		{
			Description: Description{
				Name: "dula", Title: "discrete unadjusted Langevin",
				Paper: "Zhang, Liu and Liu, A Langevin-like Sampler for Discrete Distributions, ICML 2022",
				Exact: false, Target: "its own law, near exp(U) for a small step size", Cost: oneForAll, Tunable: true,
			},
			make: func(t Target, o Options) (Kernel, error) { return NewDULA(t, o) },
		},
		{
			Description: Description{
				Name: "dmala", Title: "discrete Metropolis-adjusted Langevin",
				Paper: "Zhang, Liu and Liu, A Langevin-like Sampler for Discrete Distributions, ICML 2022",
				Exact: true, Target: onlyExp, Cost: oneForAll, Tunable: true,
			},
			make: func(t Target, o Options) (Kernel, error) { return NewDMALA(t, o) },
		},
	}
}

// Descriptions lists the registered kernels.
func Descriptions() []Description {
	entries := registry()
	list := make([]Description, len(entries))
	for i, e := range entries {
		list[i] = e.Description
	}
	return list
}

// Names lists the names that [New] takes.
func Names() []string {
	entries := registry()
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	return names
}

// New makes a kernel by name. The error of an unknown name lists the valid
// ones; that of a setting the kernel has no use for says why; that of a target
// that lacks what the kernel needs matches [ErrUnsupported].
func New(name string, target Target, o Options) (Kernel, error) {
	for _, e := range registry() {
		if e.Name != name {
			continue
		}
		for _, given := range o.given() {
			if reason, ok := e.refused[given]; ok {
				return nil, fmt.Errorf("%s has no %s: %s", name, given, reason)
			}
		}
		if err := checkTarget(target); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if o.Temperature != 0 && o.Temperature != 1 {
			tempered, err := NewTempered(target, o.Temperature)
			if err != nil {
				return nil, err
			}
			target = tempered
		}
		if math.IsNaN(o.Temperature) {
			return nil, checkTemperature(o.Temperature)
		}
		return e.make(target, o)
	}
	return nil, fmt.Errorf("unknown sampler %q: valid are %s", name, strings.Join(Names(), ", "))
}
