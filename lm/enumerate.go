package lm

import (
	"context"
	"math"
	"slices"
)

// enumerationBatch is how many rows an enumeration asks for at once: enough to fill
// the model's calls, and few enough to tell how far it is.
const enumerationBatch = 64

// EnumerationRows implements EnumerableTarget: for each row of the energy as many as
// the slots that it sees have combinations.
func (t *target) EnumerationRows() float64 {
	rows := 0.0
	for i := range t.terms {
		seen := 1.0
		for j, masked := range t.terms[i].masked {
			if !masked {
				seen *= float64(t.categories[j])
			}
		}
		rows += seen
	}
	return rows
}

// Enumerate implements EnumerableTarget.
func (t *target) Enumerate(ctx context.Context, energy []float64, progress func(rows int)) error {
	m := len(t.slots)
	strides := make([]int, m)
	stride := 1
	for j := m - 1; j >= 0; j-- {
		strides[j] = stride
		stride *= t.categories[j]
	}
	t.counts.EnergyEvaluations += int64(len(energy))
	parts := [][]float64{energy}
	clear(energy)
	for len(parts) < t.parts {
		parts = append(parts, make([]float64, len(energy)))
	}
	done := 0
	for i := range t.terms {
		r := &t.terms[i]
		var seen, masked []int
		for j := range m {
			if r.masked[j] {
				masked = append(masked, j)
			} else {
				seen = append(seen, j)
			}
		}
		// others are, for each slot that the row scores, where the fills lie that
		// differ in the slots that it neither scores nor sees.
		others := make([][]int, len(r.slots))
		for k, j := range r.slots {
			rest := slices.DeleteFunc(slices.Clone(masked), func(other int) bool { return other == j })
			if masked == nil {
				rest = nil
			}
			others[k] = offsets(rest, t.categories, strides)
		}
		total := 1
		for _, j := range seen {
			total *= t.categories[j]
		}
		state := make([]int, m)
		for first := 0; first < total; first += enumerationBatch {
			last := min(first+enumerationBatch, total)
			t.begin()
			for n := first; n < last; n++ {
				t.combination(state, seen, n)
				t.want(t.keyOf(state, r.masked))
			}
			if err := t.runPending(ctx); err != nil {
				t.known(parts, energy, strides, i, seen, first)
				return err
			}
			for n := first; n < last; n++ {
				t.combination(state, seen, n)
				at := 0
				for j, category := range state {
					at += category * strides[j]
				}
				row := t.found[string(t.keyOf(state, r.masked))]
				for k, j := range r.slots {
					distribution := row[r.places[k]*t.width:][:t.categories[j]]
					part, weight := parts[r.parts[k]], r.weights[k]
					if masked == nil {
						part[at] += weight * float64(distribution[state[j]])
						continue
					}
					for v, x := range distribution {
						term := weight * float64(x)
						for _, offset := range others[k] {
							part[at+v*strides[j]+offset] += term
						}
					}
				}
			}
			if done += last - first; progress != nil {
				progress(done)
			}
		}
	}
	if len(parts) == 1 {
		return nil
	}
	for at := range energy {
		for p := range parts {
			t.sums[p] = parts[p][at]
		}
		energy[at] = logMean(t.sums)
	}
	return nil
}

// known writes what an enumeration knows that ends in row first of the term last, which sees the slots seen: U by those
// parts that are whole for every fill; if there is none, by the first for the fills for which it is; NaN for all
// others.
func (t *target) known(parts [][]float64, energy []float64, strides []int, last int, seen []int, first int) {
	rest := make([]int, len(parts)) // terms of each part that have not ended
	for i := last; i < len(t.terms); i++ {
		of := slices.Clone(t.terms[i].parts)
		slices.Sort(of)
		for _, p := range slices.Compact(of) {
			rest[p]++
		}
	}
	var whole []int
	for p, n := range rest {
		if n == 0 {
			whole = append(whole, p)
		}
	}
	current := t.terms[last].parts[0] // a term's own where it alone is missing
	for at := range energy {
		known := math.NaN()
		if len(whole) > 0 {
			sums := t.sums[:0:len(whole)]
			for _, p := range whole {
				sums = append(sums, parts[p][at])
			}
			known = logMean(sums)
		} else if rest[current] == 1 {
			n := 0
			for _, j := range seen {
				n = n*t.categories[j] + at/strides[j]%t.categories[j]
			}
			if n < first {
				known = parts[current][at]
			}
		}
		energy[at] = known
	}
}

// combination writes the categories of the given slots in their combination number n
// into state, the last of them running fastest.
func (t *target) combination(state, slots []int, n int) {
	for _, j := range slices.Backward(slots) {
		state[j] = n % t.categories[j]
		n /= t.categories[j]
	}
}

// offsets is where the combinations of the given slots lie in an enumeration, from the
// one in which all are at their first category.
func offsets(slots, categories, strides []int) []int {
	list := []int{0}
	for _, j := range slots {
		var more []int
		for _, at := range list {
			for k := range categories[j] {
				more = append(more, at+k*strides[j])
			}
		}
		list = more
	}
	return list
}
