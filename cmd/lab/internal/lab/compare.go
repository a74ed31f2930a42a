package lab

import (
	"context"
	"flag"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"time"

	"infill/internal/logmath"
	"infill/samplers"
)

const (
	// maxCategories is the most categories of a slot: states are kept in bytes.
	maxCategories = 256
	// maxKept bounds the bytes of states that one sampler's run keeps.
	maxKept   = 1 << 30
	maxChains = 1 << 14
	maxSteps  = 1 << 30
)

// Options set a comparison.
type Options struct {
	Samplers []Spec
	Chains   int
	Steps    int // measured steps of each chain
	// WarmUp steps go before and are not measured. They tune the samplers
	// that can be tuned and whose step size or radius is not given.
	WarmUp int
	// Discard is the first fraction of the measured steps that the effective
	// sample size leaves out; the papers' is 0.1.
	Discard float64
	// Initial is "uniform" or "independent", each slot by the target without
	// interactions. All samplers start at the same states.
	Initial string
	Seed    uint64
	// Version of the program goes into the signature.
	Version string
	// Folder, when not empty, keeps what each sampler found: a comparison that was stopped goes on there.
	Folder string
	// Observe, when not nil, hears of the progress.
	Observe func(Progress)
	// Clock gives the time; nil for the processor time of the process, or
	// wall-clock time where the system does not tell.
	Clock func() time.Time
}

// DefaultOptions compares the papers' main samplers, DMALA with a tuned step size. DULA has nothing to be tuned by: its
// step size is the papers' for Ising models.
func DefaultOptions() Options {
	return Options{
		Samplers: []Spec{
			named("gibbs"), named("gwg"),
			{Label: "dula:step-size=0.4", Spec: samplers.Spec{Name: "dula"}.With("step-size", 0.4)}, named("dmala"),
		},
		Chains: 16, Steps: 2000, WarmUp: 500, Discard: 0.1, Initial: "uniform",
	}
}

// Progress tells how far a run is.
type Progress struct {
	Sampler     string
	Step, Steps int // over all samplers of all runs, warm-up included
}

// Flags are the options as flags, with their defaults.
func (o *Options) Flags() *flag.FlagSet {
	f := flag.NewFlagSet("", flag.ContinueOnError)
	f.Var((*specs)(&o.Samplers), "samplers",
		"samplers to compare, as gibbs,dmala:step-size=0.4,balance=ratio,gwg:steps=500, or all")
	WholeVar(f, &o.Chains, "chains", 1, maxChains, "chains of each sampler")
	WholeVar(f, &o.Steps, "steps", 1, maxSteps, "measured steps of each chain")
	WholeVar(f, &o.WarmUp, "warm-up", 0, maxSteps, "steps before, in which samplers tune what is not set")
	numberVar(f, &o.Discard, "discard", " of 0 or more",
		"first part of the steps that the effective sample size leaves out")
	choiceVar(f, &o.Initial, "initial", initials(),
		"where chains start, each slot uniformly or by the target without interactions")
	return f
}

// PresetFlags are the options of a preset, 0 for its own.
func (o *Options) PresetFlags() *flag.FlagSet {
	o.Chains, o.Steps = 0, 0
	f := flag.NewFlagSet("", flag.ContinueOnError)
	WholeVar(f, &o.Chains, "chains", 0, maxChains, "chains of each sampler; 0 is the preset's own")
	WholeVar(f, &o.Steps, "steps", 0, maxSteps, "steps of each chain; 0 is the preset's own")
	return f
}

// check refuses what can be refused before anything is run, besides what flags refuse.
func (o *Options) check() error {
	if len(o.Samplers) == 0 {
		return refuse("samplers", "none given: give at least one")
	}
	if !(o.Discard >= 0 && o.Discard < 1) {
		return refuse("discard", "%v is not a number of 0 or more and below 1", o.Discard)
	}
	return nil
}

