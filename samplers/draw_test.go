package samplers

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestForward compares draws with all states of random conditionals, at
// temperatures and with choices.
func TestForward(t *testing.T) {
	categories := []int{4, 3, 5}
	for _, temperature := range []float64{1, 0.5, 3} {
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
			stream := rand.New(rand.NewPCG(7, 7))
			target := &tables{categories: categories, rows: map[string][]float32{},
				draw: func() float32 { return float32(math.Exp(stream.NormFloat64())) }}
			law := Law{Target: target, Order: order, LogWeight: math.Log(0.5)}
			law.Choices = func(state []int, slot int) []int {
				choices := [][]int{{0, 2, 3}, {0, 1, 2}, {1, 3}}[slot]
				if slot > 1 || state[1-slot] == Open {
					return choices
				}
				return slices.DeleteFunc(slices.Clone(choices), func(v int) bool { return v == state[1-slot] })
			}
			checkDraws(t, []Law{law}, temperature, categories)
		}
	}
}

// heated is the target whose conditionals are those of target to the power
// 1/temperature, over all categories.
func heated(target *tables, temperature float64) *tables {
	hot := &tables{categories: target.categories, rows: map[string][]float32{}}
	for key, row := range target.rows {
		sum := 0.0
		for _, l := range row {
			sum += math.Exp(float64(l) / temperature)
		}
		own := make([]float32, len(row))
		for v, l := range row {
			own[v] = float32(float64(l)/temperature - math.Log(sum))
		}
		hot.rows[key] = own
	}
	return hot
}

// checkDraws compares 40,000 draws from laws with all states, by χ², and their
// probabilities with those at temperature 1.
func checkDraws(t *testing.T, laws []Law, temperature float64, categories []int) {
	t.Helper()
	own := map[string]float64{}
	for _, f := range enumerateLaws(laws, categories) { // this also fills the tables
		own[fmt.Sprint(f.Law, f.State)] = f.LogProbability
	}
	hot := slices.Clone(laws)
	for i := range hot {
		hot[i].Target = heated(laws[i].Target.(*tables), temperature)
	}
	allowed := enumerateLaws(hot, categories)
	held := 0.0
	for _, f := range allowed {
		held += math.Exp(f.LogProbability)
	}
	const n = 40000
	draws, err := Draw(t.Context(), laws, temperature, Streams(2, "", n), nil)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, d := range draws {
		key := fmt.Sprint(d.Found.Law, d.Found.State)
		counts[key]++
		if !d.Done || math.Abs(d.Found.LogProbability-own[key]) > 1e-12 {
			t.Fatalf("%s has %v, want %v", key, d.Found.LogProbability, own[key])
		}
	}
	squares, cells := 0.0, 0
	for _, f := range allowed {
		want := n * math.Exp(f.LogProbability) / held
		if want <= 5 {
			continue
		}
		d := float64(counts[fmt.Sprint(f.Law, f.State)]) - want
		squares += d * d / want
		cells++
	}
	if cells < 10 || squares > float64(cells)+6*math.Sqrt(2*float64(cells)) {
		t.Errorf("temperature %v: χ² %v of %d states", temperature, squares, cells)
	}
}

// TestDrawOfSeveralLaws draws the laws by their weights and by what they allow.
func TestDrawOfSeveralLaws(t *testing.T) {
	stream := rand.New(rand.NewPCG(8, 7))
	draw := func() float32 { return float32(math.Exp(stream.NormFloat64())) }
	var laws []Law
	for i, weight := range []float64{0.2, 0.8} {
		laws = append(laws, Law{Target: &tables{categories: []int{4, 4}, rows: map[string][]float32{}, draw: draw},
			Order: [][]int{{0, 1}, {1, 0}}[i], LogWeight: math.Log(weight),
			Choices: func(_ []int, slot int) []int { return [][]int{{i, 2}, {0, 1 + i, 3}}[slot] }})
	}
	checkDraws(t, laws, 1, []int{4, 4})
}

// limited counts the conditionals of a target together with others, and interrupts a
// call.
type limited struct {
	*tables
	count *counts
}

type counts struct {
	asked, calls, last int // the last call is interrupted, if it is above 0
	interrupt          func()
}

func (l *limited) PartialConditionals(ctx context.Context, asked []Partial, take func(int, []float32)) error {
	l.count.calls++
	if l.count.calls == l.count.last {
		l.count.interrupt()
		return ctx.Err()
	}
	l.count.asked += len(asked)
	return l.tables.PartialConditionals(ctx, asked, take)
}

