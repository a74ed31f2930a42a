package onnx

import (
	"math"
	"slices"
	"strings"
	"sync"
)

// inference is one node whose outputs are worked out.
type inference struct {
	of     *inliner
	node   *Node
	x, out *Value // the first input, nil if there is none, and the first output
}

// infer works out types and shapes of a node's outputs, and what small
// whole-number outputs hold. What it cannot tell it leaves unranked.
func (in *inliner) infer(n *Node) {
	o, ok := operators()[n.Op]
	if !ok || o.infer == nil {
		return
	}
	one := inference{of: in, node: n, out: n.Outputs[0]}
	if len(n.Inputs) > 0 {
		one.x = n.Inputs[0]
	}
	o.infer(one)
}

// operator is what is known of operators of the standard: how many inputs they must have, and what works out their
// outputs; nil: nothing does.
type operator struct {
	inputs int
	infer  func(inference)
	names  string
}

// operators are those that are looked into, by name.
var operators = sync.OnceValue(func() map[string]operator {
	byName := map[string]operator{}
	for _, o := range []operator{
		{1, inference.alike, `Abs Atan Ceil Celu Clip Cos Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Log
			LogSoftmax Mish Reciprocal Relu Round Selu Sigmoid Sign Sin Softmax Softplus Softsign Sqrt Tan Tanh Trilu`},
		{2, inference.alike, "CumSum"},
		{1, inference.predicate, "Not IsNaN IsInf"},
		{1, inference.negative, "Neg"},
		{1, inference.cast, "Cast"},
		{2, inference.elementwise, "Add Sub Mul Div Pow Mod"},
		{1, inference.elementwise, "Min Max"},
		{2, inference.comparison, "Equal Less LessOrEqual Greater GreaterOrEqual And Or Xor"},
		{3, inference.where, "Where"},
		{1, inference.sizes, "Shape"},
		{2, inference.gather, "Gather"},
		{2, inference.gatherElements, "GatherElements"},
		{2, inference.gatherND, "GatherND"},
		{1, inference.flatten, "Flatten"},
		{2, inference.expand, "Expand"},
		{1, inference.constant, "ConstantOfShape"},
		{2, inference.tile, "Tile"},
		{3, inference.oneHot, "OneHot"},
		{0, inference.pad, "Pad"},
		{3, inference.sequence, "Range"},
		{1, inference.transpose, "Transpose"},
		{2, inference.product, "MatMul MatMulInteger"},
		{2, inference.gemm, "Gemm"},
		{2, inference.normalize, "LayerNormalization"},
		{1, inference.quantize, "DynamicQuantizeLinear"},
		{2, inference.dequantize, "DequantizeLinear"},
		{1, inference.squeeze, "Unsqueeze Squeeze"},
		{1, inference.concat, "Concat"},
		{1, inference.split, "Split"},
		{3, inference.slice, "Slice"},
		{2, inference.reshape, "Reshape"},
		{1, inference.reduce, "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL2 ReduceSumSquare"},
		{1, nil, "Identity Dropout"},
		{2, nil, "CastLike"},
	} {
		for name := range strings.FieldsSeq(o.names) {
			byName[name] = o
		}
	}
	return byName
})

// makers are operators whose output can be of any size, whatever their input is.
const makers = `RandomNormal RandomUniform EyeLike Resize Upsample MaxUnpool Col2Im ConvTranspose AffineGrid GridSample
	Multinomial HannWindow HammingWindow BlackmanWindow MelWeightMatrix STFT DFT SequenceConstruct SplitToSequence`

// ranked reports whether the first inputs have shapes.
func (in inference) ranked(count int) bool {
	return !slices.ContainsFunc(in.node.Inputs[:min(count, len(in.node.Inputs))],
		func(v *Value) bool { return v == nil || v.Unranked })
}

func (in inference) set(t DType, s Shape) { in.out.DType, in.out.Shape, in.out.Unranked = t, s, false }

// alike gives the output the type and shape of the first input.
func (in inference) alike() {
	if in.ranked(1) {
		in.set(in.x.DType, in.x.Shape)
	}
}

