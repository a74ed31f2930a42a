package samplers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"infill/internal/logmath"
)

// A Kernel is the transition of one sampler over a batch of chains; [New] makes
// it. It keeps scratch memory: one kernel serves one goroutine at a time.
type Kernel interface {
	// Init makes the state of chains that start at positions [chains × slots].
	// A start whose energy is not finite is an error.
	Init(ctx context.Context, positions []int) (*State, error)
	// Step advances every chain by one transition. streams holds one stream per chain. info is overwritten. After an
	// error the state is as it was before the step; with a stochastic gradient its chains stand still.
	Step(ctx context.Context, state *State, streams []*rand.Rand, info *Info) error
}

// State is the present state of a batch of chains, with the values that are known there. If you change a
// position or the target, make a new state with Kernel.Init.
type State struct {
	// Positions is θ, [chains × slots].
	Positions []int
	// Energy is U at the positions, [chains], in nats. It is NaN after a kernel that needs no energies has moved
	// a chain, until [State.Evaluate].
	Energy []float64

	kernel *kernel // that made it
	own    any     // the other values that the kernel keeps; nil for none
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

// Evaluate computes the energies of the batch if any is unknown.
func (s *State) Evaluate(ctx context.Context, target Target) error {
	if slices.ContainsFunc(s.Energy, math.IsNaN) {
		return target.Energy(ctx, s.Positions, s.Energy)
	}
	return nil
}

// Info describes one step, for diagnostics.
type Info struct {
	// LogAcceptance is the log of the Metropolis–Hastings ratio before it is cut at 0, [chains]: 0 for kernels that
	// accept always, -Inf for proposals that cannot be accepted.
	LogAcceptance []float64
	Accepted      []bool // whether the proposal was accepted, [chains]
	Proposal      []int  // [chains × slots]
	Changed       []int  // the number of slots that changed, [chains]
	Cost          Cost   // of the step, over all chains
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

// settle accepts or rejects the proposal of one chain, whose own value its kernel settles.
func (i *Info) settle(chain int, state *State, energy, ratio float64, src source) {
	if math.IsNaN(ratio) {
		ratio = math.Inf(-1)
	}
	i.LogAcceptance[chain] = ratio
	if accept(src, ratio) {
		i.move(chain, state, energy)
	}
}

// move takes a chain to its proposal.
func (i *Info) move(chain int, state *State, energy float64) {
	position, to := state.Position(chain), i.proposal(chain)
	i.Accepted[chain], i.Changed[chain] = true, changes(position, to)
	copy(position, to)
	state.Energy[chain] = energy
}

// meanAcceptance is the mean over the chains of min(1, ratio): less noisy than
// the fraction accepted. NaN for no chains.
func (i *Info) meanAcceptance() float64 {
	sum := 0.0
	for _, l := range i.LogAcceptance {
		sum += math.Exp(math.Min(0, l))
	}
	return sum / float64(len(i.LogAcceptance))
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

// A mover is the arithmetic of one sampler: all that differs between kernels.
type mover interface {
	// start evaluates the target at a new state's positions, as far as the first step needs it. It fills in the state's
	// energies and its own value.
	start(ctx context.Context, state *State) error
	// transition is Step, with a source for the random decisions of each chain.
	transition(ctx context.Context, state *State, sources []source, info *Info) error
}

// kernel makes a [Kernel] of a mover, and checks the arguments of its calls.
type kernel struct {
	mover
	spec    Spec
	target  Target
	shared  *rand.Rand
	sources []source
}

var _ Kernel = (*kernel)(nil)

func (k *kernel) Init(ctx context.Context, positions []int) (*State, error) {
	chains, err := checkPositions(k.target.Categories(), positions)
	if err != nil {
		return nil, err
	}
	s := &State{Positions: slices.Clone(positions), Energy: make([]float64, chains), kernel: k}
	if err := k.start(ctx, s); err != nil {
		return nil, err
	}
	return s, nil
}

func (k *kernel) Step(ctx context.Context, state *State, streams []*rand.Rand, info *Info) error {
	if state == nil || state.kernel != k {
		return errors.New("no state of this kernel: make one with its Init")
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
	k.sources = k.sources[:0]
	for c, stream := range streams {
		if stream == nil {
			return fmt.Errorf("chain %d has no random stream: give one per chain", c)
		}
		k.sources = append(k.sources, random{stream})
	}
	return k.transition(ctx, state, k.sources, info)
}

// evaluate is the start of kernels that need energies, which must be finite.
func evaluate(ctx context.Context, target Target, s *State) error {
	if err := target.Energy(ctx, s.Positions, s.Energy); err != nil {
		return err
	}
	return checkStart(s.Energy)
}

// checkStart refuses starts that are forbidden or not evaluable.
func checkStart(energy []float64) error {
	for c, u := range energy {
		if !logmath.Finite(u) {
			return fmt.Errorf("chain %d starts at energy %v: start it where the energy is finite", c, u)
		}
	}
	return nil
}

// leaveOpen is the start of kernels that need no energies.
func leaveOpen(s *State) {
	for c := range s.Energy {
		s.Energy[c] = math.NaN()
	}
}
