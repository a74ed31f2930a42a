package lm

import (
	"context"
	"fmt"
	"slices"
)

// Query asks for the log-probability of one token of a text.
type Query struct {
	Position int   // position of the token to score
	Masked   []int // further positions that hold [MASK] for this query; Position itself is always masked
}

// Score returns, for every query, log f(ids[Position] | ids with [MASK] at the
// query's positions), in nats. These are the terms of a pseudo-log-likelihood
// (Salazar et al. 2020).
func (m *MaskedLM) Score(ctx context.Context, ids []int, queries []Query) ([]float64, error) {
	if err := m.check(ids); err != nil {
		return nil, err
	}
	var b batch
	b.reset(len(ids), 1, 0, false)
	for _, q := range queries {
		row := len(b.ids)
		b.text(ids)
		for _, p := range append(slices.Clone(q.Masked), q.Position) {
			if p < 0 || p >= len(ids) {
				return nil, fmt.Errorf("position %d is outside the text of %d tokens", p, len(ids))
			}
			b.ids[row+p] = int64(m.MaskID())
		}
		b.queries = append(b.queries, int64(q.Position))
		b.targets = append(b.targets, int64(ids[q.Position]))
	}
	if len(queries) == 0 {
		return nil, nil
	}
	if err := m.run(ctx, &b); err != nil {
		return nil, err
	}
	scores := make([]float64, len(queries))
	for i, s := range b.target {
		scores[i] = float64(s)
	}
	return scores, nil
}

// MaskedLogProbabilities returns log p of every token at every slot, [slots ×
// vocabulary], in nats, with [MASK] in all slots. The ids at the slots are
// ignored.
func (m *MaskedLM) MaskedLogProbabilities(ctx context.Context, ids, slots []int) ([][]float32, error) {
	row, err := m.template(ids, slots)
	if err != nil {
		return nil, err
	}
	var b batch
	b.reset(len(ids), len(slots), 0, true)
	b.ids = append(b.ids, row...)
	for _, s := range slots {
		b.queries = append(b.queries, int64(s))
	}
	return m.distributions(ctx, &b)
}

// distributions runs b and returns, for each of its queries, log p of every
// token.
func (m *MaskedLM) distributions(ctx context.Context, b *batch) ([][]float32, error) {
	b.targets = make([]int64, len(b.queries))
	if err := m.run(ctx, b); err != nil {
		return nil, err
	}
	logp := make([][]float32, len(b.queries))
	v := m.Vocabulary()
	for i := range logp {
		logp[i] = b.vocabulary[i*v : (i+1)*v : (i+1)*v]
	}
	return logp, nil
}

// template returns the ids with [MASK] at the slots.
func (m *MaskedLM) template(ids, slots []int) ([]int64, error) {
	if len(slots) == 0 {
		return nil, fmt.Errorf("there is no slot")
	}
	masked := slices.Clone(ids)
	for i, s := range slots {
		if s < 0 || s >= len(ids) {
			return nil, fmt.Errorf("slot %d is at position %d, outside the text of %d tokens", i, s, len(ids))
		}
		if slices.Contains(slots[:i], s) {
			return nil, fmt.Errorf("two slots are at position %d", s)
		}
		masked[s] = m.MaskID()
	}
	if err := m.check(masked); err != nil {
		return nil, err
	}
	row := make([]int64, len(masked))
	for i, id := range masked {
		row[i] = int64(id)
	}
	return row, nil
}

// Row asks for the distribution of one position of a text.
type Row struct {
	IDs      []int // with the ids of [CLS], [SEP] and [MASK]
	Position int
}

// LogProbabilities returns log p of every token at the position of each row, in
// nats, [rows × vocabulary]. All rows must have the same number of tokens. If
// all rows have the same slice IDs, the model runs a single row.
func (m *MaskedLM) LogProbabilities(ctx context.Context, rows []Row) ([][]float32, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	var b batch
	same := !slices.ContainsFunc(rows, func(r Row) bool {
		return len(r.IDs) == 0 || len(r.IDs) != len(rows[0].IDs) || &r.IDs[0] != &rows[0].IDs[0]
	})
	perRow := 1
	if same {
		perRow = len(rows)
	}
	b.reset(len(rows[0].IDs), perRow, 0, true)
	for i, r := range rows {
		if len(r.IDs) != b.tokens || r.Position < 0 || r.Position >= b.tokens {
			return nil, fmt.Errorf("a row of %d tokens, asked for position %d, among rows of %d tokens", len(r.IDs),
				r.Position, b.tokens)
		}
		if err := m.check(r.IDs); err != nil {
			return nil, err
		}
		b.queries = append(b.queries, int64(r.Position))
		if same && i > 0 {
			continue
		}
		b.text(r.IDs)
	}
	return m.distributions(ctx, &b)
}
