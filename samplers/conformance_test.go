package samplers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"infill/internal/check"
	"infill/internal/logmath"
	"infill/internal/targets"
)

// form is one form of one registered kernel, with the claims that the tests check.
type form struct {
	sampler     string // as Parse reads it
	temperature float64
	target      func(t *testing.T) Target
	// transitions is the transition matrix by an independent formula.
	// It is nil where continuous numbers leave nothing to list; those kernels
	// are proven in relaxed_test.go.
	transitions func(t *testing.T, w *world) [][]float64
	exact       bool // stationary law is π
	reversible  bool // in detailed balance with π
	rejects     bool // takes and refuses proposals on this target
}

func (f form) name() string {
	if f.temperature != 0 {
		return fmt.Sprintf("%s T=%v", f.sampler, f.temperature)
	}
	return f.sampler
}

func (f form) parsed(t *testing.T) Sampler {
	t.Helper()
	return check.Must(Parse(f.sampler))(t)
}

// stochastic tells whether the form takes gradients of a few terms.
func (f form) stochastic(t *testing.T) bool { return strings.Contains(f.sampler, "terms=") }

// over makes the form's kernel.
func (f form) over(t *testing.T, target Target) Kernel {
	t.Helper()
	kernel, err := f.parsed(t).Kernel(target, rand.New(rand.NewPCG(5, 6)))
	if err != nil {
		t.Fatal(err)
	}
	return kernel
}

// newFrom makes the kernel of a sampler by its text.
func newFrom(sampler string, target Target) (Kernel, error) {
	s, err := Parse(sampler)
	if err != nil {
		return nil, err
	}
	return s.Kernel(target, nil)
}

// names are those of all samplers.
func names() (list []string) {
	for _, s := range All() {
		list = append(list, s.Describe().Name)
	}
	return list
}

// makeKernel is the kernel of a sampler.
func makeKernel(t testing.TB, sampler string, target Target) *kernel {
	t.Helper()
	k, err := newFrom(sampler, target)
	if err != nil {
		t.Fatal(err)
	}
	return k.(*kernel)
}

