package lab

import "math"

// Adam holds the two moments of a parameter vector (Kingma and Ba, 2015, with
// their β₁ = 0.9, β₂ = 0.999).
type Adam struct{ First, Second []float64 }

// NewAdam makes the moments of n parameters, which are 0.
func NewAdam(n int) Adam { return Adam{make([]float64, n), make([]float64, n)} }

// Ascend moves the parameters along the gradient; update counts from 1.
func (a *Adam) Ascend(parameters, gradient []float64, rate float64, update int) {
	const beta1, beta2, epsilon = 0.9, 0.999, 1e-8
	correct1 := 1 - math.Pow(beta1, float64(update))
	correct2 := 1 - math.Pow(beta2, float64(update))
	for i, g := range gradient {
		a.First[i] += (1 - beta1) * (g - a.First[i])
		a.Second[i] += (1 - beta2) * (g*g - a.Second[i])
		parameters[i] += rate * (a.First[i] / correct1) / (math.Sqrt(a.Second[i]/correct2) + epsilon)
	}
}
