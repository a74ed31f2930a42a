package samplers

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

const (
	// closestRounds bounds the steps to the closest joint; those of a model take some ten.
	closestRounds = 100
	// ClosestEnough is the change that [ClosestJoint] stops at.
	ClosestEnough = 1e-9
)

// ClosestJoint is the distribution of two slots whose conditionals are closest to the
// target's, which need not belong to any (Arnold and Gokhale 1998). It is the fixed point
//
//	J = norm[(p(a|b) + p(b|a)) / (1/J(a) + 1/J(b))]
//
// of Torroba Hennigen and Kim (ACL 2023), whose iteration takes tens of thousands of rounds where the marginals differ
// widely. With s = p(a|b) + p(b|a), x = log J(a) and y = log J(b) it is where the concave
//
//	Σ_a x_a Σ_b p(a|b) + Σ_b y_b Σ_a p(b|a) - Σ_ab s_ab log(exp x_a + exp y_b)
//
// is largest, the likelihood of Bradley and Terry's model of paired comparisons, to which
// Newton's method comes in a few steps.
//
// logJ is [first categories × second categories], row-major, in nats; change is the largest relative change of a
// marginal in the last step. It is above ClosestEnough if the steps did not converge, for example because
// conditionals are exactly zero. Each conditional is computed once.
func ClosestJoint(ctx context.Context, target ConditionalTarget) (logJ []float64, change float64, err error) {
	categories := target.Categories()
	if len(categories) != 2 {
		return nil, 0, fmt.Errorf("the closest joint is of two slots, and the target has %d", len(categories))
	}
	rows, columns, width := categories[0], categories[1], slices.Max(categories)
	c := newClosest(rows, columns)
	for slot, others := range []int{columns, rows} {
		states, logp := make([]int, 2*others), make([]float64, others*width)
		for k := range others {
			states[2*k+1-slot] = k
		}
		if err := target.LogConditionals(ctx, states, slices.Repeat([]int{slot}, others), logp); err != nil {
			return nil, 0, err
		}
		for k := range others {
			for v := range categories[slot] {
				state := [2]int{k, k}
				state[slot] = v
				p := math.Exp(logp[k*width+v])
				c.sum[state[0]*columns+state[1]] += p
				c.wins[slot*rows+v] += p
			}
		}
	}
	for range closestRounds {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		if change = c.step(); change <= ClosestEnough {
			break
		}
	}
	return c.logJ(), change, nil
}

// closest is on its way to a joint of rows + columns marginals, the rows first.
type closest struct {
	rows, columns int
	sum           []float64 // s, [rows × columns]
	wins          []float64 // what the other slot gives each category, [marginals]
	log           []float64 // x and y, [marginals]
	gradient      []float64
	weights       []float64 // minus the second derivatives between different marginals, [marginals × marginals]
}

func newClosest(rows, columns int) *closest {
	n := rows + columns
	return &closest{rows: rows, columns: columns, sum: make([]float64, rows*columns), wins: make([]float64, n),
		log:      make([]float64, n),
		gradient: make([]float64, n), weights: make([]float64, n*n)}
}

// differentiate finds the gradient at what the marginals are, and the second derivatives.
func (c *closest) differentiate(log []float64) {
	n := len(log)
	// A category's gradient is wins - Σ s p = Σ s (1 - p) - 1, p being its share of the pair:
	// a small result needs small numbers.
	for k, w := range c.wins {
		if c.gradient[k] = w; w >= 1 {
			c.gradient[k] = -1
		}
	}
	for i := range c.rows {
		for j := range c.columns {
			s, column := c.sum[i*c.columns+j], c.rows+j
			row, other := s/(1+math.Exp(log[column]-log[i])), s/(1+math.Exp(log[i]-log[column]))
			c.pull(i, row, other)
			c.pull(column, other, row)
			w := 0.0
			if s > 0 {
				w = row / s * other
			}
			c.weights[i*n+column], c.weights[column*n+i] = w, w
		}
	}
}

// pull adds a pair of categories to the gradient of one of them, which has own of it.
func (c *closest) pull(k int, own, other float64) {
	if c.wins[k] >= 1 {
		c.gradient[k] += other
	} else {
		c.gradient[k] -= own
	}
}

// step makes one step of Newton's method, as long as it does not go past the top, and tells
// the largest relative change.
func (c *closest) step() float64 {
	const (
		longest = 10   // nats
		past    = -0.1 // the slope at the end of a step by that at its start
	)
	c.differentiate(c.log)
	slopes := slices.Clone(c.gradient)
	direction := c.solve()
	slope := floats.Dot(slopes, direction)
	highest, to := floats.Norm(direction, math.Inf(1)), make([]float64, len(c.log))
	for length := min(1, longest/highest); length > 1e-12; length /= 2 {
		floats.AddScaledTo(to, c.log, length, direction)
		if c.differentiate(to); floats.Dot(c.gradient, direction) >= past*slope || length*highest <= ClosestEnough {
			c.log = to
			return length * highest
		}
	}
	return math.Inf(1)
}

// solve is Newton's direction: the solution of Σ_l w_kl (d_k - d_l) = gradient_k, by Gaussian elimination. A diagonal
// is the sum of what is beside it and never a difference, so that weights of any size keep all their digits (Grassmann,
// Taksar and Heyman, Operations Research 1985). The last marginal stays where it is. The weights are used up.
func (c *closest) solve() []float64 {
	n, w, g := len(c.log), c.weights, c.gradient
	// Categories of one slot share no weight, until the elimination joins those of the second.
	for j := c.rows; j < n; j++ {
		clear(w[j*n+c.rows : (j+1)*n])
	}
	d, diagonal := make([]float64, n), make([]float64, n)
	for k := range n - 1 {
		first := max(k+1, c.rows)
		row := w[k*n+first : (k+1)*n]
		if diagonal[k] = floats.Sum(row); diagonal[k] == 0 {
			continue // nothing holds it
		}
		for l, x := range row {
			share, l := x/diagonal[k], first+l
			floats.AddScaled(w[l*n+first:(l+1)*n], share, row)
			g[l] += share * g[k]
		}
	}
	for k := n - 2; k >= 0; k-- {
		if first := max(k+1, c.rows); diagonal[k] > 0 {
			d[k] = (g[k] + floats.Dot(w[k*n+first:(k+1)*n], d[first:])) / diagonal[k]
		}
	}
	return d
}

// logJ is the logarithm of the joint of the marginals.
func (c *closest) logJ() []float64 {
	logJ := make([]float64, len(c.sum))
	for i := range c.rows {
		for j := range c.columns {
			// s / (1/a + 1/b), in logarithms.
			x, y := c.log[i], c.log[c.rows+j]
			at := i*c.columns + j
			logJ[at] = math.Log(c.sum[at]) + min(x, y) - math.Log1p(math.Exp(-math.Abs(x-y)))
		}
	}
	floats.AddConst(-floats.LogSumExp(logJ), logJ)
	return logJ
}
