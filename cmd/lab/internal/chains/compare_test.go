package chains

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/internal/check"
	"infill/internal/targets"
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

// opened is a target that is written as in [NewDistribution].
func opened(t *testing.T, text string) *distribution {
	t.Helper()
	return check.Must(NewDistribution(t.Context(), &lab.Inputs{}, text, 0))(t)
}

func smallIsing(t *testing.T) *distribution {
	t.Helper()
	return opened(t, "ising:size=2x3,coupling=0.1,field=0.2")
}

// compareOptions are the options of a comparison and of the study that runs it.
type compareOptions struct {
	Options
	lab.StudyOptions
}

// compareStudy is a comparison on a target that is made already.
func compareStudy(d *distribution, o Options) *lab.Study {
	s := lab.NewStudy(d.kind)
	s.Plan = func(_ context.Context, _ *lab.Inputs, seed uint64) (*lab.Plan, error) {
		p := s.NewPlan("Samplers on " + d.String())
		p.BetweenChains(o.Chains)
		return p, compare(p, d, o, seed)
	}
	return s
}

func compared(t *testing.T, p *distribution, list string, change func(*compareOptions)) *lab.StudyReport {
	t.Helper()
	specs := check.Must(lab.ParseSpecs(list))(t)
	o := compareOptions{
		Options{Samplers: specs, Chains: 3, Steps: 60, Initial: "independent", now: ticker()},
		lab.StudyOptions{Seed: 7, Version: "test"},
	}
	if change != nil {
		change(&o)
	}
	return labtest.Studied(t, compareStudy(p, o.Options), o.StudyOptions)
}

// TestReproducible: two runs of a seed are equal but for their times, another
// seed is not, and a sampler does the same alone as in company.
func TestReproducible(t *testing.T) {
	run := func(list string, seed uint64) *lab.StudyReport {
		r := compared(t, smallIsing(t), list, func(o *compareOptions) { o.Seed, o.now, o.WarmUp = seed, lab.Clock, 20 })
		r.WithoutTimes()
		return r
	}
	const list = "gibbs,dula:step-size=0.4,dmala,d-svgd,dula:step-size=0.4,terms=2,dmala:step-size=0.4,terms=2"
	first, second := run(list, 7), run(list, 7)
	if d := cmp.Diff(labtest.Text(t, first), labtest.Text(t, second)); d != "" {
		t.Errorf("two runs of one seed differ:\n%s", d)
	}
	for _, word := range []string{"seconds", "by-second"} {
		if strings.Contains(labtest.Text(t, first), word) {
			t.Errorf("%q is left in a result without times", word)
		}
	}
	if labtest.Text(t, run("gibbs", 8).Cells[0].Numbers) == labtest.Text(t, first.Cells[0].Numbers) {
		t.Error("two seeds give one result")
	}
	// Chains that cannot move show where they start: by the seed.
	still := func(seed uint64) float64 { return run("dula:step-size=0.001", seed).Cells[0].Numbers[byStep] }
	if still(7) == still(8) {
		t.Error("two seeds start at the same states")
	}
	if n := first.Cells[5].Numbers; n["evaluations"] != 2 {
		t.Errorf("DMALA with a stochastic gradient: %v", n)
	}
	alone, company := run("dmala", 7).Cells[0], first.Cells[2]
	for _, budget := range []string{"steps", "evaluations", "seconds"} { // these depend on the others
		for _, c := range []*lab.CellResult{alone, company} {
			delete(c.Numbers, byStep+"-at-"+budget)
			delete(c.Errors, byStep+"-at-"+budget)
		}
	}
	if d := cmp.Diff(labtest.Text(t, company), labtest.Text(t, alone)); d != "" {
		t.Errorf("a sampler in company and alone:\n%s", d)
	}
}

