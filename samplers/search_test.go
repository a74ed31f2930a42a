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
			if l.Allows != nil && !l.Allows(state) {
				return
			}
			var products []float64
			for _, order := range l.Orders {
				partial := slices.Repeat([]int{Open}, len(state))
				sum := 0.0
				for _, slot := range order {
					if l.Choices != nil && !slices.Contains(l.Choices(partial, slot), state[slot]) {
						return
					}
					sum += float64(l.Target.(*tables).row(partial, slot)[state[slot]])
					partial[slot] = state[slot]
				}
				products = append(products, sum)
			}
			if p := l.LogWeight + logMean(products); !math.IsInf(p, -1) {
				all = append(all, Found{number, slices.Clone(state), p})
			}
		}
		visit(nil)
	}
	slices.SortStableFunc(all, func(a, b Found) int { return cmp.Compare(b.LogProbability, a.LogProbability) })
	return all
}

func randomOrders(n int, stream *rand.Rand) [][]int {
	forth := ascending(n)
	back := slices.Clone(forth)
	slices.Reverse(back)
	switch stream.IntN(4) {
	case 0:
		return [][]int{forth}
	case 1:
		return [][]int{forth, back, stream.Perm(n)}
	}
	return [][]int{forth, back}
}

// TestSearch compares the found states with all states of random conditionals, among them ties, impossible categories,
// slots of one category, states that are not allowed, several laws, and more states wanted than there are.
func TestSearch(t *testing.T) {
	for seed := range uint64(400) {
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
					Orders: randomOrders(n, stream), LogWeight: -stream.Float64()})
			l := &laws[len(laws)-1]
			switch stream.IntN(3) {
			case 0:
				l.Allows = func(state []int) bool { return (state[0]+state[n-1])%2 == 0 }
			case 1: // the last slot holds what the first does, where it can
				l.Choices = func(state []int, slot int) []int {
					for _, other := range []int{0, n - 1} {
						if slot+other == n-1 && slot != other && state[other] != Open {
							if state[other] < categories[slot] {
								return []int{state[other]}
							}
							return nil
						}
					}
					return ascending(categories[slot])
				}
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

// TestCertificate ends searches after every conditional, from the first to the proof. The bound of LeftOut is never
// below the likeliest state behind any number of those found.
func TestCertificate(t *testing.T) {
	for seed := range uint64(120) {
		stream := rand.New(rand.NewPCG(seed, 2))
		n := 1 + stream.IntN(4)
		categories := slices.Repeat([]int{2 + stream.IntN(4)}, n)
		scale := 0.5 + 2*stream.Float64()
		var laws []Law
		asked := 0
		for range 1 + stream.IntN(2) {
			target := &tables{categories: categories, rows: map[string][]float32{}, total: &asked,
				draw: func() float32 { return float32(math.Exp(scale * stream.NormFloat64())) }}
			law := Law{Target: target, Orders: randomOrders(n, stream), LogWeight: -stream.Float64()}
			if stream.IntN(2) == 0 {
				law.Allows = func(state []int) bool { return state[0] != state[n-1] || n == 1 }
			}
			laws = append(laws, law)
		}
		want := enumerateLaws(laws, categories)
		k := 1 + stream.IntN(7)
		search, err := NewSearch(laws)
		if err != nil {
			t.Fatal(err)
		}
		for limit := 1; !search.Proven(); limit++ {
			before, had := limit, search.Len()
			if err := search.Run(t.Context(), k, func() int { return before - asked }, nil); err != nil {
				t.Fatal(err)
			}
			// Without a state, a search goes on until there is one.
			if limit = max(limit, asked); asked > before && had > 0 || search.Len() == 0 && len(want) > 0 {
				t.Fatalf("seed %d: %d conditionals, %d were allowed", seed, asked, before)
			}
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
		if v%3 > 0 {
			choices = append(choices, v)
		}
	}
	want := slices.DeleteFunc(slices.Clone(choices), func(v int) bool { return v%7 == 0 })
	slices.SortStableFunc(want, func(a, b int) int { return cmp.Compare(logp[b], logp[a]) })
	for _, number := range []int{1, 2, 40, len(want), 5000} {
		if got := Likeliest(choices, logp, number); !slices.Equal(got, want[:min(number, len(want))]) {
			t.Errorf("%d likeliest: %v", number, got)
		}
	}
}

// TestSearchOfManySlots: where what may be asked for ends before a state is found, the search takes the shortest way to
// one. It asks for no more than it may, or than tell that state's probability.
func TestSearchOfManySlots(t *testing.T) {
	const slots = 80
	forth := ascending(slots)
	back := slices.Clone(forth)
	slices.Reverse(back)
	for _, room := range []int{1, 300} {
		target := &tables{categories: slices.Repeat([]int{4}, slots), rows: map[string][]float32{},
			draw: func() float32 { return 1 }}
		s, err := NewSearch([]Law{{Target: target, Orders: [][]int{forth, back}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context(), 5, func() int { return max(0, room-target.asked) }, nil); err != nil {
			t.Fatal(err)
		}
		if most := max(room, 2*slots); len(s.Found()) == 0 || s.Proven() || target.asked > most+8 {
			t.Errorf("%d may be asked for: %d were, %d found, proven %v", room, target.asked, len(s.Found()),
				s.Proven())
		}
	}
}

func TestSearchRefuses(t *testing.T) {
	target := &tables{categories: []int{2, 2}}
	for name, laws := range map[string][]Law{
		"none": nil, "no target": {{Orders: [][]int{{0}}}}, "no order": {{Target: target}},
		"a slot twice": {{Target: target, Orders: [][]int{{0, 0}}}},
		"weight":       {{Target: target, Orders: [][]int{{0}}, LogWeight: math.Inf(1)}},
	} {
		if _, err := NewSearch(laws); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	broken := &tables{categories: []int{2}, rows: map[string][]float32{"\x00\x00": {float32(math.NaN()), 0}}}
	search, err := NewSearch([]Law{{Target: broken, Orders: [][]int{{0}}}})
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
