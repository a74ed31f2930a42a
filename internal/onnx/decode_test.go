package onnx_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"infill/internal/check"
	"infill/internal/onnx"
	"infill/internal/ort"
)

const fixtures = "../../testdata/import"

// exports are the fixtures, as common exporters write them; lm's
// TestImportedEnergyAndGradient runs them.
var exports = []string{"eager-11.onnx", "sdpa-14.onnx", "eager-17.onnx", "ids-18.onnx", "external-14.onnx",
	"dynamo-18.onnx", "float16-11.onnx"}

func decodeFile(t testing.TB, path string) *onnx.Model {
	t.Helper()
	file := check.Must(os.Open(path))(t)
	defer file.Close()
	info := check.Must(file.Stat())(t)
	m := check.Must(onnx.Decode(file, info.Size(), filepath.Base(path)))(t)
	return m
}

// The graphs are read and differentiated with the shape of what they compute,
// and leave no dimension to be found out by the run.
func TestExportersGraphs(t *testing.T) {
	for _, file := range exports {
		t.Run(file, func(t *testing.T) {
			g := onnx.New(file)
			ids := g.Input("ids", onnx.Int64, onnx.Symbol("rows"), onnx.Symbol("tokens"))
			outputs := check.Must(g.Inline(decodeFile(t, filepath.Join(fixtures, file)), map[string]*value{
				"input_ids": ids, "attention_mask": g.Input("ones", onnx.Int64, ids.Shape...),
				"token_type_ids": g.Input("zeros", onnx.Int64, ids.Shape...)}))(t)
			logits := outputs["logits"]
			if got := logits.Shape.String(); got != "[rows tokens 64]" || logits.DType != onnx.Float {
				t.Fatalf("logits are %s", logits)
			}
			seed := g.Input("seed", onnx.Float, logits.Shape...)
			gradient := check.Must(g.Differentiate(values{logits}, values{seed}, values{gatherOf(t, g, ids)}))(t)
			if got := gradient[0].Shape.String(); got != "[rows tokens 16]" {
				t.Errorf("the gradient has the shape %s", got)
			}
			for _, n := range g.Nodes {
				if n.Op == "NonZero" {
					t.Error("a dimension was left to be found out by the run")
				}
			}
		})
	}
}

// gatherOf is what the one Gather at the ids gives.
func gatherOf(t *testing.T, g *onnx.Graph, ids *value) *value {
	t.Helper()
	var found *value
	for _, n := range g.Nodes {
		if n.Op == "Gather" && n.Inputs[1] == ids {
			if found != nil {
				t.Fatal("several Gathers at the ids")
			}
			found = n.Outputs[0]
		}
	}
	if found == nil {
		t.Fatal("no Gather at the ids")
	}
	return found
}

// Graphs that were built and written are read back, and compute the same.
func TestDecodeEncoded(t *testing.T) {
	g := onnx.New("written")
	x := g.Input("x", onnx.Float, onnx.Symbol("rows"), onnx.Fixed(4))
	scale := g.Constant("scale", onnx.Floats([]int64{4}, 1, -2, 0.5, 3))
	y := g.LayerNormalization(g.Gelu(g.Gemm(x, scale44(g), nil, onnx.GemmOptions{TransB: true}), true), scale, nil,
		1e-3)
	g.Output("y", g.Reshape(g.Softmax(y), onnx.Fixed(2), onnx.Symbol("rows").Times(onnx.Fixed(2))))
	encoded := check.Must(g.Encode())(t)
	m := check.Must(onnx.Decode(bytes.NewReader(encoded), int64(len(encoded)), "written.onnx"))(t)
	if m.Opsets[""] != 20 || len(m.Inputs) != 1 ||
		!slices.Equal(m.Inputs[0].Shape, []int64{-1, 4}) || m.Inputs[0].DType != onnx.Float {
		t.Errorf("model %+v", m)
	}
	again := onnx.New("again")
	rows := again.Input("x", onnx.Float, onnx.Symbol("rows"), onnx.Fixed(4))
	out := check.Must(again.Inline(m, map[string]*value{"x": rows}))(t)
	again.Output("y", out["y"])
	if got := out["y"].Shape.String(); got != "[2 2*rows]" {
		t.Errorf("shape %s", got)
	}
	inputs := map[string]ort.Tensor{
		"x": single([]int64{3, 4}, []float64{1, -2, 0.5, 0, 0.25, 1.5, -1, 2, 0, 0, -0.5, 1}),
	}
	want, got := run(t, g, "", inputs, []int64{2, 6})[0], run(t, again, "", inputs, []int64{2, 6})[0]
	if !slices.Equal(got, want) {
		t.Errorf("computed %v, want %v", got, want)
	}
}