// TestBudgets: with a clock that takes a millisecond a step, all that depends
// on budgets and times follows from the counts.
func TestBudgets(t *testing.T) {
	run := compared(t, smallIsing(t), "gibbs,lb-1,gwg:steps=30", nil)
	gibbs, lb, gwg := run.Cells[0], run.Cells[1], run.Cells[2]
	// lb-1 evaluates the proposal and its 6 neighbours.
	for _, c := range []struct {
		r              *lab.CellResult
		steps, perStep float64
	}{{gibbs, 60, 1}, {lb, 60, 7}, {gwg, 30, 1}} {
		n, name := c.r.Numbers, c.r.Labels.Value("sampler")
		if n["evaluations"] != c.perStep || n["energies"]+n["gradients"]+n["conditionals"] != c.perStep*c.steps*3 {
			t.Errorf("%s: evaluations %v", name, n)
		}
		labtest.Near(t, name+" seconds", n["seconds"], c.steps/1000, 1e-12)
		kept := c.steps - c.steps/10
		labtest.Near(t, name+" ESS per second", n["ess-by-second"], 3*n["ess"]*kept/1000/(kept/1000), 1e-9)
		labtest.Near(t, name+" ESS per evaluation", n["ess-by-evaluation"], n["ess"]/c.perStep, 1e-12)
		points := c.r.Curves[byStep]
		if last := points[len(points)-1]; last.X != c.steps || last.Y != n[byStep] ||
			last.Evaluations != c.perStep*c.steps {
			t.Errorf("%s: last point %+v", name, last)
		}
	}
	if gibbs.Numbers["conditionals"] == 0 || lb.Numbers["energies"] == 0 || gwg.Numbers["gradients"] == 0 {
		t.Error("evaluations are counted as another kind")
	}
	definitions := run.Text()
	for _, want := range []string{"fewest steps of a sampler, 30\n", "fewest evaluations of a sampler, 30\n",
		"fewest seconds of a sampler, 0.03\n"} {
		if !strings.Contains(definitions, want) {
			t.Errorf("no %q in\n%s", want, definitions)
		}
	}
	for i, want := range [][3]float64{{30, 30, 30}, {30, 4, 30}, {30, 30, 30}} {
		c := run.Cells[i]
		// A curve has a point within a step or two of any budget.
		for k, budget := range []string{"steps", "evaluations", "seconds"} {
			at := slices.IndexFunc(c.Curves[byStep],
				func(s lab.Sample) bool { return s.Y == c.Numbers[byStep+"-at-"+budget] })
			if got := c.Curves[byStep][at].X; got > want[k] || got < want[k]-2 {
				t.Errorf("%s at equal %s: step %v, want at most %v", c.Labels.Value("sampler"), budget, got, want[k])
			}
		}
	}
}

// TestMovement: acceptance, proposed and changed slots agree with what they
// must be for samplers that propose one slot, or accept always.
func TestMovement(t *testing.T) {
	run := compared(t, smallIsing(t), "gwg,dula:step-size=0.4", func(o *compareOptions) { o.Steps = 400 })
	gwg, dula := run.Cells[0].Numbers, run.Cells[1].Numbers
	if gwg["proposed"] != 1 || !(gwg["acceptance"] > 0.5 && gwg["acceptance"] < 1) {
		t.Errorf("gwg proposes %v slots, acceptance %v", gwg["proposed"], gwg["acceptance"])
	}
	labtest.Near(t, "gwg changed", gwg["changed"], gwg["acceptance"], 1e-12)
	if e, known := run.Cells[1].Errors["acceptance"]; dula["acceptance"] != 1 || dula["proposed"] != dula["changed"] ||
		e != 0 || !known {
		t.Errorf("dula: %+v", dula)
	}
	if _, has := gwg["step-size"]; gwg["exact"] != 1 || dula["exact"] != 0 || dula["step-size"] != 0.4 || has {
		t.Error("exactness or step size is wrong")
	}
	single := compared(t, smallIsing(t), "gwg", func(o *compareOptions) { o.Chains = 1 })
	if errs := single.Cells[0].Errors; len(errs) > 0 {
		t.Errorf("one chain has standard errors between chains: %v", errs)
	}
}

// TestWarmUp tunes what is not given and nothing else, and its steps are not
// measured.
func TestWarmUp(t *testing.T) {
	run := compared(t, smallIsing(t), "dmala,dmala:step-size=0.05,gibbs", func(o *compareOptions) { o.WarmUp = 100 })
	free, fixed, gibbs := run.Cells[0].Numbers, run.Cells[1].Numbers, run.Cells[2].Numbers
	if free["tuned"] != 1 || free["step-size"] < 0.3 {
		t.Errorf("a free step size came out as %v", free["step-size"])
	}
	if fixed["tuned"] != 0 || fixed["step-size"] != 0.05 || gibbs["tuned"] != 0 {
		t.Errorf("a given step size became %v", fixed["step-size"])
	}
	for _, c := range run.Cells {
		if n := c.Numbers; n["warm-up-evaluations"] != 300 || n["energies"]+n["gradients"]+n["conditionals"] != 180 {
			t.Errorf("%s: %v", c.Labels.Value("sampler"), n)
		}
	}
}

