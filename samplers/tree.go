// This file holds the beginnings that a search (search.go) has still to follow.
//
// A beginning has filled the first slots of its law's order. Its mass, the
// law's weight times the product over these slots, bounds the probability of
// every state that begins with it.

package samplers

import (
	"cmp"
	"container/heap"
	"fmt"
	"iter"
	"math"
	"slices"
)

const (
	// listedCategories is the number of likeliest categories that a beginning
	// keeps of its conditional. If the search needs more, it asks again.
	listedCategories = 256
)

// SearchBytes is how many bytes the beginnings of a search may take. Above it,
// the search lets go of the half with the smallest bounds.
const SearchBytes = 256 << 20

// A beginning is a state with the first depth slots of its law's order filled.
type beginning struct {
	number int // of the law
	law    *Law
	state  []int
	depth  int
	mass   float64 // as a log, the law's weight included

	known bool // whether the conditional of the next slot is known
	// categories are the likeliest categories of the next slot, with
	// log-probabilities logp. complete reports whether no other is possible.
	categories []int32
	logp       []float32
	complete   bool
	next       int // index in categories of the next child to follow
}

func (b *beginning) slot() int { return b.law.Order[b.depth] }

// bound returns the log of the largest probability that a state below the
// children of b that were not followed can have.
func (b *beginning) bound() float64 {
	switch {
	case !b.known:
		return b.mass
	case b.next < len(b.categories):
		return b.mass + float64(b.logp[b.next])
	case !b.complete && len(b.logp) > 0:
		return b.mass + float64(b.logp[len(b.logp)-1])
	}
	return math.Inf(-1)
}

// asks reports whether b needs a conditional before it has a next child.
func (b *beginning) asks() bool { return !b.known || b.next == len(b.categories) }

// learn stores the likeliest categories of the conditional logp of b's next
// slot: most of them, or eight times as many as b had before if that is more.
// If logp is wrong, b stays as it was.
func (b *beginning) learn(logp []float32, most int) error {
	most = max(most, 8*len(b.categories))
	choices := b.law.choices(b.state, b.slot(), len(logp))
	likeliest := Likeliest(choices, logp, most)
	categories := make([]int32, len(likeliest))
	own := make([]float32, len(likeliest))
	for i, category := range likeliest {
		l := logp[category]
		if l != l || l > 1e-3 {
			return fmt.Errorf("slot %d: %w", b.slot(), errNoDistribution)
		}
		categories[i] = int32(category)
		own[i] = min(l, 0) // rounding must not lift a child above its parent
	}
	b.categories = categories
	b.logp = own
	b.complete = len(likeliest) < most || len(choices) <= most
	b.known = true
	return nil
}

// child returns the next child of b, and moves on to the one after.
func (b *beginning) child() *beginning {
	category := int(b.categories[b.next])
	mass := b.bound()
	b.next++
	child := &beginning{number: b.number, law: b.law, state: slices.Clone(b.state), depth: b.depth + 1, mass: mass}
	child.state[b.slot()] = category
	return child
}

func (b *beginning) open() int { return len(b.state) - b.depth }

// bytes estimates the memory that b takes.
func (b *beginning) bytes() int { return 200 + 8*len(b.state) + 8*len(b.categories) }

// A tree holds the beginnings of all laws that are still to be followed.
type tree struct {
	// fresh has beginnings whose conditional is not known, and grown has those
	// with children that were not followed. Both are by the number of open
	// slots; the queues at index 0 stay empty.
	fresh, grown []queue
	stored, most int     // bytes of all beginnings, and how many there may be
	cut          float64 // the largest bound of the beginnings that were let go
}

func newTree(laws []Law) *tree {
	slots := 0
	for i := range laws {
		slots = max(slots, laws[i].slots())
	}
	t := &tree{fresh: make([]queue, slots+1), grown: make([]queue, slots+1), most: SearchBytes,
		cut: math.Inf(-1)}
	for i := range laws {
		l := &laws[i]
		t.add(&beginning{number: i, law: l, state: l.open(), mass: l.LogWeight})
	}
	return t
}

// slots returns the largest number of slots that a beginning leaves open.
func (t *tree) slots() int { return len(t.fresh) - 1 }

// add puts a beginning into its queue, unless nothing is left below it. Fresh
// and grown ones have queues of their own, as only the fresh need a conditional.
func (t *tree) add(b *beginning) {
	key := b.bound()
	if math.IsInf(key, -1) {
		return
	}
	q := &t.fresh[b.open()]
	if b.known {
		q = &t.grown[b.open()]
	}
	heap.Push(q, queued{key, b})
	t.stored += b.bytes()
	if t.stored > t.most {
		t.shrink()
	}
}

func (t *tree) pop(q *queue) *beginning {
	b := heap.Pop(q).(queued).beginning
	t.stored -= b.bytes()
	return b
}

// shrink lets go of the half of all beginnings with the smallest bounds.
func (t *tree) shrink() {
	var keys []float64
	for q := range t.all() {
		for _, e := range *q {
			keys = append(keys, e.key)
		}
	}
	drop := len(keys) / 2
	if drop == 0 {
		return
	}
	slices.Sort(keys)
	least := keys[drop] // of those that stay
	below, _ := slices.BinarySearch(keys, least)
	equal := drop - below // how many of the beginnings with this bound go, too
	t.cut = max(t.cut, keys[drop-1])
	t.stored = 0
	for q := range t.all() {
		*q = slices.DeleteFunc(*q, func(e queued) bool {
			if e.key == least && equal > 0 {
				equal--
				return true
			}
			return e.key < least
		})
		heap.Init(q)
		for _, e := range *q {
			t.stored += e.beginning.bytes()
		}
	}
}

func (t *tree) all() iter.Seq[*queue] {
	return func(yield func(*queue) bool) {
		for open := range t.fresh {
			if !yield(&t.fresh[open]) || !yield(&t.grown[open]) {
				return
			}
		}
	}
}

// leaving returns the queues that lead to a number of open slots: that of fresh
// beginnings which leave as many, and that of grown ones whose children do.
func (t *tree) leaving(open int) iter.Seq[*queue] {
	return func(yield func(*queue) bool) {
		if yield(&t.fresh[open]) {
			yield(&t.grown[open+1])
		}
	}
}

// nearest yields the queue with the shortest way to a whole state, as one of
// several that [best] takes. In a tree without such a queue it is an empty one.
func (t *tree) nearest() iter.Seq[*queue] {
	return func(yield func(*queue) bool) {
		for open := range t.slots() {
			for q := range t.leaving(open) {
				if len(*q) > 0 {
					yield(q)
					return
				}
			}
		}
		yield(&t.fresh[t.slots()])
	}
}

// best returns the one of some queues whose first beginning has the largest
// bound, and the bound; nil and -Inf if all are empty.
func best(queues iter.Seq[*queue]) (top *queue, bound float64) {
	bound = math.Inf(-1)
	for q := range queues {
		if len(*q) > 0 && (*q)[0].key > bound {
			top = q
			bound = (*q)[0].key
		}
	}
	return top, bound
}

func (t *tree) left() float64 {
	_, bound := best(t.all())
	return max(bound, t.cut)
}

type queued struct {
	key       float64
	beginning *beginning
}

// queue is a heap: the largest key on top, then the smaller law and state.
type queue []queued

// first returns the beginning of the largest bound; the queue has one.
func (q queue) first() *beginning { return q[0].beginning }

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	a := q[i].beginning
	b := q[j].beginning
	return cmp.Or(cmp.Compare(q[j].key, q[i].key), a.number-b.number, slices.Compare(a.state, b.state)) < 0
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(queued)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
