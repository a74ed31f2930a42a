package samplers

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/internal/check"
	"infill/internal/parallel"
	"infill/internal/targets"
)

func atTemperature(t *testing.T, target Target, temperature float64) Target {
	t.Helper()
	w, err := Temper(target, temperature)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// only hides all but the plain target.
type only struct{ Target }

// withLatents gives the lattice idle latent units.
type withLatents struct{ *targets.Ising }

// LogMaskedConditionals makes all categories alike.
func (withLatents) LogMaskedConditionals(_ context.Context, _ []int, _ []bool, logp []float64) error {
	for i := range logp {
		logp[i] = -math.Ln2
	}
	return nil
}

func (t withLatents) Latents() int { return 1 }

func (withLatents) LatentLogits(_ []int, logits []float64) { clear(logits) }

func (withLatents) SlotLogits(_ []bool, logits []float64) { clear(logits) }

func lattice(t testing.TB, rows, columns int) *targets.Ising {
	t.Helper()
	target, err := targets.NewIsing(rows, columns, 0.1, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func TestStreams(t *testing.T) {
	first := func(seed uint64, label string, chains int) []uint64 {
		var x []uint64
		for _, s := range Streams(seed, label, chains) {
			x = append(x, s.Uint64())
		}
		return x
	}
	four, two := first(7, "a", 4), first(7, "a", 2)
	if d := cmp.Diff(four[:2], two); d != "" {
		t.Errorf("a chain's stream depends on the number of chains:\n%s", d)
	}
	seen := map[uint64]bool{}
	for _, x := range slices.Concat(four, first(8, "a", 4), first(7, "b", 4), first(7, "", 4)) {
		if seen[x] {
			t.Errorf("two streams start with %d", x)
		}
		seen[x] = true
	}
}

func TestNewErrors(t *testing.T) {
	target := lattice(t, 2, 2)
	table := roughTable()(t)
	for _, c := range []struct {
		name, sampler string
		target        Target
		want          []string // all must be in the message
	}{
		{"unknown", "hmc", target, append([]string{`"hmc"`}, names()...)},
		{"no gradient", "dmala", only{target}, []string{"dmala", "gradient"}},
		{"no gradient below a temperature", "gwg", atTemperature(t, only{target}, 2), []string{"gwg", "gradient"}},
		{"no conditionals", "gibbs", only{target}, []string{"gibbs", "conditionals"}},
		{"no terms", "dula:terms=1", struct{ GradientTarget }{target}, []string{"dula", "terms"}},
		{"no term stream", "dula:terms=1", target, []string{"stream"}},
		{"too many terms", "dula:terms=5", target, []string{"5 terms", "has 4"}},
		{"short preconditioner", "dmala:preconditioner=1", target, []string{"1 preconditioner", "4 slots"}},
		{"wrong length", "dmala:preconditioner=1", table, []string{"3 slots"}},
		{"too many slots", "pafs:radius=5", target, []string{"radius 5", "slots, 4"}},
		{"too large a block", "gibbs-x:block=5", target, []string{"block 5", "slots, 4"}},
		{"too large a block of a ball", "hamming-ball:block=5", target, []string{"block 5", "slots, 4"}},
		{"too large a radius", "hamming-ball:block=2,radius=3", target, []string{"radius 3", "slots, 2"}},
		{"too large a block of the model", "mlm-mh:block=4", table, []string{"block 4", "slots, 3"}},
		{"too many states", "gibbs-x:block=25", lattice(t, 5, 5), []string{"gibbs-x would evaluate", "smaller blocks"}},
		{"too large a ball", "hamming-ball:block=25,radius=12", lattice(t, 5, 5),
			[]string{"hamming-ball would evaluate up to 1.68e+07 states"}}, // half of all 2^25
		{"short preconditioner of numbers", "dmala-ordinal:preconditioner=1", roughTable()(t),
			[]string{"1 preconditioner"}},
		{"no power", "acs:exponent=ratio", target, []string{`exponent "ratio" is not a number from 0.5 to 1`}},
		{"an endless step", "acs:step-size=inf", target, []string{`step-size "inf" is not a number above 0`}},
		{"a shrinking cycle", "acs:step-size=0.1", target, []string{"must not be the larger"}},
		{"no target", "dmala", nil, []string{"no target"}},
		{"no slots", "gwg", shaped(nil), []string{"no slots"}},
		{"empty slot", "gwg", shaped([]int{2, 0}), []string{"slot 1 has 0 categories"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			shared := rand.New(rand.NewPCG(1, 1))
			if c.name == "no term stream" {
				shared = nil
			}
			s, err := Parse(c.sampler)
			if err == nil {
				_, err = s.Kernel(c.target, shared)
			}
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q has more than one line", err)
			}
			if lacks := strings.HasPrefix(c.name, "no gradient") || c.name == "no conditionals" ||
				c.name == "no terms"; lacks != errors.Is(err, ErrUnsupported) {
				t.Errorf("%q: ErrUnsupported is %v", err, !lacks)
			}
		})
	}
	for _, temperature := range []float64{0, -2, math.NaN(), math.Inf(1)} {
		if _, err := Temper(target, temperature); err == nil || !strings.Contains(err.Error(), "temperature") {
			t.Errorf("temperature %v: error %v", temperature, err)
		}
	}
	if _, err := newFrom("gibbs,gwg", target); err == nil {
		t.Error("two samplers: no error")
	}
	_, err := newFrom("gibbs-x:block=20", lattice(t, 4, 5)) // 2^20 states, the most that there may be
	if err != nil {
		t.Error(err)
	}
}

// shaped is a target of which only the shape is asked.
type shaped []int

func (s shaped) Categories() []int                            { return s }
func (shaped) Energy(context.Context, []int, []float64) error { return errors.New("not evaluable") }

func TestInitErrors(t *testing.T) {
	target := ragged(targets.TableOptions{})(t).(*targets.Table)
	forbidden := ragged(targets.TableOptions{})(t).(*targets.Table)
	forbidden.Set([]int{2, 1, 3}, math.Inf(-1))
	cases := []struct {
		name      string
		target    Target
		positions []int
		want      string
	}{
		{"none", target, nil, "0 positions"},
		{"half a chain", target, []int{0, 0, 0, 1}, "4 positions"},
		{"above the range", target, []int{0, 0, 0, 0, 2, 0}, "chain 1 starts slot 1 at category 2"},
		{"below the range", target, []int{0, -1, 0}, "category -1"},
		{"forbidden", forbidden, []int{0, 0, 0, 2, 1, 3}, "chain 1 starts at energy -Inf"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, s := range All() {
				name := s.Describe().Name
				kernel, err := s.Kernel(c.target, nil)
				if errors.Is(err, ErrUnsupported) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				_, err = kernel.Init(context.Background(), c.positions)
				if c.name == "forbidden" && s.Describe().noEnergies {
					continue
				}
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: error %v, want one that says %q", name, err, c.want)
				}
			}
		})
	}
}

