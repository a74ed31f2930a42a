package papers

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
)

// numbersFile has every number that the papers print in tables: its place, "="
// or "≤" for a bound, the value, and the printed error, which is empty where the
// papers print no error. Mean ± error is taken as one standard error, which DLP does not say.
//
//go:embed numbers.csv
var numbersFile []byte

// A Place is where a paper prints a number: DLP is the discrete Langevin paper,
// GWG and ARM are the slides. Rows and columns have the words of the paper.
type Place struct{ Document, Table, Row, Column string }

func (p Place) String() string {
	return fmt.Sprintf("%s, table %s, %s, %s", p.Document, p.Table, p.Row, p.Column)
}

type Printed struct {
	Bound        bool // whether the number is only a bound from above
	Value, Error float64
}

var Numbers = sync.OnceValue(func() map[Place]Printed {
	all, err := readNumbers(numbersFile)
	if err != nil {
		panic(err) // the program's own file is wrong
	}
	return all
})

func readNumbers(text []byte) (map[Place]Printed, error) {
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	all := map[Place]Printed{}
	for n, row := range rows[1:] {
		p := Place{row[0], row[1], row[2], row[3]}
		if _, twice := all[p]; twice {
			return nil, fmt.Errorf("line %d: %s is there twice", n+2, p)
		}
		if row[4] != "=" && row[4] != "≤" {
			return nil, fmt.Errorf("line %d: %q is not = or ≤", n+2, row[4])
		}
		value, err := strconv.ParseFloat(row[5], 64)
		printed, failed := strconv.ParseFloat(cmp.Or(row[6], "0"), 64)
		err = errors.Join(err, failed)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+2, err)
		}
		all[p] = Printed{row[4] == "≤", value, printed}
	}
	return all, nil
}

// An Order is what two numbers of a paper say of each other.
type Order string

const (
	Missing Order = "missing" // the paper lacks one of them
	Bounded Order = "a bound" // one is only a bound
	Even    Order = "level"   // they differ by less than their errors
	Below   Order = "below"   // the first is the smaller
	Above   Order = "above"
)

// order compares two numbers of a paper. They have an order if both are
// numbers, not bounds, and differ by more than 1.96 standard errors of their
// difference, where an error that is not printed is 0.
func order(a, b Place) Order {
	all := Numbers()
	x, known := all[a]
	y, also := all[b]
	d := x.Value - y.Value
	switch {
	case !known || !also:
		return Missing
	case x.Bound || y.Bound:
		return Bounded
	case math.Abs(d) <= 1.96*math.Hypot(x.Error, y.Error):
		return Even
	case d < 0:
		return Below
	}
	return Above
}
