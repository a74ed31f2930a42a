package infill

import (
	"context"
	"fmt"
	"slices"

	"infill/lm"
	"infill/tokenize"
)

// checkPins returns an *OptionError for pins that do not fit the template.
func (f *Filler) checkPins(template *tokenize.Template, pins []int) error {
	if len(pins) != len(template.Slots) {
		return misfit("pins", "%d given, the template has %d slots", len(pins), len(template.Slots))
	}
	for _, tie := range template.Ties {
		for _, slot := range tie {
			if pins[slot] != pins[tie[0]] {
				return misfit("pins", "slots %d and %d have one name and different pins", tie[0]+1, slot+1)
			}
		}
	}
	free := false
	for slot, pin := range pins {
		if pin == Free {
			free = true
		} else if _, ok := slices.BinarySearch(f.fillable, pin); !ok {
			return misfit("pins", "slot %d cannot take token %d", slot+1, pin)
		}
	}
	if !free {
		return misfit("pins", "every slot is pinned: leave one to the sampler")
	}
	return nil
}

// LogConditionals returns, for every slot of a template, the log-probability in
// nats of every token of the vocabulary with that slot masked and the others
// holding ids [slots], the result being [slots][vocabulary]. With nil ids all
// slots are masked at once. Errors are those of Fill.
func (f *Filler) LogConditionals(ctx context.Context, template string, ids []int) ([][]float32, error) {
	parsed, err := f.Template(template)
	if err != nil {
		return nil, err
	}
	if ids != nil && len(ids) != len(parsed.Slots) {
		return nil, fmt.Errorf("%d tokens given, the template has %d slots", len(ids), len(parsed.Slots))
	}
	model, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	if ids == nil {
		logp, err := model.MaskedLogProbabilities(ctx, parsed.IDs, parsed.Slots)
		return logp, cancelled(ctx, err)
	}
	filled := slices.Clone(parsed.IDs)
	for slot, position := range parsed.Slots {
		filled[position] = ids[slot]
	}
	logp := make([][]float32, len(parsed.Slots))
	for slot, position := range parsed.Slots {
		row, err := model.MaskedLogProbabilities(ctx, filled, []int{position})
		if err != nil {
			return nil, cancelled(ctx, err)
		}
		logp[slot] = row[0]
	}
	return logp, nil
}

// LogLikelihoods returns U in nats of given fills of a template, [fills], each
// fill being the token ids of its slots. It serves
// samplers that move without knowing U. Errors are those of Fill.
func (f *Filler) LogLikelihoods(ctx context.Context, template string, energy lm.Energy, fills [][]int) ([]float64, error) {
	if reason := Find("energy").fault(&Options{Sampling: Sampling{Energy: energy}}); reason != "" {
		return nil, &OptionError{Option: "energy", Reason: reason}
	}
	parsed, err := f.Template(template)
	if err != nil || len(fills) == 0 {
		return nil, err
	}
	model, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	support := make([][]int, len(parsed.Slots))
	for _, fill := range fills {
		if len(fill) != len(parsed.Slots) {
			return nil, fmt.Errorf("%d tokens given, the template has %d slots", len(fill), len(parsed.Slots))
		}
		for slot, token := range fill {
			support[slot] = append(support[slot], token)
		}
	}
	for slot := range support {
		slices.Sort(support[slot])
		support[slot] = slices.Compact(support[slot])
	}
	target, err := model.NewTarget(parsed.IDs, parsed.Slots, lm.TargetOptions{Energy: energy, Gradient: lm.Local, Support: support})
	if err != nil {
		return nil, err
	}
	const batch = 32 // fills a call, so that a cancelled one ends soon
	energies := make([]float64, 0, len(fills))
	for part := range slices.Chunk(fills, batch) {
		states := make([]int, 0, len(part)*len(support))
		for _, fill := range part {
			for slot, token := range fill {
				category, _ := slices.BinarySearch(support[slot], token)
				states = append(states, category)
			}
		}
		values := make([]float64, len(part))
		if err := target.Energy(ctx, states, values); err != nil {
			return nil, cancelled(ctx, err)
		}
		energies = append(energies, values...)
	}
	return energies, nil
}
