package bert_test

import (
	"math"
	"slices"
	"testing"

	"infill/lm/bert"
	"infill/lm/bert/berttest"
	"infill/lm/onnx"
	"infill/lm/onnx/reference"
	"infill/models"
)

// tolerance covers the twelve digits of the stored values, and the
// normalisation's epsilon and the rotary frequencies, which the graph holds in
// single precision.
const tolerance = 1e-6

// Every family against its reference implementation, in double precision: all
// log-probabilities, and every row's gradient at every other slot, as products
// with every token's embedding.
func TestReference(t *testing.T) {
	for _, r := range berttest.References(t, "testdata") {
		t.Run(r.Name, func(t *testing.T) {
			forward := must[*onnx.Graph](t)(bert.Conditionals(r.Bundle))
			gradient := must[*onnx.Graph](t)(bert.Gradient(r.Bundle))
			embedding := must[[]float64](t)(r.Bundle.Weights.Float64s(r.Bundle.Config.Layout().Words.Name))
			for _, c := range r.Cases {
				inputs := rowsOf(r, c)
				values := evaluate(t, r.Bundle, forward, inputs, nil)
				slopes := evaluate(t, r.Bundle, gradient, inputs, nil)
				for what, got := range map[string]reference.Array{"conditionals": values[bert.OutputVocabulary], "gradient": slopes[bert.OutputVocabulary]} {
					compare(t, what+": log-probability", got.Data, slices.Concat(c.LogProbability...))
				}
				var want []float64
				width := r.Bundle.Config.EmbeddingSize
				for i := range c.Slots {
					for j := range c.Slots {
						for v := range r.Bundle.Config.VocabularySize {
							sum := 0.0
							for d, x := range c.Gradient[i][j] {
								sum += x * embedding[v*width+d]
							}
							want = append(want, sum)
						}
					}
				}
				compare(t, "gradient", slopes[bert.OutputSlotsVocabulary].Data, want)
			}
		})
	}
}

// rowsOf is the inputs for all distributions and all gradients: a chain for every row, of one term.
func rowsOf(r berttest.Reference, c berttest.ReferenceCase) map[string]reference.Array {
	m, n := len(c.Slots), len(c.IDs)
	in := map[string]reference.Array{
		bert.InputIDs: reference.New(m, n), bert.InputQueries: reference.New(m, 1), bert.InputTargets: reference.New(m, 1),
		bert.InputCandidates: reference.New(m, 0), bert.InputChosen: reference.New(m), bert.InputSlots: reference.New(m, m),
		bert.InputWeights: reference.New(m, 1, m, 1), bert.InputSlotCandidates: reference.New(m, 0), bert.InputChosenSlots: reference.New(m * m),
	}
	for i, s := range c.Slots {
		for k, id := range c.IDs {
			in[bert.InputIDs].Data[i*n+k] = float64(id)
		}
		in[bert.InputIDs].Data[i*n+s] = float64(r.Mask)
		in[bert.InputQueries].Data[i] = float64(i*n + s)
		in[bert.InputTargets].Data[i] = float64(c.IDs[s])
		in[bert.InputChosen].Data[i] = float64(i)
		for j, other := range c.Slots {
			in[bert.InputSlots].Data[i*m+j] = float64(i*n + other)
			in[bert.InputChosenSlots].Data[i*m+j] = float64(i*m + j)
			if i != j {
				in[bert.InputWeights].Data[i*m+j] = 1
			}
		}
	}
	return in
}

func compare(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	worst, at := 0.0, 0
	for i := range got {
		if d := math.Abs(got[i]-want[i]) / (1 + math.Abs(want[i])); !(d <= worst) {
			worst, at = d, i
		}
	}
	if !(worst <= tolerance) {
		t.Errorf("%s: value %d is %.10g, want %.10g", what, at, got[at], want[at])
	}
	t.Logf("%s: largest difference %.1g", what, worst)
}

// Every family has reference values.
func TestEveryFamilyHasAReference(t *testing.T) {
	var found []string
	for _, r := range berttest.References(t, "testdata") {
		found = append(found, r.Bundle.Config.ModelType)
	}
	for _, family := range models.Families() {
		// CamemBERT is RoBERTa under another name, with the same tensors.
		if family != "camembert" && !slices.Contains(found, family) {
			t.Errorf("family %s has no reference values", family)
		}
	}
}
