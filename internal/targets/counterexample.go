package targets

import (
	"context"
	"math"
)

// CounterExample is the one-slot distribution of the discrete Langevin paper, section 5.2: U(θ) = a θ² + b θ + 2ε
// sin(θπ/2) with θ ∈ {-1, 1}. The sine moves the probabilities and not the derivative, which is zero there for a = b =
// 0: no gradient-based proposal can see it.
type CounterExample struct{ a, b, epsilon float64 }

// NewCounterExample makes the target.
func NewCounterExample(a, b, epsilon float64) *CounterExample {
	return &CounterExample{a, b, epsilon}
}

func (t *CounterExample) Categories() []int { return []int{2} }

func (t *CounterExample) Values() [][]float64 { return [][]float64{{-1, 1}} }

func (t *CounterExample) Energy(_ context.Context, states []int, energy []float64) error {
	for c, v := range states {
		x := Spin(v)
		energy[c] = t.a*x*x + t.b*x + 2*t.epsilon*math.Sin(x*math.Pi/2)
	}
	return nil
}

// EnergyDerivative writes U and dU/dθ.
func (t *CounterExample) EnergyDerivative(ctx context.Context, states []int, energy, derivative []float64) error {
	for c, v := range states {
		x := Spin(v)
		derivative[c] = 2*t.a*x + t.b + t.epsilon*math.Pi*math.Cos(x*math.Pi/2)
	}
	return t.Energy(ctx, states, energy)
}
