package samplers

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// tables are conditionals drawn at random for every beginning: no joint distribution has
// them all.
type tables struct {
	categories []int
	rows       map[string][]float32
	draw       func() float32 // a weight
	asked      int
	missing    float64 // what the categories lack to one
	total      *int    // conditionals of several targets; nil: nobody counts
}

func (t *tables) PartialConditionals(_ context.Context, asked []Partial, take func(i int, logp []float32)) error {
	for i, p := range asked {
		t.asked++
		if t.total != nil {
			*t.total++
		}
		take(i, t.row(p.State, p.Slot))
	}
	return nil
}

func (t *tables) row(state []int, slot int) []float32 {
	key := make([]byte, 0, len(state)+1)
	for _, v := range state {
		key = append(key, byte(v+1))
	}
	key = append(key, byte(slot))
	row, ok := t.rows[string(key)]
	if !ok {
		row = make([]float32, t.categories[slot])
		sum := 0.0
		for v := range row {
			row[v] = t.draw()
			sum += float64(row[v])
		}
		for v := range row {
			row[v] = float32(math.Log(float64(row[v]) / max(sum, 1e-300) * (1 - t.missing)))
		}
		t.rows[string(key)] = row
	}
	return row
}

// enumerate lists all states with their probabilities, the likeliest first.
func enumerateLaws(laws []Law, categories []int) []Found {
	var all []Found
	for number, l := range laws {
		var visit func(state []int)
		visit = func(state []int) {
			if len(state) < len(categories) {
				for v := range categories[len(state)] {
					visit(append(state, v))
				}
				return
			}
			partial := slices.Repeat([]int{Open}, len(state))
			p := l.LogWeight
			for _, slot := range l.Order {
				if l.Choices != nil && !slices.Contains(l.Choices(partial, slot), state[slot]) {
					return
				}
				p += float64(l.Target.(*tables).row(partial, slot)[state[slot]])
				partial[slot] = state[slot]
			}
			if !math.IsInf(p, -1) {
				all = append(all, Found{number, slices.Clone(state), p})
			}
		}
		visit(nil)
	}
	slices.SortStableFunc(all, func(a, b Found) int { return cmp.Compare(b.LogProbability, a.LogProbability) })
	return all
}

// pairs returns choices that keep the first and the last slot to allowed pairs.
func pairs(categories []int, allowed func(first, last int) bool) func(state []int, slot int) []int {
	last := len(categories) - 1
	return func(state []int, slot int) []int {
		var list []int
		for v := range categories[slot] {
			switch {
			case slot == 0 && state[last] != Open && !allowed(v, state[last]):
			case slot == last && state[0] != Open && !allowed(state[0], v):
			case last == 0 && !allowed(v, v):
			default:
				list = append(list, v)
			}
		}
		return list
	}
}

// randomOrder is forth, back or any order.
func randomOrder(n int, stream *rand.Rand) []int {
	order := ascending(n)
	switch stream.IntN(3) {
	case 0:
		return order
	case 1:
		slices.Reverse(order)
		return order
	}
	return stream.Perm(n)
}

// TestSearch compares the found states with all states of random conditionals,
// among them ties, impossible categories, slots of one category, choices that
// lead nowhere, several laws, and more states wanted than there are.
func TestSearch(t *testing.T) {
	for seed := range uint64(1000) {
		stream := rand.New(rand.NewPCG(seed, 1))
		n := 1 + stream.IntN(4)
		var categories []int
		for range n {
			categories = append(categories, 1+stream.IntN(6))
		}
		draw := func() float32 { return float32(math.Exp(3 * stream.NormFloat64())) }
		switch stream.IntN(4) {
		case 0: // ties
			draw = func() float32 { return float32(1 + stream.IntN(2)) }
		case 1: // impossible ones
			draw = func() float32 { return float32(max(0, stream.NormFloat64())) + 1e-30*float32(stream.IntN(2)) }
		}
		var laws []Law
		for range 1 + stream.IntN(2) {
			laws = append(laws,
				Law{Target: &tables{categories: categories, rows: map[string][]float32{}, draw: draw,
					missing: 0.3 * float64(stream.IntN(2))},
					Order: randomOrder(n, stream), LogWeight: -stream.Float64()})
			l := &laws[len(laws)-1]
			switch stream.IntN(3) {
			case 0:
				l.Choices = pairs(categories, func(first, last int) bool { return (first+last)%2 == 0 })
			case 1: // the last slot holds what the first does, where it can
				l.Choices = pairs(categories, func(first, last int) bool { return first == last })
			}
		}
		want := enumerateLaws(laws, categories)
		k := 1 + stream.IntN(8)
		search, err := NewSearch(laws)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // and then for more
			if err := search.Run(t.Context(), k, nil, nil); err != nil {
				t.Fatal(err)
			}
			found := search.Found()
			if !search.Proven() || len(found) < min(k, len(want)) {
				t.Fatalf("seed %d: proven %v, %d of %d found, of %d", seed, search.Proven(), len(found), k, len(want))
			}
			for i := range min(k, len(want)) {
				if d := math.Abs(found[i].LogProbability - want[i].LogProbability); !(d < 1e-12) {
					t.Fatalf("seed %d: state %d has %v, and the one of its rank %v", seed, i, found[i].LogProbability,
						want[i].LogProbability)
				}
				at := slices.IndexFunc(want,
					func(w Found) bool { return w.Law == found[i].Law && slices.Equal(w.State, found[i].State) })
				if at < 0 || math.Abs(want[at].LogProbability-found[i].LogProbability) > 1e-12 {
					t.Fatalf("seed %d: state %v of %v is not what it is", seed, found[i].State, found[i].LogProbability)
				}
			}
			if len(want) > k && search.LeftOut(k) < want[k].LogProbability-1e-12 ||
				len(found) > 0 && search.LeftOut(k) > found[min(k, len(found))-1].LogProbability+1e-12 {
				t.Fatalf("seed %d: left out at most %v", seed, search.LeftOut(k))
			}
			k += stream.IntN(20)
		}
	}
}

