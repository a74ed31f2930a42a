package samplers

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// ClosestJoint is the distribution of two slots whose conditionals are closest to the
// target's, which need not belong to any (Arnold and Gokhale 1998), by the fixed-point
// iteration of Torroba Hennigen and Kim (ACL 2023),
//
//	J ← norm[(p(a|b) + p(b|a)) / (1/J(a) + 1/J(b))]
//
// from the uniform one. logJ is [first categories × second categories], row-major, in
// nats; change is how much J still changed in the last round, summed over the states.
// Each conditional is asked for once.
func ClosestJoint(ctx context.Context, target ConditionalTarget) (logJ []float64, change float64, err error) {
	categories := target.Categories()
	if len(categories) != 2 {
		return nil, 0, fmt.Errorf("the closest joint is of two slots, and the target has %d", len(categories))
	}
	rows, columns, width := categories[0], categories[1], slices.Max(categories)
	sum := make([]float64, rows*columns) // p(a|b) + p(b|a)
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
				sum[state[0]*columns+state[1]] += math.Exp(logp[k*width+v])
			}
		}
	}
	const rounds, enough = 1000, 1e-9
	a, b := slices.Repeat([]float64{1 / float64(rows)}, rows), slices.Repeat([]float64{1 / float64(columns)}, columns)
	joint, last := make([]float64, len(sum)), make([]float64, len(sum))
	for range rounds {
		joint, last = last, joint
		total := 0.0
		for i := range rows {
			for j, s := range sum[i*columns : (i+1)*columns] {
				x := s * a[i] * b[j] / (a[i] + b[j]) // s / (1/a + 1/b)
				joint[i*columns+j] = x
				total += x
			}
		}
		clear(a)
		clear(b)
		change = 0
		for i := range rows {
			for j := range columns {
				x := joint[i*columns+j] / total
				change += math.Abs(x - last[i*columns+j])
				joint[i*columns+j] = x
				a[i] += x
				b[j] += x
			}
		}
		if change < enough {
			break
		}
	}
	for i, x := range joint {
		joint[i] = math.Log(x)
	}
	return joint, change, nil
}
