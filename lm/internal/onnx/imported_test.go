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
	{"cast to double and back", "Cast", sizes{{-1, 4}}, false, func(g *graph, x values) *value {
		return g.Mul(g.Cast(g.Exp(g.Cast(x[0], onnx.Double)), onnx.Float), x[0])
	}},
	{"square", "Pow", sizes{{-1, 4}}, false,
		func(g *graph, x values) *value { return g.Apply("Pow", 1, values{x[0], g.Scalar(2)})[0] }},
	{"powers, broadcast both ways", "Pow", sizes{{-1, 1}}, true, func(g *graph, x values) *value {
		return g.Apply("Pow", 1,
			values{x[0], g.Constant("p", onnx.Tensor{Shape: []int64{3}, Floats: []float32{3, -1, 0.5}})})[0]
	}},
	{"where", "Where", sizes{{-1, 4}, {4}}, false, func(g *graph, x values) *value {
		condition := g.Apply("Greater", 1, values{x[0], g.Scalar(0)})[0]
		return g.Apply("Where", 1, values{condition, g.Exp(x[0]), x[1]})[0]
	}},
	{"maximum", "Max", sizes{{-1, 4}, {4}}, false, nil},
	{"minimum", "Min", sizes{{-1, 4}, {1, 1}}, false, nil},
	{"expand", "Expand", sizes{{-1, 1}}, false,
		func(g *graph, x values) *value { return g.Apply("Expand", 1, values{x[0], ints(g, 2, 1, 4)})[0] }},
	{"unsqueeze", "Unsqueeze", sizes{{-1, 4}}, false, func(g *graph, x values) *value {
		return g.Apply("Unsqueeze", 1, values{g.Exp(x[0]), ints(g, 1, -1)})[0]
	}},
	{"squeeze", "Squeeze", sizes{{1, -1, 1, 4}}, false, func(g *graph, x values) *value {
		return g.Apply("Squeeze", 1, values{g.Exp(x[0]), ints(g, 0, -2)})[0]
	}},
	{"squeeze of all", "Squeeze", sizes{{1, 3, 1, 4}}, false,
		func(g *graph, x values) *value { return g.Apply("Squeeze", 1, values{g.Exp(x[0])})[0] }},
	{"flatten", "Flatten", sizes{{2, -1, 4}}, false, func(g *graph, x values) *value {
		return g.Apply("Flatten", 1, values{g.Exp(x[0])}, whole("axis", 2))[0]
	}},
	{"reshape by shape arithmetic", "Reshape", sizes{{-1, 4}}, false, func(g *graph, x values) *value {
		rows := g.Apply("Gather", 1,
			values{g.Apply("Shape", 1, x)[0], g.Constant("0", onnx.Tensor{Ints: []int64{0}})})[0]
		twice := g.Apply("Mul", 1, values{g.Apply("Unsqueeze", 1, values{rows, ints(g, 0)})[0], ints(g, 2)})[0]
		to := g.Apply("Concat", 1, values{twice, ints(g, -1)}, whole("axis", 0))[0]
		return g.Apply("Reshape", 1, values{g.Exp(x[0]), to})[0]
	}},
	{"reciprocal", "Reciprocal", sizes{{5}}, true, nil},
	{"absolute value", "Abs", sizes{{9}}, false, nil},
	{"slice", "Slice", sizes{{-1, 6}}, false, func(g *graph, x values) *value {
		return g.Apply("Slice", 1, values{x[0], ints(g, 1), ints(g, -1), ints(g, 1)})[0]
	}},
	{"slices of two axes with steps", "Slice", sizes{{-1, 6, 5}}, false, func(g *graph, x values) *value {
		return g.Apply("Slice", 1, values{x[0], ints(g, 4, 0), ints(g, 0, 5), ints(g, 2, 1), ints(g, -2, 2)})[0]
	}},
	{"slice of a symbol", "Slice", sizes{{-1, 4}}, false, func(g *graph, x values) *value {
		return g.Apply("Slice", 1, values{x[0], ints(g, 1), ints(g, 1<<40), ints(g, 0)})[0]
	}},
	{"pads and crops with a constant", "Pad", sizes{{-1, 4}}, false, func(g *graph, x values) *value {
		return g.Exp(g.Apply("Pad", 1, values{x[0], ints(g, 1, -1, 0, 2), g.Scalar(3)})[0])
	}},
	{"pads that are computed", "Pad", sizes{{-1, 2}}, false, func(g *graph, x values) *value {
		ends := g.Apply("Reshape", 1, values{ints(g, 1, 0, 0, 2), ints(g, 2, 2)})
		pads := g.Apply("Reshape", 1, values{g.Apply("Transpose", 1, ends)[0], ints(g, -1)})[0]
		return g.Exp(g.Apply("Pad", 1, values{x[0], pads})[0])
	}},
	{"where a mask says, taken element by element", "GatherND", sizes{{2, 3}}, false, func(g *graph, x values) *value {
		mask := g.Constant("m", onnx.Tensor{Shape: []int64{2, 2}, DType: onnx.Bool, Raw: []byte{1, 0, 0, 1}})
		at := g.Constant("i",
			onnx.Tensor{Shape: []int64{2, 3, 2}, Ints: []int64{0, 0, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1}})
		chosen := g.Apply("GatherND", 1, values{mask, at})[0]
		return g.Apply("Where", 1, values{chosen, g.Exp(x[0]), x[0]})[0]
	}},
	{"concat", "Concat", sizes{{-1, 2}, {-1, 3}}, false, func(g *graph, x values) *value {
		return g.Apply("Concat", 1, values{x[0], g.Exp(x[1]), x[0]}, whole("axis", -1))[0]
	}},
	{"concat of symbols", "Concat", sizes{{-1, 2}, {4, 2}}, false,
		func(g *graph, x values) *value { return g.Exp(g.Apply("Concat", 1, x, whole("axis", 0))[0]) }},
	{"split", "Split", sizes{{-1, 6}}, false, func(g *graph, x values) *value {
		parts := g.Apply("Split", 3, values{x[0], ints(g, 2, 3, 1)}, whole("axis", 1))
		return g.Mul(g.Exp(parts[1]), parts[2]) // the first part is not used
	}},
	{"even split", "Split", sizes{{4, -1}}, false, func(g *graph, x values) *value {
		parts := g.Apply("Split", 2, x, whole("axis", 0), whole("num_outputs", 2))
		return g.Mul(parts[0], g.Exp(parts[1]))
	}},
	{"gather along the middle", "Gather", sizes{{-1, 5, 2}}, false, func(g *graph, x values) *value {
		return g.Apply("Gather", 1,
			values{x[0], g.Constant("i", onnx.Tensor{Shape: []int64{2, 2}, Ints: []int64{3, 0, 3, -1}})},
			whole("axis", 1))[0]
	}},
	{"gather of one", "Gather", sizes{{-1, 5, 2}}, false, func(g *graph, x values) *value {
		return g.Apply("Gather", 1, values{x[0], g.Constant("i", onnx.Tensor{Ints: []int64{2}})},
			whole("axis", -2))[0]
	}},
	{"transpose without an order", "Transpose", sizes{{2, -1, 4}}, false,
		func(g *graph, x values) *value { return g.Exp(g.Apply("Transpose", 1, x)[0]) }},
	{"softmax as exporters write it", "Softmax", sizes{{2, -1, 4}}, false,
		func(g *graph, x values) *value { return g.Apply("Softmax", 1, x, whole("axis", 2))[0] }},
	{"log softmax as exporters write it", "LogSoftmax", sizes{{-1, 4}}, false,
		func(g *graph, x values) *value { return g.Apply("LogSoftmax", 1, x, whole("axis", 1))[0] }},
	{"layer normalization with its mean", "LayerNormalization", sizes{{2, -1, 4}}, false,
		func(g *graph, x values) *value {
			scale := g.Constant("scale", onnx.Tensor{Shape: []int64{4}, Floats: []float32{1, -2, 0.5, 3}})
			return g.Apply("LayerNormalization", 2, values{x[0], scale},
				onnx.Attribute{Name: "epsilon", Value: float32(1e-3)})[0]
		}},
	{"decomposed layer normalisation", "Pow", sizes{{2, -1, 4}}, false, func(g *graph, x values) *value {
		mean := g.Apply("ReduceMean", 1, values{x[0], ints(g, -1)}, whole("keepdims", 1))[0]
		centred := g.Sub(x[0], mean)
		variance := g.Apply("ReduceMean", 1,
			values{g.Apply("Pow", 1, values{centred, g.Scalar(2)})[0], ints(g, -1)})[0]
		return g.Div(centred, g.Apply("Sqrt", 1, values{g.Add(variance, g.Scalar(1e-3))})[0])
	}},
	{"decomposed GELU", "Erf", sizes{{-1, 4}}, false, func(g *graph, x values) *value {
		return g.Mul(g.Mul(x[0], g.Add(g.Erf(g.Div(x[0], g.Scalar(1.4142135))), g.Scalar(1))), g.Scalar(0.5))
	}},
	// Broadcasting over dimensions that only a run knows.
	{"add, repeated or not", "NonZero", sizes{{-2, 4}, {-3, 4}}, false,
		func(g *graph, x values) *value { return g.Exp(g.Apply("Add", 1, x)[0]) }},
	{"add, the other one repeated", "NonZero", sizes{{2, -3, 4}, {-2, -3}}, false,
		func(g *graph, x values) *value { return g.Exp(g.Apply("Add", 1, x)[0]) }},
	{"product of equal but uncertain sizes", "NonZero", sizes{{-2, 4}, {-1, 4}}, false,
		func(g *graph, x values) *value { return g.Apply("Mul", 1, x)[0] }},
	{"uncertain against a size", "NonZero", sizes{{5, 4}, {-3, 4}}, false,
		func(g *graph, x values) *value { return g.Apply("Div", 1, values{x[0], g.Exp(x[1])})[0] }},
	{"matmul with uncertain batches", "NonZero", sizes{{-2, 2, 4}, {-3, 4, 2}}, false,
		func(g *graph, x values) *value { return g.Apply("MatMul", 1, x)[0] }},
	{"expand to an uncertain size", "NonZero", sizes{{-3, 4}, {-2, 1}}, false, func(g *graph, x values) *value {
		return g.Mul(g.Apply("Expand", 1, values{x[0], g.Apply("Shape", 1, x[1:])[0]})[0], x[1])
	}},
	{"where with uncertain sizes", "NonZero", sizes{{-2, 4}, {-3, 1}}, false, func(g *graph, x values) *value {
		condition := g.Apply("Less", 1, values{x[0], x[1]})[0]
		return g.Apply("Where", 1, values{condition, x[0], g.Exp(x[1])})[0]
	}},
	{"reshape of what is not known", "Reshape", sizes{{-2, 4}}, false, func(g *graph, x values) *value {
		return g.Apply("Reshape", 1, values{g.Exp(x[0]), ints(g, 2, -1)})[0]
	}},
}
