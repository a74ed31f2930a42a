package ort

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/internal/check"
	"infill/internal/onnx"
)

func openCPU(tb testing.TB, o Options) *Runtime {
	tb.Helper()
	if o.LibraryPath == "" {
		o.LibraryPath = testLibrary(tb)
	}
	if o.Device == "" {
		o.Device = "cpu"
	}
	r := check.Must(Open(context.Background(), o))(tb)
	tb.Cleanup(func() {
		if err := r.Close(); err != nil {
			tb.Error(err)
		}
	})
	return r
}

// vector is a tensor of one dimension.
func vector(values ...float32) Tensor { return Float32([]int64{int64(len(values))}, values) }

// count runs counter: it adds 1 to from so many times.
func count(ctx context.Context, s *Session, times int64, from float32) (float32, error) {
	y := make([]float32, 1)
	err := s.Run(ctx, []Tensor{Int64([]int64{1}, []int64{times}), vector(from)}, []Tensor{vector(y...)})
	return y[0], err
}

// Both element types go through, also as empty tensors.
func TestElementTypes(t *testing.T) {
	r := openCPU(t, Options{})
	vector, empty := []int64{3}, []int64{2, 0}
	for _, test := range []struct {
		name    string
		in, out Tensor
		element onnx.DType
	}{
		{"float32", Float32(vector, []float32{1, -2, 3}), Float32(vector, make([]float32, 3)), onnx.Float},
		{"int64", Int64(vector, []int64{1, -2, math.MaxInt64}), Int64(vector, make([]int64, 3)), onnx.Int64},
		{"float32 empty", Float32(empty, []float32{}), Float32(empty, []float32{}), onnx.Float},
		{"int64 without a slice", Int64(empty, nil), Int64(empty, nil), onnx.Int64},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := onnx.New("test")
			symbols := []onnx.Dim{onnx.Symbol("m"), onnx.Symbol("n")}
			g.Output("y", g.Input("x", test.element, symbols[:len(test.in.shape)]...))
			s := newSession(t, r, g, SessionOptions{})
			defer s.Close()
			outputs := []Tensor{test.out}
			check.OK(t, s.Run(context.Background(), []Tensor{test.in}, outputs))
			if diff := cmp.Diff(test.in, outputs[0], cmp.AllowUnexported(Tensor{})); diff != "" {
				t.Errorf("identity changed the tensor (-in +out):\n%s", diff)
			}
		})
	}
}

// Weights may lie at any offset of a file that is not ours alone, as they do in
// a safetensors file.
func TestExternalInitializerByOffset(t *testing.T) {
	r := openCPU(t, Options{})
	folder := t.TempDir()
	weights := []float32{1, 2, 3, 4, 5, 6}
	var file bytes.Buffer
	file.WriteString("thirteen byte") // an unaligned offset
	for _, w := range weights {
		check.OK(t, binary.Write(&file, binary.LittleEndian, w))
	}
	file.WriteString("and more behind")
	check.OK(t, os.WriteFile(filepath.Join(folder, "model.safetensors"), file.Bytes(), 0o600))
	of := func(location string, offset, length int64) *onnx.Graph {
		g := onnx.New("test")
		w := g.External("w", onnx.Float, []int64{3, 2}, onnx.Location{File: location, Offset: offset, Length: length})
		g.Output("y", g.MatMul(g.Input("x", onnx.Float, onnx.FixedShape(1, 3)...), w))
		return g
	}
	s := newSession(t, r, of("model.safetensors", 13, 24), SessionOptions{ExternalDir: folder})
	y := make([]float32, 2)
	if err := s.Run(context.Background(), []Tensor{Float32([]int64{1, 3}, []float32{100, 10, 1})},
		[]Tensor{Float32([]int64{1, 2}, y)}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float32{135, 246}, y); diff != "" {
		t.Errorf("x·w (-want +got):\n%s", diff)
	}

	for _, test := range []struct {
		name           string
		location       string
		offset, length int64
	}{
		{"no such file", "absent.safetensors", 13, 24},
		{"past the end", "model.safetensors", 60, 24},
		{"wrong length", "model.safetensors", 13, 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := sessionOf(r, of(test.location, test.offset, test.length), SessionOptions{ExternalDir: folder})
			check.Says(t, err, "onnxruntime session")
		})
	}
}

func TestNewSessionErrors(t *testing.T) {
	r := openCPU(t, Options{})
	names := SessionOptions{Inputs: []string{"x"}, Outputs: []string{"y"}}
	unknown := onnx.New("test")
	y := unknown.Apply("Confabulate", 1, []*onnx.Value{unknown.Input("x", onnx.Float, onnx.Fixed(1))})[0]
	y.DType = onnx.Float
	unknown.Output("y", y)
	encoded := func(g *onnx.Graph) []byte {
		model := check.Must(g.Encode())(t)
		return model
	}
	for name, test := range map[string]struct {
		model []byte
		want  string
	}{
		"nothing":          {nil, "onnxruntime session"},
		"no protobuf":      {[]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "protobuf"},
		"truncated":        {encoded(double())[:20], "protobuf"},
		"unknown operator": {encoded(unknown), "Confabulate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.NewSession(test.model, names)
			check.Says(t, err, test.want)
		})
	}
}

