package onnx_test

import (
	"context"
	"math"
	"sync"
	"testing"

	"infill/internal/check"
	"infill/internal/onnx"
	"infill/internal/ort"
)

// openRuntime is onnxruntime on the CPU, found, or fetched as for a user.
var openRuntime = sync.OnceValues(func() (*ort.Runtime, error) {
	path, err := ort.Locate(context.Background(), "cpu", nil)
	if err != nil {
		return nil, err
	}
	return ort.Open(context.Background(), ort.Options{LibraryPath: path, Device: "cpu", Threads: 1})
})

// single is a tensor in single precision.
func single(shape []int64, data []float64) ort.Tensor {
	rounded := make([]float32, len(data))
	for i, x := range data {
		rounded[i] = float32(x)
	}
	return ort.Float32(shape, rounded)
}

// run has onnxruntime compute the outputs of a graph, which have to be of the
// given shapes. Weights in files lie in dir.
func run(t testing.TB, g *onnx.Graph, dir string, inputs map[string]ort.Tensor, shapes ...[]int64) [][]float32 {
	t.Helper()
	runtime := check.Must(openRuntime())(t)
	model := check.Must(g.Encode())(t)
	o := ort.SessionOptions{ExternalDir: dir}
	var in []ort.Tensor
	for _, v := range g.Inputs {
		o.Inputs, in = append(o.Inputs, v.Name), append(in, inputs[v.Name])
	}
	var out []ort.Tensor
	var results [][]float32
	for i, v := range g.Outputs {
		size := int64(1)
		for _, d := range shapes[i] {
			size *= d
		}
		results = append(results, make([]float32, size))
		o.Outputs, out = append(o.Outputs, v.Name), append(out, ort.Float32(shapes[i], results[i]))
	}
	session := check.Must(runtime.NewSession(model, o))(t)
	defer session.Close()
	check.OK(t, session.Run(t.Context(), in, out))
	return results
}

// compare holds values against a reference in double precision.
func compare(t *testing.T, what string, got []float32, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d elements, want %d", what, len(got), len(want))
	}
	for i, x := range got {
		if d := math.Abs(float64(x)-want[i]) / (1 + math.Abs(want[i])); !(d <= tolerance) {
			t.Errorf("%s[%d] is %.9g, want %.9g", what, i, x, want[i])
		}
	}
}
