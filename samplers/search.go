// Best-first search for the likeliest states of laws by the chain rule (law.go), with a proof.
//
// A tree for each order holds the beginnings of states: its root has every slot open, and a node at depth t has filled
// the order's first t slots. The product over a beginning, its mass, bounds the product of every state below it. To
// follow a beginning is to make its node. A state that was not followed has in each order at most the mass of a
// beginning that was not followed, and
//
//	p(θ) ≤ w · mean over the orders of these masses.
//
// Once that is at most the k-th largest probability found, the k states are proven to be the likeliest. The categories
// of a beginning bound the other orders too. A state that holds category v in slot j has in another order at most the
// largest mass of v among that order's nodes with a known conditional of j, or of its beginnings that stop before j.
//
// Target: any [PartialTarget]; exact. It does not sample, and has no step size. Best-first search with an admissible
// bound is A* (Hart, Nilsson and Raphael, IEEE Transactions on Systems Science and Cybernetics 1968); for exact
// decoding of autoregressive models see Stahlberg and Byrne, "On NMT Search Errors and Model Errors", EMNLP 2019.

package samplers

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"

	"infill/internal/logmath"
)

const (
	// searchWidth is the number of conditionals of a round: fewer waste less, more share a call of the target better.
	searchWidth = 8
	// diveEvery is the number of conditionals for the best beginning of all, for each one for the best of a depth, each
	// depth in turn. Without the latter, the search of a flat law of many slots would stay at short beginnings and find
	// no state. Once k states are known, it omits the latter.
	diveEvery = 3
	// listedCategories is the number of likeliest categories that the search keeps of a conditional. If it needs more,
	// it asks for the conditional again.
	listedCategories = 256
)

// A Found is a state with its probability.
type Found struct {
	Law            int // the number of its law
	State          []int
	LogProbability float64 // log w included
}

// Search looks for the likeliest states of laws. It is not safe for concurrent use.
type Search struct {
	laws   []Law
	trees  [][]*tree // [laws][orders]
	leaves map[string]*leaf
	live   []*leaf // leaves whose probability is not known, and may matter
	scored []*leaf // leaves by probability, the largest first

	k         int
	threshold float64 // the k-th largest probability found, or a bound below it
	cut       float64 // the largest bound of the beginnings and states that the search gave up
	proven    bool
	asking    int // the number of conditionals so far
	dives     int
	numbers   []float64 // scratch
	key       []byte    // scratch
	state     []int     // scratch
}

// tree is one order of one law.
type tree struct {
	law   int
	order []int
	depth []int // of each slot
	root  *node
	// fresh has the nodes without a known conditional, grown those with children that were not followed, both by depth.
	fresh, grown []queue
	flight       []*node // the nodes whose conditionals this round asks for
	// known[t] is the largest mass of each category of the slot at depth t below a node
	// whose conditional is known, and rest[t] bounds the categories that none of them lists.
	known []map[int]float64
	rest  []float64
	// open[t] bounds the mass of states without a node at depth t whose conditional is known. Its last element bounds
	// all that were not followed. lost[t] is the largest mass that the search gave up at depth t.
	open, lost []float64
	stale      bool // whether open must be computed again
}

// node is a beginning.
type node struct {
	tree  *tree
	state []int
	depth int
	mass  float64 // log
	kids  map[int]*node

	asked bool // whether this round asks for the conditional
	known bool // whether the conditional is known
	// categories are the likeliest ones, with log-probabilities logp; complete reports whether no other is possible.
	// extra has log-probabilities of some others.
	categories []int32
	logp       []float32
	complete   bool
	extra      map[int]float64
	next       int // the index of the next category to follow
}

// leaf is a whole state.
type leaf struct {
	law          int
	state        []int
	at           []*node   // its longest known beginning in each order, [orders]
	product      []float64 // log, [orders]; NaN if not known
	lower, upper float64   // log of its probability
	exact        bool
}