func scale44(g *onnx.Graph) *value {
	var list []float32
	for i := range 16 {
		list = append(list, float32(i%5)-1.5)
	}
	return g.Constant("w", onnx.Floats([]int64{4, 4}, list...))
}

// encodedModel is a ModelProto of a graph of encoded parts.
func encodedModel(opset uint64, graph ...[]byte) []byte {
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 8)
	version := protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), opset)
	b = protowire.AppendBytes(protowire.AppendTag(b, 8, protowire.BytesType), version)
	return protowire.AppendBytes(protowire.AppendTag(b, 7, protowire.BytesType), slices.Concat(graph...))
}

func field(number protowire.Number, parts ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), slices.Concat(parts...))
}

func named(number protowire.Number, text string) []byte { return field(number, []byte(text)) }

func varint(number protowire.Number, x uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), x)
}

// TestDomains: the standard's domain has two names, and the versions of other
// domains are not its own.
func TestDomains(t *testing.T) {
	version := func(domain string, version uint64) []byte { return field(8, named(1, domain), varint(2, version)) }
	model := slices.Concat(version("com.microsoft", 1), version("ai.onnx", 17), field(7))
	m := check.Must(onnx.Decode(bytes.NewReader(model), int64(len(model)), "m.onnx"))(t)
	if want := map[string]int64{"": 17, "com.microsoft": 1}; !maps.Equal(m.Opsets, want) {
		t.Errorf("versions %v, want %v", m.Opsets, want)
	}
	model = slices.Concat(version("com.microsoft", 1), field(7))
	_, err := onnx.Decode(bytes.NewReader(model), int64(len(model)), "m.onnx")
	check.Says(t, err, "no version")
}

// What lies, is damaged or cannot be read is refused in one line.
func TestDecodeRefuses(t *testing.T) {
	tensor := func(parts ...[]byte) []byte { return field(5, parts...) }
	external := func(pairs ...string) []byte { // a weight in another file
		parts := [][]byte{named(8, "w"), varint(1, 1), varint(2, 1), varint(14, 1)}
		for i := 0; i < len(pairs); i += 2 {
			parts = append(parts, field(13, named(1, pairs[i]), named(2, pairs[i+1])))
		}
		return encodedModel(17, tensor(parts...))
	}
	for _, c := range []struct {
		name  string
		model []byte
		want  string
	}{
		{"nothing", nil, "no graph"},
		{"text", []byte("not a model at all, but a sentence"), "onnx"},
		{"field past the end", protowire.AppendVarint(protowire.AppendTag(nil, 7, protowire.BytesType), 1<<40),
			"past the end"},
		{"two graphs", slices.Concat(encodedModel(17), field(7)), "no graph"},
		{"negative dimension", encodedModel(17, tensor(named(8, "w"), varint(1, 1<<63), varint(2, 1))),
			"impossible shape"},
		{"product that overflows",
			encodedModel(17, tensor(named(8, "w"), varint(1, 1<<40), varint(1, 1<<40), varint(2, 1))),
			"impossible shape"},
		{"absurd size", encodedModel(17, tensor(named(8, "w"), varint(1, 1<<40), varint(2, 1), named(9, "abcd"))),
			"4 bytes of data"},
		{"absurd size without data", encodedModel(17, tensor(named(8, "w"), varint(1, 1<<40), varint(2, 1))),
			"0 bytes of data"},
		{"strings", encodedModel(17, tensor(named(8, "w"), varint(1, 1), varint(2, 8), named(6, "a"))), "strings"},
		{"path out of the folder", external("location", "../../etc/passwd"), "not a path beside"},
		{"absolute path", external("location", "/etc/passwd"), "not a path beside"},
		{"external length that lies", external("location", "w", "length", "5"), "5 bytes where"},
		{"negative offset", external("location", "w", "offset", "-4"), "offset"},
		{"graph in a node",
			encodedModel(17,
				field(1, named(4, "If"), named(2, "y"), field(5, named(1, "then_branch"), field(6), varint(20, 5)))),
			`node 0 (If): attribute "then_branch": it holds a graph`},
		{"deep nesting", encodedModel(17, field(11, named(1, "x"), field(2, field(1, field(2, field(1, field(1))))))),
			""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := onnx.Decode(bytes.NewReader(c.model), int64(len(c.model)), "m.onnx")
			if c.want == "" {
				return // read or refused, without a panic
			}
			check.Says(t, err, c.want)
		})
	}
}

