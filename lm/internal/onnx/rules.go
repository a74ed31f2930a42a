package onnx

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// A rule adds the cotangents of a node's inputs, given dy, the cotangent of its first output. The formulas are those of
// any text on reverse-mode differentiation (Griewank and Walther 2008, chapter 3); only those that are not immediate
// are written out.
type rule func(b *backward, n *Node, dy *Value) error

// rules are the operators of the standard that can be differentiated.
var rules = map[string]rule{
	"Add":        pair(passed, passed),
	"Sub":        pair(passed, func(b *backward, _, dy *Value) *Value { return b.Neg(dy) }),
	"Mul":        pair((*backward).times, (*backward).times),
	"Div":        ruleDiv,
	"Pow":        rulePow,
	"Max":        ruleExtreme("GreaterOrEqual"),
	"Min":        ruleExtreme("LessOrEqual"),
	"Where":      ruleWhere,
	"Neg":        pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Neg(dy) }),
	"Abs":        pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Mul(dy, b.unary("Sign", x)) }),
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
	"Relu":               pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Mul(dy, b.unary("Sign", y)) }),
	"Gelu":               ruleGelu,
	"Softmax":            lastAxis(softmaxGradient),
	"LogSoftmax":         lastAxis(logSoftmaxGradient),
	"Cast":               ruleCast,
	"Identity":           pointwise(func(b *backward, x, y, dy *Value) *Value { return dy }),
	"Reshape":            pointwise(reshapeGradient),
	"Flatten":            pointwise(reshapeGradient),
	"Squeeze":            pointwise(reshapeGradient),
	"Unsqueeze":          pointwise(reshapeGradient),
	"Pad":                rulePad,
	"Expand":             pointwise(func(b *backward, x, y, dy *Value) *Value { return b.unbroadcast(dy, x) }),
	"Transpose":          ruleTranspose,
	"Concat":             ruleConcat,
	"Split":              ruleSplit,
	"Slice":              ruleSlice,
	"Gather":             ruleGather,
	"GatherElements":     ruleGatherElements,
	"MatMul":             ruleMatMul,
	"Gemm":               ruleGemm,
	"ReduceSum":          ruleReduce(false),
	"ReduceMean":         ruleReduce(true),
	"LayerNormalization": ruleLayerNormalization,
}

// pointwise is a rule for an operator with one differentiable input.
func pointwise(dx func(b *backward, x, y, dy *Value) *Value) rule {
	return func(b *backward, n *Node, dy *Value) error {
		if x := n.Inputs[0]; b.wants(x) {
			b.accumulate(x, dx(b, x, n.Outputs[0], dy))
		}
		return nil
	}
}

// pair is a rule for an operator with two inputs that broadcast, by what each gives the other's derivative.
func pair(dx ...func(b *backward, other, dy *Value) *Value) rule {
	return func(b *backward, n *Node, dy *Value) error {
		for i, x := range n.Inputs {
			if b.wants(x) {
				b.accumulate(x, b.unbroadcast(dx[i](b, n.Inputs[1-i], dy), x))
			}
		}
		return nil
	}
}

func passed(_ *backward, _, dy *Value) *Value { return dy }

func (b *backward) times(other, dy *Value) *Value { return b.Mul(dy, other) }

func ruleDiv(b *backward, n *Node, dy *Value) error {
	x, d, y := n.Inputs[0], n.Inputs[1], n.Outputs[0]
	q := b.Div(dy, d)
	if b.wants(x) {
		b.accumulate(x, b.unbroadcast(q, x))
	}
	if b.wants(d) {
		b.accumulate(d, b.Neg(b.unbroadcast(b.Mul(q, y), d)))
	}
	return nil
}

// erfSlope is the derivative of erf, 2/√π · exp(−x²). The factor goes into the exponent: one pass over the tensor less.
func (b *backward) erfSlope(x *Value) *Value {
	return b.Exp(b.Sub(b.Scalar(math.Log(2/math.Sqrt(math.Pi))), b.Mul(x, x)))
}

