package infill

import (
	"cmp"
	"container/heap"
	"iter"
	"slices"
)

// largest are the places of the n largest numbers, the largest first; of equals the first.
func largest(numbers []float64, n int) []int {
	return largestAmong(func(yield func(int) bool) {
		for i := range numbers {
			if !yield(i) {
				return
			}
		}
	}, numbers, n)
}

// largestAmong is largest of some places, which come in ascending order.
func largestAmong[N cmp.Ordered](places iter.Seq[int], numbers []N, n int) []int {
	kept := &leastFirst[N]{numbers: numbers}
	for place := range places {
		if len(kept.places) < n {
			heap.Push(kept, place)
		} else if n > 0 && numbers[place] > numbers[kept.places[0]] { // an equal one comes later, and loses
			kept.places[0] = place
			heap.Fix(kept, 0)
		}
	}
	slices.SortFunc(kept.places, func(a, b int) int { return cmp.Or(cmp.Compare(numbers[b], numbers[a]), a-b) })
	return kept.places
}

// leastFirst is a heap with the smallest number on top, of equals the last.
type leastFirst[N cmp.Ordered] struct {
	numbers []N
	places  []int
}

var _ heap.Interface = (*leastFirst[float64])(nil)

func (h *leastFirst[N]) Len() int { return len(h.places) }
func (h *leastFirst[N]) Less(i, j int) bool {
	a, b := h.places[i], h.places[j]
	return h.numbers[a] < h.numbers[b] || h.numbers[a] == h.numbers[b] && a > b
}
func (h *leastFirst[N]) Swap(i, j int) { h.places[i], h.places[j] = h.places[j], h.places[i] }
func (h *leastFirst[N]) Push(x any)    { h.places = append(h.places, x.(int)) }
func (h *leastFirst[N]) Pop() any {
	last := h.places[len(h.places)-1]
	h.places = h.places[:len(h.places)-1]
	return last
}
