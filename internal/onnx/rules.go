package onnx

import (
	"math"
	"slices"
)

// A rule adds to the cotangents of a node's inputs, given dy, the cotangent of
// the first output. The formulas are those of any text on reverse-mode
// differentiation (Griewank and Walther 2008, chapter 3); the comments give
// only the less obvious formulas. A rule refuses a node that it cannot
// differentiate.
type rule func(b *backward, n *Node, dy *Value)

// rules has the rule of each operator that can be differentiated.
var rules = map[string]rule{
	"Add":        pair(passed, passed),
	"Sub":        pair(passed, func(b *backward, _, dy *Value) *Value { return b.Neg(dy) }),
	"Mul":        pair((*backward).times, (*backward).times),
	"Div":        ruleDiv,
	"Pow":        ruleOf(powGradient),
	"Max":        ruleExtreme("GreaterOrEqual"),
	"Min":        ruleExtreme("LessOrEqual"),
	"Where":      ruleWhere,
	"Neg":        pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Neg(dy) }),
	"Abs":        pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Mul(dy, b.of("Sign", x)) }),
	"Reciprocal": pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Neg(b.Mul(dy, b.Mul(y, y))) }),
	"Exp":        pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Mul(dy, y) }),
	"Log":        pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Div(dy, x) }),
	"Sqrt": pointwise(
		func(b *backward, x, y, dy *Value) *Value { return b.Div(b.Mul(dy, b.Scalar(0.5)), y) }),
	"Erf": pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Mul(dy, b.erfSlope(x)) }),
	"Cos": pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Neg(b.Mul(dy, b.Sin(x))) }),
	"Sin": pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Mul(dy, b.Cos(x)) }),
	"Tanh": pointwise(
		func(b *backward, x, y, dy *Value) *Value { return b.Mul(dy, b.Sub(b.Scalar(1), b.Mul(y, y))) }),
	"Sigmoid": pointwise(
		func(b *backward, x, y, dy *Value) *Value { return b.Mul(dy, b.Sub(y, b.Mul(y, y))) }),
	"Relu":               pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Mul(dy, b.of("Sign", y)) }),
	"Gelu":               ruleOf(geluGradient),
	"Softmax":            ruleOf(softmaxGradient),
	"LogSoftmax":         ruleOf(logSoftmaxGradient),
	"Cast":               ruleOf(castGradient),
	"Identity":           pointwise(func(b *backward, x, y, dy *Value) *Value { return dy }),
	"Reshape":            pointwise(reshapeGradient),
	"Flatten":            pointwise(reshapeGradient),
	"Squeeze":            pointwise(reshapeGradient),
	"Unsqueeze":          pointwise(reshapeGradient),
	"Pad":                ruleOf(padGradient),
	"Expand":             pointwise(func(b *backward, x, y, dy *Value) *Value { return b.unbroadcast(dy, x) }),
	"Transpose":          ruleOf(transposeGradient),
	"Concat":             ruleConcat,
	"Split":              ruleOf(splitGradient),
	"Slice":              ruleOf(sliceGradient),
	"Gather":             ruleOf(gatherGradient),
	"GatherElements":     ruleOf(gatherElementsGradient),
	"MatMul":             ruleMatMul,
	"Gemm":               ruleGemm,
	"ReduceSum":          ruleOf(reduceGradient),
	"ReduceMean":         ruleOf(reduceGradient),
	"LayerNormalization": ruleOf(layerNormalizationGradient),
}

// ruleOf makes a rule for an operator that has a derivative by the first input
// only. If dx returns nil, there is none.
func ruleOf(dx func(b *backward, n *Node, dy *Value) *Value) rule {
	return func(b *backward, n *Node, dy *Value) {
		if slices.ContainsFunc(n.Inputs[1:], func(v *Value) bool { return b.wants(v) && floating(v.DType) }) {
			b.refuse("only the first input has a rule")
		} else if x := n.Inputs[0]; b.wants(x) {
			if d := dx(b, n, dy); d != nil {
				b.accumulate(x, d)
			}
		}
	}
}

// pointwise makes a rule by [ruleOf]; dx gets the first input, x, and the
// output, y, instead of the node.
func pointwise(dx func(b *backward, x, y, dy *Value) *Value) rule {
	return ruleOf(func(b *backward, n *Node, dy *Value) *Value { return dx(b, n.Inputs[0], n.Outputs[0], dy) })
}