// NewSearch makes a search over the states of laws.
func NewSearch(laws []Law) (*Search, error) {
	if err := checkLaws(laws); err != nil {
		return nil, err
	}
	s := &Search{laws: laws, leaves: map[string]*leaf{}, threshold: math.Inf(-1), cut: math.Inf(-1)}
	for i, l := range laws {
		n := l.slots()
		var trees []*tree
		for _, order := range l.Orders {
			t := &tree{law: i, order: order, depth: make([]int, n), fresh: make([]queue, n), grown: make([]queue, n),
				known: make([]map[int]float64, n), rest: slices.Repeat([]float64{math.Inf(-1)}, n),
				open: make([]float64, n+1), lost: slices.Repeat([]float64{math.Inf(-1)}, n+1), stale: true}
			for d, slot := range order {
				t.depth[slot], t.known[d] = d, map[int]float64{}
			}
			t.root = &node{tree: t, state: slices.Repeat([]int{Open}, n)}
			t.place(t.root)
			trees = append(trees, t)
		}
		s.trees = append(s.trees, trees)
	}
	return s, nil
}

// Run searches until the k likeliest states are proven, until room returns 0, or until ctx ends. room, if not nil,
// returns the number of affordable conditionals; Run exceeds it to find a first state. Run continues the run before. It
// calls tell, if not nil, in every round.
func (s *Search) Run(ctx context.Context, k int, room func() int, tell func()) error {
	if k < 1 {
		return fmt.Errorf("%d states: ask for one at least", k)
	}
	if k > s.k && s.k > 0 {
		s.restart()
	}
	s.k, s.proven = k, false
	s.judge()
	for {
		width, down := searchWidth, false
		if room != nil {
			// The rest of the room may only suffice for one state in all its orders: go the shortest way.
			left := room()
			if width = min(width, left); len(s.scored) == 0 && left <= s.way() {
				width, down = 1, true
			}
		}
		asks, more := s.gather(width, down)
		if len(asks) == 0 {
			s.proven = !more
			return ctx.Err()
		}
		err := s.ask(ctx, asks)
		for _, n := range asks {
			n.asked = false
		}
		for _, trees := range s.trees {
			for _, t := range trees {
				// A beginning whose conditional did not arrive must still be followed.
				for _, n := range t.flight {
					t.place(n)
				}
				t.flight, t.stale = t.flight[:0], true
			}
		}
		if err != nil {
			return err
		}
		s.judge()
		if tell != nil {
			tell()
		}
	}
}

// way returns the largest number of conditionals in the probability of a state.
func (s *Search) way() (most int) {
	for _, trees := range s.trees {
		most = max(most, len(trees)*len(trees[0].order))
	}
	return most
}

// Proven reports whether the last run ended with a proof: no other state is likelier than the first k of Found.
func (s *Search) Proven() bool { return s.proven }

// Found lists the states whose probabilities are known, the likeliest first; among equals, the smaller law and
// categories come first.
func (s *Search) Found() []Found {
	list := make([]Found, len(s.scored))
	for i, l := range s.scored {
		list[i] = Found{Law: l.law, State: l.state, LogProbability: l.lower}
	}
	return list
}

// Len returns the number of states that Found lists.
func (s *Search) Len() int { return len(s.scored) }

// LeftOut bounds the log-probability of every state after the first listed ones of Found: of other known states, of
// those whose probability is not known, of waiting beginnings, and of all that the search gave up.
func (s *Search) LeftOut(listed int) float64 {
	bound := s.cut
	for _, l := range s.live {
		bound = max(bound, l.upper)
	}
	if len(s.scored) > listed {
		bound = max(bound, s.scored[listed].lower)
	}
	for _, trees := range s.trees {
		least := math.Inf(1)
		for _, t := range trees {
			most := math.Inf(-1)
			for e := range t.queued() {
				most = max(most, s.bound(t, e.key, e.node.state))
			}
			least = min(least, most)
		}
		bound = max(bound, least)
	}
	return min(bound, s.most())
}

// most returns the log of the sum of the laws' weights, a bound of every state.
func (s *Search) most() float64 {
	s.numbers = s.numbers[:0]
	for _, l := range s.laws {
		s.numbers = append(s.numbers, l.LogWeight)
	}
	return logmath.LogSumExp(s.numbers)
}

