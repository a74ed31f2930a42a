package infill

import (
	"math/rand/v2"
	"slices"
	"testing"

	"infill/samplers/targets"
)

// Where the conditionals are those of the energy, looking beside fills finds every one that
// differs in one slot and belongs to the likeliest.
func TestVary(t *testing.T) {
	categories := []int{30, 20, 25}
	target, err := targets.NewTable(categories, rand.New(rand.NewPCG(5, 6)), targets.TableOptions{Scale: 2})
	if err != nil {
		t.Fatal(err)
	}
	all, err := targets.Enumerate(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	known := newFound(3)
	for i := range all.Len() {
		if i%700 == 0 {
			known.add(all.State(i), []float64{all.Energy[i]})
		}
	}
	begun := len(known.energy)
	best := known.best(climbed)
	floor := known.energy[best[len(best)-1]]
	few := newFound(3)
	few.add(known.states, known.energy)
	if news, err := vary(t.Context(), target, few, 5); !news || err != nil || len(few.energy) != begun+5 {
		t.Fatalf("at most 5: %d more, news %v, error %v", len(few.energy)-begun, news, err)
	}
	if news, err := vary(t.Context(), target, known, 10000); !news || err != nil {
		t.Fatalf("news %v, error %v", news, err)
	}
	if begun > answered {
		t.Fatalf("%d fills to begin with", begun)
	}
	wanted := 0
	for i := range all.Len() {
		state := all.State(i)
		beside := false
		for k := range begun {
			differ := 0
			for j, v := range known.state(k) {
				if v != state[j] {
					differ++
				}
			}
			beside = beside || differ == 1
		}
		if !beside || all.Energy[i] < floor {
			continue
		}
		wanted++
		if !slices.ContainsFunc(slices.Collect(slices.Chunk(known.states, 3)), func(s []int) bool { return slices.Equal(s, state) }) {
			t.Errorf("%v with U %v is beside what is known, and was not found; the tenth likeliest had %v", state, all.Energy[i], floor)
		}
	}
	if wanted < 20 || len(known.energy)-begun > 4*wanted {
		t.Errorf("%d to be found, %d looked at", wanted, len(known.energy)-begun)
	}
}
