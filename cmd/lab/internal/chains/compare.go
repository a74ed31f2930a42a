package chains

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"infill/cmd/lab/internal/lab"
	"infill/internal/logmath"
	"infill/internal/phrase"
	"infill/samplers"
)

// maxKept bounds the states that a sampler's run keeps, in bytes.
const maxKept = 1 << 30

// Options say how to run a comparison. All samplers start at the same states.
type Options struct {
	Samplers []lab.Spec
	Chains   int
	Steps    int    // measured steps of each chain, for samplers without their own steps
	WarmUp   int    // steps before the measured ones, which tune a step size or radius that is not given
	Initial  string // uniform or independent
	Trace    bool   // whether to write the states to a file of the study's folder

	now func() time.Time // the clock that times the steps; tests replace it
}

// newComparison returns the command of one kind of target, as lab ising: it runs
// several samplers on that target, all from the same starts. By default, the
// warm-up tunes the step size of DMALA. DULA has no acceptance rate to tune by,
// so it takes the papers' step size.
func newComparison(k kind) *lab.Study {
	s := lab.NewStudy(k.name)
	f := s.Flags
	list := lab.SamplersFlag(f, "samplers", "gibbs,gwg,dula:step-size=0.4,dmala",
		"samplers to compare, as gibbs,dmala:step-size=0.4,balance=ratio,gwg:steps=500, or all")
	chains := lab.WholeFlag(f, "chains", 16, 1, lab.MaxChains, "chains of each sampler")
	steps := lab.WholeFlag(f, "steps", 2000, 1, lab.MaxSteps, "measured steps of each chain")
	warmUp := lab.WholeFlag(f, "warm-up", 500, 0, lab.MaxSteps, "steps before, in which samplers tune what is not set")
	initial := lab.ChoiceFlag(f, "initial", []string{"uniform", "independent"},
		"where chains start, each slot uniformly or by the target without interactions")
	trace := f.Bool("trace", false, "also write every state to the folder of --output, a CSV file a sampler: chain, "+
		"step, warm_up, U, slots")
	repeats := lab.WholeFlag(f, "repeats", 1, 1, 1000, "repetitions: each has other random numbers and, where the "+
		"target is drawn at random, another target, by the next --target-seed")
	distribution := k.flags(f)
	s.Plan = func(ctx context.Context, in *lab.Inputs, seed uint64) (*lab.Plan, error) {
		d, err := distribution(ctx, in)
		if err != nil {
			return nil, err
		}
		p := s.NewPlan("Samplers on " + d.String())
		p.BetweenChains(*chains)
		p.Caption = s.Short
		o := Options{*list, *chains, *steps, *warmUp, *initial, *trace, lab.Clock}
		if *repeats == 1 {
			return p, compare(p, d, o, seed)
		}
		p.Between = phrase.Counted(*repeats, "repetition")
		for n := range *repeats {
			d, err := another(ctx, in, f, distribution, n)
			if err != nil {
				return nil, err
			}
			if err := compare(p, d, o, seed, lab.Label{Name: lab.RepeatLabel, Value: strconv.Itoa(n + 1)}); err != nil {
				return nil, err
			}
		}
		return p, nil
	}
	return s
}

// byStep and mmd are names of curves.
const (
	byStep = "log-rmse"
	mmd    = "log-mmd"
)

// compare adds a cell for each sampler on the target d, labelled with the
// sampler and the parameters more.
func compare(p *lab.Plan, d *distribution, o Options, seed uint64, more ...lab.Label) error {
	of := "" // prefix of the notes if there are several targets
	repeat := ""
	for _, l := range more {
		of += lab.Labels{l}.String() + ": "
		if l.Name == lab.RepeatLabel {
			repeat = l.Value
		}
	}
	note := func(format string, args ...any) { p.Notes = append(p.Notes, of+fmt.Sprintf(format, args...)) }
	list, err := d.unfold(o.Samplers, func(reason error) { note("left out: %v", reason) })
	if err != nil {
		return err
	}
	starts, err := d.positions(o.Initial, samplers.Streams(seed, repeated(repeat, "start"), o.Chains))
	if err != nil {
		return err
	}
	for _, spec := range list {
		spec.Steps = cmp.Or(spec.Steps, o.Steps)
		if n := float64(spec.Steps) * float64(len(starts)); n > maxKept {
			return lab.Refuse("steps",
				"%d steps of %d chains on %d slots keep %.3g states of slots, and at most %d can "+
					"be kept: take fewer steps or chains", spec.Steps, o.Chains, len(starts)/o.Chains, n, maxKept)
		}
		p.Cells = append(p.Cells, lab.Cell{Labels: append(lab.Labels{{Name: "sampler", Value: spec.Label}}, more...),
			Run: func(ctx context.Context, b *lab.Bench) error { return measure(ctx, b, d, o, spec, starts) }})
	}
	if r := d.reference; r != nil {
		floor, deviation, err := r.floor(o.Chains)
		if err != nil {
			return err
		}
		note("log MMD² from %d states by %s; draws of their own law: %.2f ± %.2f between %d sets",
			r.samples, r.method, math.Log(floor), deviation/floor, floorSets)
	}
	note("exact means: %s", d.truth.method)
	return nil
}