// TestAll unfolds to every registered kernel that suits, and says of the others
// why not.
func TestAll(t *testing.T) {
	potts := opened(t, "potts:size=2x2,coupling=0.3,field=0/0.1/0.2")
	for name, p := range map[string]*distribution{"potts": potts, "ising": smallIsing(t)} {
		run := compared(t, p, "all", func(o *compareOptions) { o.Steps = 8 })
		seen := map[string]bool{}
		for _, c := range run.Cells {
			seen[c.Labels.Value("sampler")] = true
		}
		left := 0
		for _, note := range run.Plan.Notes {
			reason, found := strings.CutPrefix(note, "left out: ")
			if !found {
				continue
			}
			sampler, _, needs := strings.Cut(reason, " needs ")
			if seen[sampler] || !needs || !slices.Contains(samplerNames(), sampler) {
				t.Errorf("%s: %s", name, note)
			}
			seen[sampler] = true
			left++
		}
		if len(seen) != len(samplers.All()) {
			t.Errorf("%s: %d of %d samplers are accounted for", name, len(seen), len(samplers.All()))
		}
		if name == "potts" && left == 0 {
			t.Error("every kernel, those for binary slots too, runs on a Potts model")
		}
	}
}

func samplerNames() (names []string) {
	for _, s := range samplers.All() {
		names = append(names, s.Describe().Name)
	}
	return names
}

// TestExactness: the samplers called exact come to the truth, on every target
// they run on, within five standard errors of a chain's mean. Conditionals that
// belong to no joint law make Gibbs inexact.
func TestExactness(t *testing.T) {
	for _, name := range []string{"ising:size=2x3", "fhmm:times=3,factors=2,noise=1",
		"table:target-seed=2,categories=3/2,scale=1,gradient-error=0.5,terms=1",
		"rbm:data=none,visible=4,hidden=3,scale=0.5,target-seed=2"} {
		p := opened(t, name)
		run := compared(t, p, "gibbs,gwg,dmala:step-size=1,gibbs-x:block=2",
			func(o *compareOptions) { o.Steps, o.Chains, o.Initial = 3000, 8, "uniform" })
		for _, c := range run.Cells {
			n := c.Numbers
			// Root mean square error of one chain by its ESS, with the
			// largest variance an observable can have, 1 for spins.
			most := math.Log(1/math.Sqrt(n["ess-least"]*2.7)) + 0.7
			if n["exact"] != 1 || !(n[byStep] < most) {
				t.Errorf("%s: %v: after 3000 steps %v", name, c.Labels, n)
			}
		}
	}
	unkind := opened(t, "table:target-seed=2,categories=3/3,scale=1,conditional-error=1,terms=1")
	run := compared(t, unkind, "gibbs,mlm-mh", func(o *compareOptions) { o.Steps, o.Initial = 2000, "uniform" })
	gibbs, mlm := run.Cells[0].Numbers, run.Cells[1].Numbers
	if gibbs["exact"] != 0 || mlm["exact"] != 1 || !(gibbs[byStep] > mlm[byStep]+0.5) {
		t.Errorf("wrong conditionals: log RMSE of gibbs %v, of mlm-mh %v", gibbs[byStep], mlm[byStep])
	}
}

// TestBadComparisons: every refusal names its option, and says what would do.
func TestBadComparisons(t *testing.T) {
	names := strings.Join(samplerNames(), ", ")
	potts := opened(t, "potts:size=2x2,field=0/0/0,coupling=0")
	tests := []struct {
		list   string
		change func(*Options)
		want   string
	}{
		{"gibbs,gibbs", nil, `samplers: "gibbs" is given twice`},
		{"all:step-size=0.4", nil, `samplers: "all" is not one of all, ` + names},
		{"pafs:steps=0", nil, `samplers: pafs: steps "0" is not a whole number of 1 or more`},
		{"gwg-x:radius=5", nil,
			`samplers: "gwg-x:radius=5" does not suit this potts: radius 5: choose from 1 to the number of slots, 4`},
		{"gibbs", func(o *Options) { o.Steps = 1 << 29 }, "steps: 536870912 steps of 3 chains on 4 slots keep " +
			"6.44e+09 states of slots, and at most 1073741824 can be kept: take fewer steps or chains"},
	}
	for _, test := range tests {
		specs, err := lab.ParseSpecs(test.list)
		if err == nil {
			o := Options{Samplers: specs, Chains: 3, Steps: 5, Initial: "uniform", now: lab.Clock}
			if test.change != nil {
				test.change(&o)
			}
			_, err = compareStudy(potts, o).Run(t.Context(), lab.StudyOptions{})
		}
		var option *lab.OptionError
		if !errors.As(err, &option) || !strings.HasPrefix(err.Error(), test.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want %q", test.list, err, test.want)
		}
	}
}

