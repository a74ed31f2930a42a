package onnx_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"infill/lm/internal/onnx"
)

type (
	value  = onnx.Value
	values = []*value
	graph  = onnx.Graph
	sizes  = [][]int
)

// ruleCase builds y from its inputs, by the operator alone where build is nil; every input is differentiated by.
type ruleCase struct {
	name     string
	op       string
	inputs   [][]int // shapes; -1 stands for the symbol "rows", which is 3
	positive bool    // inputs are drawn from (½, 2)
	build    func(g *graph, x values) *value
}

var ruleCases = []ruleCase{
	{"add", "Add", sizes{{-1, 4}, {-1, 4}}, false, func(g *graph, x values) *value { return g.Add(x[0], x[1]) }},
	{"add broadcast", "Add", sizes{{-1, 4}, {4}}, false, func(g *graph, x values) *value { return g.Add(x[0], x[1]) }},
	{"add to itself", "Add", sizes{{-1, 4}}, false, func(g *graph, x values) *value { return g.Add(x[0], x[0]) }},
	{"sub", "Sub", sizes{{2, -1, 1}, {-1, 4}}, false, func(g *graph, x values) *value { return g.Sub(x[0], x[1]) }},
	{"mul", "Mul", sizes{{2, -1, 4}, {4}}, false, func(g *graph, x values) *value { return g.Mul(x[0], x[1]) }},
	{"square", "Mul", sizes{{5}}, false, func(g *graph, x values) *value { return g.Mul(x[0], x[0]) }},
	{"div", "Div", sizes{{-1, 4}, {1, 4}}, true, func(g *graph, x values) *value { return g.Div(x[0], x[1]) }},
	{"neg", "Neg", sizes{{5}}, false, func(g *graph, x values) *value { return g.Neg(x[0]) }},
	{"exp", "Exp", sizes{{5}}, false, func(g *graph, x values) *value { return g.Exp(x[0]) }},
	{"log", "Log", sizes{{5}}, true, nil},
	{"sqrt", "Sqrt", sizes{{5}}, true, nil},
	{"erf", "Erf", sizes{{5}}, false, func(g *graph, x values) *value { return g.Erf(x[0]) }},
	{"cos", "Cos", sizes{{5}}, false, func(g *graph, x values) *value { return g.Cos(x[0]) }},
	{"sin", "Sin", sizes{{5}}, false, func(g *graph, x values) *value { return g.Sin(x[0]) }},
	{"tanh", "Tanh", sizes{{5}}, false, func(g *graph, x values) *value { return g.Tanh(x[0]) }},
	{"sigmoid", "Sigmoid", sizes{{5}}, false, nil},
	{"relu", "Relu", sizes{{9}}, false, func(g *graph, x values) *value { return g.Relu(x[0]) }},
	{"gelu", "Gelu", sizes{{9}}, false, func(g *graph, x values) *value { return g.Gelu(x[0], false) }},
	{"gelu tanh", "Gelu", sizes{{9}}, false, func(g *graph, x values) *value { return g.Gelu(x[0], true) }},
	{"identity", "Identity", sizes{{5}}, false, func(g *graph, x values) *value {
		g.Output("copy", x[0])
		return g.Outputs[0]
	}},
	{"reshape", "Reshape", sizes{{-1, 4}}, false, func(g *graph, x values) *value {
		return g.Reshape(x[0], onnx.Fixed(2), onnx.Symbol("rows").Times(onnx.Fixed(2)))
	}},
	{"softmax", "Softmax", sizes{{-1, 4}}, false, func(g *graph, x values) *value { return g.Softmax(x[0]) }},
	{"log softmax", "LogSoftmax", sizes{{2, -1, 4}}, false,
		func(g *graph, x values) *value { return g.LogSoftmax(x[0]) }},
	{"matmul", "MatMul", sizes{{2, -1, 4}, {2, 4, 5}}, false,
		func(g *graph, x values) *value { return g.MatMul(x[0], x[1]) }},
	{"matmul by a matrix", "MatMul", sizes{{2, -1, 4}, {4, 5}}, false,
		func(g *graph, x values) *value { return g.MatMul(x[0], x[1]) }},
	{"gemm", "Gemm", sizes{{-1, 4}, {4, 5}, {5}}, false, func(g *graph, x values) *value {
		return g.Gemm(x[0], x[1], x[2], onnx.GemmOptions{Alpha: 0.5, Beta: 2})
	}},
	{"gemm transposed b", "Gemm", sizes{{-1, 4}, {5, 4}, {1, 5}}, false,
		func(g *graph, x values) *value { return g.Gemm(x[0], x[1], x[2], onnx.GemmOptions{TransB: true}) }},
	{"gemm transposed a", "Gemm", sizes{{4, -1}, {4, 5}}, false, func(g *graph, x values) *value {
		return g.Gemm(x[0], x[1], nil, onnx.GemmOptions{Alpha: 3, TransA: true})
	}},
	{"gemm both transposed", "Gemm", sizes{{4, -1}, {5, 4}}, false, func(g *graph, x values) *value {
		return g.Gemm(x[0], x[1], nil, onnx.GemmOptions{TransA: true, TransB: true})
	}},
	{"transpose", "Transpose", sizes{{2, -1, 4}}, false,
		func(g *graph, x values) *value { return g.Transpose(x[0], 2, 0, 1) }},
	{"gather with repeats", "Gather", sizes{{4, 5}}, false, func(g *graph, x values) *value {
		return g.Gather(x[0], g.Constant("i", onnx.Tensor{Shape: []int64{2, 2}, Ints: []int64{3, 0, 3, 1}}), 0)
	}},
	{"gather elements", "GatherElements", sizes{{3, 5}}, false, func(g *graph, x values) *value {
		return g.GatherElements(x[0],
			g.Constant("i", onnx.Tensor{Shape: []int64{3, 2}, Ints: []int64{0, 0, 1, 4, 2, 0}}), 1)
	}},
	{"layer normalization", "LayerNormalization", sizes{{2, -1, 4}}, false, func(g *graph, x values) *value {
		scale := g.Constant("scale", onnx.Tensor{Shape: []int64{4}, Floats: []float32{1, -2, 0.5, 3}})
		bias := g.Constant("bias", onnx.Tensor{Shape: []int64{4}, Floats: []float32{1, 2, 3, 4}})
		return g.LayerNormalization(x[0], scale, bias, 1e-3)
	}},
	{"reduce sum", "ReduceSum", sizes{{2, -1, 4}}, false,
		func(g *graph, x values) *value { return g.ReduceSum(x[0], false, 0, 2) }},
	{"reduce mean", "ReduceMean", sizes{{2, -1, 4}}, false,
		func(g *graph, x values) *value { return g.ReduceMean(x[0], true, 2) }},
	{"reduce mean over a symbol", "ReduceMean", sizes{{2, -1, 4}}, false,
		func(g *graph, x values) *value { return g.ReduceMean(x[0], false, 1) }},
	{"product rule through shared values", "Mul", sizes{{-1, 4}, {4, 4}}, false, func(g *graph, x values) *value {
		h := g.Tanh(g.MatMul(x[0], x[1]))
		return g.Mul(g.Add(h, x[0]), g.Softmax(h))
	}},
}

