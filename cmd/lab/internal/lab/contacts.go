package lab

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"image"
	"math"
	"os"
	"slices"

	"gonum.org/v1/gonum/floats"

	"infill/internal/targets"
	"infill/samplers"
)

// proteinFlags set the Potts model of a made-up protein, and return what makes it.
func proteinFlags(f *flag.FlagSet) func() (*protein, error) {
	size := sizeFlag(f, size{4, 5}, "rows and columns of the lattice that a made-up protein is folded on")
	states := Whole(f, "states", 5, 2, maxStates, "states of each of its sites")
	strength := number(f, "strength", 0.5, " of 0 or more", "standard deviation of the couplings of its contacts")
	own := targetSeed(f, "seed of the made-up protein")
	return func() (*protein, error) {
		if n := size.sites(); n > maxSequence || n < 2 {
			return nil, refuse("size", "%d sites: there can be 2 to %d", n, maxSequence)
		}
		return folded(size.rows, size.columns, *states, *strength, samplers.Streams(*own, "protein", 1)[0]), nil
	}
}

// newContacts is the protein as a target to sample from, with exact means where its states can be listed.
func newContacts(f *flag.FlagSet) maker {
	protein := proteinFlags(f)
	how := truthFlags(f)
	return func(ctx context.Context, seed uint64) (*distribution, error) {
		p, err := protein()
		if err != nil {
			return nil, err
		}
		d := &distribution{kind: "contacts", target: p, observables: indicators(p.categories),
			parameters: settings(f, "size", "states", "strength", "target-seed")}
		for own := range slices.Chunk(p.field, p.states) { // every site by its own field
			d.independent = append(d.independent, softmax(own))
		}
		return d, d.settle(ctx, how, seed, longRun{"gibbs", p.sites, false}, func() (string, []float64, error) {
			if states := math.Pow(float64(p.states), float64(p.sites)); states > targets.MaxStates {
				return "", nil, fmt.Errorf("%w: %.2g states", errTooLarge, states)
			}
			return d.enumerate(ctx)
		})
	}
}

// newLearnContacts learns the Potts model of a protein family from an alignment, and predicts contacts by the strength
// of its couplings, as in Gibbs with Gradients (Grathwohl et al. 2021, section 6 of its appendix, and its code
// pcd_potts.py).
func newLearnContacts() *Study {
	s := newStudy("learn contacts", "Learn a protein's Potts model, and its contacts",
		`Learn the Potts model of a protein family from an alignment, by persistent contrastive
divergence, and predict which sites touch: those with the strongest couplings. Without files a
made-up protein is learnt from sequences that are drawn from its own model. With --alignment, a
FASTA file of aligned sequences, --contacts names a file of the true pairs, "SITE SITE" a line.`)
	protein := proteinFlags(s.Flags)
	alignment := s.Flags.String("alignment", "", "learn from the sequences of `FILE`, in FASTA")
	contacts := s.Flags.String("contacts", "", "`FILE` of the sites that touch")
	o := couplingsFlags(s.Flags, pcdFlags(s.Flags, 300, 100, 100, 0.01, 0), 300, 100,
		"sequences that are drawn from a made-up protein")
	s.plan = func(context.Context, uint64) (*plan, error) {
		truth, sequences, err := readFamily(*alignment, *contacts, protein)
		if err != nil {
			return nil, err
		}
		data := func(ctx context.Context, b *bench) ([]int, error) {
			if sequences != nil {
				return sequences, nil
			}
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
			{name: "acceptance", format: "%.2f", definition: "of proposals, at the last update"},
			{name: "seconds", format: "%.1f", definition: secondsAre + " of a training", timed: true},
		}, curve{name: "recall", x: "update", y: "recall of contacts"})
		p.notes = []string{fmt.Sprintf("recall of pairs in any order: %.3f",
			float64(n)/float64(truth.sites*(truth.sites-1)))}
		if sequences != nil {
			p.columns = slices.Delete(p.columns, 1, 2) // the true couplings are not known
		}
		return p, o.trainings(p, data, func(*bench) trainee {
			m := newProtein(truth.sites, truth.states)
			return trainee{m, len(m.field), func() map[string]float64 {
				learnt := m.norms()
				return map[string]float64{"recall": recall(learnt, truth), "log-rmse": logRoot(learnt, truth.norms())}
			}, func() image.Image { return matrixImage(m.norms(), m.sites, 8) }}
		})
	}
	return s
}

// readFamily is the protein, and the sequences of an alignment.
func readFamily(alignment, contacts string, makeUp func() (*protein, error)) (p *protein, sequences []int, err error) {
	if (alignment == "") != (contacts == "") {
		return nil, nil, refuse("alignment", "it goes with --contacts: give both or none")
	}
	if alignment == "" {
		p, err = makeUp()
		return p, nil, err
	}
	text, err := os.ReadFile(alignment)
	if err != nil {
		return nil, nil, refuse("alignment", "%w", err)
	}
	sequences, sites, err := readAlignment(string(text))
	if err != nil {
		return nil, nil, refuse("alignment", "%s: %w", alignment, err)
	}
	if text, err = os.ReadFile(contacts); err != nil {
		return nil, nil, refuse("contacts", "%w", err)
	}
	p = newProtein(sites, len(residues))
	if err := p.readContacts(string(text)); err != nil {
		return nil, nil, refuse("contacts", "%s: %w", contacts, err)
	}
	return p, sequences, nil
}

// norms is the Frobenius norm of every J_ij, [sites × sites].
func (t *protein) norms() []float64 {
	sites, states := t.sites, t.states
	n := sites * states
	norms, block := make([]float64, sites*sites), make([]float64, 0, states*states)
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

// recall is the fraction of the contacts among as many of the strongest pairs.
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
