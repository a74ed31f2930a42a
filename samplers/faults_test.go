package samplers

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"infill/internal/check"
	"infill/internal/targets"
)

var errFault = errors.New("the model failed")

// A fault fails at the call at which left reaches 0.
type fault struct{ left int }

func (f *fault) call() error {
	f.left--
	if f.left == 0 {
		return errFault
	}
	return nil
}

// These targets fail at a call.
type (
	faultyTable struct {
		*targets.Table
		*fault
	}
	faultyIsing struct {
		*targets.Ising
		*fault
	}
	faultyRBM struct {
		*targets.RBM
		*fault
	}
	faultyPartial struct {
		*tables
		*fault
	}
)

func faulty(t *testing.T, target Target, f *fault) Target {
	t.Helper()
	switch target := target.(type) {
	case *targets.Table:
		return faultyTable{target, f}
	case *targets.Ising:
		return faultyIsing{target, f}
	case *targets.RBM:
		return faultyRBM{target, f}
	}
	t.Fatalf("%T has no faulty form", target)
	return nil
}

func (t faultyTable) Energy(ctx context.Context, states []int, energy []float64) error {
	return errors.Join(t.Table.Energy(ctx, states, energy), t.call())
}

func (t faultyTable) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	return errors.Join(t.Table.EnergyGradient(ctx, states, energy, gradient), t.call())
}

func (t faultyTable) EnergyGradientOf(ctx context.Context, terms []int, states []int,
	energy, gradient []float64) error {
	return errors.Join(t.Table.EnergyGradientOf(ctx, terms, states, energy, gradient), t.call())
}

func (t faultyTable) EnergyDerivative(ctx context.Context, states []int, energy, derivative []float64) error {
	return errors.Join(t.Table.EnergyDerivative(ctx, states, energy, derivative), t.call())
}

func (t faultyTable) LogConditionals(ctx context.Context, states []int, slots []int, logp []float64) error {
	return errors.Join(t.Table.LogConditionals(ctx, states, slots, logp), t.call())
}

func (t faultyTable) LogMaskedConditionals(ctx context.Context, states []int, open []bool, logp []float64) error {
	return errors.Join(t.Table.LogMaskedConditionals(ctx, states, open, logp), t.call())
}

func (t faultyIsing) Energy(ctx context.Context, states []int, energy []float64) error {
	return errors.Join(t.Ising.Energy(ctx, states, energy), t.call())
}

func (t faultyIsing) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	return errors.Join(t.Ising.EnergyGradient(ctx, states, energy, gradient), t.call())
}

func (t faultyIsing) RelaxedEnergyGradient(ctx context.Context, x []float64, energy, gradient []float64) error {
	return errors.Join(t.Ising.RelaxedEnergyGradient(ctx, x, energy, gradient), t.call())
}

func (t faultyRBM) Energy(ctx context.Context, states []int, energy []float64) error {
	return errors.Join(t.RBM.Energy(ctx, states, energy), t.call())
}

func (t faultyRBM) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	return errors.Join(t.RBM.EnergyGradient(ctx, states, energy, gradient), t.call())
}

func (t faultyRBM) RelaxedEnergyGradient(ctx context.Context, x []float64, energy, gradient []float64) error {
	return errors.Join(t.RBM.RelaxedEnergyGradient(ctx, x, energy, gradient), t.call())
}

func (t faultyPartial) PartialConditionals(ctx context.Context, asked []Partial,
	take func(i int, logp []float32)) error {
	if err := t.call(); err != nil {
		return err
	}
	return t.tables.PartialConditionals(ctx, asked, take)
}

// failing calls do with a fault at its first call, its second and so on, until
// do makes no more calls. Every fault must come out.
func failing(t *testing.T, do func(f *fault) error) (calls int) {
	t.Helper()
	for n := 1; ; n++ {
		f := &fault{n}
		err := do(f)
		if f.left > 0 {
			check.OK(t, err)
			return n - 1
		}
		if !errors.Is(err, errFault) {
			t.Fatalf("the fault of call %d came out as %v", n, err)
		}
	}
}

