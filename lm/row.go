package lm

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Row asks what the model expects at some positions of a text.
type Row struct {
	IDs       []int // with the ids of [CLS], [SEP] and [MASK]
	Positions []int // in IDs
	// Targets are the tokens to rate, one for each of Positions; nil for every
	// token.
	Targets []int
}

func (a *asker) LogProbabilities(ctx context.Context, rows []Row) ([][][]float32, error) {
	m := a.m
	batches := map[shape]*batch{}
	var jobs []job
	places := make([]place, len(rows))
	for i, r := range rows {
		err := m.checkRow(r)
		if err != nil {
			return nil, err
		}
		s := shape{len(r.IDs), len(r.Positions), r.Targets == nil}
		b := batches[s]
		if b == nil {
			b = &batch{}
			b.reset(s.tokens, s.positions, 0, s.everything)
			batches[s] = b
			jobs = append(jobs, &rowsJob{m: m, batch: b})
		}
		places[i] = place{b, b.rows()}
		b.add(r)
	}
	err := m.engine.await(ctx, a.caller, jobs...)
	if err != nil {
		return nil, err
	}
	found := make([][][]float32, len(rows))
	for i, p := range places {
		found[i] = p.results(m.Vocabulary())
	}
	return found, nil
}

type shape struct {
	tokens, positions int
	everything        bool
}

type place struct {
	batch *batch
	row   int
}

// checkRow returns an error if the model cannot compute a row.
func (m *MaskedLM) checkRow(r Row) error {
	switch {
	case len(r.Positions) == 0:
		return errors.New("a row asks for no position")
	case r.Targets != nil && len(r.Targets) != len(r.Positions):
		return fmt.Errorf("a row has %d positions and %d targets", len(r.Positions), len(r.Targets))
	}
	for _, p := range r.Positions {
		if p < 0 || p >= len(r.IDs) {
			return fmt.Errorf("position %d is outside the text of %d tokens", p, len(r.IDs))
		}
	}
	for _, id := range r.Targets {
		if id < 0 || id >= m.Vocabulary() {
			return fmt.Errorf("target %d is outside the vocabulary of %d", id, m.Vocabulary())
		}
	}
	return m.check(r.IDs)
}

func (b *batch) add(r Row) {
	b.ids = appendInts(b.ids, r.IDs)
	b.queries = appendInts(b.queries, r.Positions)
	b.targets = appendInts(b.targets, r.Targets)
	if r.Targets == nil { // the graph rates some token
		b.targets = append(b.targets, make([]int64, len(r.Positions))...)
	}
}

// results returns what a row that has run asked for, [positions][vocabulary or 1].
func (p place) results(vocabulary int) [][]float32 {
	b := p.batch
	numbers, width := b.target, 1
	if b.everything {
		numbers, width = b.vocabulary, vocabulary
	}
	found := make([][]float32, b.perRow)
	for i := range found {
		at := (p.row*b.perRow + i) * width
		found[i] = numbers[at : at+width : at+width]
	}
	return found
}

// template returns the ids of a text with [MASK] at its slots.
func (m *MaskedLM) template(ids, slots []int) ([]int64, error) {
	if len(slots) == 0 {
		return nil, errors.New("there is no slot")
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
	return appendInts(nil, masked), nil
}

func appendInts(list []int64, numbers []int) []int64 {
	for _, n := range numbers {
		list = append(list, int64(n))
	}
	return list
}
