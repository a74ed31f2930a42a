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

// BenchmarkMeasure shows what observing costs beside the steps, which
// "step-seconds/op" counts alone.
func BenchmarkMeasure(b *testing.B) {
	p, err := defaultIsing().problem(context.Background(), 0)
	if err != nil {
		b.Fatal(err)
	}
	o := DefaultOptions()
	o.Samplers, o.WarmUp = []Spec{named("gibbs")}, 0
	seconds := 0.0
	for b.Loop() {
		run, err := compareStudy(p, o).Run(context.Background(), StudyOptions{})
		if err != nil {
			b.Fatal(err)
		}
		seconds += run.Cells[0].Numbers["seconds"]
	}
	b.ReportMetric(seconds/float64(b.N), "step-seconds/op")
}