// TestFaultyTarget: whichever call of the target fails, in the start, the
// warm-up or a step, Sample returns the error, and no chain has moved since the
// step before.
func TestFaultyTarget(t *testing.T) {
	for _, form := range forms(t) {
		t.Run(form.name(), func(t *testing.T) {
			target := form.target(t)
			calls := failing(t, func(f *fault) error {
				faulty := faulty(t, target, f)
				if form.temperature != 0 {
					faulty = atTemperature(t, faulty, form.temperature)
				}
				streams := Streams(1, "faults", 3)
				var state *State
				var before []int
				_, err := Sample(t.Context(), form.over(t, faulty), RandomPositions(faulty, streams),
					Plan{Streams: streams, WarmUp: 3, Steps: 3}, func(s Step) error {
						state = s.State
						before = slices.Clone(state.Positions)
						return nil
					})
				if state != nil && !slices.Equal(state.Positions, before) {
					t.Errorf("the failing step moved %v to %v", before, state.Positions)
				}
				return err
			})
			if _, ok := target.(LatentTarget); calls == 0 && !ok {
				t.Error("the target was never called")
			}
		})
	}
}

// TestFaultyEvaluate: the error of a state that is rated late comes out.
func TestFaultyEvaluate(t *testing.T) {
	calls := failing(t, func(f *fault) error {
		target := faulty(t, roughTable()(t), f)
		streams := Streams(1, "faults", 3)
		run, err := Sample(t.Context(), makeKernel(t, "gibbs", target), RandomPositions(target, streams),
			Plan{Streams: streams, Steps: 2}, nil)
		if err != nil {
			return err
		}
		return run.State.Evaluate(t.Context(), target)
	})
	if calls != 3 {
		t.Errorf("%d calls, want two steps and the energies", calls)
	}
}

// TestFaultyLaws: whichever conditional fails, a search and draws return the
// error.
func TestFaultyLaws(t *testing.T) {
	laws := func(f *fault) []Law {
		stream := rand.New(rand.NewPCG(3, 1))
		draw := func() float32 { return float32(math.Exp(stream.NormFloat64())) }
		var laws []Law
		for range 2 {
			target := &tables{categories: []int{4, 3, 5}, rows: map[string][]float32{}, draw: draw}
			laws = append(laws, Law{Target: faultyPartial{target, f}, Order: []int{0, 1, 2}, LogWeight: -1,
				Choices: pairs(target.categories, func(first, last int) bool { return (first+last)%2 == 0 })})
		}
		return laws
	}
	calls := failing(t, func(f *fault) error {
		search, err := NewSearch(laws(f))
		check.OK(t, err)
		return search.Run(t.Context(), 3, nil, nil)
	})
	if calls < 4 {
		t.Errorf("a search made %d calls", calls)
	}
	for _, temperature := range []float64{1, 2} {
		calls := failing(t, func(f *fault) error {
			_, err := Draw(t.Context(), laws(f), temperature, Streams(1, "draws", 8), nil)
			return err
		})
		if calls < 4 {
			t.Errorf("draws made %d calls", calls)
		}
	}
}

// wrongAt are tables of which one conditional is no distribution.
type wrongAt struct {
	*tables
	*fault
	wrong float32 // log P of each category there
}

func (w wrongAt) PartialConditionals(ctx context.Context, asked []Partial, take func(i int, logp []float32)) error {
	return w.tables.PartialConditionals(ctx, asked, func(i int, logp []float32) {
		if w.call() != nil {
			logp = slices.Repeat([]float32{w.wrong}, len(logp))
		}
		take(i, logp)
	})
}

// TestNoDistribution: whichever conditional is no distribution, a search and
// draws return an error that says so.
func TestNoDistribution(t *testing.T) {
	for _, wrong := range []float32{float32(math.NaN()), 0.1} {
		for name, do := range map[string]func(laws []Law) error{
			"search": func(laws []Law) error {
				search, err := NewSearch(laws)
				check.OK(t, err)
				return search.Run(t.Context(), 3, nil, nil)
			},
			"draws": func(laws []Law) error {
				_, err := Draw(t.Context(), laws, 1, Streams(1, "draws", 8), nil)
				return err
			},
		} {
			for n := 1; ; n++ {
				f := &fault{n}
				stream := rand.New(rand.NewPCG(3, 1))
				target := &tables{categories: []int{4, 3, 5}, rows: map[string][]float32{},
					draw: func() float32 { return float32(math.Exp(stream.NormFloat64())) }}
				err := do([]Law{{Target: wrongAt{target, f, wrong}, Order: []int{2, 0, 1}}})
				if f.left > 0 {
					check.OK(t, err)
					if n < 5 {
						t.Errorf("%s: %d conditionals", name, n-1)
					}
					break
				}
				if !errors.Is(err, errNoDistribution) {
					t.Errorf("%s, conditional %d is %v: %v", name, n, wrong, err)
				}
			}
		}
	}
}
