package samplers

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"infill/internal/logmath"
)

// A Balance weighs a move of estimated energy difference Δ in a proposal by
// g(exp Δ) (Zanella, JASA 2020). The square root (√t, the papers' choice), the ratio
// (t/(1+t)), the minimum (min(1, t)) and the maximum (max(1, t)) satisfy g(t) = t·g(1/t), that
// is, are locally balanced. A power t^β goes from locally balanced, β = ½, to
// globally balanced, β = 1. For large vocabularies a power near 1 is better: with
// ½, improbable categories dominate. The zero value says nothing: it is the
// sampler's own, the square root.
type Balance string

const (
	SqrtBalance  Balance = "sqrt"
	RatioBalance Balance = "ratio"
	MinBalance   Balance = "min"
	MaxBalance   Balance = "max"
)

const auto = "auto"

// PowerBalance returns the balance g(t) = t^beta, for beta from ½ to 1.
func PowerBalance(beta float64) Balance { return Balance(strconv.FormatFloat(beta, 'g', -1, 64)) }

// UnmarshalText reads a name or a power from 0.5 to 1. The text of its error
// completes `"x" is not ...`.
func (b *Balance) UnmarshalText(text []byte) error {
	if string(text) == auto {
		*b = ""
		return nil
	}
	err := Balance(text).Check()
	if err == nil {
		*b = Balance(text)
	}
	return err
}

// MarshalText writes the text that UnmarshalText reads.
func (b Balance) MarshalText() ([]byte, error) {
	if b == "" {
		return []byte(auto), nil
	}
	return []byte(b), nil
}

// Check returns what is wrong with a balance. The text of its error completes
// `"x" is not ...`.
func (b Balance) Check() error {
	_, err := b.weighing()
	return err
}

// Values lists the texts of balances, apart from powers.
func (Balance) Values() []string { return append([]string{auto}, balances()...) }

// balances lists the names, in the order of the rules.
func balances() []string {
	return []string{string(SqrtBalance), string(RatioBalance), string(MinBalance), string(MaxBalance)}
}

// weighing is a balance as kernels compute with it.
type weighing struct {
	rule rule
	beta float64 // the exponent of a power
}

type rule uint8

const (
	powerRule rule = iota
	ratioRule
	minRule
	maxRule
)

func (b Balance) weighing() (weighing, error) {
	at := slices.Index(balances(), string(b))
	if b == "" || at == 0 {
		return power(0.5), nil
	}
	if at > 0 {
		return weighing{rule: rule(at)}, nil
	}
	beta, err := strconv.ParseFloat(string(b), 64)
	if err != nil || !(beta >= 0.5 && beta <= 1) {
		return weighing{}, errors.New("one of auto, " + strings.Join(balances(), ", ") + ", or a number from 0.5 to 1")
	}
	return power(beta), nil
}

// must returns the weighing of a balance that is checked.
func (b Balance) must() weighing {
	w, err := b.weighing()
	if err != nil {
		panic(err) // settled checks all settings
	}
	return w
}

func power(beta float64) weighing { return weighing{powerRule, beta} }

// logWeight returns log g(exp delta) for an energy difference delta in nats.
func (w weighing) logWeight(delta float64) float64 {
	switch w.rule {
	case ratioRule:
		return -logmath.Softplus(-delta)
	case minRule:
		return math.Min(delta, 0)
	case maxRule:
		return math.Max(delta, 0)
	}
	return w.beta * delta
}
