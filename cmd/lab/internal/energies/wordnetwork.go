package energies

import (
	"context"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"infill/cmd/lab/internal/lab"
	"infill/internal/targets"
)

// wordNetwork is an energy of sentences. Each word v has an embedding e(v), and
// one perceptron g sees a window about each slot:
//
//	f(x) = Σ_i g(e(x_i-r), ..., e(x_i), ..., e(x_i+r))
//
// Beyond the ends of a sentence the embedding is 0.
type wordNetwork struct {
	words, vocabulary, dimensions, reach int // reach is r

	weights    []float64 // embeddings [vocabulary × dimensions], then those of g
	embeddings blas64.General
	g          lab.Perceptron
}

var (
	_ energyNetwork = (*wordNetwork)(nil)
	_ slotNetwork   = (*wordNetwork)(nil)
)

func newWordNetwork(words, vocabulary, dimensions, reach, hidden int) *wordNetwork {
	sizes := []int{(2*reach + 1) * dimensions, hidden, 1}
	n := vocabulary * dimensions
	w := make([]float64, n+lab.WeightsOf(sizes))
	return &wordNetwork{words, vocabulary, dimensions, reach, w, lab.Matrix(vocabulary, dimensions, w[:n]),
		lab.Perceptron{Sizes: sizes, Weights: w[n:]}}
}

func (n *wordNetwork) Weights() int { return len(n.weights) }

// Initialise draws weights that keep units near 1, and biases of 0.
func (n *wordNetwork) Initialise(r *rand.Rand, weights []float64) {
	first := len(n.embeddings.Data)
	copy(weights, targets.Normals(r, first, 1))
	clear(weights[first:])
	for k := range len(n.g.Sizes) - 1 {
		layer, _ := n.g.Layer(k, weights[first:])
		copy(layer.Data, targets.Normals(r, len(layer.Data), 1/math.Sqrt(float64(n.g.Sizes[k]))))
	}
}

func (n *wordNetwork) Set(weights []float64) { copy(n.weights, weights) }

// embedding returns a word's row of rows shaped as embeddings.
func (n *wordNetwork) embedding(in []float64, word int) []float64 {
	return in[word*n.dimensions : (word+1)*n.dimensions]
}

// window writes the embeddings that g sees about a slot of a sentence.
func (n *wordNetwork) window(sentence []int, slot int, out []float64) {
	clear(out)
	for k := range 2*n.reach + 1 {
		at := slot + k - n.reach
		if at >= 0 && at < n.words {
			copy(out[k*n.dimensions:], n.embedding(n.embeddings.Data, sentence[at]))
		}
	}
}

func (n *wordNetwork) forward(states []int) []blas64.General {
	wide := n.g.Sizes[0]
	inputs := lab.NewMatrix(len(states), wide)
	for i := range states {
		first := i / n.words * n.words
		n.window(states[first:first+n.words], i-first, inputs.Data[i*wide:(i+1)*wide])
	}
	return n.g.Forward(inputs)
}

func (n *wordNetwork) Energies(_ context.Context, states []int, energy []float64) error {
	n.sum(n.forward(states), energy)
	return nil
}

func (n *wordNetwork) sum(units []blas64.General, energy []float64) {
	for c := range energy {
		energy[c] = floats.Sum(units[2].Data[c*n.words : (c+1)*n.words])
	}
}

// byEmbedding returns the derivatives of seed times f by the embeddings at all
// slots, [states · words × dimensions].
func (n *wordNetwork) byEmbedding(units []blas64.General, seed blas64.General) blas64.General {
	below := n.g.Backward(units, seed, nil)
	d := lab.NewMatrix(below.Rows, n.dimensions)
	for i := range below.Rows {
		slot := i % n.words
		for k := range 2*n.reach + 1 {
			at := slot + k - n.reach
			if at >= 0 && at < n.words {
				from := below.Data[i*below.Cols+k*n.dimensions : i*below.Cols+(k+1)*n.dimensions]
				floats.Add(n.embedding(d.Data, i+at-slot), from)
			}
		}
	}
	return d
}

func seeds(rows int, x float64) blas64.General {
	s := lab.NewMatrix(rows, 1)
	floats.AddConst(x, s.Data)
	return s
}

// SlotGradient continues the embedding of a slot along the indicators of its
// words.
func (n *wordNetwork) SlotGradient(_ context.Context, states []int, energy, gradient []float64) error {
	units := n.forward(states)
	n.sum(units, energy)
	clear(gradient)
	lab.Multiply(blas.NoTrans, blas.Trans, n.byEmbedding(units, seeds(len(states), 1)), n.embeddings,
		lab.Matrix(len(states), n.vocabulary, gradient))
	return nil
}

func (n *wordNetwork) WeightGradient(_ context.Context, states []int, scale float64, gradient []float64) error {
	units := n.forward(states)
	seed := seeds(len(states), scale/float64(len(states)/n.words))
	d := n.byEmbedding(units, seed)
	for i, word := range states {
		floats.Add(n.embedding(gradient, word), n.embedding(d.Data, i))
	}
	n.g.Backward(units, seed, gradient[len(n.embeddings.Data):])
	return nil
}

// SlotEnergies evaluates only the windows that see the slot.
func (n *wordNetwork) SlotEnergies(_ context.Context, states []int, slots []int, energy []float64) error {
	wide := n.g.Sizes[0]
	clear(energy)
	for c, slot := range slots {
		sentence := states[c*n.words : (c+1)*n.words]
		from := max(slot-n.reach, 0)
		centres := min(slot+n.reach+1, n.words) - from
		inputs := lab.NewMatrix(centres*n.vocabulary, wide)
		for i := range centres {
			seen := make([]float64, wide)
			n.window(sentence, from+i, seen)
			own := (slot - from - i + n.reach) * n.dimensions
			for v := range n.vocabulary {
				row := inputs.Data[(i*n.vocabulary+v)*wide : (i*n.vocabulary+v+1)*wide]
				copy(row, seen)
				copy(row[own:], n.embedding(n.embeddings.Data, v))
			}
		}
		out := energy[c*n.vocabulary : (c+1)*n.vocabulary]
		g := n.g.Forward(inputs)[2].Data
		for i := range centres {
			floats.Add(out, g[i*n.vocabulary:(i+1)*n.vocabulary])
		}
	}
	return nil
}
