package lab

import (
	"context"
	"flag"
	"fmt"
	"strconv"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// coverage counts how often the interval of annealed importance sampling holds the
// exact log Z, on random Ising models that can be enumerated.
type coverage struct {
	sites    int
	coupling float64
	samplers specs
	steps    list[int]
	chains   int
	runs     int
	repeats  int
}

func newCoverage() *Study {
	list, _ := ParseSpecs("gibbs,gwg,dmala:step-size=0.4")
	return newStudy("ais", "How often annealed importance sampling's interval holds log Z",
		`Estimate log Z by annealed importance sampling on random Ising models whose states can be
listed, and count how often the 95 % interval holds the exact value: once a run, each of a model of
its own. It is the check of the likelihoods of learn images.`, &coverage{
			sites: 16, coupling: 0.1, samplers: list, steps: []int{100}, chains: 100, runs: 200, repeats: 1,
		})
}

func (o *coverage) register(f *flag.FlagSet) {
	WholeVar(f, &o.sites, "sites", 1, 20, "sites of a model")
	numberVar(f, &o.coupling, "coupling", " of 0 or more",
		"standard deviation of the couplings; fields are N(0, 0.5²), and the chains start by them")
	f.Var(&o.samplers, "samplers", "samplers of the chains; they must be exact")
	f.Var(&o.steps, "steps", "temperatures, each with one step of the sampler")
	WholeVar(f, &o.chains, "chains", 2, maxChains, "chains of each run")
	WholeVar(f, &o.runs, "runs", 1, 1<<20, "runs of each cell")
	repeatsVar(f, &o.repeats)
}

func (o *coverage) plan(context.Context) (*plan, error) {
	if err := checkedSpecs(o.samplers); err != nil {
		return nil, err
	}
	p := &plan{
		title: fmt.Sprintf("annealed importance sampling on Ising models of %d sites", o.sites),
		columns: []column{
			{name: "covered", format: "%.3f",
				definition: "fraction of the intervals that hold the exact log Z; they are of 95 %", against: "steps"},
			{name: "bias", format: "%.4f", definition: "mean of the estimate of log Z less the exact one, nats"},
			{name: "width", format: "%.4f", definition: "mean width of the intervals that are bounded, nats"},
			{name: "effective", format: "%.2f", definition: "mean effective fraction of the chains, (Σw)²/(n Σw²)"},
			{name: "seconds", format: "%.1f", definition: secondsAre, timed: true},
		},
		notes: []string{fmt.Sprintf("of %d runs of true 95 %% intervals, 93 to 97 %% cover in %.0f %% of the cases",
			o.runs, 100*binomialBetween(o.runs, 0.95, 0.93, 0.97))},
	}
	for _, spec := range o.samplers {
		if !samplers.Describe(spec.Name).Exact && spec.Name != "gibbs" {
			return nil, refuse("samplers", "%s is not exact, and annealed importance sampling needs steps that are",
				spec.Name)
		}
	}
	p.trainings(o.samplers, o.steps, o.repeats, o.count)
	return p, nil
}

// covered is what a cell has counted so far.
type covered struct {
	Runs, Covered            int
	Errors, Widths, Fraction []float64
}

func (o *coverage) count(ctx context.Context, b *bench, spec Spec, steps int) error {
	var s covered
	if _, err := b.resume(&s); err != nil {
		return err
	}
	for s.Runs < o.runs {
		label := "run " + strconv.Itoa(s.Runs)
		r := b.streams(label, 1)[0]
		field, base := targets.Normals(r, o.sites, 0.5), make([][]float64, o.sites)
		for i, h := range field {
			base[i] = []float64{logmath.Sigmoid(-2 * h), logmath.Sigmoid(2 * h)}
		}
		model, err := newPairwise(symmetricNormals(o.sites, o.coupling, r), field)
		if err != nil {
			return err
		}
		e, err := targets.Enumerate(ctx, model)
		if err != nil {
			return err
		}
		z, err := annealedImportance(ctx, model, base, aisOptions{spec, steps, o.chains}, b.seed,
			b.repeat+label+spec.Label, func(int) error { return nil })
		if err != nil {
			return err
		}
		s.Runs++
		if z.low <= e.LogNormaliser && e.LogNormaliser <= z.high {
			s.Covered++
		}
		s.Errors = append(s.Errors, z.value-e.LogNormaliser)
		if width := z.high - z.low; logmath.Finite(width) {
			s.Widths = append(s.Widths, width)
		}
		s.Fraction = append(s.Fraction, z.effective/float64(o.chains))
		if err := b.tick(ctx, s.Runs, o.runs, &s); err != nil {
			return err
		}
	}
	b.number("covered", float64(s.Covered)/float64(s.Runs))
	b.number("bias", stat.Mean(s.Errors, nil))
	b.number("width", stat.Mean(s.Widths, nil))
	b.number("effective", stat.Mean(s.Fraction, nil))
	b.number("seconds", b.seconds())
	return nil
}

// binomialBetween is the probability that a fraction of n trials, each with probability p, is between low and high.
func binomialBetween(n int, p, low, high float64) (sum float64) {
	law := distuv.Binomial{N: float64(n), P: p}
	for k := range n + 1 {
		if f := float64(k) / float64(n); f >= low && f <= high {
			sum += law.Prob(float64(k))
		}
	}
	return sum
}
