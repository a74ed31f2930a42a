package infill

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"infill/lm"
)

// Joint says what the likelihood of a fill of several slots is made of: a masked
// language model gives the distribution of one slot at a time, and those of several
// belong to no one joint distribution. f is the model's probability over the whole
// vocabulary. For one slot all but JointFilled are the same.
type Joint string

const (
	// JointChain is the chain rule, U = log Π_t f(θ_σ(t) | those before it, the rest
	// masked), in the order σ of Options.Order, or the mean of these probabilities
	// over two orders. Over all fills it sums to one by itself.
	JointChain Joint = "chain"
	// JointPLL is the pseudo-log-likelihood, U = Σ_i log f(θ_i | all others): the
	// energy of the discrete Langevin paper. It counts what two slots tell of each
	// other twice.
	JointPLL Joint = "pll"
	// JointAG is, for two slots, the distribution whose conditionals are closest to
	// the model's (Arnold and Gokhale 1998; Torroba Hennigen and Kim, ACL 2023).
	JointAG Joint = "ag"
	// JointFilled is U = Σ_i log f(θ_i | all, itself among them): the model sees, and
	// mostly copies, what it scores. For comparison only.
	JointFilled Joint = "filled"
)

// Order says in which order the chain rule takes the blanks; the pieces of a blank
// follow each other. Beside the three it is a permutation of the blanks, as in "2,1,3".
type Order string

const (
	OrderBoth        Order = "both" // the mean of the two below
	OrderLeftToRight Order = "l2r"
	OrderRightToLeft Order = "r2l"
)

// numbers are the blanks of a permutation, from 0; nil for the named orders and for
// what is none.
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

// slots are the orders of a plan's slots that the chain rule takes, [orders][slots].
func (o Order) slots(p *plan) ([][]int, error) {
	left := make([]int, len(p.template.Slots))
	for i := range left {
		left[i] = i
	}
	right := slices.Clone(left)
	slices.Reverse(right)
	switch {
	case len(left) == 1:
		return [][]int{left}, nil
	case o == OrderBoth:
		return [][]int{left, right}, nil
	case o == OrderLeftToRight:
		return [][]int{left}, nil
	case o == OrderRightToLeft:
		return [][]int{right}, nil
	}
	numbers := o.numbers()
	if len(numbers) != len(p.template.Blanks) {
		return nil, misfit("order", "it names %d blanks, the template has %d: name each once, as in 2,1,3", len(numbers), len(p.template.Blanks))
	}
	var order []int
	for _, n := range numbers {
		b := p.template.Blanks[n]
		order = append(order, left[b.First:b.First+b.Slots]...)
	}
	return [][]int{order}, nil
}

// energy are the target's options for a joint over the slots of a plan.
func (o *Options) energy(p *plan) (lm.TargetOptions, error) {
	switch o.Joint {
	case JointFilled:
		return lm.TargetOptions{Energy: lm.Filled}, nil
	case JointChain:
		orders, err := o.Order.slots(p)
		if err != nil {
			return lm.TargetOptions{}, err
		}
		var terms []lm.Term
		for part, order := range orders {
			terms = append(terms, lm.ChainRule(order, part)...)
		}
		return lm.TargetOptions{Terms: terms}, nil
	case JointAG:
		if len(p.template.Slots) > 2 {
			return lm.TargetOptions{}, misfit("joint", "ag is for two slots, and the template has %d: take chain", len(p.template.Slots))
		}
		if p.together() != "" {
			return lm.TargetOptions{}, misfit("joint", "ag is for slots that move one by one, not for %s: take chain", p.together())
		}
	}
	return lm.TargetOptions{Energy: lm.PLL}, nil
}

// A Budget bounds what an answer may cost, by rows, by seconds, or by both; the zero Budget is none.
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
		return err == nil && x > 0 && !math.IsInf(x, 1)
	}
	n, err := strconv.Atoi(text)
	*b = Budget{Rows: n}
	return err == nil && n > 0
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
