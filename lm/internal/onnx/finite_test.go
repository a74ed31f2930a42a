package onnx

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"infill/internal/check"
)

// A weight that is no number, or overflows, is reported with its file, constant and element, wherever it lies; what
// hides positions may be infinite.
func TestCheckFinite(t *testing.T) {
	const fixtures = "../../../testdata/import"
	read := func(dir, name string) (*Model, []byte) {
		content := check.Must(os.ReadFile(filepath.Join(dir, name)))(t)
		m := check.Must(Decode(bytes.NewReader(content), int64(len(content)), name))(t)
		return m, content
	}
	for _, name := range []string{"dynamo-18.onnx", "eager-11.onnx", "eager-17.onnx", "external-14.onnx",
		"float16-11.onnx", "ids-18.onnx", "sdpa-14.onnx"} {
		if m, _ := read(fixtures, name); m.CheckFinite(fixtures, name) != nil {
			t.Errorf("%s: %v", name, m.CheckFinite(fixtures, name))
		}
	}
	// A weight in the graph's file, and the bytes of its elements there.
	weight := func(m *Model) (string, []byte) {
		for _, c := range m.constants {
			if c.tensor.DType != Int64 && len(c.tensor.Raw) > 128 {
				return c.name, c.tensor.Raw
			}
		}
		t.Fatal("no weights")
		return "", nil
	}
	single := func(x float64) []byte { return Floats(nil, float32(x)).Raw }
	for _, c := range []struct { // for weights beside a graph see TestImportedUnfitWeights
		graph string
		put   []byte
		want  string
	}{
		{"eager-11.onnx", single(math.Inf(-1)), "-Inf"},
		{"eager-17.onnx", single(math.NaN()), "NaN"},
		{"sdpa-14.onnx", single(1e30), "1e+30"},
		{"float16-11.onnx", []byte{1, 0x7c}, "NaN"},
	} {
		dir := t.TempDir()
		m, content := read(fixtures, c.graph)
		name, raw := weight(m)
		copy(content[bytes.Index(content, raw)+5*len(c.put):], c.put)
		check.OK(t, os.WriteFile(filepath.Join(dir, c.graph), content, 0o644))
		m, _ = read(dir, c.graph)
		want := regexp.QuoteMeta(filepath.Join(dir, c.graph)+": constant "+name+": element 5 is "+c.want+":") +
			".*export the model again"
		if err := m.CheckFinite(dir, c.graph); err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%s: %v, want %s", c.graph, err, want)
		}
	}
	list := Floats([]int64{2}, 1, float32(math.NaN()))
	infinite, nan := float32(math.Inf(-1)), float32(math.NaN())
	for _, c := range []struct {
		m    *Model
		want string // "" for none
	}{
		{&Model{constants: []modelConstant{{"hide", Floats(nil, infinite)}}}, ""},
		{&Model{constants: []modelConstant{{"hide", Floats(nil, nan)}}},
			"^x/m.onnx: constant hide: element 0 is NaN"},
		{&Model{constants: []modelConstant{{"bias", Floats([]int64{2}, 0, infinite)}}},
			"^x/m.onnx: constant bias: element 1 is -Inf"},
		{&Model{nodes: []modelNode{{op: "Constant", outputs: []string{"c"},
			attributes: []Attribute{{Name: "value", Value: &list}}}}},
			"^x/m.onnx: attribute value of Constant c: element 1 is NaN"},
		{&Model{nodes: []modelNode{{op: "Clip", outputs: []string{"c"},
			attributes: []Attribute{{Name: "max", Value: -infinite}}}}}, ""},
		{&Model{nodes: []modelNode{{op: "LayerNormalization", attributes: []Attribute{{Name: "epsilon", Value: nan}}}}},
			"^x/m.onnx: attribute epsilon of LayerNormalization : element 0 is NaN"},
	} {
		err := c.m.CheckFinite("x", "m.onnx")
		if (err == nil) != (c.want == "") || err != nil && !regexp.MustCompile(c.want).MatchString(err.Error()) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
