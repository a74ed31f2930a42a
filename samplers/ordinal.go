// Ordinal DULA and DMALA are the discrete Langevin proposal over numbers instead of one-hot vectors: equation 2 of
// Zhang, Liu and Liu (ICML 2022), with one derivative per slot:
//
//	q_j(v | θ) ∝ exp(log g(exp(U'_j(θ) (v - θ_j))) - (v - θ_j)² / (2 α g_j))
//
// On slots of two categories with the values 0 and 1 it is the binary form of
// appendix A, algorithm 2: a slot flips with probability sigmoid(-½ U'_j (2θ_j
// - 1) - 1/(2α)). On other binary slots, dula and dmala with twice the α are the same chains.
//
// DULA (unadjusted) has its own stationary law; DMALA targets π exactly. Step size: α of the paper's equation 2, where
// two neighbouring integers are at squared distance 1, half that of two one-hot vectors: on binary slots 0 and 1 this α
// is half the α of dula and dmala that has the same penalty. Cost: one energy and derivative a step.

package samplers

import (
	"context"
	"flag"
	"math/rand/v2"
)

type ordinalSettings struct {
	distanceSettings
	adjusted bool
}

func (s *ordinalSettings) register(f *flag.FlagSet) {
	s.distanceSettings.register(f)
	f.Lookup("step-size").Usage = "α: the squared distance d² of two numbers costs d²/(2α) nats"
}

func (s *ordinalSettings) mover(name string, target Target, _ *rand.Rand) (mover, error) {
	ordinal, err := capability[OrdinalTarget](target, name)
	if err != nil {
		return nil, err
	}
	return newDistanceLangevin(name, &onLine{OrdinalTarget: ordinal}, &s.distanceSettings, s.adjusted)
}

// onLine lays an ordinal target's categories on a line: the gradient of category v is U'_j·v, so that differences are
// U'_j (v - θ_j), and the distances are squared differences of values.
type onLine struct {
	OrdinalTarget
	derivative []float64
}

var _ MetricTarget = (*onLine)(nil)

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

func (t *onLine) Distances(slot, from, first int, distance []float64) {
	values := t.Values()[slot]
	for i := range distance {
		d := values[first+i] - values[from]
		distance[i] = d * d
	}
}

func ordinalDULAEntry() entry {
	return entry{
		Description: Description{
			Name: "dula-ordinal", Title: "discrete unadjusted Langevin over numbers; its binary form",
			Paper:  langevinPaper,
			Target: nearExp, Cost: "1 energy and derivative",
		},
		settings: func() settings { return &ordinalSettings{distanceSettings: distanceSettings{stepSize: 1}} },
	}
}

func ordinalDMALAEntry() entry {
	e := ordinalDULAEntry()
	e.Name, e.Title = "dmala-ordinal", "discrete Metropolis-adjusted Langevin over numbers; its binary form"
	e.Exact, e.Target, e.Tunes, e.adaptation = true, onlyExp, "step-size", tuneStepSize
	e.settings = func() settings { return &ordinalSettings{distanceSettings{stepSize: 1}, true} }
	return e
}
