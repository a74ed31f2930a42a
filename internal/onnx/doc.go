// Package onnx builds ONNX graphs, differentiates them, and writes them.
//
// A [Graph] is a list of nodes in topological order over values with known
// element types and shapes. Shapes are symbolic: a [Dim] is a fixed size, a
// named symbol such as "rows", or a product of both, so that one graph serves
// every batch size and every template length.
//
// [Graph.Differentiate] appends the reverse-mode derivative of chosen values as
// ordinary nodes, by one rule per operator (rules.go). onnxruntime's inference
// builds carry no gradient operators; a graph that holds its own backward pass
// needs none.
//
// The package never copies weights: [Graph.External] refers to bytes inside
// another file, such as a tensor inside model.safetensors.
//
// The package is pure Go and knows neither onnxruntime nor any model.
//
// If a caller makes a mistake (shapes that do not fit, say), the graph records
// it. [Graph.Encode] returns the first mistake as its error.
package onnx
