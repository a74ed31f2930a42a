// p-NCG and GwL are the discrete Langevin proposal with the distance of two categories instead of the one-hot 2:
// Du, Amini, Torroba Hennigen, Yu, Eisner, Lee and Cotterell, "Principled Gradient-Based MCMC for Conditional Sampling
// of Text" (ICML 2024). Near-synonyms become near neighbours:
//
//	q_j(v | θ) ∝ exp(log g(exp Δ_j(v)) - d_j(v, θ_j) / (2 α g_j))
//
// with d the p-th power of the p-norm of the embeddings' difference. p-NCG moves all slots at once; GwL (Gibbs with
// Langevin) one slot, chosen uniformly. Both are accepted by Metropolis–Hastings.
//
// Target: π exactly. Step size: α, in units of the distance; on one-hot vectors, at squared distance 2, it is the α of
// the package. Cost: one energy and gradient a step, and the distances of all categories.

package samplers

import (
	"flag"
	"math/rand/v2"

	"infill/internal/logmath"
)

type distanceLangevin struct {
	*dlp
	metric *metric
}

var (
	_ mover     = (*distanceLangevin)(nil)
	_ stepSizer = (*distanceLangevin)(nil)
)

type distanceSettings struct {
	stepSize       positive
	balance        Balance
	preconditioner factors
	oneSlot        bool // GwL
}

func (s *distanceSettings) register(f *flag.FlagSet) {
	f.Var(&s.stepSize, "step-size", "α: a unit of distance costs 1/(2α) nats")
	f.Var(&s.balance, "balance", balanceHelp())
	f.Var(&s.preconditioner, "preconditioner", preconditionerHelp)
}

func (s *distanceSettings) mover(name string, target Target, _ *rand.Rand) (mover, error) {
	t, err := capability[MetricTarget](target, name)
	if err != nil {
		return nil, err
	}
	k, err := newDistanceLangevin(name, t, s, true)
	if err == nil && s.oneSlot {
		one := &gibbsLangevin{distanceLangevin: k}
		k.proposer = one
		return one, nil
	}
	return k, err
}

func newDistanceLangevin(name string, target MetricTarget, s *distanceSettings,
	adjusted bool) (*distanceLangevin, error) {
	inner, err := newDLP(name, target,
		&langevinSettings{stepSize: 1, preconditioner: s.preconditioner, adjusted: adjusted}, nil)
	if err != nil {
		return nil, err
	}
	clear(inner.penalty) // the distances are part of the weights
	k := &distanceLangevin{inner, &metric{s.balance, target, make([]float64, len(inner.penalty))}}
	k.scorer = k.metric
	return k, k.setStepSize(float64(s.stepSize))
}

func (k *distanceLangevin) setStepSize(stepSize float64) error {
	if err := checkStepSize(stepSize); err != nil {
		return err
	}
	k.alpha = stepSize
	for j, g := range k.preconditioner {
		k.metric.price[j] = 1 / (2 * stepSize * g)
	}
	k.revision++
	return nil
}

// metric scores a move by balance and distance.
type metric struct {
	balance Balance
	target  MetricTarget
	price   []float64 // of one unit of distance, in nats, [slots]
}

func (*metric) auxiliary(int, int, []float64) float64 { return 0 }

func (m *metric) logWeights(_ float64, slot, current int, gradient []float64, first int, out []float64) {
	m.target.Distances(slot, current, first, out)
	here, row := gradient[current], gradient[first:first+len(out)]
	for i, g := range row {
		weight := balanced{m.balance}.one(g - here)
		out[i] = weight - m.price[slot]*out[i]
	}
}

// gibbsLangevin is GwL.
type gibbsLangevin struct {
	*distanceLangevin
	slot []int // each chain's, [chains]
}

var (
	_ mover    = (*gibbsLangevin)(nil)
	_ proposer = (*gibbsLangevin)(nil)
)

// grow implements the engine's hook for scratch memory.
func (k *gibbsLangevin) grow(chains int) { k.slot = make([]int, chains) }

func (k *gibbsLangevin) propose(at place, to []int, src source) float64 {
	j := src.index(len(to))
	k.slot[at.chain] = j
	total := at.totals()[j]
	if src.chance(logmath.Sigmoid(total)) {
		to[j] = at.draw(j, src)
	}
	return k.logSlot(at, j, to[j])
}

// logReverse leaves out the slot's own probability, the same both ways.
func (k *gibbsLangevin) logReverse(at place, to []int) float64 {
	j := k.slot[at.chain]
	return k.logSlot(at, j, to[j])
}

func (k *gibbsLangevin) logSlot(at place, j, v int) float64 {
	logq := -logmath.Softplus(at.totals()[j])
	if v != at.position[j] {
		logq += at.logWeight(j, v)
	}
	return logq
}

func pncgEntry() entry {
	return entry{
		Description: Description{
			Name: "p-ncg", Title: "DMALA with the distance of categories as the penalty",
			Paper: "Du et al., Principled Gradient-Based MCMC for Conditional Sampling of Text, ICML 2024",
			Exact: true, Target: onlyExp, Cost: oneForAll, Distances: true, Tunes: "step-size",
			OnText: &OnText{Gradient: "full"},
		},
		settings:   func() settings { return &distanceSettings{stepSize: 1} },
		adaptation: tuneStepSize,
	}
}

func gwlEntry() entry {
	e := pncgEntry()
	e.Name, e.Title = "gwl", "Langevin with the distance of categories as the penalty, one slot a step"
	e.settings = func() settings { return &distanceSettings{stepSize: 1, oneSlot: true} }
	return e
}
