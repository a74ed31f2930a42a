package onnx_test

import (
	"math"
	"slices"
	"testing"

	"infill/lm/internal/bert"
	"infill/lm/internal/bert/berttest"
	"infill/lm/internal/graphs"
	"infill/lm/internal/onnx"
	"infill/models"
)

// evaluateBundle runs a graph in double precision; change may alter weights.
func evaluateBundle(t *testing.T, b *models.Bundle, g *onnx.Graph, inputs map[string]Array,
	change func(name string, w Array)) map[string]Array {
	t.Helper()
	weights := readExternal(t, b.Dir)
	out, err := Evaluate(g, inputs, func(i onnx.Initializer) (Array, error) {
		w, err := weights(i)
		if err == nil && change != nil {
			change(i.Value.Name, w)
		}
		return w, err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]Array{}
	for i, v := range g.Outputs {
		named[v.Name] = out[i]
	}
	return named
}

func must[T any](t *testing.T) func(x T, err error) T {
	return func(x T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

// The example: six tokens, three slots, whose fills are tokens 10, 11, 12.
// Row i masks slot i.
var (
	exampleIDs   = []float64{2, 7, 10, 11, 12, 3}
	exampleSlots = []int{2, 3, 4}
)

const spare = 29 // a token that stands nowhere, whose embedding the test sets

func maskedRows() (ids, queries, targets, at Array) {
	n, m := len(exampleIDs), len(exampleSlots)
	ids, queries, targets, at = New(m, n), New(m, 1), New(m, 1), New(m, m)
	for i, s := range exampleSlots {
		copy(ids.Data[i*n:], exampleIDs)
		ids.Data[i*n+s] = berttest.MaskID
		queries.Data[i] = float64(i*n + s)
		targets.Data[i] = exampleIDs[s]
		for j, r := range exampleSlots {
			at.Data[i*m+j] = float64(i*n + r)
		}
	}
	return ids, queries, targets, at
}

// The gradient through the context against central differences of the energy,
// in double precision: slot j's embedding moves from E_u towards E_u + h·E_v,
// by way of a spare token. The output matrix is its own, so that nothing else
// moves.
func TestGradientAgainstFiniteDifferences(t *testing.T) {
	for _, activation := range []string{"gelu", "gelu_new", "relu"} {
		for _, layers := range []int{1, 3} {
			b := berttest.Write(t, t.TempDir(),
				berttest.Shape{Layers: layers, Activation: activation, Untied: true, Spread: 0.4})
			forward := must[*onnx.Graph](t)(graphs.Conditionals(b.Name, bert.Model{Bundle: b}))
			gradient := must[*onnx.Graph](t)(graphs.Gradient(b.Name, bert.Model{Bundle: b}))
			m, n, v := len(exampleSlots), len(exampleIDs), b.Config.VocabularySize
			ids, queries, targets, at := maskedRows()
			weights := New(1, m, m, 1)
			for i := range m {
				for j := range m {
					if i != j {
						weights.Data[i*m+j] = 1
					}
				}
			}
			wanted := []float64{20, 10, 5}
			inputs := map[string]Array{
				graphs.InputIDs: ids, graphs.InputQueries: queries, graphs.InputTargets: targets,
				graphs.InputCandidates: New(m, 0), graphs.InputChosen: New(0),
				graphs.InputSlots: at, graphs.InputWeights: weights,
				graphs.InputSlotCandidates: Of(slices.Concat(wanted, wanted, wanted), m, len(wanted)),
				graphs.InputChosenSlots:    Of([]float64{0, 1, 2}, 3),
			}
			got := evaluateBundle(t, b, gradient, inputs, nil)

			for j, s := range exampleSlots {
				for k, token := range wanted {
					energy := func(h float64) float64 {
						moved := Of(slices.Clone(ids.Data), ids.Shape...)
						for i := range m {
							if i != j {
								moved.Data[i*n+s] = spare
							}
						}
						changed := map[string]Array{}
						for name, a := range inputs {
							changed[name] = a
						}
						changed[graphs.InputIDs] = moved
						out := evaluateBundle(t, b, forward, changed, func(name string, w Array) {
							if name != "bert.embeddings.word_embeddings.weight" {
								return
							}
							width, u, e := b.Config.HiddenSize, int(exampleIDs[s]), int(token)
							for d := range width {
								w.Data[spare*width+d] = w.Data[u*width+d] + h*w.Data[e*width+d]
							}
						})
						sum := 0.0
						for i, x := range out[graphs.OutputTarget].Data {
							if i != j {
								sum += x
							}
						}
						return sum
					}
					const step = 1e-5
					want := (energy(step) - energy(-step)) / (2 * step)
					for what, x := range map[string]float64{
						"candidate": got[graphs.OutputSlotCandidates].Data[j*len(wanted)+k],
						"whole":     got[graphs.OutputSlotsVocabulary].Data[j*v+int(token)],
					} {
						if !(math.Abs(x-want) <= 1e-6*(1+math.Abs(want))) {
							t.Errorf("%s, %d layers: %s gradient of slot %d at token %.0f is %.10g, finite "+
								"difference %.10g",
								activation, layers, what, j, token, x, want)
						}
					}
				}
			}
		}
	}
}

// Both graphs put out the same log-probabilities, and these are normalised.
func TestGraphsAgree(t *testing.T) {
	b := berttest.Write(t, t.TempDir(), berttest.Shape{Layers: 2, Spread: 0.4})
	m, v := len(exampleSlots), b.Config.VocabularySize
	ids, queries, targets, at := maskedRows()
	inputs := map[string]Array{
		graphs.InputIDs: ids, graphs.InputQueries: queries, graphs.InputTargets: targets,
		graphs.InputCandidates: Of([]float64{10, 5, 11, 5, 12, 5}, m, 2),
		graphs.InputChosen:     Of([]float64{2, 0}, 2),
		graphs.InputSlots:      at, graphs.InputWeights: New(1, m, m, 1),
		graphs.InputSlotCandidates: New(m, 0), graphs.InputChosenSlots: New(0),
	}
	forward := evaluateBundle(t, b, must[*onnx.Graph](t)(graphs.Conditionals(b.Name, bert.Model{Bundle: b})), inputs,
		nil)
	gradient := evaluateBundle(t, b, must[*onnx.Graph](t)(graphs.Gradient(b.Name, bert.Model{Bundle: b})), inputs, nil)
	for name, want := range forward {
		for i, x := range gradient[name].Data {
			if !(math.Abs(x-want.Data[i]) < 1e-6) {
				t.Errorf("%s[%d] is %g in the one graph, %g in the other", name, i, want.Data[i], x)
			}
		}
	}
	for r, row := range []int{2, 0} {
		total := 0.0
		for k := range v {
			total += math.Exp(forward[graphs.OutputVocabulary].Data[r*v+k])
		}
		if !(math.Abs(total-1) < 1e-9) {
			t.Errorf("probabilities sum to %g", total)
		}
		at := forward[graphs.OutputVocabulary].Data[r*v+int(targets.Data[row])]
		if want := forward[graphs.OutputTarget].Data[row]; at != want {
			t.Errorf("row %d: the target's log-probability is %g and %g", row, at, want)
		}
		if got := forward[graphs.OutputCandidates].Data[2*row]; got != at {
			t.Errorf("row %d: the candidate's log-probability is %g, want %g", row, got, at)
		}
	}
}
