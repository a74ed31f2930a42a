package lm_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"infill/internal/check"
	"infill/lm"
	"infill/samplers"
)

// The example: a template of the tiny random model with three slots.
var (
	exampleIDs   = []int{2, 7, 4, 11, 4, 4, 9, 3}
	exampleSlots = []int{2, 4, 5}
	exampleKinds = [][]int{{5, 6, 7, 8, 9}, {10, 11, 12}, {5, 10, 15, 20}}
)

func tiny(t testing.TB) *lm.MaskedLM {
	t.Helper()
	bundle := writeBundle(t, 30, 0.3)
	return openBundle(t, bundle, tinyMask)
}

// target is all that a model's target can do.
type target interface {
	lm.Target
	samplers.GradientTarget
	samplers.ConditionalTarget
	samplers.MaskedConditionalTarget
}

func newTarget(t testing.TB, m *lm.MaskedLM, o lm.TargetOptions) target {
	t.Helper()
	if o.Support == nil {
		o.Support = exampleKinds
	}
	return targetOf(t, m, exampleIDs, exampleSlots, o)
}

func targetOf(t testing.TB, m *lm.MaskedLM, ids, slots []int, o lm.TargetOptions) target {
	t.Helper()
	made := check.Must(m.NewTarget(ids, slots, o))(t)
	return made.(target)
}

// manyStates is every combination of categories, one after the other.
func manyStates() []int {
	var states []int
	for a := range exampleKinds[0] {
		for b := range exampleKinds[1] {
			for c := range exampleKinds[2] {
				states = append(states, a, b, c)
			}
		}
	}
	return states
}

func close32(a, b float64) bool { return math.Abs(a-b) <= 2e-5*(1+math.Abs(b)) }

// evaluateAll is energies and gradients of states, in calls of the given
// number of chains.
func evaluateAll(t *testing.T, target target, states []int, chains int) (energy, gradient []float64) {
	t.Helper()
	m, width := len(exampleSlots), 5
	for from := 0; from < len(states); from += chains * m {
		part := states[from:min(from+chains*m, len(states))]
		e, g := make([]float64, len(part)/m), make([]float64, len(part)*width)
		check.OK(t, target.EnergyGradient(context.Background(), part, e, g))
		energy, gradient = append(energy, e...), append(gradient, g...)
	}
	return energy, gradient
}

// A chain's energy and gradient do not depend on the chains beside it, nor on
// what is remembered.
func TestBatchIndependence(t *testing.T) {
	m, states := tiny(t), manyStates()
	for _, energy := range []lm.Energy{lm.PLL, lm.Filled} {
		for _, gradient := range []lm.Gradient{lm.Full, lm.Local} {
			wantE, wantG := evaluateAll(t, newTarget(t, m, lm.TargetOptions{Energy: energy, Gradient: gradient}),
				states, 60)
			for _, chains := range []int{1, 7} {
				target := newTarget(t, m, lm.TargetOptions{Energy: energy, Gradient: gradient})
				for range 2 {
					e, g := evaluateAll(t, target, states, chains)
					for i := range e {
						if !close32(e[i], wantE[i]) {
							t.Fatalf("%s %s: energy %d is %g in batches of %d, %g in one batch", energy, gradient, i,
								e[i], chains, wantE[i])
						}
					}
					for i := range g {
						if !close32(g[i], wantG[i]) {
							t.Fatalf("%s %s: gradient %d is %g in batches of %d, %g in one batch", energy, gradient, i,
								g[i], chains, wantG[i])
						}
					}
				}
			}
		}
	}
}

// The whole vocabulary as the support gives what a support of few tokens gives
// at these tokens: rows come over in two ways.
func TestSupportsAgree(t *testing.T) {
	bundle := writeBundle(t, 3000, 0.3)
	m := openBundle(t, bundle, tinyMask)
	few := newTarget(t, m, lm.TargetOptions{})
	whole := newTarget(t, m, lm.TargetOptions{Support: vocabularySupport(3000, 3)})
	for _, state := range [][]int{{0, 1, 2}, {4, 0, 3}} {
		tokens := make([]int, 3)
		for j, k := range state {
			tokens[j] = exampleKinds[j][k]
		}
		e, g := make([]float64, 2), make([]float64, 3*5)
		big := make([]float64, 3*3000)
		check.OK(t, few.EnergyGradient(context.Background(), state, e[:1], g))
		check.OK(t, whole.EnergyGradient(context.Background(), tokens, e[1:], big))
		if !close32(e[0], e[1]) {
			t.Errorf("energies %g and %g", e[0], e[1])
		}
		for j, kinds := range exampleKinds {
			for k, id := range kinds {
				if !close32(g[j*5+k], big[j*3000+id]) {
					t.Errorf("slot %d, token %d: gradients %g and %g", j, id, g[j*5+k], big[j*3000+id])
				}
			}
		}
	}
}

