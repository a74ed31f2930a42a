package onnx

import "slices"

// Constantly reports whether a value depends on no input of the graph.
func (g *Graph) Constantly(v *Value) bool { return !g.varying()[v] }

// varying returns the set of all values that depend on inputs of the graph.
func (g *Graph) varying() map[*Value]bool { return g.dependent(g.Inputs) }

// dependent returns the given values and all that depend on them.
func (g *Graph) dependent(values []*Value) map[*Value]bool {
	depends := map[*Value]bool{}
	for _, v := range values {
		depends[v] = true
	}
	for _, n := range g.Nodes {
		if slices.ContainsFunc(n.Inputs, func(v *Value) bool { return depends[v] }) {
			for _, o := range n.Outputs {
				depends[o] = true
			}
		}
	}
	return depends
}

// Origin follows v's casts and copies back to the value with its numbers.
func (g *Graph) Origin(v *Value) *Value {
	for {
		n := v.from
		if n == nil || n.Domain != "" || n.Op != "Cast" && n.Op != "Identity" {
			return v
		}
		v = n.Inputs[0]
	}
}

// At returns the rows of x [… × columns] at the given places [places ×
// columns]. A place is the index of a row of x when all leading dimensions are
// flattened into one. If x is a matrix product with a constant, and perhaps a
// constant is added, At multiplies only the rows at the places, because the
// output of a vocabulary head is far larger than its input.
func (g *Graph) At(x *Value, rows, columns Dim, places *Value) *Value {
	varying := g.varying()
	bias := x.from
	var shift *Value
	product := bias
	if bias != nil && bias.Domain == "" && bias.Op == "Add" {
		for i, v := range bias.Inputs {
			if !varying[v] && !v.Unranked && len(v.Shape) == 1 {
				shift = v
				product = bias.Inputs[1-i].from
			}
		}
	}
	if product != nil && product.Domain == "" && product.Op == "MatMul" {
		h := product.Inputs[0]
		w := product.Inputs[1]
		if !varying[w] && !h.Unranked && len(h.Shape) == 3 && len(w.Shape) == 2 && w.Shape[1] == columns &&
			h.Shape[:2].product() == rows {
			y := g.MatMul(g.Gather(g.Reshape(h, rows, h.Shape[2]), places, 0), w)
			if shift != nil {
				y = g.Add(y, shift)
			}
			return y
		}
	}
	flat := g.node("Reshape", x.DType, Shape{rows, columns}, []*Value{x, g.target(Shape{rows, columns}, 0)})
	if x.DType != Float {
		flat = g.node("Cast", Float, flat.Shape, []*Value{flat}, Attribute{"to", int64(Float)})
	}
	return g.Gather(flat, places, 0)
}