// TestDrawBudget: whatever ends draws early, a number of conditionals or an interrupt,
// those that are kept have the law of all draws, and no conditional is asked for
// beyond the room. Over many seeds, counts are compared with their binomial law. A
// draw of the shorter law ends sooner, and likely states share conditionals.
func TestDrawBudget(t *testing.T) {
	stream := rand.New(rand.NewPCG(9, 7))
	draw := func() float32 { return float32(math.Exp(2 * stream.NormFloat64())) }
	categories := []int{4, 4, 4}
	choices := func(state []int, _ int) []int { return []int{0, 1, 2}[:len(state)] }
	var plain []Law
	for _, order := range [][]int{{0, 1, 2}, {1, 0}} {
		target := &tables{categories: categories[:len(order)], rows: map[string][]float32{}, draw: draw}
		plain = append(plain, Law{Target: target, Order: order, LogWeight: math.Log(0.5), Choices: choices})
	}
	expected := firstShares(plain, categories)
	for name, c := range map[string]struct{ room, last int }{
		"few rows": {room: 4}, "rows": {room: 15}, "many rows": {room: 60}, "all rows": {room: 1 << 30},
		"interrupted at once": {room: 1 << 30, last: 7}, "interrupted": {room: 9, last: 6},
		"interrupted late": {room: 25, last: 7},
	} {
		n := 0.0
		var hits [2]float64 // draws of the first law, and with the first category in the first slot
		interrupted := 0
		for seed := range 4000 {
			ctx, cancel := context.WithCancel(t.Context())
			count := &counts{last: c.last, interrupt: cancel}
			laws := slices.Clone(plain)
			for i := range laws {
				laws[i].Target = &limited{plain[i].Target.(*tables), count}
			}
			room := func(_, rejected int) int { return c.room + len(laws) - count.asked - rejected }
			draws, err := Draw(ctx, laws, 1, Streams(uint64(seed), "", 25), room)
			if (err != nil) != (ctx.Err() != nil) || count.asked > c.room+len(laws) {
				t.Fatalf("%s: %d conditionals of %d, error %v", name, count.asked, c.room+len(laws), err)
			}
			if err != nil {
				interrupted++
			}
			cancel()
			for _, d := range draws {
				if !d.Done {
					continue
				}
				n++
				if d.Found.Law == 0 {
					hits[0]++
				}
				if d.Found.State[0] == 0 {
					hits[1]++
				}
			}
		}
		if n < 1000 || c.last > 0 && interrupted < 100 {
			t.Errorf("%s: %v draws, %d interrupted", name, n, interrupted)
		}
		for i, p := range expected {
			z := (hits[i] - n*p) / math.Sqrt(n*p*(1-p))
			if !(math.Abs(z) < 5.3) { // 1e-7 on both sides
				t.Errorf("%s: %v of %v draws, want a share of %.4f: %.1f standard errors", name, hits[i], n, p, z)
			}
		}
	}
}

// firstShares returns the share of the first law, and that of category 0 in slot 0, among
// all allowed states.
func firstShares(laws []Law, categories []int) (shares [2]float64) {
	total := 0.0
	for number, law := range laws {
		for _, f := range enumerateLaws([]Law{law}, categories[:len(law.Order)]) {
			p := math.Exp(f.LogProbability)
			total += p
			if number == 0 {
				shares[0] += p
			}
			if f.State[0] == 0 {
				shares[1] += p
			}
		}
	}
	return [2]float64{shares[0] / total, shares[1] / total}
}

// TestDrawEnds lets room end before all draws are done, and refuses laws
// that allow nothing.
func TestDrawEnds(t *testing.T) {
	stream := rand.New(rand.NewPCG(9, 7))
	target := &tables{categories: []int{3, 3}, rows: map[string][]float32{},
		draw: func() float32 { return float32(math.Exp(stream.NormFloat64())) }}
	law := Law{Target: target, Order: []int{0, 1},
		Choices: pairs(target.categories, func(first, last int) bool { return first == last })}
	room := func(_, rejected int) int { return 20 - rejected }
	draws, err := Draw(t.Context(), []Law{law}, 1, Streams(1, "", 50), room)
	done := 0
	for _, d := range draws {
		if d.Done {
			done++
		}
	}
	if err != nil || done == 0 || done == 50 {
		t.Errorf("%d of 50 draws done: %v", done, err)
	}
	never := Law{Target: target, Order: []int{0, 1},
		Choices: pairs(target.categories, func(first, last int) bool { return false })}
	room = func(_, rejected int) int { return 1000 - rejected }
	draws, err = Draw(t.Context(), []Law{never}, 1, Streams(1, "", 2), room)
	if err != nil || draws[0].Done {
		t.Errorf("%v, %v", draws, err)
	}
	none := Law{Target: target, Order: []int{0, 1}, Choices: func([]int, int) []int { return nil }}
	_, err = Draw(t.Context(), []Law{none}, 1, Streams(1, "", 2), nil)
	if err == nil {
		t.Error("a law without choices: no error")
	}
	_, err = Draw(t.Context(), []Law{law}, 0, Streams(1, "", 2), nil)
	if err == nil {
		t.Error("a temperature of 0: no error")
	}
}
