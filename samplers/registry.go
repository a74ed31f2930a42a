package samplers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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
	// Radius is the number of slots, or of draws of slots, of one step.
	Radius int
	// Block is the number of slots that are drawn together.
	Block int
	// Schedule is the cycle of step sizes and balances of acs.
	Schedule []Setting
	// Smoothing is the temperature t of the sigmoid that stands for a sign in
	// the continuous relaxations.
	Smoothing float64
	// Leapfrog is the number of leapfrog steps of r-hmc.
	Leapfrog int
	// Ladder, when not nil, runs the kernel under parallel tempering at these
	// temperatures, ascending; the first is sampled.
	Ladder []float64
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
	// uses are the options that mean something to the kernel; nature says why
	// the others do not.
	uses   []option
	nature string
	make   func(Target, Options) (Kernel, error)
	// adapt makes what tunes the kernel in a warm-up; nil for nothing.
	adapt func(Kernel) (Adaptation, error)
}

// An option is a setting a kernel may refuse.
type option string

const (
	stepSizeOption       option = "step size"
	balanceOption        option = "balance"
	preconditionerOption option = "preconditioner"
	termsOption          option = "stochastic gradient"
	radiusOption         option = "radius"
	blockOption          option = "block"
	scheduleOption       option = "schedule"
	smoothingOption      option = "smoothing"
	leapfrogOption       option = "leapfrog"
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
	if o.Radius != 0 {
		given = append(given, radiusOption)
	}
	if o.Block != 0 {
		given = append(given, blockOption)
	}
	if o.Smoothing != 0 {
		given = append(given, smoothingOption)
	}
	if o.Leapfrog != 0 {
		given = append(given, leapfrogOption)
	}
	if o.Schedule != nil {
		given = append(given, scheduleOption)
	}
	return given
}

const (
	onlyExp   = "exp(U) on the categories"
	oneForAll = "1 energy and gradient"
)

// registry is the one list of kernels, in the order of the documentation. Each
// entry stands in its kernel's file.
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
		pncgEntry(),
		gwlEntry(),
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

// Descriptions lists the registered kernels.
func Descriptions() []Description {
	entries := registry()
	list := make([]Description, len(entries))
	for i, e := range entries {
		list[i] = e.Description
	}
	return list
}

// Describe gives the description of one registered kernel; the zero value where
// none has the name.
func Describe(name string) Description { return find(name).Description }

// find is the entry of a name, the zero value where there is none.
func find(name string) entry {
	for _, e := range registry() {
		if e.Name == name {
			return e
		}
	}
	return entry{}
}

// AdaptationFor returns what tunes the named kernel in [WarmUp], with its
// defaults; nil when the kernel has nothing to tune. The kernel must be one
// that [New] made under that name.
func AdaptationFor(name string, kernel Kernel) (Adaptation, error) {
	if e := find(name); e.adapt != nil {
		return e.adapt(kernel)
	}
	return nil, nil
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

// NamesFor lists the kernels that can sample a target with default options.
func NamesFor(target Target) []string {
	var names []string
	for _, name := range Names() {
		if _, err := New(name, target, Options{}); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// New makes a kernel by name. The error of an unknown name lists the valid
// ones; that of a setting the kernel has no use for says why; that of a target
// that lacks what the kernel needs matches [ErrUnsupported].
func New(name string, target Target, o Options) (Kernel, error) {
	e := find(name)
	if e.make == nil {
		return nil, fmt.Errorf("unknown sampler %q: valid are %s", name, strings.Join(Names(), ", "))
	}
	for _, given := range o.given() {
		if !slices.Contains(e.uses, given) {
			return nil, fmt.Errorf("%s has no %s: %s", name, given, e.nature)
		}
	}
	if err := checkTarget(target); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if o.Ladder != nil {
		return NewParallelTempering(name, target, o)
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