// restart makes all beginnings wait again: those that a search for fewer states gave up may matter for more. It keeps
// known conditionals.
func (s *Search) restart() {
	for _, trees := range s.trees {
		for _, t := range trees {
			for d := range t.order {
				t.fresh[d], t.grown[d], t.lost[d+1] = nil, nil, math.Inf(-1)
			}
			t.lost[0] = math.Inf(-1)
			t.root.again()
			t.place(t.root)
		}
	}
	s.live, s.cut, s.threshold = nil, math.Inf(-1), math.Inf(-1)
	for key, l := range s.leaves {
		if l != nil && !l.exact {
			delete(s.leaves, key)
		}
	}
}

// judge updates the bounds of the leaves, and the threshold.
func (s *Search) judge() {
	var lower []float64
	kept := s.live[:0]
	for _, l := range s.live {
		if s.rate(l); l.exact {
			s.score(l)
			continue
		}
		kept, lower = append(kept, l), append(lower, l.lower)
	}
	s.live = kept
	for _, l := range s.scored {
		lower = append(lower, l.lower)
	}
	if len(lower) >= s.k {
		slices.Sort(lower)
		s.threshold = lower[len(lower)-s.k]
	}
	s.live = slices.DeleteFunc(s.live, func(l *leaf) bool {
		if l.upper > s.threshold || l.lower >= s.threshold {
			return false
		}
		s.cut = max(s.cut, l.upper)
		return true
	})
	slices.SortStableFunc(s.live, func(a, b *leaf) int { return cmp.Compare(b.upper, a.upper) })
}

func (s *Search) score(l *leaf) {
	at, _ := slices.BinarySearchFunc(s.scored, l, func(a, b *leaf) int {
		return cmp.Or(cmp.Compare(b.lower, a.lower), a.law-b.law, slices.Compare(a.state, b.state))
	})
	if s.scored = slices.Insert(s.scored, at, l); len(s.scored) >= s.k {
		s.threshold = max(s.threshold, s.scored[s.k-1].lower)
	}
}

// rate bounds a leaf's probability by its product in each order, or by a beginning's mass if the product is not known.
func (s *Search) rate(l *leaf) {
	trees := s.trees[l.law]
	s.numbers = s.numbers[:0]
	l.exact = true
	for o := range trees {
		if math.IsNaN(l.product[o]) {
			l.walk(o)
		}
		if x := l.product[o]; !math.IsNaN(x) {
			s.numbers = append(s.numbers, x)
		} else {
			l.exact = false
		}
	}
	weight := s.laws[l.law].LogWeight
	of := math.Log(float64(len(trees)))
	l.lower = weight + logmath.LogSumExp(s.numbers) - of
	for o, t := range trees {
		if math.IsNaN(l.product[o]) {
			s.numbers = append(s.numbers, min(l.at[o].mass, t.ceiling(l.state, true)))
		}
	}
	l.upper = weight + logmath.LogSumExp(s.numbers) - of
}

// walk follows a leaf's beginnings in one order as far as they are known.
func (l *leaf) walk(o int) {
	for n := l.at[o]; n.known; n = l.at[o] {
		category := l.state[n.slot()]
		logp, ok := n.value(category)
		switch {
		case !ok:
			return
		case n.depth+1 == len(l.state) || math.IsInf(logp, -1):
			l.product[o] = n.mass + logp
			return
		}
		l.at[o] = n.kid(category, logp)
	}
}

// gather chooses at most width nodes whose conditionals to ask for; if down, by the shortest way to a state. If it
// chooses none, more reports whether any is left.
func (s *Search) gather(width int, down bool) (asks []*node, more bool) {
	scoring := func(until int) {
		for _, l := range s.live {
			for o := range s.trees[l.law] {
				if len(asks) >= until {
					return
				}
				if n := l.at[o]; math.IsNaN(l.product[o]) && !n.asked {
					n.asked = true
					asks = append(asks, n)
				}
			}
		}
	}
	if width > 0 {
		scoring((width + 1) / 2)
	}
	many := max(64, 4*s.k)
	if down {
		many = 1
	}
	for len(asks) < width && len(s.live) < many {
		n, left := s.pick(down, len(s.scored) < s.k && (s.asking+len(asks))%(diveEvery+1) == diveEvery)
		if n != nil {
			n.tree.flight = append(n.tree.flight, n)
			if !n.asked {
				n.asked = true
				asks = append(asks, n)
			}
		} else if !left {
			break
		}
	}
	scoring(width)
	if len(asks) == 0 {
		return nil, len(s.live) > 0 || width <= 0 && s.remains()
	}
	s.asking += len(asks)
	return asks, true
}

