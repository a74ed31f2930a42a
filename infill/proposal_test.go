package infill

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

// proposing are options with proposals in integers, by so many steps.
func proposing(steps int) Options {
	o := DefaultOptions()
	o.ProposalPrecision, o.ProposalSteps = "int8", steps
	o.Samples, o.Steps, o.Seed = 150, 300, 5
	return o
}

// TestProposals: the draws follow the model's own law, however far off the model in
// the other precision is, which the fake's is by more than a nat.
func TestProposals(t *testing.T) {
	for _, sampler := range proposers() {
		t.Run(sampler, func(t *testing.T) {
			f, model := newFake(t)
			o := proposing(2)
			o.Sampler = sampler
			result := checkLaw(t, f, model, twoSlots, 2, o, func([]string) bool { return true })
			s := result.Stats
			if s.Proposal == nil || s.Proposal.Precision != "int8" || s.Proposal.Steps != 2 || !(*s.Proposal.AcceptanceRate > 0) {
				t.Errorf("proposal %+v", s.Proposal)
			}
			if !(*s.AcceptanceRate > 0.1 && *s.AcceptanceRate < 0.95) {
				t.Errorf("acceptance %v: the precisions should differ by more, or less", *s.AcceptanceRate)
			}
			if !strings.Contains(result.Signature, "|proposal:2@int8|") {
				t.Errorf("signature %s", result.Signature)
			}
			if presets()[sampler].stepped && s.StepSize == nil {
				t.Error("no step size is told")
			}
		})
	}
	t.Run("at 2, of words", func(t *testing.T) {
		f, model := newFake(t)
		o := proposing(0)
		o.Temperature = 2
		o.Constraints = &Constraints{Slots: map[int][]string{1: {"unseen", "the cat", "mat rug"}}}
		result := checkLaw(t, f, model, "a [MASK] [MASK]", 3, o, func(w []string) bool {
			return strings.Contains("un##seen thecat matrug", w[0]+w[1])
		})
		if !strings.Contains(result.Signature, "|proposal:4@int8|") {
			t.Errorf("signature %s", result.Signature)
		}
	})
}

// The warm-up is the other model's alone; what is drawn has the model's own energies,
// also when nothing follows the warm-up.
func TestProposalWarmUp(t *testing.T) {
	f, model := newFake(t)
	own, near := &fakeTarget{model: model}, &fakeTarget{model: model, options: TargetOptions{Precision: "int8"}}
	for _, warmUp := range []int{0, 4, 10} {
		o := proposing(3)
		o.Samples, o.Steps, o.WarmUp, o.Candidates, o.Top = 6, 10, warmUp, 5, 100
		var steps []int
		result, err := f.Fill(t.Context(), twoSlots, o, func(p Progress) {
			steps = append(steps, p.Step)
			target := own
			if p.Step <= warmUp {
				target = near
			}
			for c, u := range p.LogLikelihoods {
				if want := target.energyOf(p.TokenIDs[2*c : 2*c+2]); p.Step > 0 && math.Abs(u-want) > 1e-9 {
					t.Errorf("step %d of %d: U %v, want %v", p.Step, warmUp, u, want)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(steps) != "[0 1 2 3 4 5 6 7 8 9 10]" {
			t.Errorf("steps %v", steps)
		}
		for _, s := range result.Samples {
			if want := own.energyOf(s.TokenIDs); math.Abs(s.LogLikelihood-want) > 1e-9 {
				t.Errorf("%v: U %v, want %v", s.Fills, s.LogLikelihood, want)
			}
		}
		s := result.Stats
		rounds := int64(10 - warmUp)
		// Of both: one gradient a step and at the starts of the warm-up and of what follows;
		// an energy for each proposal and at the start.
		gradients, energies := 6*(2+int64(warmUp)+3*rounds), 6*(1+rounds)
		if s.GradientEvaluations != gradients || s.EnergyEvaluations != gradients+energies {
			t.Errorf("warm-up %d: %d gradients, %d energies; want %d and %d", warmUp, s.GradientEvaluations, s.EnergyEvaluations, gradients, gradients+energies)
		}
		if p := s.Proposal; p.ModelRows != 2*gradients || s.ModelRows != 2*(gradients+energies)+1 {
			t.Errorf("warm-up %d: %d rows of %d", warmUp, p.ModelRows, s.ModelRows)
		}
		if (s.Proposal.AcceptanceRate == nil) != (warmUp == 10) {
			t.Errorf("warm-up %d: proposal %+v", warmUp, s.Proposal)
		}
	}
}

// Of several lengths the rows are summed.
func TestProposalLengths(t *testing.T) {
	f, _ := newFake(t)
	o := proposing(3)
	o.Samples, o.Steps = 5, 10
	result := fill(t, f, "a [MASK:1-2] .", o)
	p := result.Stats.Proposal
	if p == nil || p.Precision != "int8" || p.Steps != 3 || p.AcceptanceRate == nil || p.ModelRows == 0 || p.ModelRows >= result.Stats.ModelRows {
		t.Errorf("proposal %+v of %+v", p, result.Stats)
	}
	if len(result.Stats.Lengths) != 2 {
		t.Errorf("lengths %+v", result.Stats.Lengths)
	}
}

func TestProposalErrors(t *testing.T) {
	f, _ := newFake(t)
	o := proposing(3)
	o.ProposalPrecision = "fp32"
	_, err := f.Fill(t.Context(), twoSlots, o, nil)
	var option *OptionError
	if !errors.As(err, &option) || option.Option != "proposal-precision" || !strings.Contains(option.Reason, "computes in fp32 itself") {
		t.Errorf("the model's own precision: %v", err)
	}
}
