package samplers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// SurrogateTransition proposes by N steps of a kernel over another, cheaper
// target, the surrogate π̃ ∝ exp(Ũ), and accepts where they lead by the target:
//
//	θ' by N steps of a kernel that is reversible in π̃
//	A(θ → θ') = min(1, exp(U(θ') - U(θ) - Ũ(θ') + Ũ(θ)))
//
// This is the surrogate transition method of Liu, "Monte Carlo Strategies in
// Scientific Computing" (2001), section 9.4.3; with one step it is the delayed
// acceptance of Christen and Fox, "Markov Chain Monte Carlo Using an
// Approximation" (J. Comput. Graph. Statist. 2005).
//
// Target: exp(U) exactly, however wrong the surrogate is where both are finite;
// a worse one is refused more often. It does not take kernels that change from
// step to step or remember more than where they are: their steps together are
// not reversible. The step size is that of the kernel over the surrogate.
// Cost: one energy of the target, and N kernel steps on the surrogate, which
// [SurrogateTransition.Proposals] counts.
type SurrogateTransition struct {
	frame
	target   Target
	kernel   transitionKernel // over the surrogate
	steps    int
	proposed SurrogateCount

	energy []float64 // of the target at the proposals, [chains]
	before State     // of the surrogate's chains
	last   Info
}

// SurrogateCount counts proposals over a surrogate, over all chains and steps.
type SurrogateCount struct {
	Tried, Taken int
	Cost         Cost // evaluations of the surrogate
}

var (
	_ Kernel     = (*SurrogateTransition)(nil)
	_ transition = (*SurrogateTransition)(nil)
)

// NewSurrogateTransition makes the named kernel over o.Surrogate, which must have
// the target's categories, and o.SurrogateSteps of its steps the proposal. The
// other options are the kernel's; the temperature is that of both targets.
func NewSurrogateTransition(name string, target Target, o Options) (*SurrogateTransition, error) {
	surrogate, steps := o.Surrogate, o.SurrogateSteps
	o.Surrogate, o.SurrogateSteps = nil, 0
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	switch {
	case surrogate == nil:
		return nil, errors.New("no surrogate: give one")
	case steps < 1:
		return nil, fmt.Errorf("%d steps over the surrogate: give at least one", steps)
	case o.Ladder != nil:
		return nil, errors.New("a surrogate under parallel tempering: choose one of the two")
	case o.Terms != 0:
		return nil, errors.New("a surrogate with a stochastic gradient: the subset is remembered from step to step; take the whole gradient")
	case !slices.Equal(target.Categories(), surrogate.Categories()):
		return nil, errors.New("the surrogate's slots and categories are not the target's")
	}
	kernel, err := New(name, surrogate, o)
	if err != nil {
		return nil, err
	}
	if !Describe(name).Surrogate {
		return nil, fmt.Errorf("%s over a surrogate: its steps are not reversible, or remember more than where they are", name)
	}
	if o.Temperature != 0 && o.Temperature != 1 {
		if target, err = NewTempered(target, o.Temperature); err != nil {
			return nil, err
		}
	}
	return &SurrogateTransition{target: target, kernel: kernel.(transitionKernel), steps: steps}, nil
}

// Kernel is what moves over the surrogate, so that it can be tuned there.
func (k *SurrogateTransition) Kernel() Kernel { return k.kernel }

// Proposals counts what the kernel over the surrogate proposed in the steps so far.
func (k *SurrogateTransition) Proposals() SurrogateCount { return k.proposed }

// Init implements [Kernel].
func (k *SurrogateTransition) Init(ctx context.Context, positions []int) (*State, error) {
	s, err := initWithEnergy(ctx, k.target, positions)
	if err != nil {
		return nil, err
	}
	if s.surrogate, err = k.kernel.Init(ctx, positions); err != nil {
		return nil, fmt.Errorf("over the surrogate: %w", err)
	}
	return s, nil
}

// Step implements [Kernel].
func (k *SurrogateTransition) Step(ctx context.Context, state *State, streams []*rand.Rand, info *Info) error {
	return k.step(ctx, k, state, streams, info)
}

func (k *SurrogateTransition) transition(ctx context.Context, state *State, sources []source, info *Info) error {
	s := state.surrogate
	if s == nil {
		return errors.New("a state without one over the surrogate: make it with this kernel's Init")
	}
	info.reset(state.Chains(), state.Slots())
	k.before.copyFrom(s)
	if err := k.propose(ctx, s, sources, info); err != nil {
		s.copyFrom(&k.before)
		return err
	}
	for c, src := range sources {
		ratio := math.Inf(-1)
		if finite(k.energy[c]) {
			ratio = k.energy[c] - state.Energy[c] - (s.Energy[c] - k.before.Energy[c])
		}
		info.settle(c, state, k.energy[c], ratio, src)
		if !info.Accepted[c] {
			s.copyChain(c, &k.before)
		}
	}
	return nil
}

// propose moves the surrogate's chains, and evaluates the target where they are.
func (k *SurrogateTransition) propose(ctx context.Context, s *State, sources []source, info *Info) error {
	proposed := k.proposed
	for range k.steps {
		if err := k.kernel.transition(ctx, s, sources, &k.last); err != nil {
			return err
		}
		proposed.Cost = proposed.Cost.Plus(k.last.Cost)
		proposed.Tried += s.Chains()
		for _, accepted := range k.last.Accepted {
			if accepted {
				proposed.Taken++
			}
		}
	}
	copy(info.Proposal, s.Positions)
	if len(k.energy) != s.Chains() {
		k.energy = make([]float64, s.Chains())
	}
	if err := k.target.Energy(ctx, info.Proposal, k.energy); err != nil {
		return err
	}
	info.Cost.Energies = s.Chains()
	k.proposed = proposed
	return nil
}

// copyFrom takes over where the chains of another state are, and what is known
// there but for the sums of weights.
func (s *State) copyFrom(other *State) {
	s.Positions = append(s.Positions[:0], other.Positions...)
	s.Energy = append(s.Energy[:0], other.Energy...)
	s.Gradient = append(s.Gradient[:0], other.Gradient...)
	s.weightsOf = nil
}

// copyChain is copyFrom of one chain.
func (s *State) copyChain(chain int, other *State) {
	copy(s.Position(chain), other.Position(chain))
	s.Energy[chain] = other.Energy[chain]
	size := len(s.Gradient) / s.Chains()
	copy(s.Gradient[chain*size:(chain+1)*size], other.Gradient[chain*size:])
	s.weightsOf = nil
}
