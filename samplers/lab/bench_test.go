package lab

import (
	"context"
	"testing"
)

func BenchmarkTransferMatrix(b *testing.B) {
	lattice := isingTorus(8, 8, 0.1, 0.2)
	for b.Loop() {
		if _, err := lattice.transferMatrix(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStoredIsingMean(b *testing.B) {
	for b.Loop() {
		if _, err := storedIsingMean(0.1, 0.2); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMeasure shows what observing costs beside the steps, which
// "step-seconds/op" counts alone.
func BenchmarkMeasure(b *testing.B) {
	p, err := NewIsing(context.Background(), DefaultIsing())
	if err != nil {
		b.Fatal(err)
	}
	o := DefaultOptions()
	o.Samplers, o.WarmUp = []Spec{named("gibbs")}, 0
	seconds := 0.0
	for b.Loop() {
		run, err := Compare(context.Background(), p, o)
		if err != nil {
			b.Fatal(err)
		}
		seconds += run.Samplers[0].Timing.Seconds
	}
	b.ReportMetric(seconds/float64(b.N), "step-seconds/op")
}
