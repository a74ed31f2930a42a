package chains

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"infill/samplers"
)

// tally counts how often each chain was in each category of each slot.
type tally struct {
	of     *distribution
	wide   int
	counts []int64 // [chains × slots × K]
	steps  int
}

func newTally(d *distribution, chains int) *tally {
	categories := d.Target.Categories()
	wide := slices.Max(categories)
	return &tally{of: d, wide: wide, counts: make([]int64, chains*len(categories)*wide)}
}

func (t *tally) add(positions []int) {
	t.steps++
	for i, v := range positions {
		t.counts[i*t.wide+v]++
	}
}

func (t *tally) mean(chain, observable int) float64 {
	o := t.of.observables[observable]
	sum := 0.0
	first := (chain*len(t.of.Target.Categories()) + o.slot) * t.wide
	for v, x := range o.value {
		sum += x * float64(t.counts[first+v])
	}
	return sum / float64(t.steps)
}

// logRMSE returns the log root mean square error of the running means, and by
// the delta method its standard error.
func (t *tally) logRMSE() (value, standardError float64) {
	squares := make([]float64, len(t.counts)/(t.wide*len(t.of.Target.Categories())))
	for c := range squares {
		for i, want := range t.of.truth.means {
			d := t.mean(c, i) - want
			squares[c] += d * d / float64(len(t.of.truth.means))
		}
	}
	m, e := samplers.MeanAndError(squares)
	return math.Log(m) / 2, e / (2 * m)
}

// maxSeries bounds the observables with an effective sample size.
const maxSeries = 64

// sampleSize is the effective sample size of the kept steps of a chain.
type sampleSize struct {
	Kept, Observables   int     // kept steps of each chain; number of observables, or 64 of them evenly spread
	Mean, StandardError float64 // over observables and chains; the error is between chains, and NaN for one chain
	Min                 float64 // smallest over the observables, each averaged over chains
	Still               int     // pairs of chain and observable that never changed; each counts as one draw
	RHat                float64 // the largest split R-hat; not finite if a chain never changed
}

// effectiveSampleSize computes the ESS of each chain's states, [chains][steps ×
// slots], from step first on.
func effectiveSampleSize(d *distribution, states [][]uint8, first int) *sampleSize {
	slots := len(d.Target.Categories())
	kept := len(states[0])/slots - first
	e := &sampleSize{Kept: kept}
	var chosen []observable
	for i := range min(maxSeries, len(d.observables)) {
		chosen = append(chosen, d.observables[i*len(d.observables)/min(maxSeries, len(d.observables))])
	}
	e.Observables = len(chosen)
	byChain := make([]float64, len(states))
	byObservable := make([]float64, len(chosen))
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
		e.RHat = math.Max(e.RHat, samplers.SplitRHat(draws))
	}
	e.Mean, e.StandardError = samplers.MeanAndError(byChain)
	e.Min = slices.Min(byObservable)
	return e
}

// checkpoints returns the steps of a curve: up to 50 spread evenly, up to 50
// evenly in the logarithm, and the last.
func checkpoints(steps int) []int {
	const each = 50
	var list []int
	for i := range each {
		list = append(list, (i+1)*steps/each, int(math.Round(math.Pow(float64(steps), float64(i)/each))))
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(step int) bool { return step == 0 })
}

// binarySet holds states of binary slots as bits, to compare many of them.
type binarySet struct {
	slots, words int
	bits         []uint64  // [states × words]
	within       []float64 // mean of the kernel between each state and all states
}

// newBinarySet packs states [n × slots] of zeros and ones.
func newBinarySet(slots int, states []int) *binarySet {
	s := &binarySet{slots: slots, words: (slots + 63) / 64}
	for first := 0; first < len(states); first += slots {
		row := make([]uint64, s.words)
		for j, v := range states[first : first+slots] {
			row[j/64] |= uint64(v) << (j % 64)
		}
		s.bits = append(s.bits, row...)
	}
	s.within = s.rowMeans(s)
	return s
}

func (s *binarySet) len() int { return len(s.bits) / s.words }

// rowMeans returns, for each state x of s, the mean of k(x, y) =
// exp(-Hamming(x, y)/slots) over all y of other. The code of the GWG and
// discrete Langevin papers has this kernel.
func (s *binarySet) rowMeans(other *binarySet) []float64 {
	rows := make([]float64, s.len())
	for i := range rows {
		for j := range other.len() {
			d := 0
			for w := range s.words {
				d += bits.OnesCount64(s.bits[i*s.words+w] ^ other.bits[j*s.words+w])
			}
			rows[i] += math.Exp(-float64(d) / float64(s.slots))
		}
		rows[i] /= float64(other.len())
	}
	return rows
}

// squaredDiscrepancy returns the squared maximum mean discrepancy of two sets,
// the V-statistic mean k(x,x') + mean k(y,y') - 2 mean k(x,y). The means
// include k(x,x), so two sets drawn from one law have a mean above 0. The
// papers report the logarithm of the value. The standard error is that of the
// jackknife over the states x, given y.
func squaredDiscrepancy(x, y *binarySet) (value, standardError float64) {
	n := float64(x.len())
	self := stat.Mean(y.within, nil)
	across := x.rowMeans(y)
	sumWithin := floats.Sum(x.within)
	sumAcross := floats.Sum(across)
	left := make([]float64, len(across))
	for i := range left {
		left[i] = (sumWithin*n-2*x.within[i]*n+1)/((n-1)*(n-1)) + self - 2*(sumAcross-across[i])/(n-1)
	}
	// Both means round differently, so equal sets could give less than 0. For
	// one state, the error is NaN.
	return math.Max(sumWithin/n+self-2*sumAcross/n, 0), math.Sqrt(stat.PopVariance(left, nil) * (n - 1))
}

// reference holds states to measure the mean discrepancy from.
type reference struct {
	method  string
	samples int
	set     *binarySet
	sample  func(n int, label string) ([]int, error)
}

// discrepancy returns states' squared mean discrepancy from the reference.
func (r *reference) discrepancy(states []int) (value, standardError float64) {
	return squaredDiscrepancy(newBinarySet(r.set.slots, states), r.set)
}

// floorSets is how many sets of draws floor takes.
const floorSets = 20

// floor returns mean and deviation of the squared discrepancy over sets of n
// draws from the reference's own law.
func (r *reference) floor(n int) (mean, deviation float64, err error) {
	values := make([]float64, floorSets)
	for i := range values {
		states, err := r.sample(n, fmt.Sprint("floor ", i))
		if err != nil {
			return 0, 0, err
		}
		values[i], _ = r.discrepancy(states)
	}
	mean, deviation = stat.MeanStdDev(values, nil)
	return mean, deviation, nil
}
