// This file has DULA and DMALA over numbers instead of one-hot vectors: the
// discrete Langevin proposal by equation 2 of Zhang, Liu and Liu (ICML 2022),
// with one derivative per slot:
//
//	q_j(v | θ) ∝ exp(log g(exp(U'_j(θ) (v - θ_j))) - (v - θ_j)² / (2 α g_j))
//
// On slots of two categories with the values 0 and 1, this is the binary form
// of appendix A, algorithm 2: a slot flips with probability
// sigmoid(-½ U'_j (2θ_j - 1) - 1/(2α)). On such slots, dula and dmala with
// twice the α are the same chains.
//
// DULA (unadjusted) has its own stationary law; DMALA targets π exactly. Step
// size: α of the paper's equation 2, where two neighbouring integers are at
// squared distance 1, half that of two one-hot vectors. On binary slots 0 and 1
// this α is half the α of dula and dmala with the same penalty. Cost: one
// energy and derivative a step.

package samplers

import (
	"context"
	"math/rand/v2"
)

// ordinal is a discrete Langevin kernel. Its scores contain the penalty, by the
// distance of two categories' numbers.
type ordinal struct {
	*dlp
	scores *ordinalScores
}

var (
	_ mover     = (*ordinal)(nil)
	_ stepSizer = (*ordinal)(nil)
)

func newOrdinal(name string, target Target, stepSize float64, balance Balance, preconditioner []float64,
	adjusted bool) (*ordinal, error) {
	line, err := capability[OrdinalTarget](target, name)
	if err != nil {
		return nil, err
	}
	inner, err := newDLP(name, &onLine{OrdinalTarget: line},
		langevin{stepSize: 1, balance: power(0.5), preconditioner: preconditioner, adjusted: adjusted}, nil)
	if err != nil {
		return nil, err
	}
	clear(inner.penalty) // the scores contain the penalty
	k := &ordinal{inner, &ordinalScores{balance.must(), line.Values(), make([]float64, len(inner.penalty))}}
	k.scorer = k.scores
	return k, k.SetStepSize(stepSize)
}

// SetStepSize sets α.
func (k *ordinal) SetStepSize(stepSize float64) error {
	if err := checkStepSize(stepSize); err != nil {
		return err
	}
	k.alpha = stepSize
	for j, g := range k.preconditioner {
		k.scores.price[j] = 1 / (2 * stepSize * g)
	}
	k.revision++
	return nil
}

// ordinalScores weighs a move by the balance, less its squared distance.
type ordinalScores struct {
	balance weighing
	values  [][]float64
	price   []float64 // penalty for a squared distance of 1, in nats, [slots]
}

func (*ordinalScores) auxiliary(int, int, []float64) float64 { return 0 }

func (o *ordinalScores) logWeights(_ float64, slot, current int, gradient []float64, first int, out []float64) {
	here := gradient[current]
	row := gradient[first : first+len(out)]
	values := o.values[slot]
	for i, g := range row {
		d := values[first+i] - values[current]
		out[i] = balanced{o.balance}.one(g-here) - o.price[slot]*d*d
	}
}

// onLine gives an ordinal target a gradient over categories: at category
// v of slot j, with the number x_v, it is U'_j·x_v. So differences are
// U'_j (x_v - x_θj).
type onLine struct {
	OrdinalTarget
	derivative []float64
}

var _ GradientTarget = (*onLine)(nil)

func (t *onLine) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	if cap(t.derivative) < len(states) {
		t.derivative = make([]float64, len(states))
	}
	t.derivative = t.derivative[:len(states)]
	if err := t.EnergyDerivative(ctx, states, energy, t.derivative); err != nil {
		return err
	}
	values := t.Values()
	wide := width(t.Categories())
	for i, d := range t.derivative {
		for v, x := range values[i%len(values)] {
			gradient[i*wide+v] = d * x
		}
	}
	return nil
}

// OrdinalDULA is DULA over numbers. It is the papers' binary form, too.
type OrdinalDULA struct {
	// StepSize is α: the squared distance d² of two numbers costs d²/(2α) nats.
	StepSize       float64   `option:"step-size" default:"1" exclusiveMinimum:"0" infinite:"true"`
	Balance        Balance   `option:"balance" default:"sqrt"`
	Preconditioner []float64 `option:"preconditioner" between:"/" exclusiveMinimum:"0"`
}

// OrdinalDMALA is DMALA over numbers, with the settings of [OrdinalDULA]. A warm-up
// adapts the step size if it is zero.
type OrdinalDMALA OrdinalDULA

var _, _ Sampler = OrdinalDULA{}, OrdinalDMALA{}

func (s OrdinalDULA) Kernel(target Target, _ *rand.Rand) (Kernel, error) {
	return newKernel(s, target, untuned, func(s OrdinalDULA) (*ordinal, error) {
		return newOrdinal("dula-ordinal", target, s.StepSize, s.Balance, s.Preconditioner, false)
	})
}

func (s OrdinalDMALA) Kernel(target Target, _ *rand.Rand) (Kernel, error) {
	return newKernel(s, target, unlessSaid(s.StepSize != 0, tuneStepSize), func(s OrdinalDMALA) (*ordinal, error) {
		return newOrdinal("dmala-ordinal", target, s.StepSize, s.Balance, s.Preconditioner, true)
	})
}

func (OrdinalDULA) Describe() Description {
	return Description{
		Name: "dula-ordinal", Title: "discrete unadjusted Langevin over numbers; its binary form",
		Paper:  langevinPaper,
		Target: nearExp, Cost: "1 energy and derivative",
	}
}

func (OrdinalDMALA) Describe() Description {
	return Description{
		Name: "dmala-ordinal", Title: "discrete Metropolis-adjusted Langevin over numbers; its binary form",
		Paper: langevinPaper,
		Exact: true, Target: onlyExp, Cost: "1 energy and derivative",
	}
}
