package onnx_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"infill/internal/check"
	"infill/internal/onnx"
	"infill/internal/ort"
)

type (
	value  = onnx.Value
	values = []*value
	graph  = onnx.Graph
	sizes  = [][]int64
)

// ruleCase builds y from its inputs, by the operator alone where build is nil;
// every input is differentiated by.
type ruleCase struct {
	name   string
	op     string
	inputs sizes // shapes, in which negative numbers stand for symbols
	build  func(g *graph, x values) *value
}

// symbols are what negative sizes stand for, and their sizes in the run. Those
// with a question mark could be anything: rules must find out when they run
// which dimensions were repeated.
var symbols = map[int64]struct {
	name string
	size int64
}{-1: {"rows", 3}, -2: {"?n", 3}, -3: {"?one", 1}}

func ints(g *graph, x ...int64) *value { return g.Ints(x...) }

func whole(name string, x int64) onnx.Attribute { return onnx.Attribute{Name: name, Value: x} }

// apply is the first output of an operator.
func apply(g *graph, op string, x values, attributes ...onnx.Attribute) *value {
	return g.Apply(op, 1, x, attributes...)[0]
}

var ruleCases = []ruleCase{
	{"add", "Add", sizes{{-1, 4}, {-1, 4}}, nil},
	{"add broadcast", "Add", sizes{{-1, 4}, {4}}, nil},
	{"add to itself", "Add", sizes{{-1, 4}}, func(g *graph, x values) *value { return g.Add(x[0], x[0]) }},
	{"sub", "Sub", sizes{{2, -1, 1}, {-1, 4}}, nil},
	{"mul", "Mul", sizes{{2, -1, 4}, {4}}, nil},
	{"square", "Mul", sizes{{5}}, func(g *graph, x values) *value { return g.Mul(x[0], x[0]) }},
	{"div", "Div", sizes{{-1, 4}, {1, 4}}, nil},
	{"neg", "Neg", sizes{{5}}, nil},
	{"exp", "Exp", sizes{{5}}, nil},
	{"log", "Log", sizes{{5}}, nil},
	{"sqrt", "Sqrt", sizes{{5}}, nil},
	{"erf", "Erf", sizes{{5}}, nil},
	{"cos", "Cos", sizes{{5}}, nil},
	{"sin", "Sin", sizes{{5}}, nil},
	{"tanh", "Tanh", sizes{{5}}, nil},
	{"sigmoid", "Sigmoid", sizes{{5}}, nil},
	{"relu", "Relu", sizes{{9}}, nil},
	{"gelu", "Gelu", sizes{{9}}, func(g *graph, x values) *value { return g.Gelu(x[0], false) }},
	{"gelu tanh", "Gelu", sizes{{9}}, func(g *graph, x values) *value { return g.Gelu(x[0], true) }},
	{"identity", "Identity", sizes{{5}}, func(g *graph, x values) *value {
		g.Output("copy", x[0])
		return g.Outputs[0]
	}},
	{"reshape", "Reshape", sizes{{-1, 4}}, func(g *graph, x values) *value {
		return g.Reshape(x[0], onnx.Fixed(2), onnx.Symbol("rows").Times(onnx.Fixed(2)))
	}},
	{"softmax", "Softmax", sizes{{-1, 4}}, nil},
	{"log softmax", "LogSoftmax", sizes{{2, -1, 4}}, nil},
	{"matmul", "MatMul", sizes{{2, -1, 4}, {2, 4, 5}}, nil},
	{"matmul by a matrix", "MatMul", sizes{{2, -1, 4}, {4, 5}}, nil},
	{"matmul of a matrix by many", "MatMul", sizes{{-1, 4}, {2, 4, 5}}, nil},
	{"gemm", "Gemm", sizes{{-1, 4}, {4, 5}, {5}}, func(g *graph, x values) *value {
		return g.Gemm(x[0], x[1], x[2], onnx.GemmOptions{Alpha: 0.5, Beta: 2})
	}},
	{"gemm transposed b", "Gemm", sizes{{-1, 4}, {5, 4}, {1, 5}},
		func(g *graph, x values) *value { return g.Gemm(x[0], x[1], x[2], onnx.GemmOptions{TransB: true}) }},
	{"gemm transposed a", "Gemm", sizes{{4, -1}, {4, 5}}, func(g *graph, x values) *value {
		return g.Gemm(x[0], x[1], nil, onnx.GemmOptions{Alpha: 3, TransA: true})
	}},
	{"gemm both transposed", "Gemm", sizes{{4, -1}, {5, 4}}, func(g *graph, x values) *value {
		return g.Gemm(x[0], x[1], nil, onnx.GemmOptions{TransA: true, TransB: true})
	}},
	{"transpose", "Transpose", sizes{{2, -1, 4}},
		func(g *graph, x values) *value { return g.Transpose(x[0], 2, 0, 1) }},
	{"gather with repeats", "Gather", sizes{{4, 5}}, func(g *graph, x values) *value {
		return g.Gather(x[0], g.Constant("i", onnx.Ints([]int64{2, 2}, 3, 0, 3, 1)), 0)
	}},
	{"gather elements", "GatherElements", sizes{{3, 5}}, func(g *graph, x values) *value {
		return g.GatherElements(x[0], g.Constant("i", onnx.Ints([]int64{3, 2}, 0, 0, 1, 4, 2, 0)), 1)
	}},
	{"layer normalization", "LayerNormalization", sizes{{2, -1, 4}}, func(g *graph, x values) *value {
		scale := g.Constant("scale", onnx.Floats([]int64{4}, 1, -2, 0.5, 3))
		bias := g.Constant("bias", onnx.Floats([]int64{4}, 1, 2, 3, 4))
		return g.LayerNormalization(x[0], scale, bias, 1e-3)
	}},
	{"reduce sum", "ReduceSum", sizes{{2, -1, 4}},
		func(g *graph, x values) *value { return g.ReduceSum(x[0], false, 0, 2) }},
	{"reduce mean", "ReduceMean", sizes{{2, -1, 4}},
		func(g *graph, x values) *value { return g.ReduceMean(x[0], true, 2) }},
	{"reduce mean over a symbol", "ReduceMean", sizes{{2, -1, 4}},
		func(g *graph, x values) *value { return g.ReduceMean(x[0], false, 1) }},
	{"product rule through shared values", "Mul", sizes{{-1, 4}, {4, 4}}, func(g *graph, x values) *value {
		h := g.Tanh(g.MatMul(x[0], x[1]))
		return g.Mul(g.Add(h, x[0]), g.Softmax(h))
	}},
	// What exporters write.
	{"cast to double and back", "Cast", sizes{{-1, 4}}, func(g *graph, x values) *value {
		return g.Mul(g.Cast(g.Exp(g.Cast(x[0], onnx.Double)), onnx.Float), x[0])
	}},
	{"power of two", "Pow", sizes{{-1, 4}},
		func(g *graph, x values) *value { return apply(g, "Pow", values{x[0], g.Scalar(2)}) }},
	{"powers, broadcast both ways", "Pow", sizes{{-1, 1}}, func(g *graph, x values) *value {
		return apply(g, "Pow", values{x[0], g.Constant("p", onnx.Floats([]int64{3}, 3, -1, 0.5))})
	}},
	{"where", "Where", sizes{{-1, 4}, {4}}, func(g *graph, x values) *value {
		condition := apply(g, "Greater", values{x[0], g.Scalar(0)})
		return apply(g, "Where", values{condition, g.Exp(x[0]), x[1]})
	}},
	{"maximum", "Max", sizes{{-1, 4}, {4}}, nil},
	{"minimum", "Min", sizes{{-1, 4}, {1, 1}}, nil},
	{"expand", "Expand", sizes{{-1, 1}},
		func(g *graph, x values) *value { return apply(g, "Expand", values{x[0], ints(g, 2, 1, 4)}) }},
	{"unsqueeze", "Unsqueeze", sizes{{-1, 4}}, func(g *graph, x values) *value {
		return apply(g, "Unsqueeze", values{g.Exp(x[0]), ints(g, 1, -1)})
	}},
	{"squeeze", "Squeeze", sizes{{1, -1, 1, 4}}, func(g *graph, x values) *value {
		return apply(g, "Squeeze", values{g.Exp(x[0]), ints(g, 0, -2)})
	}},
	{"squeeze of all", "Squeeze", sizes{{1, 3, 1, 4}},
		func(g *graph, x values) *value { return apply(g, "Squeeze", values{g.Exp(x[0])}) }},
	{"flatten", "Flatten", sizes{{2, -1, 4}}, func(g *graph, x values) *value {
		return apply(g, "Flatten", values{g.Exp(x[0])}, whole("axis", 2))
	}},
	{"reshape by shape arithmetic", "Reshape", sizes{{-1, 4}}, func(g *graph, x values) *value {
		rows := apply(g, "Gather", values{apply(g, "Shape", x), g.Constant("0", onnx.Ints(nil, 0))})
		twice := apply(g, "Mul", values{apply(g, "Unsqueeze", values{rows, ints(g, 0)}), ints(g, 2)})
		to := apply(g, "Concat", values{twice, ints(g, -1)}, whole("axis", 0))
		return apply(g, "Reshape", values{g.Exp(x[0]), to})
	}},
	{"reciprocal", "Reciprocal", sizes{{5}}, nil},
	{"absolute value", "Abs", sizes{{9}}, nil},
	{"slice", "Slice", sizes{{-1, 6}}, func(g *graph, x values) *value {
		return apply(g, "Slice", values{x[0], ints(g, 1), ints(g, -1), ints(g, 1)})
	}},
	{"slices of two axes with steps", "Slice", sizes{{-1, 6, 5}}, func(g *graph, x values) *value {
		return apply(g, "Slice", values{x[0], ints(g, 4, 0), ints(g, 0, 5), ints(g, 2, 1), ints(g, -2, 2)})
	}},
	{"slice of a symbol", "Slice", sizes{{-1, 4}}, func(g *graph, x values) *value {
		return apply(g, "Slice", values{x[0], ints(g, 1), ints(g, 1<<40), ints(g, 0)})
	}},
	{"pads and crops with a constant", "Pad", sizes{{-1, 4}}, func(g *graph, x values) *value {
		return g.Exp(apply(g, "Pad", values{x[0], ints(g, 1, -1, 0, 2), g.Scalar(3)}))
	}},
	{"pads that are computed", "Pad", sizes{{-1, 2}}, func(g *graph, x values) *value {
		ends := apply(g, "Reshape", values{ints(g, 1, 0, 0, 2), ints(g, 2, 2)})
		pads := apply(g, "Reshape", values{apply(g, "Transpose", values{ends}), ints(g, -1)})
		return g.Exp(apply(g, "Pad", values{x[0], pads}))
	}},
	{"where a mask says, taken element by element", "GatherND", sizes{{2, 3}}, func(g *graph, x values) *value {
		mask := g.Constant("m", onnx.Tensor{Shape: []int64{2, 2}, DType: onnx.Bool, Raw: []byte{1, 0, 0, 1}})
		at := g.Constant("i", onnx.Ints([]int64{2, 3, 2}, 0, 0, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1))
		chosen := apply(g, "GatherND", values{mask, at})
		return apply(g, "Where", values{chosen, g.Exp(x[0]), x[0]})
	}},
	{"concat", "Concat", sizes{{-1, 2}, {-1, 3}}, func(g *graph, x values) *value {
		return apply(g, "Concat", values{x[0], g.Exp(x[1]), x[0]}, whole("axis", -1))
	}},
	{"concat of symbols", "Concat", sizes{{-1, 2}, {4, 2}},
		func(g *graph, x values) *value { return g.Exp(apply(g, "Concat", x, whole("axis", 0))) }},
	{"split", "Split", sizes{{-1, 6}}, func(g *graph, x values) *value {
		parts := g.Apply("Split", 3, values{x[0], ints(g, 2, 3, 1)}, whole("axis", 1))
		return g.Mul(g.Exp(parts[1]), parts[2]) // the first part is not used
	}},
	{"even split", "Split", sizes{{4, -1}}, func(g *graph, x values) *value {
		parts := g.Apply("Split", 2, x, whole("axis", 0), whole("num_outputs", 2))
		return g.Mul(parts[0], g.Exp(parts[1]))
	}},
	{"gather along the middle", "Gather", sizes{{-1, 5, 2}}, func(g *graph, x values) *value {
		return g.Apply("Gather", 1,
			values{x[0], g.Constant("i", onnx.Ints([]int64{2, 2}, 3, 0, 3, -1))},
			whole("axis", 1))[0]
	}},
	{"gather of one", "Gather", sizes{{-1, 5, 2}}, func(g *graph, x values) *value {
		return apply(g, "Gather", values{x[0], g.Constant("i", onnx.Ints(nil, 2))}, whole("axis", -2))
	}},
	{"transpose without an order", "Transpose", sizes{{2, -1, 4}},
		func(g *graph, x values) *value { return g.Exp(apply(g, "Transpose", x)) }},
	{"softmax as exporters write it", "Softmax", sizes{{2, -1, 4}},
		func(g *graph, x values) *value { return apply(g, "Softmax", x, whole("axis", 2)) }},
	{"log softmax as exporters write it", "LogSoftmax", sizes{{-1, 4}},
		func(g *graph, x values) *value { return apply(g, "LogSoftmax", x, whole("axis", 1)) }},
	{"layer normalization with its mean", "LayerNormalization", sizes{{2, -1, 4}},
		func(g *graph, x values) *value {
			scale := g.Constant("scale", onnx.Floats([]int64{4}, 1, -2, 0.5, 3))
			return g.Apply("LayerNormalization", 2, values{x[0], scale},
				onnx.Attribute{Name: "epsilon", Value: float32(1e-3)})[0]
		}},
	{"decomposed layer normalisation", "Pow", sizes{{2, -1, 4}}, func(g *graph, x values) *value {
		mean := apply(g, "ReduceMean", values{x[0], ints(g, -1)}, whole("keepdims", 1))
		centred := g.Sub(x[0], mean)
		variance := apply(g, "ReduceMean", values{apply(g, "Pow", values{centred, g.Scalar(2)}), ints(g, -1)})
		return g.Div(centred, apply(g, "Sqrt", values{g.Add(variance, g.Scalar(1e-3))}))
	}},
	{"decomposed GELU", "Erf", sizes{{-1, 4}}, func(g *graph, x values) *value {
		return g.Mul(g.Mul(x[0], g.Add(g.Erf(g.Div(x[0], g.Scalar(1.4142135))), g.Scalar(1))), g.Scalar(0.5))
	}},
	// Broadcasting over dimensions that only a run knows.
	{"add, repeated or not", "NonZero", sizes{{-2, 4}, {-3, 4}},
		func(g *graph, x values) *value { return g.Exp(apply(g, "Add", x)) }},
	{"add, the other one repeated", "NonZero", sizes{{2, -3, 4}, {-2, -3}},
		func(g *graph, x values) *value { return g.Exp(apply(g, "Add", x)) }},
	{"product of equal but uncertain sizes", "NonZero", sizes{{-2, 4}, {-1, 4}},
		func(g *graph, x values) *value { return apply(g, "Mul", x) }},
	{"uncertain against a size", "NonZero", sizes{{5, 4}, {-3, 4}},
		func(g *graph, x values) *value { return apply(g, "Div", values{x[0], g.Exp(x[1])}) }},
	{"matmul with uncertain batches", "NonZero", sizes{{-2, 2, 4}, {-3, 4, 2}},
		func(g *graph, x values) *value { return apply(g, "MatMul", x) }},
	{"expand to an uncertain size", "NonZero", sizes{{-3, 4}, {-2, 1}}, func(g *graph, x values) *value {
		return g.Mul(apply(g, "Expand", values{x[0], apply(g, "Shape", x[1:])}), x[1])
	}},
	{"where with uncertain sizes", "NonZero", sizes{{-2, 4}, {-3, 1}}, func(g *graph, x values) *value {
		condition := apply(g, "Less", values{x[0], x[1]})
		return apply(g, "Where", values{condition, x[0], g.Exp(x[1])})
	}},
	{"reshape of what is not known", "Reshape", sizes{{-2, 4}}, func(g *graph, x values) *value {
		return apply(g, "Reshape", values{g.Exp(x[0]), ints(g, 2, -1)})
	}},
}