// Every rule against central differences of the double-precision evaluator.
func TestRules(t *testing.T) {
	const rows, step, tolerance = 3, 1e-5, 1e-6
	for _, c := range slices.Concat(ruleCases, importedRuleCases) {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			g := onnx.New(c.name)
			inputs := map[string]Array{}
			var x []*value
			for i, sizes := range c.inputs {
				var shape []onnx.Dim
				concrete := slices.Clone(sizes)
				for k, n := range sizes {
					switch n {
					case -1:
						shape, concrete[k] = append(shape, onnx.Symbol("rows")), rows
					case -2:
						shape, concrete[k] = append(shape, onnx.Symbol("?n")), rows
					case -3:
						shape, concrete[k] = append(shape, onnx.Symbol("?one")), 1
					default:
						shape = append(shape, onnx.Fixed(int64(n)))
					}
				}
				name := string(rune('a' + i))
				x = append(x, g.Input(name, onnx.Float, shape...))
				a := New(concrete...)
				for k := range a.Data {
					a.Data[k] = rng.NormFloat64()
					if c.positive {
						a.Data[k] = 0.5 + 1.5*rng.Float64()
					}
				}
				inputs[name] = a
			}
			if c.build == nil {
				c.build = func(g *graph, x values) *value { return g.Apply(c.op, 1, x)[0] }
			}
			y := c.build(g, x)
			forward := slices.Clone(g.Nodes)
			// The seed is an input like any other, so that it can be anything.
			seed := g.Input("seed", onnx.Float, y.Shape...)
			gradients, err := g.Differentiate(values{y}, values{seed}, x)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(g.Nodes, func(n *onnx.Node) bool { return n.Op == c.op }) {
				t.Fatalf("the case does not use %s", c.op)
			}
			g.Outputs = nil
			g.Output("y", y)
			for i, d := range gradients {
				g.Output("d"+string(rune('a'+i)), d)
			}
			if _, err := g.Encode(); err != nil {
				t.Fatal(err)
			}
			inputs["seed"] = New() // its shape is known once y's is
			s := New(
				evaluate(t, &onnx.Graph{Name: c.name, Inputs: g.Inputs, Initializers: g.Initializers, Nodes: forward,
					Outputs: values{y}}, inputs)[0].Shape...)
			for k := range s.Data {
				s.Data[k] = rng.NormFloat64()
			}
			inputs["seed"] = s
			// weighted is Σ seed·y, whose derivative the rules must give.
			weighted := func() float64 {
				sum := 0.0
				for k, v := range evaluate(t, g, inputs)[0].Data {
					sum += v * s.Data[k]
				}
				return sum
			}
			got := evaluate(t, g, inputs)[1:]
			for i := range x {
				a := inputs[x[i].Name]
				if !slices.Equal(got[i].Shape, a.Shape) {
					t.Fatalf("gradient of input %d has shape %v, want %v", i, got[i].Shape, a.Shape)
				}
				for k, v := range a.Data {
					a.Data[k] = v + step
					up := weighted()
					a.Data[k] = v - step
					down := weighted()
					a.Data[k] = v
					want := (up - down) / (2 * step)
					if d := math.Abs(got[i].Data[k] - want); !(d <= tolerance*(1+math.Abs(want))) {
						t.Errorf("∂/∂x%d[%d] = %.9g, finite difference %.9g", i, k, got[i].Data[k], want)
					}
				}
			}
		})
	}
}