// started is the state of chains that start at positions.
func started(t testing.TB, kernel Kernel, positions []int) *State {
	t.Helper()
	state, err := kernel.Init(context.Background(), positions)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// ragged is a table of 24 states over slots of 3, 2 and 4 categories, whose
// gradient is an estimate.
func ragged(o targets.TableOptions) func(t *testing.T) Target {
	return func(t *testing.T) Target {
		t.Helper()
		table, err := targets.NewTable([]int{3, 2, 4}, rand.New(rand.NewPCG(1, 2)), o)
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
}

func roughTable() func(t *testing.T) Target {
	return ragged(targets.TableOptions{Scale: 1.2, GradientError: 0.5})
}

func forms(t *testing.T) []form {
	preconditioner := []float64{0.5, 2, 1.25}
	const given = ",preconditioner=0.5/2/1.25"
	tablesOf := ragged(targets.TableOptions{Scale: 1.2, GradientError: 0.5, Terms: 3})
	var all []form
	add := func(f form) { all = append(all, f) }

	// Gibbs, with conditionals of π and with others.
	conditionals := func(t *testing.T, w *world) [][]float64 {
		return w.singleSite(w.conditional)
	}
	add(form{sampler: "gibbs", target: roughTable(), transitions: conditionals, exact: true, reversible: true})
	add(form{sampler: "gibbs", temperature: 1.7, target: roughTable(), transitions: conditionals, exact: true,
		reversible: true})

	balances := []struct {
		balance string
		g       function
	}{
		{"sqrt", powerOf(0.5)}, {"0.8", powerOf(0.8)}, {"1", powerOf(1)},
		{"ratio", barker}, {"min", atMostOne}, {"max", atLeastOne},
	}
	for _, b := range balances {
		add(form{sampler: "gwg:balance=" + b.balance, target: roughTable(), exact: true, reversible: true,
			rejects: true,
			transitions: func(t *testing.T,
				w *world) [][]float64 {
				return w.metropolis(w.gradientGibbs(w.gradient, b.g))
			}})
		for _, alpha := range []float64{0.4, 3, math.Inf(1)} {
			add(form{sampler: fmt.Sprintf("dmala:step-size=%v,balance=%s", alpha, b.balance), target: roughTable(),
				exact: true, reversible: true, rejects: true,
				transitions: func(t *testing.T, w *world) [][]float64 {
					return w.metropolis(w.langevin(w.gradient, b.g, alpha, nil))
				}})
			add(form{sampler: fmt.Sprintf("dula:step-size=%v,balance=%s", alpha, b.balance), target: roughTable(),
				transitions: func(t *testing.T,
					w *world) [][]float64 {
					return w.langevin(w.gradient, b.g, alpha, nil)
				}})
		}
	}
	add(form{sampler: "dmala:step-size=0.7" + given, target: roughTable(), exact: true, reversible: true, rejects: true,
		transitions: func(t *testing.T, w *world) [][]float64 {
			return w.metropolis(w.langevin(w.gradient, powerOf(0.5), 0.7, preconditioner))
		}})
	add(form{sampler: "dula:step-size=0.7" + given, target: roughTable(),
		transitions: func(t *testing.T, w *world) [][]float64 {
			return w.langevin(w.gradient, powerOf(0.5), 0.7, preconditioner)
		}})
	add(form{sampler: "dmala:step-size=0.7", temperature: 2.5, target: roughTable(), exact: true, reversible: true,
		rejects: true,
		transitions: func(t *testing.T, w *world) [][]float64 {
			return w.metropolis(w.langevin(w.gradient, powerOf(0.5), 0.7, nil))
		}})
	for _, size := range []int{1, 2} {
		byTerms := func(t *testing.T, w *world, kernel func(gradient [][]float64) [][]float64) [][]float64 {
			var ms [][][]float64
			for _, terms := range subsets(3, size) {
				ms = append(ms, kernel(
					w.gradients(t, func(ctx context.Context, states []int, energy, gradient []float64) error {
						return w.target.(StochasticGradientTarget).EnergyGradientOf(ctx, terms, states, energy,
							gradient)
					})))
			}
			return mean(ms)
		}
		add(form{sampler: fmt.Sprintf("dmala:step-size=0.9,terms=%d", size), target: tablesOf, exact: true,
			reversible: true, rejects: true,
			transitions: func(t *testing.T, w *world) [][]float64 {
				return byTerms(t, w,
					func(g [][]float64) [][]float64 { return w.metropolis(w.langevin(g, powerOf(0.5), 0.9, nil)) })
			}})
		add(form{sampler: fmt.Sprintf("gwg:terms=%d", size), target: tablesOf, exact: true, reversible: true,
			rejects: true,
			transitions: func(t *testing.T, w *world) [][]float64 {
				return byTerms(t, w,
					func(g [][]float64) [][]float64 { return w.metropolis(w.gradientGibbs(g, powerOf(0.5))) })
			}})
	}

	// Proposals from conditionals that are not those of exp(U).
	foreign := ragged(targets.TableOptions{Scale: 1.2, ConditionalError: 0.7})
	for _, block := range []int{1, 2, 3} {
		add(form{sampler: fmt.Sprintf("mlm-mh:block=%d", block), target: foreign, exact: true, reversible: true,
			rejects:     true,
			transitions: func(t *testing.T, w *world) [][]float64 { return w.byBlocks(w.masked(t), block) }})
	}
	add(form{sampler: "mlm-mh:block=2", temperature: 1.4, target: foreign, exact: true, reversible: true, rejects: true,
		transitions: func(t *testing.T, w *world) [][]float64 { return w.byBlocks(w.masked(t), 2) }})

	for _, b := range balances[:2] {
		for _, radius := range []int{1, 2, 3} {
			add(form{sampler: fmt.Sprintf("pafs:balance=%s,radius=%d", b.balance, radius), target: roughTable(),
				exact: true, reversible: true, rejects: true,
				transitions: func(t *testing.T,
					w *world) [][]float64 {
					return w.pathAuxiliary(w.gradient, b.g, radius)
				}})
			add(form{sampler: fmt.Sprintf("gwg-x:balance=%s,radius=%d", b.balance, radius), target: roughTable(),
				exact: true, reversible: true, rejects: true,
				transitions: func(t *testing.T,
					w *world) [][]float64 {
					return w.severalSlots(w.gradient, b.g, radius)
				}})
		}
		for _, tau := range []float64{0.05, 0.6, 20} {
			add(form{sampler: fmt.Sprintf("dlmc:balance=%s,step-size=%v", b.balance, tau), target: roughTable(),
				exact: true, reversible: true, rejects: true,
				transitions: func(t *testing.T, w *world) [][]float64 {
					return w.metropolis(w.wasserstein(w.gradient, b.g, tau, true))
				}})
			add(form{sampler: fmt.Sprintf("dlmc-euler:balance=%s,step-size=%v", b.balance, tau), target: roughTable(),
				exact: true, reversible: true, rejects: true,
				transitions: func(t *testing.T, w *world) [][]float64 {
					return w.metropolis(w.wasserstein(w.gradient, b.g, tau, false))
				}})
		}
		add(form{sampler: "dmala-adaptive:step-size=0.8,balance=" + b.balance, target: roughTable(), exact: true,
			reversible: true, rejects: true,
			transitions: func(t *testing.T, w *world) [][]float64 {
				return w.metropolis(w.langevin(w.gradient, b.g, 0.8, nil))
			}})
		add(form{sampler: "lb-1:balance=" + b.balance, target: roughTable(), exact: true, reversible: true,
			rejects: true,
			transitions: func(t *testing.T, w *world) [][]float64 {
				return w.metropolis(w.gradientGibbs(w.exactDifferences(), b.g))
			}})
	}

	// Slots of two categories, where a fixed number of changes would keep their parity.
	square := func(t *testing.T) Target { return lattice(t, 2, 2) }
	for radius := 2; radius <= 4; radius++ {
		add(form{sampler: fmt.Sprintf("pafs:radius=%d", radius), target: square, exact: true, reversible: true,
			rejects: true,
			transitions: func(t *testing.T, w *world) [][]float64 {
				return mean([][][]float64{w.pathAuxiliary(w.gradient, powerOf(0.5), radius-1),
					w.pathAuxiliary(w.gradient, powerOf(0.5), radius)})
			}})
	}
	add(form{sampler: "acs:step-size=2,smallest=0.5,cycle=2", target: roughTable(), exact: true, reversible: true,
		rejects: true,
		transitions: func(t *testing.T, w *world) [][]float64 {
			return w.metropolis(w.langevin(w.gradient, powerOf(0.85), 2, nil))
		}})

	for _, alpha := range []float64{0.6, math.Inf(1)} {
		ordinal := func(t *testing.T, w *world) [][]float64 {
			gradient, distance := w.onALine(t)
			return w.apart(gradient, powerOf(0.5), alpha, distance, []int{0, 1, 2})
		}
		add(form{sampler: fmt.Sprintf("dula-ordinal:step-size=%v", alpha), target: roughTable(), transitions: ordinal})
		add(form{sampler: fmt.Sprintf("dmala-ordinal:step-size=%v", alpha), target: roughTable(), exact: true,
			reversible: true, rejects: true,
			transitions: func(t *testing.T, w *world) [][]float64 { return w.metropolis(ordinal(t, w)) }})
	}

	for _, block := range []int{1, 2, 3} {
		add(form{sampler: fmt.Sprintf("gibbs-x:block=%d", block), target: roughTable(), exact: true, reversible: true,
			transitions: func(t *testing.T, w *world) [][]float64 { return w.ball(block, block) }})
	}
	for _, size := range [][2]int{{1, 1}, {2, 1}, {3, 1}, {3, 2}} {
		add(form{sampler: fmt.Sprintf("hamming-ball:block=%d,radius=%d", size[0], size[1]), target: roughTable(),
			exact: true, reversible: true,
			transitions: func(t *testing.T, w *world) [][]float64 { return w.ball(size[0], size[1]) }})
	}

	rbm := func(t *testing.T) Target { return machine(t) }
	add(form{sampler: "rbm-gibbs", target: rbm, exact: true, reversible: true,
		transitions: func(t *testing.T, w *world) [][]float64 { return w.bipartite() }})
	for _, name := range []string{"r-mala", "r-hmc", "d-svgd"} {
		add(form{sampler: name + ":step-size=0.3,smoothing=0.7", target: rbm})
	}
	return all
}

// interacts tells kernels whose chains move together and without chance.
func interacts(k Kernel) bool {
	_, stein := k.(*kernel).mover.(*steinDescent)
	return stein
}

// masked is the conditional of a slot in an open block, asked of the target.
func (w *world) masked(t *testing.T) func(i int, block []int, slot, v int) float64 {
	logp := make([]float64, len(w.categories)*w.wide)
	return func(i int, block []int, slot, v int) float64 {
		open := make([]bool, len(w.categories))
		for _, j := range block {
			open[j] = true
		}
		if err := w.target.(MaskedConditionalTarget).LogMaskedConditionals(context.Background(), w.State(i), open,
			logp); err != nil {
			t.Fatal(err)
		}
		return math.Exp(logp[slot*w.wide+v])
	}
}

// make makes the form's kernel and the enumerated target it is to sample,
// tempered when the form says so.
func (f form) make(t *testing.T) (Kernel, *world) {
	t.Helper()
	target := f.target(t)
	if f.temperature != 0 {
		target = atTemperature(t, target, f.temperature)
	}
	return f.over(t, target), newWorld(t, target)
}

func TestEveryKernelHasAForm(t *testing.T) {
	tested := map[string]bool{}
	for _, f := range forms(t) {
		tested[f.parsed(t).Describe().Name] = true
	}
	for _, name := range names() {
		if !tested[name] {
			t.Errorf("%s is registered and has no enumerated test", name)
		}
	}
}

// The transition matrix of the step that runs, path by path, is that of the
// independent formula; it leaves π invariant, or its own law.
func TestTransitionMatrix(t *testing.T) {
	if testing.Short() {
		t.Skip("what a matrix holds, which the plain run checks")
	}
	for _, f := range forms(t) {
		if f.transitions == nil {
			continue
		}
		t.Run(f.name(), func(t *testing.T) {
			kernel, w := f.make(t)
			got := transitionMatrix(t, kernel, w.Enumeration)
			checkReached(t, got)
			want := f.transitions(t, w)
			if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-10)); d != "" {
				t.Fatalf("transition matrix (-formula +kernel):\n%s", d)
			}
			if f.exact {
				checkInvariant(t, w.Probability, got)
			}
			if f.reversible {
				checkDetailedBalance(t, w.Probability, got)
			}
			if !f.exact {
				law := stationary(want)
				checkInvariant(t, law, got)
				if d := distance(law, w.Probability); d < 1e-4 {
					t.Errorf("the unadjusted law is at distance %g of π: the test cannot tell them apart", d)
				}
			}
		})
	}
}

