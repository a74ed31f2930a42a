// This file makes independent draws from laws by the chain rule (law.go), one slot after the other:
//
//	θ_σ(t) ~ f(· | θ_σ(1), ..., θ_σ(t-1), the rest open)
//
// in a random order σ. If a draw holds a category outside the law's choices, or if the law does not allow its state,
// it is rejected and made again. By this rejection sampling (von Neumann 1951), each result is an exact draw from the
// laws given that its state is allowed. For every order, the conditional of its first slot is known before any draw. So
// law, order and the first slot's category are drawn together, from allowed choices alone. There is no step size.

package samplers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// A Drawn is the result of one draw.
type Drawn struct {
	Law   int   // index in laws
	State []int // nil if room returned 0 before the draw was finished
}

// errNoMass is returned if no draw is possible.
var errNoMass = errors.New("the laws allow no state of positive probability")

// A draw is a draw in progress. Its state has the first depth slots of its order filled.
type draw struct {
	beginning
	depth int
	state []int
}

// A beginning is an order of a law, with the choices of the order's first slot.
type beginning struct {
	law, order int
	choices    []int
	cumulative []float64 // cumulative probabilities of choices
}

// Draw makes an independent draw for each stream, from the laws by their weights. A draw needs a conditional for each
// slot after the first. Rejected draws need conditionals too. room, if not nil, gets the number of conditionals so far,
// plus one for each rejection, and returns how many more Draw may ask for. If room returns 0, Draw ends. Draw returns
// one Drawn for each stream, in order.
func Draw(ctx context.Context, laws []Law, streams []*rand.Rand, room func(spent int) int) ([]Drawn, error) {
	if err := checkLaws(laws); err != nil {
		return nil, err
	}
	drawn := make([]Drawn, len(streams))
	starts, weights, err := beginnings(ctx, laws)
	if err != nil {
		return nil, err
	}
	draws := make([]draw, len(streams))
	pending := ascending(len(streams))
	for _, i := range pending {
		draws[i] = begin(laws, starts, weights, streams[i])
	}
	spent := 0
	again := func(i int) {
		spent++
		draws[i] = begin(laws, starts, weights, streams[i])
	}
	for {
		left := pending[:0]
		for _, i := range pending {
			d := &draws[i]
			if d.depth < len(d.state) {
				left = append(left, i)
			} else if law := &laws[d.law]; law.Allows == nil || law.Allows(d.state) {
				drawn[i] = Drawn{d.law, d.state}
			} else {
				again(i)
				left = append(left, i)
			}
		}
		pending = left
		most := len(pending)
		if room != nil {
			most = min(most, room(spent))
		}
		if most <= 0 || ctx.Err() != nil {
			return drawn, ctx.Err()
		}
		asked, err := further(ctx, laws, draws, pending, streams, most, again)
		if spent += asked; err != nil {
			return nil, err
		}
	}
}

// beginnings returns the beginnings of all orders of all laws, and their cumulative weights.
func beginnings(ctx context.Context, laws []Law) (starts []beginning, weights []float64, err error) {
	total := 0.0
	for number := range laws {
		law := &laws[number]
		open := slices.Repeat([]int{Open}, law.slots())
		var asked []Partial
		for _, order := range law.Orders {
			asked = append(asked, Partial{open, order[0]})
		}
		own := make([]beginning, len(law.Orders))
		var failed error
		err := law.Target.PartialConditionals(ctx, asked, func(o int, logp []float32) {
			choices := law.choices(open, asked[o].Slot, len(logp))
			own[o] = beginning{law: number, order: o, choices: choices}
			if own[o].cumulative, failed = cumulated(choices, logp, asked[o].Slot, failed); failed != nil {
				return
			}
		})
		if err = errors.Join(err, failed); err != nil {
			return nil, nil, err
		}
		for _, b := range own {
			if n := len(b.cumulative); n > 0 {
				total += math.Exp(law.LogWeight) / float64(len(own)) * b.cumulative[n-1]
			}
			starts, weights = append(starts, b), append(weights, total)
		}
	}
	if !(total > 0) {
		return nil, nil, errNoMass
	}
	return starts, weights, nil
}

// cumulated returns the cumulative probabilities of choices. It also returns failed, or an error if they are not valid.
func cumulated(choices []int, logp []float32, slot int, failed error) ([]float64, error) {
	cumulative, sum := make([]float64, len(choices)), 0.0
	for k, v := range choices {
		sum += math.Exp(float64(logp[v]))
		cumulative[k] = sum
	}
	if math.IsNaN(sum) || sum > 1+1e-3 {
		failed = fmt.Errorf("slot %d: %w", slot, errNoDistribution)
	}
	return cumulative, failed
}

// begin starts a draw: it draws a law, an order, and the category of the order's first slot.
func begin(laws []Law, starts []beginning, weights []float64, stream *rand.Rand) draw {
	b := starts[DrawCumulative(weights, stream)]
	d := draw{beginning: b, depth: 1, state: slices.Repeat([]int{Open}, laws[b.law].slots())}
	d.state[laws[b.law].Orders[b.order][0]] = b.choices[DrawCumulative(b.cumulative, stream)]
	return d
}

// further draws one more slot of pending draws. It computes at most `most` conditionals; draws of one state share them.
func further(ctx context.Context, laws []Law, draws []draw, pending []int, streams []*rand.Rand, most int,
	again func(i int)) (number int, err error) {
	type place struct {
		law, slot int
		state     string
	}
	asked, of := make([][]Partial, len(laws)), make([][][]int, len(laws)) // by law; of has the draws of each Partial
	groups := map[place]int{}
	for _, i := range pending {
		d := &draws[i]
		if d.depth == len(d.state) { // a draw of a single slot that was made again
			continue
		}
		slot := laws[d.law].Orders[d.order][d.depth]
		key := place{d.law, slot, string(appendState(nil, d.state))}
		g, ok := groups[key]
		if !ok {
			if number == most {
				continue
			}
			number++
			g = len(asked[d.law])
			groups[key] = g
			asked[d.law], of[d.law] = append(asked[d.law], Partial{d.state, slot}), append(of[d.law], nil)
		}
		of[d.law][g] = append(of[d.law][g], i)
	}
	for l := range laws {
		if len(asked[l]) == 0 {
			continue
		}
		chosen := make([][]int, len(asked[l]))
		var failed error
		err := laws[l].Target.PartialConditionals(ctx, asked[l], func(g int, logp []float32) {
			a := asked[l][g]
			choices := laws[l].choices(a.State, a.Slot, len(logp))
			var cumulative []float64
			if cumulative, failed = cumulated(choices, logp, a.Slot, failed); failed != nil {
				return
			}
			for _, i := range of[l][g] {
				category := Open
				if k := placed(cumulative, streams[i].Float64()); k < len(choices) {
					category = choices[k]
				}
				chosen[g] = append(chosen[g], category)
			}
		})
		if err = errors.Join(err, failed); err != nil {
			return number, err
		}
		for g, members := range of[l] {
			slot := asked[l][g].Slot
			for j, i := range members {
				if chosen[g][j] == Open {
					again(i)
					continue
				}
				draws[i].state[slot] = chosen[g][j]
				draws[i].depth++
			}
		}
	}
	return number, nil
}

// LogProbability returns log p of whole states, including LogWeight, [states].
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
