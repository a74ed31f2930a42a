package lab

import (
	"math"
	"math/bits"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// binarySet holds states of binary slots as bits, to compare many of them.
type binarySet struct {
	slots, words int
	bits         []uint64 // [states × words]
}

func newBinarySet(slots int) *binarySet {
	return &binarySet{slots: slots, words: (slots + 63) / 64}
}

// add appends states [n × slots] of zeros and ones.
func (s *binarySet) add(states []int) {
	for first := 0; first < len(states); first += s.slots {
		row := make([]uint64, s.words)
		for j, v := range states[first : first+s.slots] {
			row[j/64] |= uint64(v) << (j % 64)
		}
		s.bits = append(s.bits, row...)
	}
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

// rowMeans writes the mean of k(x_i, y) over all y of the other set.
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
// and above 0 in the mean for two sets of one law. self is mean k(y,y'). The standard error is the jackknife's over the
// states x, given the set y.
func squaredDiscrepancy(x, y *binarySet, self float64) (value, standardError float64) {
	n := float64(x.len())
	within, across := x.rowMeans(x), x.rowMeans(y)
	sumWithin, sumAcross := floats.Sum(within), floats.Sum(across)
	left := make([]float64, len(within))
	for i := range left {
		left[i] = (sumWithin*n-2*within[i]*n+1)/((n-1)*(n-1)) + self - 2*(sumAcross-across[i])/(n-1)
	}
	// The mean of sums rounds differently from self; equal sets shall give 0. Of one state the error is NaN.
	return math.Max(sumWithin/n+self-2*sumAcross/n, 0), math.Sqrt(stat.PopVariance(left, nil) * (n - 1))
}
