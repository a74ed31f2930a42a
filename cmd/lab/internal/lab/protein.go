package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

func (t *protein) touch(i, j int) { t.contacts[i*t.sites+j], t.contacts[j*t.sites+i] = true, true }

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
	n := len(p.field)
	for i := range p.sites {
		for j := range i {
			for a := i * states; a < (i+1)*states && p.contacts[i*p.sites+j]; a++ {
				for b := j * states; b < (j+1)*states; b++ {
					x := strength * r.NormFloat64()
					p.couplings[a*n+b], p.couplings[b*n+a] = x, x
				}
			}
		}
	}
	copy(p.field, targets.Normals(r, len(p.field), 0.25))
	return p
}

// Bounds of proteins: J has the square of their product.
const (
	maxSequence = 512
	maxStates   = 32
)

// residues are the letters of an alignment's states: a gap and the amino acids.
const residues = "-ACDEFGHIKLMNPQRSTVWY"

// readAlignment reads sequences of one length in FASTA. Lower case, points and
// letters of no amino acid become gaps, as aligners mean them.
func readAlignment(text string) (sequences []int, sites int, err error) {
	for n, record := range strings.Split("\n"+text, "\n>") {
		_, letters, _ := strings.Cut(record, "\n")
		letters = strings.Join(strings.Fields(letters), "")
		if letters == "" {
			continue // what is before the first
		}
		length := len(sequences)
		for _, letter := range letters {
			sequences = append(sequences, max(0, strings.IndexRune(residues, letter)))
		}
		if length = len(sequences) - length; sites == 0 {
			sites = length
		}
		if length != sites {
			return nil, 0, fmt.Errorf("sequence %d has %d letters, and the first %d: an alignment is wanted", n, length,
				sites)
		}
	}
	if sites < 2 || sites > maxSequence {
		return nil, 0, fmt.Errorf("sequences of %d letters: there can be 2 to %d", sites, maxSequence)
	}
	return sequences, sites, nil
}

// readContacts reads pairs of sites, counted from 1, a line each.
func (t *protein) readContacts(text string) error {
	for n, line := range strings.Split(text, "\n") {
		words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r,", r) })
		if len(words) == 0 {
			continue
		}
		i, _ := strconv.Atoi(words[0])
		j, _ := strconv.Atoi(words[len(words)-1])
		if len(words) != 2 || min(i, j) < 1 || max(i, j) > t.sites {
			return fmt.Errorf("line %d: %q is no pair of sites from 1 to %d", n+1, line, t.sites)
		}
		t.touch(i-1, j-1)
	}
	if !slices.Contains(t.contacts, true) {
		return errors.New("no contact in it")
	}
	return nil
}