func (in inference) predicate() {
	in.alike()
	in.out.DType = Bool
}

func (in inference) negative() {
	in.alike()
	in.of.combine(in.out, func(e []Dim) Dim { return e[0].Times(Fixed(-1)) }, in.x)
}

func (in inference) cast() {
	in.alike()
	if in.out.DType = DType(in.node.intAttribute("to", 0)); whole(in.out.DType) {
		in.of.keep(in.out, in.of.graph.content[in.x])
	}
}

// elementwise joins inputs of shapes that fit, and has the type of the first.
func (in inference) elementwise() {
	if in.broadcast(in.x) {
		in.hold()
	}
}

func (in inference) comparison() {
	if in.broadcast(in.x) {
		in.out.DType = Bool
		in.hold()
	}
}

// where has the type of what it chooses from.
func (in inference) where() {
	if len(in.node.Inputs) > 1 && in.broadcast(in.node.Inputs[1]) {
		in.hold()
	}
}

// broadcast gives the output the shape of all inputs together, and the type of one.
func (in inference) broadcast(typed *Value) bool {
	if !in.ranked(len(in.node.Inputs)) {
		return false
	}
	s, ok := Shape{}, true
	for _, v := range in.node.Inputs {
		if s, ok = broadcast(s, v.Shape); !ok {
			return false
		}
	}
	in.set(typed.DType, s)
	return true
}

// hold works out what the output of an elementwise operator holds.
func (in inference) hold() {
	if f, ok := elementRules[in.node.Op]; ok {
		in.of.combine(in.out, f, in.node.Inputs...)
	}
}

// sizes is Shape: the dimensions as numbers.
func (in inference) sizes() {
	if !in.ranked(1) {
		in.out.DType = Int64
		return
	}
	rank := int64(len(in.x.Shape))
	start, end := clamp(in.node.intAttribute("start", 0), rank), clamp(in.node.intAttribute("end", rank), rank)
	dims := in.x.Shape[start:max(start, end)]
	in.set(Int64, FixedShape(int64(len(dims))))
	in.of.keep(in.out, slices.Clone(dims))
}

func (in inference) gather() {
	indices := in.node.Inputs[1]
	axis, ok := in.axis()
	if !ok || !in.ranked(2) {
		return
	}
	in.set(in.x.DType, slices.Concat(in.x.Shape[:axis], indices.Shape, in.x.Shape[axis+1:]))
	held, at := in.of.graph.content[in.x], in.of.graph.content[indices]
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
	in.of.keep(in.out, taken)
}

func (in inference) gatherElements() {
	if in.ranked(2) {
		in.set(in.x.DType, in.node.Inputs[1].Shape)
	}
}

// gatherND takes parts whose places stand along the last axis of the indices.
func (in inference) gatherND() {
	indices, batch := in.node.Inputs[1], in.node.intAttribute("batch_dims", 0)
	last := int64(len(indices.Shape)) - 1
	if !in.ranked(2) || batch < 0 || batch > min(last, int64(len(in.x.Shape))) {
		return
	}
	if depth, ok := indices.Shape[last].Size(); ok && depth >= 0 && depth <= int64(len(in.x.Shape))-batch {
		in.set(in.x.DType, slices.Concat(indices.Shape[:last], in.x.Shape[batch+depth:]))
	}
}

func (in inference) flatten() {
	axis := in.node.intAttribute("axis", 1)
	if in.ranked(1) && axis >= 0 && axis <= int64(len(in.x.Shape)) {
		in.set(in.x.DType, Shape{in.x.Shape[:axis].product(), in.x.Shape[axis:].product()})
	}
}

func (in inference) expand() {
	to, ok := in.of.shapeFrom(in.node.Inputs[1], in.out)
	if !ok || !in.ranked(1) {
		return
	}
	if s, ok := broadcast(in.x.Shape, to); ok {
		in.set(in.x.DType, s)
	}
}

