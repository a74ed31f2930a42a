package infill

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"infill/samplers"
)

// maxTries bounds how often a start that the constraints forbid is drawn again.
const maxTries = 1000

// initial gives where the chains start, [chains × variables]. weights are the
// model's log-probabilities of each variable's categories with all slots masked.
func (c *chains) initial(ctx context.Context, weights [][]float32) ([]int, error) {
	o := c.options
	switch o.Initial.Kind {
	case startGiven:
		start, err := c.given(o.Initial.Fill)
		return slices.Repeat(start, o.Chains), err
	case startRandom:
		return c.drawn(nil, c.streams)
	case StartShared:
		// Its own stream: the chains' are for their steps alone.
		start, err := c.drawn(weights, samplers.Streams(o.Seed, c.label+"\x00start", 1))
		return slices.Repeat(start, o.Chains), err
	case StartMask:
		return c.unmasked(ctx)
	}
	return c.drawn(weights, c.streams)
}

// drawn draws the variables independently, each chain with its own stream: by
// their weights, or uniformly if there are none. What the constraints forbid
// is drawn again.
func (c *chains) drawn(weights [][]float32, streams []*rand.Rand) ([]int, error) {
	cumulative := make([][]float64, len(weights))
	for n, row := range weights {
		// Shifted by the largest value, so that no variable underflows to nothing.
		highest := math.Inf(-1)
		for _, w := range row {
			highest = max(highest, float64(w))
		}
		sum := 0.0
		for _, w := range row {
			sum += math.Exp(float64(w) - highest)
			cumulative[n] = append(cumulative[n], sum)
		}
	}
	start := make([]int, len(streams)*len(c.variables))
	for chain, stream := range streams {
		state := start[chain*len(c.variables):][:len(c.variables)]
		for try := 0; ; try++ {
			if try == maxTries {
				return nil, misfit("initial", "none of %d starts that %s draws keeps to the constraints: loosen "+
					"them, or give a fill as fill:WORD,...", maxTries, c.options.Initial)
			}
			for n := range state {
				if weights == nil {
					state[n] = stream.IntN(c.variables[n].categories())
				} else {
					state[n] = samplers.DrawCumulative(cumulative[n], stream)
				}
			}
			if c.allowed == nil || c.allowed(c.tokens(state)) {
				break
			}
		}
	}
	return start, nil
}

// unmasked draws the slots of each chain one by one in a random order, each from
// the model with those before it filled and the others masked: what the first
// sweep of a Gibbs sampler that starts from masks does.
func (c *chains) unmasked(ctx context.Context) ([]int, error) {
	target, ok := c.target.(samplers.MaskedConditionalTarget)
	if !ok {
		return nil, fmt.Errorf("%T has no conditionals of several masked slots", c.target)
	}
	categories := target.Categories()
	slots, width, chains := len(categories), slices.Max(categories), len(c.streams)
	order := make([][]int, chains)
	for chain, stream := range c.streams {
		order[chain] = stream.Perm(slots)
	}
	start := make([]int, chains*slots)
	open := slices.Repeat([]bool{true}, chains*slots)
	logp := make([]float64, chains*slots*width)
	var cumulative []float64
	for round := range slots {
		if err := target.LogMaskedConditionals(ctx, start, open, logp); err != nil {
			return nil, err
		}
		for chain, stream := range c.streams {
			slot := order[chain][round]
			sum := 0.0
			cumulative = cumulative[:0]
			for _, l := range logp[(chain*slots+slot)*width:][:categories[slot]] {
				sum += math.Exp(l)
				cumulative = append(cumulative, sum)
			}
			start[chain*slots+slot] = samplers.DrawCumulative(cumulative, stream)
			open[chain*slots+slot] = false
		}
	}
	return start, nil
}

// given reads a fill, what each blank holds.
func (c *chains) given(fills []string) ([]int, error) {
	if len(fills) != len(c.template.Blanks) {
		return nil, misfit("initial", "%d fills given, the template has %d blanks", len(fills), len(c.template.Blanks))
	}
	if c.places > 1 {
		return nil, misfit("initial", "a given fill has one length, and the template several: name one")
	}
	tokens := make([]int, len(c.template.Slots))
	for i, b := range c.template.Blanks {
		var continuing map[string]int
		if b.TouchesLeft {
			continuing = c.filler.continuations()
		}
		ids, err := c.filler.candidate(fills[i], b, continuing)
		if err != nil {
			return nil, misfit("initial", "blank %d cannot take %q: %v", i+1, fills[i], err)
		}
		if len(ids) != b.Slots {
			return nil, misfit("initial", "%q has %s, blank %d has %d", fills[i], countPieces(len(ids)), i+1, b.Slots)
		}
		copy(tokens[b.First:], ids)
	}
	state := make([]int, len(c.variables))
	for n, v := range c.variables {
		fits := func() bool {
			for i, slot := range v.slots {
				if v.token(state[n], i) != tokens[slot] {
					return false
				}
			}
			return true
		}
		for state[n] < v.categories() && !fits() {
			state[n]++
		}
		if state[n] == v.categories() {
			return nil, misfit("initial", "%q is not among the %d candidates of its blank: raise candidates, 0 being "+
				"the whole vocabulary, or change the constraints", c.filler.pieceText(tokens[v.slots[0]]),
				v.categories())
		}
	}
	if c.allowed != nil && !c.allowed(tokens) {
		return nil, misfit("initial", "the constraints forbid %q", strings.Join(fills, ","))
	}
	return state, nil
}