// ruleGelu: d xΦ(x) = Φ(x) + xφ(x). With s = x/√2 this is ½(1 + erf s + s·erf′(s)). For the tanh form, y = ½x(1 + t)
// with t = tanh u, u = √(2/π)(x + 0.044715x³): ½(1 + t) + ½x(1 − t²)u′.
func ruleGelu(b *backward, n *Node, dy *Value) error {
	x := n.Inputs[0]
	if !b.wants(x) {
		return nil
	}
	if n.Attribute("approximate") == "tanh" {
		const c = 0.044715
		root := math.Sqrt(2 / math.Pi)
		square := b.Mul(x, x)
		slope := b.Add(b.Mul(square, b.Scalar(3*c*root)), b.Scalar(root))
		t := b.Tanh(b.Mul(x, b.Add(b.Mul(square, b.Scalar(c*root)), b.Scalar(root))))
		inner := b.Mul(b.Mul(x, slope), b.Sub(b.Scalar(1), b.Mul(t, t)))
		factor := b.Mul(b.Add(b.Add(t, inner), b.Scalar(1)), b.Scalar(0.5))
		b.accumulate(x, b.Mul(dy, factor))
		return nil
	}
	s := b.Mul(x, b.Scalar(math.Sqrt(0.5)))
	sum := b.Add(b.Erf(s), b.Mul(s, b.erfSlope(s)))
	b.accumulate(x, b.Mul(dy, b.Mul(b.Add(sum, b.Scalar(1)), b.Scalar(0.5))))
	return nil
}

// softmaxGradient: dx = y ∘ (dy − Σ dy∘y).
func softmaxGradient(b *backward, x, y, dy *Value) *Value {
	z := b.Mul(dy, y)
	return b.Sub(z, b.Mul(y, b.ReduceSum(z, true, len(y.Shape)-1)))
}

// logSoftmaxGradient: dx = dy − eʸ Σ dy.
func logSoftmaxGradient(b *backward, x, y, dy *Value) *Value {
	return b.Sub(dy, b.Mul(b.Exp(y), b.ReduceSum(dy, true, len(y.Shape)-1)))
}

// ruleMatMul: dA = dY·Bᵀ, dB = Aᵀ·dY, summed over repeated batch dimensions.
func ruleMatMul(b *backward, n *Node, dy *Value) error {
	x, w := n.Inputs[0], n.Inputs[1]
	if b.wants(x) {
		b.accumulate(x, b.unbroadcast(b.MatMul(dy, b.swapLast(w)), x))
	}
	if b.wants(w) {
		b.accumulate(w, b.unbroadcast(b.MatMul(b.swapLast(x), dy), w))
	}
	return nil
}

// ruleGemm: for Y = α·A'·B' + β·C with A' = A or Aᵀ and B' likewise, dA' = α·dY·B'ᵀ, dB' = α·A'ᵀ·dY, dC = β·dY; written
// so that no operand is transposed in memory.
func ruleGemm(b *backward, n *Node, dy *Value) error {
	alpha, beta := float64(n.floatAttribute("alpha", 1)), float64(n.floatAttribute("beta", 1))
	transA, transB := n.intAttribute("transA", 0) == 1, n.intAttribute("transB", 0) == 1
	x, w := n.Inputs[0], n.Inputs[1]
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
	return nil
}

func ruleGatherElements(b *backward, n *Node, dy *Value) error {
	x := n.Inputs[0]
	if b.wants(x) {
		b.accumulate(x, b.ScatterElements(b.Zeros(x.Shape), n.Inputs[1], dy, int(n.intAttribute("axis", 0))))
	}
	return nil
}

// ruleLayerNormalization: with x̂ = (x − mean)·inv and d = dy∘scale, dx = inv·(d − mean(d) − x̂·mean(d∘x̂)). The
// operator itself gives mean and inv as outputs 2 and 3.
func ruleLayerNormalization(b *backward, n *Node, dy *Value) error {
	x, scale := n.Inputs[0], n.Inputs[1]
	if b.wants(scale) || len(n.Inputs) > 2 && b.wants(n.Inputs[2]) {
		return fmt.Errorf("scale and bias have no rule")
	}
	last := len(x.Shape) - 1
	if axis := n.intAttribute("axis", -1); axis != -1 && axis != int64(last) {
		return fmt.Errorf("axis %d: only the last axis has a rule", axis)
	}
	// Mean and deviation may not be asked for, or be nameless.
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
	mean, inv := n.Outputs[1], n.Outputs[2]
	normal := b.Mul(b.Sub(x, mean), inv)
	d := b.Mul(dy, scale)
	along := b.ReduceMean(b.Mul(d, normal), true, last)
	centred := b.Sub(d, b.ReduceMean(d, true, last))
	b.accumulate(x, b.Mul(b.Sub(centred, b.Mul(normal, along)), inv))
	return nil
}

