// This file searches for the likeliest states of laws by the chain rule (law.go), best first, with a proof.
//
// A tree for each order of a law holds beginnings: its root has every slot open, and a node at depth t has filled the
// order's first t slots. A beginning's mass is the product over its slots, an upper bound of the product of every state
// below it. To follow a beginning is to make its node. A state without a node has, in each order, at most the mass of a
// beginning that was not followed, and
//
//	p(θ) ≤ w · mean over the orders of these masses.
//
// When this is at most the k-th largest probability found, the k states are proven to be the likeliest. Categories
// bound the other orders too. There, a state with category v in slot j has at most the larger of two masses: that of v
// among nodes with a known conditional of j, and that of a beginning that stops before j.
//
// Target: any [PartialTarget]; exact. The search does not sample, and has no step size. Best-first search with an
// admissible bound is A* (Hart, Nilsson and Raphael, IEEE Transactions on Systems Science and Cybernetics 1968). For
// exact decoding of autoregressive models see Stahlberg and Byrne, "On NMT Search Errors and Model Errors", EMNLP 2019.

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
	// searchWidth is the number of conditionals in a round: a smaller one wastes less, a larger one makes better calls.
	searchWidth = 8
	// diveEvery is the number of conditionals for the best beginning of all, for every one conditional for the best
	// beginning of some depth, each depth in turn. Without the latter, the search of a flat law of many slots would
	// stay at short beginnings and find no state. Once k states are known, the search stops asking for the latter.
	diveEvery = 3
	// listedCategories is the number of likeliest categories that the search keeps of a conditional. If it needs more
	// categories, it asks for the conditional again.
	listedCategories = 256
)

// A Found is a state with its probability.
type Found struct {
	Law            int // index of the law
	State          []int
	LogProbability float64 // LogWeight included
}

// Search looks for the likeliest states of laws. Only one goroutine at a time may use it.
type Search struct {
	laws   []Law
	trees  [][]*tree // [laws][orders]
	leaves map[string]*leaf
	live   []*leaf // leaves whose probability is not yet known but may matter
	scored []*leaf // leaves of known probability, the largest first

	k         int
	threshold float64 // the k-th largest probability found, or a lower bound of it
	cut       float64 // the largest bound of the beginnings and states that were given up
	proven    bool
	asking    int // number of conditionals asked for so far
	dives     int
	numbers   []float64 // scratch
	key       []byte    // scratch
	state     []int     // scratch
}

// tree holds the beginnings by one order of one law.
type tree struct {
	law   int
	order []int
	depth []int // depth of each slot
	root  *node
	// fresh has nodes without a known conditional, grown nodes with children that were not followed, both by depth.
	fresh, grown []queue
	flight       []*node // nodes whose conditionals this round asks for
	// known[t] holds the largest mass of each category of the slot at depth t, over the nodes whose conditional is
	// known. rest[t] bounds the mass of the categories that known[t] does not list.
	known []map[int]float64
	rest  []float64
	// open[t] bounds the mass of states without a node of known conditional at depth t. The last element of open bounds
	// all states that were not followed. lost[t] is the largest mass that the search gave up at depth t.
	open, lost []float64
	stale      bool // whether open must be computed again
}

// node is a beginning in a tree.
type node struct {
	tree  *tree
	state []int
	depth int
	mass  float64 // as a log
	kids  map[int]*node

	asked bool // whether this round asks for the conditional
	known bool // whether the conditional is known
	// categories are the likeliest categories, with log-probabilities logp. complete reports whether no other category
	// is possible. extra has the log-probabilities of some other categories.
	categories []int32
	logp       []float32
	complete   bool
	extra      map[int]float64
	next       int // index in categories of the next child to follow
}