// pair makes a rule for an operator with two inputs that broadcast. dx[i]
// computes the derivative by input i.
func pair(dx ...func(b *backward, other, dy *Value) *Value) rule {
	return func(b *backward, n *Node, dy *Value) {
		for i, x := range n.Inputs {
			if b.wants(x) {
				b.accumulate(x, b.unbroadcast(dx[i](b, n.Inputs[1-i], dy), x))
			}
		}
	}
}

func passed(_ *backward, _, dy *Value) *Value { return dy }

func (b *backward) times(other, dy *Value) *Value { return b.Mul(dy, other) }

func ruleDiv(b *backward, n *Node, dy *Value) {
	x := n.Inputs[0]
	d := n.Inputs[1]
	y := n.Outputs[0]
	q := b.Div(dy, d)
	if b.wants(x) {
		b.accumulate(x, b.unbroadcast(q, x))
	}
	if b.wants(d) {
		b.accumulate(d, b.Neg(b.unbroadcast(b.Mul(q, y), d)))
	}
}

// powGradient computes dx = p·x^(p−1)·dy.
func powGradient(b *backward, n *Node, dy *Value) *Value {
	x := n.Inputs[0]
	p := b.Cast(n.Inputs[1], x.DType)
	slope := b.Mul(p, b.of("Pow", x, b.Sub(p, b.Cast(b.Scalar(1), x.DType))))
	return b.unbroadcast(b.Mul(dy, slope), x)
}

// erfSlope returns the derivative of erf, 2/√π · exp(−x²). The factor goes into
// the exponent, which saves a pass.
func (b *backward) erfSlope(x *Value) *Value {
	return b.Exp(b.Sub(b.Scalar(math.Log(2/math.Sqrt(math.Pi))), b.Mul(x, x)))
}

// geluGradient computes d xΦ(x) = Φ(x) + xφ(x). With s = x/√2 this is ½(1 + erf
// s + s·erf′(s)). For the tanh form y = ½x(1 + t), t = tanh u, u = √(2/π)(x +
// 0.044715x³), it is ½(1 + t) + ½x(1 − t²)u′.
func geluGradient(b *backward, n *Node, dy *Value) *Value {
	x := n.Inputs[0]
	if n.Attribute("approximate") == "tanh" {
		const c = 0.044715
		root := math.Sqrt(2 / math.Pi)
		square := b.Mul(x, x)
		slope := b.Add(b.Mul(square, b.Scalar(3*c*root)), b.Scalar(root))
		t := b.Tanh(b.Mul(x, b.Add(b.Mul(square, b.Scalar(c*root)), b.Scalar(root))))
		inner := b.Mul(b.Mul(x, slope), b.Sub(b.Scalar(1), b.Mul(t, t)))
		return b.Mul(dy, b.Mul(b.Add(b.Add(t, inner), b.Scalar(1)), b.Scalar(0.5)))
	}
	s := b.Mul(x, b.Scalar(math.Sqrt(0.5)))
	sum := b.Add(b.Erf(s), b.Mul(s, b.erfSlope(s)))
	return b.Mul(dy, b.Mul(b.Add(sum, b.Scalar(1)), b.Scalar(0.5)))
}

// softmaxGradient computes dx = y ∘ (dy − Σ dy∘y).
func softmaxGradient(b *backward, n *Node, dy *Value) *Value {
	last := b.lastAxis(n, dy)
	y := n.Outputs[0]
	z := b.Mul(dy, y)
	return b.Sub(z, b.Mul(y, b.ReduceSum(z, true, last)))
}

// logSoftmaxGradient computes dx = dy − eʸ Σ dy.
func logSoftmaxGradient(b *backward, n *Node, dy *Value) *Value {
	last := b.lastAxis(n, dy)
	return b.Sub(dy, b.Mul(b.Exp(n.Outputs[0]), b.ReduceSum(dy, true, last)))
}

// lastAxis returns the last axis of x, and refuses nodes along another.
func (b *backward) lastAxis(n *Node, x *Value) int {
	last := len(x.Shape) - 1
	if axis := n.intAttribute("axis", -1); axis != -1 && axis != int64(last) {
		b.refuse("axis %d: only the last axis has a rule", axis)
	}
	return last
}

// ruleMatMul computes dA = dY·Bᵀ and dB = Aᵀ·dY, summed over the batch
// dimensions along which an input was repeated.
func ruleMatMul(b *backward, n *Node, dy *Value) {
	x := n.Inputs[0]
	w := n.Inputs[1]
	if b.wants(x) {
		b.accumulate(x, b.unbroadcast(b.MatMul(dy, b.swapLast(w)), x))
	}
	if b.wants(w) {
		b.accumulate(w, b.unbroadcast(b.MatMul(b.swapLast(x), dy), w))
	}
}

