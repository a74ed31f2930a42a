package lab

import (
	"fmt"
	"math"
	"math/bits"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// binarySet holds states of binary slots as bits, to compare many of them.
type binarySet struct {
	slots, words int
	bits         []uint64  // [states × words]
	within       []float64 // the mean kernel of each state with all
}

// newBinarySet is of states [n × slots] of zeros and ones.
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

// kernel is k(x, y) = exp(-Hamming(x, y)/slots), the kernel of the GWG and discrete Langevin papers' code.
func (s *binarySet) kernel(i int, other *binarySet, j int) float64 {
	d := 0
	for w := range s.words {
		d += bits.OnesCount64(s.bits[i*s.words+w] ^ other.bits[j*s.words+w])
	}
	return math.Exp(-float64(d) / float64(s.slots))
}

// rowMeans is the mean of k(x_i, y) over all y of the other set, for each x_i.
func (s *binarySet) rowMeans(other *binarySet) []float64 {
	rows := make([]float64, s.len())
	for i := range rows {
		for j := range other.len() {
			rows[i] += s.kernel(i, other, j)
		}
		rows[i] /= float64(other.len())
	}
	return rows
}

// squaredDiscrepancy is the maximum mean discrepancy of two sets, squared, as the V-statistic mean k(x,x') + mean
// k(y,y') - 2 mean k(x,y), every state with itself included; the papers report its logarithm. It is 0 for equal sets,
// and above 0 in the mean for two sets of one law. The standard error is the jackknife's over the states x, given the
// set y.
func squaredDiscrepancy(x, y *binarySet) (value, standardError float64) {
	n, self := float64(x.len()), stat.Mean(y.within, nil)
	across := x.rowMeans(y)
	sumWithin, sumAcross := floats.Sum(x.within), floats.Sum(across)
	left := make([]float64, len(across))
	for i := range left {
		left[i] = (sumWithin*n-2*x.within[i]*n+1)/((n-1)*(n-1)) + self - 2*(sumAcross-across[i])/(n-1)
	}
	// The mean of sums rounds differently from self; equal sets shall give 0. Of one state the error is NaN.
	return math.Max(sumWithin/n+self-2*sumAcross/n, 0), math.Sqrt(stat.PopVariance(left, nil) * (n - 1))
}

// reference is states that stand for a law, which the maximum mean discrepancy is measured from.
type reference struct {
	method  string
	samples int
	// againstExact is the squared discrepancy from as many exact draws; nil where these are the reference, or cannot be
	// had.
	againstExact *float64

	set *binarySet
	// sample draws independently from the reference's own law.
	sample func(n int, label string) ([]int, error)
}

// draw makes the set.
func (r *reference) draw(slots int) error {
	states, err := r.sample(r.samples, "reference")
	r.set = newBinarySet(slots, states)
	return err
}

// discrepancy is that of states from the reference, squared.
func (r *reference) discrepancy(states []int) (value, standardError float64) {
	return squaredDiscrepancy(newBinarySet(r.set.slots, states), r.set)
}

// floorSets is how many sets of draws a floor is of.
const floorSets = 20

// floor is the squared discrepancy that chains would show if they drew from the reference's own law: the mean of
// several sets of as many draws, and the deviation between them.
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
