package onnx

import (
	"math"
	"slices"
	"strings"
	"sync"
)

type inference struct {
	graph     *Graph
	node      *Node
	x, y, out *Value // the first two inputs, each nil if absent, and the first output
	most      int64  // a pad above most makes the output so large that affords refuses it
}

// infer works out types and shapes of a node's outputs, and the elements of
// small whole-number outputs. If it cannot tell a shape, it leaves the output
// unranked. It replaces absurdly large sizes by new symbols.
func (g *Graph) infer(n *Node, most int64) {
	o := operators()[n.Op]
	unranked := func(v *Value) bool { return v == nil || v.Unranked }
	in := inference{graph: g, node: n, out: n.Outputs[0], most: most}
	if len(n.Inputs) > 0 {
		in.x = n.Inputs[0]
	}
	if len(n.Inputs) > 1 {
		in.y = n.Inputs[1]
	}
	if n.Domain == "" && o.infer != nil && !slices.ContainsFunc(n.Inputs[:min(o.ranked, len(n.Inputs))], unranked) {
		o.infer(in)
	}
	for _, v := range n.Outputs {
		for i, d := range v.Shape {
			if len(d.symbols) > maxSymbols || d.factor < 0 {
				v.Shape = slices.Clone(v.Shape)
				v.Shape[i] = g.fresh(v, i)
			}
		}
		if len(v.Shape) > maxRank {
			v.Shape = nil
			v.Unranked = true
		}
		g.addHomes(v)
	}
}

// operator describes operators: how many inputs they must have, how many of these
// with a known shape, and what infers their outputs, or nil.
type operator struct {
	inputs, ranked int
	infer          func(inference)
	names          string
}

const all = math.MaxInt

// operators returns the known operators, by name.
var operators = sync.OnceValue(func() map[string]operator {
	byName := map[string]operator{}
	for _, o := range []operator{
		{1, 1, inference.alike, `Abs Atan Ceil Celu Clip Cos Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Log
			LogSoftmax Mish Reciprocal Relu Round Selu Sigmoid Sign Sin Softmax Softplus Softsign Sqrt Tan Tanh Trilu`},
		{2, 1, inference.alike, "CumSum"},
		{1, all, func(in inference) { in.join(Bool) }, "Not IsNaN IsInf"},
		{1, 0, inference.cast, "Cast"},
		{1, all, func(in inference) { in.join(in.x.DType) }, "Neg Min Max"},
		{2, all, func(in inference) { in.join(in.x.DType) }, "Add Sub Mul Div Pow Mod"},
		{2, all, func(in inference) { in.join(Bool) }, "Equal Less LessOrEqual Greater GreaterOrEqual And Or Xor"},
		{3, all, func(in inference) { in.join(in.y.DType) }, "Where"},
		{1, 0, inference.sizes, "Shape"},
		{2, 2, inference.gather, "Gather"},
		{2, 2, func(in inference) { in.set(in.x.DType, in.y.Shape) }, "GatherElements"},
		{2, 2, inference.gatherND, "GatherND"},
		{1, 1, inference.flatten, "Flatten"},
		{2, 1, inference.expand, "Expand"},
		{1, 0, inference.constant, "ConstantOfShape"},
		{2, 1, inference.tile, "Tile"},
		{3, 1, inference.oneHot, "OneHot"},
		{0, 1, inference.pad, "Pad"},
		{3, 0, inference.sequence, "Range"},
		{1, 1, inference.transpose, "Transpose"},
		{2, 2, inference.product, "MatMul"},
		{2, 2, inference.gemm, "Gemm"},
		{2, 1, inference.normalize, "LayerNormalization"},
		{2, 1, func(in inference) { in.set(Float, in.x.Shape) }, "DequantizeLinear"},
		{3, 1, func(in inference) { in.set(in.node.Inputs[2].DType, in.x.Shape) }, "QuantizeLinear"},
		{1, 1, inference.squeeze, "Squeeze Unsqueeze"},
		{1, 1, inference.nonZero, "NonZero"},
		{1, all, inference.concat, "Concat"},
		{1, 1, inference.split, "Split"},
		{3, 1, inference.slice, "Slice"},
		{2, 0, inference.reshape, "Reshape"},
		{1, 1, inference.reduce, "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL2 ReduceSumSquare"},
		{1, 0, nil, "Identity Dropout"},
		{2, 0, nil, "CastLike"},
	} {
		for name := range strings.FieldsSeq(o.names) {
			byName[name] = o
		}
	}
	return byName
})