var errFails = errors.New("the device is gone")

// An evaluation that fails ends the run with its error and leaves positions
// and energies of the last whole step.
func TestEvaluationErrors(t *testing.T) {
	ctx := context.Background()
	for _, f := range forms(t) {
		table, ok := f.target(t).(*targets.Table)
		if !ok {
			continue
		}
		for _, after := range []int{0, 1, 2, 3, 4, 5} {
			left := after
			var target Target = altered{table, func([]int, []float64, []float64) error {
				if left--; left < 0 {
					return errFails
				}
				return nil
			}}
			if f.temperature != 0 {
				target = atTemperature(t, target, f.temperature)
			}
			kernel := f.over(t, target)
			streams := Streams(1, "fails", 3)
			state, err := kernel.Init(ctx, RandomPositions(table, streams))
			if err != nil {
				if !errors.Is(err, errFails) {
					t.Errorf("%s: %v", f.name(), err)
				}
				continue
			}
			last := state.clone()
			err = advance(ctx, kernel, state, streams, 10, func(_ int, s *State, _ *Info) error {
				last = s.clone()
				return nil
			})
			if !errors.Is(err, errFails) {
				t.Errorf("%s: error %v, want the target's", f.name(), err)
			}
			if !slices.Equal(last.Positions, state.Positions) {
				t.Errorf("%s: a failed step moved the chains", f.name())
			}
		}
	}
}