// leaf is a state whose slots are all filled.
type leaf struct {
	law          int
	state        []int
	at           []*node   // the longest beginning of the state that has a node, [orders]
	product      []float64 // log of the product in each order, [orders]; NaN if not known
	lower, upper float64   // bounds of the log-probability
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
// returns how many more conditionals Run may ask for; Run exceeds this number only to find a first state. A later Run
// continues the search. Run calls tell, if not nil, after every round.
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
			// If the room may suffice for only one state in all its orders, go the shortest way to a state.
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
				// A beginning whose conditional did not arrive is queued again.
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

// way returns the largest number of conditionals that the probability of one state takes.
func (s *Search) way() (most int) {
	for _, trees := range s.trees {
		most = max(most, len(trees)*len(trees[0].order))
	}
	return most
}

// Proven reports whether the last run ended with a proof that no other state is likelier than the first k of Found.
func (s *Search) Proven() bool { return s.proven }

// Found lists the states whose probabilities are known, the likeliest first. Among equals, the smaller law number and
// then the smaller categories come first.
func (s *Search) Found() []Found {
	list := make([]Found, len(s.scored))
	for i, l := range s.scored {
		list[i] = Found{Law: l.law, State: l.state, LogProbability: l.lower}
	}
	return list
}

// Len returns the number of states that Found lists.
func (s *Search) Len() int { return len(s.scored) }

// LeftOut returns an upper bound of the log-probability of every state except the first listed states of Found. The
// bound covers other known states, states of unknown probability, queued beginnings, and all that the search gave up.
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

// most returns the log of the sum of the laws' weights, an upper bound for every state.
func (s *Search) most() float64 {
	s.numbers = s.numbers[:0]
	for _, l := range s.laws {
		s.numbers = append(s.numbers, l.LogWeight)
	}
	return logmath.LogSumExp(s.numbers)
}

// restart queues all beginnings again, because those given up in a search for fewer states may matter in a search for
// more. It keeps the known conditionals.
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

// judge updates the bounds of the leaves and the threshold, and drops live leaves that cannot matter.
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

// rate bounds a leaf's probability by its product in each order or, if the product is not known, by a beginning's mass.
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

// walk moves l.at[o] to the longest known beginning of the leaf, and sets the product when all slots are known.
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

// gather chooses at most width nodes whose conditionals to ask for. If down is set, it takes the shortest way to a
// state. If it chooses no node, more reports whether one is left.
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

// remains reports whether a queued beginning is left whose bound is above the threshold.
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
// the beginning's conditional is not known, pick returns it as ask. left reports whether any beginning was queued.
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
			for step := 2*n - 1; down && step >= deepest; step-- { // a child is deeper than its parent
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

// follow makes the node, or the leaf, of a node's next child, unless its bound is too low.
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

// bound returns an upper bound of log p of the states below a beginning. own is its mass in its own order.
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

// ask gets the conditionals of nodes.
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

// learn stores the likeliest categories of a node's conditional, and a bound for the other categories.
func (s *Search) learn(law *Law, n *node, logp []float32) error {
	slot := n.slot()
	number := listedCategories
	if n.depth == 0 {
		number = max(number, 2*s.k)
	}
	if n.known { // the conditional was asked for again
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

// Likeliest returns the possible categories of choices with the largest logp, at most number (above 0) of them. The
// likeliest comes first, and of equals the smaller. logp has all categories; choices has some of them, ascending. If
// the logp of a choice is NaN, Likeliest returns this category alone.
func Likeliest(choices []int, logp []float32, number int) []int {
	var best []uint64              // -logp as an integer of the same order, then the category: this sorts fast
	least := float32(math.Inf(-1)) // lower bound of logp for a new category
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
			bits := math.Float32bits(l + 0) // +0 and -0 become equal
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

// kid returns the child of n in which n's slot holds category. It makes the child if necessary.
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

// following returns an upper bound of the mass of the children that were not followed.
func (n *node) following() float64 {
	switch {
	case n.next < len(n.categories):
		return n.mass + float64(n.logp[n.next])
	case !n.complete && len(n.logp) > 0:
		return n.mass + float64(n.logp[len(n.logp)-1])
	}
	return math.Inf(-1)
}

// again makes the search follow all children of a node, and of the nodes below, once more.
func (n *node) again() {
	n.next = 0
	for _, kid := range n.kids {
		kid.again()
	}
}

// queued returns all beginnings that are still to be followed.
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

// place puts a node into the queue fresh or grown of its depth.
func (t *tree) place(n *node) {
	t.stale = true
	if !n.known {
		heap.Push(&t.fresh[n.depth], queued{n.mass, n})
	} else if key := n.following(); !math.IsInf(key, -1) {
		heap.Push(&t.grown[n.depth], queued{key, n})
	}
}

// clean moves nodes at the tops of fresh to grown if their conditional has become known, as through a leaf.
func (t *tree) clean() {
	for d := range t.fresh {
		for len(t.fresh[d]) > 0 && t.fresh[d][0].node.known {
			t.place(heap.Pop(&t.fresh[d]).(queued).node)
		}
	}
}

// ceiling bounds the mass, in the order of t, of the states that were not followed and agree with the filled slots of
// state. If found is set, the bound also covers the beginnings that were given up.
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

// giveUp records that the search gives up a beginning at a depth: its mass, and the bound of the states below.
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

// queued is a node in a queue. key bounds the mass of the states below the node that were not followed.
type queued struct {
	key  float64
	node *node
}

// queue is a heap with the largest key on top and, of equal keys, the smaller state.
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
