package infill

import (
	"context"
	"slices"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"infill/lm"
	"infill/samplers"
)

// law gives samplers.Search and samplers.Draw the chain rule's conditionals.
// Categories are token ids. Probabilities are the model's own over the whole
// vocabulary: the options narrow the fills, not the law.
type law struct {
	model  LanguageModel
	masked []int // ids with the mask token in every slot
	slots  []int // positions in ids
	root   [][]float32
	rows   *int // counts the rows that went through the model
	// kept caches the log-probabilities of earlier rows for draws, which may
	// ask again; it is nil for a search.
	kept *simplelru.LRU[string, []float32]
}

const (
	// askedNumbers is the largest number of probabilities that one model call
	// returns: 32 MiB.
	askedNumbers = 8 << 20
	// keptNumbers is the largest number of probabilities in law.kept: 64 MiB.
	keptNumbers = 16 << 20
)

var _ samplers.PartialTarget = (*law)(nil)

// PartialConditionals implements samplers.PartialTarget.
func (l *law) PartialConditionals(ctx context.Context, asked []samplers.Partial,
	take func(i int, logp []float32)) error {
	var rows []lm.Row
	var takers [][]int // for each row, the indices in asked that wait for it
	var keys []string
	own := map[string]int{} // the row of each key
	for i, a := range asked {
		ids := slices.Clone(l.masked)
		filled := false
		for slot, token := range a.State {
			if token != samplers.Open {
				ids[l.slots[slot]] = token
				filled = true
			}
		}
		if !filled {
			take(i, l.root[a.Slot])
			continue
		}
		key := ""
		if l.kept != nil {
			key = stateKey(a.State, a.Slot)
			logp, ok := l.kept.Get(key)
			if ok {
				take(i, logp)
				continue
			}
			row, asked := own[key]
			if asked {
				takers[row] = append(takers[row], i)
				continue
			}
			own[key] = len(rows)
		}
		rows = append(rows, lm.Row{IDs: ids, Position: l.slots[a.Slot]})
		takers = append(takers, []int{i})
		keys = append(keys, key)
	}
	step := max(1, askedNumbers/len(l.root[0]))
	for first := 0; first < len(rows); first += step {
		last := min(first+step, len(rows))
		found, err := l.model.LogProbabilities(ctx, rows[first:last])
		if err != nil {
			return err
		}
		*l.rows += len(found)
		for i, logp := range found {
			if l.kept != nil {
				l.kept.Add(keys[first+i], slices.Clone(logp))
			}
			for _, taker := range takers[first+i] {
				take(taker, logp)
			}
		}
	}
	return nil
}

// keep makes the law cache its rows in kept from now on.
func (l *law) keep() (err error) {
	l.kept, err = simplelru.NewLRU[string, []float32](max(1, keptNumbers/len(l.root[0])), nil)
	return err
}

// stateKey returns the key in law.kept for a slot and a state.
func stateKey(state []int, slot int) string {
	return string(samplers.AppendKey(samplers.AppendKey(nil, state...), slot))
}