// makers lists operators whose output can be large, whatever the inputs are.
const makers = `RandomNormal RandomUniform EyeLike Resize Upsample MaxUnpool Col2Im ConvTranspose AffineGrid GridSample
	Multinomial HannWindow HammingWindow BlackmanWindow MelWeightMatrix STFT DFT SequenceConstruct SplitToSequence`

func (in inference) set(t DType, s Shape) { in.out.DType, in.out.Shape, in.out.Unranked = t, s, false }

// unknown returns a new symbol for a dimension of the output.
func (in inference) unknown(axis int) Dim { return in.graph.fresh(in.out, axis) }

// held returns the elements of an input, or nil if they are not known.
func (in inference) held(input int) []Dim {
	if input < len(in.node.Inputs) {
		return in.graph.content[in.node.Inputs[input]]
	}
	return nil
}

// numbers returns the elements of an optional input as numbers: nil if it is
// absent, and false if they are not known.
func (in inference) numbers(input int) ([]int64, bool) {
	if input >= len(in.node.Inputs) || in.node.Inputs[input] == nil {
		return nil, true
	}
	v := in.node.Inputs[input]
	if held, ok := in.graph.content[v]; ok {
		return Shape(held).Sizes()
	}
	return nil, !v.Unranked && len(v.Shape) == 1 && v.Shape[0] == Fixed(0)
}

// number returns the only element of an input; false if there is no such one.
func (in inference) number(input int) (int64, bool) {
	list, ok := in.numbers(input)
	if !ok || len(list) != 1 {
		return 0, false
	}
	return list[0], true
}

// axis returns the node's axis, from 0, or false if the first input lacks it.
func (in inference) axis() (int, bool) {
	axis := along(in.node.intAttribute("axis", 0), in.x)
	return axis, axis >= 0 && axis < len(in.x.Shape)
}

// marked returns whether axes lists each axis, or false for a wrong number.
func marked(axes []int64, rank int) ([]bool, bool) {
	chosen := make([]bool, rank)
	for _, a := range axes {
		if a < 0 {
			a += int64(rank)
		}
		if a < 0 || a >= int64(rank) {
			return nil, false
		}
		chosen[a] = true
	}
	return chosen, true
}

// alike gives the output the type and shape of the first input.
func (in inference) alike() { in.set(in.x.DType, in.x.Shape) }

func (in inference) cast() {
	if !in.x.Unranked {
		in.alike()
	}
	in.out.DType = DType(in.node.intAttribute("to", 0))
	in.keep(in.held(0))
}

// join gives the output type t and the inputs' broadcast, and its elements.
func (in inference) join(t DType) {
	s := Shape{}
	ok := true
	for _, v := range in.node.Inputs {
		s, ok = broadcast(s, v.Shape)
		if !ok {
			return
		}
	}
	in.set(t, s)
	if f, ok := elementRules[in.node.Op]; ok {
		in.combine(f)
	}
}

// sizes infers the operator Shape, whose output holds dimensions as numbers.
func (in inference) sizes() {
	if in.x.Unranked {
		in.out.DType = Int64
		return
	}
	rank := int64(len(in.x.Shape))
	start := bound(in.node.intAttribute("start", 0), rank, 1)
	end := bound(in.node.intAttribute("end", rank), rank, 1)
	dims := in.x.Shape[start:max(start, end)]
	in.set(Int64, FixedShape(int64(len(dims))))
	in.keep(slices.Clone(dims))
}

// gather puts the shape of the indices where the axis was. Of a known list of
// sizes it knows which are taken.
func (in inference) gather() {
	axis, ok := in.axis()
	if !ok {
		return
	}
	in.set(in.x.DType, slices.Concat(in.x.Shape[:axis], in.y.Shape, in.x.Shape[axis+1:]))
	held, at := in.held(0), in.held(1)
	if held == nil || at == nil {
		return
	}
	taken := make([]Dim, len(at))
	for i, d := range at {
		k, fixed := d.Size()
		if k < 0 {
			k += int64(len(held))
		}
		taken[i] = unknownElement
		if fixed && k >= 0 && k < int64(len(held)) {
			taken[i] = held[k]
		}
	}
	in.keep(taken)
}

