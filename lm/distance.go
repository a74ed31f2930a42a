package lm

import (
	"fmt"

	"infill/samplers"
)

// MetricTarget is a [Target] that also knows how far apart tokens are: by the
// squared Euclidean distance of their word embeddings, as p-NCG and GwL take
// it (Du et al., "Principled Gradient-Based MCMC for Conditional Sampling of
// Text", ICML 2024).
type MetricTarget struct {
	*Target
	embeddings []float32 // [vocabulary × hidden]
}

var _ samplers.MetricTarget = (*MetricTarget)(nil)

// WithDistances reads the word embeddings into memory, once for each model.
func (t *Target) WithDistances() (*MetricTarget, error) {
	embeddings, err := t.m.wordEmbeddings()
	if err != nil {
		return nil, fmt.Errorf("word embeddings: %w", err)
	}
	return &MetricTarget{t, embeddings}, nil
}

// Distances writes the squared distance from category from to the categories
// first, first+1, … of a slot.
func (t *MetricTarget) Distances(slot, from, first int, distance []float64) {
	width := len(t.embeddings) / t.m.Vocabulary()
	row := func(category int) []float32 {
		return t.embeddings[t.support[slot][category]*width:][:width]
	}
	u := row(from)
	for k := range distance {
		sum := 0.0
		for i, x := range row(first + k) {
			d := float64(x - u[i])
			sum += d * d
		}
		distance[k] = sum
	}
}