func (in inference) constant() {
	s, ok := in.of.shapeFrom(in.x, in.out)
	if !ok {
		return
	}
	t, ok := in.node.Attribute("value").(*Tensor)
	if !ok {
		in.set(Float, s)
		return
	}
	in.set(t.dtype(), s)
	if n, fixed := s.product().Size(); fixed && n >= 0 && n <= smallConstant && len(t.wholes()) == 1 {
		in.of.keep(in.out, slices.Repeat([]Dim{Fixed(t.wholes()[0])}, int(n)))
	}
}

func (in inference) tile() {
	repeats, ok := in.of.fixed(in.node.Inputs[1])
	if !ok || !in.ranked(1) || len(repeats) != len(in.x.Shape) {
		return
	}
	s := make(Shape, len(repeats))
	for i, r := range repeats {
		s[i] = in.x.Shape[i].Times(Fixed(r))
	}
	in.set(in.x.DType, s)
}

func (in inference) oneHot() {
	if depth, ok := in.of.fixed(in.node.Inputs[1]); ok && in.ranked(1) && len(depth) == 1 &&
		in.node.intAttribute("axis", -1) == -1 && len(in.node.Inputs) > 2 {
		in.set(in.node.Inputs[2].DType, append(slices.Clone(in.x.Shape), Fixed(depth[0])))
	}
}

func (in inference) pad() {
	if len(in.node.Inputs) < 2 || in.node.Inputs[1] == nil || len(in.node.Inputs) > 3 {
		return
	}
	pads, ok := in.of.fixed(in.node.Inputs[1])
	if !in.ranked(1) || ok && len(pads) != 2*len(in.x.Shape) {
		return
	}
	s := slices.Clone(in.x.Shape)
	for i := range s {
		if !ok {
			s[i] = in.of.graph.fresh(in.out, i)
			continue
		}
		if s[i] = s[i].plus(Fixed(pads[i]).plus(Fixed(pads[i+len(s)]))); s[i] == unknownElement {
			s[i] = in.of.graph.fresh(in.out, i)
			if most := max(pads[i], pads[i+len(in.x.Shape)]); in.of.budget.along > 0 && most > in.of.budget.along {
				s[i] = Fixed(most) // which is refused
			}
		}
	}
	in.set(in.x.DType, s)
}

// sequence is Range.
func (in inference) sequence() {
	in.set(in.x.DType, Shape{in.of.graph.fresh(in.out, 0)})
	known := in.of.graph.content
	start, end, step := known[in.x], known[in.node.Inputs[1]], known[in.node.Inputs[2]]
	if from, ok := Shape(start).Sizes(); ok && len(from) == 1 {
		to, ended := Shape(end).Sizes()
		by, stepped := Shape(step).Sizes()
		if ended && stepped && len(to) == 1 && len(by) == 1 && by[0] != 0 {
			in.set(in.x.DType, Shape{Fixed(max(0, int64(math.Ceil((float64(to[0])-float64(from[0]))/float64(by[0])))))})
			return
		}
	}
	if len(start) == 1 && len(end) == 1 && len(step) == 1 && start[0] == Fixed(0) && step[0] == Fixed(1) &&
		end[0] != unknownElement {
		in.set(in.x.DType, Shape{end[0]})
	}
}

