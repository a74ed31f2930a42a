package samplers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// A Target is an unnormalised distribution π(θ) ∝ exp(U(θ)) over slots, each
// with its own number of categories. In the shapes below, K is the largest of
// [Target.Categories]. Kernels never read entries past a slot's own categories.
type Target interface {
	// Categories returns the number of categories of each slot, at least 1. The
	// caller must not change the slice.
	Categories() []int
	// Energy writes U, in nats, of each chain's state to energy, [chains].
	// states is [chains × slots]. -Inf forbids a state.
	Energy(ctx context.Context, states []int, energy []float64) error
}

// A GradientTarget also has the gradient of its energy over one-hot slots.
type GradientTarget interface {
	Target
	// EnergyGradient writes U to energy, [chains], and ∂U/∂θ_j[v] to gradient,
	// [chains × slots × K]. gradient may be an estimate: Metropolis-adjusted
	// kernels stay exact if it is always the same function of the state.
	EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error
}

// A StochasticGradientTarget has an energy that is a sum of terms, and can
// compute the gradient of only some terms.
type StochasticGradientTarget interface {
	GradientTarget
	Terms() int // number of terms of the energy
	// EnergyGradientOf is EnergyGradient with the gradient of only the given
	// terms, scaled by Terms()/len(terms). The energy stays exact.
	EnergyGradientOf(ctx context.Context, terms []int, states []int, energy, gradient []float64) error
}

// A ConditionalTarget gives conditionals of single slots, which need not be those
// of exp(U): a masked language model's are not.
type ConditionalTarget interface {
	Target
	// LogConditionals writes log p(θ_j = v | all other slots) to logp,
	// [chains × K], normalised over the categories of slot j = slots[chain].
	// The result must not depend on the value that slot j holds now.
	LogConditionals(ctx context.Context, states []int, slots []int, logp []float64) error
}

// A MaskedConditionalTarget gives conditionals while several slots are open at once.
type MaskedConditionalTarget interface {
	Target
	// LogMaskedConditionals writes log p(θ_j = v | the slots that are not open)
	// to the rows of open slots j in logp, [chains × slots × K]. Each row is
	// normalised over the slot's categories. open is [chains × slots]. The
	// result must not depend on the values that open slots hold.
	LogMaskedConditionals(ctx context.Context, states []int, open []bool, logp []float64) error
}

// An OrdinalTarget has numbers as categories, and an energy of real slots.
type OrdinalTarget interface {
	Target
	// Values returns the number that each category stands for,
	// [slots][categories]. The caller must not change it.
	Values() [][]float64
	// EnergyDerivative writes U to energy, [chains], and ∂U/∂θ_j at the state
	// to derivative, [chains × slots].
	EnergyDerivative(ctx context.Context, states []int, energy, derivative []float64) error
}

// A RelaxedTarget has binary slots, and an energy also between 0 and 1.
type RelaxedTarget interface {
	Target
	// RelaxedEnergyGradient writes U at x, [chains × slots], each in [0,1], to
	// energy, [chains], and ∂U/∂x_j to gradient, [chains × slots].
	RelaxedEnergyGradient(ctx context.Context, x []float64, energy, gradient []float64) error
}

// A LatentTarget is a model of binary slots and binary latent units, of which π
// is the margin over the slots. Given one side, the other side's units are
// independent (restricted Boltzmann machine).
type LatentTarget interface {
	Target
	Latents() int // number of latent units
	// LatentLogits writes the latent units' log-odds given the slots, [chains × latents].
	LatentLogits(states []int, logits []float64)
	// SlotLogits writes the slots' log-odds given the latent units, [chains × slots].
	SlotLogits(latents []bool, logits []float64)
}

// ErrUnsupported matches errors of a target that lacks what a sampler needs.
var ErrUnsupported = errors.New("the target does not offer what the sampler needs")

// capability returns the target as interface I, or an error if it lacks methods
// of I. A tempered target has methods that the target below it may lack, so
// capability checks the target below too.
func capability[I Target](target Target, sampler string) (I, error) {
	own, ok := target.(I)
	for t, warm := target.(*tempered); ok && warm; t, warm = target.(*tempered) {
		target = t.target
		_, ok = target.(I)
	}
	if !ok {
		return own, fmt.Errorf("%s needs a target with %s, and %T has none: %w", sampler, offer[I](), target,
			ErrUnsupported)
	}
	return own, nil
}

// offer names the methods that an interface adds to Target, in words.
func offer[I Target]() string {
	switch any((*I)(nil)).(type) {
	case *GradientTarget:
		return "an energy gradient"
	case *StochasticGradientTarget:
		return "a gradient by terms"
	case *ConditionalTarget:
		return "single-slot conditionals"
	case *MaskedConditionalTarget:
		return "conditionals of several open slots"
	case *OrdinalTarget:
		return "categories that are numbers"
	case *RelaxedTarget:
		return "an energy over slots between 0 and 1"
	case *LatentTarget:
		return "latent units"
	}
	return "energies"
}

// RandomPositions draws each chain's slots uniformly from the target's
// categories, with the chain's stream. The result is [chains × slots].
func RandomPositions(target Target, streams []*rand.Rand) []int {
	categories := target.Categories()
	positions := make([]int, 0, len(streams)*len(categories))
	for _, stream := range streams {
		for _, n := range categories {
			positions = append(positions, stream.IntN(n))
		}
	}
	return positions
}

// checkTarget returns an error without slots, or for one without categories.
func checkTarget(target Target) error {
	if target == nil {
		return errors.New("no target: give one")
	}
	categories := target.Categories()
	if len(categories) == 0 {
		return errors.New("the target has no slots: nothing to sample")
	}
	for j, n := range categories {
		if n < 1 {
			return fmt.Errorf("slot %d has %d categories: every slot needs at least one", j, n)
		}
	}
	return nil
}

// checkPositions returns the number of chains of positions, if they are valid.
func checkPositions(categories, positions []int) (chains int, err error) {
	slots := len(categories)
	if len(positions) == 0 || len(positions)%slots != 0 {
		return 0, fmt.Errorf(
			"%d positions do not make whole chains of %d slots: give [chains × slots], at least one chain",
			len(positions), slots)
	}
	for i, v := range positions {
		n := categories[i%slots]
		if v < 0 || v >= n {
			return 0, fmt.Errorf("chain %d starts slot %d at category %d: valid are 0 to %d", i/slots, i%slots, v, n-1)
		}
	}
	return len(positions) / slots, nil
}

// width returns K, the row length of gradients and conditionals.
func width(categories []int) int { return slices.Max(categories) }