// remains reports whether a beginning is left that may lead above the threshold.
func (s *Search) remains() bool {
	for _, trees := range s.trees {
		for _, t := range trees {
			for e := range t.queued() {
				if s.bound(t, e.key, e.node.state) > s.threshold {
					return true
				}
			}
		}
	}
	return false
}

// pick follows the next child of the best beginning: of all, of the deepest (down), or of each depth in turn (dive). If
// the beginning's conditional is not known, pick returns it as ask. left reports whether there was a beginning.
func (s *Search) pick(down, dive bool) (ask *node, left bool) {
	var best *queue
	var at *tree
	deepest := 0
	consider := func(t *tree, e *queue) {
		if len(*e) == 0 {
			return
		}
		if best == nil || (*e)[0].key+s.laws[t.law].LogWeight > (*best)[0].key+s.laws[at.law].LogWeight {
			best, at = e, t
		}
	}
	if dive {
		s.dives++
	}
	for _, trees := range s.trees {
		for _, t := range trees {
			t.clean()
			n := len(t.order)
			for step := 2*n - 1; down && step >= deepest; step-- { // a child lies deeper than its parent
				queues := t.fresh
				if step%2 == 1 {
					queues = t.grown
				}
				if q := &queues[step/2]; len(*q) > 0 {
					if step > deepest {
						best, deepest = nil, step
					}
					consider(t, q)
				}
			}
			if dive && !down && n > 1 {
				d := s.dives%n + 1
				if d < n {
					consider(t, &t.fresh[d])
				}
				consider(t, &t.grown[d-1])
			}
		}
	}
	if best == nil {
		for _, trees := range s.trees {
			for _, t := range trees {
				for d := range t.order {
					consider(t, &t.fresh[d])
					consider(t, &t.grown[d])
				}
			}
		}
	}
	if best == nil {
		return nil, false
	}
	e := heap.Pop(best).(queued)
	n := e.node
	at.stale = true
	if bound := s.bound(at, e.key, n.state); bound <= s.threshold {
		depth := n.depth
		if n.known {
			depth++
		}
		s.giveUp(at, depth, e.key, bound)
		return nil, true
	}
	if !n.known || n.next == len(n.categories) {
		return n, true
	}
	s.follow(n)
	return nil, true
}

// follow takes a node's next child.
func (s *Search) follow(n *node) {
	category, logp := int(n.categories[n.next]), float64(n.logp[n.next])
	n.next++
	n.tree.place(n)
	mass := n.mass + logp
	s.state = append(s.state[:0], n.state...)
	s.state[n.slot()] = category
	if bound := s.bound(n.tree, mass, s.state); bound <= s.threshold {
		s.giveUp(n.tree, n.depth+1, mass, bound)
		return
	}
	if n.depth+1 < len(s.state) {
		n.tree.place(n.kid(category, logp))
		return
	}
	s.key = appendState(binary.AppendUvarint(s.key[:0], uint64(n.tree.law)), s.state)
	if _, seen := s.leaves[string(s.key)]; seen {
		return
	}
	law := &s.laws[n.tree.law]
	if law.Allows != nil && !law.Allows(s.state) {
		s.leaves[string(s.key)] = nil
		return
	}
	l := &leaf{law: n.tree.law, state: slices.Clone(s.state)}
	for _, t := range s.trees[n.tree.law] {
		l.at, l.product = append(l.at, t.root), append(l.product, math.NaN())
		if t == n.tree {
			l.product[len(l.product)-1] = mass
		}
	}
	s.leaves[string(s.key)] = l
	if s.rate(l); l.exact {
		s.score(l)
	} else {
		s.live = append(s.live, l)
	}
}

