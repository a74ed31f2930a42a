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

	"infill/samplers/targets"
)

// anotherTable has the slots of smallTable, and energies of its own.
func anotherTable(t *testing.T) *targets.Table {
	t.Helper()
	table, err := targets.NewTable([]int{2, 3}, rand.New(rand.NewPCG(9, 9)), targets.TableOptions{Scale: 1, GradientError: 0.3, ConditionalError: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func multiply(a, b [][]float64) [][]float64 {
	product := make([][]float64, len(a))
	for i := range a {
		product[i] = make([]float64, len(b[0]))
		for k, x := range a[i] {
			for j, y := range b[k] {
				product[i][j] += x * y
			}
		}
	}
	return product
}

// A step is the product of the kernel's own matrices over the surrogate, accepted
// by the difference of the two energies, and in detailed balance with the target.
func TestSurrogateTransition(t *testing.T) {
	for _, d := range Descriptions() {
		if !d.Surrogate {
			continue
		}
		for _, c := range []struct {
			steps       int
			temperature float64
		}{{1, 0}, {2, 0}, {2, 1.7}, {3, 0}} {
			if c.steps == 3 && d.Name != "gwg" {
				continue // the number of paths grows with every step
			}
			t.Run(fmt.Sprintf("%s %d T=%v", d.Name, c.steps, c.temperature), func(t *testing.T) {
				var target, surrogate Target = smallTable(t), anotherTable(t)
				kernel, err := New(d.Name, target, Options{Surrogate: surrogate, SurrogateSteps: c.steps, Temperature: c.temperature})
				if err != nil {
					t.Fatal(err)
				}
				alone, err := New(d.Name, surrogate, Options{Temperature: c.temperature})
				if err != nil {
					t.Fatal(err)
				}
				if c.temperature != 0 {
					target, surrogate = tempered(t, target, c.temperature), tempered(t, surrogate, c.temperature)
				}
				w, near := newWorld(t, target), newWorld(t, surrogate)
				one := transitionMatrix(t, alone, near.Enumeration)
				proposal := one
				for range c.steps - 1 {
					proposal = multiply(proposal, one)
				}
				want := make([][]float64, len(proposal))
				refused := 0.0
				for i := range want {
					want[i] = slices.Clone(proposal[i])
					for j, q := range proposal[i] {
						taken := math.Min(1, w.Probability[j]*near.Probability[i]/(w.Probability[i]*near.Probability[j]))
						if i != j {
							want[i][j] = q * taken
							want[i][i] += q * (1 - taken)
							refused += q * (1 - taken)
						}
					}
				}
				got := transitionMatrix(t, kernel, w.Enumeration)
				if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-10)); d != "" {
					t.Fatalf("transition matrix (-formula +kernel):\n%s", d)
				}
				if refused < 0.01 {
					t.Errorf("refused %v: the surrogate is no test", refused)
				}
				checkDetailedBalance(t, w.Probability, got)
				checkInvariant(t, w.Probability, got)
			})
		}
	}
}

// What may propose over a surrogate is reversible by its own test.
func TestSurrogateKernelsAreReversible(t *testing.T) {
	allowed := map[string]bool{}
	for _, d := range Descriptions() {
		allowed[d.Name] = d.Surrogate
	}
	for _, f := range forms(t) {
		if allowed[f.kernel] && !(f.exact && f.reversible) {
			t.Errorf("%s may propose over a surrogate, and is not reversible", f.name())
		}
	}
	for _, name := range []string{"gibbs", "dula", "dula-ordinal", "acs", "rbm-gibbs", "r-mala", "r-hmc", "d-svgd"} {
		if allowed[name] {
			t.Errorf("%s may propose over a surrogate", name)
		}
	}
}

// The chains over the surrogate are always where the chains are, with what is
// known there, after an error as well.
func TestSurrogateCaches(t *testing.T) {
	ctx := context.Background()
	const chains, steps = 7, 4
	for _, name := range []string{"dmala", "gwg", "mlm-mh", "hamming-ball"} {
		const plenty = 1 << 30
		targetLeft, surrogateLeft := plenty, plenty
		target, surrogate := failing{smallTable(t), &targetLeft}, failing{anotherTable(t), &surrogateLeft}
		kernel, err := New(name, target, Options{Surrogate: surrogate, SurrogateSteps: steps})
		if err != nil {
			t.Fatal(err)
		}
		streams := Streams(3, "", chains)
		state, err := kernel.Init(ctx, RandomPositions(target, streams))
		if err != nil {
			t.Fatal(err)
		}
		check := func() {
			t.Helper()
			if d := cmp.Diff(state.Positions, state.surrogate.Positions); d != "" {
				t.Fatalf("%s: positions (-chains +surrogate's):\n%s", name, d)
			}
			for _, of := range []struct {
				state  *State
				target failing
			}{{state, target}, {state.surrogate, surrogate}} {
				energy, gradient := make([]float64, chains), make([]float64, len(of.state.Positions)*3)
				if err := of.target.Table.EnergyGradient(ctx, state.Positions, energy, gradient); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(energy, of.state.Energy, cmpopts.EquateApprox(0, 1e-9)); d != "" {
					t.Fatalf("%s: energies (-fresh +cached):\n%s", name, d)
				}
				if of.state.Gradient != nil {
					if d := cmp.Diff(gradient, of.state.Gradient, cmpopts.EquateApprox(0, 1e-9)); d != "" {
						t.Fatalf("%s: gradients (-fresh +cached):\n%s", name, d)
					}
				}
				if err := checkWeights(of.state); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
		}
		var acceptance Acceptance
		err = Run(ctx, kernel, state, streams, 50, func(_ int, _ *State, info *Info) error {
			check()
			acceptance.Observe(info)
			if info.Cost != (Cost{Energies: chains}) {
				t.Errorf("%s: cost %+v, want %d energies", name, info.Cost, chains)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if rate, _ := acceptance.Rate(); !(rate > 0.1 && rate < 1) {
			t.Errorf("%s: acceptance %v", name, rate)
		}
		p := kernel.(*SurrogateTransition).Proposals()
		if p.Tried != 50*steps*chains || p.Taken == 0 || p.Taken > p.Tried || p.Cost == (Cost{}) {
			t.Errorf("%s: proposals %+v", name, p)
		}
		for left, calls := range map[*int]int{&targetLeft: 0, &surrogateLeft: 2} { // 2: in the middle of a proposal
			before := slices.Clone(state.Positions)
			*left = calls
			if err := kernel.Step(ctx, state, streams, &Info{}); !errors.Is(err, errFails) {
				t.Fatalf("%s: error %v", name, err)
			}
			*left = plenty
			if d := cmp.Diff(before, state.Positions); d != "" {
				t.Errorf("%s: an error moved the chains:\n%s", name, d)
			}
			check()
			if now := kernel.(*SurrogateTransition).Proposals(); now != p {
				t.Errorf("%s: proposals of a failed step count: %+v", name, now)
			}
		}
	}
}

// spoilt has energies that are no numbers anywhere but at the origin.
type spoilt struct {
	*targets.Table
	energy float64
}

func (s spoilt) Energy(ctx context.Context, states []int, energy []float64) error {
	err := s.Table.Energy(ctx, states, energy)
	for c := range energy {
		if states[2*c] != 0 || states[2*c+1] != 0 {
			energy[c] = s.energy
		}
	}
	return err
}

func TestSurrogateRefusesUnusableProposals(t *testing.T) {
	ctx := context.Background()
	for _, u := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		kernel, err := New("gwg", spoilt{smallTable(t), u}, Options{Surrogate: anotherTable(t), SurrogateSteps: 3})
		if err != nil {
			t.Fatal(err)
		}
		state, err := kernel.Init(ctx, make([]int, 8))
		if err != nil {
			t.Fatal(err)
		}
		if err := Run(ctx, kernel, state, Streams(1, "", 4), 20, nil); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(state.Positions, make([]int, 8)) || kernel.(*SurrogateTransition).Proposals().Taken == 0 {
			t.Errorf("energy %v: chains went to %v", u, state.Positions)
		}
	}
}

func TestSurrogateErrors(t *testing.T) {
	target, surrogate := smallTable(t), anotherTable(t)
	for name, c := range map[string]struct {
		kernel string
		o      Options
		want   string
	}{
		"no steps":           {"gwg", Options{Surrogate: surrogate}, "at least one"},
		"ladder":             {"gwg", Options{Surrogate: surrogate, SurrogateSteps: 1, Ladder: []float64{1, 2}}, "one of the two"},
		"stochastic":         {"gwg", Options{Surrogate: surrogate, SurrogateSteps: 1, Terms: 1}, "whole gradient"},
		"other slots":        {"gwg", Options{Surrogate: ragged(targets.TableOptions{})(t), SurrogateSteps: 1}, "categories are not the target's"},
		"not exact":          {"dula", Options{Surrogate: surrogate, SurrogateSteps: 1}, "reversible"},
		"cyclical":           {"acs", Options{Surrogate: surrogate, SurrogateSteps: 1}, "reversible"},
		"the kernel's fault": {"dmala", Options{Surrogate: surrogate, SurrogateSteps: 1, StepSize: -1}, "step size"},
		"temperature":        {"dmala", Options{Surrogate: surrogate, SurrogateSteps: 1, Temperature: math.NaN()}, "temperature"},
	} {
		if _, err := New(c.kernel, target, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.want)
		}
	}
	if _, err := NewSurrogateTransition("gwg", target, Options{SurrogateSteps: 1}); err == nil || !strings.Contains(err.Error(), "give one") {
		t.Errorf("no surrogate: error %v", err)
	}
	if _, err := NewSurrogateTransition("gwg", nil, Options{Surrogate: surrogate, SurrogateSteps: 1}); err == nil || !strings.Contains(err.Error(), "no target") {
		t.Errorf("no target: error %v", err)
	}
	kernel, err := New("gwg", target, Options{Surrogate: surrogate, SurrogateSteps: 1})
	if err != nil {
		t.Fatal(err)
	}
	alone, err := kernel.(*SurrogateTransition).Kernel().Init(context.Background(), []int{0, 0})
	if err != nil {
		t.Fatal(err)
	}
	if err := kernel.Step(context.Background(), alone, Streams(1, "", 1), &Info{}); err == nil || !strings.Contains(err.Error(), "Init") {
		t.Errorf("a state of the other kernel: error %v", err)
	}
}
