package lab

import (
	"bytes"
	"embed"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"infill/internal/logmath"
)

// The data that the laboratory carries; data/README.md has sources and licences.
//
//go:embed data/*.csv data/digits.txt
var carried embed.FS

// readData reads a file that the laboratory carries by a name, or one of the user's.
func readData(name string, known []string, extension string) ([]byte, error) {
	if slices.Contains(known, name) {
		return carried.ReadFile("data/" + name + extension)
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%w: name a file, or one of %s", err, strings.Join(known, ", "))
	}
	return text, err
}

// regressions lists the tables that the laboratory carries.
func regressions() []string { return []string{"diabetes", "election", "breast-cancer"} }

// regression is a table of examples with a number to predict.
type regression struct {
	inputs int
	x      []float64 // [examples × inputs]
	y      []float64
}

// maxTable bounds what a table may hold.
const maxTable = 1 << 24

// readRegression reads a table that the laboratory carries, or a CSV file with a
// header, numbers, and what is to be predicted in the last column.
func readRegression(name string) (*regression, error) {
	text, err := readData(name, regressions(), ".csv")
	if err != nil {
		return nil, refuse("data", "%w", err)
	}
	t, err := parseRegression(text)
	if err != nil {
		return nil, refuse("data", "%s: %w", name, err)
	}
	return t, nil
}

func parseRegression(text []byte) (*regression, error) {
	table := csv.NewReader(bytes.NewReader(text))
	table.TrimLeadingSpace = true
	rows, err := table.ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) < 6 {
		return nil, fmt.Errorf("%d lines: a header is needed, and 5 examples, a fifth of them to test with", len(rows))
	}
	last := len(rows[0]) - 1
	if last < 1 || len(rows)*last > maxTable {
		return nil, fmt.Errorf("%d columns and %d lines: the last column is predicted from those before it, of at most "+
			"%d numbers", last+1, len(rows), maxTable)
	}
	t := &regression{inputs: last}
	for n, row := range rows[1:] {
		for i, word := range row {
			x, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
			if err != nil || !logmath.Finite(x) {
				return nil, fmt.Errorf("line %d, column %s: %q is not a finite number", n+2, rows[0][i], word)
			}
			if i < last {
				t.x = append(t.x, x)
			} else {
				t.y = append(t.y, x)
			}
		}
	}
	if slices.Min(t.y) == slices.Max(t.y) {
		return nil, fmt.Errorf("column %s is the same in every line: there is nothing to predict", rows[0][last])
	}
	return t, nil
}

// split is a table in two parts, a fifth to test with, as the papers have it: the outputs between 0 and 1, and the
// inputs, by the training part, of mean 0 and standard deviation 1.
type split struct {
	trainX, trainY, testX, testY []float64
}

func (t *regression) split(r *rand.Rand) split {
	var s split
	examples := len(t.y)
	low, high := slices.Min(t.y), slices.Max(t.y)
	train := examples - examples/5
	for n, i := range r.Perm(examples) {
		x, y := t.x[i*t.inputs:(i+1)*t.inputs], (t.y[i]-low)/(high-low)
		if n < train {
			s.trainX, s.trainY = append(s.trainX, x...), append(s.trainY, y)
		} else {
			s.testX, s.testY = append(s.testX, x...), append(s.testY, y)
		}
	}
	column := make([]float64, train)
	for j := range t.inputs {
		for i := range column {
			column[i] = s.trainX[i*t.inputs+j]
		}
		mean, deviation := stat.PopMeanStdDev(column, nil)
		if deviation == 0 {
			deviation = 1 // a column that is the same everywhere tells nothing
		}
		for _, part := range [][]float64{s.trainX, s.testX} {
			for i := j; i < len(part); i += t.inputs {
				part[i] = (part[i] - mean) / deviation
			}
		}
	}
	return s
}

func rootMeanSquare(a, b []float64) float64 {
	return floats.Distance(a, b, 2) / math.Sqrt(float64(len(a)))
}
