package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/floats"

	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// protein is the Potts model of a protein family, with its contacts, which are
// pairs of sites that touch. Each two categories of each two sites have a
// coupling of their own:
//
//	U(x) = Σ_i h_i[x_i] + Σ_{i<j} J_ij[x_i, x_j]
type protein struct {
	sites, states int
	weights       []float64 // h, then J
	field         []float64 // h, [sites × states]
	couplings     []float64 // J, [(site, state) × (site, state)], symmetric, 0 within a site
	contacts      []bool    // which sites touch, [sites × sites]
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
		state := states[c*t.sites : (c+1)*t.sites]
		u := 0.0
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
		state := states[c*t.sites : (c+1)*t.sites]
		out := gradient[c*n : (c+1)*n]
		copy(out, t.field)
		for j, w := range state {
			a := j*t.states + w
			floats.Add(out, t.couplings[a*n:(a+1)*n])
		}
		u := 0.0
		for i, v := range state {
			a := i*t.states + v
			u += (out[a] + t.field[a]) / 2 // the sum counts every pair twice
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

// addGradient adds scale times the mean over the states of ∂U/∂h, and of ∂U/∂J
// for both orders of a pair.
func (t *protein) addGradient(_ context.Context, states []int, scale float64, gradient []float64) error {
	n := t.sites * t.states
	field := gradient[:n]
	couplings := gradient[n:]
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

func (t *protein) touch(i, j int) {
	t.contacts[i*t.sites+j] = true
	t.contacts[j*t.sites+i] = true
}

// folded makes up a protein, a chain that winds over a lattice like a snake.
// Two sites touch if they are neighbours on the lattice but not on the chain. J
// is from N(0, strength²) for sites that touch, else 0; h is from N(0, 0.25²).
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
					p.couplings[a*n+b] = x
					p.couplings[b*n+a] = x
				}
			}
		}
	}
	copy(p.field, targets.Normals(r, len(p.field), 0.25))
	return p
}

// These bounds for proteins and Potts models limit the size of J, which has
// (sites × states)² entries.
const (
	maxSequence = 512
	maxStates   = 32
	maxPotts    = 1 << 12
)

// residues lists the letters of the states in an alignment: the gap, then the
// amino acids.
const residues = "-ACDEFGHIKLMNPQRSTVWY"

