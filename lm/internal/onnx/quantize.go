package onnx

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/x448/float16"
)

// weightLimit is the largest quantised weight. Seven bits of magnitude keep sums of two products within 16 bits, which
// the older x86 instructions add them up in; with eight they would saturate there, and results would depend on the
// machine.
const weightLimit = 63

// quantized is a weight matrix W [in × out] as W ≈ values·scale, one scale for each of its columns.
type quantized struct{ values, scale *Value }

// Quantize makes the matrix products with constant weights that outputs depend on run over 8-bit integers. Weights get
// a scale for each output channel. Activations get a scale for each row, when the graph is run: with one scale for a
// whole batch, as DynamicQuantizeLinear takes, the energy of a state would depend on which other states ran beside it.
//
// What outputs do not depend on, a backward pass, stays as it is.
func (p *Precision) Quantize(g *Graph, outputs []*Value) error {
	forward, _ := g.behind(outputs)
	varying := g.varying()
	constants := map[*Value]Initializer{}
	for _, c := range g.Initializers {
		constants[c.Value] = c
	}
	origins := map[*Value]*Value{} // before the nodes are taken apart
	for _, n := range g.Nodes {
		if len(n.Inputs) > 1 && n.Inputs[1] != nil {
			origins[n.Inputs[1]] = g.Origin(n.Inputs[1])
		}
	}
	rows := map[*Value]quantized{}
	nodes := g.Nodes
	g.Nodes = nil
	for i, n := range nodes {
		weight, ok := Initializer{}, false
		if forward[i] && n.Domain == "" && (n.Op == "Gemm" || n.Op == "MatMul") && varying[n.Inputs[0]] &&
			!varying[n.Inputs[1]] {
			weight, ok = constants[origins[n.Inputs[1]]]
		}
		x := n.Inputs
		if !ok || weight.Location == nil || len(weight.Value.Shape) != 2 || n.intAttribute("transA", 0) == 1 ||
			x[0].Unranked || len(x[0].Shape) < 2 {
			g.Nodes = append(g.Nodes, n)
			continue
		}
		if err := p.product(g, n, weight, rows); err != nil {
			return fmt.Errorf("onnx: quantize %s: %w", weight.Value.Name, err)
		}
	}
	return g.err
}

// product puts integer arithmetic instead of a Gemm or a MatMul.
func (p *Precision) product(g *Graph, n *Node, weight Initializer, rows map[*Value]quantized) error {
	w, err := p.quantize(g, weight, n.intAttribute("transB", 0) == 1)
	if err != nil {
		return err
	}
	x := n.Inputs[0]
	r, ok := rows[x]
	if !ok {
		r = g.quantizeRows(x)
		rows[x] = r
	}
	out := n.Outputs[0]
	columns := w.values.Shape[1]
	y := g.value("integer_product", Float, Shape{r.values.Shape[0], columns})
	g.Nodes = append(g.Nodes, &Node{Op: "MatMulIntegerToFloat", Domain: microsoftDomain, Outputs: []*Value{y},
		Inputs: []*Value{r.values, w.values, g.Scalar(1), w.scale, g.byteConstant(128)}})
	if alpha := float64(n.floatAttribute("alpha", 1)); alpha != 1 {
		r.scale = g.Mul(r.scale, g.Scalar(alpha))
	}
	y = g.Mul(y, r.scale)
	if len(n.Inputs) > 2 && n.Inputs[2] != nil {
		bias := n.Inputs[2]
		if beta := float64(n.floatAttribute("beta", 1)); beta != 1 {
			bias = g.Mul(bias, g.Scalar(beta))
		}
		y = g.Add(y, bias)
	}
	if len(out.Shape) != 2 {
		g.reshapeLike(y, &Value{Name: out.Name, DType: Float, Shape: out.Shape})
	}
	// Whoever read the product reads what the last of these nodes gives.
	g.Nodes[len(g.Nodes)-1].Outputs[0] = out
	return nil
}

