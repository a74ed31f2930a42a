package lm_test

import (
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"infill/internal/modelstest"
	"infill/lm"
	"infill/lm/internal/bert/berttest"
	"infill/lm/internal/onnx"
	"infill/lm/internal/ort"
	"infill/lm/internal/ort/library"
	"infill/models"
)

// The workload of the benchmarks.
const benchChains, benchSlots, benchTokens = 25, 5, 24

// product is a matrix product [m × k]·[k × n].
type product struct{ m, k, n int }

func (p product) operations() float64 { return 2 * float64(p.m) * float64(p.k) * float64(p.n) }

// products is the matrix products with weights that an energy needs (and its
// full gradient), and how often each: what lm computes, no more. The last
// layer's later half and the head run at the queries alone.
func products(c models.Config, gradient bool) map[product]int {
	rows := benchChains * benchSlots
	t, h, f, v := rows*benchTokens, c.HiddenSize, c.IntermediateSize, c.VocabularySize
	n := map[product]int{}
	layers := c.Layers
	n[product{t, h, h}] += 4*(layers-1) + 2
	n[product{rows, h, h}] += 2 + 1
	n[product{t, h, f}] += layers - 1
	n[product{t, f, h}] += layers - 1
	n[product{rows, h, f}]++
	n[product{rows, f, h}]++
	n[product{rows, h, v}]++
	if gradient {
		for p, count := range n {
			if p.n == v {
				n[product{rows, v, h}] += count
			}
		}
		n[product{t, h, h}] *= 2
		n[product{rows, h, h}] *= 2
		up, down := n[product{t, h, f}], n[product{t, f, h}]
		n[product{t, h, f}], n[product{t, f, h}] = up+down, up+down
		up, down = n[product{rows, h, f}], n[product{rows, f, h}]
		n[product{rows, h, f}], n[product{rows, f, h}] = up+down, up+down
		n[product{rows, h, v}]++ // the gradient over the vocabulary, for the slots of every chain
	}
	return n
}

// matMul is a bare onnxruntime session of one product with a constant matrix.
func matMul(b *testing.B, r *ort.Runtime, p product) func() {
	g := onnx.New("matmul")
	x := g.Input("x", onnx.Float, onnx.Symbol("m"), onnx.Fixed(int64(p.k)))
	w := make([]float32, p.k*p.n)
	for i := range w {
		w[i] = float32(i%7) - 3
	}
	g.Output("y", g.MatMul(x, g.Constant("w", onnx.Tensor{Shape: []int64{int64(p.k), int64(p.n)}, Floats: w})))
	model, err := g.Encode()
	if err != nil {
		b.Fatal(err)
	}
	session, err := r.NewSession(model, ort.SessionOptions{Inputs: []string{"x"}, Outputs: []string{"y"}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { session.Close() })
	in := ort.Float32([]int64{int64(p.m), int64(p.k)}, make([]float32, p.m*p.k))
	out := ort.Float32([]int64{int64(p.m), int64(p.n)}, make([]float32, p.m*p.n))
	return func() {
		if err := session.Run(context.Background(), []ort.Tensor{in}, []ort.Tensor{out}); err != nil {
			b.Fatal(err)
		}
	}
}

var baseDir = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "infill-bench")
	if err != nil {
		panic(err)
	}
	return dir
})

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(baseDir())
	os.Exit(code)
}

// writeBase fills dir with a bundle of BERT-base's shape.
func writeBase(b *testing.B, dir string) *models.Bundle {
	if err := modelstest.Write(dir, published[0].config, modelstest.Options{}); err != nil {
		b.Fatal(err)
	}
	bundle, err := models.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	return bundle
}

func benchModel(b *testing.B, name string) *lm.MaskedLM {
	if name == "built-in" {
		return open(b)
	}
	bundle, err := models.Open(baseDir())
	if err != nil {
		bundle = writeBase(b, baseDir())
	}
	return openBundle(b, bundle, berttest.MaskID)
}

// BenchmarkEnergy measures energies, and energies with full gradients over a
// candidate set, of 25 chains with 5 slots in 24 tokens, and in the same run
// bare onnxruntime matrix products of the same shapes. rows/s counts masked
// rows; efficiency is the products' share: their time alone over the time of
// everything.
func BenchmarkEnergy(b *testing.B) {
	for _, name := range []string{"built-in", "base"} {
		for _, gradient := range []bool{false, true} {
			what := "energy"
			if gradient {
				what = "gradient"
			}
			b.Run(name+"/"+what, func(b *testing.B) { benchmarkEnergy(b, benchModel(b, name), gradient) })
		}
	}
}

func benchmarkEnergy(b *testing.B, m *lm.MaskedLM, gradient bool) {
	ctx, rng := context.Background(), rand.New(rand.NewPCG(3, 4))
	found, err := library.Ensure(ctx, library.Options{})
	if err != nil {
		b.Fatal(err)
	}
	r, err := ort.Open(ctx, ort.Options{LibraryPath: found.Path, Device: "cpu"})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	type bare struct {
		run   func()
		count int
	}
	var bares []bare
	operations := 0.0
	for p, count := range products(m.Bundle().Config, gradient) {
		bares = append(bares, bare{matMul(b, r, p), count})
		operations += p.operations() * float64(count)
	}

	ids := make([]int, benchTokens)
	for i := range ids {
		ids[i] = 1000 + rng.IntN(20000)
	}
	slots, support := []int{3, 7, 11, 15, 19}, make([][]int, benchSlots)
	for j := range support {
		for range 250 {
			support[j] = append(support[j], 1000+rng.IntN(20000))
		}
	}
	states := make([]int, benchChains*benchSlots)
	value, slopes := make([]float64, benchChains), make([]float64, len(states)*250)
	evaluate := func() {
		for i := range states { // fresh states: nothing is remembered
			states[i] = rng.IntN(250)
		}
		target := targetOf(b, m, ids, slots, lm.TargetOptions{Support: support})
		if gradient {
			err = target.EnergyGradient(ctx, states, value, slopes)
		} else {
			err = target.Energy(ctx, states, value)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	evaluate()
	for _, p := range bares {
		p.run()
	}
	var whole, products stopwatch
	for b.Loop() {
		whole.time(evaluate)
		b.StopTimer()
		for _, p := range bares {
			products.time(func() {
				for range p.count {
					p.run()
				}
			})
		}
		b.StartTimer()
	}
	b.ReportMetric(benchChains*benchSlots*float64(b.N)/whole.seconds(), "rows/s")
	b.ReportMetric(operations*float64(b.N)/products.seconds()/1e9, "bare-GFLOP/s")
	b.ReportMetric(operations*float64(b.N)/whole.seconds()/1e9, "GFLOP/s")
	b.ReportMetric(products.seconds()/whole.seconds(), "efficiency")
}
