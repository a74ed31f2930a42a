package energies

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

	"infill/cmd/lab/internal/chains"
	"infill/cmd/lab/internal/lab"
	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// snake makes up a protein whose chain winds over a lattice, along one row from
// left to right and back along the next. Two sites touch if they are neighbours
// on the lattice but not on the chain. J is from N(0, strength²) for sites that
// touch, else 0; h is from N(0, 0.25²).
func snake(rows, columns, states int, strength float64, r *rand.Rand) *chains.Protein {
	p := chains.NewProtein(rows*columns, states)
	site := func(row, column int) int {
		if row%2 == 1 {
			column = columns - 1 - column
		}
		return row*columns + column
	}
	for row := range rows - 1 {
		for column := range columns {
			above, below := site(row, column), site(row+1, column)
			if below-above > 1 {
				p.Touch(above, below)
			}
		}
	}
	for i := range p.Sites {
		for j := range i {
			if p.Contacts[i*p.Sites+j] {
				couple(p, i, j, strength, r)
			}
		}
	}
	copy(p.Field, targets.Normals(r, len(p.Field), 0.25))
	return p
}

// couple draws the block of J between sites i and j, and its transpose.
func couple(p *chains.Protein, i, j int, strength float64, r *rand.Rand) {
	n := len(p.Field)
	states := n / p.Sites
	for a := i * states; a < (i+1)*states; a++ {
		for b := j * states; b < (j+1)*states; b++ {
			x := strength * r.NormFloat64()
			p.Couplings[a*n+b] = x
			p.Couplings[b*n+a] = x
		}
	}
}

// These bounds limit the size of J.
const (
	maxSequence = 512
	maxStates   = 32
)

// residues are the letters of states: the gap, then the amino acids.
const residues = "-ACDEFGHIKLMNPQRSTVWY"

// alignment has sequences of equal length, [any number × sites].
type alignment struct {
	sequences []int
	sites     int
}

// parseAlignment reads an alignment in FASTA. Lower case, points and letters
// that stand for no amino acid become gaps, as in the tools that write
// alignments.
func parseAlignment(text []byte) (a alignment, err error) {
	for n, record := range strings.Split("\n"+string(text), "\n>") {
		_, letters, _ := strings.Cut(record, "\n")
		letters = strings.Join(strings.Fields(letters), "")
		if letters == "" {
			continue // skip text before the first sequence
		}
		length := len(a.sequences)
		for _, letter := range letters {
			a.sequences = append(a.sequences, max(0, strings.IndexRune(residues, letter)))
		}
		length = len(a.sequences) - length
		a.sites = cmp.Or(a.sites, length)
		if length != a.sites {
			return a, fmt.Errorf("sequence %d has %d letters, and the first %d: an alignment is wanted", n, length,
				a.sites)
		}
	}
	if a.sites < 2 || a.sites > maxSequence {
		return a, fmt.Errorf("sequences of %d letters: there can be 2 to %d", a.sites, maxSequence)
	}
	return a, nil
}

// parseContacts makes a protein with contacts: two sites a line, counted from 1.
func parseContacts(text string, sites int) (*chains.Protein, error) {
	t := chains.NewProtein(sites, len(residues))
	for n, line := range strings.Split(text, "\n") {
		words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r,", r) })
		if len(words) == 0 {
			continue
		}
		i, _ := strconv.Atoi(words[0])
		j, _ := strconv.Atoi(words[len(words)-1])
		if len(words) != 2 || min(i, j) < 1 || max(i, j) > sites {
			return nil, fmt.Errorf("line %d: %q is no pair of sites from 1 to %d", n+1, line, sites)
		}
		t.Touch(i-1, j-1)
	}
	if !slices.Contains(t.Contacts, true) {
		return nil, errors.New("no contact in it")
	}
	return t, nil
}

// proteinFlags defines the flags for a made-up protein, and returns a function
// that makes the protein of a repetition, from 0.
func proteinFlags(f *pflag.FlagSet) func(n int) (*chains.Protein, error) {
	size := lab.SizeFlag(f, lab.Size{Rows: 4, Columns: 5},
		"rows and columns of the lattice that a made-up protein is folded on")
	states := lab.WholeFlag(f, "states", 5, 2, maxStates, "states of each of its sites")
	strength := lab.NumberFlag(f, "strength", 0.5, " of 0 or more",
		"standard deviation of the couplings of its contacts")
	own := lab.TargetSeed(f, "seed of the made-up protein of the first repetition; each has its own")
	return func(n int) (*chains.Protein, error) {
		if size.Sites() > maxSequence || size.Rows < 2 || size.Columns < 2 {
			return nil, lab.Refuse("size", "%d × %d: two rows and columns at least, for sites that touch, and at most "+
				"%d sites", size.Rows, size.Columns, maxSequence)
		}
		stream := samplers.Streams(*own+uint64(n), "protein", 1)[0]
		return snake(size.Rows, size.Columns, *states, *strength, stream), nil
	}
}

