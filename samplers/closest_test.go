package samplers_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

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

// The joint is the one that the iteration of Torroba Hennigen and Kim comes to, also where
// that takes tens of thousands of rounds.
func TestClosestJointOfUnequal(t *testing.T) {
	random := rand.New(rand.NewPCG(34, 6))
	target := disagreeing{rows: 25, columns: 20, logp: map[[3]int]float64{}}
	for slot, sizes := range [][2]int{{25, 20}, {20, 25}} {
		for other := range sizes[1] {
			for v := range sizes[0] {
				target.logp[[3]int{slot, other, v}] = 3*random.NormFloat64() - 0.3*float64(v)
			}
		}
	}
	got, change, err := samplers.ClosestJoint(t.Context(), target)
	if err != nil || change > samplers.ClosestEnough {
		t.Fatalf("it still changes by %v, %v", change, err)
	}
	want, rounds := target.iterated(t)
	if rounds < 10000 {
		t.Errorf("the iteration takes %d rounds, want a target that needs many", rounds)
	}
	for i, l := range got {
		if math.Abs(l-want[i]) > 1e-6 {
			t.Errorf("state %d: %v, the iteration has %v", i, l, want[i])
		}
	}
}

// Where conditionals are zero, marginals may have no end to come to: that is reported.
func TestClosestJointWithoutEnd(t *testing.T) {
	target := disagreeing{rows: 2, columns: 2, logp: map[[3]int]float64{}}
	for slot := range 2 {
		for other := range 2 {
			target.logp[[3]int{slot, other, 0}], target.logp[[3]int{slot, other, 1}] = 0, math.Inf(-1)
		}
	}
	if _, change, err := samplers.ClosestJoint(t.Context(), target); err != nil || !(change > samplers.ClosestEnough) {
		t.Errorf("the last step changed by %v, %v: want one that is not the last", change, err)
	}
}

// disagreeing has conditionals that belong to no joint: logp, up to a constant, of slot,
// what the other slot holds, and category.
type disagreeing struct {
	rows, columns int
	logp          map[[3]int]float64
}

func (d disagreeing) Categories() []int { return []int{d.rows, d.columns} }

func (disagreeing) Energy(context.Context, []int, []float64) error { return nil }

func (d disagreeing) LogConditionals(_ context.Context, states, slots []int, logp []float64) error {
	width := max(d.rows, d.columns)
	for c, slot := range slots {
		row := logp[c*width:][:d.Categories()[slot]]
		for v := range row {
			row[v] = d.logp[[3]int{slot, states[2*c+1-slot], v}]
		}
		floats.AddConst(-floats.LogSumExp(row), row)
	}
	return nil
}

// iterated is log J by the fixed-point iteration, with the rounds that it takes until it
// stands still.
func (d disagreeing) iterated(t *testing.T) (logJ []float64, rounds int) {
	sum := make([]float64, d.rows*d.columns)
	logp := make([]float64, max(d.rows, d.columns))
	for slot, others := range []int{d.columns, d.rows} {
		for other := range others {
			state := []int{other, other}
			if err := d.LogConditionals(t.Context(), state, []int{slot}, logp); err != nil {
				t.Fatal(err)
			}
			for v := range d.Categories()[slot] {
				state[slot] = v
				sum[state[0]*d.columns+state[1]] += math.Exp(logp[v])
			}
			state[slot] = other
		}
	}
	a, b := slices.Repeat([]float64{1}, d.rows), slices.Repeat([]float64{1}, d.columns)
	joint := make([]float64, len(sum))
	for change := 1.0; change > 1e-13 && rounds < 1e6; rounds++ {
		nextA, nextB := make([]float64, d.rows), make([]float64, d.columns)
		for i := range joint {
			x := sum[i] / (1/a[i/d.columns] + 1/b[i%d.columns])
			joint[i] = x
			nextA[i/d.columns] += x
			nextB[i%d.columns] += x
		}
		change = 0
		total := floats.Sum(nextA)
		for i := range a {
			nextA[i] /= total
			change = max(change, math.Abs(math.Log(nextA[i]/a[i])))
		}
		for j := range b {
			nextB[j] /= total
			change = max(change, math.Abs(math.Log(nextB[j]/b[j])))
		}
		a, b = nextA, nextB
	}
	total := floats.Sum(joint)
	for _, x := range joint {
		logJ = append(logJ, math.Log(x/total))
	}
	return logJ, rounds
}
