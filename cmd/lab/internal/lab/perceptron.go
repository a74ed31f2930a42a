package lab

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
)

// Matrix makes a matrix of data, row by row.
func Matrix(rows, columns int, data []float64) blas64.General {
	return blas64.General{Rows: rows, Cols: columns, Stride: columns, Data: data}
}

func NewMatrix(rows, columns int) blas64.General {
	return Matrix(rows, columns, make([]float64, rows*columns))
}

// Multiply adds the product of a and b, each perhaps transposed, to c. For a
// column it avoids Gemm, which is slow.
func Multiply(ta, tb blas.Transpose, a, b, c blas64.General) {
	vector := func(m blas64.General) blas64.Vector { return blas64.Vector{N: len(m.Data), Inc: 1, Data: m.Data} }
	switch {
	case c.Cols == 1:
		blas64.Gemv(ta, 1, a, vector(b), 1, vector(c))
	case a.Cols == 1 && ta == blas.NoTrans:
		blas64.Ger(1, vector(a), vector(b), c)
	default:
		blas64.Gemm(ta, tb, 1, a, b, 1, c)
	}
}

// Perceptron is a network of linear layers with tanh between them. A layer has
// weights [from × to] and biases.
type Perceptron struct {
	Sizes   []int // numbers of inputs, of units of each hidden layer, and of outputs
	Weights []float64
}

func WeightsOf(sizes []int) (n int) {
	for k, to := range sizes[1:] {
		n += (sizes[k] + 1) * to
	}
	return n
}

// Layer returns the weights and biases of layer k within in: the perceptron's
// own, or a gradient of the same layout.
func (p Perceptron) Layer(k int, in []float64) (weights blas64.General, biases []float64) {
	first := WeightsOf(p.Sizes[:k+1])
	from := p.Sizes[k]
	to := p.Sizes[k+1]
	return Matrix(from, to, in[first:first+from*to]), in[first+from*to : first+(from+1)*to]
}

// Forward returns each layer's units, from inputs [examples × inputs] on.
func (p Perceptron) Forward(inputs blas64.General) []blas64.General {
	units := []blas64.General{inputs}
	for k, to := range p.Sizes[1:] {
		weights, biases := p.Layer(k, p.Weights)
		out := NewMatrix(inputs.Rows, to)
		for i := range inputs.Rows {
			copy(out.Data[i*to:], biases)
		}
		Multiply(blas.NoTrans, blas.NoTrans, units[k], weights, out)
		if k+2 < len(p.Sizes) {
			for i, x := range out.Data {
				// tanh; math.Tanh differs in the last bits from what stored results have.
				out.Data[i] = 1 - 2/(math.Exp(2*x)+1)
			}
		}
		units = append(units, out)
	}
	return units
}

// Backward adds the derivatives of Σ seed · outputs by the weights to gradient.
// If gradient is nil, it instead returns the derivatives by the inputs.
func (p Perceptron) Backward(units []blas64.General, seed blas64.General, gradient []float64) blas64.General {
	for k := len(p.Sizes) - 2; k >= 0; k-- {
		if gradient != nil {
			weights, biases := p.Layer(k, gradient)
			Multiply(blas.Trans, blas.NoTrans, units[k], seed, weights)
			for i := range seed.Rows {
				floats.Add(biases, seed.Data[i*seed.Cols:(i+1)*seed.Cols])
			}
		}
		if gradient != nil && k == 0 {
			break
		}
		weights, _ := p.Layer(k, p.Weights)
		below := NewMatrix(seed.Rows, p.Sizes[k])
		Multiply(blas.NoTrans, blas.Trans, seed, weights, below)
		for i, x := range units[k].Data {
			if k > 0 {
				below.Data[i] *= 1 - x*x
			}
		}
		seed = below
	}
	return seed
}