// TestOneState: a target with one state is known at once, and the report of it
// can be written.
func TestOneState(t *testing.T) {
	p := opened(t, "potts:size=1x2,field=1,coupling=0")
	run := compared(t, p, "gibbs,gwg,dmala:step-size=1,hamming-ball",
		func(o *compareOptions) { o.now = func() time.Time { return time.Unix(0, 0) } })
	if _, err := run.Write(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for _, c := range run.Cells {
		_, finite := c.Numbers[byStep]
		_, timed := c.Numbers["ess-by-second"]
		if finite || timed || len(c.Warnings) != 1 || !strings.HasPrefix(c.Warnings[0], "6 of 6 observables") {
			t.Errorf("%v: %v, %v", c.Labels, c.Numbers, c.Warnings)
		}
	}
}

// TestWarnings tell of chains that stand or disagree.
func TestWarnings(t *testing.T) {
	p := opened(t, "ising:size=11,coupling=0.5,field=0.01")
	run := compared(t, p, "gibbs,dula:step-size=0.02,d-svgd", func(o *compareOptions) { o.Steps = 200 })
	all := strings.Join(run.Warnings(), "\n")
	for _, want := range []string{"dula:step-size=0.02: 192 of 192 observables of a chain never changed",
		"gibbs: ", "d-svgd: its chains are particles"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q among:\n%s", want, all)
		}
	}
	if fine := compared(t, smallIsing(t), "gibbs-x:block=6",
		func(o *compareOptions) { o.Steps = 1000 }).Warnings(); len(fine) > 0 {
		t.Errorf("warnings of independent draws: %v", fine)
	}
}

// TestBlind: without a gradient, GWG flips each slot with the same probability,
// and accepts by exp U alone. The fraction that it accepts follows from an
// enumeration: Σ π(θ) Σ_i 1/n min(1, exp(U(θ^i) - U(θ))), and it stays below
// that of GWG.
func TestBlind(t *testing.T) {
	d := opened(t, "ising:size=2x3,coupling=0.1,field=0.2")
	e := check.Must(targets.Enumerate(t.Context(), d.Target))(t)
	want := 0.0
	for i, p := range e.Probability {
		for slot := range 6 {
			flipped := slices.Clone(e.State(i))
			flipped[slot] = 1 - flipped[slot]
			want += p / 6 * math.Min(1, math.Exp(e.Energy[e.Index(flipped)]-e.Energy[i]))
		}
	}
	report := compared(t, d, "gwg:gradient=none,gwg", func(o *compareOptions) {
		o.Chains, o.Steps, o.WarmUp = 40, 2000, 50
	})
	blind, gwg := report.Cells[0], report.Cells[1]
	got := blind.Numbers["acceptance"]
	if math.Abs(got-want) > 4*blind.Errors["acceptance"] || blind.Errors["acceptance"] > 0.01 {
		t.Errorf("acceptance %v ± %v, the enumeration has %v", got, blind.Errors["acceptance"], want)
	}
	if got >= gwg.Numbers["acceptance"] || blind.Numbers["exact"] != 1 || blind.Numbers[byStep] > -2 {
		t.Errorf("%v beside %v", blind.Numbers, gwg.Numbers)
	}
	for _, text := range []string{"gwg:gradient=half", "dmala:gradient=none"} {
		_, err := lab.ParseSpecs(text)
		if err == nil || !strings.Contains(err.Error(), "only gwg takes gradient, and only none") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func study(t *testing.T, name string, settings ...string) *lab.Study {
	t.Helper()
	return labtest.Study(t, Studies(), name, settings...)
}