// gatherND takes x at the places along the last axis of the indices.
func (in inference) gatherND() {
	indices := in.y
	batch := in.node.intAttribute("batch_dims", 0)
	last := int64(len(indices.Shape)) - 1
	if batch < 0 || batch > min(last, int64(len(in.x.Shape))) {
		return
	}
	if depth, ok := indices.Shape[last].Size(); ok && depth >= 0 && depth <= int64(len(in.x.Shape))-batch {
		in.set(in.x.DType, slices.Concat(indices.Shape[:last], in.x.Shape[batch+depth:]))
	}
}

func (in inference) flatten() {
	axis := in.node.intAttribute("axis", 1)
	if axis >= 0 && axis <= int64(len(in.x.Shape)) {
		in.set(in.x.DType, Shape{in.x.Shape[:axis].product(), in.x.Shape[axis:].product()})
	}
}

func (in inference) expand() {
	to, ok := in.shapeFrom(1)
	if s, fits := broadcast(in.x.Shape, to); ok && fits {
		in.set(in.x.DType, s)
	}
}

func (in inference) constant() {
	s, ok := in.shapeFrom(0)
	if !ok {
		return
	}
	t, ok := in.node.Attribute("value").(*Tensor)
	if !ok {
		in.set(Float, s)
		return
	}
	in.set(t.DType, s)
	if n, fixed := s.product().Size(); fixed && n >= 0 && n <= smallConstant && len(t.wholes()) == 1 {
		in.keep(slices.Repeat([]Dim{Fixed(t.wholes()[0])}, int(n)))
	}
}

func (in inference) tile() {
	repeats, ok := in.numbers(1)
	if !ok || len(repeats) != len(in.x.Shape) {
		return
	}
	s := make(Shape, len(repeats))
	for i, r := range repeats {
		s[i] = in.x.Shape[i].Times(Fixed(r))
	}
	in.set(in.x.DType, s)
}

func (in inference) oneHot() {
	if depth, ok := in.number(1); ok && in.node.intAttribute("axis", -1) == -1 && len(in.node.Inputs) > 2 {
		in.set(in.node.Inputs[2].DType, append(slices.Clone(in.x.Shape), Fixed(depth)))
	}
}

// pad adds the padding before and behind to each size.
func (in inference) pad() {
	if len(in.node.Inputs) < 2 || in.y == nil || len(in.node.Inputs) > 3 {
		return
	}
	rank := len(in.x.Shape)
	pads, ok := in.numbers(1)
	if ok && len(pads) != 2*rank {
		return
	}
	s := slices.Clone(in.x.Shape)
	for i, d := range s {
		s[i] = unknownElement
		if ok {
			s[i] = d.plus(Fixed(pads[i]).plus(Fixed(pads[i+rank])))
		}
		if s[i] == unknownElement {
			s[i] = in.unknown(i)
			if ok && max(pads[i], pads[i+rank]) > in.most {
				s[i] = Fixed(max(pads[i], pads[i+rank])) // affords refuses this size
			}
		}
	}
	in.set(in.x.DType, s)
}

// sequence infers the operator Range.
func (in inference) sequence() {
	size := unknownElement
	from, known := in.number(0)
	to, ended := in.number(1)
	step, stepped := in.number(2)
	switch end := in.held(1); {
	case known && ended && stepped && step != 0:
		size = Fixed(max(0, int64(math.Ceil((float64(to)-float64(from))/float64(step)))))
	case known && stepped && from == 0 && step == 1 && len(end) == 1:
		size = end[0]
	}
	if size == unknownElement {
		size = in.unknown(0)
	}
	in.set(in.x.DType, Shape{size})
}

func (in inference) transpose() {
	order := permutation(in.node, len(in.x.Shape))
	if order == nil {
		return
	}
	s := make(Shape, len(order))
	for i, o := range order {
		s[i] = in.x.Shape[o]
	}
	in.set(in.x.DType, s)
}

