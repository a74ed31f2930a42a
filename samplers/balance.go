package samplers

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Balance turns the estimated energy difference Δ of a move into the
// move's weight in a proposal: g(exp Δ) for a balancing function g (Zanella,
// JASA 2020). sqrt, ratio, min and max satisfy g(t) = t·g(1/t), which makes a
// proposal locally balanced. A power between ½ and 1 leans from the locally
// balanced (½ = sqrt) to the globally balanced (1), which serves large
// vocabularies better: with ½ the tail of improbable categories dominates.
// The zero value is sqrt.
type Balance struct {
	rule balanceRule
	beta float64 // of the power rule; 0 stands for ½
}

type balanceRule uint8

const (
	powerRule balanceRule = iota
	ratioRule
	minRule
	maxRule
)

// Sqrt is g(t) = √t, the choice of the papers.
func Sqrt() Balance { return Balance{} }

// Ratio is Barker's g(t) = t/(1+t).
func Ratio() Balance { return Balance{rule: ratioRule} }

// Min is g(t) = min(1, t).
func Min() Balance { return Balance{rule: minRule} }

// Max is g(t) = max(1, t).
func Max() Balance { return Balance{rule: maxRule} }

// Power is g(t) = t^beta, beta in [½, 1].
func Power(beta float64) (Balance, error) {
	if !(beta >= 0.5 && beta <= 1) {
		return Balance{}, fmt.Errorf("balance exponent %v: it must be from 0.5 to 1", beta)
	}
	if beta == 0.5 {
		return Sqrt(), nil
	}
	return Balance{beta: beta}, nil
}

// BalanceNames lists what [ParseBalance] takes besides a number.
func BalanceNames() []string { return []string{"sqrt", "ratio", "min", "max"} }

// ParseBalance reads a name of [BalanceNames] or a number from 0.5 to 1.
func ParseBalance(text string) (Balance, error) {
	switch text {
	case "sqrt":
		return Sqrt(), nil
	case "ratio":
		return Ratio(), nil
	case "min":
		return Min(), nil
	case "max":
		return Max(), nil
	}
	beta, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Balance{}, fmt.Errorf("balance %q: valid are %s, or a number from 0.5 to 1", text, strings.Join(BalanceNames(), ", "))
	}
	return Power(beta)
}

// String is what [ParseBalance] reads.
func (b Balance) String() string {
	switch b.rule {
	case ratioRule:
		return "ratio"
	case minRule:
		return "min"
	case maxRule:
		return "max"
	}
	if b.beta == 0 {
		return "sqrt"
	}
	return strconv.FormatFloat(b.beta, 'g', -1, 64)
}

// exponent is β of the power rule.
func (b Balance) exponent() float64 {
	if b.beta == 0 {
		return 0.5
	}
	return b.beta
}

// LogWeight returns log g(exp delta), delta in nats.
func (b Balance) LogWeight(delta float64) float64 {
	switch b.rule {
	case ratioRule:
		return -softplus(-delta)
	case minRule:
		return math.Min(delta, 0)
	case maxRule:
		return math.Max(delta, 0)
	}
	return b.exponent() * delta
}