// bound bounds the log-probability of the states below a beginning; own is the beginning's mass in its order.
func (s *Search) bound(t *tree, own float64, state []int) float64 {
	s.numbers = s.numbers[:0]
	for _, other := range s.trees[t.law] {
		if other == t {
			s.numbers = append(s.numbers, own)
		} else {
			s.numbers = append(s.numbers, other.ceiling(state, false))
		}
	}
	return s.laws[t.law].LogWeight + logMean(s.numbers)
}

// ask asks for the conditionals of nodes.
func (s *Search) ask(ctx context.Context, asks []*node) error {
	var failed error
	for number := range s.laws {
		law := &s.laws[number]
		var nodes []*node
		var asked []Partial
		for _, n := range asks {
			if n.tree.law == number {
				nodes, asked = append(nodes, n), append(asked, Partial{n.state, n.slot()})
			}
		}
		if len(nodes) == 0 {
			continue
		}
		err := law.Target.PartialConditionals(ctx, asked, func(i int, logp []float32) {
			if err := s.learn(law, nodes[i], logp); err != nil {
				failed = err
			}
		})
		if err != nil {
			return err
		}
	}
	return failed
}

// learn keeps the likeliest categories of a node's conditional, and a bound of the others.
func (s *Search) learn(law *Law, n *node, logp []float32) error {
	slot := n.slot()
	number := listedCategories
	if n.depth == 0 {
		number = max(number, 2*s.k)
	}
	if n.known { // asked for again
		number = 8 * len(n.categories)
		for _, l := range s.live {
			if slices.Contains(l.at, n) {
				if n.extra == nil {
					n.extra = map[int]float64{}
				}
				n.extra[l.state[slot]] = float64(logp[l.state[slot]])
			}
		}
	}
	choices := law.choices(n.state, slot, len(logp))
	likeliest := Likeliest(choices, logp, number)
	n.categories, n.logp = make([]int32, 0, len(likeliest)), make([]float32, 0, len(likeliest))
	for _, category := range likeliest {
		l := logp[category]
		if l != l || l > 1e-3 {
			return fmt.Errorf("slot %d: %w", slot, errNoDistribution)
		}
		n.categories, n.logp = append(n.categories, int32(category)), append(n.logp, l)
	}
	n.complete = len(n.categories) < number || len(choices) <= number
	n.known = true
	t, d := n.tree, n.depth
	for i, category := range n.categories {
		if mass := n.mass + float64(n.logp[i]); mass > t.mostOf(d, int(category)) {
			t.known[d][int(category)] = mass
		}
	}
	if !n.complete {
		t.rest[d] = max(t.rest[d], n.mass+float64(n.logp[len(n.logp)-1]))
	}
	return nil
}

// Likeliest returns the categories with the largest logp, at most number (above 0) of them, without impossible ones:
// the likeliest first, and of equals the smaller first. logp has all categories, choices some of them, ascending. If a
// number is NaN, it returns that category alone.
func Likeliest(choices []int, logp []float32, number int) []int {
	var best []uint64              // -logp as whole numbers of the same order, before the category: they sort fast
	least := float32(math.Inf(-1)) // a category has to exceed it
	cut := func() {
		slices.Sort(best)
		if len(best) >= number {
			best = best[:number]
			least = logp[uint32(best[number-1])]
		}
	}
	for _, category := range choices {
		switch l := logp[category]; {
		case l != l:
			return []int{category}
		case l > least:
			bits := math.Float32bits(l + 0) // there are two zeros
			bits ^= uint32(int32(^bits)>>31) & math.MaxInt32
			if best = append(best, uint64(bits)<<32|uint64(category)); len(best) == 2*number {
				cut()
			}
		}
	}
	cut()
	categories := make([]int, len(best))
	for i, b := range best {
		categories[i] = int(uint32(b))
	}
	return categories
}

// slot returns the slot whose conditional the node needs.
func (n *node) slot() int { return n.tree.order[n.depth] }

// value returns the log-probability of a category; ok is false if the node does not know it.
func (n *node) value(category int) (logp float64, ok bool) {
	if at := slices.Index(n.categories, int32(category)); at >= 0 {
		return float64(n.logp[at]), true
	}
	if logp, ok := n.extra[category]; ok {
		return logp, true
	}
	return math.Inf(-1), n.complete
}