func evaluate(t *testing.T, g *onnx.Graph, inputs map[string]Array) []Array {
	t.Helper()
	out, err := Evaluate(g, inputs, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A rule without a case above is not proven.
func TestEveryRuleHasACase(t *testing.T) {
	for _, op := range onnx.DifferentiableOperators() {
		if !slices.ContainsFunc(slices.Concat(ruleCases, importedRuleCases),
			func(c ruleCase) bool { return c.op == op }) {
			t.Errorf("operator %s has a rule and no case in TestRules", op)
		}
	}
}

func TestDifferentiateNamesWhatHasNoRule(t *testing.T) {
	for op, build := range map[string]func(g *onnx.Graph, x *value) *value{
		"Softplus": func(g *onnx.Graph, x *value) *value { return g.Apply("Softplus", 1, values{x})[0] },
		// What is behind an operator without inference could be a whole number, and have no derivative, or not.
		"Det": func(g *onnx.Graph, x *value) *value {
			shaped := g.Apply("Reshape", 1, values{g.Apply("Det", 1, values{x})[0], ints(g, 2, 3)})
			return g.Cast(shaped[0], onnx.Float)
		},
		"LayerNormalization": func(g *onnx.Graph, x *value) *value {
			scale := g.Constant("scale", onnx.Tensor{Shape: []int64{3}, Floats: []float32{1, 2, 3}})
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
	d, err := g.Differentiate(values{g.Exp(y)}, values{y}, values{x})
	if err != nil {
		t.Fatal(err)
	}
	g.Output("d", d[0])
	two := Of([]float64{1, 2}, 2)
	out := evaluate(t, g, map[string]Array{"x": two, "y": two})
	if !slices.Equal(out[0].Data, []float64{0, 0}) {
		t.Errorf("gradient %v, want zeros", out[0].Data)
	}
}
