package samplers

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"infill/internal/logmath"
	"infill/internal/targets"
)

// foreignTable has conditionals that are not those of exp(U).
func foreignTable(t *testing.T) *targets.Table {
	t.Helper()
	return ragged(targets.TableOptions{Scale: 1.2, ConditionalError: 0.7})(t).(*targets.Table)
}

// log q sums to one in every order, is what a draw reports, and is that of the
// formula; so do blocks, given the slots that are held.
func TestChainRule(t *testing.T) {
	ctx := context.Background()
	target := foreignTable(t)
	w := newWorld(t, target)
	for _, order := range [][]int{nil, {0, 1, 2}, {2, 0, 1}} {
		rule, err := NewChainRule(target, order)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range [][]int{{0, 1, 2}, {0, 2}, {1}} {
			var open []bool
			for range w.Len() {
				for j := range 3 {
					open = append(open, slices.Contains(block, j))
				}
			}
			states, logq := slices.Clone(w.States), make([]float64, w.Len())
			if err := rule.LogProbability(ctx, states, open, logq); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(states, w.States) {
				t.Fatal("scoring changed the states")
			}
			total := 0.0
			for i, l := range logq {
				if want := math.Log(w.chained(w.masked(t), order, i, block, i)); !(math.Abs(l-want) < 1e-12) {
					t.Errorf("order %v, block %v: log q of %v is %v, want %v", order, block, w.State(i), l, want)
				}
				if !changedOutside(w.State(i), w.State(0), block) {
					total += math.Exp(l)
				}
			}
			if !(math.Abs(total-1) < 1e-12) {
				t.Errorf("order %v, block %v: q adds up to %v", order, block, total)
			}
			drawn := make([]float64, w.Len())
			if err := rule.Draw(ctx, states, open, Streams(7, "chain", w.Len()), drawn); err != nil {
				t.Fatal(err)
			}
			for i, l := range drawn {
				at := states[3*i : 3*i+3]
				if changedOutside(at, w.State(i), block) {
					t.Errorf("block %v: %v became %v", block, w.State(i), at)
				}
				if l != logq[w.Index(at)] {
					t.Errorf("order %v: %v was drawn with log q %v and is scored %v", order, at, l, logq[w.Index(at)])
				}
			}
		}
	}
}

func changedOutside(a, b, block []int) bool {
	for j := range a {
		if a[j] != b[j] && !slices.Contains(block, j) {
			return true
		}
	}
	return false
}

// Draws come as often as q says, and the same whatever is drawn beside them.
func TestChainRuleDraws(t *testing.T) {
	ctx := context.Background()
	target := foreignTable(t)
	w := newWorld(t, target)
	rule, err := NewChainRule(target, nil)
	if err != nil {
		t.Fatal(err)
	}
	const n = 20000
	states, logq := make([]int, 3*n), make([]float64, n)
	if err := rule.Draw(ctx, states, nil, Streams(1, "draws", n), logq); err != nil {
		t.Fatal(err)
	}
	counts := make([]float64, w.Len())
	for i := range n {
		counts[w.Index(states[3*i:3*i+3])]++
	}
	for i, c := range counts {
		p := w.chained(w.masked(t), nil, 0, []int{0, 1, 2}, i)
		if margin := 5*math.Sqrt(n*p*(1-p)) + 3; !(math.Abs(c-n*p) <= margin) {
			t.Errorf("%v was drawn %v times, want %.0f ± %.0f", w.State(i), c, n*p, margin)
		}
	}
	alone, one := make([]int, 3), make([]float64, 1)
	if err := rule.Draw(ctx, alone, nil, Streams(1, "draws", n)[4:5], one); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(alone, states[12:15]) || one[0] != logq[4] {
		t.Errorf("draw 4 is %v with %v alone, %v with %v among others", alone, one, states[12:15], logq[4])
	}
}