// ruleGemm differentiates Y = α·A'·B' + β·C, where A' is A or Aᵀ, and B' is B
// or Bᵀ: dA' = α·dY·B'ᵀ, dB' = α·A'ᵀ·dY, dC = β·dY. No product transposes an
// operand in memory.
func ruleGemm(b *backward, n *Node, dy *Value) {
	alpha := float64(n.floatAttribute("alpha", 1))
	beta := float64(n.floatAttribute("beta", 1))
	transA := n.intAttribute("transA", 0) == 1
	transB := n.intAttribute("transB", 0) == 1
	x := n.Inputs[0]
	w := n.Inputs[1]
	if b.wants(x) {
		if transA {
			b.accumulate(x, b.Gemm(w, dy, nil, GemmOptions{Alpha: alpha, TransA: transB, TransB: true}))
		} else {
			b.accumulate(x, b.Gemm(dy, w, nil, GemmOptions{Alpha: alpha, TransB: !transB}))
		}
	}
	if b.wants(w) {
		if transB {
			b.accumulate(w, b.Gemm(dy, x, nil, GemmOptions{Alpha: alpha, TransA: true, TransB: transA}))
		} else {
			b.accumulate(w, b.Gemm(x, dy, nil, GemmOptions{Alpha: alpha, TransA: !transA}))
		}
	}
	if len(n.Inputs) > 2 && b.wants(n.Inputs[2]) {
		c := b.unbroadcast(dy, n.Inputs[2])
		if beta != 1 {
			c = b.Mul(c, b.Scalar(beta))
		}
		b.accumulate(n.Inputs[2], c)
	}
}

func gatherElementsGradient(b *backward, n *Node, dy *Value) *Value {
	return b.ScatterElements(b.Zeros(n.Inputs[0].Shape), n.Inputs[1], dy, int(n.intAttribute("axis", 0)))
}

// layerNormalizationGradient computes dx = inv·(d − mean(d) − x̂·mean(d∘x̂)),
// where x̂ = (x − mean)·inv and d = dy∘scale. The operator itself gives mean
// and inv, as outputs 2 and 3.
func layerNormalizationGradient(b *backward, n *Node, dy *Value) *Value {
	x := n.Inputs[0]
	scale := n.Inputs[1]
	last := b.lastAxis(n, dy)
	if last < 0 {
		b.refuse("a scalar has no last axis")
		return nil
	}
	// The node may lack mean and deviation, or leave them without a name.
	s := slices.Clone(x.Shape)
	s[last] = Fixed(1)
	for i, hint := range []string{"Mean", "InvStdDev"} {
		switch v := b.value(hint, Float, s); {
		case len(n.Outputs) == i+1:
			n.Outputs = append(n.Outputs, v)
		case n.Outputs[i+1].Name == "":
			n.Outputs[i+1] = v
		}
	}
	mean := n.Outputs[1]
	inv := n.Outputs[2]
	normal := b.Mul(b.Sub(x, mean), inv)
	d := b.Mul(dy, scale)
	along := b.ReduceMean(b.Mul(d, normal), true, last)
	centred := b.Sub(d, b.ReduceMean(d, true, last))
	return b.Mul(b.Sub(centred, b.Mul(normal, along)), inv)
}

// reduceGradient spreads dy over the axes that were summed up, and divides it
// by their size for a mean.
func reduceGradient(b *backward, n *Node, dy *Value) *Value {
	x := n.Inputs[0]
	axes, ok := b.numbers(n, 1)
	if !ok {
		return nil
	}
	kept := slices.Clone(x.Shape)
	count := Fixed(1)
	for _, axis := range axes {
		a := along(axis, x)
		count = count.Times(kept[a])
		kept[a] = Fixed(1)
	}
	dx := b.Expand(b.Reshape(dy, kept...), x.Shape)
	size, fixed := count.Size()
	switch {
	case n.Op == "ReduceSum":
		return dx
	case fixed:
		return b.Mul(dx, b.Scalar(1/float64(size)))
	}
	return b.Div(dx, b.Cast(b.dimension(count), Float))
}