// checkReached checks that steps lead from the first state to every other; by
// detailed balance, they lead back.
func checkReached(t *testing.T, p [][]float64) {
	t.Helper()
	reached := []int{0}
	for n := 0; n < len(reached); n++ {
		for to, x := range p[reached[n]] {
			if x > 0 && !slices.Contains(reached, to) {
				reached = append(reached, to)
			}
		}
	}
	if len(reached) < len(p) {
		t.Errorf("%d of %d states are reached", len(reached), len(p))
	}
}

func checkInvariant(t *testing.T, law []float64, p [][]float64) {
	t.Helper()
	for j := range law {
		after := 0.0
		for i := range law {
			after += law[i] * p[i][j]
		}
		if !(math.Abs(after-law[j]) <= 1e-8) {
			t.Errorf("state %d: probability %.12g becomes %.12g after a step", j, law[j], after)
		}
	}
}

func checkDetailedBalance(t *testing.T, law []float64, p [][]float64) {
	t.Helper()
	for i := range law {
		for j := range law {
			if !(math.Abs(law[i]*p[i][j]-law[j]*p[j][i]) <= 1e-8) {
				t.Errorf("flow %d → %d is %.12g, back %.12g", i, j, law[i]*p[i][j], law[j]*p[j][i])
			}
		}
	}
}