func TestInlineRefuses(t *testing.T) {
	x := field(11, named(1, "x"), field(2, field(1, varint(1, 1), field(2, field(1, varint(1, 4))))))
	y := field(12, named(1, "y"))
	node := func(op string, inputs ...string) []byte {
		parts := [][]byte{named(4, op), named(2, "y")}
		for _, in := range inputs {
			parts = append(parts, named(1, in))
		}
		return field(1, parts...)
	}
	// wholes is a constant of int64 elements.
	wholes := func(name string, list ...uint64) []byte {
		parts := [][]byte{named(8, name), varint(2, 7), varint(1, uint64(len(list)))}
		for _, x := range list {
			parts = append(parts, varint(7, x))
		}
		return field(5, parts...)
	}
	for _, c := range []struct {
		name  string
		model []byte
		want  string
	}{
		{"old operators", encodedModel(9, node("Exp", "x"), x, y), "version 9; 11 or later"},
		{"unknown input", encodedModel(17, node("Exp", "x"), field(11, named(1, "z")), x, y), `an input "z"`},
		{"input from nowhere", encodedModel(17, node("Exp", "z"), x, y), `"z" is not computed before it`},
		{"output from nowhere", encodedModel(17, x, y), `the output "y"`},
		{"own function", append(encodedModel(17, node("Strange", "x"), x, y), field(25, named(1, "Strange"))...),
			"function of the model's own"},
		{"cast like a mystery",
			encodedModel(17, field(1, named(4, "Mystery"), named(2, "z")), node("CastLike", "x", "z"), x, y),
			"type to cast to"},
		{"twice computed", encodedModel(17, node("Exp", "x"), node("Exp", "x"), x, y), "computed twice"},
		{"too few inputs", encodedModel(17, node("MatMul", "x"), x, y), "needs 2 inputs"},
		{"constant without a value", encodedModel(17, node("Constant"), x, y), "not read"},
		{"an operator that makes any size", encodedModel(17, node("EyeLike", "x"), x, y), "makes values of any size"},
		{"a constant of 2^40", encodedModel(17, wholes("n", 1<<40), node("ConstantOfShape", "n"), x, y),
			"is larger than anything that a model"},
		{"tiles without end", encodedModel(17, wholes("n", 1<<20, 1<<20), node("Tile", "x", "n"), x, y),
			"is larger than anything that a model"},
		{"a tile that overflows", encodedModel(17, wholes("n", 1<<62, 1<<62), node("Tile", "x", "n"), x, y),
			"is larger than anything that a model"},
		{"a range of 2^33",
			encodedModel(17, wholes("a", 0), wholes("b", 1<<33), wholes("c", 1), node("Range", "a", "b", "c"), x, y),
			"is larger than anything that a model"},
		{"old softmax over many axes",
			encodedModel(11,
				field(1, named(4, "Softmax"), named(1, "x"), named(2, "y"),
					field(5, named(1, "axis"), varint(3, 0), varint(20, 2))), field(11, named(1, "x")), y), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := onnx.Decode(bytes.NewReader(c.model), int64(len(c.model)), "m.onnx")
			check.OK(t, err)
			g := onnx.New(c.name)
			_, err = g.Inline(m, map[string]*value{"x": g.Input("x", onnx.Float, onnx.Fixed(2), onnx.Fixed(4))})
			if c.want == "" {
				c.want = "not over the last axis"
			}
			check.Says(t, err, c.want)
		})
	}
}

// Sizes and steps that a file can hold, and no model has, end no program and
// give no wrong shape.
func TestOddNumbers(t *testing.T) {
	g := onnx.New("odd")
	list := ints(g, 1, 2, 3)
	slice := func(start, end, step int64) *value {
		return apply(g, "Slice", values{list, ints(g, start), ints(g, end), ints(g, 0), ints(g, step)})
	}
	tiled := apply(g, "Tile", values{list, ints(g, -1)})
	for what, c := range map[string]struct{ got, want string }{
		"a step that overflows":    {slice(1, 3, math.MaxInt64).Shape.String(), "[1]"},
		"a step back":              {slice(2, 0, math.MinInt64).Shape.String(), "[1]"},
		"a start before the first": {slice(-5, 3, 1).Shape.String(), "[3]"},
		"a tile of less than none": {tiled.Shape.String(), "[?0]"},
		"a constant of that shape": {fmt.Sprint(apply(g, "ConstantOfShape", values{tiled}).Unranked), "true"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", what, c.got, c.want)
		}
	}
}