// TestCertificate ends searches after every conditional, from the first to the
// proof. The bound of LeftOut is never below the likeliest state behind any
// number of those found, also if the search may store little.
func TestCertificate(t *testing.T) {
	for seed := range uint64(1000) {
		stream := rand.New(rand.NewPCG(seed, 2))
		n := 1 + stream.IntN(4)
		categories := slices.Repeat([]int{2 + stream.IntN(4)}, n)
		scale := 0.5 + 2*stream.Float64()
		var laws []Law
		asked := 0
		for range 1 + stream.IntN(2) {
			target := &tables{categories: categories, rows: map[string][]float32{}, total: &asked,
				draw: func() float32 { return float32(math.Exp(scale * stream.NormFloat64())) }}
			law := Law{Target: target, Order: randomOrder(n, stream), LogWeight: -stream.Float64()}
			if stream.IntN(2) == 0 {
				law.Choices = pairs(categories, func(first, last int) bool { return first != last || n == 1 })
			}
			laws = append(laws, law)
		}
		want := enumerateLaws(laws, categories)
		k := 1 + stream.IntN(7)
		search, err := NewSearch(laws)
		if err != nil {
			t.Fatal(err)
		}
		for limit := 1; !search.Proven() && limit < 1000; limit++ {
			before := limit
			had := search.Len()
			if seed%3 == 0 && had > 0 { // beginnings that are let go are in the bound, too
				search.tree.most = 2000
			}
			err := search.Run(t.Context(), k, func() int { return before - asked }, nil)
			if err != nil {
				t.Fatal(err)
			}
			// To find a first state, a search takes as many more as a state has slots.
			if asked > before && (had > 0 || asked > before+n) || search.Len() == 0 && len(want) > 0 {
				t.Fatalf("seed %d: %d conditionals, %d were allowed", seed, asked, before)
			}
			limit = max(limit, asked)
			found := search.Found()
			for listed := range len(found) + 1 {
				bound := search.LeftOut(listed)
				for _, w := range want {
					if w.LogProbability > bound+1e-12 && !slices.ContainsFunc(found[:listed],
						func(f Found) bool { return f.Law == w.Law && slices.Equal(f.State, w.State) }) {
						t.Fatalf("seed %d, %d conditionals, %d listed: %v has %v, left out was at most %v", seed, asked,
							listed, w.State, w.LogProbability, bound)
					}
				}
			}
		}
	}
}

// TestLikeliest compares with sorting all choices, among them ties and impossible ones.
func TestLikeliest(t *testing.T) {
	stream := rand.New(rand.NewPCG(3, 3))
	logp := make([]float32, 3000)
	var choices []int
	for v := range logp {
		if logp[v] = float32(300 - stream.IntN(900)); v%7 == 0 {
			logp[v] = float32(math.Inf(-1))
		}
		if v%11 == 1 { // both zeros are equal
			logp[v] = float32(math.Copysign(0, float64(v%2)-0.5))
		}
		if v%3 > 0 {
			choices = append(choices, v)
		}
	}
	want := slices.DeleteFunc(slices.Clone(choices), func(v int) bool { return math.IsInf(float64(logp[v]), -1) })
	slices.SortStableFunc(want, func(a, b int) int { return cmp.Compare(logp[b], logp[a]) })
	for _, number := range []int{1, 2, 40, len(want), 5000} {
		if got := Likeliest(choices, logp, number); !slices.Equal(got, want[:min(number, len(want))]) {
			t.Errorf("%d likeliest: %v", number, got)
		}
	}
}

