// This file searches for the likeliest states of laws by the chain rule
// (law.go), best first, with a proof.
//
// The search follows the beginning (tree.go) of the largest bound. It asks for
// the conditional of the next slot, and makes the beginnings with that slot
// filled one by one, the likeliest first. The probability of a whole state is known when
// the state is reached. A state that was not reached has at most the largest
// mass of the beginnings that still wait or were let go. When this is at most
// the k-th largest probability found, the k states are proven to be the
// likeliest.
//
// Target: any [PartialTarget]; exact. The search does not sample, and has no
// step size. Best-first search with an admissible bound is A* (Hart, Nilsson and
// Raphael, IEEE Transactions on Systems Science and Cybernetics 1968). For exact
// decoding of autoregressive models see Stahlberg and Byrne, "On NMT Search
// Errors and Model Errors", EMNLP 2019.

package samplers

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
)

const (
	// A round asks for a quarter of the conditionals so far, from leastWidth to
	// mostWidth. Large rounds make better calls, and waste what the last of them
	// did not need: so a short search has small ones.
	leastWidth, mostWidth = 2, 32
	// After every diveEvery conditionals for the best beginning of all, one is for
	// the best beginning of some number of open slots, each number in turn.
	// Otherwise the search of a flat law of many slots would stay at short
	// beginnings and find no state. This ends when k states are known.
	diveEvery = 3
)

// A Found is a state with its probability.
type Found struct {
	Law            int // index of the law
	State          []int
	LogProbability float64 // LogWeight included
}

// Search looks for the likeliest states of laws, for one goroutine.
type Search struct {
	laws  []Law
	tree  *tree
	found []Found // the likeliest first
	// flight has the beginnings whose conditionals this round asks for.
	flight []*beginning

	k      int
	proven bool
	asked  int // number of conditionals so far
	// hurried is set once room may suffice for only one state. beyond is how
	// many conditionals the search may still ask for when there is no room.
	hurried bool
	beyond  int
}

// NewSearch makes a search over the states of laws.
func NewSearch(laws []Law) (*Search, error) {
	err := checkLaws(laws)
	if err != nil {
		return nil, err
	}
	return &Search{laws: laws, tree: newTree(laws)}, nil
}

// Run searches until the k likeliest states are proven, until room returns 0, or
// until a target ends with ctx. room, if not nil, returns how many more
// conditionals Run may ask for. To find a first state, a search exceeds this
// number once, by at most the conditionals of one state. If that finds none, Run
// ends without a state. Run also ends without a proof if what was let go could be
// among the k likeliest. A later Run continues the search. Run calls tell, if not
// nil, after every round.
func (s *Search) Run(ctx context.Context, k int, room func() int, tell func()) error {
	if k < 1 {
		return fmt.Errorf("%d states: ask for one at least", k)
	}
	s.k = k
	s.proven = false
	for {
		width, hurried := s.width(room)
		s.gather(width, hurried)
		if len(s.flight) == 0 && hurried && len(s.found) > 0 {
			continue // the first state is there: take the usual way with what room is left
		}
		if len(s.flight) == 0 {
			s.proven = s.tree.left() <= s.threshold()
			return ctx.Err()
		}
		err := s.ask(ctx)
		for _, b := range s.flight {
			s.tree.add(b) // also one whose conditional did not arrive
		}
		s.flight = s.flight[:0]
		if err != nil {
			return err
		}
		if tell != nil {
			tell()
		}
	}
}

// width returns how many conditionals the next round may ask for. It is hurried
// if room may suffice for only one state.
func (s *Search) width(room func() int) (width int, hurried bool) {
	width = min(mostWidth, max(leastWidth, s.asked/4))
	if room == nil {
		return width, false
	}
	left := room()
	if len(s.found) > 0 {
		return min(width, left), false
	}
	spare := left - s.tree.slots()
	if spare > 0 {
		return min(width, spare), false
	}
	if !s.hurried {
		s.hurried = true
		s.beyond = s.tree.slots() - max(0, left)
	}
	if left > 0 {
		return 1, true
	}
	if s.beyond == 0 {
		return 0, true
	}
	s.beyond--
	return 1, true
}

// threshold returns the k-th largest probability found. The search follows only
// beginnings whose bound is larger.
func (s *Search) threshold() float64 {
	if len(s.found) < s.k {
		return math.Inf(-1)
	}
	return s.found[s.k-1].LogProbability
}

