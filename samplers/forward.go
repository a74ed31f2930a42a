// Independent draws from laws by the chain rule (law.go), slot after slot:
//
//	θ_σ(t) ~ f(· | θ_σ(1), ..., θ_σ(t-1), the rest open)
//
// in an order σ taken at random. Where a law allows only some states, each slot is drawn among the categories that its
// support has, and w, the product of what these hold of each conditional, is the importance weight: the mean of w is
// what the allowed states hold of the law, and a draw that is kept with the probability w ≤ 1 is an exact draw from the
// law given that its state is allowed (von Neumann 1951). There is no step size.

package samplers

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// A Drawn is a state with the logarithm of its importance weight.
type Drawn struct {
	State     []int
	LogWeight float64 // -Inf for a state that is not allowed
}

// Draw makes a draw for each stream in one order of the law, by its number.
func (l *Law) Draw(ctx context.Context, order int, streams []*rand.Rand) ([]Drawn, error) {
	draws := make([]Drawn, len(streams))
	for i := range draws {
		draws[i].State = slices.Repeat([]int{Open}, l.slots())
	}
	var failed error
	var key []byte
	for _, slot := range l.Orders[order] {
		var asked []Partial
		var of [][]int // the draws that agree so far share a conditional
		groups := map[string]int{}
		for i := range draws {
			if math.IsInf(draws[i].LogWeight, -1) {
				continue
			}
			key = appendState(key[:0], draws[i].State)
			g, ok := groups[string(key)]
			if !ok {
				g = len(asked)
				groups[string(key)] = g
				asked, of = append(asked, Partial{draws[i].State, slot}), append(of, nil)
			}
			of[g] = append(of[g], i)
		}
		chosen := make([]int, len(draws))
		err := l.Target.PartialConditionals(ctx, asked, func(g int, logp []float32) {
			support := l.support(asked[g].State, slot, len(logp))
			cumulative, sum := make([]float64, len(support)), 0.0
			for k, v := range support {
				sum += math.Exp(float64(logp[v]))
				cumulative[k] = sum
			}
			if math.IsNaN(sum) || sum > 1+1e-3 {
				failed = fmt.Errorf("slot %d: %w", slot, errNoDistribution)
				return
			}
			for _, i := range of[g] {
				draws[i].LogWeight += math.Log(min(sum, 1))
				if sum > 0 {
					chosen[i] = support[DrawCumulative(cumulative, streams[i])]
				}
			}
		})
		if err := cmp.Or(err, failed); err != nil {
			return nil, err
		}
		for i := range draws {
			if !math.IsInf(draws[i].LogWeight, -1) {
				draws[i].State[slot] = chosen[i]
			}
		}
	}
	for i := range draws {
		if l.Allows != nil && !math.IsInf(draws[i].LogWeight, -1) && !l.Allows(draws[i].State) {
			draws[i].LogWeight = math.Inf(-1)
		}
	}
	return draws, nil
}

// LogProbability returns log p of whole states, log w included, [states].
func (l *Law) LogProbability(ctx context.Context, states [][]int) ([]float64, error) {
	logp := make([]float64, len(states))
	products := make([]float64, len(states)*len(l.Orders)) // [states × orders]
	var asked []Partial
	var of []int
	for i, state := range states {
		for o, order := range l.Orders {
			partial := slices.Repeat([]int{Open}, len(state))
			for _, slot := range order {
				asked, of = append(asked, Partial{slices.Clone(partial), slot}), append(of, i*len(l.Orders)+o)
				partial[slot] = state[slot]
			}
		}
	}
	err := l.Target.PartialConditionals(ctx, asked, func(i int, row []float32) {
		products[of[i]] += float64(row[states[of[i]/len(l.Orders)][asked[i].Slot]])
	})
	for i := range logp {
		logp[i] = l.LogWeight + logMean(products[i*len(l.Orders):(i+1)*len(l.Orders)])
	}
	return logp, err
}

// A Share is an estimate of the total probability of some states, with its relative standard error.
type Share struct {
	Log   float64
	Error float64
	Draws int
}

const (
	mostAtOnce  = 1024 // draws in a batch of EstimateShare, about
	leastOfEach = 8    // of them, of each order of each law: fewer tell no error
)

// EstimateShare estimates the total probability of the states that the laws allow, by draws of every order of every
// law. It draws in batches until the relative standard error is at most wanted, or more(draws so far) returns false.
func EstimateShare(ctx context.Context, laws []Law, wanted float64, streams []*rand.Rand,
	more func(draws int) bool) (Share, error) {
	if err := checkLaws(laws); err != nil {
		return Share{}, err
	}
	if len(streams) < 2 {
		return Share{}, fmt.Errorf("%d random streams: give two at least", len(streams))
	}
	type stratum struct {
		law, order   int
		weight       float64
		n            float64
		sum, squares float64
	}
	var strata []stratum
	for i, l := range laws {
		for o := range l.Orders {
			strata = append(strata, stratum{law: i, order: o, weight: math.Exp(l.LogWeight) / float64(len(l.Orders))})
		}
	}
	// Of many orders and laws each has fewer draws in a batch, for a batch has to be affordable.
	streams = streams[:min(len(streams), max(mostAtOnce/len(strata), leastOfEach))]
	for {
		share, variance, draws := 0.0, 0.0, 0
		for i := range strata {
			s := &strata[i]
			drawn, err := laws[s.law].Draw(ctx, s.order, streams)
			if err != nil {
				return Share{}, err
			}
			for _, d := range drawn {
				w := math.Exp(d.LogWeight)
				s.n, s.sum, s.squares = s.n+1, s.sum+w, s.squares+w*w
			}
			share += s.weight * s.sum / s.n
			variance += s.weight * s.weight * max(0, s.squares-s.sum*s.sum/s.n) / (s.n * (s.n - 1))
			draws += int(s.n)
		}
		e := math.Inf(1)
		if share > 0 {
			e = math.Sqrt(variance) / share
		}
		if e <= wanted || !more(draws) {
			return Share{math.Log(share), e, draws}, nil
		}
	}
}
