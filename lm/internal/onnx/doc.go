// Package onnx builds ONNX graphs, differentiates them, and writes them.
//
// A [Graph] is a list of nodes in topological order over values that know their element type and their shape. Shapes
// are symbolic: a [Dim] is a fixed size, a named symbol such as "rows", or a product of these, so that one graph serves
// every batch size and every template length.
//
// [Graph.Differentiate] appends the reverse-mode derivative of chosen values as ordinary nodes, by one rule per
// operator (rules.go). onnxruntime's inference builds carry no gradient operators; a graph that holds its own backward
// pass needs none.
//
// Weights are never copied: [Graph.External] refers to bytes inside another
// file, such as a tensor inside model.safetensors.
//
// The package is pure Go and knows neither onnxruntime nor any model.
//
// Mistakes in building (shapes that do not fit, say) are remembered by the
// graph, and returned by [Graph.Encode]; the first one counts.
package onnx