func ruleReduce(mean bool) rule {
	return func(b *backward, n *Node, dy *Value) error {
		x := n.Inputs[0]
		if len(n.Inputs) < 2 {
			return errAxes
		}
		axes, ok := b.numbers(n.Inputs[1])
		if !ok {
			return errAxes
		}
		kept, count := slices.Clone(x.Shape), Fixed(1)
		for _, axis := range axes {
			a := along(axis, x)
			count = count.Times(kept[a])
			kept[a] = Fixed(1)
		}
		dx := b.Expand(b.Reshape(dy, kept...), x.Shape)
		if mean {
			size, ok := count.Size()
			if !ok {
				dx = b.Div(dx, b.Cast(b.dimension(count), Float))
			} else {
				dx = b.Mul(dx, b.Scalar(1/float64(size)))
			}
		}
		b.accumulate(x, dx)
		return nil
	}
}

// shapeOf is the shape of v when the graph is run, int64.
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

// reshapeLike gives x the shape of another value with as many elements.
func (g *Graph) reshapeLike(x, like *Value) *Value {
	if slices.Equal(x.Shape, like.Shape) {
		return x
	}
	if x.Shape.product() == like.Shape.product() && !x.Shape.product().uncertain() {
		return g.Reshape(x, like.Shape...)
	}
	return g.node("Reshape", x.DType, like.Shape, []*Value{x, g.shapeOf(like)}, Attribute{"allowzero", int64(1)})
}

// reduceTo sums dy over the dimensions along which x was repeated, where only
// a run can tell which these are: those in which the two shapes differ then.
func (b *backward) reduceTo(dy, x *Value) *Value {
	shape := b.shapeOf(x)
	if extra := len(dy.Shape) - len(x.Shape); extra > 0 {
		shape = b.Concat(0, b.Ints(slices.Repeat([]int64{1}, extra)...), shape)
	}
	rank := FixedShape(int64(len(dy.Shape)))
	repeated := b.node("Not", Bool, rank, []*Value{b.node("Equal", Bool, rank, []*Value{shape, b.shapeOf(dy)})})
	axes := b.value("axes", Int64, nil)
	axes.Shape = Shape{Fixed(1), b.fresh(axes, 1)}
	b.Nodes = append(b.Nodes, &Node{Op: "NonZero", Inputs: []*Value{repeated}, Outputs: []*Value{axes}})
	flat := b.node("Reshape", Int64, axes.Shape[1:], []*Value{axes, b.Ints(-1)})
	kept := b.value("reduced", dy.DType, nil)
	for i := range dy.Shape {
		kept.Shape = append(kept.Shape, b.fresh(kept, i))
	}
	b.Nodes = append(b.Nodes, &Node{Op: "ReduceSum", Inputs: []*Value{dy, flat}, Outputs: []*Value{kept},
		// No axes at all must not mean all of them.
		Attributes: []Attribute{{"keepdims", int64(1)}, {"noop_with_empty_axes", int64(1)}}})
	return b.reshapeLike(kept, x)
}

// reshapeGradient gives dy the shape of x.
func reshapeGradient(b *backward, x, _, dy *Value) *Value { return b.reshapeLike(dy, x) }

var errAxes = errors.New("the axes are not constant")

// along is an axis of x, not negative.
func along(axis int64, x *Value) int {
	if axis < 0 {
		axis += int64(len(x.Shape))
	}
	return int(axis)
}

func floating(t DType) bool { return t == Float || t == Double }

// ruleCast: numbers of another precision keep their derivative; whole numbers have none.
func ruleCast(b *backward, n *Node, dy *Value) error {
	x, y := n.Inputs[0], n.Outputs[0]
	switch {
	case x.DType.size() == 0:
		return b.unknown(x)
	case y.DType.size() == 0:
		return fmt.Errorf("%s has no rule", y.DType)
	case floating(x.DType) && floating(y.DType):
		b.accumulate(x, b.Cast(dy, x.DType))
	}
	return nil
}