// Every rule against torch, in single precision; testdata/rules.py says how the
// values were made.
func TestRules(t *testing.T) {
	content := check.Must(os.ReadFile(filepath.Join("testdata", "rules.json")))(t)
	var references map[string]struct {
		Inputs, Gradients [][]float64
		Shape             []int64
		Output, Seed      []float64
	}
	check.OK(t, json.Unmarshal(content, &references))
	if len(references) != len(ruleCases) {
		t.Errorf("%d cases, %d reference values", len(ruleCases), len(references))
	}
	for _, c := range ruleCases {
		t.Run(c.name, func(t *testing.T) {
			want, ok := references[c.name]
			if !ok {
				t.Fatal("there is no reference")
			}
			g := onnx.New(c.name)
			inputs := map[string]ort.Tensor{"seed": single(want.Shape, want.Seed)}
			shapes := [][]int64{want.Shape}
			var x values
			for i, sizes := range c.inputs {
				var shape []onnx.Dim
				concrete := slices.Clone(sizes)
				for k, n := range sizes {
					if s, ok := symbols[n]; ok {
						shape, concrete[k] = append(shape, onnx.Symbol(s.name)), s.size
					} else {
						shape = append(shape, onnx.Fixed(n))
					}
				}
				x = append(x, g.Input(string(rune('a'+i)), onnx.Float, shape...))
				inputs[x[i].Name] = single(concrete, want.Inputs[i])
				shapes = append(shapes, concrete)
			}
			if c.build == nil {
				c.build = func(g *graph, x values) *value { return apply(g, c.op, x) }
			}
			y := c.build(g, x)
			// The seed is an input like any other, so that it can be anything.
			gradients := check.Must(g.Differentiate(values{y}, values{g.Input("seed", onnx.Float, y.Shape...)}, x))(t)
			if !slices.ContainsFunc(g.Nodes, func(n *onnx.Node) bool { return n.Op == c.op }) {
				t.Fatalf("the case does not use %s", c.op)
			}
			g.Outputs = nil
			g.Output("y", y)
			for i, d := range gradients {
				g.Output("d"+x[i].Name, d)
			}
			got := run(t, g, "", inputs, shapes...)
			for i, want := range append([][]float64{want.Output}, want.Gradients...) {
				compare(t, g.Outputs[i].Name, got[i], want, 1e-5)
			}
		})
	}
}

