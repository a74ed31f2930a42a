package samplers

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestForward compares draws, their weights and what known beginnings hold with all states
// of random conditionals.
func TestForward(t *testing.T) {
	categories := []int{4, 3, 5}
	stream := rand.New(rand.NewPCG(7, 7))
	target := &tables{categories: categories, rows: map[string][]float32{},
		draw: func() float32 { return float32(math.Exp(stream.NormFloat64())) }}
	free := Law{Target: target, Orders: [][]int{{0, 1, 2}, {2, 1, 0}}, LogWeight: math.Log(0.5)}
	narrow := free
	narrow.Support = func(state []int, slot int) []int { return [][]int{{0, 2, 3}, {0, 1, 2}, {1, 3}}[slot] }
	narrow.Allows = func(state []int) bool { return state[0] != state[1] }

	all := enumerateLaws([]Law{free}, categories)
	var states [][]int
	for _, f := range all {
		states = append(states, f.State)
	}
	logp, err := free.LogProbability(t.Context(), states)
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for i, f := range all {
		total += math.Exp(logp[i])
		if math.Abs(logp[i]-f.LogProbability) > 1e-12 {
			t.Errorf("state %v has %v, want %v", f.State, logp[i], f.LogProbability)
		}
	}
	if math.Abs(total-0.5) > 1e-5 {
		t.Errorf("the law holds %v", total)
	}

	allowed := enumerateLaws([]Law{narrow}, categories)
	held := 0.0
	for _, f := range allowed {
		held += math.Exp(f.LogProbability)
	}
	share, err := EstimateShare(t.Context(), []Law{narrow}, 0.01, Streams(1, "", 64),
		func(draws int) bool { return draws < 1<<16 })
	if err != nil {
		t.Fatal(err)
	}
	if got := math.Exp(share.Log); !(share.Error > 0 && share.Error <= 0.01) || math.Abs(got-held) > 4*share.Error*got {
		t.Errorf("%v ± %v are allowed, by %d draws, and it is %v", got, share.Error*got, share.Draws, held)
	}

	const n = 20000
	counts := map[string]int{}
	kept := 0
	streams := Streams(2, "", n)
	for order := range narrow.Orders {
		draws, err := narrow.Draw(t.Context(), order, streams)
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range draws {
			if streams[i].Float64() < math.Exp(d.LogWeight) {
				counts[string(stateBytes(d.State))]++
				kept++
			}
		}
	}
	squares, cells := 0.0, 0
	for _, f := range allowed {
		if want := float64(kept) * math.Exp(f.LogProbability) / held; want > 5 {
			d := float64(counts[string(stateBytes(f.State))]) - want
			squares += d * d / want
			cells++
		}
	}
	if cells < 10 || squares > float64(cells)+6*math.Sqrt(2*float64(cells)) {
		t.Errorf("χ² %v of %d states", squares, cells)
	}

	// What beginnings hold, whatever the search has followed.
	for _, rows := range []int{1, 4, 9, 1000} {
		search, err := NewSearch([]Law{free})
		if err != nil {
			t.Fatal(err)
		}
		target.asked = 0
		if err := search.Run(t.Context(), 3, func() int { return rows - target.asked }, nil); err != nil {
			t.Fatal(err)
		}
		for slot := range categories {
			sums, spares := make([]float64, categories[slot]), make([]float64, categories[slot])
			missing := search.Hold(0, []int{slot}, func(values []int, p, spared float64) {
				sums[values[0]] += p
				spares[values[0]] += spared
			})
			for v, sum := range sums {
				want, listed := 0.0, 0.0
				for _, f := range all {
					if f.State[slot] == v {
						want += math.Exp(f.LogProbability)
					}
				}
				for _, f := range search.Found() {
					if f.State[slot] == v {
						listed += math.Exp(f.LogProbability)
					}
				}
				open := missing - spares[v]
				if sum > want+1e-6 || sum+open < want-1e-6 || sum < listed-1e-9 {
					t.Errorf("%d rows, slot %d, category %d: %v to %v, it is %v, and states that were found hold %v",
						rows, slot, v, sum, sum+open, want, listed)
				}
			}
		}
	}
}

func stateBytes(state []int) (key []byte) {
	for _, v := range slices.All(state) {
		key = append(key, byte(v))
	}
	return key
}