// rulePow: dx = p·x^(p−1)·dy.
func rulePow(b *backward, n *Node, dy *Value) error {
	x, p := n.Inputs[0], n.Inputs[1]
	if b.wants(p) {
		return fmt.Errorf("the exponent has no rule")
	}
	if !b.wants(x) {
		return nil
	}
	p = b.Cast(p, x.DType)
	slope := b.Mul(p, b.binary("Pow", x, b.Sub(p, b.Cast(b.Scalar(1), x.DType))))
	b.accumulate(x, b.unbroadcast(b.Mul(dy, slope), x))
	return nil
}

// where is a where condition holds, otherwise 0.
func (b *backward) where(condition, a *Value, otherwise bool) *Value {
	zero := b.Cast(b.Scalar(0), a.DType)
	inputs := []*Value{condition, a, zero}
	if otherwise {
		inputs[1], inputs[2] = zero, a
	}
	s, ok := broadcast(condition.Shape, a.Shape)
	if !ok {
		b.fail("Where: %s and %s do not broadcast", condition, a)
	}
	return b.node("Where", a.DType, s, inputs)
}

func ruleWhere(b *backward, n *Node, dy *Value) error {
	for i, x := range n.Inputs[1:] {
		if b.wants(x) {
			b.accumulate(x, b.unbroadcast(b.where(n.Inputs[0], dy, i == 1), x))
		}
	}
	return nil
}

// ruleExtreme: the derivative goes to the larger (smaller) of two; where they are equal, to the first.
func ruleExtreme(wins string) rule {
	return func(b *backward, n *Node, dy *Value) error {
		if len(n.Inputs) != 2 {
			return fmt.Errorf("%d inputs: only two have a rule", len(n.Inputs))
		}
		s, ok := broadcast(n.Inputs[0].Shape, n.Inputs[1].Shape)
		if !ok {
			return fmt.Errorf("shapes %s and %s do not broadcast", n.Inputs[0], n.Inputs[1])
		}
		first := b.node(wins, Bool, s, n.Inputs)
		for i, x := range n.Inputs {
			if b.wants(x) {
				b.accumulate(x, b.unbroadcast(b.where(first, dy, i == 1), x))
			}
		}
		return nil
	}
}

// inverse undoes a permutation.
func inverse(order []int) []int {
	inverse := make([]int, len(order))
	for i, o := range order {
		inverse[o] = i
	}
	return inverse
}

// front moves dimension axis to the front, or with back set, the first one to axis.
func (g *Graph) front(x *Value, axis, dims int, back bool) *Value {
	if axis == 0 {
		return x
	}
	order := make([]int, 0, len(x.Shape))
	for i := range dims {
		order = append(order, axis+i)
	}
	for i := range x.Shape {
		if i < axis || i >= axis+dims {
			order = append(order, i)
		}
	}
	if back {
		order = inverse(order)
	}
	return g.Transpose(x, order...)
}

// scatterAlong adds updates at places along an axis into zeros of the given
// shape; the places' own dimensions stand at the axis in updates.
func (g *Graph) scatterAlong(shape Shape, axis int, places, updates *Value) *Value {
	order := append(Shape{shape[axis]}, slices.Concat(shape[:axis], shape[axis+1:])...)
	if places.DType != Int64 {
		places = g.Cast(places, Int64)
	}
	moved := g.ScatterAdd(g.Zeros(order), places, g.front(updates, axis, len(places.Shape), false))
	return g.front(moved, axis, 1, true)
}

func ruleGather(b *backward, n *Node, dy *Value) error {
	x := n.Inputs[0]
	if !b.wants(x) {
		return nil
	}
	b.accumulate(x, b.scatterAlong(x.Shape, along(n.intAttribute("axis", 0), x), n.Inputs[1], dy))
	return nil
}