// A rule without a case above is not proven.
func TestEveryRuleHasACase(t *testing.T) {
	for _, op := range onnx.DifferentiableOperators() {
		if !slices.ContainsFunc(ruleCases, func(c ruleCase) bool { return c.op == op }) {
			t.Errorf("operator %s has a rule and no case in TestRules", op)
		}
	}
}

func TestDifferentiateNamesWhatHasNoRule(t *testing.T) {
	for op, build := range map[string]func(g *onnx.Graph, x *value) *value{
		"Softplus": func(g *onnx.Graph, x *value) *value { return g.Apply("Softplus", 1, values{x})[0] },
		// What is behind an operator without inference could be a whole number,
		// and have no derivative, or not.
		"Det": func(g *onnx.Graph, x *value) *value {
			shaped := g.Apply("Reshape", 1, values{g.Apply("Det", 1, values{x})[0], ints(g, 2, 3)})
			return g.Cast(shaped[0], onnx.Float)
		},
		"LayerNormalization": func(g *onnx.Graph, x *value) *value {
			scale := g.Constant("scale", onnx.Floats([]int64{3}, 1, 2, 3))
			y := g.Apply("LayerNormalization", 2, values{x, scale})
			return g.Add(y[0], y[1])
		},
	} {
		g := onnx.New("no rule")
		x := g.Input("x", onnx.Float, onnx.Fixed(2), onnx.Fixed(3))
		y := build(g, x)
		_, err := g.Differentiate(values{y}, values{y}, values{x})
		var none *onnx.NoRuleError
		if !errors.As(err, &none) || none.Op != op ||
			!strings.HasPrefix(err.Error(), "onnx: ") || !strings.HasSuffix(err.Error(),
			"operator "+op+" ("+none.Output+") has no differentiation rule") {
			t.Errorf("%s: error %v", op, err)
		}
	}
}

func TestIndependentOutputHasZeroGradient(t *testing.T) {
	g := onnx.New("independent")
	x := g.Input("x", onnx.Float, onnx.Fixed(2))
	y := g.Input("y", onnx.Float, onnx.Fixed(2))
	d := check.Must(g.Differentiate(values{g.Exp(y)}, values{y}, values{x}))(t)
	g.Output("d", d[0])
	two := single([]int64{2}, []float64{1, 2})
	compare(t, "the gradient", run(t, g, "", map[string]ort.Tensor{"x": two, "y": two}, []int64{2})[0],
		[]float64{0, 0}, 0)
}
