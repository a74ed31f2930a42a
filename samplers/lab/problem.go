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

	"infill/samplers"
	"infill/samplers/targets"
)

// An OptionError is an option that cannot be taken. Its text begins with the
// option's name as the command line has it.
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

// truth is what is known of a target's means, and how.
type truth struct {
	// Method tells how: exact methods have no Run.
	Method string `json:"method"`
	// Means are of the observables, in their order.
	Means []float64 `json:"means"`
	// Run is set when the means are estimates of a long run themselves.
	Run *truthRun `json:"run,omitempty"`
}

// truthRun tells how good an estimated truth is.
type truthRun struct {
	Sampler string `json:"sampler"`
	Chains  int    `json:"chains"`
	Steps   int    `json:"steps"`
	// StandardError is the root mean square over the observables of the
	// standard errors between chains: no log RMSE is known below its log.
	StandardError float64 `json:"standard_error"`
	// RHat is the split R-hat of the chains' mean observable; absent where it
	// is not defined.
	RHat *float64 `json:"r_hat,omitempty"`
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
	// consistent tells whether the target's conditionals are those of π, so
	// that Gibbs is exact.
	consistent  bool
	observables []observable
	// independent is a law of every slot by itself to start chains from,
	// [slots][categories]; nil when the target has none.
	independent [][]float64
}

// initials lists where chains can start: each slot uniformly, or each slot by
// the target's own law without interactions (Ising and Potts: the field alone;
// RBM: the data's means).
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
	// Method is one of truths, "" for auto.
	Method string
	// Sweeps of a long run of Gibbs (block Gibbs for an RBM), by each of 16
	// chains; 0 for 4,000. A quarter is left out as warm-up.
	Sweeps int
	seed   uint64 // of a long run
}

const truthChains = 16

func (o *truthOptions) register(f *flag.FlagSet) {
	choiceVar(f, &o.Method, "truth", truths(), "how the exact means are found, exactly or by a long run")
	wholeVar(f, &o.Sweeps, "truth-sweeps", "sweeps of each of the 16 chains of a long run; 0 is 4000")
}

func (o truthOptions) seeded(seed uint64) truthOptions {
	o.seed = seed
	return o
}

func (o truthOptions) check() error {
	if o.Method != "" && !slices.Contains(truths(), o.Method) {
		return refuse("truth", "%q is not one of %s", o.Method, strings.Join(truths(), ", "))
	}
	if o.Sweeps < 0 {
		return refuse("truth-sweeps", "%d is not a whole number of 0 (for the default) or more", o.Sweeps)
	}
	return nil
}

// errTooLarge marks a target too large for exact means.
var errTooLarge = errors.New("too large for exact means")

// settle finds the truth: exact, when it may be, or a long run of the named
// sampler. sweep is how many of its steps visit every slot once; pooled says
// that all slots have the same law.
func (p *Problem) settle(ctx context.Context, o truthOptions, exact func() (string, []float64, error), sampler string, sweep int, pooled bool) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.Method != "run" {
		method, means, err := exact()
		if err == nil {
			p.Truth = &truth{Method: method, Means: means}
			return nil
		}
		if !errors.Is(err, errTooLarge) {
			return err
		}
		if o.Method == "exact" {
			return refuse("truth", "%w: choose run", err)
		}
	}
	if o.Sweeps == 0 {
		o.Sweeps = 4000
	}
	truth, err := p.longRun(ctx, sampler, o.Sweeps*sweep, max(sweep/8, 1), o.seed, pooled)
	if err != nil {
		return fmt.Errorf("exact means by a long run: %w", err)
	}
	p.Truth = truth
	return nil
}