// An operator that is not known passes through; what depends on it has no
// gradient, and the error names it.
func TestUnknownOperatorPassesThrough(t *testing.T) {
	model := encodedModel(17,
		field(1, named(4, "Strange"), named(7, "com.example"), named(1, "x"), named(2, "h")),
		field(1, named(4, "Exp"), named(1, "h"), named(2, "y")),
		field(11, named(1, "x")), field(12, named(1, "y")))
	model = append(model, field(8, named(1, "com.example"), varint(2, 3))...)
	m, err := onnx.Decode(bytes.NewReader(model), int64(len(model)), "m.onnx")
	check.OK(t, err)
	g := onnx.New("strange")
	x := g.Input("x", onnx.Float, onnx.Fixed(4))
	out := check.Must(g.Inline(m, map[string]*value{"x": x}))(t)
	if !out["y"].Unranked {
		t.Errorf("the output has the shape %s", out["y"].Shape)
	}
	_, err = g.Differentiate([]*value{out["y"]}, []*value{x}, []*value{x})
	var none *onnx.NoRuleError
	if !errors.As(err, &none) || none.Op != "Strange" || none.Domain != "com.example" {
		t.Errorf("error %v", err)
	}
	g.Output("out", out["y"])
	encoded := check.Must(g.Encode())(t)
	if again, err := onnx.Decode(bytes.NewReader(encoded), int64(len(encoded)), ""); err != nil ||
		again.Opsets["com.example"] != 3 {
		t.Errorf("written again: %+v, %v", again, err)
	}
}

// Only the standard's own operators make values of any size: one of another domain
// may have the same name.
func TestMakersOfOtherDomains(t *testing.T) {
	for domain, want := range map[string]string{"": "makes values of any size", "com.example": ""} {
		model := encodedModel(17, field(1, named(4, "EyeLike"), named(7, domain), named(1, "x"), named(2, "y")),
			field(11, named(1, "x")), field(12, named(1, "y")))
		model = append(model, field(8, named(1, "com.example"), varint(2, 1))...)
		m := check.Must(onnx.Decode(bytes.NewReader(model), int64(len(model)), "m.onnx"))(t)
		g := onnx.New("makers")
		_, err := g.Inline(m, map[string]*value{"x": g.Input("x", onnx.Float, onnx.Fixed(4))})
		if want == "" {
			check.OK(t, err)
		} else {
			check.Says(t, err, want)
		}
	}
}

// Whatever the bytes are, the graph is read, inlined and differentiated, or
// refused in one line, within 64 MiB and a multiple of their size.
func FuzzDecode(f *testing.F) {
	for _, file := range exports {
		content := check.Must(os.ReadFile(filepath.Join(fixtures, file)))(f)
		f.Add(content)
	}
	f.Add(encodedModel(17, field(5, named(8, "w"), varint(1, 1<<40), varint(2, 1))))
	f.Add([]byte("\x08\x08\x3a\xff\xff\xff\xff\x07"))
	// a node whose operator has a line end, and an attribute that is cut
	f.Add([]byte("\x3a\x08\x0a\x06\x22\x02D\n\x2a\x09"))
	f.Fuzz(func(t *testing.T, content []byte) {
		g, out, inputs := onnx.New("fuzzed"), map[string]*value{}, map[string]*value{}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := onnx.Decode(bytes.NewReader(content), int64(len(content)), "m.onnx")
		if err == nil {
			for _, v := range m.Inputs {
				if len(inputs) < 100 && inputs[v.Name] == nil && !strings.HasPrefix(v.Name, "?") {
					inputs[v.Name] = g.Input(v.Name, onnx.Int64, onnx.Symbol("rows"), onnx.Symbol("tokens"))
				}
			}
			out, err = g.Inline(m, inputs)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20+64*uint64(len(content)) {
			t.Errorf("%d bytes allocated for a graph of %d", used, len(content))
		}
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q", err)
			}
			return
		}
		var outputs, wrt []*value
		for _, v := range out {
			if !v.Unranked {
				outputs = append(outputs, v)
			}
		}
		for _, n := range g.Nodes {
			if n.Op == "Gather" {
				wrt = append(wrt, n.Outputs[0])
			}
		}
		if len(outputs) == 0 {
			return
		}
		if _, err := g.Differentiate(outputs, outputs, wrt); err != nil {
			return
		}
		g.Output("first", outputs[0])
		_, _ = g.Encode()
	})
}

// damagedReader fails after some bytes.
type damagedReader struct{ io.ReaderAt }

func (d damagedReader) ReadAt(p []byte, at int64) (int, error) {
	if at > 100 {
		return 0, errors.New("the disk is broken")
	}
	return d.ReaderAt.ReadAt(p[:min(len(p), 100)], at)
}

func TestDecodeTellsOfTheDisk(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(fixtures, "eager-11.onnx"))
	check.OK(t, err)
	_, err = onnx.Decode(damagedReader{bytes.NewReader(content)}, int64(len(content)), "m.onnx")
	check.Says(t, err, "the disk is broken")
}