// quantizeRows is x as rows of bytes around 128, times a scale for each row.
func (g *Graph) quantizeRows(x *Value) quantized {
	width := x.Shape[len(x.Shape)-1]
	flat := g.Reshape(x, x.Shape[:len(x.Shape)-1].product(), width)
	count := flat.Shape[0]
	most := g.node("ReduceMax", Float, Shape{count}, []*Value{g.unary("Abs", flat), g.Ints(1)},
		Attribute{"keepdims", int64(0)})
	// A row of zeros has no scale of its own.
	scale := g.node("Max", Float, Shape{count}, []*Value{g.Mul(most, g.Scalar(1.0/127)), g.Scalar(1e-30)})
	middle := g.node("Expand", Uint8, Shape{count}, []*Value{g.byteConstant(128), g.Sizes(Shape{count})})
	values := g.node("QuantizeLinear", Uint8, flat.Shape, []*Value{flat, scale, middle}, Attribute{"axis", int64(0)})
	return quantized{values, g.Reshape(scale, count, Fixed(1))}
}

func (g *Graph) byteConstant(x byte) *Value {
	return g.Constant("byte", Tensor{DType: Uint8, Raw: []byte{x}})
}

// quantize writes an 8-bit form of a weight matrix, which is [out × in] where transposed is set, to the file.
func (p *Precision) quantize(g *Graph, c Initializer, transposed bool) (quantized, error) {
	values, err := p.read(*c.Location, c.Value.DType)
	if err != nil {
		return quantized{}, err
	}
	in, _ := c.Value.Shape[0].Size()
	out, _ := c.Value.Shape[1].Size()
	at := func(i, j int64) float64 { return float64(values[i*out+j]) }
	if transposed {
		in, out = out, in
		at = func(i, j int64) float64 { return float64(values[j*in+i]) }
	}
	scales, bytes := make([]byte, 0, 4*out), make([]byte, in*out)
	for j := range out {
		most := 0.0
		for i := range in {
			most = max(most, math.Abs(at(i, j)))
		}
		scale := float64(float32(most / weightLimit))
		if scale == 0 {
			scale = 1 // a column of zeros, or of numbers that are nothing beside any other
		}
		scales = binary.LittleEndian.AppendUint32(scales, math.Float32bits(float32(scale)))
		for i := range in {
			bytes[i*out+j] = byte(int8(max(-weightLimit, min(weightLimit, math.Round(at(i, j)/scale)))))
		}
	}
	q := quantized{}
	place, err := p.write(bytes)
	if err != nil {
		return q, err
	}
	q.values = g.External(c.Value.Name+".int8", Int8, []int64{in, out}, place)
	if place, err = p.write(scales); err != nil {
		return q, err
	}
	q.scale = g.External(c.Value.Name+".scale", Float, []int64{out}, place)
	return q, nil
}

// Halve stores the single-precision matrices of a graph in half precision:
// arithmetic stays as it is, on weights that are rounded.
func (p *Precision) Halve(g *Graph) error {
	var casts []*Node
	for i, c := range g.Initializers {
		if c.Location == nil || c.Value.DType != Float || len(c.Value.Shape) < 2 {
			continue
		}
		values, err := p.read(*c.Location, Float)
		if err != nil {
			return fmt.Errorf("onnx: constant %s: %w", c.Value.Name, err)
		}
		var bytes []byte
		for _, x := range values {
			bytes = binary.LittleEndian.AppendUint16(bytes, float16.Fromfloat32(x).Bits())
		}
		place, err := p.write(bytes)
		if err != nil {
			return err
		}
		half := g.value(c.Value.Name+".float16", Float16, c.Value.Shape)
		g.Initializers[i] = Initializer{Value: half, Location: &place}
		casts = append(casts,
			&Node{Op: "Cast", Inputs: []*Value{half}, Outputs: []*Value{c.Value},
				Attributes: []Attribute{{"to", int64(Float)}}})
	}
	g.Nodes = append(casts, g.Nodes...)
	return g.err
}

// write puts bytes into the file and tells where.
func (p *Precision) write(bytes []byte) (Location, error) {
	if err := p.align(); err != nil {
		return Location{}, err
	}
	at := Location{File: p.file, Offset: p.size, Length: int64(len(bytes))}
	n, err := p.out.Write(bytes)
	p.size += int64(n)
	// Packing leaves it where it is.
	p.places[at] = at
	return at, err
}

// read is a floating-point constant in single precision.
func (p *Precision) read(at Location, t DType) ([]float32, error) {
	format := dtypes[t].format
	if format == 0 {
		return nil, fmt.Errorf("elements of %s", t)
	}
	file, err := at.open(p.dir)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	bytes := make([]byte, at.Length)
	if _, err := file.ReadAt(bytes, at.Offset); err != nil {
		return nil, fmt.Errorf("%s: %w", at.File, err)
	}
	return format.Float32s(bytes), nil
}
