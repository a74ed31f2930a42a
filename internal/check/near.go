package check

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A model computes in single precision, and each kind of processor has kernels
// of its own, which add in another order. log p of one token differed by 3e-5
// nats at most, over 4,035 tokens of whole texts, between onnxruntime on Intel
// with AVX-512, on AMD with AVX2, and torch. What is compared with a stored
// value has three times that room, for each token that it sums.
const perToken = 1e-4 // nats

// perTokenHere is the room between two ways to the same number in one process,
// which may sum in another order: 3e-6 nats were seen.
const perTokenHere = 1e-5 // nats

// perDerivative is the room of a derivative of an energy, of its size: a
// gradient passes through all layers twice.
const perDerivative = 1e-3

// Nats compares a sum of log-probabilities of so many tokens, or an energy of
// so many slots, with one of another processor, program or precision.
func Nats(t testing.TB, what string, got, want float64, tokens int) {
	t.Helper()
	if !(math.Abs(got-want) <= perToken*float64(tokens)) {
		t.Errorf("%s: %.9g nats, want %.9g ± %.1g", what, got, want, perToken*float64(tokens))
	}
}

// SameNats reports whether two ways to a sum of log-probabilities of so many
// tokens, in this process, lead to the same number.
func SameNats(a, b float64, tokens int) bool { return math.Abs(a-b) <= perTokenHere*float64(tokens) }

// Derivative compares a derivative with one of another processor or program.
func Derivative(t testing.TB, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= perDerivative*max(1, math.Abs(want))) {
		t.Errorf("%s: derivative %.7g, want %.7g", what, got, want)
	}
}

var number = regexp.MustCompile(`-?[0-9]+(\.[0-9]+)+(e[-+]?[0-9]+)?`)

// SameNumbers reports whether two texts are equal, but for numbers with a
// decimal point: these may differ by one in the last digit that want has, or
// as much as the log-probability of one token may.
func SameNumbers(want, got string) bool {
	if number.ReplaceAllString(want, "N") != number.ReplaceAllString(got, "N") {
		return false
	}
	others := number.FindAllString(got, -1)
	for i, text := range number.FindAllString(want, -1) {
		if text != others[i] && !sameNumber(text, others[i]) {
			return false
		}
	}
	return true
}

func sameNumber(want, got string) bool {
	a, err := strconv.ParseFloat(want, 64)
	if err != nil { // a version, such as 1.2.3
		return false
	}
	b, err := strconv.ParseFloat(got, 64)
	if err != nil {
		return false
	}
	mantissa, exponent, _ := strings.Cut(want, "e")
	_, decimals, _ := strings.Cut(mantissa, ".")
	power, _ := strconv.Atoi(exponent)
	last := math.Pow10(power - len(decimals))
	return math.Abs(a-b) <= 1.001*last+perToken*math.Abs(a)
}