func TestStepErrors(t *testing.T) {
	target := lattice(t, 2, 2)
	kernel := makeKernel(t, "dmala", target)
	streams := Streams(1, "", 2)
	state := started(t, kernel, RandomPositions(target, streams))
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	var info Info
	for name, err := range map[string]error{
		"no state":        kernel.Step(context.Background(), nil, streams, &info),
		"one stream":      kernel.Step(context.Background(), state, streams[:1], &info),
		"a nil stream":    kernel.Step(context.Background(), state, []*rand.Rand{streams[0], nil}, &info),
		"no info":         kernel.Step(context.Background(), state, streams, nil),
		"cancelled":       kernel.Step(cancelled, state, streams, &info),
		"another's state": makeKernel(t, "dmala", target).Step(context.Background(), state, streams, &info),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestBalanceText(t *testing.T) {
	for _, text := range append(Balance("").Values(), "0.75", "1", "0.5", "0.50") {
		var b Balance
		err := b.UnmarshalText([]byte(text))
		back, _ := b.MarshalText()
		if err != nil || string(back) != text {
			t.Errorf("%s reads as %v, %v", text, b, err)
		}
	}
	if SqrtBalance.must() != Balance("0.50").must() || Balance("").must() != PowerBalance(0.5).must() {
		t.Error("sqrt, 0.50 and nothing said are not the same")
	}
	var b Balance
	for _, text := range []string{"", "0.4", "1.1", "NaN", "square"} {
		err := b.UnmarshalText([]byte(text))
		if err == nil && text != "" {
			t.Errorf("%q reads as %v", text, b)
		}
	}
}

// The locally balanced functions satisfy g(t) = t g(1/t).
func TestBalanceIsBalanced(t *testing.T) {
	for _, name := range balances() {
		b := Balance(name).must()
		for _, delta := range []float64{-800, -3, -0.1, 0, 0.1, 3, 800} {
			if got, want := b.logWeight(delta), delta+b.logWeight(-delta); !(math.Abs(got-want) < 1e-9) {
				t.Errorf("%v at %v: %v, want %v", b, delta, got, want)
			}
		}
	}
}

// A vocabulary of several blocks draws what one block would.
func TestDrawOverBlocks(t *testing.T) {
	categories := []int{3, 2*blockSize + 37}
	k := width(categories)
	r := rand.New(rand.NewPCG(9, 9))
	gradient := make([]float64, 2*k)
	for i := range gradient {
		gradient[i] = r.NormFloat64()
	}
	position := []int{1, blockSize + 5}
	n := newNeighbourhood(categories, 1)
	score := balanced{power(0.5)}
	if !n.measure(0, score, position, gradient) {
		t.Fatal("not usable")
	}
	total := 0.0
	weight := func(v int) float64 { return math.Sqrt(math.Exp(gradient[k+v] - gradient[k+position[1]])) }
	for v := range categories[1] {
		if v != position[1] {
			total += weight(v)
		}
	}
	if got, want := n.totals(0)[1], math.Log(total); !(math.Abs(got-want) < 1e-12) {
		t.Errorf("log total %v, want %v", got, want)
	}
	probability := make([]float64, categories[1])
	var drawn int
	err := everyPath(func(src source) error {
		drawn = n.draw(0, score, 1, position[1], gradient, src)
		return nil
	}, func(p float64) { probability[drawn] += p })
	if err != nil {
		t.Fatal(err)
	}
	for v, got := range probability {
		want := weight(v) / total
		if v == position[1] {
			want = 0
		}
		if !(math.Abs(got-want) < 1e-12) {
			t.Fatalf("category %d has probability %v, want %v", v, got, want)
		}
	}
}

// Large batches are spread over goroutines and must not notice.
func TestParallelChainsWalkTheSamePaths(t *testing.T) {
	table, err := targets.NewTable([]int{40, 50, 30}, rand.New(rand.NewPCG(2, 2)),
		targets.TableOptions{GradientError: 0.2})
	if err != nil {
		t.Fatal(err)
	}
	walk := func(from, to int) []int {
		kernel := makeKernel(t, "dmala:step-size=1", table)
		streams := Streams(4, "wide", 300)
		positions := RandomPositions(table, streams)[3*from : 3*to]
		state := started(t, kernel, positions)
		if err := advance(context.Background(), kernel, state, streams[from:to], 4, nil); err != nil {
			t.Fatal(err)
		}
		return state.Positions
	}
	if 300*3*50 < parallelWork {
		t.Fatal("the batch is too small to be spread")
	}
	together := walk(0, 300)
	if d := cmp.Diff(together, walk(0, 300)); d != "" {
		t.Errorf("a second run differs:\n%s", d)
	}
	for c := 0; c < 300; c += 50 {
		if d := cmp.Diff(together[3*c:3*c+3], walk(c, c+1)); d != "" {
			t.Errorf("chain %d differs alone:\n%s", c, d)
		}
	}
}

// brokenSource panics at its n-th number.
type brokenSource struct {
	rand.Source
	left int
}

func (s *brokenSource) Uint64() uint64 {
	s.left--
	if s.left < 0 {
		panic("no more numbers")
	}
	return s.Source.Uint64()
}

// TestParallelPanic: a panic on any goroutine of a step is one of the caller,
// which says where it was. The kernel can be used further.
func TestParallelPanic(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	table := check.Must(targets.NewTable([]int{40, 50, 30}, rand.New(rand.NewPCG(2, 2)), targets.TableOptions{}))(t)
	kernel := makeKernel(t, "dmala:step-size=1", table)
	streams := Streams(4, "wide", 300)
	state := started(t, kernel, RandomPositions(table, streams))
	check.OK(t, advance(t.Context(), kernel, state, streams, 1, nil))
	for _, broken := range []int{0, 150, 299} {
		some := slices.Clone(streams)
		some[broken] = rand.New(&brokenSource{rand.NewPCG(1, 1), 2})
		err := parallel.Safely(func() error { return advance(t.Context(), kernel, state, some, 1, nil) })
		var p *parallel.Panic
		if !errors.As(err, &p) || p.Value != "no more numbers" || !strings.HasPrefix(p.Place, "samplers/") ||
			!strings.Contains(string(p.Stack), "brokenSource") {
			t.Errorf("chain %d: %v", broken, err)
		}
	}
	check.OK(t, advance(t.Context(), kernel, state, streams, 1, nil))
}

// A step allocates nothing once the kernel has seen its batch.
func TestStepAllocatesNothing(t *testing.T) {
	target := withLatents{lattice(t, 5, 5)}
	for _, name := range names() {
		t.Run(name, func(t *testing.T) {
			kernel := makeKernel(t, name, target)
			streams := Streams(1, "", 8)
			state := started(t, kernel, RandomPositions(target, streams))
			var info Info
			step := func() {
				if err := kernel.Step(context.Background(), state, streams, &info); err != nil {
					t.Fatal(err)
				}
			}
			step()
			if n := testing.AllocsPerRun(20, step); n != 0 {
				t.Errorf("%v allocations a step", n)
			}
		})
	}
}

// The unadjusted sampler with a stochastic gradient follows, step by step, the
// proposal of the subset its state was evaluated with.
func TestStochasticDULA(t *testing.T) {
	target := ragged(targets.TableOptions{Scale: 1.2, GradientError: 0.5, Terms: 3})(t)
	w := newWorld(t, target)
	kernel := check.Must(DULA{StepSize: 0.8, Terms: 2}.Kernel(target, rand.New(rand.NewPCG(1, 1))))(t)
	seen := map[string]bool{}
	for range 30 {
		for i := range w.Len() {
			start := started(t, kernel, w.State(i))
			terms := slices.Clone(start.own.(*surroundings).terms)
			seen[string(rune(terms[0]))+string(rune(terms[1]))] = true
			gradient := w.gradients(t, func(ctx context.Context, states []int, energy, gradient []float64) error {
				return target.(StochasticGradientTarget).EnergyGradientOf(ctx, terms, states, energy, gradient)
			})
			want := w.langevin(gradient, powerOf(0.5), 0.8, nil)[i]
			got, _ := transitions(t, kernel, start, w.Enumeration)
			for to := range got {
				if !(math.Abs(got[to]-want[to]) < 1e-10) {
					t.Fatalf("terms %v, %v → %v: %v, want %v", terms, w.State(i), w.State(to), got[to], want[to])
				}
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("%d subsets of two of three terms were drawn, want 3", len(seen))
	}
}

// A sampler that needs what a target lacks says so.
func TestCapabilities(t *testing.T) {
	var anywhere []string
	for _, name := range names() {
		if _, err := newFrom(name, only{lattice(t, 2, 2)}); err == nil {
			anywhere = append(anywhere, name)
		} else if !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d := cmp.Diff([]string{"lb-1", "gibbs-x", "hamming-ball"}, anywhere); d != "" {
		t.Errorf("for energies alone (-want +got):\n%s", d)
	}
	makeKernel(t, "rbm-gibbs", machine(t))
}

// A tempered target reports the methods that the target below lacks as missing.
func TestTemperedWithout(t *testing.T) {
	ctx := context.Background()
	warm := atTemperature(t, only{lattice(t, 2, 2)}, 2).(*tempered)
	one, rows := make([]float64, 1), make([]float64, 8)
	state := []int{0, 0, 0, 0}
	for name, err := range map[string]error{
		"gradient":     warm.EnergyGradient(ctx, state, one, rows),
		"conditionals": warm.LogConditionals(ctx, state, []int{0}, rows),
		"masked":       warm.LogMaskedConditionals(ctx, state, make([]bool, 4), rows),
	} {
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestChance(t *testing.T) {
	src := random{rand.New(rand.NewPCG(1, 1))}
	for range 1000 {
		if src.chance(math.NaN()) || src.chance(0) || !src.chance(1) {
			t.Fatal("NaN and 0 must never be true, 1 always")
		}
		if accept(src, math.NaN()) || accept(src, math.Inf(-1)) || !accept(src, 0) || !accept(src, 700) {
			t.Fatal("NaN and -Inf must be rejected, ratios of 1 and more accepted")
		}
	}
}

// A step size that is not given is α = 1, where the distance of 0 and 1 costs half
// a nat.
func TestOrdinalStepSize(t *testing.T) {
	target := roughTable()(t)
	for _, name := range []string{"dula-ordinal", "dmala-ordinal"} {
		own := makeKernel(t, name, target)
		given := makeKernel(t, name+":step-size=1", target)
		if stepSizeOf(own) != 1 {
			t.Errorf("%s begins with the step size %v", name, stepSizeOf(own))
		}
		w := newWorld(t, target)
		if d := cmp.Diff(transitionMatrix(t, given, w.Enumeration), transitionMatrix(t, own, w.Enumeration)); d != "" {
			t.Errorf("%s (-given +default):\n%s", name, d)
		}
	}
}
