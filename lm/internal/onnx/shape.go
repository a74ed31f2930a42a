package onnx

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Dim is one dimension of a shape: a fixed factor times zero or more symbols. Dims are comparable with ==.
type Dim struct {
	factor  int64
	symbols string // sorted, joined by "*"
}

// Fixed is a dimension of known size.
func Fixed(n int64) Dim { return Dim{factor: n} }

// Symbol is a dimension that an input tensor decides when the graph is run.
func Symbol(name string) Dim { return Dim{factor: 1, symbols: name} }

// Times is the product of two dimensions.
func (d Dim) Times(e Dim) Dim {
	names := slices.Concat(d.names(), e.names())
	slices.Sort(names)
	return Dim{saturated(d.factor, e.factor), strings.Join(names, "*")}
}

// names are the symbols, one by one.
func (d Dim) names() []string {
	if d.symbols == "" {
		return nil
	}
	return strings.Split(d.symbols, "*")
}

// saturated is a product, or the largest or smallest number if the product would pass it.
func saturated(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	if p := a * b; p/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64) {
		return p
	}
	if (a < 0) != (b < 0) {
		return math.MinInt64
	}
	return math.MaxInt64
}

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
	left := d.names()
	for _, s := range e.names() {
		i := slices.Index(left, s)
		if i < 0 {
			return Dim{}, false
		}
		left = slices.Delete(left, i, i+1)
	}
	return Dim{d.factor / e.factor, strings.Join(left, "*")}, true
}

// Size is the size of a fixed dimension; false when it has symbols.
func (d Dim) Size() (int64, bool) { return d.factor, d.symbols == "" }

// String returns a form such as "24", "rows" or "2*rows*tokens".
func (d Dim) String() string {
	switch {
	case d.symbols == "":
		return strconv.FormatInt(d.factor, 10)
	case d.factor == 1:
		return d.symbols
	}
	return strconv.FormatInt(d.factor, 10) + "*" + d.symbols
}

// Shape is the shape of a value, outermost dimension first.
type Shape []Dim

// String returns a form such as "[rows tokens 256]".
func (s Shape) String() string {
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = d.String()
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// Sizes is the shape as numbers; false when a dimension is symbolic.
func (s Shape) Sizes() ([]int64, bool) {
	sizes := make([]int64, len(s))
	for i, d := range s {
		n, ok := d.Size()
		if !ok {
			return nil, false
		}
		sizes[i] = n
	}
	return sizes, true
}

// FixedShape is a shape of known sizes.
func FixedShape(sizes ...int64) Shape {
	s := make(Shape, len(sizes))
	for i, n := range sizes {
		s[i] = Fixed(n)
	}
	return s
}

// product is the number of elements.
func (s Shape) product() Dim {
	p := Fixed(1)
	for _, d := range s {
		p = p.Times(d)
	}
	return p
}

// uncertain reports whether a dimension of an imported graph could turn out to
// be anything, 1 included: its symbol begins with a question mark.
func (d Dim) uncertain() bool { return strings.HasPrefix(d.symbols, "?") }

// fits reports whether two dimensions can be the same.
func (d Dim) fits(e Dim) bool { return d == e || d.uncertain() || e.uncertain() }

// broadcast is the NumPy broadcast of two shapes, as ONNX uses it. Symbols broadcast only with themselves and with a
// fixed 1, unless they are uncertain. The result of an uncertain one is uncertain too, except that a size above 1 is
// the result whatever the other is.
func broadcast(a, b Shape) (Shape, bool) {
	out := make(Shape, max(len(a), len(b)))
	for i := range out {
		x, y := Fixed(1), Fixed(1)
		if k := i - (len(out) - len(a)); k >= 0 {
			x = a[k]
		}
		if k := i - (len(out) - len(b)); k >= 0 {
			y = b[k]
		}
		switch {
		case x == y || y == Fixed(1):
			out[i] = x
		case x == Fixed(1):
			out[i] = y
		case x.uncertain() || y.uncertain():
			out[i] = either(x, y)
		default:
			return nil, false
		}
	}
	return out, true
}

// either is the broadcast of two dimensions, one of which is uncertain.
func either(x, y Dim) Dim {
	for _, d := range []Dim{x, y} {
		if _, fixed := d.Size(); fixed {
			return d
		}
	}
	names := []string{x.String(), y.String()}
	slices.Sort(names)
	// The same two give the same. Hashed, because a chain of them would double in length at every link.
	h := fnv.New64a()
	h.Write([]byte(strings.Join(names, "|")))
	return Symbol(fmt.Sprintf("?%x", h.Sum64()))
}