// ruleSlice: an axis at a time, the derivative is scattered to where the
// slice took from; the same slice of 0, 1, 2 ... tells where that was.
func ruleSlice(b *backward, n *Node, dy *Value) error {
	x := n.Inputs[0]
	if !b.wants(x) {
		return nil
	}
	var axes []int64
	var steps *Value
	if len(n.Inputs) > 4 {
		steps = n.Inputs[4]
	}
	count, ok := n.Inputs[1].Shape[0].Size()
	switch {
	case len(n.Inputs) > 3 && n.Inputs[3] != nil:
		if axes, ok = b.numbers(n.Inputs[3]); !ok {
			return errAxes
		}
	case !ok:
		return fmt.Errorf("the number of axes is not known")
	default:
		for i := range count {
			axes = append(axes, i)
		}
	}
	shape := slices.Clone(dy.Shape)
	for i, at := range axes {
		axis := along(at, x)
		nth := func(v *Value) *Value {
			return b.node("Gather", v.DType, FixedShape(1), []*Value{v, b.Ints(int64(i))})
		}
		all := b.Range(x.Shape[axis])
		inputs := []*Value{all, b.Cast(nth(n.Inputs[1]), Int64), b.Cast(nth(n.Inputs[2]), Int64), b.Ints(0)}
		if steps != nil {
			inputs = append(inputs, b.Cast(nth(steps), Int64))
		}
		places := b.node("Slice", Int64, Shape{shape[axis]}, inputs)
		shape[axis] = x.Shape[axis]
		dy = b.scatterAlong(shape, axis, places, dy)
	}
	b.accumulate(x, dy)
	return nil
}

// numbers is what a constant holds.
func (g *Graph) numbers(v *Value) ([]int64, bool) {
	for _, i := range g.Initializers {
		if i.Value == v && i.Tensor != nil && whole(v.DType) {
			return i.Tensor.wholes(), true
		}
	}
	return nil, false
}

// rulePad: negative pads take away, and put zeros where elements were taken away.
func rulePad(b *backward, n *Node, dy *Value) error {
	if mode := n.Attribute("mode"); mode != nil && mode != "constant" {
		return fmt.Errorf("mode %v: only constants have a rule", mode)
	}
	x, pads := n.Inputs[0], n.Inputs[1]
	if len(n.Inputs) > 2 && b.wants(n.Inputs[2]) {
		return fmt.Errorf("the constant has no rule")
	}
	b.accumulate(x, b.node("Pad", dy.DType, x.Shape, []*Value{dy, b.Neg(pads)}))
	return nil
}

func ruleConcat(b *backward, n *Node, dy *Value) error {
	axis := along(n.intAttribute("axis", 0), dy)
	node := &Node{Op: "Split", Inputs: []*Value{dy, nil}, Attributes: []Attribute{{"axis", int64(axis)}}}
	var sizes []*Value
	for _, x := range n.Inputs {
		sizes = append(sizes, b.Sizes(Shape{x.Shape[axis]}))
		node.Outputs = append(node.Outputs, b.value("part", dy.DType, x.Shape))
	}
	node.Inputs[1] = b.Concat(0, sizes...)
	b.Nodes = append(b.Nodes, node)
	for i, x := range n.Inputs {
		b.accumulate(x, node.Outputs[i])
	}
	return nil
}

func ruleSplit(b *backward, n *Node, _ *Value) error {
	x := n.Inputs[0]
	if !b.wants(x) {
		return nil
	}
	var parts []*Value
	for _, y := range n.Outputs {
		dy := b.cotangents[y]
		if dy == nil {
			dy = b.Cast(b.Zeros(y.Shape), y.DType)
		}
		parts = append(parts, dy)
	}
	b.accumulate(x, b.node("Concat", x.DType, x.Shape, parts, Attribute{"axis", n.intAttribute("axis", 0)}))
	return nil
}

func ruleTranspose(b *backward, n *Node, dy *Value) error {
	order := permutation(n, len(dy.Shape))
	if order == nil {
		return fmt.Errorf("perm is no permutation")
	}
	b.accumulate(n.Inputs[0], b.Transpose(dy, inverse(order)...))
	return nil
}

// lastAxis is a rule that holds along the last axis.
func lastAxis(dx func(b *backward, x, y, dy *Value) *Value) rule {
	return func(b *backward, n *Node, dy *Value) error {
		if axis := n.intAttribute("axis", -1); axis != -1 && axis != int64(len(dy.Shape))-1 {
			return fmt.Errorf("axis %d: only the last axis has a rule", axis)
		}
		return pointwise(dx)(b, n, dy)
	}
}