// A completion takes the likeliest category of each open slot, given those before.
func TestComplete(t *testing.T) {
	ctx := context.Background()
	target := foreignTable(t)
	w := newWorld(t, target)
	for _, order := range [][]int{nil, {0, 1, 2}, {2, 0, 1}} {
		rule, err := NewChainRule(target, order)
		if err != nil {
			t.Fatal(err)
		}
		// Whatever is asked at once.
		states := []int{1, 0, 2, 2, 1, 3, 0, 0, 0}
		open := []bool{true, false, true, false, true, false, true, true, true}
		logq := make([]float64, 3)
		if err := rule.Complete(ctx, states, open, logq); err != nil {
			t.Fatal(err)
		}
		if states[1] != 0 || states[3] != 2 || states[5] != 3 {
			t.Errorf("order %v: %v, what was not open became another", order, states)
		}
		want := make([]float64, 3)
		if err := rule.LogProbability(ctx, slices.Clone(states), open, want); err != nil || !slices.Equal(logq, want) {
			t.Errorf("order %v: log q %v, want %v, %v", order, logq, want, err)
		}
		// Of one open slot it is the likeliest of all.
		for i := range w.Len() {
			own := w.State(i)
			if own[0] != states[3] || own[2] != states[5] {
				continue
			}
			one := make([]float64, 1)
			if err := rule.LogProbability(ctx, slices.Clone(own), []bool{false, true, false}, one); err != nil ||
				one[0] > logq[1] {
				t.Errorf("order %v: %v has %v, the completion %v, %v", order, own, one[0], logq[1], err)
			}
		}
	}
	rule, err := NewChainRule(target, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := rule.Complete(ctx, []int{1, 0}, []bool{true, false}, []float64{0}); err == nil {
		t.Error("states of two slots instead of three: no error")
	}
	left := 1
	fails, err := NewChainRule(failing{target, &left}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := fails.Complete(ctx, make([]int, 3), slices.Repeat([]bool{true}, 3), []float64{0}); !errors.Is(err,
		errFails) {
		t.Errorf("a failing target: error %v", err)
	}
}

func TestChainRuleErrors(t *testing.T) {
	ctx := context.Background()
	target := foreignTable(t)
	for _, order := range [][]int{{}, {0, 1}, {0, 1, 1}, {1, 2, 3}, {0, 1, 2, 2}} {
		if _, err := NewChainRule(target, order); err == nil || !strings.Contains(err.Error(), "order") {
			t.Errorf("order %v: error %v", order, err)
		}
	}
	if _, err := NewChainRule(lattice(t, 2, 2), nil); !errors.Is(err, ErrUnsupported) {
		t.Errorf("no conditionals: error %v", err)
	}
	if _, err := NewImportance(nil, nil); err == nil {
		t.Error("no target: no error")
	}
	rule, err := NewChainRule(target, nil)
	if err != nil {
		t.Fatal(err)
	}
	one := make([]float64, 1)
	for name, err := range map[string]error{
		"positions": rule.Draw(ctx, make([]int, 4), nil, Streams(1, "", 1), one),
		"open":      rule.Draw(ctx, make([]int, 3), make([]bool, 2), Streams(1, "", 1), one),
		"streams":   rule.Draw(ctx, make([]int, 3), nil, nil, one),
		"category":  rule.LogProbability(ctx, []int{0, 2, 0}, nil, one),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	left := 1
	spoilt, err := NewImportance(failing{target, &left}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := spoilt.Draw(ctx, Streams(1, "", 2)); !errors.Is(err, errFails) || spoilt.Len() != 0 {
		t.Errorf("a failing target: error %v, %d draws", err, spoilt.Len())
	}
	nowhere, err := NewImportance(undefined{target}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := nowhere.Draw(ctx, Streams(1, "", 2)); !errors.Is(err, errNoDistribution) {
		t.Errorf("a conditional that is none: error %v", err)
	}
}

// undefined has conditionals that are no numbers.
type undefined struct{ *targets.Table }

func (undefined) LogMaskedConditionals(_ context.Context, _ []int, _ []bool, logp []float64) error {
	for i := range logp {
		logp[i] = math.NaN()
	}
	return nil
}

// first is a mean of which the draws give an estimate.
func first(p Point) float64 { return float64(p.State[0]) }

// repeated looks at the draws of many seeds: Ẑ has to be unbiased. It gives how far Ẑ/Z is off,
// and how many of the intervals of the likeliest state's probability and of a mean hold the
// exact value, as shares.
func repeated(t *testing.T, w *world, repetitions int,
	draw func(seed uint64) *Importance) (spread float64, held map[string]float64) {
	t.Helper()
	likeliest := slices.Index(w.Probability, slices.Max(w.Probability))
	exact := w.Mean(func(state []int) float64 { return first(Point{State: state}) })
	n := float64(repetitions)
	sum, square := 0.0, 0.0
	held = map[string]float64{}
	for seed := range uint64(repetitions) {
		m := draw(seed)
		z := m.Normaliser()
		ratio := math.Exp(z.Log - w.LogNormaliser)
		sum += ratio / n
		square += ratio * ratio / n
		if p := math.Exp(w.Energy[likeliest] - z.Log); math.Abs(p-w.Probability[likeliest]) <= 1.96*p*z.Error {
			held["probabilities"] += 1 / n
		}
		if mean, e := m.Mean(first); math.Abs(mean-exact) <= 1.96*e {
			held["means"] += 1 / n
		}
	}
	spread = math.Sqrt(square - sum*sum)
	if margin := 5 * spread / math.Sqrt(n); !(math.Abs(sum-1) <= margin) || margin > 0.2 {
		t.Errorf("the mean of Ẑ/Z is %v, want 1 ± %v", sum, margin)
	}
	return spread, held
}

// Ẑ is unbiased; probabilities and means lie as far from the exact ones as their
// errors say.
func TestImportance(t *testing.T) {
	target := foreignTable(t)
	const draws = 150
	_, held := repeated(t, newWorld(t, target), 400, func(seed uint64) *Importance {
		m, err := NewImportance(target, nil)
		if err != nil {
			t.Fatal(err)
		}
		streams := Streams(seed, "importance", draws/3)
		for range 3 {
			if err := m.Draw(context.Background(), streams); err != nil {
				t.Fatal(err)
			}
		}
		if z := m.Normaliser(); z.Draws != draws || m.Len() != draws ||
			!(z.EffectiveSampleSize > 1 && z.EffectiveSampleSize <= draws) {
			t.Fatalf("%+v of %d draws", z, draws)
		}
		return m
	})
	for _, of := range []string{"probabilities", "means"} {
		if share := held[of]; !(share > 0.9 && share < 0.99) {
			t.Errorf("%s: %.3f of the intervals hold the exact value, want 0.95", of, share)
		}
	}
}

// What is known is summed exactly: the estimate is unbiased whatever is known, nearer than
// that of weights alone, its error holds, and the points are an estimate of π whose mean is that of Mean.
func TestImportanceKnows(t *testing.T) {
	ctx := context.Background()
	target, err := targets.NewTable([]int{8, 6, 7}, rand.New(rand.NewPCG(3, 4)),
		targets.TableOptions{Scale: 2, ConditionalError: 2})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, target)
	var states []int // the likeliest ten
	var energy []float64
	for i, u := range w.Energy {
		if rank := 0; !slices.ContainsFunc(w.Energy, func(v float64) bool {
			if v > u {
				rank++
			}
			return rank == 10
		}) {
			states, energy = append(states, w.State(i)...), append(energy, u)
		}
	}
	repetitions := 600
	if testing.Short() {
		repetitions = 100
	}
	var spread [3]float64
	for given := range 3 { // 2: nothing is ever known
		t.Run(strconv.Itoa(given), func(t *testing.T) {
			var held map[string]float64
			spread[given], held = repeated(t, w, repetitions, func(seed uint64) *Importance {
				m, err := NewImportance(target, nil, []int{2, 1, 0})
				if err != nil {
					t.Fatal(err)
				}
				if given < 2 {
					m.Know(states[:30*given], energy[:10*given])
				}
				streams := Streams(seed, "knows", 70)
				if given == 1 { // what is forgotten is known all the same
					if err := m.Draw(ctx, streams[:5]); err != nil {
						t.Fatal(err)
					}
					m.Forget()
				}
				for range 3 {
					if err := m.Draw(ctx, streams); err != nil {
						t.Fatal(err)
					}
				}
				total, mean := 0.0, 0.0
				for _, p := range m.Points() {
					total += p.Weight
					mean += p.Weight * first(p)
					if u := w.Energy[w.Index(p.State)]; p.Energy != u {
						t.Fatalf("%v has the energy %v, and %v is told", p.State, u, p.Energy)
					}
				}
				if want, _ := m.Mean(first); math.Abs(total-1) > 1e-9 || math.Abs(mean-want) > 1e-9 {
					t.Fatalf("points weigh %v, and their mean is %v instead of %v", total, mean, want)
				}
				return m
			})
			for _, of := range []string{"probabilities", "means"} {
				if share := held[of]; given < 2 && !(share > 0.9) {
					t.Errorf("%s: %.3f of the intervals hold the exact value, want 0.95", of, share)
				}
			}
		})
	}
	// The weights have a heavy tail: fewer runs may miss it.
	if !testing.Short() && !(max(spread[0], spread[1]) < spread[2]) {
		t.Errorf("Ẑ/Z is off by %v: knowing does not make it less", spread)
	}
}

// What is drawn beside known states is not known, comes as often as its probability
// says, and that is what the formula of the proposal makes of all pairs.
func TestBeside(t *testing.T) {
	ctx := context.Background()
	target := foreignTable(t)
	w := newWorld(t, target)
	m, err := NewImportance(target, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := m.besideKnown(ctx); b != nil || err != nil {
		t.Fatalf("beside nothing: %v, error %v", b, err)
	}
	known := []int{0, 5, 6, 20}
	for _, i := range known {
		m.Know(w.State(i), []float64{w.Energy[i]})
	}
	b, err := m.besideKnown(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want, sum := make([]float64, w.Len()), 0.0
	for _, x := range known {
		for y := range w.Len() {
			differ := slices.DeleteFunc([]int{0, 1, 2}, func(j int) bool { return w.State(x)[j] == w.State(y)[j] })
			if len(differ) == 1 && !slices.Contains(known, y) {
				want[y] += math.Exp(w.Energy[x] + math.Log(w.chained(w.masked(t), nil, x, differ, y)))
				sum += math.Exp(w.Energy[x] + math.Log(w.chained(w.masked(t), nil, x, differ, y)))
			}
		}
	}
	counts := make([]float64, w.Len())
	const n = 20000
	state := make([]int, 3)
	for _, stream := range Streams(3, "beside", n) {
		b.draw(state, stream)
		counts[w.Index(state)]++
	}
	for y, c := range counts {
		p := want[y] / sum
		if r := math.Exp(b.logProbability(w.State(y))); !(math.Abs(r-p) < 1e-12) {
			t.Errorf("r of %v is %v, want %v", w.State(y), r, p)
		}
		if margin := 5*math.Sqrt(n*p*(1-p)) + 3; !(math.Abs(c-n*p) <= margin) {
			t.Errorf("%v was drawn %v times, want %.0f ± %.0f", w.State(y), c, n*p, margin)
		}
	}
	for y := range w.Len() {
		m.Know(w.State(y), []float64{w.Energy[y]})
	}
	if b, err := m.besideKnown(ctx); b != nil || err != nil {
		t.Errorf("all is known: %v, error %v", b, err)
	}
	left := 0
	spoilt, err := NewImportance(failing{target, &left}, nil)
	if err != nil {
		t.Fatal(err)
	}
	spoilt.Know(w.State(0), []float64{w.Energy[0]})
	if err := spoilt.Draw(ctx, Streams(1, "", 2)); !errors.Is(err, errFails) {
		t.Errorf("a failing target: error %v", err)
	}
}

// copying is a law of three slots with a mode in which the first two hold the same
// category, by conditionals that tell of it only where one slot is open.
type copying struct{ categories int }

var _ MaskedConditionalTarget = copying{}

func (c copying) Categories() []int { return []int{c.categories, c.categories, c.categories} }

func (c copying) Energy(_ context.Context, states []int, energy []float64) error {
	for i := range energy {
		if energy[i] = 0; states[3*i] == 7 && states[3*i+1] == 7 {
			energy[i] = 6
		}
	}
	return nil
}

func (c copying) LogMaskedConditionals(_ context.Context, states []int, open []bool, logp []float64) error {
	for i := range len(states) / 3 {
		for j := range 3 {
			row := logp[(3*i+j)*c.categories:][:c.categories]
			clear(row)
			if other := 1 - j; open[3*i+j] && j < 2 && !open[3*i+other] && !open[3*i+2] && states[3*i+other] == 7 {
				row[7] = 6
			}
			total := logmath.LogSumExp(row)
			for v := range row {
				row[v] -= total
			}
		}
	}
	return nil
}

// One fill of a mode that the chain rule hardly reaches is enough to draw the mode as often
// as it should be.
func TestBesideReachesMode(t *testing.T) {
	ctx := context.Background()
	target := copying{30}
	z := 30*math.Exp(6) + 30*30*30 - 30
	off := 0.0
	for seed := range uint64(50) {
		m, err := NewImportance(target, nil)
		if err != nil {
			t.Fatal(err)
		}
		m.Know([]int{7, 7, 0}, []float64{6})
		streams := Streams(seed, "mode", 64)
		for range 4 {
			if err := m.Draw(ctx, streams); err != nil {
				t.Fatal(err)
			}
		}
		n := m.Normaliser()
		d := math.Exp(n.Log)/z - 1
		if !(math.Abs(d) < 5*n.Error) {
			t.Errorf("seed %d: Ẑ/Z is off by %v, with the error %v", seed, d, n.Error)
		}
		off += d * d / 50
	}
	if off = math.Sqrt(off); off > 0.1 { // without: 0.3, which is the mode, in most
		t.Errorf("Ẑ/Z is off by %v", off)
	}
}

// With the target's own conditionals every weight is Z, and nothing is forbidden
// that is listed.
func TestImportanceWithoutError(t *testing.T) {
	ctx := context.Background()
	target := ragged(targets.TableOptions{Scale: 1.2})(t).(*targets.Table)
	w := newWorld(t, target)
	m, err := NewImportance(target, []int{1, 0, 2})
	if err != nil {
		t.Fatal(err)
	}
	if z := m.Normaliser(); !math.IsNaN(z.Log) || z.Believable() {
		t.Errorf("no draws: %+v", z)
	}
	if err := m.Draw(ctx, Streams(1, "own", 300)); err != nil {
		t.Fatal(err)
	}
	z := m.Normaliser()
	if !(math.Abs(z.Log-w.LogNormaliser) < 1e-9 && z.Error < 1e-6 && math.Abs(z.EffectiveSampleSize-300) < 1e-6) ||
		!z.Believable() {
		t.Errorf("%+v, want log Z %v", z, w.LogNormaliser)
	}
	last := math.Inf(1)
	seen := map[int]bool{}
	for _, i := range distinct(m) {
		at := w.Index(m.State(i))
		if u := m.Energy(i); u > last || seen[at] || u != w.Energy[at] {
			t.Errorf("%v with energy %v comes after %v, seen %v", m.State(i), u, last, seen[at])
		}
		last, seen[at] = m.Energy(i), true
	}
	if len(seen) < 10 {
		t.Errorf("%d states of 24 in 300 draws", len(seen))
	}
	for i := range 2 { // forbidden states weigh nothing
		target.Set([]int{i, 0, 0}, math.Inf(-1))
	}
	forbids, err := NewImportance(poisoned{target, func(state []int) bool { return state[2] == 1 }, math.NaN(), 0}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := forbids.Draw(ctx, Streams(2, "own", 300)); err != nil {
		t.Fatal(err)
	}
	for _, i := range distinct(forbids) {
		if state := forbids.State(i); state[2] == 1 || !logmath.Finite(forbids.logWeight[i]) {
			t.Errorf("%v weighs %v", state, forbids.logWeight[i])
		}
	}
}

// The shape of Pareto tails is found, and other tails are reported.
func TestParetoK(t *testing.T) {
	const n = 20000
	for _, k := range []float64{0.2, 0.5, 0.7, 1, 1.5} {
		r := rand.New(rand.NewPCG(1, uint64(10*k)))
		mean := 0.0
		for range 10 {
			logs := make([]float64, n)
			for i := range logs {
				logs[i] = 300 - k*math.Log(r.Float64()) // a Pareto law, of any scale
			}
			mean += paretoK(logs) / 10
		}
		if !(math.Abs(mean-k) < 0.08) {
			t.Errorf("shape %v is found as %v", k, mean)
		}
	}
	few := make([]float64, 24)
	same := make([]float64, 200)
	broken := slices.Clone(same)
	broken[3] = math.NaN()
	nothing := slices.Repeat([]float64{math.Inf(-1)}, 100)
	for name, c := range map[string]struct {
		weights []float64
		want    float64
	}{"few": {few, math.Inf(1)}, "equal": {same, math.Inf(-1)}, "NaN": {broken, math.Inf(1)},
		"forbidden": {nothing, math.Inf(1)}} {
		if got := paretoK(c.weights); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A proposal whose tails are too light is reported by k̂.
func TestHeavyWeights(t *testing.T) {
	// Twelve slots of U = Σ θ_j with conditionals that prefer 0: log-weights
	// spread as a normal law of standard deviation 7.
	const slots = 12
	target := light{slots}
	m, err := NewImportance(target, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Draw(context.Background(), Streams(5, "light", 2000)); err != nil {
		t.Fatal(err)
	}
	if z := m.Normaliser(); z.Believable() || !(z.ParetoK > 0.7) {
		t.Errorf("%+v is believed", z)
	}
}

type light struct{ slots int }

func (l light) Categories() []int { return slices.Repeat([]int{8}, l.slots) }

func (l light) Energy(_ context.Context, states []int, energy []float64) error {
	for c := range energy {
		energy[c] = 0
		for _, v := range states[c*l.slots : (c+1)*l.slots] {
			energy[c] += float64(v)
		}
	}
	return nil
}

func (l light) LogMaskedConditionals(_ context.Context, _ []int, _ []bool, logp []float64) error {
	for i := range logp {
		logp[i] = -float64(i % 8)
	}
	for at := 0; at < len(logp); at += 8 {
		total := logmath.LogSumExp(logp[at : at+8])
		for v := range 8 {
			logp[at+v] -= total
		}
	}
	return nil
}

// distinct lists a draw of each state that was drawn and is not forbidden, the most probable first.
func distinct(m *Importance) []int {
	var list []int
	for i := range m.Len() {
		if !math.IsInf(m.logWeight[i], -1) {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int {
		if m.energy[a] != m.energy[b] {
			if m.energy[a] > m.energy[b] {
				return -1
			}
			return 1
		}
		return slices.Compare(m.State(a), m.State(b))
	})
	return slices.CompactFunc(list, func(a, b int) bool { return slices.Equal(m.State(a), m.State(b)) })
}
