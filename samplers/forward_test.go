package samplers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestForward compares draws and probabilities with all states of random conditionals.
func TestForward(t *testing.T) {
	categories := []int{4, 3, 5}
	stream := rand.New(rand.NewPCG(7, 7))
	target := &tables{categories: categories, rows: map[string][]float32{},
		draw: func() float32 { return float32(math.Exp(stream.NormFloat64())) }}
	free := Law{Target: target, Orders: [][]int{{0, 1, 2}, {2, 1, 0}}, LogWeight: math.Log(0.5)}
	narrow := free
	narrow.Choices = func(state []int, slot int) []int { return [][]int{{0, 2, 3}, {0, 1, 2}, {1, 3}}[slot] }
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

	checkDraws(t, []Law{narrow}, categories)
}

// checkDraws compares 40,000 draws from laws with all states, by χ².
func checkDraws(t *testing.T, laws []Law, categories []int) {
	t.Helper()
	allowed := enumerateLaws(laws, categories)
	held := 0.0
	for _, f := range allowed {
		held += math.Exp(f.LogProbability)
	}
	const n = 40000
	draws, err := Draw(t.Context(), laws, Streams(2, "", n), nil)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, d := range draws {
		counts[fmt.Sprint(d.Law, d.State)]++
	}
	squares, cells := 0.0, 0
	for _, f := range allowed {
		if want := n * math.Exp(f.LogProbability) / held; want > 5 {
			d := float64(counts[fmt.Sprint(f.Law, f.State)]) - want
			squares += d * d / want
			cells++
		}
	}
	if cells < 10 || squares > float64(cells)+6*math.Sqrt(2*float64(cells)) {
		t.Errorf("χ² %v of %d states", squares, cells)
	}
}

// TestDrawOfSeveralLaws draws the laws by their weights and by what they allow.
func TestDrawOfSeveralLaws(t *testing.T) {
	stream := rand.New(rand.NewPCG(8, 7))
	draw := func() float32 { return float32(math.Exp(stream.NormFloat64())) }
	var laws []Law
	for i, weight := range []float64{0.2, 0.8} {
		laws = append(laws, Law{Target: &tables{categories: []int{4, 4}, rows: map[string][]float32{}, draw: draw},
			Orders: [][]int{{0, 1}, {1, 0}}, LogWeight: math.Log(weight),
			Choices: func(_ []int, slot int) []int { return [][]int{{i, 2}, {0, 1 + i, 3}}[slot] }})
	}
	checkDraws(t, laws, []int{4, 4})
}

// TestDrawEnds lets room end before all draws are done, and refuses laws that allow nothing.
func TestDrawEnds(t *testing.T) {
	stream := rand.New(rand.NewPCG(9, 7))
	target := &tables{categories: []int{3, 3}, rows: map[string][]float32{},
		draw: func() float32 { return float32(math.Exp(stream.NormFloat64())) }}
	law := Law{Target: target, Orders: [][]int{{0, 1}}, Allows: func(state []int) bool { return state[0] == state[1] }}
	draws, err := Draw(t.Context(), []Law{law}, Streams(1, "", 50), func(spent int) int { return 20 - spent })
	done := 0
	for _, d := range draws {
		if d.State != nil {
			done++
		}
	}
	if err != nil || done == 0 || done == 50 {
		t.Errorf("%d of 50 draws done: %v", done, err)
	}
	never := Law{Target: target, Orders: [][]int{{0, 1}}, Allows: func([]int) bool { return false }}
	draws, err = Draw(t.Context(), []Law{never}, Streams(1, "", 2), func(spent int) int { return 1000 - spent })
	if err != nil || draws[0].State != nil {
		t.Errorf("%v, %v", draws, err)
	}
	none := Law{Target: target, Orders: [][]int{{0, 1}}, Choices: func([]int, int) []int { return nil }}
	if _, err := Draw(t.Context(), []Law{none}, Streams(1, "", 2), nil); err == nil {
		t.Error("a law without choices: no error")
	}
}