// PLL's energy is the sum of scores of the filled text, each slot masked.
func TestEnergyIsTheSumOfScores(t *testing.T) {
	m, state := tiny(t), []int{2, 0, 1}
	energy := make([]float64, 1)
	check.OK(t, newTarget(t, m, lm.TargetOptions{}).Energy(context.Background(), state, energy))
	ids := slices.Clone(exampleIDs)
	for j, s := range exampleSlots {
		ids[s] = exampleKinds[j][state[j]]
	}
	var rows []lm.Row
	for _, s := range exampleSlots {
		row := slices.Clone(ids)
		row[s] = m.MaskID()
		rows = append(rows, lm.Row{IDs: row, Positions: []int{s}, Targets: []int{ids[s]}})
	}
	scores := check.Must(m.LogProbabilities(context.Background(), rows))(t)
	if sum := float64(scores[0][0][0] + scores[1][0][0] + scores[2][0][0]); !close32(sum, energy[0]) {
		t.Errorf("scores sum to %g, the energy is %g", sum, energy[0])
	}
}

// masked returns the distributions of some slots while all of them are masked,
// [slots][vocabulary].
func masked(t *testing.T, m *lm.MaskedLM, ids []int, slots ...int) [][]float32 {
	t.Helper()
	ids = slices.Clone(ids)
	for _, slot := range slots {
		ids[slot] = m.MaskID()
	}
	return check.Must(m.LogProbabilities(t.Context(), []lm.Row{{IDs: ids, Positions: slots}}))(t)[0]
}

// TestRowsOfAnyLengths: rows of different lengths and numbers of positions, with
// and without targets, have in one job the numbers that each has by itself.
func TestRowsOfAnyLengths(t *testing.T) {
	m := tiny(t)
	rows := []lm.Row{
		{IDs: []int{2, 7, 29, 11, 3}, Positions: []int{2}},
		{IDs: []int{2, 29, 3}, Positions: []int{1}, Targets: []int{9}},
		{IDs: []int{2, 7, 29, 11, 8, 29, 4, 3}, Positions: []int{5, 2}, Targets: []int{6, 9}},
		{IDs: []int{2, 8, 29, 12, 3}, Positions: []int{2}},
		{IDs: []int{2, 7, 29, 11, 8, 29, 4, 5, 6, 3}, Positions: []int{2, 5}},
		{IDs: []int{2, 5, 29, 11, 3}, Positions: []int{2}, Targets: []int{9}},
	}
	found := check.Must(m.LogProbabilities(t.Context(), rows))(t)
	for i, row := range rows {
		whole := row
		whole.Targets = nil
		alone := check.Must(m.LogProbabilities(t.Context(), []lm.Row{whole}))(t)[0]
		for j, want := range alone {
			if row.Targets != nil {
				want = want[row.Targets[j] : row.Targets[j]+1]
			}
			if !slices.Equal(found[i][j], want) {
				t.Errorf("row %d, position %d: %v, by itself %v", i, j, found[i][j], want)
			}
		}
	}
}

// The conditionals of Gibbs are the rows of the energy, renormalised over the
// slot's support.
func TestLogConditionals(t *testing.T) {
	m, state := tiny(t), []int{2, 0, 1}
	target := newTarget(t, m, lm.TargetOptions{Gradient: lm.Local})
	_, rows := evaluateAll(t, target, state, 1)
	logp := make([]float64, 5)
	for j, kinds := range exampleKinds {
		check.OK(t, target.LogConditionals(context.Background(), state, []int{j}, logp))
		total := 0.0
		for k := range kinds {
			total += math.Exp(logp[k])
			if d := (logp[k] - logp[0]) - (rows[j*5+k] - rows[j*5]); math.Abs(d) > 1e-9 {
				t.Errorf("slot %d: log ratio of category %d is off by %g", j, k, d)
			}
		}
		if math.Abs(total-1) > 1e-9 {
			t.Errorf("slot %d: probabilities sum to %g", j, total)
		}
	}
}

// With one open slot the masked conditionals are the conditionals; with all
// open, they are the model's own, renormalised.
func TestLogMaskedConditionals(t *testing.T) {
	m, states := tiny(t), []int{2, 0, 1, 4, 2, 3}
	target, ctx := newTarget(t, m, lm.TargetOptions{}), context.Background()
	open := []bool{false, true, false, true, true, true}
	logp := make([]float64, 2*3*5)
	check.OK(t, target.LogMaskedConditionals(ctx, states, open, logp))
	single := make([]float64, 5)
	check.OK(t, target.LogConditionals(ctx, states[:3], []int{1}, single))
	for k := range exampleKinds[1] {
		if !close32(logp[5+k], single[k]) {
			t.Errorf("one open slot: log p(%d) is %g, the conditional %g", k, logp[5+k], single[k])
		}
	}
	whole := masked(t, m, exampleIDs, exampleSlots...)
	for j, kinds := range exampleKinds {
		total := 0.0
		for k, id := range kinds {
			total += math.Exp(logp[(3+j)*5+k])
			got, want := logp[(3+j)*5+k]-logp[(3+j)*5], float64(whole[j][id]-whole[j][kinds[0]])
			if math.Abs(got-want) > 1e-4 {
				t.Errorf("all open: slot %d, log ratio of category %d is %g, want %g", j, k, got, want)
			}
		}
		if math.Abs(total-1) > 1e-9 {
			t.Errorf("all open: slot %d sums to %g", j, total)
		}
	}
}