// TestSearchOfManySlots: where what may be asked for ends before a state is
// found, the search takes the shortest way to one. It asks for no more than it
// may, or than tell that state's probability.
func TestSearchOfManySlots(t *testing.T) {
	const slots = 80
	for _, room := range []int{1, 300} {
		target := &tables{categories: slices.Repeat([]int{4}, slots), rows: map[string][]float32{},
			draw: func() float32 { return 1 }}
		s, err := NewSearch([]Law{{Target: target, Order: ascending(slots)}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context(), 5, func() int { return max(0, room-target.asked) }, nil); err != nil {
			t.Fatal(err)
		}
		if most := max(room, slots); len(s.Found()) == 0 || s.Proven() || target.asked > most {
			t.Errorf("%d may be asked for: %d were, %d found, proven %v", room, target.asked, len(s.Found()),
				s.Proven())
		}
	}
}

// TestSearchUsesItsRoom: a search that hurried to its first state goes on with the room that is left.
func TestSearchUsesItsRoom(t *testing.T) {
	const slots = 3
	for room := slots; room < 12; room++ {
		stream := rand.New(rand.NewPCG(uint64(room), 4))
		target := &tables{categories: slices.Repeat([]int{30}, slots), rows: map[string][]float32{},
			draw: func() float32 { return 1 + stream.Float32() }}
		s, err := NewSearch([]Law{{Target: target, Order: ascending(slots)}})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Run(t.Context(), 5, func() int { return max(0, room-target.asked) }, nil)
		if err != nil || target.asked != room || s.Len() < 5 || s.Proven() {
			t.Errorf("%d of %d conditionals, %d found, proven %v, %v", target.asked, room, s.Len(), s.Proven(), err)
		}
	}
}

// TestShrink: of beginnings with equal bounds, the half goes, too, and what went is in the bound.
func TestShrink(t *testing.T) {
	for _, number := range []int{1, 2, 5, 8} {
		target := &tables{categories: []int{2, 2}, rows: map[string][]float32{}}
		laws := make([]Law, number)
		for i := range laws {
			laws[i] = Law{Target: target, Order: []int{0, 1}, LogWeight: -1}
		}
		tree := newTree(laws)
		tree.shrink()
		left := len(tree.fresh[2])
		if left != number-number/2 || tree.left() != -1 || (number > 1) != (tree.cut == -1) {
			t.Errorf("%d of %d beginnings stay, at most %v is left, %v was let go", left, number, tree.left(), tree.cut)
		}
	}
}

// TestShrinkBound: the likeliest of what was let go bounds it.
func TestShrinkBound(t *testing.T) {
	target := &tables{categories: []int{2, 2}, rows: map[string][]float32{}}
	var laws []Law
	for i := range 5 {
		laws = append(laws, Law{Target: target, Order: []int{0, 1}, LogWeight: -float64(i)})
	}
	tree := newTree(laws)
	tree.shrink()
	if tree.cut != -3 || len(tree.fresh[2]) != 3 {
		t.Errorf("%d of 5 stay, and at most %v was let go, want 3 and -3", len(tree.fresh[2]), tree.cut)
	}
}

// TestSearchAsks holds the number of conditionals that searches ask for: a change
// of it is to be meant, as it changes the cost of every fill.
func TestSearchAsks(t *testing.T) {
	total := 0
	for seed := range uint64(200) {
		stream := rand.New(rand.NewPCG(seed, 5))
		n := 2 + stream.IntN(4)
		scale := 0.5 + 2*stream.Float64()
		target := &tables{categories: slices.Repeat([]int{20}, n), rows: map[string][]float32{}, total: &total,
			draw: func() float32 { return float32(math.Exp(scale * stream.NormFloat64())) }}
		search, err := NewSearch([]Law{{Target: target, Order: ascending(n)}})
		if err != nil {
			t.Fatal(err)
		}
		err = search.Run(t.Context(), 5, func() int { return 300 - target.asked }, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	const want = 20315
	if total != want {
		t.Errorf("200 searches asked for %d conditionals, want %d", total, want)
	}
}

func TestSearchRefuses(t *testing.T) {
	target := &tables{categories: []int{2, 2}}
	for name, laws := range map[string][]Law{
		"none": nil, "no target": {{Order: []int{0}}}, "no order": {{Target: target}},
		"a slot twice": {{Target: target, Order: []int{0, 0}}},
		"weight":       {{Target: target, Order: []int{0}, LogWeight: math.Inf(1)}},
	} {
		if _, err := NewSearch(laws); err == nil {
			t.Errorf("%s: no error", name)
		}
		drawn, err := Draw(t.Context(), laws, 1, Streams(1, "", 2), nil)
		if err == nil || drawn != nil {
			t.Errorf("%s: draws %v, error %v", name, drawn, err)
		}
	}
	broken := &tables{categories: []int{2}, rows: map[string][]float32{"\x00\x00": {float32(math.NaN()), 0}}}
	search, err := NewSearch([]Law{{Target: broken, Order: []int{0}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := search.Run(t.Context(), 1, nil, nil); err == nil {
		t.Error("a conditional that is NaN: no error")
	}
	if err := search.Run(t.Context(), 0, nil, nil); err == nil {
		t.Error("no states: no error")
	}
}
