package lab

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// An OptionError is an option that cannot be taken. Its text begins with the option's name as the command line has it.
type OptionError struct {
	Option string
	Err    error
}

func (e *OptionError) Error() string { return e.Option + ": " + e.Err.Error() }
func (e *OptionError) Unwrap() error { return e.Err }

func refuse(option, format string, args ...any) error {
	return &OptionError{option, fmt.Errorf(format, args...)}
}

// A parameter is one setting of a target, in the order of the signature.
type parameter struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func described(kind string, parameters []parameter) string {
	for _, p := range parameters {
		kind += ", " + p.Name + " " + p.Value
	}
	return kind
}

// truth is what is known of a target's means, and how.
type truth struct {
	// Method tells how: exact methods have no Run.
	Method string
	// Means are of the observables, in their order.
	Means []float64
	// Run is set when the means are estimates of a long run themselves.
	Run *truthRun
}

// truthRun tells how good an estimated truth is.
type truthRun struct {
	Sampler string
	Chains  int
	Steps   int
	// StandardError is the root mean square over the observables of the
	// standard errors between chains: no log RMSE is known below its log.
	StandardError float64
	// RHat is the split R-hat of the chains' mean observable; absent where it is not defined.
	RHat *float64
}

// observable is a number of one slot.
type observable struct {
	slot  int
	value []float64 // by category
}

// A Problem is a target with what a comparison needs to know of it.
type Problem struct {
	Kind       string
	Parameters []parameter
	Target     samplers.Target
	Truth      *truth
	// reference holds states that stand for the target, to measure the
	// maximum mean discrepancy from; nil when it is not measured.
	Reference *reference
	// training tells how an RBM was trained; nil for other targets.
	Training *training
	// consistent tells whether the target's conditionals are those of π, so that Gibbs is exact.
	consistent  bool
	observables []observable
	// independent is a law of every slot by itself to start chains from,
	// [slots][categories]; nil when the target has none.
	independent [][]float64
}

// initials lists where chains can start: each slot uniformly, or each slot by the target's own law without interactions
// (Ising and Potts: the field alone; RBM: the data's means).
func initials() []string { return []string{"uniform", "independent"} }

// positions draws the start of each chain, [chains × slots].
func (p *Problem) positions(initial string, streams []*rand.Rand) ([]int, error) {
	switch initial {
	case "uniform":
		return samplers.RandomPositions(p.Target, streams), nil
	case "independent":
		if p.independent == nil {
			return nil, refuse("initial", "independent has no meaning for a %s: choose uniform", p.Kind)
		}
		var positions []int
		for _, stream := range streams {
			for _, law := range p.independent {
				positions = append(positions, drawFrom(law, stream))
			}
		}
		return positions, nil
	}
	return nil, refuse("initial", "%q is not one of %s", initial, strings.Join(initials(), ", "))
}

func drawFrom(law []float64, r *rand.Rand) int {
	u := r.Float64()
	for v, p := range law {
		if u -= p; u < 0 {
			return v
		}
	}
	return len(law) - 1
}

// truths lists how the exact means are found: exactly where possible and else
// by a long run, exactly or not at all, or by a long run.
func truths() []string { return []string{"auto", "exact", "run"} }

// truthOptions set how the exact means are found.
type truthOptions struct {
	method string
	sweeps int // of a long run; 0 for 4,000. A quarter more goes before as warm-up.
}

const truthChains = 16

func (o *truthOptions) register(f *flag.FlagSet) {
	if o.method == "" {
		o.method = truths()[0]
	}
	ChoiceVar(f, &o.method, "truth", truths(), "how the exact means are found, exactly or by a long run")
	WholeVar(f, &o.sweeps, "truth-sweeps", 0, 1<<30,
		"sweeps of each of the 16 chains of a long run of Gibbs; 0 is 4000")
}

// errTooLarge marks a target too large for exact means.
var errTooLarge = errors.New("too large for exact means")

// settle finds the truth: exact, when it may be, or a long run of the named sampler. sweep is how many of its steps
// visit every slot once; pooled says that all slots have the same law.
func (p *Problem) settle(ctx context.Context, o truthOptions, seed uint64,
	exact func() (string, []float64, error), sampler string, sweep int, pooled bool) error {
	if o.method != "run" {
		method, means, err := exact()
		if err == nil {
			p.Truth = &truth{Method: method, Means: means}
			return nil
		}
		if !errors.Is(err, errTooLarge) {
			return err
		}
		if o.method == "exact" {
			return refuse("truth", "%w: choose run", err)
		}
	}
	if o.sweeps == 0 {
		o.sweeps = 4000
	}
	truth, err := p.longRun(ctx, sampler, o.sweeps*sweep, max(sweep/8, 1), seed, pooled)
	if err != nil {
		return fmt.Errorf("exact means by a long run: %w", err)
	}
	p.Truth = truth
	return nil
}

