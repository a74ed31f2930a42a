package lab

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"infill/internal/logmath"
	"infill/internal/targets"
)

// protein is the Potts model of a protein family, with a coupling of its own for every two categories of every two
// sites, and its contacts, the pairs of sites that touch:
//
//	U(x) = Σ_i h_i[x_i] + Σ_{i<j} J_ij[x_i, x_j]
type protein struct {
	sites, states int
	weights       []float64 // h, then J
	field         []float64 // h, [sites × states]
	couplings     []float64 // J, [(site, state) × (site, state)], symmetric, 0 within a site
	contacts      []bool    // [sites × sites]
	categories    []int
}

func newProtein(sites, states int) *protein {
	n := sites * states
	w := make([]float64, n+n*n)
	return &protein{sites, states, w, w[:n], w[n:], make([]bool, sites*sites), slices.Repeat([]int{states}, sites)}
}

func (t *protein) Categories() []int { return t.categories }

func (t *protein) Energy(_ context.Context, states []int, energy []float64) error {
	n := t.sites * t.states
	for c := range energy {
		state, u := states[c*t.sites:(c+1)*t.sites], 0.0
		for i, v := range state {
			a := i*t.states + v
			u += t.field[a]
			for j, w := range state[:i] {
				u += t.couplings[a*n+j*t.states+w]
			}
		}
		energy[c] = u
	}
	return nil
}

func (t *protein) EnergyGradient(_ context.Context, states []int, energy, gradient []float64) error {
	n := t.sites * t.states
	for c := range energy {
		state, out := states[c*t.sites:(c+1)*t.sites], gradient[c*n:(c+1)*n]
		copy(out, t.field)
		for j, w := range state {
			a := j*t.states + w
			floats.Add(out, t.couplings[a*n:(a+1)*n])
		}
		u := 0.0
		for i, v := range state {
			a := i*t.states + v
			u += (out[a] + t.field[a]) / 2 // every pair is met twice
		}
		energy[c] = u
	}
	return nil
}

func (t *protein) LogConditionals(_ context.Context, states []int, slots []int, logp []float64) error {
	n := t.sites * t.states
	for c, i := range slots {
		row := logp[c*t.states : (c+1)*t.states]
		first := i * t.states
		copy(row, t.field[first:first+t.states])
		for j, w := range states[c*t.sites : (c+1)*t.sites] {
			a := (j*t.states + w) * n
			floats.Add(row, t.couplings[a+first:a+first+t.states])
		}
		logmath.Normalise(row)
	}
	return nil
}

func (t *protein) parameters() []float64 { return t.weights }

// addGradient adds scale times the mean over the states of ∂U/∂h, and of ∂U/∂J both ways.
func (t *protein) addGradient(_ context.Context, states []int, scale float64, gradient []float64) error {
	n := t.sites * t.states
	field, couplings := gradient[:n], gradient[n:]
	scale /= float64(len(states) / t.sites)
	for state := range slices.Chunk(states, t.sites) {
		for i, v := range state {
			a := i*t.states + v
			field[a] += scale
			for j, w := range state[:i] {
				b := j*t.states + w
				couplings[a*n+b] += scale
				couplings[b*n+a] += scale
			}
		}
	}
	return nil
}

func (p *protein) touch(i, j int) { p.contacts[i*p.sites+j], p.contacts[j*p.sites+i] = true, true }

// couple sets one coupling, both ways.
func (p *protein) couple(i, v, j, w int, value float64) {
	n, a, b := p.sites*p.states, i*p.states+v, j*p.states+w
	p.couplings[a*n+b], p.couplings[b*n+a] = value, value
}

// folded is a made-up protein: a chain laid in a snake over a lattice. Sites that are neighbours there, and not along
// the chain, touch; J of those is N(0, strength²), h is N(0, 0.25²), and all else is 0.
func folded(rows, columns, states int, strength float64, r *rand.Rand) *protein {
	p := newProtein(rows*columns, states)
	place := func(row, column int) int {
		if row%2 == 1 {
			column = columns - 1 - column
		}
		return row*columns + column
	}
	for row := range rows - 1 {
		for column := range columns {
			if i, j := place(row, column), place(row+1, column); j-i > 1 {
				p.touch(i, j)
			}
		}
	}
	for i := range p.sites {
		for j := range i {
			if p.contacts[i*p.sites+j] {
				for v := range states {
					for w := range states {
						p.couple(i, v, j, w, strength*r.NormFloat64())
					}
				}
			}
		}
	}
	copy(p.field, targets.Normals(r, len(p.field), 0.25))
	return p
}