// distance is the L1 distance of two laws.
func distance(a, b []float64) float64 {
	d := 0.0
	for i := range a {
		d += math.Abs(a[i] - b[i])
	}
	return d
}

// TestRandom: decisions by a stream have their probabilities, to 5 standard
// errors of 100,000. All else of a kernel follows a script in
// TestTransitionMatrix.
func TestRandom(t *testing.T) {
	const draws = 100000
	src := random{rand.New(rand.NewPCG(3, 4))}
	for _, c := range []struct {
		name   string
		draw   func() int
		weight []float64 // sum 10
	}{
		{"categorical", func() int { return src.categorical([]float64{0.5, 0, 2, 0.1, 7, 0.4, 0}) },
			[]float64{0.5, 0, 2, 0.1, 7, 0.4, 0}},
		{"index", func() int { return src.index(4) }, []float64{2.5, 2.5, 2.5, 2.5}},
		{"chance", func() int { return slices.Index([]bool{true, false}, src.chance(0.3)) }, []float64{3, 7}},
	} {
		counts := make([]float64, len(c.weight))
		for range draws {
			counts[c.draw()]++
		}
		for i, w := range c.weight {
			p := w / 10
			if !(math.Abs(counts[i]-p*draws) <= 5*math.Sqrt(p*(1-p)*draws)) {
				t.Errorf("%s: %d is drawn %v times of %d, its probability is %v", c.name, i, counts[i], draws, p)
			}
		}
	}
}

