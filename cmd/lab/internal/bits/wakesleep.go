package bits

import (
	"context"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"

	"infill/cmd/lab/internal/lab"
)

// wakeSleep names the wake-sleep algorithm (Hinton, Dayan, Frey and Neal 1995).
// It has two objectives. Awake, p follows the gradient of E_q[f], as with the
// estimators. Asleep, q follows the gradient of another mean, over images that
// the model dreams:
//
//	E_p[Σ_t log q(b_t | b_t-1)]
//
// So it estimates no gradient of E_q[f] by q's weights.
const wakeSleep = "wake-sleep"

// dreams is the sleep phase.
type dreams struct{ *beliefs }

var _ ascent = dreams{}

// AddGradient dreams as many images as the pass has.
func (d dreams) AddGradient(_ context.Context, p *pass, r *rand.Rand, gradient []float64) error {
	bits := d.dream(p.bits[0].Rows, r)
	left := gradient
	for t, up := range d.up {
		units := up.Forward(bits[t])
		left = addMean(up, units, residuals(bits[t+1], units[len(units)-1]), left)
	}
	return nil
}

// dream draws images and the bits of all layers from p, as b_0 to b_T.
func (d dreams) dream(rows int, r *rand.Rand) []blas64.General {
	bits := make([]blas64.General, len(d.down)+1)
	draw := func(logits blas64.General) blas64.General {
		b := lab.NewMatrix(logits.Rows, logits.Cols)
		drawBits(logits.Data, r, b.Data)
		return b
	}
	bits[len(d.down)] = draw(lab.Matrix(rows, len(d.prior), slices.Repeat(d.prior, rows)))
	for t := len(d.down) - 1; t >= 0; t-- {
		units := d.down[t].Forward(bits[t+1])
		bits[t] = draw(units[len(units)-1])
	}
	return bits
}