// product infers a product of matrices, batch by batch.
func (in inference) product() {
	a := len(in.x.Shape) - 2
	b := len(in.y.Shape) - 2
	if a < 0 || b < 0 || !in.x.Shape[a+1].fits(in.y.Shape[b]) {
		return
	}
	batch, ok := broadcast(in.x.Shape[:a], in.y.Shape[:b])
	if !ok {
		return
	}
	in.set(in.x.DType, append(slices.Clone(batch), in.x.Shape[a], in.y.Shape[b+1]))
}

func (in inference) gemm() {
	if len(in.x.Shape) != 2 || len(in.y.Shape) != 2 {
		return
	}
	rows := in.x.Shape[0]
	inner := in.x.Shape[1]
	other := in.y.Shape[0]
	columns := in.y.Shape[1]
	if in.node.intAttribute("transA", 0) == 1 {
		rows, inner = inner, rows
	}
	if in.node.intAttribute("transB", 0) == 1 {
		other, columns = columns, other
	}
	if inner.fits(other) {
		in.set(in.x.DType, Shape{rows, columns})
	}
}

// normalize infers LayerNormalization, perhaps with mean and deviation.
func (in inference) normalize() {
	in.set(in.x.DType, in.x.Shape)
	axis := along(in.node.intAttribute("axis", -1), in.x)
	for _, v := range in.node.Outputs[1:] { // mean and deviation
		v.DType = Float
		v.Shape = slices.Clone(in.x.Shape)
		v.Unranked = false
		for i := max(axis, 0); i < len(in.x.Shape); i++ {
			v.Shape[i] = Fixed(1)
		}
	}
}

func whole(t DType) bool { return t == Int64 || t == Int32 || t == Bool }

// elementRules compute, by operator, an element of a small whole-number output
// from the elements e of the inputs.
var elementRules = map[string]func(e []Dim) Dim{
	"Neg": func(e []Dim) Dim { return e[0].Times(Fixed(-1)) },
	"Add": func(e []Dim) Dim { return e[0].plus(e[1]) },
	"Sub": func(e []Dim) Dim { return e[0].plus(e[1].Times(Fixed(-1))) },
	"Mul": func(e []Dim) Dim { return e[0].Times(e[1]) },
	"Div": func(e []Dim) Dim {
		if q, ok := e[0].over(e[1]); ok {
			return q
		}
		return unknownElement
	},
	"Equal": func(e []Dim) Dim {
		a, fixedA := e[0].Size()
		b, fixedB := e[1].Size()
		switch {
		case e[0] == e[1]:
			return Fixed(1)
		case fixedA && fixedB, fixedA && a < 0, fixedB && b < 0: // sizes that are symbols are never negative
			return Fixed(0)
		}
		return unknownElement
	},
	"Where": func(e []Dim) Dim {
		switch e[0] {
		case Fixed(0):
			return e[2]
		case Fixed(1):
			return e[1]
		}
		return unknownElement
	},
}

// maxSymbols bounds the text of a product of symbols, in bytes. Without it,
// squares of squares would fill the memory.
const maxSymbols = 512

// keep records held as the output's elements, if it is small whole numbers.
func (in inference) keep(held []Dim) {
	if held == nil || !whole(in.out.DType) || len(in.out.Shape) > 1 || in.out.Unranked || len(held) > smallConstant {
		return
	}
	for i, d := range held {
		if len(d.symbols) > maxSymbols {
			held[i] = unknownElement
		}
	}
	in.graph.content[in.out] = held
}

// combine works out the elements of an elementwise operator's output: f
// computes each from the inputs' elements.
func (in inference) combine(f func([]Dim) Dim) {
	if len(in.out.Shape) > 1 || !whole(in.out.DType) {
		return
	}
	size := 1
	for k := range in.node.Inputs {
		switch n := len(in.held(k)); {
		case n == 0 || n != 1 && size != 1 && n != size:
			return
		case n != 1:
			size = n
		}
	}
	held := make([]Dim, size)
	for i := range held {
		e := []Dim{}
		known := true
		for k := range in.node.Inputs {
			h := in.held(k)
			e = append(e, h[min(i, len(h)-1)])
			known = known && e[k] != unknownElement
		}
		held[i] = unknownElement
		if known {
			held[i] = f(e)
		}
	}
	in.keep(held)
}

