package lab

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"infill/samplers"
)

// tally counts how often each chain was at each category of each slot.
type tally struct {
	of     *distribution
	wide   int
	counts []int64 // [chains × slots × K]
	steps  int
}

func newTally(d *distribution, chains int) *tally {
	categories := d.target.Categories()
	wide := slices.Max(categories)
	return &tally{of: d, wide: wide, counts: make([]int64, chains*len(categories)*wide)}
}

func (t *tally) add(positions []int) {
	t.steps++
	for i, v := range positions {
		t.counts[i*t.wide+v]++
	}
}

// mean is that of an observable so far, of a chain.
func (t *tally) mean(chain, observable int) float64 {
	o, sum := t.of.observables[observable], 0.0
	first := (chain*len(t.of.target.Categories()) + o.slot) * t.wide
	for v, x := range o.value {
		sum += x * float64(t.counts[first+v])
	}
	return sum / float64(t.steps)
}

// logRMSE is the log root mean square error of the running means against the
// truth; its standard error is that of the mean square, by the delta method.
func (t *tally) logRMSE() (value, standardError float64) {
	squares := make([]float64, len(t.counts)/(t.wide*len(t.of.target.Categories())))
	for c := range squares {
		for i, want := range t.of.truth.means {
			d := t.mean(c, i) - want
			squares[c] += d * d / float64(len(t.of.truth.means))
		}
	}
	m, e := meanAndError(squares)
	return math.Log(m) / 2, e / (2 * m)
}

// maxSeries bounds the observables whose effective sample size is taken.
const maxSeries = 64

// sampleSize is the effective sample size of the kept steps of one chain.
type sampleSize struct {
	// Kept steps of each chain, and observables it is taken of: all, or 64 spread evenly where there are more.
	Kept, Observables int
	// Mean over observables and chains; its error is between chains, NaN of a single one.
	Mean, StandardError float64
	// Min and Max are over the observables, each a mean over chains.
	Min, Max float64
	// Still counts the pairs of chain and observable that never changed, which are taken as one draw.
	Still int
	// PaperMedian is the median over observables, of the first chain, by the
	// definition of the discrete Langevin paper's code.
	PaperMedian float64
	// RHat is the largest split R-hat of these observables: well above 1, the chains disagree, and an ESS of single
	// chains overstates. It is not finite where some chain stands still.
	RHat float64
}

// effectiveSampleSize takes the ESS of the states of each chain, [chains][steps × slots], from the step first on.
func effectiveSampleSize(d *distribution, states [][]uint8, first int) *sampleSize {
	slots := len(d.target.Categories())
	kept := len(states[0])/slots - first
	e := &sampleSize{Kept: kept}
	var chosen []observable
	for i := range min(maxSeries, len(d.observables)) {
		chosen = append(chosen, d.observables[i*len(d.observables)/min(maxSeries, len(d.observables))])
	}
	e.Observables = len(chosen)
	byChain := make([]float64, len(states))
	byObservable := make([]float64, len(chosen))
	paper := make([]float64, len(chosen))
	draws := make([][]float64, len(states))
	for c := range draws {
		draws[c] = make([]float64, kept)
	}
	for i, o := range chosen {
		for c, chain := range states {
			for t := range draws[c] {
				draws[c][t] = o.value[chain[(first+t)*slots+o.slot]]
			}
			size := samplers.EffectiveSampleSize(draws[c : c+1])
			if math.IsNaN(size) {
				size = 1
				e.Still++
			}
			byChain[c] += size / float64(len(chosen))
			byObservable[i] += size / float64(len(states))
		}
		paper[i] = paperSampleSize(draws[0])
		e.RHat = math.Max(e.RHat, samplers.SplitRHat(draws))
	}
	e.Mean, e.StandardError = meanAndError(byChain)
	slices.Sort(paper)
	e.Min, e.Max = slices.Min(byObservable), slices.Max(byObservable)
	e.PaperMedian = (paper[(len(paper)-1)/2] + paper[len(paper)/2]) / 2
	return e
}

// meanAndError is a mean with its standard error, NaN of a single value.
func meanAndError(values []float64) (mean, standardError float64) {
	mean, e := samplers.MeanAndError(values)
	if e == nil {
		return mean, math.NaN()
	}
	return mean, *e
}

// paperSampleSize is N / (1 + 2 Σ_k (1 - k/N) ρ_k) up to the first negative autocorrelation, which is what the code of
// the GWG and discrete Langevin papers calls; 1 for draws that are all the same.
func paperSampleSize(draws []float64) float64 {
	n := len(draws)
	mean := stat.Mean(draws, nil)
	covariance := func(lag int) float64 {
		sum := 0.0
		for t, v := range draws[lag:] {
			sum += (v - mean) * (draws[t] - mean)
		}
		return sum / float64(n-lag)
	}
	variance := covariance(0)
	if !(variance > 0) {
		return 1
	}
	tau := 1.0
	for lag := 1; lag < n; lag++ {
		rho := covariance(lag) / variance
		if rho < 0 {
			break
		}
		tau += 2 * (1 - float64(lag)/float64(n)) * rho
	}
	return float64(n) / tau
}

// checkpoints are the steps at which a curve is taken: up to 50 spread evenly
// and up to 50 evenly in the logarithm, and the last.
func checkpoints(steps int) []int {
	const each = 50
	var list []int
	for i := range each {
		list = append(list,
			(i+1)*steps/each,
			int(math.Round(math.Pow(float64(steps), float64(i)/each))))
	}
	slices.Sort(list)
	list = slices.Compact(list)
	if list[0] == 0 {
		list = list[1:]
	}
	return list
}
