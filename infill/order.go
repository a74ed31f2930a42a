package infill

import (
	"errors"
	"math"
	"slices"
	"strings"
)

// Order is the order in which the chain rule takes the blanks; the pieces of a
// blank are always neighbours. The values are "l2r" or "" (left to right), "r2l",
// and permutations of the blanks such as "2,1,3".
type Order string

// These are the values of Order, beside permutations.
const (
	LeftToRight Order = "l2r"
	RightToLeft Order = "r2l"
)

// Check returns an error unless the order is one.
func (o Order) Check() error {
	switch {
	case o == "both":
		return errors.New("an order: both went in 0.3, which has one order: leave it out")
	case o == LeftToRight || o == RightToLeft || o.numbers() != nil:
		return nil
	}
	return errors.New("one of l2r, r2l, or a permutation of the blanks, as in 2,1,3")
}

// numbers returns the blanks of a permutation, counted from 0; nil if the order
// is a named one or not valid.
func (o Order) numbers() []int {
	var list []int
	for text := range strings.SplitSeq(string(o), ",") {
		n, ok := whole([]byte(strings.TrimSpace(text)), 1, math.MaxInt32)
		if !ok {
			return nil
		}
		list = append(list, n-1)
	}
	for i, n := range slices.Sorted(slices.Values(list)) {
		if i != n {
			return nil
		}
	}
	return list
}
