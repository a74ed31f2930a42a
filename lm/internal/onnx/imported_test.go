package onnx_test

import (
	"infill/lm/internal/onnx"
)

func ints(g *onnx.Graph, x ...int64) *value { return g.Ints(x...) }

func whole(name string, x int64) onnx.Attribute { return onnx.Attribute{Name: name, Value: x} }

// importedRuleCases are the rules for what exporters write. Sizes of −2 stand
// for the uncertain symbol "?n", which is 3 in this run, of −3 for "?one",
// which is 1: rules must find out when they run which dimensions were
// repeated.
var importedRuleCases = []ruleCase{
	{name: "cast to double and back", op: "Cast", inputs: [][]int{{-1, 4}},
		build: func(g *onnx.Graph, x []*value) *value {
			return g.Mul(g.Cast(g.Exp(g.Cast(x[0], onnx.Double)), onnx.Float), x[0])
		}},
	{name: "square", op: "Pow", inputs: [][]int{{-1, 4}}, build: func(g *onnx.Graph, x []*value) *value {
		return g.Apply("Pow", 1, []*value{x[0], g.Scalar(2)})[0]
	}},
	{name: "powers, broadcast both ways", op: "Pow", inputs: [][]int{{-1, 1}}, positive: true,
		build: func(g *onnx.Graph, x []*value) *value {
			return g.Apply("Pow", 1,
				[]*value{x[0], g.Constant("p", onnx.Tensor{Shape: []int64{3}, Floats: []float32{3, -1, 0.5}})})[0]
		}},
	{name: "where", op: "Where", inputs: [][]int{{-1, 4}, {4}}, build: func(g *onnx.Graph, x []*value) *value {
		condition := g.Apply("Greater", 1, []*value{x[0], g.Scalar(0)})[0]
		return g.Apply("Where", 1, []*value{condition, g.Exp(x[0]), x[1]})[0]
	}},
	{name: "maximum", op: "Max", inputs: [][]int{{-1, 4}, {4}},
		build: func(g *onnx.Graph, x []*value) *value { return g.Apply("Max", 1, x)[0] }},
	{name: "minimum", op: "Min", inputs: [][]int{{-1, 4}, {1, 1}},
		build: func(g *onnx.Graph, x []*value) *value { return g.Apply("Min", 1, x)[0] }},
	{name: "expand", op: "Expand", inputs: [][]int{{-1, 1}}, build: func(g *onnx.Graph, x []*value) *value {
		return g.Apply("Expand", 1, []*value{x[0], ints(g, 2, 1, 4)})[0]
	}},
	{name: "unsqueeze", op: "Unsqueeze", inputs: [][]int{{-1, 4}}, build: func(g *onnx.Graph, x []*value) *value {
		return g.Apply("Unsqueeze", 1, []*value{g.Exp(x[0]), ints(g, 1, -1)})[0]
	}},
	{name: "squeeze", op: "Squeeze", inputs: [][]int{{1, -1, 1, 4}}, build: func(g *onnx.Graph, x []*value) *value {
		return g.Apply("Squeeze", 1, []*value{g.Exp(x[0]), ints(g, 0, -2)})[0]
	}},
	{name: "squeeze of all", op: "Squeeze", inputs: [][]int{{1, 3, 1, 4}},
		build: func(g *onnx.Graph, x []*value) *value {
			return g.Apply("Squeeze", 1, []*value{g.Exp(x[0])})[0]
		}},
	{name: "flatten", op: "Flatten", inputs: [][]int{{2, -1, 4}}, build: func(g *onnx.Graph, x []*value) *value {
		return g.Apply("Flatten", 1, []*value{g.Exp(x[0])}, whole("axis", 2))[0]
	}},
	{name: "reshape by shape arithmetic", op: "Reshape", inputs: [][]int{{-1, 4}},
		build: func(g *onnx.Graph, x []*value) *value {
			rows := g.Apply("Gather", 1,
				[]*value{g.Apply("Shape", 1, x)[0], g.Constant("0", onnx.Tensor{Ints: []int64{0}})})[0]
			twice := g.Apply("Mul", 1, []*value{g.Apply("Unsqueeze", 1, []*value{rows, ints(g, 0)})[0], ints(g, 2)})[0]
			to := g.Apply("Concat", 1, []*value{twice, ints(g, -1)}, whole("axis", 0))[0]
			return g.Apply("Reshape", 1, []*value{g.Exp(x[0]), to})[0]
		}},
	{name: "reciprocal", op: "Reciprocal", inputs: [][]int{{5}}, positive: true,
		build: func(g *onnx.Graph, x []*value) *value { return g.Apply("Reciprocal", 1, x)[0] }},
	{name: "absolute value", op: "Abs", inputs: [][]int{{9}},
		build: func(g *onnx.Graph, x []*value) *value { return g.Apply("Abs", 1, x)[0] }},
	{name: "slice", op: "Slice", inputs: [][]int{{-1, 6}}, build: func(g *onnx.Graph, x []*value) *value {
		return g.Apply("Slice", 1, []*value{x[0], ints(g, 1), ints(g, -1), ints(g, 1)})[0]
	}},
	{name: "slices of two axes with steps", op: "Slice", inputs: [][]int{{-1, 6, 5}},
		build: func(g *onnx.Graph, x []*value) *value {
			return g.Apply("Slice", 1, []*value{x[0], ints(g, 4, 0), ints(g, 0, 5), ints(g, 2, 1), ints(g, -2, 2)})[0]
		}},
	{name: "slice of a symbol", op: "Slice", inputs: [][]int{{-1, 4}}, build: func(g *onnx.Graph, x []*value) *value {
		return g.Apply("Slice", 1, []*value{x[0], ints(g, 1), ints(g, 1<<40), ints(g, 0)})[0]
	}},
	{name: "pads and crops with a constant", op: "Pad", inputs: [][]int{{-1, 4}},
		build: func(g *onnx.Graph, x []*value) *value {
			return g.Exp(g.Apply("Pad", 1, []*value{x[0], ints(g, 1, -1, 0, 2), g.Scalar(3)})[0])
		}},
	{name: "pads that are computed", op: "Pad", inputs: [][]int{{-1, 2}},
		build: func(g *onnx.Graph, x []*value) *value {
			ends := g.Apply("Reshape", 1, []*value{ints(g, 1, 0, 0, 2), ints(g, 2, 2)})
			pads := g.Apply("Reshape", 1, []*value{g.Apply("Transpose", 1, ends)[0], ints(g, -1)})[0]
			return g.Exp(g.Apply("Pad", 1, []*value{x[0], pads})[0])
		}},
	{name: "where a mask says, taken element by element", op: "GatherND", inputs: [][]int{{2, 3}},
		build: func(g *onnx.Graph, x []*value) *value {
			mask := g.Constant("m", onnx.Tensor{Shape: []int64{2, 2}, DType: onnx.Bool, Raw: []byte{1, 0, 0, 1}})
			at := g.Constant("i",
				onnx.Tensor{Shape: []int64{2, 3, 2}, Ints: []int64{0, 0, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1}})
			chosen := g.Apply("GatherND", 1, []*value{mask, at})[0]
			return g.Apply("Where", 1, []*value{chosen, g.Exp(x[0]), x[0]})[0]
		}},
	{name: "concat", op: "Concat", inputs: [][]int{{-1, 2}, {-1, 3}}, build: func(g *onnx.Graph, x []*value) *value {
		return g.Apply("Concat", 1, []*value{x[0], g.Exp(x[1]), x[0]}, whole("axis", -1))[0]
	}},
	{name: "concat of symbols", op: "Concat", inputs: [][]int{{-1, 2}, {4, 2}},
		build: func(g *onnx.Graph, x []*value) *value {
			return g.Exp(g.Apply("Concat", 1, x, whole("axis", 0))[0])
		}},
	{name: "split", op: "Split", inputs: [][]int{{-1, 6}}, build: func(g *onnx.Graph, x []*value) *value {
		parts := g.Apply("Split", 3, []*value{x[0], ints(g, 2, 3, 1)}, whole("axis", 1))
		return g.Mul(g.Exp(parts[1]), parts[2]) // the first part is not used
	}},
	{name: "even split", op: "Split", inputs: [][]int{{4, -1}}, build: func(g *onnx.Graph, x []*value) *value {
		parts := g.Apply("Split", 2, x, whole("axis", 0), whole("num_outputs", 2))
		return g.Mul(parts[0], g.Exp(parts[1]))
	}},
	{name: "gather along the middle", op: "Gather", inputs: [][]int{{-1, 5, 2}},
		build: func(g *onnx.Graph, x []*value) *value {
			return g.Apply("Gather", 1,
				[]*value{x[0], g.Constant("i", onnx.Tensor{Shape: []int64{2, 2}, Ints: []int64{3, 0, 3, -1}})},
				whole("axis", 1))[0]
		}},
	{name: "gather of one", op: "Gather", inputs: [][]int{{-1, 5, 2}}, build: func(g *onnx.Graph, x []*value) *value {
		return g.Apply("Gather", 1, []*value{x[0], g.Constant("i", onnx.Tensor{Ints: []int64{2}})},
			whole("axis", -2))[0]
	}},
	{name: "transpose without an order", op: "Transpose", inputs: [][]int{{2, -1, 4}},
		build: func(g *onnx.Graph, x []*value) *value {
			return g.Exp(g.Apply("Transpose", 1, x)[0])
		}},
	{name: "softmax as exporters write it", op: "Softmax", inputs: [][]int{{2, -1, 4}},
		build: func(g *onnx.Graph, x []*value) *value {
			return g.Apply("Softmax", 1, x, whole("axis", 2))[0]
		}},
	{name: "log softmax as exporters write it", op: "LogSoftmax", inputs: [][]int{{-1, 4}},
		build: func(g *onnx.Graph, x []*value) *value {
			return g.Apply("LogSoftmax", 1, x, whole("axis", 1))[0]
		}},
	{name: "layer normalization with its mean", op: "LayerNormalization", inputs: [][]int{{2, -1, 4}},
		build: func(g *onnx.Graph, x []*value) *value {
			scale := g.Constant("scale", onnx.Tensor{Shape: []int64{4}, Floats: []float32{1, -2, 0.5, 3}})
			return g.Apply("LayerNormalization", 2, []*value{x[0], scale},
				onnx.Attribute{Name: "epsilon", Value: float32(1e-3)})[0]
		}},
	{name: "decomposed layer normalisation", op: "Pow", inputs: [][]int{{2, -1, 4}},
		build: func(g *onnx.Graph, x []*value) *value {
			mean := g.Apply("ReduceMean", 1, []*value{x[0], ints(g, -1)}, whole("keepdims", 1))[0]
			centred := g.Sub(x[0], mean)
			variance := g.Apply("ReduceMean", 1,
				[]*value{g.Apply("Pow", 1, []*value{centred, g.Scalar(2)})[0], ints(g, -1)})[0]
			return g.Div(centred, g.Apply("Sqrt", 1, []*onnx.Value{g.Add(variance, g.Scalar(1e-3))})[0])
		}},
	{name: "decomposed GELU", op: "Erf", inputs: [][]int{{-1, 4}}, build: func(g *onnx.Graph, x []*value) *value {
		return g.Mul(g.Mul(x[0], g.Add(g.Erf(g.Div(x[0], g.Scalar(1.4142135))), g.Scalar(1))), g.Scalar(0.5))
	}},
	// Broadcasting over dimensions that only a run knows.
	{name: "add, repeated or not", op: "NonZero", inputs: [][]int{{-2, 4}, {-3, 4}},
		build: func(g *onnx.Graph, x []*value) *value {
			return g.Exp(g.Apply("Add", 1, x)[0])
		}},
	{name: "add, the other one repeated", op: "NonZero", inputs: [][]int{{2, -3, 4}, {-2, -3}},
		build: func(g *onnx.Graph, x []*value) *value {
			return g.Exp(g.Apply("Add", 1, x)[0])
		}},
	{name: "product of equal but uncertain sizes", op: "NonZero", inputs: [][]int{{-2, 4}, {-1, 4}},
		build: func(g *onnx.Graph, x []*value) *value {
			return g.Apply("Mul", 1, x)[0]
		}},
	{name: "uncertain against a size", op: "NonZero", inputs: [][]int{{5, 4}, {-3, 4}},
		build: func(g *onnx.Graph, x []*value) *value {
			return g.Apply("Div", 1, []*value{x[0], g.Exp(x[1])})[0]
		}},
	{name: "matmul with uncertain batches", op: "NonZero", inputs: [][]int{{-2, 2, 4}, {-3, 4, 2}},
		build: func(g *onnx.Graph, x []*value) *value {
			return g.Apply("MatMul", 1, x)[0]
		}},
	{name: "expand to an uncertain size", op: "NonZero", inputs: [][]int{{-3, 4}, {-2, 1}},
		build: func(g *onnx.Graph, x []*value) *value {
			return g.Mul(g.Apply("Expand", 1, []*value{x[0], g.Apply("Shape", 1, x[1:])[0]})[0], x[1])
		}},
	{name: "where with uncertain sizes", op: "NonZero", inputs: [][]int{{-2, 4}, {-3, 1}},
		build: func(g *onnx.Graph, x []*value) *value {
			condition := g.Apply("Less", 1, []*value{x[0], x[1]})[0]
			return g.Apply("Where", 1, []*value{condition, x[0], g.Exp(x[1])})[0]
		}},
	{name: "reshape of what is not known", op: "Reshape", inputs: [][]int{{-2, 4}},
		build: func(g *onnx.Graph, x []*value) *value {
			return g.Apply("Reshape", 1, []*value{g.Exp(x[0]), ints(g, 2, -1)})[0]
		}},
}
