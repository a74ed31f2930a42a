// A law is a distribution over states, made by the chain rule from conditionals
// of partly filled states, in one order σ of the slots:
//
//	p(θ) = w · Π_t f(θ_σ(t) | θ_σ(1), ..., θ_σ(t-1), the rest open)
//
// w is the law's weight among several. The products sum to one over all states: no
// normaliser is needed. The product over the first slots of the order is an upper
// bound of the product of every state that has these slots. search.go finds and
// proves the likeliest states, and draw.go draws from laws.
//
// For a masked language model, p is the exact likelihood of a state under the
// order σ (see DUEL, arXiv 2603.01367).

package samplers

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Open, in a state, marks a slot that is not filled.
const Open = -1

// A Partial asks for an open slot's conditional, given the filled ones.
type Partial struct {
	State []int // [slots]
	Slot  int
}

// A PartialTarget gives the conditionals of partly filled states.
type PartialTarget interface {
	// PartialConditionals calls take once for each element i of asked, in any
	// order and on the calling goroutine. logp holds
	// log f(θ_Slot = v | the filled slots) for every category v. The
	// probabilities of a slot sum to at most one. Asked again, a conditional is
	// the same in every bit. take must not keep logp after it returns.
	PartialConditionals(ctx context.Context, asked []Partial, take func(i int, logp []float32)) error
}

// A Law is a distribution over states by the chain rule, see the top of law.go.
type Law struct {
	Target PartialTarget
	// Order names every slot once, [slots].
	Order []int
	// LogWeight is log w, the logarithm of the law's weight among several laws.
	LogWeight float64
	// Choices returns the categories, ascending, that an open slot may take
	// given the filled slots of a state: those that still lead to an allowed
	// state. If Choices is nil, a slot may take every category. Choices narrows
	// which states are found and drawn; no state's p depends on it. Search and
	// Draw do not change the slice.
	Choices func(state []int, slot int) []int
}

// AppendKey appends categories, of which some may be [Open], to the key of a
// map. Different lists of one length have different keys.
func AppendKey(key []byte, categories ...int) []byte {
	for _, v := range categories {
		key = binary.AppendUvarint(key, uint64(v-Open))
	}
	return key
}

func (l *Law) slots() int { return len(l.Order) }

// choices returns l.Choices(state, slot), or all categories if l.Choices is nil.
func (l *Law) choices(state []int, slot, categories int) []int {
	if l.Choices == nil {
		return ascending(categories)
	}
	return l.Choices(state, slot)
}

func (l *Law) open() []int { return slices.Repeat([]int{Open}, l.slots()) }

var errNoDistribution = errors.New("the conditional is not a distribution")

func checkLaws(laws []Law) error {
	if len(laws) == 0 {
		return errors.New("no law: give one")
	}
	for _, l := range laws {
		if l.Target == nil || l.slots() == 0 {
			return errors.New("a law needs a target and an order of one slot at least")
		}
		sorted := slices.Sorted(slices.Values(l.Order))
		if !slices.Equal(sorted, ascending(l.slots())) {
			return fmt.Errorf("order %v: name each of the %d slots once", l.Order, l.slots())
		}
		if math.IsNaN(l.LogWeight) || math.IsInf(l.LogWeight, 0) {
			return fmt.Errorf("a law of log weight %v: give a number", l.LogWeight)
		}
	}
	return nil
}

func ascending(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
