// Mask-predict of Ghazvininejad, Levy, Liu and Zettlemoyer (EMNLP 2019): all slots start open; in round t of T the open
// ones are predicted at once, and the m(T-t)/T slots of least confidence are opened again.
//
// It is decoding and not MCMC: the results follow no law that is known, and it is here to be compared with. Cost: one
// conditional of all open slots a round and chain.

package samplers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"infill/internal/logmath"
)

// MaskPredictOptions set a decoding. Zero fields take the defaults.
type MaskPredictOptions struct {
	Rounds int // of prediction, as many as slots by default
	// Temperature draws from the conditionals at a temperature; 0 takes the most probable category, so that all
	// chains give the same result.
	Temperature float64
}

// Prediction is the outcome of a decoding.
type Prediction struct {
	Positions []int // [chains × slots]
	// Confidence is the log-probability each slot's category had when it was
	// predicted last, [chains × slots], in nats. It is not the energy of the state.
	Confidence []float64
	Cost       Cost
}

// MaskPredict fills all slots by confidence, each chain on its own: mask-predict, which is decoding and not
// sampling. At temperature 1, a single round draws every slot from its conditional with all slots open. The
// target must be a [MaskedConditionalTarget].
func MaskPredict(ctx context.Context, target Target, streams []*rand.Rand, o MaskPredictOptions) (*Prediction, error) {
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	masked, err := capability[MaskedConditionalTarget](target, "mask-predict")
	if err != nil {
		return nil, err
	}
	categories := target.Categories()
	slots, wide, chains := len(categories), width(categories), len(streams)
	rounds := o.Rounds
	if rounds == 0 {
		rounds = slots
	}
	if rounds < 1 || !(o.Temperature >= 0) || math.IsInf(o.Temperature, 1) {
		return nil, fmt.Errorf("mask-predict in %d rounds at temperature %v: at least one round, and a temperature "+
			"of 0 or above", o.Rounds, o.Temperature)
	}
	p := &Prediction{Positions: make([]int, chains*slots), Confidence: make([]float64, chains*slots)}
	open := slices.Repeat([]bool{true}, chains*slots)
	logp := make([]float64, chains*slots*wide)
	weight := make([]float64, wide)
	order := make([]int, slots)
	for round := 1; round <= rounds; round++ {
		if err := masked.LogMaskedConditionals(ctx, p.Positions, open, logp); err != nil {
			return nil, err
		}
		p.Cost.Conditionals += chains
		for i, isOpen := range open {
			if !isOpen {
				continue
			}
			row := logp[i*wide : i*wide+categories[i%slots]]
			v, err := predict(row, weight, o.Temperature, random{streams[i/slots]})
			if err != nil {
				return nil, fmt.Errorf("chain %d, slot %d: %w", i/slots, i%slots, err)
			}
			p.Positions[i], p.Confidence[i], open[i] = v, row[v], false
		}
		for c := range chains {
			confidence := p.Confidence[c*slots : (c+1)*slots]
			for j := range order {
				order[j] = j
			}
			slices.SortStableFunc(order, func(a, b int) int {
				return cmp.Compare(confidence[a], confidence[b])
			})
			for _, j := range order[:slots*(rounds-round)/rounds] {
				open[c*slots+j] = true
			}
		}
	}
	return p, nil
}

// predict takes the most probable category, or draws one.
func predict(logp, weight []float64, temperature float64, src source) (int, error) {
	if !logmath.Finite(logmath.LogSumExp(logp)) {
		return 0, errors.New("the conditional is not a distribution")
	}
	if temperature == 0 {
		best := 0
		for v, l := range logp {
			if l > logp[best] {
				best = v
			}
		}
		return best, nil
	}
	largest := slices.Max(logp)
	for v, l := range logp {
		weight[v] = math.Exp((l - largest) / temperature)
	}
	return src.categorical(weight[:len(logp)]), nil
}
