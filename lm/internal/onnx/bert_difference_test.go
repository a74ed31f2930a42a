package onnx_test

import (
	"math"
	"testing"

	"infill/lm/internal/bert"
	"infill/lm/internal/bert/berttest"
	"infill/lm/internal/graphs"
)

// difference is the largest |x − reference|/(1 + |reference|), in double precision, over all log-probabilities of both
// graphs and over every row's gradient at every other slot, as products with every token's embedding.
func difference(t testing.TB, r berttest.Reference) float64 {
	t.Helper()
	forward, err := graphs.Conditionals(r.Bundle.Name, bert.Model{Bundle: r.Bundle})
	if err != nil {
		t.Fatal(err)
	}
	backward, err := graphs.Gradient(r.Bundle.Name, bert.Model{Bundle: r.Bundle})
	if err != nil {
		t.Fatal(err)
	}
	embedding := r.Embeddings(t)
	worst := 0.0
	compare := func(got, want []float64) {
		if len(got) != len(want) {
			t.Fatalf("%s: %d values, want %d", r.Name, len(got), len(want))
		}
		for i, x := range got {
			if d := math.Abs(x-want[i]) / (1 + math.Abs(want[i])); !(d <= worst) {
				worst = d
			}
		}
	}
	for _, c := range r.Cases {
		var logProbability, gradient []float64
		for i, row := range c.LogProbability {
			logProbability = append(logProbability, row...)
			for j := range c.Slots {
				gradient = append(gradient, products(c.Gradient[i][j], embedding)...)
			}
		}
		inputs := rowsOf(r, c)
		values, err := Evaluate(forward, inputs, readExternal(t, r.Bundle.Dir))
		if err != nil {
			t.Fatal(err)
		}
		slopes, err := Evaluate(backward, inputs, readExternal(t, r.Bundle.Dir))
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range forward.Outputs {
			if v.Name == graphs.OutputVocabulary {
				compare(values[i].Data, logProbability)
			}
		}
		for i, v := range backward.Outputs {
			switch v.Name {
			case graphs.OutputVocabulary:
				compare(slopes[i].Data, logProbability)
			case graphs.OutputSlotsVocabulary:
				compare(slopes[i].Data, gradient)
			}
		}
	}
	return worst
}

// products is E·x for an embedding matrix E [vocabulary × width].
func products(x, embedding []float64) []float64 {
	out := make([]float64, len(embedding)/len(x))
	for v := range out {
		for d, y := range x {
			out[v] += y * embedding[v*len(x)+d]
		}
	}
	return out
}

// rowsOf asks for all distributions and all gradients: a chain for every row, of one term.
func rowsOf(r berttest.Reference, c berttest.ReferenceCase) map[string]Array {
	m, n := len(c.Slots), len(c.IDs)
	in := map[string]Array{
		graphs.InputIDs: New(m, n), graphs.InputQueries: New(m, 1),
		graphs.InputTargets:    New(m, 1),
		graphs.InputCandidates: New(m, 0), graphs.InputChosen: New(m),
		graphs.InputSlots:   New(m, m),
		graphs.InputWeights: New(m, 1, m, 1), graphs.InputSlotCandidates: New(m, 0),
		graphs.InputChosenSlots: New(m * m),
	}
	for i, s := range c.Slots {
		for k, id := range c.IDs {
			in[graphs.InputIDs].Data[i*n+k] = float64(id)
		}
		in[graphs.InputIDs].Data[i*n+s] = float64(r.Mask)
		in[graphs.InputQueries].Data[i] = float64(i*n + s)
		in[graphs.InputTargets].Data[i] = float64(c.IDs[s])
		in[graphs.InputChosen].Data[i] = float64(i)
		for j, other := range c.Slots {
			in[graphs.InputSlots].Data[i*m+j] = float64(i*n + other)
			in[graphs.InputChosenSlots].Data[i*m+j] = float64(i*m + j)
			if i != j {
				in[graphs.InputWeights].Data[i*m+j] = 1
			}
		}
	}
	return in
}
