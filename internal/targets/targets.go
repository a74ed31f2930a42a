// Package targets holds small distributions. Tests prove samplers on them, and
// the laboratory compares samplers on them. They implement the target
// interfaces of package samplers, which this package does not import.
//
// Shapes follow package samplers: states is [chains × slots], energy [chains],
// gradient [chains × slots × K] with K the largest number of categories, all
// row-major. Energies are in nats.
package targets

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/combin"

	"infill/internal/logmath"
)

// MaxStates is the largest number of states that [Enumerate] lists.
const MaxStates = 1 << 22

// An Energy has the methods of samplers.Target that an enumeration calls.
type Energy interface {
	Categories() []int
	Energy(ctx context.Context, states []int, energy []float64) error
}

// An Enumeration lists every state of a target with its probability. The
// states count up, slot 0 slowest: i, written in mixed radix, gives the
// categories of state i.
type Enumeration struct {
	categories []int
	// States is [N × slots].
	States []int
	// Energy is U of each state, [N], in nats.
	Energy []float64
	// Probability is π of each state, [N].
	Probability []float64
	// LogNormaliser is log Σ exp(U).
	LogNormaliser float64
}

// Enumerate evaluates every state of a target. It returns an error for more
// than [MaxStates] states, for a NaN or +Inf energy, and for a target that
// forbids every state.
func Enumerate(ctx context.Context, target Energy) (*Enumeration, error) {
	categories := target.Categories()
	n, err := count(categories)
	if err != nil {
		return nil, err
	}
	e := &Enumeration{
		categories:  categories,
		States:      make([]int, 0, n*len(categories)),
		Energy:      make([]float64, n),
		Probability: make([]float64, n),
	}
	state := make([]int, len(categories))
	for i := range n {
		e.States = append(e.States, combin.SubFor(state, i, categories)...)
	}
	if err := target.Energy(ctx, e.States, e.Energy); err != nil {
		return nil, err
	}
	for i, u := range e.Energy {
		if math.IsNaN(u) || math.IsInf(u, 1) {
			return nil, fmt.Errorf("state %v has energy %v: it has no probability", e.State(i), u)
		}
	}
	e.LogNormaliser = logmath.LogSumExp(e.Energy)
	if math.IsInf(e.LogNormaliser, -1) {
		return nil, errors.New("every state is forbidden: nothing to sample")
	}
	for i, u := range e.Energy {
		e.Probability[i] = math.Exp(u - e.LogNormaliser)
	}
	return e, nil
}

func (e *Enumeration) Len() int { return len(e.Energy) }

// State returns state number i, [slots].
func (e *Enumeration) State(i int) []int {
	slots := len(e.categories)
	return e.States[i*slots : (i+1)*slots]
}

func (e *Enumeration) Index(state []int) int { return combin.IdxFor(state, e.categories) }

func (e *Enumeration) Mean(f func(state []int) float64) float64 {
	mean := 0.0
	for i, p := range e.Probability {
		mean += p * f(e.State(i))
	}
	return mean
}

// count returns the number of states, or an error if there are too many to list.
func count(categories []int) (int, error) {
	n := 1
	for _, k := range categories {
		if k < 1 || n > MaxStates/k {
			return 0, fmt.Errorf("slots of %v categories have more than %d states: too many to list", categories,
				MaxStates)
		}
		n *= k
	}
	return n, nil
}

// CounterExample is the one-slot distribution of the discrete Langevin paper,
// section 5.2: U(θ) = a θ² + b θ + 2ε sin(θπ/2) with θ ∈ {-1, 1}. The sine
// changes the probabilities, but not the derivative at -1 and 1.
type CounterExample struct{ A, B, Epsilon float64 }

func (CounterExample) Categories() []int { return []int{2} }

func (CounterExample) Values() [][]float64 { return [][]float64{{-1, 1}} }

func (t CounterExample) Energy(_ context.Context, states []int, energy []float64) error {
	for c, v := range states {
		x := Spin(v)
		energy[c] = t.A*x*x + t.B*x + 2*t.Epsilon*math.Sin(x*math.Pi/2)
	}
	return nil
}

func (t CounterExample) EnergyDerivative(ctx context.Context, states []int, energy, derivative []float64) error {
	for c, v := range states {
		x := Spin(v)
		derivative[c] = 2*t.A*x + t.B + t.Epsilon*math.Pi*math.Cos(x*math.Pi/2)
	}
	return t.Energy(ctx, states, energy)
}