func (in inference) transpose() {
	if !in.ranked(1) {
		return
	}
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

// product is of matrices, batch by batch.
func (in inference) product() {
	w := in.node.Inputs[1]
	if !in.ranked(2) || len(in.x.Shape) < 2 || len(w.Shape) < 2 {
		return
	}
	batch, ok := broadcast(in.x.Shape[:len(in.x.Shape)-2], w.Shape[:len(w.Shape)-2])
	if !ok {
		return
	}
	in.set(in.x.DType, append(slices.Clone(batch), in.x.Shape[len(in.x.Shape)-2], w.Shape[len(w.Shape)-1]))
	if in.node.Op == "MatMulInteger" {
		in.out.DType = Int32
	}
}

func (in inference) gemm() {
	w := in.node.Inputs[1]
	if !in.ranked(2) || len(in.x.Shape) != 2 || len(w.Shape) != 2 {
		return
	}
	rows, columns := in.x.Shape[0], w.Shape[1]
	if in.node.intAttribute("transA", 0) == 1 {
		rows = in.x.Shape[1]
	}
	if in.node.intAttribute("transB", 0) == 1 {
		columns = w.Shape[0]
	}
	in.set(in.x.DType, Shape{rows, columns})
}

// normalize is LayerNormalization, perhaps with mean and deviation.
func (in inference) normalize() {
	if !in.ranked(1) {
		return
	}
	in.set(in.x.DType, in.x.Shape)
	axis := in.node.intAttribute("axis", -1)
	if axis < 0 {
		axis += int64(len(in.x.Shape))
	}
	for _, v := range in.node.Outputs[1:] { // mean and deviation
		v.DType, v.Shape, v.Unranked = Float, slices.Clone(in.x.Shape), false
		for i := max(axis, 0); i < int64(len(in.x.Shape)); i++ {
			v.Shape[i] = Fixed(1)
		}
	}
}

func (in inference) quantize() {
	if in.ranked(1) && len(in.node.Outputs) == 3 {
		in.set(Uint8, in.x.Shape)
		*in.node.Outputs[1] = Value{Name: in.node.Outputs[1].Name, DType: Float}
		*in.node.Outputs[2] = Value{Name: in.node.Outputs[2].Name, DType: Uint8}
	}
}

func (in inference) dequantize() {
	if in.ranked(1) {
		in.set(Float, in.x.Shape)
	}
}

func whole(t DType) bool { return t == Int64 || t == Int32 || t == Bool }

// elementRules compute what small whole-number tensors hold.
var elementRules = map[string]func(e []Dim) Dim{
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
		case fixedA && fixedB, fixedA && a < 0, fixedB && b < 0: // sizes are not negative
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

// maxSymbols bounds how long a product of symbols can grow, in bytes: squares of squares would fill the memory.
const maxSymbols = 512

// plus is the sum of two sizes, where it is a multiple of symbols.
func (d Dim) plus(e Dim) Dim {
	switch {
	case d.factor == 0 && d.symbols == "":
		return e
	case e.factor == 0 && e.symbols == "":
		return d
	case d.symbols == e.symbols && d.factor+e.factor == 0:
		return Fixed(0)
	case d.symbols == e.symbols:
		return Dim{d.factor + e.factor, d.symbols}
	}
	return unknownElement
}

// over is the quotient of two sizes, where it is a whole multiple of symbols.
func (d Dim) over(e Dim) (Dim, bool) {
	if e.factor == 0 || d.factor%e.factor != 0 {
		return Dim{}, false
	}
	left := []string{}
	if d.symbols != "" {
		left = splitSymbols(d.symbols)
	}
	if e.symbols != "" {
		for _, s := range splitSymbols(e.symbols) {
			i := slices.Index(left, s)
			if i < 0 {
				return Dim{}, false
			}
			left = slices.Delete(left, i, i+1)
		}
	}
	return Dim{d.factor / e.factor, strings.Join(left, "*")}, true
}

// keep remembers what v holds.
func (in *inliner) keep(v *Value, held []Dim) {
	if held == nil || !whole(v.DType) || len(v.Shape) > 1 || v.Unranked || len(held) > smallConstant {
		return
	}
	for i, d := range held {
		if len(d.symbols) > maxSymbols {
			held[i] = unknownElement
		}
	}
	in.graph.content[v] = held
}

// combine works out what an elementwise operator's output holds.
func (in *inliner) combine(out *Value, f func([]Dim) Dim, inputs ...*Value) {
	if out.Unranked || len(out.Shape) > 1 || !whole(out.DType) {
		return
	}
	size := 1
	for _, v := range inputs {
		held := in.graph.content[v]
		if held == nil {
			return
		}
		if len(held) != 1 {
			size = len(held)
		}
	}
	held := make([]Dim, size)
	for i := range held {
		e := make([]Dim, len(inputs))
		known := true
		for k, v := range inputs {
			h := in.graph.content[v]
			if len(h) != 1 && len(h) != size {
				return
			}
			e[k] = h[min(i, len(h)-1)]
			known = known && e[k] != unknownElement
		}
		held[i] = unknownElement
		if known {
			held[i] = f(e)
		}
	}
	in.keep(out, held)
}

// axis is the node's axis attribute, not negative; false if the first input has no such axis.
func (in inference) axis() (int, bool) {
	axis := along(in.node.intAttribute("axis", 0), in.x)
	return axis, !in.x.Unranked && axis >= 0 && axis < len(in.x.Shape)
}

// marked tells which of rank axes are among those listed; false if one of these is no axis.
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

// fixed is the numbers that v is known to hold.
func (in *inliner) fixed(v *Value) ([]int64, bool) {
	held, ok := in.graph.content[v]
	if !ok {
		return nil, v != nil && !v.Unranked && len(v.Shape) == 1 && v.Shape[0] == Fixed(0)
	}
	return Shape(held).Sizes()
}

// given is the numbers that an optional input is known to hold, nil where it is absent.
func (in inference) given(input int) ([]int64, bool) {
	if input >= len(in.node.Inputs) || in.node.Inputs[input] == nil {
		return nil, true
	}
	return in.of.fixed(in.node.Inputs[input])
}

// shapeFrom is the shape that a tensor of sizes describes; what is not known of it are dimensions of out.
func (in *inliner) shapeFrom(sizes, out *Value) (Shape, bool) {
	held := in.graph.content[sizes]
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
	s := make(Shape, len(held))
	for i, d := range held {
		s[i] = d
		if d == unknownElement || d.factor < 0 {
			s[i] = in.graph.fresh(out, i)
		}
	}
	return s, true
}

func (in inference) reshape() {
	held := in.of.graph.content[in.node.Inputs[1]]
	if held == nil {
		if s, ok := in.of.shapeFrom(in.node.Inputs[1], in.out); ok {
			in.set(in.x.DType, s)
		}
		return
	}
	s, known, open := make(Shape, len(held)), Fixed(1), -1
	for i, d := range held {
		switch {
		case d == Fixed(0) && in.node.intAttribute("allowzero", 0) == 0:
			if in.x.Unranked || i >= len(in.x.Shape) {
				s[i] = in.of.graph.fresh(in.out, i)
			} else {
				s[i] = in.x.Shape[i]
			}
		case d == Fixed(-1):
			open = i
			continue
		case d == unknownElement || d.factor < 0:
			s[i] = in.of.graph.fresh(in.out, i)
		default:
			s[i] = d
		}
		known = known.Times(s[i])
	}
	if open >= 0 {
		var ok bool
		if !in.x.Unranked {
			s[open], ok = in.x.Shape.product().over(known)
		}
		if !ok {
			s[open] = in.of.graph.fresh(in.out, open)
		}
	}
	in.set(in.x.DType, s)
	in.of.keep(in.out, in.of.graph.content[in.x])
}

func (in inference) squeeze() {
	if in.x.Unranked {
		return
	}
	axes, known := in.given(1)
	if len(in.node.Inputs) < 2 {
		var sizes []int64
		sizes, known = in.x.Shape.Sizes() // what has size 1 goes, and a symbol could have it
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
	s, k := Shape{}, 0
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
	in.of.keep(in.out, in.of.graph.content[in.x])
}

func (in inference) concat() {
	if !in.ranked(len(in.node.Inputs)) || slices.ContainsFunc(in.node.Inputs,
		func(v *Value) bool { return len(v.Shape) != len(in.x.Shape) }) {
		return
	}
	axis, ok := in.axis()
	if !ok {
		return
	}
	s, sum, held := slices.Clone(in.x.Shape), Fixed(0), []Dim{}
	for _, v := range in.node.Inputs {
		if sum != unknownElement {
			sum = sum.plus(v.Shape[axis])
		}
		for i, d := range v.Shape {
			// All but the axis agree, and any of them may know it.
			if i != axis && s[i].uncertain() {
				s[i] = d
			}
		}
		if h := in.of.graph.content[v]; h != nil && held != nil {
			held = append(held, h...)
		} else {
			held = nil
		}
	}
	if s[axis] = sum; sum == unknownElement {
		s[axis] = in.of.graph.fresh(in.out, axis)
	}
	in.set(in.x.DType, s)
	in.of.keep(in.out, held)
}

func (in inference) split() {
	axis, ok := in.axis()
	if !ok {
		return
	}
	var sizes []Dim
	if len(in.node.Inputs) > 1 {
		sizes = in.of.graph.content[in.node.Inputs[1]]
	}
	for i, part := range in.node.Outputs {
		part.DType, part.Shape, part.Unranked = in.x.DType, slices.Clone(in.x.Shape), false
		whole, fixed := in.x.Shape[axis].Size()
		count := int64(len(in.node.Outputs))
		switch {
		case i < len(sizes) && sizes[i] != unknownElement:
			part.Shape[axis] = sizes[i]
		case len(in.node.Inputs) == 1 && fixed && whole%count == 0:
			part.Shape[axis] = Fixed(whole / count)
		default:
			part.Shape[axis] = in.of.graph.fresh(part, axis)
		}
	}
}

func (in inference) slice() {
	if in.x.Unranked {
		return
	}
	starts, ends := in.of.graph.content[in.node.Inputs[1]], in.of.graph.content[in.node.Inputs[2]]
	axes, steps := make([]int64, len(starts)), make([]int64, len(starts))
	for i := range starts {
		axes[i], steps[i] = int64(i), 1
	}
	known := starts != nil && ends != nil && len(starts) == len(ends)
	for i, list := range []*[]int64{&axes, &steps} {
		if given, ok := in.given(3 + i); given != nil || !ok {
			*list = given
			known = known && ok && len(given) == len(starts)
		}
	}
	s := slices.Clone(in.x.Shape)
	if !known {
		for i := range s {
			s[i] = in.of.graph.fresh(in.out, i)
		}
		in.set(in.x.DType, s)
		return
	}
	held := in.of.graph.content[in.x]
	for k, axis := range axes {
		if axis < 0 {
			axis += int64(len(s))
		}
		if axis < 0 || axis >= int64(len(s)) {
			return
		}
		var cut bool
		s[axis], held, cut = sliced(s[axis], starts[k], ends[k], steps[k], held)
		if !cut {
			s[axis] = in.of.graph.fresh(in.out, int(axis))
		}
	}
	in.set(in.x.DType, s)
	in.of.keep(in.out, held)
}

// sliced is the size that a slice leaves of a dimension, and what it leaves of the elements held along it.
func sliced(d, start, end Dim, step int64, held []Dim) (Dim, []Dim, bool) {
	n, fixed := d.Size()
	from, known := start.Size()
	to, ended := end.Size()
	switch {
	case fixed && known && ended && step != 0 && n <= smallConstant:
		from, to = bound(from, n, step), bound(to, n, step)
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
		return d, held, true // everything
	case known && from == 0 && step == 1 && !ended && end != unknownElement && end.factor > 0:
		// The beginning of a table: who asks for more than it has fails elsewhere.
		return end, nil, true
	}
	return Dim{}, nil, false
}

// bound is an end of a slice of n elements, as the standard clamps it.
func bound(at, n, step int64) int64 {
	if at < 0 {
		at += n
	}
	if step < 0 {
		return min(max(at, -1), n-1)
	}
	return clamp(at, n)
}

func clamp(at, n int64) int64 {
	if at < 0 {
		at += n
	}
	return min(max(at, 0), n)
}

func (in inference) reduce() {
	if in.x.Unranked {
		return
	}
	axes, known := in.given(1)
	chosen, ok := marked(axes, len(in.x.Shape))
	if !known || !ok {
		return
	}
	all := len(axes) == 0 && in.node.intAttribute("noop_with_empty_axes", 0) == 0
	s := Shape{}
	for i, d := range in.x.Shape {
		switch {
		case !chosen[i] && !all:
			s = append(s, d)
		case in.node.intAttribute("keepdims", 1) == 1:
			s = append(s, Fixed(1))
		}
	}
	in.set(in.x.DType, s)
}

// permutation is the order of a Transpose, nil if it is invalid.
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
		order[i], seen[o] = int(o), true
	}
	return order
}
