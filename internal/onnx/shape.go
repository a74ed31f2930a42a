package onnx

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Dim is one dimension of a shape: a fixed factor times zero or more symbols.
// Dims are comparable with ==.
type Dim struct {
	factor  int64
	symbols string // sorted, joined by "*"
}

// Fixed returns a dimension of known size.
func Fixed(n int64) Dim { return Dim{factor: n} }

// Symbol returns a dimension whose size an input tensor decides.
func Symbol(name string) Dim { return Dim{factor: 1, symbols: name} }

// Times returns the product of two dimensions.
func (d Dim) Times(e Dim) Dim {
	names := slices.Concat(d.names(), e.names())
	slices.Sort(names)
	return Dim{saturated(d.factor, e.factor), strings.Join(names, "*")}
}

// names returns the symbols of d, one by one.
func (d Dim) names() []string {
	if d.symbols == "" {
		return nil
	}
	return strings.Split(d.symbols, "*")
}

// saturated returns a·b, or the largest or smallest int64 beyond them.
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

// plus returns d + e, or unknownElement if it is no number times symbols.
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

// over returns d/e, or false if it is no whole number times symbols.
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

// Size returns the size of a fixed dimension, or false if d has symbols.
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

// Sizes returns the shape as numbers, or false if a dimension is symbolic.
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

// FixedShape returns a shape of known sizes.
func FixedShape(sizes ...int64) Shape {
	s := make(Shape, len(sizes))
	for i, n := range sizes {
		s[i] = Fixed(n)
	}
	return s
}

func (s Shape) product() Dim {
	p := Fixed(1)
	for _, d := range s {
		p = p.Times(d)
	}
	return p
}

// uncertain reports whether d, of an imported graph, may have any size, even 1:
// its symbol begins with a question mark.
func (d Dim) uncertain() bool { return strings.HasPrefix(d.symbols, "?") }

// fits reports whether d and e can have the same size.
func (d Dim) fits(e Dim) bool { return d == e || d.uncertain() || e.uncertain() }

// broadcast returns the NumPy broadcast of two shapes, as ONNX uses it, or
// false if there is none. A symbol broadcasts only with itself, a fixed 1, and
// an uncertain dimension. An uncertain dimension gives an uncertain result,
// except that a fixed size above 1 is always the result.
func broadcast(a, b Shape) (Shape, bool) {
	out := make(Shape, max(len(a), len(b)))
	for i := range out {
		x := Fixed(1)
		y := Fixed(1)
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

// either returns the broadcast of x and y, at least one of which is uncertain.
func either(x, y Dim) Dim {
	for _, d := range []Dim{x, y} {
		if _, fixed := d.Size(); fixed {
			return d
		}
	}
	names := []string{x.String(), y.String()}
	slices.Sort(names)
	// The same x and y give the same symbol. A hash keeps it short: joined
	// names would double with every broadcast.
	h := fnv.New64a()
	h.Write([]byte(strings.Join(names, "|")))
	return Symbol(fmt.Sprintf("?%x", h.Sum64()))
}