// Proven reports whether the last run ended with a proof that no other state is
// likelier than the first k of Found.
func (s *Search) Proven() bool { return s.proven }

// Found lists the states that the search reached, the likeliest first. Among
// equals, the smaller law number and then the smaller categories come first.
func (s *Search) Found() []Found { return slices.Clone(s.found) }

// Len returns the number of states that Found lists.
func (s *Search) Len() int { return len(s.found) }

// LeftOut returns an upper bound of the log-probability of every state except
// the first listed states of Found.
func (s *Search) LeftOut(listed int) float64 {
	bound := s.tree.left()
	if listed < len(s.found) {
		bound = max(bound, s.found[listed].LogProbability)
	}
	return bound
}

// gather follows beginnings until width conditionals are to be asked for. If it
// is hurried, it takes the shortest way to a state.
func (s *Search) gather(width int, hurried bool) {
	for !hurried || len(s.found) == 0 {
		from, bound := best(s.queues(hurried))
		if bound <= s.threshold() {
			from, bound = best(s.tree.all())
		}
		if from == nil || bound <= s.threshold() {
			return
		}
		if !from.first().asks() {
			s.follow(s.tree.pop(from))
			continue
		}
		if len(s.flight) >= width {
			break
		}
		s.flight = append(s.flight, s.tree.pop(from))
		s.asked++
	}
	if width <= 0 {
		s.finish()
	}
}

// finish follows beginnings with one open slot whose conditional is known, which
// gives states without asking for more, until k are found.
func (s *Search) finish() {
	for len(s.found) < s.k {
		from, _ := best(s.tree.leaving(0))
		if from == nil || from.first().asks() {
			return
		}
		s.follow(s.tree.pop(from))
	}
}

// queues returns the queues of which gather takes the best beginning: all, the
// nearest to a state, or those that leave one number of slots open.
func (s *Search) queues(hurried bool) iter.Seq[*queue] {
	if hurried {
		return s.tree.nearest()
	}
	turn := s.asked / (diveEvery + 1)
	if len(s.found) < s.k && s.asked%(diveEvery+1) == diveEvery {
		return s.tree.leaving(turn % s.tree.slots())
	}
	return s.tree.all()
}

// follow puts the next child of a beginning into the tree or, if its slots are
// all filled, among the found states.
func (s *Search) follow(b *beginning) {
	child := b.child()
	s.tree.add(b)
	if child.depth < b.law.slots() {
		s.tree.add(child)
		return
	}
	found := Found{Law: b.number, State: child.state, LogProbability: child.mass}
	at, _ := slices.BinarySearchFunc(s.found, found, func(a, b Found) int {
		return cmp.Or(cmp.Compare(b.LogProbability, a.LogProbability), a.Law-b.Law, slices.Compare(a.State, b.State))
	})
	s.found = slices.Insert(s.found, at, found)
}

// ask gets the conditionals of the beginnings in flight.
func (s *Search) ask(ctx context.Context) error {
	for number := range s.laws {
		var own []*beginning
		var asked []Partial
		for _, b := range s.flight {
			if b.number == number {
				own = append(own, b)
				asked = append(asked, Partial{b.state, b.slot()})
			}
		}
		if len(own) == 0 {
			continue
		}
		var failed error
		err := s.laws[number].Target.PartialConditionals(ctx, asked, func(i int, logp []float32) {
			most := listedCategories
			if own[i].depth == 0 {
				most = max(most, 2*s.k) // the root of a law is one, and may need many
			}
			if own[i].open() == 1 {
				most = min(most, 4*s.k+16) // the children are states, of which k count
			}
			err := own[i].learn(logp, most)
			if err != nil {
				failed = err
			}
		})
		if err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

// Likeliest returns the possible categories of choices with the largest logp,
// at most number (above 0) of them. The likeliest comes first, and of equals the
// smaller. logp has all categories; choices has some of them, ascending. If the
// logp of a choice is NaN, Likeliest returns this category alone.
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
		l := logp[category]
		if l != l {
			return []int{category}
		}
		if l <= least {
			continue
		}
		bits := math.Float32bits(l + 0) // +0 and -0 become equal
		bits ^= uint32(int32(^bits)>>31) & math.MaxInt32
		best = append(best, uint64(bits)<<32|uint64(category))
		if len(best) == 2*number {
			cut()
		}
	}
	cut()
	categories := make([]int, len(best))
	for i, b := range best {
		categories[i] = int(uint32(b))
	}
	return categories
}
