package ort

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"
)

// BenchmarkRun is what a call costs beside its graph: one Add of 2 float32.
func BenchmarkRun(b *testing.B) {
	s := trialSession(b, openCPU(b, Options{Threads: 1}))
	in, out := make([]float32, 2), make([]float32, 2)
	inputs, outputs := []Tensor{Float32([]int64{2}, in)}, []Tensor{Float32([]int64{2}, out)}
	for name, ctx := range map[string]context.Context{"background": context.Background(), "cancellable": b.Context()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Run(ctx, inputs, outputs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkNewSession makes and closes a session of a trivial graph, and of one with 16 MiB of weights to pack.
func BenchmarkNewSession(b *testing.B) {
	r := openCPU(b, Options{Threads: 2})
	weights := make([]byte, 16<<20)
	for i := range len(weights) / 4 {
		binary.LittleEndian.PutUint32(weights[4*i:], math.Float32bits(float32(i%17)))
	}
	for name, g := range map[string]graph{
		"trivial": double(),
		"16MiB": graph{
			nodes:        [][]byte{node("MatMul", []string{"x", "w"}, []string{"y"})},
			initializers: [][]byte{initializer("w", float, weights, 2048, 2048)},
			inputs:       []declared{valueInfo("x", float, -1, 2048)},
			outputs:      []declared{valueInfo("y", float, -1, 2048)},
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s, err := sessionOf(r, g, SessionOptions{})
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMatMul is the most that onnxruntime reaches on this machine, for shapes as in BERT.
func BenchmarkMatMul(b *testing.B) {
	for _, threads := range []int{1, 2} {
		r := openCPU(b, Options{Threads: threads})
		for _, shape := range [][3]int64{{600, 256, 1024}, {3000, 768, 3072}} {
			rows, inner, columns := shape[0], shape[1], shape[2]
			s := newSession(b, r, matMul(rows, inner, columns), SessionOptions{})
			inputs := []Tensor{Float32([]int64{rows, inner}, ramp(rows*inner)),
				Float32([]int64{inner, columns}, ramp(inner*columns))}
			outputs := []Tensor{Float32([]int64{rows, columns}, make([]float32, rows*columns))}
			b.Run(fmt.Sprintf("%dx%dx%d/threads=%d", rows, inner, columns, threads), func(b *testing.B) {
				for b.Loop() {
					if err := s.Run(context.Background(), inputs, outputs); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(2*float64(rows*inner*columns)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}

func ramp(n int64) []float32 {
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(i%13) / 13
	}
	return values
}
