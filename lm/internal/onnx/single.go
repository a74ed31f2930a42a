package onnx

// SingleOutputs replaces what OpenVINO does not read: the mean and the inverse deviation that layer normalisations give
// beside their result become nodes of their own, and sums at rows become products with a matrix of zeros and ones.
func (g *Graph) SingleOutputs() error {
	old := g.Nodes
	g.Nodes = nil
	// What was computed for later nodes is not there yet.
	g.shapes, g.symbols, g.derived = map[string]*Value{}, map[string]*Value{}, map[string]*Value{}
	for _, n := range old {
		switch {
		case n.Domain == "" && n.Op == "LayerNormalization" && len(n.Outputs) > 1:
			g.Nodes = append(g.Nodes, n)
			x, statistics := n.Inputs[0], n.Outputs[1:]
			n.Outputs = n.Outputs[:1]
			last := len(x.Shape) - 1
			centred := g.Sub(x, g.as(statistics[0], g.ReduceMean(x, true, last)))
			deviation := g.unary("Sqrt",
				g.Add(g.ReduceMean(g.Mul(centred, centred), true, last),
					g.Scalar(float64(n.floatAttribute("epsilon", 1e-5)))))
			if len(statistics) > 1 {
				g.as(statistics[1], g.Div(g.Scalar(1), deviation))
			}
		case n.Domain == "" && n.Op == "ScatterND" && n.Attribute("reduction") == "add" && len(n.Outputs[0].Shape) == 2:
			x, places, updates := n.Inputs[0], n.Inputs[1], n.Inputs[2]
			rows, count, one := x.Shape[0], places.Shape[:len(places.Shape)-1].product(), Fixed(1)
			at := g.Reshape(places, one, count)
			here := g.node("Equal", Bool, Shape{rows, count}, []*Value{g.Reshape(g.Range(rows), rows, one), at})
			sum := g.MatMul(g.Cast(here, Float), g.Reshape(updates, count, x.Shape[1]))
			g.as(n.Outputs[0], g.Add(x, sum))
		default:
			g.Nodes = append(g.Nodes, n)
		}
	}
	return g.err
}

// as gives the result of the last node another name.
func (g *Graph) as(name, result *Value) *Value {
	g.Nodes[len(g.Nodes)-1].Outputs[0] = name
	return name
}