// The kernel run with real streams moves as its transition matrix says. Each
// observed frequency must lie within 5 standard errors and 3 counts; the
// counts are for cells too rare for a normal law.
func TestObservedTransitions(t *testing.T) {
	const chains = 300
	for _, f := range forms(t) {
		if f.transitions == nil {
			continue
		}
		t.Run(f.name(), func(t *testing.T) {
			kernel, w := f.make(t)
			want := f.transitions(t, w)
			streams := Streams(11, f.name(), chains)
			var info Info
			accepted, rejected := 0, 0
			// A stochastic gradient is shared by the chains of a step, so
			// its chains are observed over many steps instead.
			batch := chains
			if f.stochastic(t) {
				batch = 4
			}
			for i := range want {
				counts := make([]float64, w.Len())
				for done := 0; done < chains; done += batch {
					state := started(t, kernel, slices.Repeat(w.State(i), batch))
					if err := kernel.Step(context.Background(), state, streams[:batch], &info); err != nil {
						t.Fatal(err)
					}
					for c := range batch {
						counts[w.Index(state.Position(c))]++
						if info.Accepted[c] {
							accepted++
						} else {
							rejected++
						}
						if moved := changes(w.State(i), state.Position(c)); moved != info.Changed[c] {
							t.Fatalf("Changed says %d slots, %d differ", info.Changed[c], moved)
						}
						if info.Accepted[c] && !slices.Equal(state.Position(c), info.proposal(c)) {
							t.Fatalf("an accepted proposal is not the position")
						}
					}
				}
				for to, n := range counts {
					p := math.Max(0, want[i][to]) // a difference of sums can be -1e-17
					margin := 5*math.Sqrt(p*(1-p)*float64(chains)) + 3
					if f.stochastic(t) {
						margin *= math.Sqrt(float64(batch)) // chains of a batch share the subset
					}
					if !(math.Abs(n-p*float64(chains)) <= margin) {
						t.Errorf("%v → %v: %v of %d chains, expected %.1f ± %.1f", w.State(i), w.State(to), n, chains,
							p*float64(chains), margin)
					}
				}
			}
			if accepted == 0 || (rejected > 0) != f.rejects {
				t.Errorf("%d accepted, %d rejected; want rejections: %v", accepted, rejected, f.rejects)
			}
		})
	}
}

