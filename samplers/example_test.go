package samplers_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"slices"

	"infill/samplers"
)

// spins are −1 or 1, all in one field: U = field · Σ s.
type spins struct {
	categories []int
	field      float64
}

var _ samplers.GradientTarget = (*spins)(nil)

func (r *spins) Categories() []int { return r.categories }

func (r *spins) Energy(_ context.Context, states []int, energy []float64) error {
	clear(energy)
	for i, spin := range states {
		energy[i/len(r.categories)] += r.field * float64(2*spin-1)
	}
	return nil
}

// EnergyGradient: the derivative by θ_j[v] is that of the linear U, at both
// values.
func (r *spins) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	for i := range states {
		gradient[2*i] = -r.field
		gradient[2*i+1] = r.field
	}
	return r.Energy(ctx, states, energy)
}

// DMALA samples 25 spins in a field. The mean of a spin lies within 3
// standard errors of the exact one.
func Example() {
	ctx := context.Background()
	target := &spins{categories: make([]int, 25), field: 0.3}
	for i := range target.categories {
		target.categories[i] = 2
	}
	kernel, err := samplers.DMALA{}.Kernel(target, nil)
	if err != nil {
		log.Fatal(err)
	}
	streams := samplers.Streams(7, "example", 4)
	draws := make([][]float64, len(streams))
	plan := samplers.Plan{Streams: streams, WarmUp: 200, Steps: 2000}
	_, err = samplers.Sample(ctx, kernel, samplers.RandomPositions(target, streams), plan, func(s samplers.Step) error {
		for c := range draws {
			if !s.WarmUp {
				draws[c] = append(draws[c], float64(2*s.State.Position(c)[0]-1))
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	sum := 0.0
	for _, chain := range draws {
		for _, spin := range chain {
			sum += spin
		}
	}
	const exact = 0.291313 // tanh 0.3
	mean := sum / 8000
	off := (mean - exact) / math.Sqrt((1-mean*mean)/samplers.EffectiveSampleSize(draws))
	fmt.Println("within 3 standard errors of the exact mean:", off > -3 && off < 3)
	fmt.Println("chains agree:", samplers.SplitRHat(draws) < samplers.LargestRHat)
	// Output:
	// within 3 standard errors of the exact mean: true
	// chains agree: true
}

// A balance weighs a proposal by the energy that it gains: to the power β of
// the ratio of probabilities.
func ExamplePowerBalance() {
	s := samplers.DMALA{StepSize: 0.4, Balance: samplers.PowerBalance(0.25)}
	fmt.Println(samplers.Text(s))
	// Output:
	// dmala:step-size=0.4,balance=0.25
}

// flipper proposes to flip each spin with probability p, which is its step
// size.
type flipper struct {
	target samplers.Target
	p      float64
}

var _ samplers.Tuned = (*flipper)(nil)

func (f *flipper) StepSize() float64                 { return f.p }
func (f *flipper) Bounds() (lowest, highest float64) { return 0.001, 0.5 }

func (f *flipper) SetStepSize(p float64) error {
	f.p = p
	return nil
}

func (f *flipper) Init(ctx context.Context, positions []int) (*samplers.State, error) {
	chains := len(positions) / len(f.target.Categories())
	s := &samplers.State{Positions: slices.Clone(positions), Energy: make([]float64, chains)}
	return s, f.target.Energy(ctx, s.Positions, s.Energy)
}

func (f *flipper) Step(ctx context.Context, s *samplers.State, streams []*rand.Rand, info *samplers.Info) error {
	slots := s.Slots()
	proposal := &samplers.State{Positions: slices.Clone(s.Positions), Energy: make([]float64, s.Chains())}
	for i := range proposal.Positions {
		if streams[i/slots].Float64() < f.p {
			proposal.Positions[i] ^= 1
		}
	}
	err := f.target.Energy(ctx, proposal.Positions, proposal.Energy)
	if err != nil {
		return err
	}
	*info = samplers.Info{LogAcceptance: make([]float64, s.Chains()), Accepted: make([]bool, s.Chains()),
		Proposal: proposal.Positions, Changed: make([]int, s.Chains())}
	for c, u := range proposal.Energy {
		info.LogAcceptance[c] = u - s.Energy[c]
		info.Accepted[c] = math.Log(streams[c].Float64()) < u-s.Energy[c]
		if !info.Accepted[c] {
			continue
		}
		for slot, value := range proposal.Position(c) {
			if s.Position(c)[slot] != value {
				info.Changed[c]++
			}
		}
		copy(s.Position(c), proposal.Position(c))
		s.Energy[c] = u
	}
	return nil
}

// A kernel of one's own that says what its step size is: a warm-up adapts it.
func ExampleTuned() {
	target := &spins{categories: slices.Repeat([]int{2}, 64), field: 1}
	kernel := &flipper{target: target, p: 0.5}
	streams := samplers.Streams(1, "example", 8)
	plan := samplers.Plan{Streams: streams, WarmUp: 300, Steps: 100}
	run, err := samplers.Sample(context.Background(), kernel, samplers.RandomPositions(target, streams), plan,
		func(samplers.Step) error { return nil })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("tuned:", run.Tuned, "smaller than at first:", kernel.StepSize() < 0.5)
	// Output:
	// tuned: true smaller than at first: true
}

// ring is a target of your own: spins of three values on a ring, U = 1 for each
// pair of neighbours that agree. A target needs these two methods.
type ring struct{ categories []int }

func (r ring) Categories() []int { return r.categories }

func (r ring) Energy(_ context.Context, states []int, energy []float64) error {
	slots := len(r.categories)
	for chain := range energy {
		state := states[chain*slots:][:slots]
		energy[chain] = 0
		for i, spin := range state {
			if spin == state[(i+1)%slots] {
				energy[chain]++
			}
		}
	}
	return nil
}

// Whatever has an energy can be sampled. The mean energy of the ring is known:
// 4.61 over all 6,561 states.
func ExampleTarget() {
	target := ring{slices.Repeat([]int{3}, 8)}
	kernel, err := samplers.BlockGibbs{Block: 2}.Kernel(target, nil)
	if err != nil {
		log.Fatal(err)
	}
	streams := samplers.Streams(7, "ring", 8)
	means := make([]float64, len(streams))
	plan := samplers.Plan{Streams: streams, WarmUp: 100, Steps: 2000}
	_, err = samplers.Sample(context.Background(), kernel, samplers.RandomPositions(target, streams), plan,
		func(s samplers.Step) error {
			for chain, u := range s.State.Energy {
				if !s.WarmUp {
					means[chain] += u / 2000
				}
			}
			return nil
		})
	if err != nil {
		log.Fatal(err)
	}
	mean, standardError := samplers.MeanAndError(means)
	fmt.Println("within 3 standard errors:", math.Abs(mean-4.614) < 3*standardError)
	// Output:
	// within 3 standard errors: true
}

// A sampler is a struct whose fields are its settings. Parse reads one as users
// write it, and Text writes what is not a default.
func ExampleParse() {
	s, err := samplers.Parse("dmala:step-size=0.4,balance=ratio")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Describe().Title)
	fmt.Println(samplers.Text(s))
	_, err = samplers.Parse("dmala:size=1")
	fmt.Println(err)
	// Output:
	// discrete Metropolis-adjusted Langevin
	// dmala:step-size=0.4,balance=ratio
	// dmala has no size: its settings are balance, preconditioner, step-size, terms
}

// With changes a setting by its name, for programs that read names and values.
func ExampleWith() {
	s, err := samplers.With(samplers.GWG{}, "balance", "ratio")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(samplers.Text(s), samplers.Settings(s))
	// Output:
	// gwg:balance=ratio [balance terms]
}

// Temper flattens a target: at temperature 2, chains cross more easily between
// states that a narrow path of low probability separates.
func ExampleTemper() {
	target := &spins{categories: []int{2, 2}, field: 3}
	warm, err := samplers.Temper(target, 2)
	if err != nil {
		log.Fatal(err)
	}
	energy := make([]float64, 2)
	err = warm.Energy(context.Background(), []int{1, 1, 0, 0}, energy)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(energy)
	// Output:
	// [3 -3]
}

// Chains that did not mix show it: here each stays at its own level.
func ExampleSplitRHat() {
	agree := [][]float64{{1, 2, 1, 2, 2, 1, 2, 1}, {2, 1, 1, 2, 1, 2, 2, 1}}
	apart := [][]float64{{1, 2, 1, 2, 2, 1, 2, 1}, {5, 6, 5, 6, 6, 5, 6, 5}}
	fmt.Println(samplers.SplitRHat(agree) < samplers.LargestRHat)
	fmt.Println(samplers.SplitRHat(apart) < samplers.LargestRHat)
	// Output:
	// true
	// false
}

// Draws that follow each other are alike, so 400 of a chain tell less about the
// mean than 400 independent ones: those here change about every tenth step.
func ExampleEffectiveSampleSize() {
	stream := samplers.Streams(1, "example", 1)[0]
	chain := make([]float64, 400)
	for i := 1; i < len(chain); i++ {
		chain[i] = chain[i-1]
		if stream.Float64() < 0.1 {
			chain[i] = stream.NormFloat64()
		}
	}
	n := samplers.EffectiveSampleSize([][]float64{chain})
	fmt.Println("less than a fifth of them:", n < 80)
	// Output:
	// less than a fifth of them: true
}

// Acceptance sums up the steps of a run. Its error comes from the differences
// between chains, because the steps of one chain are not independent.
func ExampleAcceptance() {
	target := &spins{categories: slices.Repeat([]int{2}, 25), field: 1}
	kernel, err := samplers.DMALA{StepSize: 5}.Kernel(target, nil)
	if err != nil {
		log.Fatal(err)
	}
	streams := samplers.Streams(7, "example", 4)
	var acceptance samplers.Acceptance
	_, err = samplers.Sample(context.Background(), kernel, samplers.RandomPositions(target, streams),
		samplers.Plan{Streams: streams, Steps: 500}, func(s samplers.Step) error {
			if s.Info != nil { // nil at the start
				acceptance.Observe(s.Info.Accepted, s.Info.Changed)
			}
			return nil
		})
	if err != nil {
		log.Fatal(err)
	}
	rate, standardError := samplers.MeanAndError(acceptance.Rates())
	fmt.Printf("%d steps, acceptance %.2f ± %.2f\n", acceptance.Steps(), rate, standardError)
	// Output:
	// 500 steps, acceptance 0.22 ± 0.01
}

// weather is a distribution by the chain rule, from the first day to the last:
// a day is dry (0) or wet (1), and mostly as the day before.
type weather struct{}

func (weather) PartialConditionals(_ context.Context, asked []samplers.Partial, take func(int, []float32)) error {
	for i, a := range asked {
		wet := 0.5
		if a.Slot > 0 && a.State[a.Slot-1] == 0 {
			wet = 0.2
		} else if a.Slot > 0 {
			wet = 0.7
		}
		take(i, []float32{float32(math.Log(1 - wet)), float32(math.Log(wet))})
	}
	return nil
}

// A search finds the likeliest states of a law, and proves that no other is
// likelier, without looking at all of them.
func ExampleSearch() {
	search, err := samplers.NewSearch([]samplers.Law{{Target: weather{}, Order: []int{0, 1, 2, 3, 4}}})
	if err != nil {
		log.Fatal(err)
	}
	err = search.Run(context.Background(), 2, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range search.Found()[:2] {
		fmt.Printf("%v %.3f\n", f.State, math.Exp(f.LogProbability))
	}
	fmt.Println("proven:", search.Proven())
	// Output:
	// [0 0 0 0 0] 0.205
	// [1 1 1 1 1] 0.120
	// proven: true
}

// Draw makes independent draws from a law: there is no warm-up, and nothing to
// converge.
func ExampleDraw() {
	laws := []samplers.Law{{Target: weather{}, Order: []int{0, 1, 2, 3, 4}}}
	drawn, err := samplers.Draw(context.Background(), laws, 1, samplers.Streams(7, "days", 1000), nil)
	if err != nil {
		log.Fatal(err)
	}
	dry := 0
	for _, d := range drawn {
		if !slices.Contains(d.Found.State, 1) {
			dry++
		}
	}
	const exact = 0.5 * 0.8 * 0.8 * 0.8 * 0.8
	fmt.Println("about as many are dry:", math.Abs(float64(dry)/1000-exact) < 0.04)
	// Output:
	// about as many are dry: true
}

// Choices narrow which states are found, here to those that end wet, and leave
// their probabilities as they are.
func ExampleLaw() {
	law := samplers.Law{Target: weather{}, Order: []int{0, 1, 2}, Choices: func(_ []int, slot int) []int {
		if slot == 2 {
			return []int{1}
		}
		return []int{0, 1}
	}}
	search, err := samplers.NewSearch([]samplers.Law{law})
	if err != nil {
		log.Fatal(err)
	}
	err = search.Run(context.Background(), 1, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	best := search.Found()[0]
	fmt.Printf("%v %.3f\n", best.State, math.Exp(best.LogProbability))
	// Output:
	// [1 1 1] 0.245
}