// unfold replaces "all" by the samplers that suit the target. A named sampler
// that does not suit it is an error.
func (d *distribution) unfold(specs []lab.Spec, leftOut func(reason error)) (list []lab.Spec, err error) {
	for _, s := range specs {
		several := []lab.Spec{s}
		if s.Sampler == nil {
			several = nil
			for _, sampler := range samplers.All() {
				several = append(several, lab.Named(sampler))
			}
		}
		for _, own := range several {
			_, err := newKernel(d, own, 0)
			switch {
			case err != nil && s.Sampler == nil:
				leftOut(err)
			case err != nil:
				return nil, lab.Refuse("samplers", "%q does not suit this %s: %w", s.Label, d.kind, err)
			case !slices.ContainsFunc(list, func(earlier lab.Spec) bool { return earlier.Label == own.Label }):
				list = append(list, own)
			}
		}
	}
	return list, nil
}

// repeated names a repetition's random streams; "" is a run of one.
func repeated(repeat, label string) string {
	if repeat == "" {
		return label
	}
	return repeat + " " + label
}

// newKernel makes a sampler's kernel. Its random stream, which no chain uses,
// picks the terms of a stochastic gradient.
func newKernel(d *distribution, s lab.Spec, seed uint64) (samplers.Kernel, error) {
	target := d.Target
	known, has := target.(samplers.GradientTarget)
	if s.Blind && has {
		target = blind{known}
	}
	shared := samplers.Streams(seed, "terms "+s.Label, 1)[0]
	if d.onText && s.Sampler.Describe().OnText != nil {
		return samplers.TextKernel(s.Sampler, target, shared)
	}
	return s.Sampler.Kernel(target, shared)
}

// blind is a target whose gradient is 0. So Gibbs with gradients proposes each
// change with a fixed probability, and accepts by exp U alone: the random walk
// with which the paper begins.
type blind struct{ samplers.GradientTarget }

func (t blind) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	clear(gradient)
	return t.Energy(ctx, states, energy)
}

// exact reports whether the stationary law of a sampler is the target.
func (d *distribution) exact(sampler samplers.Sampler) bool {
	if sampler == samplers.Sampler(samplers.Gibbs{}) {
		return !d.inconsistent
	}
	return sampler.Describe().Exact
}