// shapeOf returns the shape that v has when the graph runs, int64.
func (g *Graph) shapeOf(v *Value) *Value {
	if sizes, ok := v.Shape.Sizes(); ok {
		return g.Ints(sizes...)
	}
	key := "shape of " + v.Name
	if g.made[key] == nil {
		g.made[key] = g.node("Shape", Int64, FixedShape(int64(len(v.Shape))), []*Value{v})
	}
	return g.made[key]
}

func (g *Graph) reshapeLike(x, like *Value) *Value {
	if slices.Equal(x.Shape, like.Shape) {
		return x
	}
	if x.Shape.product() == like.Shape.product() && !x.Shape.product().uncertain() {
		return g.Reshape(x, like.Shape...)
	}
	return g.node("Reshape", x.DType, like.Shape, []*Value{x, g.shapeOf(like)}, Attribute{"allowzero", int64(1)})
}

// reduceTo sums dy over the dimensions along which x was repeated. Only a run
// can tell which these are: the dimensions in which the two shapes then differ.
func (b *backward) reduceTo(dy, x *Value) *Value {
	shape := b.shapeOf(x)
	if extra := len(dy.Shape) - len(x.Shape); extra > 0 {
		shape = b.Concat(0, b.Ints(slices.Repeat([]int64{1}, extra)...), shape)
	}
	repeated := b.of("NonZero", b.of("Not", b.of("Equal", shape, b.shapeOf(dy))))
	// ReduceSum without axes sums over all by default; here, over none.
	kept := b.op("ReduceSum", []*Value{dy, b.of("Reshape", repeated, b.Ints(-1))}, Attribute{"keepdims", int64(1)},
		Attribute{"noop_with_empty_axes", int64(1)})
	return b.reshapeLike(kept, x)
}

func reshapeGradient(b *backward, x, _, dy *Value) *Value { return b.reshapeLike(dy, x) }

// along returns the given axis of x, counted from 0.
func along(axis int64, x *Value) int {
	if axis < 0 {
		axis += int64(len(x.Shape))
	}
	return int(axis)
}

func floating(t DType) bool { return t == Float || t == Double }

// castGradient returns dy in the input's precision, nil for whole numbers.
func castGradient(b *backward, n *Node, dy *Value) *Value {
	x := n.Inputs[0]
	y := n.Outputs[0]
	switch {
	case x.DType.size() == 0:
		b.refused = b.unknown(x)
	case y.DType.size() == 0:
		b.refuse("%s has no rule", y.DType)
	case floating(x.DType) && floating(y.DType):
		return b.Cast(dy, x.DType)
	}
	return nil
}

// choose adds dy to of[0]'s cotangent where condition holds, else to of[1]'s.
func (b *backward) choose(condition, dy *Value, of []*Value) {
	for i, x := range of {
		if b.wants(x) {
			parts := []*Value{dy, b.Cast(b.Scalar(0), dy.DType)}
			b.accumulate(x, b.unbroadcast(b.of("Where", condition, parts[i], parts[1-i]), x))
		}
	}
}

func ruleWhere(b *backward, n *Node, dy *Value) { b.choose(n.Inputs[0], dy, n.Inputs[1:]) }

// ruleExtreme makes the rule of Max or Min: the derivative goes to the input
// that wins, in a tie by the operator wins.
func ruleExtreme(wins string) rule {
	return func(b *backward, n *Node, dy *Value) {
		if len(n.Inputs) != 2 {
			b.refuse("%d inputs: only two have a rule", len(n.Inputs))
			return
		}
		b.choose(b.of(wins, n.Inputs...), dy, n.Inputs)
	}
}

func inverse(order []int) []int {
	inverse := make([]int, len(order))
	for i, o := range order {
		inverse[o] = i
	}
	return inverse
}

// front moves dims dimensions of x, from axis on, to the front. If back is
// true, it moves them from the front to axis.
func (g *Graph) front(x *Value, axis, dims int, back bool) *Value {
	if axis == 0 {
		return x
	}
	order := make([]int, len(x.Shape))
	for i := range order {
		order[i] = i
	}
	order = slices.Concat(order[axis:axis+dims], order[:axis], order[axis+dims:])
	if back {
		order = inverse(order)
	}
	return g.Transpose(x, order...)
}

// scatterAlong returns zeros of the given shape with updates added at places
// along axis. In updates, the dimensions of places replace that axis.
func (g *Graph) scatterAlong(shape Shape, axis int, places, updates *Value) *Value {
	order := append(Shape{shape[axis]}, slices.Concat(shape[:axis], shape[axis+1:])...)
	if places.DType != Int64 {
		places = g.Cast(places, Int64)
	}
	moved := g.ScatterAdd(g.Zeros(order), places, g.front(updates, axis, len(places.Shape), false))
	return g.front(moved, axis, 1, true)
}