// longRun estimates the means by an exact sampler, from every thin-th state:
// those between differ in a few slots only, and would cost more than they tell.
func (p *Problem) longRun(ctx context.Context, sampler string, steps, thin int, seed uint64,
	pooled bool) (*truth, error) {
	kernel, err := samplers.New(sampler, p.Target)
	if err != nil {
		return nil, err
	}
	streams := samplers.Streams(seed, "truth", truthChains)
	sums := make([][]float64, truthChains)
	for c := range sums {
		sums[c] = make([]float64, len(p.observables))
	}
	// The path of the mean observable, thinned, shows whether chains agree.
	paths := make([][]float64, truthChains)
	every, seen := max(steps/1000/thin, 1)*thin, 0.0
	plan := samplers.Plan{Streams: streams, WarmUp: max(steps/4, 1), Steps: steps}
	_, err = samplers.Sample(ctx, kernel, samplers.RandomPositions(p.Target, streams), plan,
		func(s samplers.Step) error {
			step := s.Number - plan.WarmUp
			if s.WarmUp || step%thin != 0 {
				return nil
			}
			seen++
			for c := range sums {
				position, total := s.State.Position(c), 0.0
				for i, o := range p.observables {
					x := o.value[position[o.slot]]
					sums[c][i] += x
					total += x
				}
				if step%every == 0 {
					paths[c] = append(paths[c], total/float64(len(p.observables)))
				}
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	// Which observables share a law: all of the same category.
	group := make([]int, len(p.observables))
	for i := range group {
		group[i] = i
		if pooled {
			group[i] = i % (len(p.observables) / len(p.Target.Categories()))
		}
	}
	groups := slices.Max(group) + 1
	means, squares := make([]float64, groups), 0.0
	for g := range means {
		byChain := make([]float64, truthChains)
		for c := range byChain {
			n := 0.0
			for i := g; i < len(group); i += groups {
				byChain[c] += sums[c][i] / seen
				n++
			}
			byChain[c] /= n
		}
		mean, deviation := stat.MeanStdDev(byChain, nil)
		means[g] = mean
		squares += math.Pow(stat.StdErr(deviation, truthChains), 2) / float64(groups)
	}
	truth := &truth{"a long run of " + sampler, make([]float64, len(group)),
		&truthRun{Sampler: sampler, Chains: truthChains, Steps: steps, StandardError: math.Sqrt(squares)}}
	if r := samplers.SplitRHat(paths); logmath.Finite(r) {
		truth.Run.RHat = &r
	}
	for i, g := range group {
		truth.Means[i] = means[g]
	}
	return truth, nil
}

// means turns the probabilities of each category of each slot, [slots × K], into the observables' means.
func (p *Problem) means(m []float64) []float64 {
	wide := slices.Max(p.Target.Categories())
	means := make([]float64, len(p.observables))
	for i, o := range p.observables {
		for v, x := range o.value {
			means[i] += x * m[o.slot*wide+v]
		}
	}
	return means
}

// numbered makes one observable per slot, with the same number for each category at every slot.
func numbered(slots int, value ...float64) []observable {
	list := make([]observable, slots)
	for j := range list {
		list[j] = observable{j, value}
	}
	return list
}

// indicators makes one observable for each category of each slot.
func indicators(categories []int) []observable {
	var list []observable
	for j, k := range categories {
		for v := range k {
			value := make([]float64, k)
			value[v] = 1
			list = append(list, observable{j, value})
		}
	}
	return list
}

// softmax are the probabilities that logarithms are in proportion to.
func softmax(logs []float64) []float64 {
	law, total := make([]float64, len(logs)), floats.LogSumExp(logs)
	for v, l := range logs {
		law[v] = math.Exp(l - total)
	}
	return law
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// isingOptions set an Ising model on a torus; by default it is the 5 × 5 model of
// the discrete Langevin paper, section 7.1.
type isingOptions struct {
	rows, columns   int
	coupling, field float64
	truth           truthOptions
}

func defaultIsing() isingOptions {
	return isingOptions{rows: 5, columns: 5, coupling: 0.1, field: 0.2}
}

func (o *isingOptions) register(f *flag.FlagSet) {
	sizeVar(f, &o.rows, &o.columns, "rows and columns of the lattice")
	numberVar(f, &o.coupling, "coupling", "", "a; negative is allowed")
	numberVar(f, &o.field, "field", "", "b")
	o.truth.register(f)
}

// problem has the spins as observables.
func (o isingOptions) problem(ctx context.Context, seed uint64) (*Problem, error) {
	target, err := targets.NewIsing(o.rows, o.columns, o.coupling, o.field)
	if err != nil {
		return nil, err
	}
	sites := o.rows * o.columns
	p := &Problem{
		Kind: "ising", Target: target, consistent: true,
		Parameters:  parameters(&o, "size", "coupling", "field"),
		observables: numbered(sites, -1, 1),
	}
	up := 1 / (1 + math.Exp(-2*o.field))
	p.independent = slices.Repeat([][]float64{{1 - up, up}}, sites)
	return p, p.settle(ctx, o.truth, seed, func() (string, []float64, error) {
		if o.field == 0 {
			return "symmetry under a flip of all spins", make([]float64, sites), nil
		}
		return p.lattice(torus{
			rows: o.rows, columns: o.columns,
			edge: [][]float64{{2 * o.coupling, -2 * o.coupling}, {-2 * o.coupling, 2 * o.coupling}},
			site: []float64{-o.field, o.field},
		})
	}, "gibbs", sites, true)
}

// lattice is the exact mean of a torus by its transfer matrix.
func (p *Problem) lattice(t torus) (string, []float64, error) {
	law, err := t.transferMatrix()
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", errTooLarge, err)
	}
	return "transfer matrix", p.means(slices.Repeat(law, t.rows*t.columns)), nil
}

// pottsOptions set a Potts model on a torus, by default 4 × 4 of three states.
type pottsOptions struct {
	rows, columns int
	coupling      float64
	field         []float64 // one value for each state
	states        int       // not 0: that many, without a field
	truth         truthOptions
}

func defaultPotts() pottsOptions {
	return pottsOptions{rows: 4, columns: 4, coupling: 0.5, field: []float64{0.2, 0, -0.2}}
}

func (o *pottsOptions) register(f *flag.FlagSet) {
	sizeVar(f, &o.rows, &o.columns, "rows and columns of the lattice")
	numberVar(f, &o.coupling, "coupling", "", "J; negative is allowed")
	NumbersVar(f, &o.field, "field", "h, a value for each state")
	WholeVar(f, &o.states, "states", 1, maxCategories, "instead of a field: that many states without one")
	o.truth.register(f)
}

// problem has the indicators of every state of every site as observables.
func (o pottsOptions) problem(ctx context.Context, seed uint64) (*Problem, error) {
	if o.states > 0 {
		if !slices.Equal(o.field, defaultPotts().field) {
			return nil, refuse("states", "it excludes a field: give one of the two")
		}
		o.field = make([]float64, o.states)
	}
	if len(o.field) > maxCategories {
		return nil, refuse("field", "%d states, and there can be %d", len(o.field), maxCategories)
	}
	target, err := targets.NewPotts(o.rows, o.columns, o.coupling, o.field)
	if err != nil {
		return nil, err
	}
	edge := make([][]float64, len(o.field))
	for v := range edge {
		edge[v] = make([]float64, len(o.field))
		edge[v][v] = o.coupling
	}
	sites := o.rows * o.columns
	p := &Problem{
		Kind: "potts", Target: target, consistent: true,
		Parameters:  parameters(&o, "size", "coupling", "field"),
		observables: indicators(target.Categories()),
		independent: slices.Repeat([][]float64{softmax(o.field)}, sites),
	}
	return p, p.settle(ctx, o.truth, seed, func() (string, []float64, error) {
		if slices.Min(o.field) == slices.Max(o.field) {
			means := slices.Repeat([]float64{1 / float64(len(o.field))}, len(p.observables))
			return "symmetry of the states", means, nil
		}
		return p.lattice(torus{o.rows, o.columns, edge, o.field})
	}, "gibbs", sites, true)
}

// tableOptions set a table of random energies, by default of three slots.
type tableOptions struct {
	categories []int
	targets.TableOptions
	seed uint64
}

func defaultTable() tableOptions {
	return tableOptions{[]int{4, 4, 4}, targets.TableOptions{Scale: 1, Terms: 1}, 1}
}

func (o *tableOptions) register(f *flag.FlagSet) {
	NumbersVar(f, &o.categories, "categories", "number of categories of each slot")
	numberVar(f, &o.Scale, "scale", " above 0", "standard deviation of the energies, in nats")
	numberVar(f, &o.GradientError, "gradient-error", " of 0 or more", "standard deviation of the gradient's error")
	numberVar(f, &o.ConditionalError, "conditional-error", " of 0 or more",
		"standard deviation of the conditionals' energies from the others")
	WholeVar(f, &o.Terms, "terms", 1, 1<<20, "terms of the energy, for stochastic gradients")
	seedVar(f, &o.seed, "seed of the energies")
}

// problem has the indicators of every category of every slot as observables.
func (o tableOptions) problem(ctx context.Context, _ uint64) (*Problem, error) {
	states := 1.0
	for _, k := range o.categories {
		states *= float64(k)
	}
	// A table also holds its gradient's errors, a number for each neighbour.
	if entries := states * float64(len(o.categories)*slices.Max(o.categories)*o.Terms); entries > 1<<24 {
		return nil, refuse("categories", "%s give a table of %.3g states, too large to keep with its gradients: take "+
			"fewer or smaller slots", joined(o.categories), states)
	}
	target, err := targets.NewTable(o.categories, samplers.Streams(o.seed, "table", 1)[0], o.TableOptions)
	if err != nil {
		return nil, err
	}
	p := &Problem{
		Kind: "table", Target: target, consistent: o.ConditionalError == 0,
		Parameters: parameters(&o, "categories", "scale", "gradient-error", "conditional-error", "terms",
			"target-seed"),
		observables: indicators(o.categories),
	}
	law, err := marginals(ctx, target)
	if err != nil {
		return nil, err
	}
	p.Truth = &truth{Method: fmt.Sprintf("enumeration of %.0f states", states), Means: p.means(law)}
	return p, nil
}
