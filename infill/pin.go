package infill

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"infill/lm"
	"infill/tokenize"
)

// Free, as a pin, leaves a slot to the sampler.
const Free = -1

// FillPinned is [Filler.Fill] with some slots pinned: pins holds, for every slot
// of the template, the id of the one token it may take, or Free. A pinned slot
// stays part of the energy, so the chains draw from the same distribution as
// without pins, conditional on the pinned tokens, and log-likelihoods compare.
//
// Errors: those of Fill, and an *OptionError ("pins") for a wrong number of
// pins, a token that no slot may take, or no free slot.
func (f *Filler) FillPinned(ctx context.Context, template string, pins []int, o Options, observe func(Progress)) (*Result, error) {
	result, err := f.fill(ctx, template, pins, o, observe)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(pins, func(pin int) bool { return pin != Free }) {
		fields := make([]string, len(pins))
		for slot, pin := range pins {
			fields[slot] = "-"
			if pin != Free {
				fields[slot] = strconv.Itoa(pin)
			}
		}
		result.Signature += "|pins:" + strings.Join(fields, ",")
	}
	return result, nil
}

// checkPins returns an *OptionError for pins that do not fit the template.
func (f *Filler) checkPins(template *tokenize.Template, pins []int) error {
	if pins == nil {
		return nil
	}
	if len(pins) != len(template.Slots) {
		return &OptionError{"pins", fmt.Sprintf("%d given, the template has %d slots", len(pins), len(template.Slots))}
	}
	for _, tie := range template.Ties {
		for _, slot := range tie {
			if pins[slot] != pins[tie[0]] {
				return &OptionError{"pins", fmt.Sprintf("slots %d and %d have one name and different pins", tie[0]+1, slot+1)}
			}
		}
	}
	free := false
	for slot, pin := range pins {
		if pin == Free {
			free = true
		} else if _, ok := slices.BinarySearch(f.fillable, pin); !ok {
			return &OptionError{"pins", fmt.Sprintf("slot %d cannot take token %d", slot+1, pin)}
		}
	}
	if !free {
		return &OptionError{"pins", "every slot is pinned: leave one to the sampler"}
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
// fill being the token ids of its slots; energy is one of Energies(). It serves
// samplers that move without knowing U. Errors are those of Fill.
func (f *Filler) LogLikelihoods(ctx context.Context, template, energy string, fills [][]int) ([]float64, error) {
	if !slices.Contains(Energies(), energy) {
		return nil, &OptionError{"energy", fmt.Sprintf("%q is not one of %s", energy, strings.Join(Energies(), ", "))}
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
	target, err := model.NewTarget(parsed.IDs, parsed.Slots, TargetOptions{Energy: lm.Energy(energy), Gradient: lm.Local, Support: support})
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
