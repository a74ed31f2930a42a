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
// g(exp Δ) (Zanella, JASA 2020). The names sqrt (√t, the papers' choice and the
// zero value), ratio (t/(1+t)), min (min(1, t)) and max (max(1, t)) satisfy
// g(t) = t·g(1/t), that is, are locally balanced. A power t^β goes from locally
// balanced, β = ½, to globally balanced, β = 1. For large vocabularies a power
// near 1 is better: with ½, improbable categories dominate.
type Balance struct {
	rule balanceRule
	beta float64 // the exponent of the power rule; 0 means ½
}

// A balanceRule is an index into BalanceNames.
type balanceRule int

const (
	powerRule balanceRule = iota
	ratioRule
	minRule
	maxRule
)

// BalanceNames lists the names that Balance.Set reads. Set also reads numbers.
func BalanceNames() []string { return []string{"sqrt", "ratio", "min", "max"} }

// Set reads a name of [BalanceNames] or a power from 0.5 to 1. The text of its
// error completes `"x" is not ...`.
func (b *Balance) Set(text string) error {
	i := slices.Index(BalanceNames(), text)
	if i >= 0 {
		*b = Balance{rule: balanceRule(i)}
		return nil
	}
	beta, err := strconv.ParseFloat(text, 64)
	if err != nil || !(beta >= 0.5 && beta <= 1) {
		return errors.New("one of " + strings.Join(BalanceNames(), ", ") + ", or a number from 0.5 to 1")
	}
	*b = power(beta)
	return nil
}

// power returns the balance g(t) = t^beta for beta in [½, 1].
func power(beta float64) Balance {
	if beta == 0.5 {
		return Balance{}
	}
	return Balance{beta: beta}
}

// String returns the text that [Balance.Set] reads.
func (b Balance) String() string {
	if b.beta != 0 {
		return strconv.FormatFloat(b.beta, 'g', -1, 64)
	}
	return BalanceNames()[b.rule]
}

// exponent returns β of a balance by the power rule.
func (b Balance) exponent() float64 {
	if b.beta == 0 {
		return 0.5
	}
	return b.beta
}

// logWeight returns log g(exp delta) for an energy difference delta in nats.
func (b Balance) logWeight(delta float64) float64 {
	switch b.rule {
	case ratioRule:
		return -logmath.Softplus(-delta)
	case minRule:
		return math.Min(delta, 0)
	case maxRule:
		return math.Max(delta, 0)
	}
	return b.exponent() * delta
}
