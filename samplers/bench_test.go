package samplers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
)

// linear is a target of independent slots whose evaluation costs one copy, so
// that a benchmark measures the kernel.
type linear struct {
	categories []int
	logits     []float64 // [slots × K]
}

func newLinear(slots, k int) *linear {
	t := &linear{logits: make([]float64, slots*k)}
	r := rand.New(rand.NewPCG(1, 1))
	for range slots {
		t.categories = append(t.categories, k)
	}
	for i := range t.logits {
		t.logits[i] = 2 * r.NormFloat64()
	}
	return t
}

func (t *linear) Categories() []int { return t.categories }

func (t *linear) Energy(_ context.Context, states []int, energy []float64) error {
	slots, k := len(t.categories), t.categories[0]
	for c := range energy {
		energy[c] = 0
		for j, v := range states[c*slots : (c+1)*slots] {
			energy[c] += t.logits[j*k+v]
		}
	}
	return nil
}

func (t *linear) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	for c := range energy {
		copy(gradient[c*len(t.logits):], t.logits)
	}
	return t.Energy(ctx, states, energy)
}

func (t *linear) LogConditionals(_ context.Context, states []int, slots []int, logp []float64) error {
	k := t.categories[0]
	for c, j := range slots {
		copy(logp[c*k:(c+1)*k], t.logits[j*k:(j+1)*k])
	}
	return nil
}

// BenchmarkStep is one step of 25 chains over 5 slots: over a whole BERT
// vocabulary and over 250 candidates a slot.
func BenchmarkStep(b *testing.B) {
	for _, name := range names() {
		for _, k := range []int{250, 30522} {
			b.Run(fmt.Sprintf("%s/categories=%d", name, k), func(b *testing.B) {
				target := newLinear(5, k)
				kernel, err := newFrom(name, target)
				if err != nil {
					b.Skip(err)
				}
				streams := Streams(1, "", 25)
				state := started(b, kernel, RandomPositions(target, streams))
				var info Info
				// The first step sizes the scratch memory.
				if err := kernel.Step(context.Background(), state, streams, &info); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					if err := kernel.Step(context.Background(), state, streams, &info); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
