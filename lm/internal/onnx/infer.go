package onnx

import (
	"math"
	"slices"
	"strings"
)

// infer works out types and shapes of a node's outputs, and what small
// whole-number outputs hold. What it cannot tell it leaves unranked.
func (in *inliner) infer(n *Node) {
	out := n.Outputs[0]
	ranked := func(count int) bool {
		for _, v := range n.Inputs[:min(count, len(n.Inputs))] {
			if v == nil || v.Unranked {
				return false
			}
		}
		return true
	}
	set := func(t DType, s Shape) { out.DType, out.Shape, out.Unranked = t, s, false }
	var x *Value
	if len(n.Inputs) > 0 {
		x = n.Inputs[0]
	}
	switch n.Op {
	case "Neg", "Abs", "Sqrt", "Reciprocal", "Exp", "Log", "Erf", "Tanh", "Sigmoid", "Relu", "Sign", "Floor", "Ceil", "Round", "Cos", "Sin",
		"Clip", "Gelu", "Softplus", "Elu", "Selu", "Celu", "LeakyRelu", "HardSigmoid", "HardSwish", "Mish", "Softsign", "Tan", "Atan", "Softmax", "LogSoftmax", "Trilu", "CumSum", "Not", "IsNaN", "IsInf", "Cast":
		if ranked(1) {
			set(x.DType, x.Shape)
		}
		switch n.Op {
		case "Not", "IsNaN", "IsInf":
			out.DType = Bool
		case "Cast":
			out.DType = DType(n.intAttribute("to", 0))
			if whole(out.DType) {
				in.keep(out, in.content[x])
			}
		case "Neg":
			in.combine(out, func(e []Dim) Dim { return e[0].Times(Fixed(-1)) }, x)
		}
	case "Add", "Sub", "Mul", "Div", "Pow", "Mod", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor", "Min", "Max", "Where":
		if !ranked(len(n.Inputs)) {
			return
		}
		first := n.Inputs[0]
		if n.Op == "Where" {
			first = n.Inputs[1]
		}
		s := Shape{}
		for _, v := range n.Inputs {
			var ok bool
			if s, ok = broadcast(s, v.Shape); !ok {
				return
			}
		}
		set(first.DType, s)
		switch n.Op {
		case "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor":
			out.DType = Bool
		}
		if f, ok := elementRules[n.Op]; ok {
			in.combine(out, f, n.Inputs...)
		}
	case "Shape":
		if !ranked(1) {
			out.DType = Int64
			return
		}
		rank := int64(len(x.Shape))
		start, end := clamp(n.intAttribute("start", 0), rank), clamp(n.intAttribute("end", rank), rank)
		dims := x.Shape[start:max(start, end)]
		set(Int64, FixedShape(int64(len(dims))))
		in.keep(out, slices.Clone(dims))
	case "Gather":
		indices := n.Inputs[1]
		axis, ok := in.axis(n, x)
		if !ok || !ranked(2) {
			return
		}
		set(x.DType, slices.Concat(x.Shape[:axis], indices.Shape, x.Shape[axis+1:]))
		held, at := in.content[x], in.content[indices]
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
		in.keep(out, taken)
	case "GatherElements":
		if ranked(2) {
			set(x.DType, n.Inputs[1].Shape)
		}
	case "Unsqueeze", "Squeeze":
		in.inferSqueeze(n, x, set)
	case "Flatten":
		axis := n.intAttribute("axis", 1)
		if ranked(1) && axis >= 0 && axis <= int64(len(x.Shape)) {
			set(x.DType, Shape{x.Shape[:axis].product(), x.Shape[axis:].product()})
		}
	case "Concat":
		in.inferConcat(n, set)
	case "Split":
		in.inferSplit(n, x)
	case "Slice":
		in.inferSlice(n, x, set)
	case "Reshape":
		in.inferReshape(n, x, set)
	case "Expand":
		to, ok := in.shapeFrom(n.Inputs[1], out)
		if !ok || !ranked(1) {
			return
		}
		if s, ok := broadcast(x.Shape, to); ok {
			set(x.DType, s)
		}
	case "ConstantOfShape":
		s, ok := in.shapeFrom(x, out)
		if !ok {
			return
		}
		t, ok := n.Attribute("value").(*Tensor)
		if !ok {
			set(Float, s)
			return
		}
		set(t.dtype(), s)
		if n, fixed := s.product().Size(); fixed && n >= 0 && n <= smallConstant && len(t.wholes()) == 1 {
			in.keep(out, slices.Repeat([]Dim{Fixed(t.wholes()[0])}, int(n)))
		}
	case "Tile":
		repeats, ok := in.fixed(n.Inputs[1])
		if !ok || !ranked(1) || len(repeats) != len(x.Shape) {
			return
		}
		s := make(Shape, len(repeats))
		for i, r := range repeats {
			s[i] = x.Shape[i].Times(Fixed(r))
		}
		set(x.DType, s)
	case "OneHot":
		if depth, ok := in.fixed(n.Inputs[1]); ok && ranked(1) && len(depth) == 1 && n.intAttribute("axis", -1) == -1 && len(n.Inputs) > 2 {
			set(n.Inputs[2].DType, append(slices.Clone(x.Shape), Fixed(depth[0])))
		}
	case "Pad":
		if len(n.Inputs) < 2 || n.Inputs[1] == nil || len(n.Inputs) > 3 {
			return
		}
		pads, ok := in.fixed(n.Inputs[1])
		if !ok || !ranked(1) || len(pads) != 2*len(x.Shape) {
			return
		}
		s := slices.Clone(x.Shape)
		for i := range s {
			if s[i] = s[i].plus(Fixed(pads[i]).plus(Fixed(pads[i+len(s)]))); s[i] == unknownElement {
				s[i] = in.fresh(out, i)
				if pads[i] > in.budget.along || pads[i+len(x.Shape)] > in.budget.along {
					s[i] = Fixed(max(pads[i], pads[i+len(x.Shape)])) // which is refused
				}
			}
		}
		set(x.DType, s)
	case "Range":
		set(x.DType, Shape{in.fresh(out, 0)})
		start, end, step := in.content[x], in.content[n.Inputs[1]], in.content[n.Inputs[2]]
		if from, ok := Shape(start).Sizes(); ok && len(from) == 1 {
			to, ended := Shape(end).Sizes()
			by, stepped := Shape(step).Sizes()
			if ended && stepped && len(to) == 1 && len(by) == 1 && by[0] != 0 {
				set(x.DType, Shape{Fixed(max(0, int64(math.Ceil((float64(to[0])-float64(from[0]))/float64(by[0])))))})
				return
			}
		}
		if len(start) == 1 && len(end) == 1 && len(step) == 1 && start[0] == Fixed(0) && step[0] == Fixed(1) && end[0] != unknownElement {
			set(x.DType, Shape{end[0]})
		}
	case "Transpose":
		if !ranked(1) {
			return
		}
		order := permutation(n, len(x.Shape))
		if order == nil {
			return
		}
		s := make(Shape, len(order))
		for i, o := range order {
			s[i] = x.Shape[o]
		}
		set(x.DType, s)
	case "MatMul", "MatMulInteger":
		w := n.Inputs[1]
		if !ranked(2) || len(x.Shape) < 2 || len(w.Shape) < 2 {
			return
		}
		batch, ok := broadcast(x.Shape[:len(x.Shape)-2], w.Shape[:len(w.Shape)-2])
		if !ok {
			return
		}
		set(x.DType, append(slices.Clone(batch), x.Shape[len(x.Shape)-2], w.Shape[len(w.Shape)-1]))
		if n.Op == "MatMulInteger" {
			out.DType = Int32
		}
	case "Gemm":
		w := n.Inputs[1]
		if !ranked(2) || len(x.Shape) != 2 || len(w.Shape) != 2 {
			return
		}
		rows, columns := x.Shape[0], w.Shape[1]
		if n.intAttribute("transA", 0) == 1 {
			rows = x.Shape[1]
		}
		if n.intAttribute("transB", 0) == 1 {
			columns = w.Shape[0]
		}
		set(x.DType, Shape{rows, columns})
	case "LayerNormalization":
		if !ranked(1) {
			return
		}
		set(x.DType, x.Shape)
		axis := n.intAttribute("axis", -1)
		if axis < 0 {
			axis += int64(len(x.Shape))
		}
		for _, v := range n.Outputs[1:] { // mean and deviation
			v.DType, v.Shape, v.Unranked = Float, slices.Clone(x.Shape), false
			for i := max(axis, 0); i < int64(len(x.Shape)); i++ {
				v.Shape[i] = Fixed(1)
			}
		}
	case "DynamicQuantizeLinear":
		if ranked(1) && len(n.Outputs) == 3 {
			set(Uint8, x.Shape)
			*n.Outputs[1] = Value{Name: n.Outputs[1].Name, DType: Float}
			*n.Outputs[2] = Value{Name: n.Outputs[2].Name, DType: Uint8}
		}
	case "DequantizeLinear":
		if ranked(1) {
			set(Float, x.Shape)
		}
	case "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceSumSquare":
		in.inferReduce(n, x, set)
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

// maxSymbols bounds how long a product of symbols can grow, in bytes: squares of
// squares would fill the memory.
const maxSymbols = 512

// plus is the sum of two sizes, where it is a multiple of symbols.
func (d Dim) plus(e Dim) Dim {
	switch {
	case d.factor == 0 && d.symbols == "":
		return e
	case e.factor == 0 && e.symbols == "":
		return d
	case d.symbols == e.symbols:
		return Dim{d.factor + e.factor, d.symbols}.plain()
	}
	return unknownElement
}

func (d Dim) plain() Dim {
	if d.factor == 0 {
		return Fixed(0)
	}
	return d
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
	in.content[v] = held
}

// combine works out what an elementwise operator's output holds.
func (in *inliner) combine(out *Value, f func([]Dim) Dim, inputs ...*Value) {
	if out.Unranked || len(out.Shape) > 1 || !whole(out.DType) {
		return
	}
	size := 1
	for _, v := range inputs {
		held := in.content[v]
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
			h := in.content[v]
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

// axis is a node's axis attribute, not negative.
func (in *inliner) axis(n *Node, x *Value) (int, bool) {
	axis := n.intAttribute("axis", 0)
	if x.Unranked {
		return 0, false
	}
	if axis < 0 {
		axis += int64(len(x.Shape))
	}
	return int(axis), axis >= 0 && axis < int64(len(x.Shape))
}

// fixed is the numbers that v is known to hold.
func (in *inliner) fixed(v *Value) ([]int64, bool) {
	held, ok := in.content[v]
	if !ok {
		return nil, v != nil && !v.Unranked && len(v.Shape) == 1 && v.Shape[0] == Fixed(0)
	}
	return Shape(held).Sizes()
}

// shapeFrom is the shape that a tensor of sizes describes; what is not known
// of it are dimensions of out.
func (in *inliner) shapeFrom(sizes, out *Value) (Shape, bool) {
	held := in.content[sizes]
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
			s[i] = in.fresh(out, i)
		}
	}
	return s, true
}

func (in *inliner) inferReshape(n *Node, x *Value, set func(DType, Shape)) {
	held := in.content[n.Inputs[1]]
	if held == nil {
		if s, ok := in.shapeFrom(n.Inputs[1], n.Outputs[0]); ok {
			set(x.DType, s)
		}
		return
	}
	s, known, open := make(Shape, len(held)), Fixed(1), -1
	for i, d := range held {
		switch {
		case d == Fixed(0) && n.intAttribute("allowzero", 0) == 0:
			if x.Unranked || i >= len(x.Shape) {
				s[i] = in.fresh(n.Outputs[0], i)
			} else {
				s[i] = x.Shape[i]
			}
		case d == Fixed(-1):
			open = i
			continue
		case d == unknownElement || d.factor < 0:
			s[i] = in.fresh(n.Outputs[0], i)
		default:
			s[i] = d
		}
		known = known.Times(s[i])
	}
	if open >= 0 {
		var ok bool
		if !x.Unranked {
			s[open], ok = x.Shape.product().over(known)
		}
		if !ok {
			s[open] = in.fresh(n.Outputs[0], open)
		}
	}
	set(x.DType, s)
	in.keep(n.Outputs[0], in.content[x])
}

func (in *inliner) inferSqueeze(n *Node, x *Value, set func(DType, Shape)) {
	if x.Unranked {
		return
	}
	var axes []int64
	if len(n.Inputs) > 1 {
		var ok bool
		if axes, ok = in.fixed(n.Inputs[1]); !ok {
			return
		}
	} else {
		sizes, ok := x.Shape.Sizes() // what has size 1 goes, and a symbol could have it
		if !ok {
			return
		}
		for i, d := range sizes {
			if d == 1 {
				axes = append(axes, int64(i))
			}
		}
	}
	rank := len(x.Shape)
	if n.Op == "Unsqueeze" {
		rank += len(axes)
	}
	chosen := make([]bool, rank)
	for _, a := range axes {
		if a < 0 {
			a += int64(rank)
		}
		if a < 0 || a >= int64(rank) {
			return
		}
		chosen[a] = true
	}
	s, k := Shape{}, 0
	for i := range rank {
		switch {
		case n.Op == "Squeeze" && !chosen[i]:
			s = append(s, x.Shape[i])
		case n.Op == "Unsqueeze" && chosen[i]:
			s = append(s, Fixed(1))
		case n.Op == "Unsqueeze" && k < len(x.Shape):
			s = append(s, x.Shape[k])
			k++
		}
	}
	set(x.DType, s)
	in.keep(n.Outputs[0], in.content[x])
}

func (in *inliner) inferConcat(n *Node, set func(DType, Shape)) {
	for _, v := range n.Inputs {
		if v == nil || v.Unranked || len(v.Shape) != len(n.Inputs[0].Shape) {
			return
		}
	}
	axis, ok := in.axis(n, n.Inputs[0])
	if !ok {
		return
	}
	s, sum, held := slices.Clone(n.Inputs[0].Shape), Fixed(0), []Dim{}
	for _, v := range n.Inputs {
		if sum != unknownElement {
			sum = sum.plus(v.Shape[axis])
		}
		for i, d := range v.Shape {
			// All but the axis agree, and any of them may know it.
			if i != axis && s[i].uncertain() {
				s[i] = d
			}
		}
		if h := in.content[v]; h != nil && held != nil {
			held = append(held, h...)
		} else {
			held = nil
		}
	}
	if s[axis] = sum; sum == unknownElement {
		s[axis] = in.fresh(n.Outputs[0], axis)
	}
	set(n.Inputs[0].DType, s)
	in.keep(n.Outputs[0], held)
}

func (in *inliner) inferSplit(n *Node, x *Value) {
	axis, ok := in.axis(n, x)
	if !ok {
		return
	}
	var sizes []Dim
	if len(n.Inputs) > 1 {
		sizes = in.content[n.Inputs[1]]
	}
	for i, out := range n.Outputs {
		out.DType, out.Shape, out.Unranked = x.DType, slices.Clone(x.Shape), false
		whole, fixed := x.Shape[axis].Size()
		count := int64(len(n.Outputs))
		switch {
		case i < len(sizes) && sizes[i] != unknownElement:
			out.Shape[axis] = sizes[i]
		case len(n.Inputs) == 1 && fixed && whole%count == 0:
			out.Shape[axis] = Fixed(whole / count)
		default:
			out.Shape[axis] = in.fresh(out, axis)
		}
	}
}

func (in *inliner) inferSlice(n *Node, x *Value, set func(DType, Shape)) {
	if x.Unranked {
		return
	}
	out := n.Outputs[0]
	starts, ends := in.content[n.Inputs[1]], in.content[n.Inputs[2]]
	axes, steps := make([]int64, len(starts)), make([]int64, len(starts))
	for i := range starts {
		axes[i], steps[i] = int64(i), 1
	}
	known := starts != nil && ends != nil && len(starts) == len(ends)
	if len(n.Inputs) > 3 && n.Inputs[3] != nil {
		var ok bool
		axes, ok = in.fixed(n.Inputs[3])
		known = known && ok && len(axes) == len(starts)
	}
	if len(n.Inputs) > 4 {
		var ok bool
		steps, ok = in.fixed(n.Inputs[4])
		known = known && ok && len(steps) == len(starts)
	}
	s := slices.Clone(x.Shape)
	if !known {
		for i := range s {
			s[i] = in.fresh(out, i)
		}
		set(x.DType, s)
		return
	}
	held := in.content[x]
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
			s[axis] = in.fresh(out, int(axis))
		}
	}
	set(x.DType, s)
	in.keep(out, held)
}

// sliced is the size that a slice leaves of a dimension, and what it leaves of
// the elements held along it.
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

func (in *inliner) inferReduce(n *Node, x *Value, set func(DType, Shape)) {
	if x.Unranked {
		return
	}
	chosen := make([]bool, len(x.Shape))
	var axes []int64
	if len(n.Inputs) > 1 && n.Inputs[1] != nil {
		var ok bool
		if axes, ok = in.fixed(n.Inputs[1]); !ok {
			return
		}
	}
	for _, a := range axes {
		if a < 0 {
			a += int64(len(x.Shape))
		}
		if a < 0 || a >= int64(len(x.Shape)) {
			return
		}
		chosen[a] = true
	}
	all := len(axes) == 0 && n.intAttribute("noop_with_empty_axes", 0) == 0
	s := Shape{}
	for i, d := range x.Shape {
		switch {
		case !chosen[i] && !all:
			s = append(s, d)
		case n.intAttribute("keepdims", 1) == 1:
			s = append(s, Fixed(1))
		}
	}
	set(x.DType, s)
}

// permutation is the order of a Transpose, nil where it is none.
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
