package chains

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"infill/cmd/lab/internal/lab"
	"infill/internal/logmath"
	"infill/internal/safetensors"
	"infill/internal/targets"
)

// readRows reads the rows of a CSV file below the header: whole numbers of at
// least least, then a finite number. It reads an empty field as -1; the first
// and the last field must not be empty.
func readRows(text []byte, least int) (whole [][]int, numbers []float64, err error) {
	table := csv.NewReader(bytes.NewReader(text))
	table.TrimLeadingSpace = true
	rows, err := table.ReadAll()
	if err != nil {
		return nil, nil, err
	}
	if len(rows) < 2 || len(rows[0]) < 2 || len(rows)*len(rows[0]) > lab.MaxTable {
		return nil, nil, fmt.Errorf("%d lines: a header and rows of whole numbers, with a number behind them, are "+
			"wanted, %d fields at most", len(rows), lab.MaxTable)
	}
	for n, row := range rows[1:] {
		last := len(row) - 1
		x, err := strconv.ParseFloat(row[last], 64)
		if err != nil || !logmath.Finite(x) {
			return nil, nil, fmt.Errorf("line %d: %q is not a finite number", n+2, row[last])
		}
		list := make([]int, last)
		for i, word := range row[:last] {
			list[i] = -1
			if word == "" && i > 0 {
				continue
			}
			list[i], err = strconv.Atoi(word)
			if err != nil || list[i] < least || list[i] > lab.MaxTable {
				return nil, nil, fmt.Errorf("line %d: %q is not a whole number of %d or more", n+2, word, least)
			}
		}
		whole = append(whole, list)
		numbers = append(numbers, x)
	}
	return whole, numbers, nil
}

// couplings are those of an Ising model, [sites × sites], with its field.
type couplings struct{ weights, field []float64 }

// parseCouplings reads an Ising model from rows "site,other,coupling", and
// "site,,field" for the field of a site.
func parseCouplings(text []byte) (m couplings, err error) {
	list, numbers, err := readRows(text, 1)
	if err != nil {
		return m, err
	}
	n := 0
	for _, at := range list {
		if len(at) != 2 {
			return m, errors.New("three columns are wanted: site, other, coupling")
		}
		n = max(n, at[0], at[1])
	}
	if n > MaxLearnt {
		return m, fmt.Errorf("%d sites, and there can be %d", n, MaxLearnt)
	}
	m = couplings{make([]float64, n*n), make([]float64, n)}
	for i, at := range list {
		if at[1] < 0 {
			m.field[at[0]-1] = numbers[i]
		} else {
			m.weights[(at[0]-1)*n+at[1]-1] = numbers[i]
			m.weights[(at[1]-1)*n+at[0]-1] = numbers[i]
		}
	}
	return m, nil
}

// parsePotts reads a Potts model from rows "site,state,other,state,coupling",
// and "site,state,,,field" for a field.
func parsePotts(text []byte) (*Protein, error) {
	list, numbers, err := readRows(text, 1)
	if err != nil {
		return nil, err
	}
	sites := 0
	states := 0
	for i, at := range list {
		if len(at) != 4 || at[1] < 0 || (at[2] < 0) != (at[3] < 0) || at[0] == at[2] {
			return nil, fmt.Errorf("line %d: site, state, other, state, coupling are wanted, with another site", i+2)
		}
		sites = max(sites, at[0], at[2])
		states = max(states, at[1], at[3])
	}
	if sites*states > maxPotts || states > lab.MaxCategories {
		return nil, fmt.Errorf("%d sites of %d states: at most %d together", sites, states, maxPotts)
	}
	p := NewProtein(sites, states)
	for i, at := range list {
		a := (at[0]-1)*states + at[1] - 1
		if at[2] < 0 {
			p.Field[a] = numbers[i]
			continue
		}
		b := (at[2]-1)*states + at[3] - 1
		n := sites * states
		p.Couplings[a*n+b] = numbers[i]
		p.Couplings[b*n+a] = numbers[i]
	}
	return p, nil
}

// parseEnergies reads a table with a row for each state: for each slot a
// category, from 0, and then the energy.
func parseEnergies(text []byte) (*targets.Table, error) {
	list, numbers, err := readRows(text, 0)
	if err != nil {
		return nil, err
	}
	categories := make([]int, len(list[0]))
	known := map[string]bool{}
	for _, at := range list {
		for j, v := range at {
			categories[j] = max(categories[j], v+1)
		}
		known[fmt.Sprint(at)] = true
	}
	states := lab.StatesOf(categories)
	if most := slices.Max(categories); len(known) != len(list) || float64(len(list)) != states ||
		most > lab.MaxCategories || len(list)*len(categories)*most > lab.MaxTable {
		return nil, fmt.Errorf("%d different states in %d lines, and slots of %v categories have %.4g: give each "+
			"once, with at most %d categories, and %d states × slots × categories", len(known), len(list), categories,
			states, lab.MaxCategories, lab.MaxTable)
	}
	t, err := targets.NewTable(categories, rand.New(rand.NewPCG(0, 0)), targets.TableOptions{})
	if err != nil {
		return nil, err
	}
	for i, at := range list {
		t.Set(at, numbers[i])
	}
	return t, nil
}

// parseMachine reads an RBM's weights [hidden × visible] and biases.
func parseMachine(text []byte) (*targets.RBM, error) {
	f, err := safetensors.Parse(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return nil, err
	}
	var parts [3][]float64
	for i, name := range []string{"weights", "hidden", "visible"} {
		t, found := f.Tensor(name)
		if !found {
			return nil, fmt.Errorf("no tensor %q", name)
		}
		format := t.DType.Format()
		if format == 0 {
			return nil, fmt.Errorf("tensor %q holds %s, not floating-point numbers", name, t.DType)
		}
		for _, x := range format.Float32s(text[t.Offset : t.Offset+t.Length]) {
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				return nil, fmt.Errorf("%s: %v is not a finite number", name, x)
			}
			parts[i] = append(parts[i], float64(x))
		}
	}
	return targets.NewRBM(parts[0], parts[1], parts[2])
}

// MaxLearnt is the largest number of sites of an Ising model to learn: W has as
// many entries as its square.
const MaxLearnt = 1 << 11
