package onnx

import (
	"fmt"
	"slices"
)

// importedRules are the rules for operators that only imported graphs have,
// and for those that these use in more ways than graphs built here.
var importedRules = map[string]rule{
	"Cast":       ruleCast,
	"Pow":        rulePow,
	"Where":      ruleWhere,
	"Max":        ruleExtreme("GreaterOrEqual"),
	"Min":        ruleExtreme("LessOrEqual"),
	"Expand":     pointwise(func(b *backward, x, y, dy *Value) *Value { return b.unbroadcast(dy, x) }),
	"Unsqueeze":  pointwise(func(b *backward, x, y, dy *Value) *Value { return b.reshapeLike(dy, x) }),
	"Squeeze":    pointwise(func(b *backward, x, y, dy *Value) *Value { return b.reshapeLike(dy, x) }),
	"Flatten":    pointwise(func(b *backward, x, y, dy *Value) *Value { return b.reshapeLike(dy, x) }),
	"Reshape":    pointwise(func(b *backward, x, y, dy *Value) *Value { return b.reshapeLike(dy, x) }),
	"Reciprocal": pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Neg(b.Mul(dy, b.Mul(y, y))) }),
	"Abs":        pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Mul(dy, b.unary("Sign", x)) }),
	"Slice":      ruleSlice,
	"Concat":     ruleConcat,
	"Split":      ruleSplit,
	"Gather":     ruleGatherAny,
	"Transpose":  ruleTransposeAny,
	"Softmax":    lastAxis(softmaxGradient),
	"LogSoftmax": lastAxis(logSoftmaxGradient),

	"LayerNormalization": func(b *backward, n *Node, dy *Value) error {
		// Exporters may ask for the mean alone, or leave the outputs nameless.
		if len(n.Outputs) > 1 && (len(n.Outputs) < 3 || n.Outputs[1].Name == "") {
			s := slices.Clone(n.Inputs[0].Shape)
			s[len(s)-1] = Fixed(1)
			if n.Outputs[1].Name == "" {
				n.Outputs[1] = b.value("Mean", Float, s)
			}
			if len(n.Outputs) < 3 {
				n.Outputs = append(n.Outputs, b.value("InvStdDev", Float, s))
			}
		}
		return ruleLayerNormalization(b, n, dy)
	},
}

// ruleFor finds the rule of an operator of the standard's own.
func ruleFor(n *Node) (rule, bool) {
	if n.Domain != "" {
		return nil, false
	}
	if r, ok := importedRules[n.Op]; ok {
		return r, true
	}
	r, ok := rules[n.Op]
	return r, ok
}

// manyOutputs lists the operators whose rules look at the cotangents of all
// their outputs.
func manyOutputs(op string) bool { return op == "Split" }

// shapeOf is the shape of v when the graph is run, int64.
func (g *Graph) shapeOf(v *Value) *Value {
	if sizes, ok := v.Shape.Sizes(); ok {
		return g.Ints(sizes...)
	}
	key := "shape of " + v.Name
	if g.derived[key] == nil {
		g.derived[key] = g.node("Shape", Int64, FixedShape(int64(len(v.Shape))), []*Value{v})
	}
	return g.derived[key]
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

func floating(t DType) bool { return t == Float || t == Double }

// ruleCast: numbers of another precision keep their derivative; whole numbers
// have none.
func ruleCast(b *backward, n *Node, dy *Value) error {
	x := n.Inputs[0]
	if floating(x.DType) && floating(n.Outputs[0].DType) {
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

// ruleExtreme: the derivative goes to the larger (smaller) of two; where they
// are equal, to the first.
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

// front moves dimension axis to the front, or with back set, the first one to
// axis.
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
		inverse := make([]int, len(order))
		for i, o := range order {
			inverse[o] = i
		}
		order = inverse
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

func ruleGatherAny(b *backward, n *Node, dy *Value) error {
	x := n.Inputs[0]
	if !b.wants(x) {
		return nil
	}
	axis := n.intAttribute("axis", 0)
	if axis < 0 {
		axis += int64(len(x.Shape))
	}
	b.accumulate(x, b.scatterAlong(x.Shape, int(axis), n.Inputs[1], dy))
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
			return fmt.Errorf("the axes are not constant")
		}
	case !ok:
		return fmt.Errorf("the number of axes is not known")
	default:
		for i := range count {
			axes = append(axes, i)
		}
	}
	shape := slices.Clone(dy.Shape)
	for i, axis := range axes {
		if axis < 0 {
			axis += int64(len(x.Shape))
		}
		nth := func(v *Value) *Value {
			return b.node("Gather", v.DType, FixedShape(1), []*Value{v, b.Ints(int64(i))})
		}
		all := b.counting(x.Shape[axis])
		inputs := []*Value{all, b.Cast(nth(n.Inputs[1]), Int64), b.Cast(nth(n.Inputs[2]), Int64), b.Ints(0)}
		if steps != nil {
			inputs = append(inputs, b.Cast(nth(steps), Int64))
		}
		places := b.node("Slice", Int64, Shape{shape[axis]}, inputs)
		shape[axis] = x.Shape[axis]
		dy = b.scatterAlong(shape, int(axis), places, dy)
	}
	b.accumulate(x, dy)
	return nil
}

// counting is 0, 1, 2 ... up to a size, int64.
func (g *Graph) counting(n Dim) *Value {
	scalar := func(v *Value) *Value { return g.node("Reshape", Int64, Shape{}, []*Value{v, g.Ints()}) }
	return g.node("Range", Int64, Shape{n}, []*Value{scalar(g.Ints(0)), scalar(g.Sizes(Shape{n})), scalar(g.Ints(1))})
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

func ruleConcat(b *backward, n *Node, dy *Value) error {
	axis := n.intAttribute("axis", 0)
	if axis < 0 {
		axis += int64(len(dy.Shape))
	}
	node := &Node{Op: "Split", Inputs: []*Value{dy, nil}, Attributes: []Attribute{{"axis", axis}}}
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

func ruleTransposeAny(b *backward, n *Node, dy *Value) error {
	order := permutation(n, len(dy.Shape))
	if order == nil {
		return fmt.Errorf("perm is no permutation")
	}
	inverse := make([]int, len(order))
	for i, o := range order {
		inverse[o] = i
	}
	b.accumulate(n.Inputs[0], b.Transpose(dy, inverse...))
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
