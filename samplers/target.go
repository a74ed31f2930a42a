package samplers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// A Target is an unnormalised distribution π(θ) ∝ exp(U(θ)) over slots, each
// with its own number of categories. In the shapes below K is the largest of
// [Target.Categories]; entries past a slot's own categories are never read.
type Target interface {
	// Categories returns the number of categories of each slot, at least 1.
	// The caller must not change it.
	Categories() []int
	// Energy writes U, in nats, of each chain's state. states is
	// [chains × slots], energy is [chains]. -Inf forbids a state.
	Energy(ctx context.Context, states []int, energy []float64) error
}

// A GradientTarget also has the gradient of its energy over one-hot slots.
type GradientTarget interface {
	Target
	// EnergyGradient writes U to energy [chains] and ∂U/∂θ_j[v] to gradient
	// [chains × slots × K]. The gradient may be an estimate: kernels that are
	// Metropolis-adjusted stay exact whatever it is, as long as it is the
	// same function of the state each time.
	EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error
}

// A StochasticGradientTarget has an energy that is a sum of terms, and can
// take the gradient of a few of them only.
type StochasticGradientTarget interface {
	GradientTarget
	// Terms is the number of terms of the energy.
	Terms() int
	// EnergyGradientOf is EnergyGradient with the gradient of only the named
	// terms, scaled by Terms()/len(terms). The energy stays exact.
	EnergyGradientOf(ctx context.Context, terms []int, states []int, energy, gradient []float64) error
}

// A ConditionalTarget offers conditional distributions of single slots. They
// need not be those of exp(U): a masked language model's are not.
type ConditionalTarget interface {
	Target
	// LogConditionals writes log p(θ_j = v | all other slots) to logp
	// [chains × K], normalised over the categories of slot j = slots[chain].
	// It must not depend on the value the slot holds now.
	LogConditionals(ctx context.Context, states []int, slots []int, logp []float64) error
}

// A MaskedConditionalTarget can leave several slots open at once.
type MaskedConditionalTarget interface {
	Target
	// LogMaskedConditionals writes log p(θ_j = v | the slots that are not
	// open), normalised over the categories of slot j, to the rows of logp
	// [chains × slots × K] that belong to open slots; open is [chains ×
	// slots]. It must not depend on the values that open slots hold.
	LogMaskedConditionals(ctx context.Context, states []int, open []bool, logp []float64) error
}

// errUnsupported marks what a target cannot do, so that a caller can tell a
// wrong combination from a failed evaluation.
var errUnsupported = errors.New("the target does not offer what the sampler needs")

// ErrUnsupported is matched (errors.Is) by the errors of [New] and of the
// constructors when the target lacks an interface that the kernel needs.
var ErrUnsupported = errUnsupported

// A layered target stands over another one and has all optional methods; it
// supports an interface only when what lies below supports it.
type layered interface {
	Target
	below() Target
}

// capability finds interface I in the target. A layered target implements
// every method, so each target below it is asked too.
func capability[I Target](target Target, kernel, need string) (I, error) {
	var none I
	for t := target; ; {
		if _, ok := t.(I); !ok {
			return none, fmt.Errorf("%s needs a target with %s, and %T has none: %w", kernel, need, t, errUnsupported)
		}
		l, ok := t.(layered)
		if !ok {
			return target.(I), nil
		}
		t = l.below()
	}
}

func gradientTarget(target Target, kernel string) (GradientTarget, error) {
	return capability[GradientTarget](target, kernel, "an energy gradient")
}

func stochasticGradientTarget(target Target, kernel string) (StochasticGradientTarget, error) {
	return capability[StochasticGradientTarget](target, kernel, "a gradient by terms")
}

func conditionalTarget(target Target, kernel string) (ConditionalTarget, error) {
	return capability[ConditionalTarget](target, kernel, "single-slot conditionals")
}

func maskedConditionalTarget(target Target, kernel string) (MaskedConditionalTarget, error) {
	return capability[MaskedConditionalTarget](target, kernel, "conditionals of several open slots")
}

// RandomPositions draws each chain's slots uniformly from the target's
// categories, with that chain's stream. The result is [chains × slots].
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

// checkTarget refuses a target without slots or with an empty slot.
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

// checkPositions returns the number of chains in positions.
func checkPositions(categories, positions []int) (chains int, err error) {
	slots := len(categories)
	if len(positions) == 0 || len(positions)%slots != 0 {
		return 0, fmt.Errorf("%d positions do not make whole chains of %d slots: give [chains × slots], at least one chain", len(positions), slots)
	}
	for i, v := range positions {
		if n := categories[i%slots]; v < 0 || v >= n {
			return 0, fmt.Errorf("chain %d starts slot %d at category %d: valid are 0 to %d", i/slots, i%slots, v, n-1)
		}
	}
	return len(positions) / slots, nil
}

// width is K, the row length of gradients and conditionals.
func width(categories []int) int { return slices.Max(categories) }
