package infill

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"infill/internal/targets"
	"infill/lm"
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
		if !slices.ContainsFunc(slices.Collect(slices.Chunk(known.states, 3)),
			func(s []int) bool { return slices.Equal(s, state) }) {
			t.Errorf("%v with U %v is beside what is known, and was not found; the tenth likeliest had %v", state,
				all.Energy[i], floor)
		}
	}
	if wanted < 20 || len(known.energy)-begun > 4*wanted {
		t.Errorf("%d to be found, %d looked at", wanted, len(known.energy)-begun)
	}
}

// Where the budget cuts the search short, a warning says so, whether the errors are reached or not.
func TestCutSearchIsTold(t *testing.T) {
	f, err := Open(OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, c := range []struct {
		rows     int
		accuracy float64
		cut      bool
	}{{150, 0.9, true}, {300, 0.9, false}, {150, 1e-4, true}} {
		o := DefaultOptions()
		o.Seed, o.Joint, o.Candidates, o.Error, o.Budget = 1, JointPLL, 12, c.accuracy, Budget{Rows: c.rows}
		r := fill(t, f, "She closed the [MASK] and went to [MASK] with the [MASK].", o)
		said := strings.Join(r.Warnings, "\n")
		if got := strings.Contains(said, "cut short by the budget"); got != c.cut || r.Method != MethodImportance ||
			strings.Contains(said, "after the budget of") != (c.accuracy < 0.1) {
			t.Errorf("%d rows, error %g: method %s, warnings %q", c.rows, c.accuracy, r.Method, r.Warnings)
		}
	}
}

// Joint ag needs a row for each candidate, and takes nothing else in its place.
func TestClosestJointWithinItsBudget(t *testing.T) {
	f, _ := newFake(t)
	o := DefaultOptions()
	o.Fill, o.Joint, o.Candidates, o.Budget = FillAny, jointAG, 0, Budget{Rows: 20}
	if _, err := f.Fill(t.Context(), twoSlots, o, nil); err == nil || !strings.Contains(err.Error(), "larger budget") {
		t.Errorf("20 rows: %v", err)
	}
}

// A closest joint that is not come to is reported of.
func TestClosestJointThatDoesNotConverge(t *testing.T) {
	r, a := &run{problem: &problem{target: endless{}}}, &answer{}
	if _, err := r.closest(t.Context(), a); err != nil || len(a.warnings) != 1 {
		t.Errorf("warnings %q, error %v", a.warnings, err)
	}
}

// endless has conditionals whose closest joint gives a category nothing at all.
type endless struct{ lm.Target }

func (endless) Categories() []int { return []int{2, 2} }

func (endless) LogConditionals(_ context.Context, _, slots []int, logp []float64) error {
	for c := range slots {
		logp[2*c], logp[2*c+1] = 0, math.Inf(-1)
	}
	return nil
}