// A state's cached energies and gradients are the target's at its positions.
func TestCachedState(t *testing.T) {
	for _, f := range forms(t) {
		t.Run(f.name(), func(t *testing.T) {
			ctx := context.Background()
			kernel, w := f.make(t)
			const chains = 5
			streams := Streams(3, "cache", chains)
			state := started(t, kernel, RandomPositions(w.target, streams))
			energy := make([]float64, chains)
			known, _ := state.own.(*surroundings)
			var gradient []float64
			if known != nil {
				gradient = make([]float64, len(known.gradient))
			}
			// The target that gives a fresh gradient: LB-1 has its own.
			var fresh GradientTarget
			if k, ok := engineOf(kernel); ok {
				fresh = k.target
			}
			err := advance(ctx, kernel, state, streams, 40, func(step int, s *State, info *Info) error {
				if err := s.Evaluate(ctx, w.target); err != nil {
					return err
				}
				switch {
				case known == nil:
					if err := w.target.Energy(ctx, s.Positions, energy); err != nil {
						return err
					}
				case known.terms != nil:
					if err := fresh.(StochasticGradientTarget).EnergyGradientOf(ctx, known.terms, s.Positions, energy,
						gradient); err != nil {
						return err
					}
				default:
					if err := fresh.EnergyGradient(ctx, s.Positions, energy, gradient); err != nil {
						return err
					}
				}
				if d := cmp.Diff(energy, s.Energy); d != "" {
					return fmt.Errorf("step %d: energy (-fresh +cached):\n%s", step, d)
				}
				if known == nil {
					return nil
				}
				if d := cmp.Diff(gradient, known.gradient); d != "" {
					return fmt.Errorf("step %d: gradient (-fresh +cached):\n%s", step, d)
				}
				k, _ := engineOf(kernel)
				return checkWeights(k, s)
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// checkWeights compares the proposal weights a state holds for its next step
// with those measured again at its positions.
func checkWeights(k *informed, s *State) error {
	known := s.own.(*surroundings)
	if !known.measured || known.revision != k.revision {
		return nil // they will be measured
	}
	fresh := newNeighbourhood(k.categories, s.Chains())
	size := len(known.gradient) / s.Chains()
	for c := range s.Chains() {
		fresh.measure(c, k.scorer, s.Position(c), known.gradient[c*size:(c+1)*size])
	}
	for _, d := range []string{
		cmp.Diff(fresh.logTotal, known.weights.logTotal), cmp.Diff(fresh.logBlock, known.weights.logBlock),
		cmp.Diff(fresh.auxiliary, known.weights.auxiliary),
	} {
		if d != "" {
			return fmt.Errorf("proposal weights (-fresh +cached):\n%s", d)
		}
	}
	return nil
}

// A chain walks the same path alone, among others, and a second time.
func TestBatchIndependence(t *testing.T) {
	for _, f := range forms(t) {
		t.Run(f.name(), func(t *testing.T) {
			if kernel, _ := f.make(t); interacts(kernel) {
				t.Skip("its particles move together")
			}
			walk := func(from, to int) [][]int {
				kernel, w := f.make(t)
				streams := Streams(21, "walk", 6)
				positions := RandomPositions(w.target, streams)
				m := len(w.categories)
				state := started(t, kernel, positions[from*m:to*m])
				paths := make([][]int, to-from)
				err := advance(context.Background(), kernel, state, streams[from:to], 30,
					func(_ int, s *State, _ *Info) error {
						for c := range paths {
							paths[c] = append(paths[c], s.Position(c)...)
						}
						return nil
					})
				if err != nil {
					t.Fatal(err)
				}
				return paths
			}
			together := walk(0, 6)
			if d := cmp.Diff(together, walk(0, 6)); d != "" {
				t.Errorf("the same seed gave another path:\n%s", d)
			}
			for c := range together {
				if d := cmp.Diff(together[c], walk(c, c+1)[0]); d != "" {
					t.Errorf("chain %d walks elsewhere alone:\n%s", c, d)
				}
			}
			if slices.Equal(together[0], together[1]) {
				t.Error("two chains walked the same path")
			}
		})
	}
}

// altered is a table whose answers are changed. Conditionals come without an energy.
type altered struct {
	*targets.Table
	change func(states []int, energy, gradient []float64) error
}

func (a altered) Energy(ctx context.Context, states []int, energy []float64) error {
	return errors.Join(a.Table.Energy(ctx, states, energy), a.change(states, energy, nil))
}

func (a altered) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	return errors.Join(a.Table.EnergyGradient(ctx, states, energy, gradient), a.change(states, energy, gradient))
}

func (a altered) EnergyGradientOf(ctx context.Context, terms, states []int, energy, gradient []float64) error {
	err := a.Table.EnergyGradientOf(ctx, terms, states, energy, gradient)
	return errors.Join(err, a.change(states, energy, gradient))
}

func (a altered) EnergyDerivative(ctx context.Context, states []int, energy, derivative []float64) error {
	return errors.Join(a.Table.EnergyDerivative(ctx, states, energy, derivative), a.change(states, energy, derivative))
}

func (a altered) LogConditionals(ctx context.Context, states, slots []int, logp []float64) error {
	return errors.Join(a.Table.LogConditionals(ctx, states, slots, logp), a.change(states, nil, nil))
}

func (a altered) LogMaskedConditionals(ctx context.Context, states []int, open []bool, logp []float64) error {
	return errors.Join(a.Table.LogMaskedConditionals(ctx, states, open, logp), a.change(states, nil, nil))
}

// A poison spoils chosen states.
type poison struct {
	name     string
	energy   float64 // written to the energy of a spoilt state, if not 0
	gradient float64 // written to one entry of its gradient, if not 0
}

// spoilt tells whether a state is spoilt: those have category 0 of slot 0.
func spoilt(state []int) bool { return state[0] == 0 && state[2] > 1 }

func (p poison) change(states []int, energy, gradient []float64) error {
	for c := range energy {
		if !spoilt(states[3*c : 3*c+3]) {
			continue
		}
		if p.energy != 0 {
			energy[c] = p.energy
		}
		if gradient != nil && p.gradient != 0 {
			gradient[c*len(gradient)/len(energy)] = p.gradient
		}
	}
	return nil
}

// States whose energy or gradient is not finite are never entered, and π on
// the others stays invariant.
func TestUnusableProposalsAreRejected(t *testing.T) {
	if testing.Short() {
		t.Skip("what a matrix holds, which the plain run checks")
	}
	poisons := []poison{
		{"NaN energy", math.NaN(), 0}, {"+Inf energy", math.Inf(1), 0}, {"-Inf energy", math.Inf(-1), 0},
		{"NaN gradient", 0, math.NaN()}, {"+Inf gradient", 0, math.Inf(1)},
	}
	for _, f := range forms(t) {
		if _, ok := f.target(t).(*targets.Table); !ok || f.sampler == "gibbs" {
			continue // no table, or it knows neither energies nor gradients
		}
		for _, poison := range poisons {
			t.Run(f.name()+" "+poison.name, func(t *testing.T) {
				clean, w := f.make(t)
				if poison.gradient != 0 && !usesGradient(clean, w) {
					t.Skip("no gradient to spoil")
				}
				var target Target = altered{f.target(t).(*targets.Table), poison.change}
				if f.temperature != 0 {
					target = atTemperature(t, target, f.temperature)
				}
				kernel := f.over(t, target)
				p := transitionMatrix(t, kernel, w.Enumeration)
				law, total := make([]float64, w.Len()), 0.0
				for i := range law {
					switch bad := spoilt(w.State(i)); {
					case bad && slices.Max(p[i]) > 0:
						t.Errorf("the kernel starts at the unusable state %v", w.State(i))
					case bad:
						continue
					default:
						law[i] = w.Probability[i]
						total += law[i]
					}
					for to := range law {
						if spoilt(w.State(to)) && p[i][to] != 0 {
							t.Errorf("%v → %v with probability %v: it is unusable", w.State(i), w.State(to), p[i][to])
						}
					}
				}
				for i := range law {
					law[i] /= total
				}
				if f.exact {
					checkInvariant(t, law, p)
				}
				if f.reversible {
					checkDetailedBalance(t, law, p)
				}
			})
		}
	}
}

func usesGradient(kernel Kernel, w *world) bool {
	state, err := kernel.Init(context.Background(), w.State(0))
	if err != nil {
		return false
	}
	var info Info
	err = kernel.Step(context.Background(), state, Streams(1, "", 1), &info)
	return err == nil && info.Cost.Gradients > 0
}

// Differences of ±1000 nats leave everything finite and π invariant.
func TestExtremeEnergies(t *testing.T) {
	for _, f := range forms(t) {
		t.Run(f.name(), func(t *testing.T) {
			if _, ok := f.target(t).(*targets.Table); !ok {
				t.Skip("no table")
			}
			o := targets.TableOptions{Scale: 1000, GradientError: 300, Terms: 3}
			f.target = ragged(o)
			kernel, w := f.make(t)
			p := transitionMatrix(t, kernel, w.Enumeration)
			for i, row := range p {
				for to, v := range row {
					if !(v >= 0 && v <= 1+1e-9) {
						t.Errorf("%v → %v has probability %v", w.State(i), w.State(to), v)
					}
				}
			}
			if f.exact {
				checkInvariant(t, w.Probability, p)
			}
			streams := Streams(8, "extreme", 16)
			state := started(t, kernel, RandomPositions(w.target, streams))
			err := advance(context.Background(), kernel, state, streams, 20, func(_ int, s *State, info *Info) error {
				for c, l := range info.LogAcceptance {
					if math.IsNaN(l) || math.IsInf(l, 1) {
						return fmt.Errorf("chain %d: log acceptance %v", c, l)
					}
				}
				return s.Evaluate(context.Background(), w.target)
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range state.Energy {
				if !logmath.Finite(u) {
					t.Errorf("energy %v", u)
				}
			}
		})
	}
}