// Rows are shared: over all 60 states a slot's row depends on the other slots
// alone.
func TestRowsAreShared(t *testing.T) {
	m, states := tiny(t), manyStates()
	target := newTarget(t, m, lm.TargetOptions{Gradient: lm.Local})
	energy := make([]float64, 60)
	for range 3 {
		check.OK(t, target.Energy(context.Background(), states, energy))
	}
	if c := target.Counts(); c.Rows != 3*4+5*4+5*3 || c.EnergyEvaluations != 180 || c.GradientEvaluations != 0 {
		t.Errorf("counts %+v", c)
	}
}

// A row serves the energy and both kinds of conditionals, whatever it was asked
// for first: it runs once.
func TestRowsServeAll(t *testing.T) {
	ctx, state := context.Background(), []int{2, 0, 1}
	target := newTarget(t, tiny(t), lm.TargetOptions{})
	logp := make([]float64, 3*5)
	ask := []func() error{
		func() error { return target.LogMaskedConditionals(ctx, state, []bool{false, true, false}, logp) },
		func() error { return target.LogConditionals(ctx, state, []int{1}, logp) },
		func() error { return target.Energy(ctx, state, make([]float64, 1)) },
		func() error { return target.LogMaskedConditionals(ctx, state, []bool{true, false, false}, logp) },
		func() error { return target.LogMaskedConditionals(ctx, state, []bool{true, false, true}, logp) },
		func() error {
			return target.LogMaskedConditionals(ctx, []int{0, 0, 3}, []bool{true, false, true}, logp)
		},
	}
	for i, rows := range []int64{1, 1, 3, 3, 4, 4} {
		check.OK(t, ask[i]())
		if got := target.Counts().Rows; got != rows {
			t.Errorf("%d rows ran after question %d, want %d", got, i, rows)
		}
	}
}

// A failed call leaves nothing behind that a later one would take for a result.
func TestEvaluationAfterFailure(t *testing.T) {
	m, state := tiny(t), []int{1, 1, 1}
	target := newTarget(t, m, lm.TargetOptions{})
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	got, want := make([]float64, 1), make([]float64, 1)
	if err := target.Energy(cancelled, state, got); !errors.Is(err, context.Canceled) {
		t.Fatalf("a cancelled call: %v", err)
	}
	check.OK(t, target.Energy(context.Background(), state, got))
	check.OK(t, newTarget(t, m, lm.TargetOptions{}).Energy(context.Background(), state, want))
	if got[0] != want[0] {
		t.Errorf("energy %g after a failure, %g without", got[0], want[0])
	}
}

func TestBadTargets(t *testing.T) {
	m := tiny(t)
	long := make([]int, 17)
	for _, c := range map[string]struct {
		ids, slots []int
		o          lm.TargetOptions
		want       string
	}{
		"no slot": {exampleIDs, nil, lm.TargetOptions{}, "there is no slot"},
		"too long": {long, []int{2}, lm.TargetOptions{Support: [][]int{{5}}},
			"the text has 17 tokens, the model takes at most 16"},
		"outside":    {exampleIDs, []int{8}, lm.TargetOptions{}, "outside the text"},
		"twice":      {exampleIDs, []int{2, 2}, lm.TargetOptions{}, "two slots are at position 2"},
		"no support": {exampleIDs, exampleSlots, lm.TargetOptions{}, "supports for 0"},
		"empty support": {exampleIDs, exampleSlots, lm.TargetOptions{Support: [][]int{{5}, {}, {5}}},
			"slot 1 may take no token"},
		"bad token": {exampleIDs, exampleSlots, lm.TargetOptions{Support: [][]int{{5}, {30}, {5}}},
			"token 30 is outside"},
		"energy": {exampleIDs, exampleSlots, lm.TargetOptions{Energy: "raw", Support: exampleKinds},
			`energy "raw" is not one of pll, filled`},
		"gradient": {exampleIDs, exampleSlots, lm.TargetOptions{Gradient: "half", Support: exampleKinds},
			`gradient "half" is not one of local, full`},
	} {
		_, err := m.NewTarget(c.ids, c.slots, c.o)
		check.Says(t, err, c.want)
	}
	if _, err := m.NewTarget(long[:16], []int{2}, lm.TargetOptions{Support: [][]int{{5}}}); err != nil {
		t.Errorf("a text of as many tokens as the model takes: %v", err)
	}
	if _, err := lm.Open(context.Background(), writeBundle(t, 30, 0.3), lm.Options{MaskID: 30}); err == nil ||
		!strings.Contains(err.Error(), "[MASK] has id 30") {
		t.Errorf("mask outside the vocabulary: error %v", err)
	}
}

// vocabularySupport lets every slot take every token.
func vocabularySupport(vocabulary, slots int) [][]int {
	all := make([]int, vocabulary)
	for i := range all {
		all[i] = i
	}
	return slices.Repeat([][]int{all}, slots)
}