// newLearnContacts repeats an experiment of Gibbs with Gradients (section 6 of
// its appendix; its code pcd_potts.py).
func newLearnContacts() *lab.Study {
	s := lab.NewStudy("learn contacts")
	makeUp := proteinFlags(s.Flags)
	alignment := s.Flags.String("alignment", "", "learn from the sequences of `FILE`, in FASTA")
	contacts := s.Flags.String("contacts", "", "`FILE` of the sites that touch")
	o := couplingsFlags(s.Flags, pcdFlags(s.Flags, 300, 100, 100, 0.01, 0), 300, 100,
		"sequences that are drawn from a made-up protein")
	lab.Instead(s.Flags, "alignment", "size", "states", "strength", "target-seed", "data", "data-sweeps")
	s.Plan = func(_ context.Context, in *lab.Inputs, _ uint64) (*lab.Plan, error) {
		truth, sequences, err := readFamily(in, *alignment, *contacts, makeUp)
		if err != nil {
			return nil, err
		}
		truths := slices.Repeat([]*chains.Protein{truth}, *o.repeats)
		for n := 1; n < *o.repeats && sequences == nil; n++ {
			truths[n], err = makeUp(n)
			if err != nil {
				return nil, err
			}
		}
		data := func(ctx context.Context, b *lab.Bench) ([]int, error) {
			if sequences != nil {
				return sequences, nil
			}
			truth := truths[b.Repetition()]
			w := &walk{Positions: samplers.RandomPositions(truth, b.Streams("data start", *o.data))}
			err := w.advance(ctx, b, lab.Named(samplers.Gibbs{}), truth, *o.sweeps*truth.Sites)
			return w.Positions, err
		}
		n := 0
		for _, touch := range truth.Contacts {
			n += logmath.Indicator(touch)
		}
		p := s.NewPlan(fmt.Sprintf("learning the contacts of %d sites", truth.Sites), "{contacts}", strconv.Itoa(n/2))
		p.Notes = []string{fmt.Sprintf("recall of pairs in any order: %.3f",
			float64(n)/float64(truth.Sites*(truth.Sites-1)))}
		if sequences != nil {
			p.Columns = slices.Delete(p.Columns, 1, 2) // real data have no known couplings
		}
		return p, o.trainings(p, data, func(b *lab.Bench) trainee {
			truth := truths[b.Repetition()]
			m := chains.NewProtein(truth.Sites, truth.States)
			return trainee{
				model: m,
				free:  len(m.Field),
				found: func() map[string]float64 {
					learnt := m.Norms()
					return map[string]float64{"recall": recall(learnt, truth),
						"log-rmse": logRoot(learnt, truth.Norms())}
				},
				picture: func() image.Image { return matrixImage(m.Norms(), m.Sites, 8) },
			}
		})
	}
	return s
}

// readFamily reads an alignment and its contacts. Without files, it returns a
// made-up protein and no sequences.
func readFamily(in *lab.Inputs, aligned, contacts string, makeUp func(n int) (*chains.Protein, error),
) (p *chains.Protein, sequences []int, err error) {
	if (aligned == "") != (contacts == "") {
		return nil, nil, lab.Refuse("alignment", "it goes with --contacts: give both or none")
	}
	if aligned == "" {
		p, err = makeUp(0)
		return p, nil, err
	}
	a, err := lab.ReadAs(in, "alignment", aligned, nil, "", parseAlignment)
	if err != nil {
		return nil, nil, err
	}
	p, err = lab.ReadAs(in, "contacts", contacts, nil, "",
		func(text []byte) (*chains.Protein, error) { return parseContacts(string(text), a.sites) })
	return p, a.sequences, err
}

// recall returns p's n contacts' share among the n largest norms.
func recall(norms []float64, p *chains.Protein) float64 {
	var pairs [][2]int
	contacts := 0
	for i := range p.Sites {
		for j := range i {
			pairs = append(pairs, [2]int{i, j})
			contacts += logmath.Indicator(p.Contacts[i*p.Sites+j])
		}
	}
	slices.SortStableFunc(pairs, func(a, b [2]int) int {
		return cmp.Compare(norms[b[0]*p.Sites+b[1]], norms[a[0]*p.Sites+a[1]])
	})
	found := 0
	for _, q := range pairs[:contacts] {
		found += logmath.Indicator(p.Contacts[q[0]*p.Sites+q[1]])
	}
	return float64(found) / float64(contacts)
}