// shapeFrom returns the shape that an input of sizes describes. Unknown sizes
// become new symbols of the output.
func (in inference) shapeFrom(input int) (Shape, bool) {
	held := in.held(input)
	sizes := in.node.Inputs[input]
	if held == nil {
		if sizes.Unranked || len(sizes.Shape) != 1 {
			return nil, false
		}
		rank, ok := sizes.Shape[0].Size()
		if !ok || rank > maxRank {
			return nil, false
		}
		held = slices.Repeat([]Dim{unknownElement}, int(rank))
	}
	s := slices.Clone(Shape(held))
	for i, d := range held {
		if d == unknownElement || d.factor < 0 {
			s[i] = in.unknown(i)
		}
	}
	return s, true
}

// reshape infers a wanted shape: 0 is the size before, -1 what is left over.
func (in inference) reshape() {
	s, ok := in.shapeFrom(1)
	if !ok {
		return
	}
	known := Fixed(1)
	open := -1
	for i, d := range in.held(1) {
		if d == Fixed(0) && in.node.intAttribute("allowzero", 0) == 0 {
			s[i] = in.unknown(i)
			if !in.x.Unranked && i < len(in.x.Shape) {
				s[i] = in.x.Shape[i]
			}
		}
		if d == Fixed(-1) {
			open = i
		} else {
			known = known.Times(s[i])
		}
	}
	if open >= 0 && !in.x.Unranked {
		if rest, ok := in.x.Shape.product().over(known); ok {
			s[open] = rest
		}
	}
	in.set(in.x.DType, s)
	in.keep(in.held(0))
}

// squeeze infers Squeeze and Unsqueeze, which drop and add axes of size 1.
func (in inference) squeeze() {
	axes, known := in.numbers(1)
	if len(in.node.Inputs) < 2 {
		var sizes []int64
		sizes, known = in.x.Shape.Sizes() // a symbol could have size 1, which is dropped
		for i, d := range sizes {
			if d == 1 {
				axes = append(axes, int64(i))
			}
		}
	}
	rank := len(in.x.Shape)
	if in.node.Op == "Unsqueeze" {
		rank += len(axes)
	}
	chosen, ok := marked(axes, rank)
	if !known || !ok {
		return
	}
	s := Shape{}
	k := 0
	for i := range rank {
		switch {
		case in.node.Op == "Squeeze" && !chosen[i]:
			s = append(s, in.x.Shape[i])
		case in.node.Op == "Unsqueeze" && chosen[i]:
			s = append(s, Fixed(1))
		case in.node.Op == "Unsqueeze" && k < len(in.x.Shape):
			s = append(s, in.x.Shape[k])
			k++
		}
	}
	in.set(in.x.DType, s)
	in.keep(in.held(0))
}

// nonZero infers NonZero: the places of elements but 0, along the last axis.
func (in inference) nonZero() { in.set(Int64, Shape{Fixed(int64(len(in.x.Shape))), in.unknown(1)}) }

// concat adds up the sizes along the axis, and joins known lists of sizes.
func (in inference) concat() {
	axis, ok := in.axis()
	if !ok || slices.ContainsFunc(in.node.Inputs, func(v *Value) bool { return len(v.Shape) != len(in.x.Shape) }) {
		return
	}
	s := slices.Clone(in.x.Shape)
	sum := Fixed(0)
	held := []Dim{}
	for _, v := range in.node.Inputs {
		if sum != unknownElement {
			sum = sum.plus(v.Shape[axis])
		}
		for i, d := range v.Shape {
			// All inputs agree in the other dimensions, so any input may tell
			// the size of an uncertain dimension.
			if i != axis && s[i].uncertain() {
				s[i] = d
			}
		}
		if h := in.graph.content[v]; h != nil && held != nil {
			held = append(held, h...)
		} else {
			held = nil
		}
	}
	s[axis] = sum
	if sum == unknownElement {
		s[axis] = in.unknown(axis)
	}
	in.set(in.x.DType, s)
	in.keep(held)
}

