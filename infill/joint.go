package infill

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Joint names a joint distribution of several slots. A masked language model gives the distribution of one slot
// at a time, and several of these belong to no single joint distribution: so one must be chosen. f is the
// model's probability over the whole vocabulary. For one slot, all except JointFilled are the same.
//
// "ag" is, for two slots, the distribution whose conditionals are closest to the model's (Arnold and Gokhale 1998;
// Torroba Hennigen and Kim, ACL 2023). The others have names here.
type Joint string

const (
	// JointChain is the chain rule, U = log Π_t f(θ_σ(t) | those before it, the rest
	// masked), in the order σ of Options.Order, or the mean of these probabilities
	// over two orders. Over all fills it sums to one by itself.
	JointChain Joint = "chain"
	// JointPLL is the pseudo-log-likelihood, U = Σ_i log f(θ_i | all others): the
	// energy of the discrete Langevin paper. It counts twice what two slots say of each other.
	JointPLL Joint = "pll"
	jointAG  Joint = "ag"
	// JointFilled is U = Σ_i log f(θ_i | all slots, θ_i included): the model sees, and mostly copies, what it
	// scores. For comparison only.
	JointFilled Joint = "filled"
)

// Order is the order in which the chain rule takes the blanks; the pieces of a blank follow each other. It is "l2r"
// (left to right), "r2l", "both" (the mean of the two), or a permutation of the blanks such as "2,1,3".
type Order string

const (
	orderBoth        Order = "both"
	orderLeftToRight Order = "l2r"
	orderRightToLeft Order = "r2l"
)

// numbers are the blanks of a permutation, from 0; nil for the named orders and for
// other texts.
func (o Order) numbers() []int {
	var list []int
	for text := range strings.SplitSeq(string(o), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return nil
		}
		list = append(list, n-1)
	}
	for i, n := range slices.Sorted(slices.Values(list)) {
		if i != n {
			return nil
		}
	}
	return list
}

// valid reports whether it is one of the three, or a permutation.
func (o Order) valid() bool {
	return o == orderBoth || o == orderLeftToRight || o == orderRightToLeft || o.numbers() != nil
}

// A Budget bounds what an answer may cost, by rows, by seconds, or by both; the zero Budget has no bound.
type Budget struct {
	Rows    int     // of the model; a draw counts as one at least
	Seconds float64 // since the start of the fill
}

// String is what the option budget reads.
func (b Budget) String() string {
	if b.Seconds > 0 {
		return fmt.Sprintf("%gs", b.Seconds)
	}
	return strconv.Itoa(b.Rows)
}

// set reads a number of rows, or seconds.
func (b *Budget) set(text string) bool {
	if seconds, timed := strings.CutSuffix(text, "s"); timed {
		x, err := strconv.ParseFloat(seconds, 64)
		*b = Budget{Seconds: x}
		return err == nil && b.bounds()
	}
	n, err := strconv.Atoi(text)
	*b = Budget{Rows: n}
	return err == nil && b.bounds()
}

// bounds reports whether it is a bound.
func (b Budget) bounds() bool {
	return b.Seconds > 0 && !math.IsInf(b.Seconds, 1) || b.Seconds == 0 && b.Rows > 0
}

// share is what of the budget is used up.
func (b Budget) share(rows int64, began time.Time) float64 {
	if b.Seconds > 0 {
		return min(1, time.Since(began).Seconds()/b.Seconds)
	}
	return min(1, float64(rows)/float64(b.Rows))
}

// text is for people.
func (b Budget) text() string {
	if b.Seconds > 0 {
		return b.String()
	}
	return b.String() + " model rows"
}
