package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"infill/samplers"
)

// ticker is a clock that advances a millisecond at every look.
func ticker() func() time.Time {
	now := time.Unix(0, 0)
	return func() time.Time {
		now = now.Add(time.Millisecond)
		return now
	}
}

func smallIsing(t *testing.T) *Problem {
	t.Helper()
	p, err := NewProblem(context.Background(), "ising:size=2x3,coupling=0.1,field=0.2", 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func compared(t *testing.T, p *Problem, list string, change func(*Options)) *Run {
	t.Helper()
	specs, err := ParseSpecs(list)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Samplers: specs, Chains: 3, Steps: 60, Discard: 0.1, Initial: "independent", Seed: 7, Version: "test",
		Clock: ticker()}
	if change != nil {
		change(&o)
	}
	run, err := compare(context.Background(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestReproducible: two runs of a seed are equal but for their times, another
// seed is not, and a sampler does the same alone as in company.
func TestReproducible(t *testing.T) {
	run := func(list string, seed uint64) *Run {
		r := compared(t, smallIsing(t), list, func(o *Options) { o.Seed, o.Clock, o.WarmUp = seed, nil, 20 })
		r.withoutTimes()
		return r
	}
	first, second := run("gibbs,dula:step-size=0.4,dmala,d-svgd", 7), run("gibbs,dula:step-size=0.4,dmala,d-svgd", 7)
	if d := cmp.Diff(text(t, first), text(t, second)); d != "" {
		t.Errorf("two runs of one seed differ:\n%s", d)
	}
	for _, word := range []string{"seconds", "timing", "threads"} {
		if strings.Contains(text(t, first), word) {
			t.Errorf("%q is left in a result without times", word)
		}
	}
	if text(t, run("gibbs", 8).Samplers[0]) == text(t, first.Samplers[0]) {
		t.Error("two seeds give one result")
	}
	// Chains that cannot move show where they start: by the seed.
	if run("dula:step-size=0.001", 7).Samplers[0].LogRMSE == run("dula:step-size=0.001", 8).Samplers[0].LogRMSE {
		t.Error("two seeds start at the same states")
	}
	alone := run("dmala", 7)
	if d := cmp.Diff(text(t, first.Samplers[2]), text(t, alone.Samplers[0])); d != "" {
		t.Errorf("a sampler in company and alone:\n%s", d)
	}
}

// TestBudgets: with a clock that takes a millisecond a step, all that depends on
// budgets and times follows from the counts.
func TestBudgets(t *testing.T) {
	run := compared(t, smallIsing(t), "gibbs,lb-1,gwg:steps=30", nil)
	gibbs, lb, gwg := run.Samplers[0], run.Samplers[1], run.Samplers[2]
	// lb-1 evaluates the proposal and its 6 neighbours.
	for _, c := range []struct {
		r       *Result
		steps   int
		perStep float64
	}{{gibbs, 60, 1}, {lb, 60, 7}, {gwg, 30, 1}} {
		if c.r.Steps != c.steps || c.r.Evaluations.PerStep != c.perStep ||
			c.r.Evaluations.Total() != int64(c.perStep)*int64(c.steps)*3 {
			t.Errorf("%s: %d steps, evaluations %+v", c.r.Sampler, c.r.Steps, c.r.Evaluations)
		}
		near(t, c.r.Sampler+" seconds", c.r.Timing.Seconds, float64(c.steps)/1000, 1e-12)
		kept := c.steps - c.steps/10
		near(t, c.r.Sampler+" ESS per second", c.r.Timing.ESSPerSecond, 3*c.r.ESS.Mean/(float64(kept)/1000), 1e-9)
		near(t, c.r.Sampler+" ESS per evaluation", c.r.ESS.PerEvaluation, c.r.ESS.Mean/float64(kept)/c.perStep, 1e-12)
		last := c.r.Curve[len(c.r.Curve)-1]
		if last.Step != c.steps || last.LogRMSE != c.r.LogRMSE || last.Evaluations != c.perStep*float64(c.steps) {
			t.Errorf("%s: last point %+v", c.r.Sampler, last)
		}
	}
	if gibbs.Evaluations.Conditionals == 0 || lb.Evaluations.Energies == 0 || gwg.Evaluations.Gradients == 0 {
		t.Error("evaluations are counted as another kind")
	}
	b := run.Comparison
	if b.Steps != 30 || b.Evaluations != 30 || math.Abs(*b.Seconds-0.03) > 1e-9 {
		t.Errorf("budgets %d steps, %v evaluations, %v seconds", b.Steps, b.Evaluations, *b.Seconds)
	}
	for i, want := range [][3]int{{30, 30, 30}, {30, 4, 30}, {30, 30, 30}} {
		row := b.Rows[i]
		got := [3]int{row.AtSteps.Step, row.AtEvaluations.Step, row.AtSeconds.Step}
		// A curve has a point within a step or two of any budget.
		for k := range got {
			if got[k] > want[k] || got[k] < want[k]-2 {
				t.Errorf("%s at equal budgets: steps %v, want at most %v", row.Sampler, got, want)
			}
		}
	}
}

// TestMovement: acceptance, proposed and changed slots agree with what they
// must be for samplers that propose one slot, or accept always.
func TestMovement(t *testing.T) {
	run := compared(t, smallIsing(t), "gwg,dula:step-size=0.4", func(o *Options) { o.Steps = 400 })
	gwg, dula := run.Samplers[0], run.Samplers[1]
	if gwg.Proposed != 1 || !(gwg.Acceptance > 0.5 && gwg.Acceptance < 1) {
		t.Errorf("gwg proposes %v slots, acceptance %v", gwg.Proposed, gwg.Acceptance)
	}
	near(t, "gwg changed", gwg.Changed, gwg.Acceptance, 1e-12)
	if dula.Acceptance != 1 || dula.Proposed != dula.Changed || *dula.AcceptanceStandardError != 0 {
		t.Errorf("dula: %+v", dula)
	}
	if !gwg.Exact || dula.Exact || *dula.StepSize != 0.4 || gwg.StepSize != nil {
		t.Error("exactness or step size is wrong")
	}
	single := compared(t, smallIsing(t), "gwg", func(o *Options) { o.Chains = 1 })
	if r := single.Samplers[0]; r.AcceptanceStandardError != nil || r.LogRMSEStandardError != nil ||
		r.ESS.StandardError != nil || r.Timing.ESSPerSecondStandardError != nil {
		t.Error("one chain has a standard error between chains")
	}
}

// TestWarmUp tunes what is not given and nothing else, and its steps are not
// measured.
func TestWarmUp(t *testing.T) {
	run := compared(t, smallIsing(t), "dmala,dmala:step-size=0.05,gibbs", func(o *Options) { o.WarmUp = 100 })
	free, fixed, gibbs := run.Samplers[0], run.Samplers[1], run.Samplers[2]
	if !free.WarmUp.Tuned || *free.StepSize < 0.3 {
		t.Errorf("a free step size came out as %v, %+v", *free.StepSize, free.WarmUp)
	}
	if fixed.WarmUp.Tuned || *fixed.StepSize != 0.05 || gibbs.WarmUp.Tuned {
		t.Errorf("a given step size became %v, %+v", *fixed.StepSize, fixed.WarmUp)
	}
	for _, r := range run.Samplers {
		if r.WarmUp.Evaluations != 300 || r.Evaluations.Total() != 180 {
			t.Errorf("%s: %d evaluations in the warm-up, %d measured", r.Sampler, r.WarmUp.Evaluations,
				r.Evaluations.Total())
		}
	}
}

// TestStochasticGradient: terms name a random subset, and repeat with the seed.
func TestStochasticGradient(t *testing.T) {
	once := compared(t, smallIsing(t), "dula:step-size=0.4,terms=2,dmala:step-size=0.4,terms=2", nil)
	again := compared(t, smallIsing(t), "dula:step-size=0.4,terms=2,dmala:step-size=0.4,terms=2", nil)
	if d := cmp.Diff(text(t, once), text(t, again)); d != "" {
		t.Error(d)
	}
	if once.Samplers[1].Evaluations.PerStep != 2 {
		t.Errorf("DMALA with a stochastic gradient: %+v", once.Samplers[1].Evaluations)
	}
}

// TestAll unfolds to every registered kernel that suits, and says of the others
// why not.
func TestAll(t *testing.T) {
	potts, err := NewProblem(context.Background(), "potts:size=2x2,coupling=0.3,field=0/0.1/0.2", 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*Problem{"potts": potts, "ising": smallIsing(t)} {
		run := compared(t, p, "all", func(o *Options) { o.Steps = 8 })
		seen := map[string]bool{}
		for _, r := range run.Samplers {
			seen[r.Name] = true
		}
		for _, l := range run.LeftOut {
			if seen[l.Sampler] || !strings.Contains(l.Reason, l.Sampler) || !strings.Contains(l.Reason, "needs") {
				t.Errorf("%s: %s left out: %s", name, l.Sampler, l.Reason)
			}
			seen[l.Sampler] = true
		}
		if len(seen) != len(samplers.Names()) {
			t.Errorf("%s: %d of %d samplers are accounted for", name, len(seen), len(samplers.Names()))
		}
		if name == "potts" && len(run.LeftOut) == 0 {
			t.Error("every kernel, those for binary slots too, runs on a Potts model")
		}
	}
}

// TestExactness: the samplers called exact come to the truth, on every target
// they run on, within five standard errors of a chain's mean. Conditionals that
// belong to no joint law make Gibbs inexact.
func TestExactness(t *testing.T) {
	ctx := context.Background()
	table, err := NewProblem(ctx, "table:target-seed=2,categories=3/2,scale=1,gradient-error=0.5,terms=1", 0)
	if err != nil {
		t.Fatal(err)
	}
	rbm, err := NewProblem(ctx, "rbm:data=none,visible=4,hidden=3,scale=0.5,target-seed=2", 0)
	if err != nil {
		t.Fatal(err)
	}
	problems := map[string]*Problem{"ising": smallIsing(t), "table": table, "rbm": rbm}
	for _, target := range []string{"fhmm:times=3,factors=2,noise=1", "mixture:slots=4,components=3",
		"contacts:size=2x3,states=2"} {
		if problems[target], err = NewProblem(ctx, target, 0); err != nil {
			t.Fatal(err)
		}
	}
	for name, p := range problems {
		run := compared(t, p, "gibbs,gwg,dmala:step-size=1,gibbs-x:block=2",
			func(o *Options) { o.Steps, o.Chains, o.Initial = 3000, 8, "uniform" })
		for _, r := range run.Samplers {
			// Root mean square error of one chain by its ESS, with the
			// largest variance an observable can have, 1 for spins.
			most := math.Log(1/math.Sqrt(r.ESS.Min)) + 0.7
			if !r.Exact || !(float64(r.LogRMSE) < most) {
				t.Errorf("%s: %s, exact %v: log RMSE %v after 3000 steps, ESS at least %v", name, r.Sampler, r.Exact,
					r.LogRMSE, r.ESS.Min)
			}
		}
	}
	unkind, err := NewProblem(ctx, "table:target-seed=2,categories=3/3,scale=1,conditional-error=1,terms=1", 0)
	if err != nil {
		t.Fatal(err)
	}
	run := compared(t, unkind, "gibbs,mlm-mh", func(o *Options) { o.Steps, o.Initial = 2000, "uniform" })
	if run.Samplers[0].Exact || !run.Samplers[1].Exact || !(run.Samplers[0].LogRMSE > run.Samplers[1].LogRMSE+0.5) {
		t.Errorf("wrong conditionals: log RMSE of gibbs %v, of mlm-mh %v", run.Samplers[0].LogRMSE,
			run.Samplers[1].LogRMSE)
	}
}

func TestSignature(t *testing.T) {
	run := compared(t, smallIsing(t), "gibbs:steps=9,dmala:step-size=0.4", nil)
	want := "lab:ising|size:2x3|coupling:0.1|field:0.2|samplers:gibbs:steps=9,dmala:step-size=0.4|chains:3|steps:60|" +
		"warm-up:0|discard:0.1|initial:independent|seed:7|version:test"
	if run.Signature != want {
		t.Errorf("got  %s\nwant %s", run.Signature, want)
	}
}

func TestParseSpecs(t *testing.T) {
	specs, err := ParseSpecs("gibbs, dmala:step-size=0.4,balance=ratio,gwg:steps=9,dula:steps=7,terms=2")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range specs {
		got = append(got, fmt.Sprintf("%s|%s|%d", s.Label, s.Spec, s.Steps))
	}
	want := []string{
		"gibbs|gibbs|0", "dmala:step-size=0.4,balance=ratio|dmala:step-size=0.4,balance=ratio|0",
		"gwg:steps=9|gwg|9", "dula:steps=7,terms=2|dula:terms=2|7",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("label, sampler and steps (-want +got):\n%s", d)
	}
}

// TestBadComparisons: every refusal names its option, and says what would do.
func TestBadComparisons(t *testing.T) {
	names := strings.Join(samplers.Names(), ", ")
	potts, err := NewProblem(context.Background(), "potts:size=2x2,field=0/0/0,coupling=0", 0)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		list   string
		change func(*Options)
		want   string
	}{
		{"gibs", nil, `samplers: "gibs" is not one of all, ` + names},
		{"", nil, `samplers: "": a sampler is missing between commas`},
		{"gibbs,,gwg", nil, `samplers: "gibbs,,gwg": a sampler is missing between commas`},
		{"gibbs,gibbs", nil, `samplers: "gibbs" is given twice`},
		{"all,gibbs", nil, `samplers: "gibbs" is given twice`},
		{"all:step-size=0.4", nil, `samplers: "all" is not one of all, ` + names},
		{"dmala:step-size=0", nil, `samplers: dmala: step-size "0" is not a number above 0`},
		{"dmala:step-size=x", nil, `samplers: dmala: step-size "x" is not a number above 0`},
		{"dmala:0.4", nil, `samplers: dmala has no 0.4: it moves all slots at once`},
		{"pafs:radius=0", nil, `samplers: pafs: radius "0" is not a whole number of 1 or more`},
		{"pafs:steps=0", nil, `samplers: pafs: steps "0" is not a whole number of 1 or more`},
		{"dmala:balance=2", nil, `samplers: dmala: balance "2" is not one of`},
		{"gibbs:step-size=0.4", nil, `samplers: gibbs has no step-size`},
		{"gwg-x:radius=5", nil,
			`samplers: "gwg-x:radius=5" does not suit this potts: radius 5: choose from 1 to the number of slots, 4`},
		{"r-mala", nil, `samplers: "r-mala" does not suit this potts: r-mala needs a target with`},
		{"gibbs", func(o *Options) { o.Discard = 1 }, "discard: 1 is not a number of 0 or more and below 1"},
		{"gibbs", func(o *Options) { o.Discard = math.NaN() }, "discard: NaN is not a number of 0 or more and below 1"},
		{"gibbs", func(o *Options) { o.Initial = "zero" }, `initial: "zero" is not one of uniform, independent`},
		{"gibbs", func(o *Options) { o.Samplers = nil }, "samplers: none given: give at least one"},
		{"gibbs", func(o *Options) { o.Steps = 1 << 29 }, "steps: 536870912 steps of 3 chains on 4 slots keep " +
			"6.44e+09 states of slots, and at most 1073741824 can be kept: take fewer steps or chains"},
	}
	for _, test := range tests {
		specs, err := ParseSpecs(test.list)
		if err == nil {
			o := Options{Samplers: specs, Chains: 3, Steps: 5, Initial: "uniform"}
			if test.change != nil {
				test.change(&o)
			}
			_, err = Compare(context.Background(), potts, o)
		}
		var option *OptionError
		if !errors.As(err, &option) || !strings.HasPrefix(err.Error(), test.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want %q", test.list, err, test.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	specs, err := ParseSpecs("gibbs")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Compare(ctx, potts, Options{Samplers: specs, Chains: 1, Steps: 5, Initial: "uniform"}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("a cancelled run: %v", err)
	}
}

// TestOneState: a target with one state is known at once, and the report of it
// can be written.
func TestOneState(t *testing.T) {
	p, err := NewProblem(context.Background(), "potts:size=1x2,field=1,coupling=0", 0)
	if err != nil {
		t.Fatal(err)
	}
	run := compared(t, p, "gibbs,gwg,dmala:step-size=1,hamming-ball",
		func(o *Options) { o.Clock = func() time.Time { return time.Unix(0, 0) } })
	if _, err := (&Report{Runs: []*Run{run}}).Write(t.TempDir(), "svg"); err != nil {
		t.Fatal(err)
	}
	for _, r := range run.Samplers {
		if !math.IsInf(float64(r.LogRMSE), -1) || r.ESS.Still != 6 || r.Timing.ESSPerSecond != 0 {
			t.Errorf("%s: %+v, %+v", r.Sampler, r, r.ESS)
		}
	}
}

// TestWarnings tell of estimated truths and of chains that stand or disagree.
func TestWarnings(t *testing.T) {
	p, err := NewProblem(context.Background(), "ising:size=3x3,coupling=0.5,truth=run,truth-sweeps=20,field=0", 0)
	if err != nil {
		t.Fatal(err)
	}
	run := compared(t, p, "gibbs,dula:step-size=0.02,d-svgd", func(o *Options) { o.Steps = 200 })
	all := strings.Join(run.warnings(), "\n")
	for _, want := range []string{"estimates of a long run (gibbs, 16 chains × 180 steps)", "do not agree",
		"dula:step-size=0.02: 27 of 27 observables of a chain never changed", "gibbs: ",
		"d-svgd: its chains are particles"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q among:\n%s", want, all)
		}
	}
	if fine := compared(t, smallIsing(t), "gibbs-x:block=6",
		func(o *Options) { o.Steps = 1000 }).warnings(); len(fine) > 0 {
		t.Errorf("warnings of independent draws: %v", fine)
	}
}

// TestKeptResults: a comparison with a folder measures a sampler once, and finds
// the same as one without.
func TestKeptResults(t *testing.T) {
	p, dir, steps := smallIsing(t), t.TempDir(), 0
	options := DefaultOptions()
	options.Chains, options.Steps, options.WarmUp = 2, 20, 0
	whole, err := Compare(t.Context(), p, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	options.Folder = dir
	options.Observe = func(at Progress) {
		if steps++; steps == 50 {
			cancel()
		}
	}
	if _, err := Compare(ctx, p, options); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	resumed, err := Compare(t.Context(), p, options)
	if err != nil {
		t.Fatal(err)
	}
	// Two samplers were done; the third began anew.
	if steps != 50+40 {
		t.Errorf("%d steps in all", steps)
	}
	whole.WithoutTimes()
	resumed.WithoutTimes()
	if text(t, resumed) != text(t, whole) {
		t.Errorf("kept:\n%s\nat once:\n%s", text(t, resumed), text(t, whole))
	}
}