// readModel reads h and J from a CSV file: h,SITE,STATE,VALUE and J,SITE,STATE,SITE,STATE,VALUE, where sites and states
// count from 1. What it does not name is 0. Sites that a coupling joins touch.
func readModel(r io.Reader) (*protein, error) {
	rows := csv.NewReader(r)
	rows.FieldsPerRecord = -1
	type entry struct {
		at    []int // site, state, site, state
		value float64
	}
	var entries []entry
	most, seen := [2]int{maxSequence, maxStates}, [2]int{} // of sites and states
	for {
		row, err := rows.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := rows.FieldPos(0)
		if !(row[0] == "h" && len(row) == 4 || row[0] == "J" && len(row) == 6) {
			return nil, fmt.Errorf("line %d: it is neither h,SITE,STATE,VALUE nor J,SITE,STATE,SITE,STATE,VALUE", line)
		}
		e, last := entry{}, row[len(row)-1]
		for i, word := range row[1 : len(row)-1] {
			n, err := strconv.Atoi(word)
			if err != nil || n < 1 || n > most[i%2] {
				return nil, fmt.Errorf("line %d: %q is not a whole number from 1 to %d", line, word, most[i%2])
			}
			e.at, seen[i%2] = append(e.at, n-1), max(seen[i%2], n)
		}
		if e.value, err = strconv.ParseFloat(last, 64); err != nil || !logmath.Finite(e.value) {
			return nil, fmt.Errorf("line %d: %q is not a finite number", line, last)
		}
		if len(e.at) == 4 && e.at[0] == e.at[2] {
			return nil, fmt.Errorf("line %d: a coupling of site %d with itself", line, e.at[0]+1)
		}
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return nil, errors.New("no line in it")
	}
	p := newProtein(seen[0], seen[1])
	for _, e := range entries {
		if len(e.at) == 2 {
			p.field[e.at[0]*p.states+e.at[1]] = e.value
		} else {
			p.couple(e.at[0], e.at[1], e.at[2], e.at[3], e.value)
			p.touch(e.at[0], e.at[2])
		}
	}
	return p, nil
}

// Bounds of proteins: J has the square of their product.
const (
	maxSequence = 512
	maxStates   = 32
)

// readFile reads the file that an option names.
func readFile(option, path string, read func(io.Reader) error) error {
	file, err := os.Open(path)
	if err != nil {
		return refuse(option, "%w", err)
	}
	defer file.Close()
	if err := read(file); err != nil {
		return refuse(option, "%s: %w", path, err)
	}
	return nil
}

// residues are the letters of an alignment's states: a gap and the amino acids.
const residues = "-ACDEFGHIKLMNPQRSTVWY"

// readAlignment reads sequences of one length in FASTA. Lower case, points and
// letters of no amino acid become gaps, as aligners mean them.
func readAlignment(r io.Reader) (sequences []int, sites int, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	var row []int
	finish := func() error {
		if row == nil {
			return nil
		}
		if sites == 0 {
			sites = len(row)
		}
		if len(row) != sites {
			return fmt.Errorf("sequence %d has %d letters, and the first %d: an alignment is wanted",
				len(sequences)/sites+1, len(row), sites)
		}
		sequences, row = append(sequences, row...), nil
		return nil
	}
	for lines.Scan() {
		text := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(text, ">") {
			if err := finish(); err != nil {
				return nil, 0, err
			}
			continue
		}
		for _, letter := range text {
			row = append(row, max(0, strings.IndexRune(residues, letter)))
		}
	}
	if err := errors.Join(lines.Err(), finish()); err != nil {
		return nil, 0, err
	}
	if sites < 2 || sites > maxSequence {
		return nil, 0, fmt.Errorf("sequences of %d letters: there can be 2 to %d", sites, maxSequence)
	}
	return sequences, sites, nil
}

// readContacts reads pairs of sites, counted from 1, a line each.
func readContacts(r io.Reader, p *protein) error {
	lines := bufio.NewScanner(r)
	n := 0
	for line := 1; lines.Scan(); line++ {
		words := strings.FieldsFunc(lines.Text(), func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
		if len(words) == 0 {
			continue
		}
		var i, j int
		if len(words) == 2 {
			i, _ = strconv.Atoi(words[0])
			j, _ = strconv.Atoi(words[1])
		}
		if min(i, j) < 1 || max(i, j) > p.sites {
			return fmt.Errorf("line %d: %q is no pair of sites from 1 to %d", line, lines.Text(), p.sites)
		}
		p.touch(i-1, j-1)
		n++
	}
	if n == 0 {
		return errors.New("no contact in it")
	}
	return lines.Err()
}
