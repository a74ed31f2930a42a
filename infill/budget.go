package infill

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"infill/internal/phrase"
)

// DefaultRows are the rows of the zero Budget.
const DefaultRows = 4000

// A Budget bounds an answer's Rows, Seconds, or both; zero is DefaultRows.
type Budget struct {
	Rows    int     // most model rows; a draw made again counts as one more
	Seconds float64 // most seconds since the start of the fill
}

// MarshalText writes what UnmarshalText reads: "500" for rows, "2s" for seconds.
func (b Budget) MarshalText() ([]byte, error) {
	if b.Seconds > 0 {
		return fmt.Appendf(nil, "%gs", b.Seconds), nil
	}
	return strconv.AppendInt(nil, int64(b.Rows), 10), nil
}

// UnmarshalText reads "500" as rows and "2s" as seconds.
func (b *Budget) UnmarshalText(text []byte) error {
	var read Budget
	var ok bool
	seconds, timed := strings.CutSuffix(string(text), "s")
	if timed {
		read.Seconds, ok = number([]byte(seconds), math.SmallestNonzeroFloat64, math.MaxFloat64)
	} else {
		read.Rows, ok = whole(text, 1, math.MaxInt)
	}
	if !ok {
		return errBudget
	}
	*b = read
	return nil
}

var errBudget = errors.New("a number of model rows above 0, or seconds above 0, as in 2s")

// Check returns an error for bounds below 0 or without an end.
func (b Budget) Check() error {
	if b.Rows < 0 || !(b.Seconds >= 0 && b.Seconds <= math.MaxFloat64) {
		return errBudget
	}
	return nil
}

// room returns the number of further rows that the budget allows after rows, 0 if
// the seconds since began are used up.
func (b Budget) room(rows int, began time.Time) int {
	if b.Seconds > 0 && time.Since(began).Seconds() >= b.Seconds {
		return 0
	}
	if b.Rows == 0 {
		return math.MaxInt
	}
	return max(0, b.Rows-rows)
}

// share returns the used part of the budget, from 0 to 1.
func (b Budget) share(rows int, began time.Time) float64 {
	if b.Seconds > 0 {
		return min(1, time.Since(began).Seconds()/b.Seconds)
	}
	return min(1, float64(rows)/float64(max(1, b.Rows)))
}

// text writes the budget for people, as "2s" or "500 model rows".
func (b Budget) text() string {
	if b.Seconds > 0 {
		return fmt.Sprintf("%gs", b.Seconds)
	}
	return phrase.Counted(b.Rows, "model row")
}

// whole reads a whole number within bounds, also 3.0, as pandas writes 3.
func whole(text []byte, low, high int) (int, bool) {
	n, err := strconv.Atoi(strings.TrimSuffix(string(text), ".0"))
	return n, err == nil && low <= n && n <= high
}

func number(text []byte, low, high float64) (float64, bool) {
	x, err := strconv.ParseFloat(string(text), 64)
	return x, err == nil && low <= x && x <= high
}
