package onnx

import (
	"cmp"
	"fmt"
	"slices"
)

// Differentiate appends the reverse-mode derivative of outputs by wrt. Result i
// has the shape of wrt[i] and is
//
//	Σ_k seeds[k] · ∂outputs[k]/∂wrt[i]
//
// seeds[k] has the shape of outputs[k]. Values that do not depend on wrt, such
// as weights, cost nothing. An output that does not depend on wrt[i] adds
// zeros. If an operator between wrt and outputs has no rule, the error names
// it.
func (g *Graph) Differentiate(outputs, seeds, wrt []*Value) ([]*Value, error) {
	if len(outputs) != len(seeds) {
		return nil, fmt.Errorf("onnx: %d outputs with %d seeds", len(outputs), len(seeds))
	}
	b := &backward{Graph: g, active: g.dependent(wrt), cotangents: map[*Value]*Value{}}
	forward := g.Nodes // the rules append to g.Nodes
	for k, v := range outputs {
		if b.active[v] {
			b.accumulate(v, seeds[k])
		}
	}
	for i := len(forward) - 1; i >= 0; i-- {
		n := forward[i]
		dy := b.cotangents[n.Outputs[0]]
		// The rule of a Split reads the cotangents of all outputs, all other
		// rules only that of the first.
		further := slices.ContainsFunc(n.Outputs[1:], func(v *Value) bool { return b.cotangents[v] != nil })
		if dy == nil && !further {
			continue
		}
		rule, ok := rules[n.Op]
		if !ok || n.Domain != "" || further && n.Op != "Split" {
			return nil, &NoRuleError{Op: n.Op, Domain: n.Domain, Output: n.Outputs[0].Name}
		}
		for _, v := range slices.Concat(n.Inputs, n.Outputs) {
			if v != nil && v.Unranked {
				return nil, g.unknown(v)
			}
		}
		rule(b, n, dy)
		if b.refused != nil {
			return nil, fmt.Errorf("onnx: derivative of %s (%s): %w", n.Op, n.Outputs[0].Name, b.refused)
		}
	}
	gradients := make([]*Value, len(wrt))
	for i, v := range wrt {
		gradients[i] = b.cotangents[v]
		if gradients[i] == nil {
			gradients[i] = g.Zeros(v.Shape)
		}
	}
	return gradients, g.err
}

// unknown is the error of an operator for which v's shape or type is not known.
func (g *Graph) unknown(v *Value) error {
	for {
		n := v.from
		if n == nil {
			return fmt.Errorf("onnx: the shape or the type of %s is not known", v.Name)
		}
		i := slices.IndexFunc(n.Inputs, func(x *Value) bool { return x != nil && (x.Unranked || x.DType == 0) })
		if i < 0 {
			return &NoRuleError{Op: n.Op, Domain: n.Domain, Output: n.Outputs[0].Name}
		}
		v = n.Inputs[i]
	}
}

// NoRuleError names an operator that cannot be differentiated.
type NoRuleError struct{ Op, Domain, Output string }

// Error returns one line.
func (e *NoRuleError) Error() string {
	op := e.Op
	if e.Domain != "" {
		op = e.Domain + "." + op
	}
	return fmt.Sprintf("onnx: operator %s (%s) has no differentiation rule", op, e.Output)
}

type backward struct {
	*Graph
	active     map[*Value]bool   // values that depend on wrt
	cotangents map[*Value]*Value // ∂(seeded outputs)/∂value, summed so far
	refused    error             // why the last node has no derivative
}

// refuse records why a node has no derivative, the first reason of several.
func (b *backward) refuse(format string, arguments ...any) {
	b.refused = cmp.Or(b.refused, fmt.Errorf(format, arguments...))
}

// wants reports whether the derivative with respect to v is needed.
func (b *backward) wants(v *Value) bool { return v != nil && b.active[v] }

// accumulate adds a contribution to v's cotangent.
func (b *backward) accumulate(v, contribution *Value) {
	if !b.wants(v) {
		return
	}
	if sum := b.cotangents[v]; sum != nil {
		contribution = b.Add(sum, contribution)
	}
	b.cotangents[v] = contribution
}

// unbroadcast sums dy over the dimensions along which x was repeated.
func (b *backward) unbroadcast(dy, x *Value) *Value {
	extra := len(dy.Shape) - len(x.Shape)
	var axes []int
	for i, d := range dy.Shape {
		if i >= extra && d != x.Shape[i-extra] && d.fits(x.Shape[i-extra]) {
			if n, fixed := x.Shape[i-extra].Size(); !fixed || n != 1 && d != Fixed(n) {
				return b.reduceTo(dy, x)
			}
		}
		if i < extra || (x.Shape[i-extra] == Fixed(1) && d != Fixed(1)) {
			axes = append(axes, i)
		}
	}
	if len(axes) == 0 {
		return dy
	}
	return b.Reshape(b.ReduceSum(dy, true, axes...), x.Shape...)
}
