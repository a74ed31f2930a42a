package samplers

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// settings are the settings of one sampler. Their fields hold the defaults
// until register's flags set other values.
type settings interface {
	// register defines a flag for each setting.
	register(f *flag.FlagSet)
	// mover makes the sampler. name is the sampler's name, for errors.
	mover(name string, target Target, shared *rand.Rand) (mover, error)
}

// noSettings makes the mover of a sampler without settings.
type noSettings func(target Target) (mover, error)

func (noSettings) register(*flag.FlagSet) {}

func (s noSettings) mover(_ string, target Target, _ *rand.Rand) (mover, error) { return s(target) }

// These are help texts of settings that several samplers have.
const (
	alphaHelp          = "α: changing a slot costs 1/α nats"
	preconditionerHelp = "g, a factor of the step size for each slot: 0.5/2/1"
	termsHelp          = "size of the random subset of the energy's terms that a step takes the gradient of; all of " +
		"them when not given"
)

func balanceHelp() string {
	return "what an energy difference weighs in a proposal: " + strings.Join(BalanceNames(), ", ") +
		", or a power from 0.5 to 1"
}

// positive is a number above 0, or +Inf.
type positive float64

func (v *positive) Set(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x > 0) {
		return errors.New("a number above 0")
	}
	*v = positive(x)
	return nil
}

func (v *positive) String() string { return fmt.Sprint(float64(*v)) }

// count is a whole number of at least 1, or 0 while it is not set.
type count int

func (v *count) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return errors.New("a whole number of 1 or more")
	}
	*v = count(n)
	return nil
}

func (v *count) String() string {
	if *v == 0 {
		return ""
	}
	return strconv.Itoa(int(*v))
}

// slotCount is a number of slots. If it is not set, it is byDefault, but never
// more than all slots.
type slotCount struct{ count, byDefault count }

func (v *slotCount) Set(text string) error { return v.count.Set(text) }

func (v *slotCount) String() string {
	if v.count == 0 {
		return v.byDefault.String()
	}
	return v.count.String()
}

// of returns the number of slots to use, given the number of slots of the
// target. name is for the error.
func (v *slotCount) of(name string, slots int) (int, error) {
	if v.count == 0 {
		return min(int(v.byDefault), slots), nil
	}
	if int(v.count) > slots {
		return 0, fmt.Errorf("%s %d: choose from 1 to the number of slots, %d", name, v.count, slots)
	}
	return int(v.count), nil
}

// factors are the preconditioner g of each slot; nil means that all are 1.
type factors []float64

func (v *factors) Set(text string) error {
	var list []float64
	for word := range strings.SplitSeq(text, "/") {
		g, err := strconv.ParseFloat(word, 64)
		if err != nil || !(g > 0) || math.IsInf(g, 1) {
			return errors.New("finite numbers above 0 with slashes between them")
		}
		list = append(list, g)
	}
	*v = list
	return nil
}

func (v *factors) String() string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint([]float64(*v)), "[]"), " ", "/")
}

// of returns the factor g of each slot, [slots]. It returns an error if v has
// another number of factors.
func (v factors) of(slots int) ([]float64, error) {
	if v == nil {
		return slices.Repeat([]float64{1}, slots), nil
	}
	if len(v) != slots {
		return nil, fmt.Errorf("%d preconditioner values for %d slots: give one per slot", len(v), slots)
	}
	return v, nil
}
