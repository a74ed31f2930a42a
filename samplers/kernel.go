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

// A Kernel is the transition of one sampler over a batch of chains;
// [Sampler.Kernel] makes it. A kernel keeps scratch memory, so only one goroutine at a
// time may use it.
type Kernel interface {
	// Init makes the state of chains that start at positions, [chains × slots].
	// It returns an error if the energy at a start is not finite.
	Init(ctx context.Context, positions []int) (*State, error)
	// Step advances every chain by one transition. streams holds one stream
	// for each chain. Step overwrites info. After an error, the state is as
	// it was before the step; with a stochastic gradient, at least its
	// chains have not moved.
	Step(ctx context.Context, state *State, streams []*rand.Rand, info *Info) error
}

// State is the present state of a batch of chains, with the values that the
// kernel knows there. If you change a position or the target, make a new state
// with Kernel.Init.
type State struct {
	// Positions holds the state θ of every chain, [chains × slots].
	Positions []int
	// Energy is U at the positions in nats, [chains]. If a kernel that needs no
	// energies has moved a chain, its energy is NaN until [State.Evaluate].
	Energy []float64

	kernel *kernel // the kernel that made the state
	own    any     // values that the kernel keeps with the state; nil if there are none
}

// Chains returns the number of chains.
func (s *State) Chains() int { return len(s.Energy) }

// Slots returns the number of slots of each chain.
func (s *State) Slots() int { return len(s.Positions) / len(s.Energy) }

// Position returns the part of Positions that belongs to a chain, [slots].
func (s *State) Position(chain int) []int {
	slots := s.Slots()
	return s.Positions[chain*slots : (chain+1)*slots]
}

// Evaluate computes the energies of all chains if any energy is NaN.
func (s *State) Evaluate(ctx context.Context, target Target) error {
	if slices.ContainsFunc(s.Energy, math.IsNaN) {
		return target.Energy(ctx, s.Positions, s.Energy)
	}
	return nil
}

// Info describes one step, for diagnostics.
type Info struct {
	// LogAcceptance has the log of each chain's Metropolis–Hastings ratio,
	// [chains]. It may be above 0. It is 0 for kernels that accept every
	// proposal, and -Inf for proposals that cannot be accepted.
	LogAcceptance []float64
	Accepted      []bool // whether the proposal was accepted, [chains]
	Proposal      []int  // [chains × slots]
	Changed       []int  // the number of slots that changed, [chains]
	Cost          Cost   // cost of the step, over all chains
}

// Cost counts evaluations of a target. Each evaluation is of one state of one chain.
type Cost struct {
	Energies     int // energies without gradients
	Gradients    int // energies with gradients
	Conditionals int // conditionals of one slot, or of one masked block
}

// Plus returns the sum of two costs.
func (c Cost) Plus(d Cost) Cost {
	return Cost{c.Energies + d.Energies, c.Gradients + d.Gradients, c.Conditionals + d.Conditionals}
}

func (c Cost) times(n int) Cost {
	return Cost{n * c.Energies, n * c.Gradients, n * c.Conditionals}
}

// reset gives the slices their lengths and clears all values but Proposal.
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

func (i *Info) proposal(chain int) []int {
	slots := len(i.Proposal) / len(i.Accepted)
	return i.Proposal[chain*slots : (chain+1)*slots]
}

// settle accepts or rejects a chain's proposal, of energy U, by ratio, in log.
// The kernel updates State.own itself.
func (i *Info) settle(chain int, state *State, energy, ratio float64, src source) {
	if math.IsNaN(ratio) {
		ratio = math.Inf(-1)
	}
	i.LogAcceptance[chain] = ratio
	if accept(src, ratio) {
		i.move(chain, state, energy)
	}
}

func (i *Info) move(chain int, state *State, energy float64) {
	position := state.Position(chain)
	to := i.proposal(chain)
	i.Accepted[chain] = true
	i.Changed[chain] = changes(position, to)
	copy(position, to)
	state.Energy[chain] = energy
}

// meanAcceptance returns the mean over the chains of
// min(1, acceptance ratio), which is less noisy than the accepted fraction.
// It returns NaN if there are no chains.
func (i *Info) meanAcceptance() float64 {
	sum := 0.0
	for _, l := range i.LogAcceptance {
		sum += math.Exp(math.Min(0, l))
	}
	return sum / float64(len(i.LogAcceptance))
}

func changes(before, after []int) int {
	n := 0
	for j, v := range after {
		if v != before[j] {
			n++
		}
	}
	return n
}

// A mover is the part of a kernel in which samplers differ.
type mover interface {
	// start prepares a new state for the first step: it sets the energies, as
	// far as the sampler needs them, and State.own.
	start(ctx context.Context, state *State) error
	// transition is Kernel.Step, with a source of decisions for each chain.
	transition(ctx context.Context, state *State, sources []source, info *Info) error
}

// kernel makes a [Kernel] of a mover, and checks the arguments of its calls.
type kernel struct {
	mover   mover
	target  Target
	tune    tuner
	sources []source
}

var _ Kernel = (*kernel)(nil)

// newKernel makes the kernel of a sampler: it checks the settings and the target, and
// gives make the sampler with its defaults filled in. A warm-up tunes the mover.
func newKernel[S Sampler, M mover](s S, target Target, tune tuner, make func(S) (M, error)) (Kernel, error) {
	err := Check(s)
	if err != nil {
		return nil, err
	}
	err = checkTarget(target)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Describe().Name, err)
	}
	settingsOf(s).Settle(&s)
	m, err := make(s)
	if err != nil {
		return nil, err
	}
	return &kernel{mover: m, target: target, tune: tune}, nil
}

func (k *kernel) Init(ctx context.Context, positions []int) (*State, error) {
	chains, err := checkPositions(k.target.Categories(), positions)
	if err != nil {
		return nil, err
	}
	s := &State{Positions: slices.Clone(positions), Energy: make([]float64, chains), kernel: k}
	if err := k.mover.start(ctx, s); err != nil {
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
	return k.mover.transition(ctx, state, k.sources, info)
}

// evaluate is mover.start for samplers that need energies. It returns an error
// if an energy is not finite.
func evaluate(ctx context.Context, target Target, s *State) error {
	if err := target.Energy(ctx, s.Positions, s.Energy); err != nil {
		return err
	}
	return checkStart(s.Energy)
}

func checkStart(energy []float64) error {
	for c, u := range energy {
		if !logmath.Finite(u) {
			return fmt.Errorf("chain %d starts at energy %v: start it where the energy is finite", c, u)
		}
	}
	return nil
}

// leaveOpen is mover.start without energies: it makes them NaN.
func leaveOpen(s *State) {
	for c := range s.Energy {
		s.Energy[c] = math.NaN()
	}
}
