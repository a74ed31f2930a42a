package ort

import (
	"os"
	"path/filepath"
	"testing"

	"infill/internal/check"
	"infill/internal/onnx"
)

// sessionOf takes all inputs and outputs where none are named.
func sessionOf(r *Runtime, g *onnx.Graph, o SessionOptions) (*Session, error) {
	names := func(values []*onnx.Value) (list []string) {
		for _, v := range values {
			list = append(list, v.Name)
		}
		return list
	}
	if o.Inputs == nil {
		o.Inputs = names(g.Inputs)
	}
	if o.Outputs == nil {
		o.Outputs = names(g.Outputs)
	}
	model, err := g.Encode()
	if err != nil {
		return nil, err
	}
	return r.NewSession(model, o)
}

func newSession(tb testing.TB, r *Runtime, g *onnx.Graph, o SessionOptions) *Session {
	tb.Helper()
	s := check.Must(sessionOf(r, g, o))(tb)
	return s
}

// matMul is y = a·b.
func matMul(rows, inner, columns int64) *onnx.Graph {
	g := onnx.New("test")
	a := g.Input("a", onnx.Float, onnx.FixedShape(rows, inner)...)
	g.Output("y", g.MatMul(a, g.Input("b", onnx.Float, onnx.FixedShape(inner, columns)...)))
	return g
}

// double is y = x + x, of any length.
func double() *onnx.Graph {
	g := onnx.New("test")
	x := g.Input("x", onnx.Float, onnx.Symbol("n"))
	g.Output("y", g.Add(x, x))
	return g
}

// expand is y = x, repeated to a shape [1].
func expand() *onnx.Graph {
	g := onnx.New("test")
	x, shape := g.Input("x", onnx.Float, onnx.Symbol("n")), g.Input("shape", onnx.Int64, onnx.Fixed(1))
	g.Output("y", g.Apply("Expand", 1, []*onnx.Value{x, shape})[0])
	return g
}

// newCounter adds 1 to x as often as its input says; see testdata/counter.py.
func newCounter(tb testing.TB, r *Runtime) *Session {
	tb.Helper()
	model := check.Must(os.ReadFile(filepath.Join("testdata", "counter.onnx")))(tb)
	s := check.Must(r.NewSession(model, SessionOptions{Inputs: []string{"times", "x"}, Outputs: []string{"y"}}))(tb)
	return s
}