func TestRunErrors(t *testing.T) {
	r := openCPU(t, Options{})
	s := newSession(t, r, matMul(2, 3, 4), SessionOptions{})
	a, b, y := Float32([]int64{2, 3}, make([]float32, 6)), Float32([]int64{3, 4}, make([]float32, 12)),
		Float32([]int64{2, 4}, make([]float32, 8))
	for _, test := range []struct {
		name            string
		inputs, outputs []Tensor
		want            string
	}{
		{"too few inputs", []Tensor{a}, []Tensor{y}, "1 inputs given, the session takes 2"},
		{"too many outputs", []Tensor{a, b}, []Tensor{y, y}, "2 outputs given, the session takes 1"},
		{"wrong type", []Tensor{a, Int64([]int64{3, 4}, make([]int64, 12))}, []Tensor{y}, "expected: (tensor(float))"},
		{"wrong shape", []Tensor{a, Float32([]int64{4, 3}, make([]float32, 12))}, []Tensor{y},
			"invalid dimensions for input: b"},
		{"wrong rank", []Tensor{a, Float32([]int64{12}, make([]float32, 12))}, []Tensor{y},
			"Invalid rank for input: b"},
		{"short slice", []Tensor{a, Float32([]int64{3, 4}, make([]float32, 11))}, []Tensor{y},
			`input "b": shape [3 4] needs 12 elements, the slice has 11`},
		{"negative", []Tensor{a, Float32([]int64{-3, -4}, make([]float32, 12))}, []Tensor{y},
			`input "b": impossible shape [-3 -4]`},
		{"overflow", []Tensor{a, Float32([]int64{math.MaxInt64, 4}, nil)}, []Tensor{y}, `impossible shape`},
		{"zero tensor", []Tensor{a, {}}, []Tensor{y}, `input "b": the tensor has no dimension`},
		{"output shape", []Tensor{a, b}, []Tensor{Float32([]int64{4, 2}, make([]float32, 8))}, "onnxruntime run"},
	} {
		t.Run(test.name, func(t *testing.T) {
			check.Says(t, s.Run(context.Background(), test.inputs, test.outputs), test.want)
		})
	}

	// What only onnxruntime can find comes back as an error too, and the
	// session lives on.
	open := newSession(t, r, double(), SessionOptions{})
	check.Says(t, open.Run(context.Background(), []Tensor{vector(0, 0, 0)}, []Tensor{vector(0, 0)}), "onnxruntime run")
	out := make([]float32, 3)
	check.OK(t, open.Run(context.Background(), []Tensor{vector(1, 2, 3)}, []Tensor{vector(out...)}))
	if diff := cmp.Diff([]float32{2, 4, 6}, out); diff != "" {
		t.Errorf("after an error (-want +got):\n%s", diff)
	}
}

func TestInputsAndOutputsByName(t *testing.T) {
	r := openCPU(t, Options{})
	g := onnx.New("test")
	a, b := g.Input("a", onnx.Float, onnx.Symbol("n")), g.Input("b", onnx.Float, onnx.Symbol("n"))
	g.Output("difference", g.Sub(a, b))
	g.Output("sum", g.Add(a, b))
	s := newSession(t, r, g, SessionOptions{Inputs: []string{"b", "a"}, Outputs: []string{"sum", "difference"}})
	sum, difference := make([]float32, 1), make([]float32, 1)
	if err := s.Run(context.Background(), []Tensor{vector(3), vector(10)},
		[]Tensor{vector(sum...), vector(difference...)}); err != nil {
		t.Fatal(err)
	}
	if sum[0] != 13 || difference[0] != 7 {
		t.Errorf("sum %v, difference %v of a = 10, b = 3", sum[0], difference[0])
	}
}

func TestNamesThatTheGraphHasNot(t *testing.T) {
	r := openCPU(t, Options{})
	for _, o := range []SessionOptions{{Inputs: []string{"z"}}, {Outputs: []string{"z"}}} {
		s, err := sessionOf(r, double(), o)
		if err == nil {
			err = s.Run(context.Background(), []Tensor{vector(1)}, []Tensor{vector(1)})
		}
		check.Says(t, err, "z")
	}
}

// The loop would run for centuries: the test ends because the context ends the
// call in its middle.
func TestContextEndsARunningCall(t *testing.T) {
	s := newCounter(t, openCPU(t, Options{}))
	for _, want := range []error{context.Canceled, context.DeadlineExceeded} {
		t.Run(want.Error(), func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			if want == context.DeadlineExceeded {
				ctx, cancel = context.WithTimeout(context.Background(), 20e6)
			}
			defer cancel()
			var all sync.WaitGroup
			failures := make([]error, 3)
			for i := range failures {
				all.Go(func() { _, failures[i] = count(ctx, s, math.MaxInt64, 0) })
			}
			if want == context.Canceled {
				// A short count that another goroutine finishes beside them
				// shows that the long ones have had time to start.
				if _, err := count(context.Background(), s, 20000, 0); err != nil {
					t.Error(err)
				}
				cancel()
			}
			all.Wait()
			for _, err := range failures {
				check.Says(t, err)
				if !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
			}
		})
	}
	// Stopped calls leave nothing behind that stops the next one.
	for range 10 {
		if y, err := count(context.Background(), s, 100, 1); err != nil || y != 101 {
			t.Fatalf("1 + 100 times 1 gave %v, %v", y, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := count(ctx, s, math.MaxInt64, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("run under an ended context: %v", err)
	}
}