// A Run is one comparison on one target.
type Run struct {
	Title      string      `json:"title,omitempty"`
	Kind       string      `json:"target"`
	Parameters []parameter `json:"parameters"`
	Slots      int         `json:"slots"`
	Signature  string      `json:"signature"`
	Truth      *truth      `json:"truth"`
	Training   *training   `json:"training,omitempty"`
	Reference  *reference  `json:"reference,omitempty"`
	Floor      *floor      `json:"floor,omitempty"`
	Chains     int         `json:"chains"`
	Steps      int         `json:"steps"`
	Seed       uint64      `json:"seed"`
	// Threads that the process may use; timings are of one thread when it is 1.
	Threads    int         `json:"threads,omitempty"`
	Samplers   []*Result   `json:"samplers"`
	Comparison *comparison `json:"comparison"`
	// Left out of "all", with the reason.
	LeftOut []leftOut `json:"left_out,omitempty"`
}

// leftOut is a sampler that does not suit the target.
type leftOut struct {
	Sampler string `json:"sampler"`
	Reason  string `json:"reason"`
}

// evaluations counts states given to the target, over all chains.
type evaluations struct {
	Energies     int64 `json:"energies"`     // energies alone
	Gradients    int64 `json:"gradients"`    // energies with gradients
	Conditionals int64 `json:"conditionals"` // conditionals of a slot or block
	// PerStep is the sum of the three per chain and step.
	PerStep float64 `json:"per_step"`
}

// Total is the sum of all kinds.
func (e evaluations) Total() int64 { return e.Energies + e.Gradients + e.Conditionals }

// Result is what one sampler did.
type Result struct {
	Sampler string `json:"sampler"` // its label
	Name    string `json:"name"`
	// Exact tells whether the chain's stationary law is the target.
	Exact bool `json:"exact"`
	// StepSize is α, absent where there is none.
	StepSize *float64      `json:"step_size,omitempty"`
	Steps    int           `json:"steps"`
	WarmUp   *warmUpResult `json:"warm_up,omitempty"`
	// Acceptance is the fraction of proposals taken: 1 where all are.
	Acceptance              float64  `json:"acceptance_rate"`
	AcceptanceStandardError *float64 `json:"acceptance_standard_error,omitempty"`
	// Proposed and Changed count slots per step.
	Proposed             float64     `json:"proposed_slots_per_step"`
	Changed              float64     `json:"changed_slots_per_step"`
	ChangedStandardError *float64    `json:"changed_slots_standard_error,omitempty"`
	Evaluations          evaluations `json:"evaluations"`
	LogRMSE              logarithm   `json:"log_rmse"`
	LogRMSEStandardError *float64    `json:"log_rmse_standard_error,omitempty"`
	ESS                  *sampleSize `json:"ess,omitempty"`
	Curve                []point     `json:"curve"`
	Timing               *timing     `json:"timing,omitempty"`
}

// warmUpResult tells of the steps before the measured ones.
type warmUpResult struct {
	Steps       int   `json:"steps"`
	Tuned       bool  `json:"tuned"`
	Evaluations int64 `json:"evaluations"`
}

// timing is the time of the measured steps of all chains, and noisy.
type timing struct {
	Seconds float64 `json:"seconds"`
	// ESSPerSecond is that of all chains together; 0 where the clock stood still.
	ESSPerSecond              float64  `json:"ess_per_second"`
	ESSPerSecondStandardError *float64 `json:"ess_per_second_standard_error,omitempty"`
}

// point is one point of a curve.
type point struct {
	Step int `json:"step"`
	// Evaluations per chain so far.
	Evaluations   float64   `json:"evaluations"`
	LogRMSE       logarithm `json:"log_rmse"`
	StandardError *float64  `json:"standard_error,omitempty"`
	// MMD2 is the squared maximum mean discrepancy of the chains' states from the reference, where there is one.
	MMD2              *float64 `json:"mmd2,omitempty"`
	MMD2StandardError *float64 `json:"mmd2_standard_error,omitempty"`
	// Seconds so far, of all chains.
	Seconds *float64 `json:"seconds,omitempty"`
}