// split gives each output its given size along the axis, or an equal share.
func (in inference) split() {
	axis, ok := in.axis()
	if !ok {
		return
	}
	sizes := in.held(1)
	for i, part := range in.node.Outputs {
		part.DType = in.x.DType
		part.Shape = slices.Clone(in.x.Shape)
		part.Unranked = false
		whole, fixed := in.x.Shape[axis].Size()
		count := int64(len(in.node.Outputs))
		switch {
		case i < len(sizes) && sizes[i] != unknownElement:
			part.Shape[axis] = sizes[i]
		case len(in.node.Inputs) == 1 && fixed && whole%count == 0:
			part.Shape[axis] = Fixed(whole / count)
		default:
			part.Shape[axis] = in.graph.fresh(part, axis)
		}
	}
}

// slice infers each cut axis, and what is left of a known list of sizes.
func (in inference) slice() {
	starts := in.held(1)
	ends := in.held(2)
	axes := make([]int64, len(starts))
	steps := make([]int64, len(starts))
	for i := range starts {
		axes[i], steps[i] = int64(i), 1
	}
	known := starts != nil && ends != nil && len(starts) == len(ends)
	for i, list := range []*[]int64{&axes, &steps} {
		if given, ok := in.numbers(3 + i); given != nil || !ok {
			*list = given
			known = known && ok && len(given) == len(starts)
		}
	}
	s := slices.Clone(in.x.Shape)
	if !known {
		for i := range s {
			s[i] = in.unknown(i)
		}
		in.set(in.x.DType, s)
		return
	}
	held := in.held(0)
	for k, at := range axes {
		axis := along(at, in.x)
		if axis < 0 || axis >= len(s) {
			return
		}
		var cut bool
		s[axis], held, cut = sliced(s[axis], starts[k], ends[k], steps[k], held)
		if !cut {
			s[axis] = in.unknown(axis)
		}
	}
	in.set(in.x.DType, s)
	in.keep(held)
}

// sliced returns the size of a slice of d, and what it takes of held.
func sliced(d, start, end Dim, step int64, held []Dim) (Dim, []Dim, bool) {
	n, fixed := d.Size()
	from, known := start.Size()
	to, ended := end.Size()
	switch {
	case fixed && known && ended && step != 0 && n <= smallConstant:
		step = min(max(step, -smallConstant-1), smallConstant+1) // a longer step could overflow
		from = bound(from, n, step)
		to = bound(to, n, step)
		var kept []Dim
		count := int64(0)
		for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
			if held != nil && i < int64(len(held)) {
				kept = append(kept, held[i])
			}
			count++
		}
		if held == nil || int64(len(kept)) != count {
			kept = nil
		}
		return Fixed(count), kept, true
	case known && from == 0 && step == 1 && ended && to >= math.MaxInt32:
		return d, held, true // the slice takes everything
	case known && from == 0 && step == 1 && !ended && end != unknownElement && end.factor > 0:
		// A slice from the start of a table, which may be shorter: if so, the
		// model fails elsewhere.
		return end, nil, true
	}
	return Dim{}, nil, false
}

// bound clamps the end at of a slice of n elements, as ONNX does.
func bound(at, n, step int64) int64 {
	if at < 0 {
		at += n
	}
	if step < 0 {
		return min(max(at, -1), n-1)
	}
	return min(max(at, 0), n)
}

// reduce drops the axes that are reduced, or keeps them with size 1.
func (in inference) reduce() {
	axes, known := in.numbers(1)
	chosen, ok := marked(axes, len(in.x.Shape))
	keep := in.node.intAttribute("keepdims", 1) == 1
	if !ok || !known && !keep {
		return
	}
	every := len(axes) == 0 && in.node.intAttribute("noop_with_empty_axes", 0) == 0
	s := Shape{}
	for i, d := range in.x.Shape {
		switch {
		case !known:
			s = append(s, in.unknown(i))
		case !chosen[i] && !every:
			s = append(s, d)
		case keep:
			s = append(s, Fixed(1))
		}
	}
	in.set(in.x.DType, s)
}

// permutation returns the order of a Transpose, or nil for a wrong one.
func permutation(n *Node, rank int) []int {
	given, ok := n.Attribute("perm").([]int64)
	order := make([]int, rank)
	for i := range order {
		order[i] = rank - 1 - i
	}
	if !ok {
		return order
	}
	if len(given) != rank {
		return nil
	}
	seen := make([]bool, rank)
	for i, o := range given {
		if o < 0 || o >= int64(rank) || seen[o] {
			return nil
		}
		order[i] = int(o)
		seen[o] = true
	}
	return order
}
