package onnx_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"infill/lm/internal/onnx"
	"infill/lm/internal/onnx/reference"
)

// weightsFile writes n normal numbers and gives where they lie.
func weightsFile(t *testing.T, dir string, random *rand.Rand, n int) (onnx.Location, []float64) {
	t.Helper()
	var content []byte
	var values []float64
	for range n {
		x := float32(random.NormFloat64())
		content, values = binary.LittleEndian.AppendUint32(content, math.Float32bits(x)), append(values, float64(x))
	}
	if err := os.WriteFile(filepath.Join(dir, "weights"), content, 0o644); err != nil {
		t.Fatal(err)
	}
	return onnx.Location{File: "weights", Length: int64(len(content))}, values
}

// readPacked reads constants of every type that packing writes.
func readPacked(t *testing.T, dir string) func(onnx.Initializer) (reference.Array, error) {
	plain := readExternal(t, dir)
	return func(i onnx.Initializer) (reference.Array, error) {
		if i.Value.DType != onnx.Int8 {
			return plain(i)
		}
		content, err := os.ReadFile(filepath.Join(dir, i.Location.File))
		if err != nil {
			return reference.Array{}, err
		}
		var a reference.Array
		for _, d := range i.Value.Shape {
			n, _ := d.Size()
			a.Shape = append(a.Shape, int(n))
		}
		for _, b := range content[i.Location.Offset:][:i.Location.Length] {
			a.Data = append(a.Data, float64(int8(b)))
		}
		return a, nil
	}
}

// Integer products stay within what rounding allows: with weights off by at
// most half of w's scale and activations by half of the row's,
// |y − ŷ| ≤ Σ|x|·s_w/2 + Σ|w|·s_x/2 + K·s_w·s_x/4. A row does not depend on
// the rows beside it, and the backward pass keeps its weights.
func TestQuantize(t *testing.T) {
	const rows, in, out = 5, 12, 7
	random := rand.New(rand.NewPCG(3, 4))
	dir := t.TempDir()
	place, w := weightsFile(t, dir, random, in*out)
	for _, transposed := range []bool{true, false} {
		build := func() (*onnx.Graph, *value) {
			g := onnx.New("product")
			x := g.Input("x", onnx.Float, onnx.Symbol("rows"), onnx.Fixed(in))
			shape := []int64{in, out}
			if transposed {
				shape = []int64{out, in}
			}
			bias := onnx.Tensor{Shape: []int64{out}, Floats: make([]float32, out)}
			bias.Floats[2] = 3
			y := g.Gemm(x, g.External("w", onnx.Float, shape, place), g.Constant("bias", bias),
				onnx.GemmOptions{Alpha: 0.5, Beta: 2, TransB: transposed})
			d, err := g.Differentiate([]*value{y}, []*value{y}, []*value{x})
			if err != nil {
				t.Fatal(err)
			}
			g.Output("y", y)
			g.Output("d", d[0])
			return g, g.Outputs[0]
		}
		x := reference.New(rows, in)
		for i := range x.Data {
			x.Data[i] = random.NormFloat64() * math.Pow(10, float64(i/in)-2) // rows of very different size
		}
		clear(x.Data[2*in : 3*in])
		plain, _ := build()
		want, err := reference.Evaluate(plain, map[string]reference.Array{"x": x}, readExternal(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		g, y := build()
		var packed bytes.Buffer
		p := onnx.NewPrecision(dir, "packed", &packed)
		if err := p.Quantize(g, []*value{y}); err != nil {
			t.Fatal(err)
		}
		if err := p.Pack(g); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Encode(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "packed"), packed.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		evaluate := func(x reference.Array) []reference.Array {
			got, err := reference.Evaluate(g, map[string]reference.Array{"x": x}, readPacked(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		got := evaluate(x)
		differs := false
		for r := range rows {
			row := x.Data[r*in : (r+1)*in]
			most := 0.0
			for _, v := range row {
				most = max(most, math.Abs(v))
			}
			rowScale := most / 127
			for j := range out {
				column := func(i int) float64 {
					if transposed {
						return w[j*in+i]
					}
					return w[i*out+j]
				}
				scale, bound := 0.0, 0.0
				for i := range in {
					scale = max(scale, math.Abs(column(i))/63)
				}
				for i, v := range row {
					bound += math.Abs(v)*scale/2 + math.Abs(column(i))*rowScale/2 + scale*rowScale/4
				}
				d := math.Abs(got[0].Data[r*out+j] - want[0].Data[r*out+j])
				if !(d <= 0.5*bound*(1+1e-6)+1e-9) {
					t.Errorf("transposed %t: y[%d, %d] is off by %g, rounding allows %g", transposed, r, j, d,
						0.5*bound)
				}
				differs = differs || d > 0
			}
		}
		if !differs {
			t.Error("nothing is rounded")
		}
		alone := evaluate(reference.Of(x.Data[in:2*in], 1, in))
		if !slices.Equal(alone[0].Data, got[0].Data[out:2*out]) {
			t.Errorf("a row alone gives %v, among others %v", alone[0].Data, got[0].Data[out:2*out])
		}
		// The seed is y itself, so the gradient is the plain one of the integer product.
		for r := range rows {
			for i := range in {
				sum := 0.0
				for j := range out {
					weight := w[i*out+j]
					if transposed {
						weight = w[j*in+i]
					}
					sum += 0.5 * got[0].Data[r*out+j] * weight
				}
				if d := got[1].Data[r*in+i]; !(math.Abs(d-sum) <= 1e-9*(1+math.Abs(sum))) {
					t.Errorf("transposed %t: derivative [%d, %d] is %g, want %g", transposed, r, i, d, sum)
				}
			}
		}
	}
}

// Weights in half precision are the nearest that there are.
func TestHalve(t *testing.T) {
	dir := t.TempDir()
	place, w := weightsFile(t, dir, rand.New(rand.NewPCG(5, 6)), 12)
	g := onnx.New("half")
	g.Output("y", g.Exp(g.External("w", onnx.Float, []int64{3, 4}, place)))
	var packed bytes.Buffer
	p := onnx.NewPrecision(dir, "packed", &packed)
	if err := p.Halve(g); err != nil {
		t.Fatal(err)
	}
	if err := p.Pack(g); err != nil {
		t.Fatal(err)
	}
	if packed.Len() != 24 {
		t.Errorf("%d bytes for 12 numbers in half precision", packed.Len())
	}
	if err := os.WriteFile(filepath.Join(dir, "packed"), packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := reference.Evaluate(g, nil, readExternal(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	for i, y := range got[0].Data {
		if d := math.Abs(math.Log(y) - w[i]); !(d <= math.Abs(w[i])/2048) || d == 0 && i == 0 {
			t.Errorf("weight %d is %g, of %g", i, math.Log(y), w[i])
		}
	}
}