// Compare runs the samplers one after the other on one problem.
func Compare(ctx context.Context, p *Problem, o Options) (*Report, error) {
	run, err := compare(ctx, p, o)
	if err != nil {
		return nil, err
	}
	return &Report{Title: "samplers on " + run.describe(), Runs: []*Run{run}, Definitions: definitions()}, nil
}

func compare(ctx context.Context, p *Problem, o Options) (*Run, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	run := &Run{
		Kind: p.Kind, Parameters: p.Parameters, Slots: len(p.Target.Categories()), Truth: p.Truth, Training: p.Training,
		Reference: p.Reference,
		Chains:    o.Chains, Steps: o.Steps, Seed: o.Seed, Threads: runtime.GOMAXPROCS(0),
	}
	specs, err := run.unfold(p, o.Samplers)
	if err != nil {
		return nil, err
	}
	starts, err := p.positions(o.Initial, samplers.Streams(o.Seed, "start", o.Chains))
	if err != nil {
		return nil, err
	}
	for i := range specs {
		if specs[i].Steps == 0 {
			specs[i].Steps = o.Steps
		}
		if n := float64(specs[i].Steps) * float64(len(starts)); n > maxKept {
			return nil, refuse("steps", "%d steps of %d chains on %d slots keep %.3g states of slots, and at most %d "+
				"can be kept: take fewer steps or chains",
				specs[i].Steps, o.Chains, run.Slots, n, maxKept)
		}
	}
	run.Signature = signature(p, o, specs)
	if p.Reference != nil {
		if run.Floor, err = p.Reference.floor(o.Chains); err != nil {
			return nil, err
		}
	}
	if o.Clock == nil {
		o.Clock = clock
	}
	done, steps := 0, 0
	for _, s := range specs {
		steps += s.Steps + o.WarmUp
	}
	for _, s := range specs {
		before := done
		r, err := keptOr(o.Folder, run.Signature, s.Label+" of "+run.Signature, func() (*Result, error) {
			return measure(ctx, p, o, s, starts, func() {
				if done++; o.Observe != nil {
					o.Observe(Progress{s.Label, done, steps})
				}
			})
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Label, err)
		}
		done = before + s.Steps + o.WarmUp
		run.Samplers = append(run.Samplers, r)
	}
	run.Comparison = compareBudgets(run.Samplers)
	return run, nil
}

// unfold replaces "all" by the kernels that suit the target, and refuses a named one that does not.
func (run *Run) unfold(p *Problem, specs []Spec) ([]Spec, error) {
	var list []Spec
	for _, s := range specs {
		if s.Name != all {
			if _, err := newKernel(p, s, 0); err != nil {
				return nil, refuse("samplers", "%q does not suit this %s: %w", s.Label, p.Kind, err)
			}
			list = append(list, s)
			continue
		}
		for _, name := range samplers.Names() {
			spec := named(name)
			if _, err := newKernel(p, spec, 0); err != nil {
				run.LeftOut = append(run.LeftOut, leftOut{name, err.Error()})
				continue
			}
			list = append(list, spec)
		}
	}
	seen := map[string]bool{}
	for _, s := range list {
		if seen[s.Label] {
			return nil, refuse("samplers", "%q is given twice", s.Label)
		}
		seen[s.Label] = true
	}
	return list, nil
}

// newKernel makes a sampler, with a stream for the terms of stochastic gradients.
func newKernel(p *Problem, s Spec, seed uint64) (samplers.Kernel, error) {
	return s.New(p.Target, samplers.Streams(seed, "terms "+s.Label, 1)[0])
}

// exact tells whether a sampler's stationary law is the problem's target.
func exact(p *Problem, name string) bool {
	if name == "gibbs" {
		return p.consistent
	}
	return samplers.Describe(name).Exact
}