// longRun estimates the means by an exact sampler, from every thin-th state:
// those between differ in a few slots only, and would cost more than they tell.
func (p *Problem) longRun(ctx context.Context, sampler string, steps, thin int, seed uint64, pooled bool) (*truth, error) {
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
	_, err = samplers.Sample(ctx, kernel, samplers.RandomPositions(p.Target, streams), plan, func(s samplers.Step) error {
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
	truth := &truth{
		Method: "a long run of " + sampler,
		Means:  make([]float64, len(group)),
		Run: &truthRun{
			Sampler: sampler, Chains: truthChains, Steps: steps,
			StandardError: math.Sqrt(squares),
		},
	}
	if r := samplers.SplitRHat(paths); finite(r) {
		truth.Run.RHat = &r
	}
	for i, g := range group {
		truth.Means[i] = means[g]
	}
	return truth, nil
}

// means turns the probabilities of each category of each slot, [slots × K], into
// the observables' means.
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

// numbered makes one observable per slot, with the same number for each
// category at every slot.
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

func decimal(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// maxSites bounds lattices, so that a slip of a digit is told at once.
const maxSites = 1 << 16

func checkLattice(rows, columns int) error {
	if rows < 1 || columns < 1 {
		return refuse("size", "%dx%d is not a lattice: both sides must be at least 1", rows, columns)
	}
	if rows > maxSites/columns {
		return refuse("size", "%dx%d has more than %d sites: take a smaller lattice", rows, columns, maxSites)
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// isingOptions set an Ising model on a torus, U = a sᵀWs + b Σ s: every edge
// counts twice, as in the papers.
type isingOptions struct {
	Rows, Columns   int
	Coupling, Field float64 // a, of either sign, and b
	Truth           truthOptions
}

// defaultIsing is the 5 × 5 model of the discrete Langevin paper, section 7.1.
func defaultIsing() isingOptions {
	return isingOptions{Rows: 5, Columns: 5, Coupling: 0.1, Field: 0.2}
}

func (o *isingOptions) register(f *flag.FlagSet) {
	f.Var(&size{&o.Rows, &o.Columns}, "size", "rows and columns of the lattice")
	numberVar(f, &o.Coupling, "coupling", "a; negative is allowed")
	numberVar(f, &o.Field, "field", "b")
	o.Truth.register(f)
}

// problem has the spins as observables.
func (o isingOptions) problem(ctx context.Context, seed uint64) (*Problem, error) {
	if err := checkLattice(o.Rows, o.Columns); err != nil {
		return nil, err
	}
	if !finite(o.Coupling) {
		return nil, refuse("coupling", "%v is not a finite number", o.Coupling)
	}
	if !finite(o.Field) {
		return nil, refuse("field", "%v is not a finite number", o.Field)
	}
	target, err := targets.NewIsing(o.Rows, o.Columns, o.Coupling, o.Field)
	if err != nil {
		return nil, err
	}
	p := &Problem{
		Kind: "ising", Target: target, consistent: true,
		Parameters: []parameter{
			{"size", fmt.Sprintf("%dx%d", o.Rows, o.Columns)}, {"coupling", decimal(o.Coupling)}, {"field", decimal(o.Field)},
		},
		observables: numbered(o.Rows*o.Columns, -1, 1),
	}
	up := 1 / (1 + math.Exp(-2*o.Field))
	p.independent = slices.Repeat([][]float64{{1 - up, up}}, o.Rows*o.Columns)
	err = p.settle(ctx, o.Truth.seeded(seed), func() (string, []float64, error) {
		if o.Field == 0 {
			return "symmetry under a flip of all spins", make([]float64, o.Rows*o.Columns), nil
		}
		lattice := torus{
			rows: o.Rows, columns: o.Columns,
			edge: [][]float64{{2 * o.Coupling, -2 * o.Coupling}, {-2 * o.Coupling, 2 * o.Coupling}},
			site: []float64{-o.Field, o.Field},
		}
		return p.lattice(lattice)
	}, "gibbs", o.Rows*o.Columns, true)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// lattice is the exact mean of a torus by its transfer matrix.
func (p *Problem) lattice(t torus) (string, []float64, error) {
	law, err := t.transferMatrix()
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", errTooLarge, err)
	}
	return "transfer matrix", p.means(slices.Repeat(law, t.rows*t.columns)), nil
}

// pottsOptions set a Potts model on a torus, U = J Σ_edges [θ_i = θ_k] + Σ_i h[θ_i],
// every edge once.
type pottsOptions struct {
	Rows, Columns int
	Coupling      float64       // J, of either sign
	Field         list[float64] // h, one value for each state
	States        states        // not 0: that many, without a field
	Truth         truthOptions
}

type states int

func (v *states) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxCategories {
		return fmt.Errorf("a whole number from 1 to %d", maxCategories)
	}
	*v = states(n)
	return nil
}

func (v *states) String() string { return "" }

// defaultPotts is a 4 × 4 model of three states.
func defaultPotts() pottsOptions {
	return pottsOptions{Rows: 4, Columns: 4, Coupling: 0.5, Field: []float64{0.2, 0, -0.2}}
}

func (o *pottsOptions) register(f *flag.FlagSet) {
	f.Var(&size{&o.Rows, &o.Columns}, "size", "rows and columns of the lattice")
	numberVar(f, &o.Coupling, "coupling", "J; negative is allowed")
	f.Var(&o.Field, "field", "h, a value for each state")
	f.Var(&o.States, "states", "instead of a field: that many states without one")
	o.Truth.register(f)
}

// problem has the indicators of every state of every site as observables.
func (o pottsOptions) problem(ctx context.Context, seed uint64) (*Problem, error) {
	if err := checkLattice(o.Rows, o.Columns); err != nil {
		return nil, err
	}
	if !finite(o.Coupling) {
		return nil, refuse("coupling", "%v is not a finite number", o.Coupling)
	}
	if o.States > 0 {
		if !slices.Equal(o.Field, defaultPotts().Field) {
			return nil, refuse("states", "it excludes a field: give one of the two")
		}
		o.Field = make([]float64, o.States)
	}
	if len(o.Field) < 1 || len(o.Field) > maxCategories {
		return nil, refuse("field", "%d states, and it can be from 1 to %d", len(o.Field), maxCategories)
	}
	p := &Problem{
		Kind: "potts", consistent: true,
		Parameters: []parameter{{"size", fmt.Sprintf("%dx%d", o.Rows, o.Columns)}, {"coupling", decimal(o.Coupling)}, {"field", joined(o.Field)}},
	}
	law := make([]float64, len(o.Field))
	edge := make([][]float64, len(o.Field))
	total := floats.LogSumExp(o.Field)
	for v, h := range o.Field {
		if !finite(h) {
			return nil, refuse("field", "%v is not a finite number", h)
		}
		law[v] = math.Exp(h - total)
		edge[v] = make([]float64, len(o.Field))
		edge[v][v] = o.Coupling
	}
	target, err := targets.NewPotts(o.Rows, o.Columns, o.Coupling, o.Field)
	if err != nil {
		return nil, err
	}
	p.Target = target
	p.observables = indicators(target.Categories())
	p.independent = slices.Repeat([][]float64{law}, o.Rows*o.Columns)
	err = p.settle(ctx, o.Truth.seeded(seed), func() (string, []float64, error) {
		if slices.Min(o.Field) == slices.Max(o.Field) {
			return "symmetry of the states", slices.Repeat([]float64{1 / float64(len(o.Field))}, len(p.observables)), nil
		}
		return p.lattice(torus{o.Rows, o.Columns, edge, o.Field})
	}, "gibbs", o.Rows*o.Columns, true)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// tableOptions set a random table: an energy for every state, drawn from
// N(0, scale²).
type tableOptions struct {
	Categories list[int]
	Scale      float64 // standard deviation of the energies, nats
	// GradientError is the standard deviation of the gradient's error, as the
	// gradients of deep models have one.
	GradientError float64
	// ConditionalError is that of the energies behind the conditionals, which
	// then belong to no joint law, as a masked language model's.
	ConditionalError float64
	Terms            int // of the energy, for stochastic gradients; 0 for 1
	Seed             uint64
}

// defaultTable is a table of three slots.
func defaultTable() tableOptions {
	return tableOptions{Categories: []int{4, 4, 4}, Scale: 1, Terms: 1, Seed: 1}
}

func (o *tableOptions) register(f *flag.FlagSet) {
	f.Var(&o.Categories, "categories", "number of categories of each slot")
	numberVar(f, &o.Scale, "scale", "standard deviation of the energies, in nats")
	numberVar(f, &o.GradientError, "gradient-error", "standard deviation of the gradient's error")
	numberVar(f, &o.ConditionalError, "conditional-error", "standard deviation of the conditionals' energies from the others")
	wholeVar(f, &o.Terms, "terms", "terms of the energy, for stochastic gradients")
	f.Var((*seed)(&o.Seed), "target-seed", "seed of the energies")
}

// problem has the indicators of every category of every slot as observables.
func (o tableOptions) problem(ctx context.Context, seed uint64) (*Problem, error) {
	if len(o.Categories) == 0 {
		return nil, refuse("categories", "none given: give the number of categories of each slot")
	}
	states := 1.0
	for _, k := range o.Categories {
		if k < 1 || k > maxCategories {
			return nil, refuse("categories", "%d is not a whole number from 1 to %d", k, maxCategories)
		}
		states *= float64(k)
	}
	// A table also holds its gradient's errors, a number for each neighbour.
	if entries := states * float64(len(o.Categories)*slices.Max(o.Categories)) * float64(max(o.Terms, 1)); entries > 1<<24 {
		return nil, refuse("categories", "%s give a table of %.3g states, too large to keep with its gradients: take fewer or smaller slots", joined(o.Categories), states)
	}
	for _, s := range []struct {
		option string
		value  float64
	}{{"scale", o.Scale}, {"gradient-error", o.GradientError}, {"conditional-error", o.ConditionalError}} {
		if !(s.value >= 0) || math.IsInf(s.value, 1) || s.option == "scale" && s.value == 0 {
			return nil, refuse(s.option, "%v is not a finite number %s", s.value, map[bool]string{true: "above 0", false: "of 0 or more"}[s.option == "scale"])
		}
	}
	if o.Terms < 0 {
		return nil, refuse("terms", "%d is not a whole number of 1 or more", o.Terms)
	}
	r := samplers.Streams(o.Seed, "table", 1)[0]
	target, err := targets.NewTable(o.Categories, r, targets.TableOptions{
		Scale: o.Scale, Terms: o.Terms, GradientError: o.GradientError, ConditionalError: o.ConditionalError,
	})
	if err != nil {
		return nil, err
	}
	p := &Problem{
		Kind: "table", Target: target, consistent: o.ConditionalError == 0,
		Parameters: []parameter{
			{"categories", joined(o.Categories)}, {"scale", decimal(o.Scale)}, {"gradient-error", decimal(o.GradientError)},
			{"conditional-error", decimal(o.ConditionalError)}, {"terms", strconv.Itoa(max(o.Terms, 1))}, {"target-seed", strconv.FormatUint(o.Seed, 10)},
		},
		observables: indicators(o.Categories),
	}
	law, err := marginals(ctx, target)
	if err != nil {
		return nil, err
	}
	p.Truth = &truth{Method: fmt.Sprintf("enumeration of %.0f states", states), Means: p.means(law)}
	return p, nil
}