// readAlignment reads sequences of equal length in FASTA. Lower case, points
// and letters that stand for no amino acid become gaps, as in the tools that
// write alignments.
func readAlignment(text string) (sequences []int, sites int, err error) {
	for n, record := range strings.Split("\n"+text, "\n>") {
		_, letters, _ := strings.Cut(record, "\n")
		letters = strings.Join(strings.Fields(letters), "")
		if letters == "" {
			continue // skip text before the first sequence
		}
		length := len(sequences)
		for _, letter := range letters {
			sequences = append(sequences, max(0, strings.IndexRune(residues, letter)))
		}
		length = len(sequences) - length
		if sites == 0 {
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

// readContacts reads the contacts: two sites a line, counted from 1.
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

// proteinFlags defines the flags for a made-up protein, and returns a function
// that makes the protein of a repetition, from 0.
func proteinFlags(f *pflag.FlagSet) func(n int) (*protein, error) {
	size := sizeFlag(f, size{4, 5}, "rows and columns of the lattice that a made-up protein is folded on")
	states := wholeFlag(f, "states", 5, 2, maxStates, "states of each of its sites")
	strength := number(f, "strength", 0.5, " of 0 or more", "standard deviation of the couplings of its contacts")
	own := targetSeed(f, "seed of the made-up protein of the first repetition; each has its own")
	return func(n int) (*protein, error) {
		if n := size.sites(); n > maxSequence || n < 2 {
			return nil, refuse("size", "%d sites: there can be 2 to %d", n, maxSequence)
		}
		stream := samplers.Streams(*own+uint64(n), "protein", 1)[0]
		return folded(size.rows, size.columns, *states, *strength, stream), nil
	}
}

// newLearnContacts repeats an experiment of Gibbs with Gradients (section 6 of
// its appendix; its code pcd_potts.py).
func newLearnContacts() *Study {
	s := newStudy("learn contacts", "Learn a protein's Potts model, and its contacts",
		`Learn the Potts model of a protein family from an alignment, by persistent contrastive
divergence, and predict which sites touch: those with the strongest couplings. Without files a
made-up protein is learnt from sequences that are drawn from its own model. With --alignment, a
FASTA file of aligned sequences, --contacts names a file of the true pairs, "SITE SITE" a line.`)
	makeUp := proteinFlags(s.Flags)
	alignment := s.Flags.String("alignment", "", "learn from the sequences of `FILE`, in FASTA")
	contacts := s.Flags.String("contacts", "", "`FILE` of the sites that touch")
	o := couplingsFlags(s.Flags, pcdFlags(s.Flags, 300, 100, 100, 0.01, 0), 300, 100,
		"sequences that are drawn from a made-up protein")
	s.plan = func(_ context.Context, in *inputs, _ uint64) (*plan, error) {
		truth, sequences, err := readFamily(in, *alignment, *contacts, makeUp)
		if err != nil {
			return nil, err
		}
		truths := slices.Repeat([]*protein{truth}, *o.repeats)
		for n := 1; n < *o.repeats && sequences == nil; n++ {
			truths[n], err = makeUp(n)
			if err != nil {
				return nil, err
			}
		}
		data := func(ctx context.Context, b *bench) ([]int, error) {
			if sequences != nil {
				return sequences, nil
			}
			truth := truths[b.repetition()]
			w := &walk{Positions: samplers.RandomPositions(truth, b.streams("data start", *o.data))}
			err := w.advance(ctx, b, named("gibbs"), truth, *o.sweeps*truth.sites)
			return w.Positions, err
		}
		n := 0
		for _, touch := range truth.contacts {
			n += bit(touch)
		}
		p := newPlan(fmt.Sprintf("learning the contacts of %d sites", truth.sites), []column{
			{name: "recall", format: "%.3f", definition: fmt.Sprintf("fraction of the %d contacts among as many of "+
				"the strongest pairs, by the norm of J_ij, after the last update", n/2), against: "steps"},
			{name: "log-rmse", format: "%.3f",
				definition: "½ ln of the mean square of the learnt norms less the true ones", against: "steps"},
			acceptanceColumn(), secondsColumn("of a training"),
		}, curve{name: "recall", x: "update", y: "recall of contacts"})
		p.repeats(gibbsGradients, "contacts")
		p.notes = []string{fmt.Sprintf("recall of pairs in any order: %.3f",
			float64(n)/float64(truth.sites*(truth.sites-1)))}
		if sequences != nil {
			p.columns = slices.Delete(p.columns, 1, 2) // real data have no known couplings
		}
		return p, o.trainings(p, data, func(b *bench) trainee {
			truth := truths[b.repetition()]
			m := newProtein(truth.sites, truth.states)
			return trainee{m, len(m.field), func() map[string]float64 {
				learnt := m.norms()
				return map[string]float64{"recall": recall(learnt, truth), "log-rmse": logRoot(learnt, truth.norms())}
			}, func() image.Image { return matrixImage(m.norms(), m.sites, 8) }}
		})
	}
	return s
}

// readFamily reads an alignment and its contacts. Without files, it returns a
// made-up protein and no sequences.
func readFamily(in *inputs, alignment, contacts string, makeUp func(n int) (*protein, error)) (p *protein,
	sequences []int, err error) {
	if (alignment == "") != (contacts == "") {
		return nil, nil, refuse("alignment", "it goes with --contacts: give both or none")
	}
	if alignment == "" {
		p, err = makeUp(0)
		return p, nil, err
	}
	text, err := in.read("alignment", alignment, nil, "")
	if err != nil {
		return nil, nil, refuse("alignment", "%s: %w", alignment, err)
	}
	sequences, sites, err := readAlignment(string(text))
	if err != nil {
		return nil, nil, refuse("alignment", "%s: %w", alignment, err)
	}
	text, err = in.read("contacts", contacts, nil, "")
	if err != nil {
		return nil, nil, refuse("contacts", "%s: %w", contacts, err)
	}
	p = newProtein(sites, len(residues))
	err = p.readContacts(string(text))
	if err != nil {
		return nil, nil, refuse("contacts", "%s: %w", contacts, err)
	}
	return p, sequences, nil
}

// norms returns the Frobenius norm of each J_ij, [sites × sites].
func (t *protein) norms() []float64 {
	sites := t.sites
	states := t.states
	n := sites * states
	norms := make([]float64, sites*sites)
	block := make([]float64, 0, states*states)
	for i := range sites {
		for j := range sites {
			block = block[:0]
			for v := range states {
				first := (i*states+v)*n + j*states
				block = append(block, t.couplings[first:first+states]...)
			}
			norms[i*sites+j] = floats.Norm(block, 2)
		}
	}
	return norms
}

// recall returns which fraction of p's n contacts is among the n pairs with the
// largest norms.
func recall(norms []float64, p *protein) float64 {
	var pairs [][2]int
	contacts := 0
	for i := range p.sites {
		for j := range i {
			pairs = append(pairs, [2]int{i, j})
			contacts += bit(p.contacts[i*p.sites+j])
		}
	}
	slices.SortStableFunc(pairs, func(a, b [2]int) int {
		return cmp.Compare(norms[b[0]*p.sites+b[1]], norms[a[0]*p.sites+a[1]])
	})
	found := 0
	for _, q := range pairs[:contacts] {
		found += bit(p.contacts[q[0]*p.sites+q[1]])
	}
	return float64(found) / float64(contacts)
}