// measure runs one sampler.
func measure(ctx context.Context, p *Problem, o Options, s Spec, starts []int, tick func()) (*Result, error) {
	kernel, err := newKernel(p, s, o.Seed)
	if err != nil {
		return nil, err
	}
	r := &Result{Sampler: s.Label, Name: s.Name, Steps: s.Steps, Exact: exact(p, s.Name)}
	slots := len(starts) / o.Chains
	kept := make([][]uint8, o.Chains)
	for c := range kept {
		kept[c] = make([]uint8, 0, s.Steps*slots)
	}
	var (
		acceptance samplers.Acceptance
		cost, warm samplers.Cost
		seconds    float64
		start      time.Time
		proposed   int64
		before     = make([]int, len(starts))
		counts     = newTally(p, o.Chains)
		points     = checkpoints(s.Steps)
	)
	plan := samplers.Plan{Streams: samplers.Streams(o.Seed, "sampler "+s.Label, o.Chains), WarmUp: o.WarmUp,
		Steps: s.Steps}
	observe := func(at samplers.Step) {
		if at.WarmUp {
			warm = warm.Plus(at.Info.Cost)
			return
		}
		seconds += o.Clock().Sub(start).Seconds()
		acceptance.Observe(at.Info)
		cost = cost.Plus(at.Info.Cost)
		counts.add(at.State.Positions)
		for i, v := range at.Info.Proposal {
			if v != before[i] {
				proposed++
			}
		}
		for c := range kept {
			for _, v := range at.State.Position(c) {
				kept[c] = append(kept[c], uint8(v))
			}
		}
		if step := at.Number - o.WarmUp; step == points[0] {
			points = points[1:]
			r.Curve = append(r.Curve, p.point(step, o.Chains, cost, seconds, counts, at.State.Positions))
		}
	}
	run, err := samplers.Sample(ctx, kernel, starts, plan, func(at samplers.Step) error {
		if at.Number > 0 {
			observe(at)
			tick()
		}
		copy(before, at.State.Positions)
		start = o.Clock()
		return nil
	})
	if err != nil {
		return nil, err
	}
	if o.WarmUp > 0 {
		r.WarmUp = &warmUpResult{o.WarmUp, run.Tuned, total(warm)}
	}
	if logmath.Finite(run.StepSize) {
		r.StepSize = &run.StepSize
	}
	r.Acceptance, r.AcceptanceStandardError = known(acceptance.Rate())
	r.Changed, r.ChangedStandardError = known(acceptance.ChangedSlots())
	r.Proposed = float64(proposed) / float64(s.Steps*o.Chains)
	r.Evaluations = evaluations{Energies: int64(cost.Energies), Gradients: int64(cost.Gradients),
		Conditionals: int64(cost.Conditionals)}
	r.Evaluations.PerStep = float64(r.Evaluations.Total()) / float64(s.Steps*o.Chains)
	r.LogRMSE, r.LogRMSEStandardError = counts.logRMSE()
	r.Timing = &timing{Seconds: seconds}

	first := int(math.Floor(o.Discard * float64(s.Steps)))
	if s.Steps-first >= 4 {
		r.ESS = effectiveSampleSize(p, kept, first)
		r.ESS.PerEvaluation = r.ESS.PerStep / r.Evaluations.PerStep
	}
	if r.ESS != nil && seconds > 0 {
		// The kept steps took their share of the time.
		perSecond := float64(o.Chains*s.Steps) / float64(r.ESS.Kept) / seconds
		r.Timing.ESSPerSecond = r.ESS.Mean * perSecond
		if r.ESS.StandardError != nil {
			e := *r.ESS.StandardError * perSecond
			r.Timing.ESSPerSecondStandardError = &e
		}
	}
	return r, nil
}

func (p *Problem) point(step, chains int, cost samplers.Cost, seconds float64, counts *tally, positions []int) point {
	at := point{Step: step, Seconds: &seconds, Evaluations: float64(total(cost)) / float64(chains)}
	at.LogRMSE, at.StandardError = counts.logRMSE()
	if p.Reference != nil {
		set := newBinarySet(p.Reference.set.slots)
		set.add(positions)
		value, e := squaredDiscrepancy(set, p.Reference.set, p.Reference.self)
		at.MMD2 = &value
		_, at.MMD2StandardError = known(value, e)
	}
	return at
}