func measure(ctx context.Context, b *lab.Bench, d *distribution, o Options, s lab.Spec, starts []int) error {
	kernel, err := newKernel(d, s, b.Seed)
	if err != nil {
		return err
	}
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
		counts     = newTally(d, o.Chains)
		points     = checkpoints(s.Steps)
	)
	observe := func(at samplers.Step) {
		seconds += o.now().Sub(start).Seconds()
		acceptance.Observe(at.Info.Accepted, at.Info.Changed)
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
		step := at.Number - o.WarmUp
		if step != points[0] {
			return
		}
		points = points[1:]
		spent := lab.Sample{X: float64(step), Evaluations: total(cost) / float64(o.Chains), Seconds: seconds}
		spent.Y, spent.Error = counts.logRMSE()
		b.PointAt(byStep, spent)
		if d.reference != nil {
			value, e := d.reference.discrepancy(at.State.Positions)
			spent.Y = math.Log(value)
			spent.Error = e / value
			b.PointAt(mmd, spent)
		}
	}
	plan := samplers.Plan{Streams: samplers.Streams(b.Seed, repeated(b.Repeat, "sampler "+s.Label), o.Chains),
		WarmUp: o.WarmUp, Steps: s.Steps}
	var trace *csv.Writer
	if o.Trace {
		file, err := b.Create("trace", ".csv")
		if err != nil {
			return err
		}
		defer file.Close()
		trace = csv.NewWriter(file)
	}
	run, err := samplers.Sample(ctx, kernel, starts, plan, func(at samplers.Step) error {
		if trace != nil {
			writeStates(trace, at)
		}
		switch {
		case at.Number == 0:
		case at.WarmUp:
			warm = warm.Plus(at.Info.Cost)
		default:
			observe(at)
		}
		b.Observe(at.Number, o.WarmUp+s.Steps)
		copy(before, at.State.Positions)
		start = o.now()
		return nil
	})
	if trace != nil {
		trace.Flush()
		err = errors.Join(err, trace.Error())
	}
	if err != nil {
		return err
	}
	steps := float64(s.Steps * o.Chains)
	b.Number("exact", float64(logmath.Indicator(d.exact(s.Sampler))))
	b.Number("tuned", float64(logmath.Indicator(run.Tuned)))
	b.Number("warm-up-evaluations", total(warm))
	b.Number("step-size", run.StepSize)
	b.Chains("acceptance", acceptance.Rates())
	b.Chains("changed", acceptance.ChangedSlots())
	b.Number("proposed", float64(proposed)/steps)
	b.Number("energies", float64(cost.Energies))
	b.Number("gradients", float64(cost.Gradients))
	b.Number("conditionals", float64(cost.Conditionals))
	b.Number("evaluations", total(cost)/steps)
	b.Estimate(byStep)(counts.logRMSE())
	b.Number("seconds", seconds)
	if first := s.Steps / 10; s.Steps-first >= 4 {
		worth(b, effectiveSampleSize(d, kept, first), s, o.Chains, total(cost)/steps, seconds)
	}
	if d.pictures != nil {
		return b.Picture("samples", d.pictures.Grid(run.State.Positions, 2))
	}
	return nil
}

// writeStates writes a row for each chain, as infill --trace does. If the
// sampler does not evaluate U, U is NaN.
func writeStates(w *csv.Writer, at samplers.Step) {
	var row []string
	if at.Number == 0 {
		row = []string{"chain", "step", "warm_up", "u"}
		for slot := range at.State.Slots() {
			row = append(row, "slot_"+strconv.Itoa(slot+1))
		}
		_ = w.Write(row) // the writer keeps the first error for its method Error
	}
	for chain, u := range at.State.Energy {
		row = append(row[:0], strconv.Itoa(chain+1), strconv.Itoa(at.Number), strconv.FormatBool(at.WarmUp),
			fmt.Sprint(u))
		for _, v := range at.State.Position(chain) {
			row = append(row, strconv.Itoa(v))
		}
		_ = w.Write(row)
	}
}

// worth records the effective sample size, and warns if it is unreliable.
func worth(b *lab.Bench, e *sampleSize, s lab.Spec, chains int, evaluations, seconds float64) {
	perStep := 1000 / float64(e.Kept)
	b.Estimate("ess")(e.Mean*perStep, e.StandardError*perStep)
	b.Estimate("ess-by-evaluation")(e.Mean*perStep/evaluations, e.StandardError*perStep/evaluations)
	b.Number("ess-least", e.Min*perStep)
	b.Number("r-hat", e.RHat)
	// Of the time, count the share that belongs to the kept steps.
	perSecond := float64(chains*s.Steps) / float64(e.Kept) / seconds
	b.Estimate("ess-by-second")(e.Mean*perSecond, e.StandardError*perSecond)
	switch {
	case s.Sampler.Describe().Interacting:
		b.Warn("its chains are particles that stand for the target jointly: log RMSE and effective sample size of " +
			"single ones say little")
	case e.Still > 0:
		b.Warn("%d of %d observables of a chain never changed and count as one draw each: its effective sample size "+
			"says little", e.Still, e.Observables*chains)
	case e.RHat > samplers.LargestRHat:
		b.Warn("its chains disagree (split R-hat up to %.3g): its effective sample size is too high", e.RHat)
	}
}

func total(c samplers.Cost) float64 { return float64(c.Energies + c.Gradients + c.Conditionals) }

// Ends returns a sampler's chains after some steps from uniform starts.
func Ends(ctx context.Context, sampler samplers.Sampler, target samplers.Target, streams []*rand.Rand, steps int,
	observe func(samplers.Step) error) ([]int, error) {
	kernel, err := sampler.Kernel(target, nil)
	if err != nil {
		return nil, err
	}
	run, err := samplers.Sample(ctx, kernel, samplers.RandomPositions(target, streams),
		samplers.Plan{Streams: streams, Steps: steps}, observe)
	if err != nil {
		return nil, err
	}
	return run.State.Positions, nil
}
