package onnx

import (
	"maps"
	"slices"
)

// DifferentiableOperators lists the operators that have a rule, sorted.
func DifferentiableOperators() []string { return slices.Sorted(maps.Keys(rules)) }