func gatherGradient(b *backward, n *Node, dy *Value) *Value {
	x := n.Inputs[0]
	return b.scatterAlong(x.Shape, along(n.intAttribute("axis", 0), x), n.Inputs[1], dy)
}

// sliceGradient scatters dy, one axis at a time, to the places from which the
// slice took its elements. It finds the places by the same slice of 0, 1, 2 ...
func sliceGradient(b *backward, n *Node, dy *Value) *Value {
	x := n.Inputs[0]
	var axes []int64
	if len(n.Inputs) > 3 && n.Inputs[3] != nil {
		var ok bool
		axes, ok = b.numbers(n, 3)
		if !ok {
			return nil
		}
	} else {
		count, ok := int64(0), false
		if len(n.Inputs[1].Shape) == 1 {
			count, ok = n.Inputs[1].Shape[0].Size()
		}
		if !ok {
			b.refuse("the number of axes is not known")
			return nil
		}
		for i := range count {
			axes = append(axes, i)
		}
	}
	shape := slices.Clone(dy.Shape)
	for i, at := range axes {
		axis := along(at, x)
		nth := func(input int) *Value {
			v := n.Inputs[input]
			return b.Cast(b.node("Gather", v.DType, FixedShape(1), []*Value{v, b.Ints(int64(i))}), Int64)
		}
		inputs := []*Value{b.Range(x.Shape[axis]), nth(1), nth(2), b.Ints(0)}
		if len(n.Inputs) > 4 && n.Inputs[4] != nil {
			inputs = append(inputs, nth(4))
		}
		places := b.node("Slice", Int64, Shape{shape[axis]}, inputs)
		shape[axis] = x.Shape[axis]
		dy = b.scatterAlong(shape, axis, places, dy)
	}
	return dy
}

// numbers returns a constant input's elements, and refuses other nodes.
func (b *backward) numbers(n *Node, input int) ([]int64, bool) {
	if input < len(n.Inputs) {
		v := n.Inputs[input]
		for _, i := range b.Initializers {
			if i.Value == v && i.Tensor.At == nil && whole(v.DType) {
				return i.Tensor.wholes(), true
			}
		}
	}
	b.refuse("the axes are not constant")
	return nil, false
}

// padGradient pads dy by the negative pads: this cuts what Pad added, and puts
// zeros where Pad cut elements.
func padGradient(b *backward, n *Node, dy *Value) *Value {
	if mode := n.Attribute("mode"); mode != nil && mode != "constant" {
		b.refuse("mode %v: only constants have a rule", mode)
	}
	return b.node("Pad", dy.DType, n.Inputs[0].Shape, []*Value{dy, b.Neg(n.Inputs[1])})
}

func ruleConcat(b *backward, n *Node, dy *Value) {
	axis := along(n.intAttribute("axis", 0), dy)
	node := &Node{Op: "Split", Inputs: []*Value{dy, nil}, Attributes: []Attribute{{"axis", int64(axis)}}}
	var sizes []*Value
	for _, x := range n.Inputs {
		sizes = append(sizes, b.Sizes(Shape{x.Shape[axis]}))
		node.Outputs = append(node.Outputs, b.value("part", dy.DType, x.Shape))
	}
	node.Inputs[1] = b.Concat(0, sizes...)
	b.add(node)
	for i, x := range n.Inputs {
		b.accumulate(x, node.Outputs[i])
	}
}

// splitGradient joins the cotangents of all outputs, zeros for one without.
func splitGradient(b *backward, n *Node, _ *Value) *Value {
	var parts []*Value
	for _, y := range n.Outputs {
		dy := b.cotangents[y]
		if dy == nil {
			dy = b.Cast(b.Zeros(y.Shape), y.DType)
		}
		parts = append(parts, dy)
	}
	x := n.Inputs[0]
	return b.node("Concat", x.DType, x.Shape, parts, Attribute{"axis", n.intAttribute("axis", 0)})
}

func transposeGradient(b *backward, n *Node, dy *Value) *Value {
	order := permutation(n, len(dy.Shape))
	if order == nil {
		b.refuse("perm is no permutation")
		return nil
	}
	return b.Transpose(dy, inverse(order)...)
}
