package samplers

// A MetricTarget knows how far apart the categories of a slot are, such as
// the distance of two words' embeddings.
type MetricTarget interface {
	GradientTarget
	// Distances writes the squared distance (or another power of a norm) from
	// category from to the categories first, first+1, ... of a slot.
	Distances(slot, from, first int, distance []float64)
}

// DistanceLangevin is the discrete Langevin proposal with the distance of two
// categories in the place of the one-hot 2: Du, Amini, Torroba Hennigen, Yu,
// Eisner, Lee and Cotterell, "Principled Gradient-Based MCMC for Conditional
// Sampling of Text" (ICML 2024). Near-synonyms become near neighbours:
//
//	q_j(v | θ) ∝ exp(log g(exp Δ_j(v)) - d_j(v, θ_j) / (2 α g_j))
//
// with d the p-th power of the p-norm of the embeddings' difference. p-NCG
// moves all slots at once; GwL (Gibbs with Langevin) one slot, chosen
// uniformly. Both are accepted by Metropolis–Hastings.
//
// Target: π exactly. Step size: α, in units of the distance; on one-hot
// vectors, at squared distance 2, it is the α of the package. Cost: one energy
// and gradient a step, and the distances of all categories.
type DistanceLangevin struct {
	*DLP
	metric *metric
}

var (
	_ Kernel    = (*DistanceLangevin)(nil)
	_ StepSizer = (*DistanceLangevin)(nil)
)

// NewPNCG makes the sampler that moves all slots. It uses StepSize (default
// 1), Balance and Preconditioner of the options; the target must be a
// [MetricTarget].
func NewPNCG(target Target, o Options) (*DistanceLangevin, error) {
	return newPNCG("p-ncg", target, o)
}

func newPNCG(name string, target Target, o Options) (*DistanceLangevin, error) {
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	t, err := capability[MetricTarget](target, name, "distances between categories")
	if err != nil {
		return nil, err
	}
	return newDistanceLangevin(name, t, o, true)
}

func newDistanceLangevin(name string, target MetricTarget, o Options, adjusted bool) (*DistanceLangevin, error) {
	stepSize := o.StepSize
	if stepSize == 0 {
		stepSize = 1
	}
	inner, err := newDLP(name, target, o, adjusted, 1)
	if err != nil {
		return nil, err
	}
	clear(inner.penalty) // the distances are part of the weights
	k := &DistanceLangevin{inner, &metric{o.Balance, target, make([]float64, len(inner.penalty))}}
	k.scorer = k.metric
	return k, k.SetStepSize(stepSize)
}

// SetStepSize implements [StepSizer].
func (k *DistanceLangevin) SetStepSize(stepSize float64) error {
	if err := checkStepSize(stepSize); err != nil {
		return err
	}
	k.stepSize = stepSize
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

// GibbsLangevin is GwL: see [DistanceLangevin].
type GibbsLangevin struct {
	*DistanceLangevin
	slot []int // each chain's, [chains]
}

var (
	_ Kernel   = (*GibbsLangevin)(nil)
	_ proposer = (*GibbsLangevin)(nil)
)

// NewGwL makes the sampler that moves one slot, with the options of [NewPNCG].
func NewGwL(target Target, o Options) (*GibbsLangevin, error) {
	inner, err := newPNCG("gwl", target, o)
	if err != nil {
		return nil, err
	}
	k := &GibbsLangevin{DistanceLangevin: inner}
	inner.proposer = k
	return k, nil
}

// grow implements the engine's hook for scratch memory.
func (k *GibbsLangevin) grow(chains int) { k.slot = make([]int, chains) }

func (k *GibbsLangevin) propose(at place, to []int, src source) float64 {
	j := src.index(len(to))
	k.slot[at.chain] = j
	total := at.totals()[j]
	if src.chance(sigmoid(total)) {
		to[j] = at.draw(j, src)
	}
	return k.logSlot(at, j, to[j])
}

// logReverse leaves out the slot's own probability, the same both ways.
func (k *GibbsLangevin) logReverse(at place, to []int) float64 {
	j := k.slot[at.chain]
	return k.logSlot(at, j, to[j])
}

func (k *GibbsLangevin) logSlot(at place, j, v int) float64 {
	logq := -softplus(at.totals()[j])
	if v != at.position[j] {
		logq += at.logWeight(j, v)
	}
	return logq
}

const distancePaper = "Du et al., Principled Gradient-Based MCMC for Conditional Sampling of Text, ICML 2024"

func pncgEntry() entry {
	return entry{
		Description: Description{
			Name: "p-ncg", Title: "DMALA with the distance of categories as the penalty", Paper: distancePaper,
			Exact: true, Target: onlyExp, Cost: oneForAll, Tunable: true,
		},
		uses:   []option{stepSizeOption, balanceOption, preconditionerOption},
		nature: "it takes the whole gradient of all slots",
		make:   func(t Target, o Options) (Kernel, error) { return NewPNCG(t, o) },
		adapt:  tuneStepSize,
	}
}

func gwlEntry() entry {
	e := pncgEntry()
	e.Name, e.Title = "gwl", "Langevin with the distance of categories as the penalty, one slot a step"
	e.nature = "it takes the whole gradient of one slot"
	e.make = func(t Target, o Options) (Kernel, error) { return NewGwL(t, o) }
	return e
}
