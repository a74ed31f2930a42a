package onnx

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// A rule adds the cotangents of a node's inputs, given dy, the cotangent of
// its first output. The formulas are those of any text on reverse-mode
// differentiation (Griewank and Walther 2008, chapter 3); only those that are
// not immediate are written out.
type rule func(b *backward, n *Node, dy *Value) error

var rules = map[string]rule{
	"Add":                ruleAdd,
	"Sub":                ruleSub,
	"Mul":                ruleMul,
	"Div":                ruleDiv,
	"Neg":                pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Neg(dy) }),
	"Exp":                pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Mul(dy, y) }),
	"Log":                pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Div(dy, x) }),
	"Sqrt":               pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Div(b.Mul(dy, b.Scalar(0.5)), y) }),
	"Erf":                pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Mul(dy, b.erfSlope(x)) }),
	"Cos":                pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Neg(b.Mul(dy, b.Sin(x))) }),
	"Sin":                pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Mul(dy, b.Cos(x)) }),
	"Tanh":               pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Mul(dy, b.Sub(b.Scalar(1), b.Mul(y, y))) }),
	"Sigmoid":            pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Mul(dy, b.Sub(y, b.Mul(y, y))) }),
	"Relu":               pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Mul(dy, b.unary("Sign", y)) }),
	"Identity":           pointwise(func(b *backward, x, y, dy *Value) *Value { return dy }),
	"Reshape":            pointwise(func(b *backward, x, y, dy *Value) *Value { return b.Reshape(dy, x.Shape...) }),
	"Softmax":            pointwise(softmaxGradient),
	"LogSoftmax":         pointwise(logSoftmaxGradient),
	"Gelu":               ruleGelu,
	"MatMul":             ruleMatMul,
	"Gemm":               ruleGemm,
	"Transpose":          ruleTranspose,
	"Gather":             ruleGather,
	"GatherElements":     ruleGatherElements,
	"LayerNormalization": ruleLayerNormalization,
	"ReduceSum":          ruleReduce(false),
	"ReduceMean":         ruleReduce(true),
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

func ruleAdd(b *backward, n *Node, dy *Value) error {
	for _, x := range n.Inputs {
		if b.wants(x) {
			b.accumulate(x, b.unbroadcast(dy, x))
		}
	}
	return nil
}

func ruleSub(b *backward, n *Node, dy *Value) error {
	if x := n.Inputs[0]; b.wants(x) {
		b.accumulate(x, b.unbroadcast(dy, x))
	}
	if x := n.Inputs[1]; b.wants(x) {
		b.accumulate(x, b.Neg(b.unbroadcast(dy, x)))
	}
	return nil
}

func ruleMul(b *backward, n *Node, dy *Value) error {
	for i, x := range n.Inputs {
		if b.wants(x) {
			b.accumulate(x, b.unbroadcast(b.Mul(dy, n.Inputs[1-i]), x))
		}
	}
	return nil
}

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

// erfSlope is the derivative of erf, 2/√π · exp(−x²). The factor goes into
// the exponent: one pass over the tensor less.
func (b *backward) erfSlope(x *Value) *Value {
	return b.Exp(b.Sub(b.Scalar(math.Log(2/math.Sqrt(math.Pi))), b.Mul(x, x)))
}

// ruleGelu: d xΦ(x) = Φ(x) + xφ(x). With s = x/√2 this is
// ½(1 + erf s + s·erf′(s)). For the tanh form, y = ½x(1 + t) with
// t = tanh u, u = √(2/π)(x + 0.044715x³): ½(1 + t) + ½x(1 − t²)u′.
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

// ruleGemm: for Y = α·A'·B' + β·C with A' = A or Aᵀ and B' likewise,
// dA' = α·dY·B'ᵀ, dB' = α·A'ᵀ·dY, dC = β·dY; written so that no operand is
// transposed in memory.
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

func ruleTranspose(b *backward, n *Node, dy *Value) error {
	order, ok := n.Attribute("perm").([]int64)
	if !ok {
		return fmt.Errorf("no perm attribute")
	}
	inverse := make([]int, len(order))
	for i, o := range order {
		inverse[o] = i
	}
	b.accumulate(n.Inputs[0], b.Transpose(dy, inverse...))
	return nil
}

func ruleGather(b *backward, n *Node, dy *Value) error {
	x, indices := n.Inputs[0], n.Inputs[1]
	if !b.wants(x) {
		return nil
	}
	if axis := n.intAttribute("axis", 0); axis != 0 {
		return fmt.Errorf("axis %d: only axis 0 has a rule", axis)
	}
	b.accumulate(x, b.ScatterAdd(b.Zeros(x.Shape), indices, dy))
	return nil
}

func ruleGatherElements(b *backward, n *Node, dy *Value) error {
	x := n.Inputs[0]
	if b.wants(x) {
		b.accumulate(x, b.ScatterElements(b.Zeros(x.Shape), n.Inputs[1], dy, int(n.intAttribute("axis", 0))))
	}
	return nil
}

// ruleLayerNormalization: with x̂ = (x − mean)·inv and d = dy∘scale,
// dx = inv·(d − mean(d) − x̂·mean(d∘x̂)). The operator itself gives mean and
// inv as outputs 2 and 3.
func ruleLayerNormalization(b *backward, n *Node, dy *Value) error {
	x, scale := n.Inputs[0], n.Inputs[1]
	if b.wants(scale) || len(n.Inputs) > 2 && b.wants(n.Inputs[2]) {
		return fmt.Errorf("scale and bias have no rule")
	}
	last := len(x.Shape) - 1
	if axis := n.intAttribute("axis", -1); axis != -1 && axis != int64(last) {
		return fmt.Errorf("axis %d: only the last axis has a rule", axis)
	}
	if len(n.Outputs) == 1 {
		s := slices.Clone(x.Shape)
		s[last] = Fixed(1)
		n.Outputs = append(n.Outputs, b.value("Mean", x.DType, s), b.value("InvStdDev", x.DType, s))
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
		axes, err := b.axes(n)
		if err != nil {
			return err
		}
		kept, count := slices.Clone(x.Shape), Fixed(1)
		for _, a := range axes {
			count = count.Times(kept[a])
			kept[a] = Fixed(1)
		}
		dx := b.broadcastTo(b.Reshape(dy, kept...), x.Shape)
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

// axes is the constant axes of a reduction, not negative.
func (b *backward) axes(n *Node) ([]int, error) {
	for _, i := range b.Initializers {
		if len(n.Inputs) > 1 && i.Value == n.Inputs[1] && i.Tensor != nil {
			axes := make([]int, len(i.Tensor.Ints))
			for k, a := range i.Tensor.Ints {
				axes[k] = int(a)
				if a < 0 {
					axes[k] += len(n.Inputs[0].Shape)
				}
			}
			return axes, nil
		}
	}
	return nil, fmt.Errorf("the axes are not constant")
}

// DifferentiableOperators lists the operators that have a rule, sorted.
func DifferentiableOperators() []string {
	return slices.Compact(slices.Sorted(func(yield func(string) bool) {
		maps.Keys(rules)(yield)
		maps.Keys(importedRules)(yield)
	}))
}
