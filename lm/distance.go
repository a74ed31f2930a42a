package lm

import "infill/samplers"

// metricTarget is a target that also knows how far apart tokens are: by the squared Euclidean distance of their word
// embeddings, as p-NCG and GwL take it (Du et al., "Principled Gradient-Based MCMC for Conditional Sampling of Text",
// ICML 2024).
type metricTarget struct {
	*target
	embeddings []float32 // [vocabulary × hidden]
}

var _ samplers.MetricTarget = (*metricTarget)(nil)

// Distances writes the squared distance from category from to the categories first, first+1, … of a slot.
func (t *metricTarget) Distances(slot, from, first int, distance []float64) {
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
