package samplers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

// A Kernel is the transition of one sampler over a batch of chains. It keeps
// scratch memory: one kernel serves one goroutine at a time.
type Kernel interface {
	// Init makes the state of chains that start at positions [chains ×
	// slots], and evaluates what the first step needs. A start whose energy
	// is not finite is an error.
	Init(ctx context.Context, positions []int) (*State, error)
	// Step advances every chain by one transition. streams holds one stream
	// per chain. info is overwritten. After an error the state is as it was
	// before the step, unless the kernel's own documentation says otherwise.
	Step(ctx context.Context, state *State, streams []*rand.Rand, info *Info) error
}

// State is what the next step needs of a batch of chains: where they are and
// what is known there. Read it freely, but move chains only through a kernel:
// a position changed by hand leaves the cached values behind.
type State struct {
	// Positions is θ, [chains × slots].
	Positions []int
	// Energy is U at the positions, [chains], in nats. It is NaN where a
	// kernel that needs no energies (Gibbs) has moved a chain; [State.Evaluate]
	// fills it in.
	Energy []float64
	// Gradient is ∂U/∂θ_j[v] at the positions, [chains × slots × K]; nil for
	// kernels that use none.
	Gradient []float64

	// weights are the proposal's sums at the positions, as measured by
	// weightsOf under its revision.
	weights   *neighbourhood
	weightsOf *informed
	revision  uint64
	// terms are those the gradient was taken of; nil for all.
	terms []int
	// replicas are the hotter rungs of parallel tempering.
	replicas []*State
	// z are the real numbers behind the slots of the continuous relaxations,
	// score ∇log s(z) of their surrogate, first and second the moments of
	// Adam, all [chains × slots].
	z, score, first, second []float64
	// step counts the steps of kernels that change from step to step.
	step int
}

// Chains is the number of chains.
func (s *State) Chains() int { return len(s.Energy) }

// Slots is the number of slots of each chain.
func (s *State) Slots() int { return len(s.Positions) / len(s.Energy) }

// Position is the chain's part of Positions, [slots].
func (s *State) Position(chain int) []int {
	slots := s.Slots()
	return s.Positions[chain*slots : (chain+1)*slots]
}

// Evaluate fills in the energies that are not known. It evaluates the whole
// batch, or nothing when all are known.
func (s *State) Evaluate(ctx context.Context, target Target) error {
	for _, u := range s.Energy {
		if math.IsNaN(u) {
			return target.Energy(ctx, s.Positions, s.Energy)
		}
	}
	return nil
}

// Info tells of one step what diagnostics need and the next step does not.
type Info struct {
	// LogAcceptance is the log of the Metropolis–Hastings ratio of each
	// chain, before it is cut at 0, [chains]: 0 for kernels that accept
	// always, -Inf for a proposal that cannot be taken.
	LogAcceptance []float64
	// Accepted tells whether the proposal was taken, [chains].
	Accepted []bool
	// Proposal is where the kernel proposed to go, [chains × slots].
	Proposal []int
	// Changed is the number of slots that differ from before, [chains].
	Changed []int
	// Cost counts the states evaluated in the step, over all chains.
	Cost Cost
}

// Cost counts evaluations of a target, each of one state of one chain.
type Cost struct {
	Energies     int // energies alone
	Gradients    int // energies with gradients
	Conditionals int // conditionals of one slot, or of one masked block
}

// Plus adds two costs.
func (c Cost) Plus(d Cost) Cost {
	return Cost{c.Energies + d.Energies, c.Gradients + d.Gradients, c.Conditionals + d.Conditionals}
}

func (c Cost) times(n int) Cost {
	return Cost{n * c.Energies, n * c.Gradients, n * c.Conditionals}
}

// reset gives the arrays their shape and clears them.
func (i *Info) reset(chains, slots int) {
	if len(i.Accepted) != chains || len(i.Proposal) != chains*slots {
		*i = Info{
			LogAcceptance: make([]float64, chains),
			Accepted:      make([]bool, chains),
			Proposal:      make([]int, chains*slots),
			Changed:       make([]int, chains),
		}
	}
	clear(i.LogAcceptance)
	clear(i.Accepted)
	clear(i.Changed)
	i.Cost = Cost{}
}

// proposal is the chain's part of Proposal, [slots].
func (i *Info) proposal(chain int) []int {
	slots := len(i.Proposal) / len(i.Accepted)
	return i.Proposal[chain*slots : (chain+1)*slots]
}

// A transition is how a kernel of this package advances: Step with the
// decisions of each chain behind a source.
type transition interface {
	transition(ctx context.Context, state *State, sources []source, info *Info) error
}

// frame turns streams into sources and checks what every Step must check. Its
// zero value is ready.
type frame struct{ sources []source }

func (f *frame) step(ctx context.Context, kernel transition, state *State, streams []*rand.Rand, info *Info) error {
	if state == nil || state.Chains() == 0 {
		return errors.New("no state: make one with Init")
	}
	if len(streams) != state.Chains() {
		return fmt.Errorf("%d random streams for %d chains: give one per chain", len(streams), state.Chains())
	}
	if info == nil {
		return errors.New("no info to write to: give one")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	f.sources = f.sources[:0]
	for c, stream := range streams {
		if stream == nil {
			return fmt.Errorf("chain %d has no random stream: give one per chain", c)
		}
		f.sources = append(f.sources, random{stream})
	}
	return kernel.transition(ctx, state, f.sources, info)
}

// Run makes the given number of steps and calls observe, which may be nil,
// after each, numbered from 1. What observe sees is valid until it returns;
// its error ends the run.
func Run(ctx context.Context, kernel Kernel, state *State, streams []*rand.Rand, steps int, observe func(step int, state *State, info *Info) error) error {
	var info Info
	for step := 1; step <= steps; step++ {
		if err := kernel.Step(ctx, state, streams, &info); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		if observe == nil {
			continue
		}
		if err := observe(step, state, &info); err != nil {
			return err
		}
	}
	return nil
}

// changes counts the slots that differ.
func changes(before, after []int) int {
	n := 0
	for j, v := range after {
		if v != before[j] {
			n++
		}
	}
	return n
}