func total(c samplers.Cost) int64 { return int64(c.Energies + c.Gradients + c.Conditionals) }

// known drops an error that is not defined.
func known(value, standardError float64) (float64, *float64) {
	if math.IsNaN(standardError) {
		return value, nil
	}
	return value, &standardError
}

// Comparison shows log RMSE, and MMD where it is measured, at equal budgets, the smallest that a sampler of
// the run spent: of steps, of evaluations per chain, and of seconds.
type comparison struct {
	Steps       int     `json:"steps"`
	Evaluations float64 `json:"evaluations"`
	// Seconds of all chains; absent without timings.
	Seconds *float64  `json:"seconds,omitempty"`
	Rows    []budgets `json:"rows"`
}

// budgets is one sampler at each budget, at its last point within it.
type budgets struct {
	Sampler       string   `json:"sampler"`
	AtSteps       *reached `json:"at_equal_steps,omitempty"`
	AtEvaluations *reached `json:"at_equal_evaluations,omitempty"`
	AtSeconds     *reached `json:"at_equal_seconds,omitempty"`
}

// reached is where a sampler was when its budget was spent.
type reached struct {
	Step          int       `json:"step"`
	LogRMSE       logarithm `json:"log_rmse"`
	StandardError *float64  `json:"standard_error,omitempty"`
	// MMD2 as in [Point].
	MMD2              *float64 `json:"mmd2,omitempty"`
	MMD2StandardError *float64 `json:"mmd2_standard_error,omitempty"`
}

func compareBudgets(results []*Result) *comparison {
	c := &comparison{Steps: math.MaxInt, Evaluations: math.Inf(1)}
	seconds := math.Inf(1)
	for _, r := range results {
		last := r.Curve[len(r.Curve)-1]
		c.Steps = min(c.Steps, last.Step)
		c.Evaluations = math.Min(c.Evaluations, last.Evaluations)
		seconds = math.Min(seconds, *last.Seconds)
	}
	c.Seconds = &seconds
	for _, r := range results {
		c.Rows = append(c.Rows, budgets{
			Sampler:       r.Sampler,
			AtSteps:       r.reached(func(p point) bool { return p.Step <= c.Steps }),
			AtEvaluations: r.reached(func(p point) bool { return p.Evaluations <= c.Evaluations }),
			AtSeconds:     r.reached(func(p point) bool { return *p.Seconds <= seconds }),
		})
	}
	return c
}

func (r *Result) reached(within func(point) bool) *reached {
	var last *reached
	for _, p := range r.Curve {
		if within(p) {
			last = &reached{p.Step, p.LogRMSE, p.StandardError, p.MMD2, p.MMD2StandardError}
		}
	}
	return last
}

// signature is one line with all that the deterministic numbers depend on.
func signature(p *Problem, o Options, specs []Spec) string {
	words := []string{"lab:" + p.Kind}
	for _, parameter := range p.Parameters {
		words = append(words, parameter.Name+":"+parameter.Value)
	}
	labels := make([]string, len(specs))
	for i, s := range specs {
		labels[i] = s.Label
		if s.Steps != o.Steps && !strings.Contains(s.Label, "steps=") {
			labels[i] += ":steps=" + strconv.Itoa(s.Steps)
		}
	}
	words = append(words, "samplers:"+strings.Join(labels, ","))
	if p.Truth.Run != nil {
		words = append(words,
			fmt.Sprintf("truth:%s,chains:%d,steps:%d", p.Truth.Run.Sampler, p.Truth.Run.Chains, p.Truth.Run.Steps))
	}
	words = append(words,
		fmt.Sprintf("chains:%d|steps:%d|warm-up:%d|discard:%s|initial:%s|seed:%d", o.Chains, o.Steps, o.WarmUp,
			decimal(o.Discard), o.Initial, o.Seed))
	if o.Version != "" {
		words = append(words, "version:"+o.Version)
	}
	return strings.Join(words, "|")
}