// kid returns the beginning with one more slot filled.
func (n *node) kid(category int, logp float64) *node {
	kid, ok := n.kids[category]
	if !ok {
		kid = &node{tree: n.tree, state: slices.Clone(n.state), depth: n.depth + 1, mass: n.mass + logp}
		kid.state[n.slot()] = category
		if n.kids == nil {
			n.kids = map[int]*node{}
		}
		n.kids[category] = kid
	}
	return kid
}

// following bounds the mass of the children that were not followed.
func (n *node) following() float64 {
	switch {
	case n.next < len(n.categories):
		return n.mass + float64(n.logp[n.next])
	case !n.complete && len(n.logp) > 0:
		return n.mass + float64(n.logp[len(n.logp)-1])
	}
	return math.Inf(-1)
}

// again makes the search follow all children of a node, and of the nodes below it, once more.
func (n *node) again() {
	n.next = 0
	for _, kid := range n.kids {
		kid.again()
	}
}

// queued lists all beginnings that are still to be followed.
func (t *tree) queued() iter.Seq[queued] {
	return func(yield func(queued) bool) {
		for _, queues := range [][]queue{t.fresh, t.grown} {
			for _, q := range queues {
				for _, e := range q {
					if !yield(e) {
						return
					}
				}
			}
		}
	}
}

// place queues a node in fresh or grown.
func (t *tree) place(n *node) {
	t.stale = true
	if !n.known {
		heap.Push(&t.fresh[n.depth], queued{n.mass, n})
	} else if key := n.following(); !math.IsInf(key, -1) {
		heap.Push(&t.grown[n.depth], queued{key, n})
	}
}

// clean moves nodes from the tops of fresh to grown if their conditional is known now, as for a leaf.
func (t *tree) clean() {
	for d := range t.fresh {
		for len(t.fresh[d]) > 0 && t.fresh[d][0].node.known {
			t.place(heap.Pop(&t.fresh[d]).(queued).node)
		}
	}
}

// ceiling bounds the mass, in this order, of the states that were not followed and agree with the filled slots of
// state. If found is set, it includes the beginnings that were given up.
func (t *tree) ceiling(state []int, found bool) float64 {
	n := len(t.order)
	if t.stale {
		t.clean()
		bound := math.Inf(-1)
		for d := range n {
			if len(t.fresh[d]) > 0 {
				bound = max(bound, t.fresh[d][0].key)
			}
			for _, n := range t.flight {
				if n.depth == d {
					bound = max(bound, n.mass)
				}
			}
			t.open[d] = bound
			if len(t.grown[d]) > 0 {
				bound = max(bound, t.grown[d][0].key)
			}
		}
		t.open[n], t.stale = bound, false
	}
	at := func(depth int) float64 {
		if found {
			return max(t.open[depth], slices.Max(t.lost[:depth+1]))
		}
		return t.open[depth]
	}
	bound := at(n)
	for slot, category := range state {
		if category != Open {
			bound = min(bound, max(t.mostOf(t.depth[slot], category), at(t.depth[slot])))
		}
	}
	return bound
}

// giveUp records that the search gives up a beginning at a depth: its mass, and the bound of the states below it.
func (s *Search) giveUp(t *tree, depth int, mass, bound float64) {
	t.lost[depth] = max(t.lost[depth], mass)
	s.cut = max(s.cut, bound)
}

// mostOf bounds the mass of a category below the nodes at a depth whose conditional is known.
func (t *tree) mostOf(depth, category int) float64 {
	if most, ok := t.known[depth][category]; ok {
		return max(most, t.rest[depth])
	}
	return t.rest[depth]
}

// queued is a node in a queue. key bounds the mass of the states below it that were not followed.
type queued struct {
	key  float64
	node *node
}

// queue is a heap with the largest key on top, of equals the smaller state.
type queue []queued

func (e queue) Len() int { return len(e) }
func (e queue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[j].key, e[i].key), slices.Compare(e[i].node.state, e[j].node.state)) < 0
}
func (e queue) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *queue) Push(x any)   { *e = append(*e, x.(queued)) }
func (e *queue) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
