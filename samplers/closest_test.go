package samplers_test

import (
	"context"
	"math"
	"testing"

	"infill/samplers"
)

// The joint of Arnold and Gokhale gives back a joint whose conditionals agree.
func TestClosestJoint(t *testing.T) {
	want := []float64{0.1, 0.05, 0.2, 0.15, 0.3, 0.2} // [2 × 3]
	got, change, err := samplers.ClosestJoint(t.Context(), agreeing{want})
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range got {
		if math.Abs(math.Exp(l)-want[i]) > 1e-6 {
			t.Errorf("state %d: %v, want %v", i, math.Exp(l), want[i])
		}
	}
	if change > 1e-6 {
		t.Errorf("it still changes by %v", change)
	}
	if _, _, err := samplers.ClosestJoint(t.Context(), threeSlots{}); err == nil {
		t.Error("a joint of three slots was made")
	}
}

// threeSlots is no target of two.
type threeSlots struct{ agreeing }

func (threeSlots) Categories() []int { return []int{2, 3, 2} }

// agreeing is a joint of 2 × 3 with its own conditionals.
type agreeing struct{ joint []float64 }

func (agreeing) Categories() []int { return []int{2, 3} }

func (agreeing) Energy(context.Context, []int, []float64) error { return nil }

func (a agreeing) LogConditionals(_ context.Context, states, slots []int, logp []float64) error {
	for c, slot := range slots {
		total := 0.0
		for v := range a.Categories()[slot] {
			state := [2]int{states[2*c], states[2*c+1]}
			state[slot] = v
			p := a.joint[3*state[0]+state[1]]
			logp[3*c+v] = math.Log(p)
			total += p
		}
		for v := range a.Categories()[slot] {
			logp[3*c+v] -= math.Log(total)
		}
	}
	return nil
}
