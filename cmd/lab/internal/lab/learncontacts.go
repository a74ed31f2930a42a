package lab

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"slices"

	"gonum.org/v1/gonum/floats"

	"infill/samplers"
)

// learnContacts learns the Potts model of a protein family from an alignment, and
// predicts contacts by the strength of its couplings, as in Gibbs with Gradients
// (Grathwohl et al. 2021, section 6 of its appendix, and its code pcd_potts.py).
type learnContacts struct {
	contactsOptions
	alignment, contacts string
	samplers            []Spec
	steps               []int
	training            pcdOptions
	data, sweeps        int
	repeats             int
}

func newLearnContacts() *Study {
	list, _ := ParseSpecs("gibbs,gwg,dula:step-size=0.2,dmala:step-size=0.4")
	return newStudy("learn contacts", "Learn a protein's Potts model, and its contacts",
		`Learn the Potts model of a protein family from an alignment, by persistent contrastive
divergence, and predict which sites touch: those with the strongest couplings. Without files a
made-up protein is learnt from sequences that are drawn from its own model. With --alignment, a
FASTA file of aligned sequences, --contacts names a file of the true pairs, "SITE SITE" a line.`, &learnContacts{
			contactsOptions: defaultContacts(), samplers: list, steps: []int{1, 5, 25},
			training: pcdOptions{updates: 300, batch: 100, buffer: 100, rate: 0.01}, data: 300, sweeps: 100, repeats: 2,
		})
}

func (o *learnContacts) register(f *flag.FlagSet) {
	o.contactsOptions.register(f)
	f.StringVar(&o.alignment, "alignment", "", "learn from the sequences of `FILE`, in FASTA")
	f.StringVar(&o.contacts, "contacts", "", "`FILE` of the sites that touch")
	samplersVar(f, &o.samplers, "samplers", "samplers of the chains")
	NumbersVar(f, &o.steps, "steps", "sampling steps of each update")
	o.training.register(f)
	WholeVar(f, &o.data, "data", 1, 1<<20, "sequences that are drawn from a made-up protein")
	WholeVar(f, &o.sweeps, "data-sweeps", 1, 1<<20, "sweeps of Gibbs behind each of them")
	repeatsVar(f, &o.repeats)
}

func (o *learnContacts) plan(context.Context, uint64) (*plan, error) {
	if err := o.training.check(o.samplers); err != nil {
		return nil, err
	}
	truth, sequences, err := o.read()
	if err != nil {
		return nil, err
	}
	data := func(ctx context.Context, b *bench) ([]int, error) {
		if sequences != nil {
			return sequences, nil
		}
		target := newCoupled(truth.sites, truth.states, truth.field, truth.couplings)
		w := &walk{Positions: samplers.RandomPositions(target, b.streams("data start", o.data))}
		err := w.advance(ctx, b, named("gibbs"), target, o.sweeps*truth.sites)
		return w.Positions, err
	}
	n := 0
	for _, touch := range truth.contacts {
		n += bit(touch)
	}
	p := &plan{
		title: fmt.Sprintf("learning the contacts of %d sites", truth.sites),
		columns: []column{
			{name: "recall", format: "%.3f", definition: fmt.Sprintf("fraction of the %d contacts among as many of "+
				"the strongest pairs, by the norm of J_ij, after the last update", n/2), against: "steps"},
			{name: "log-rmse", format: "%.3f",
				definition: "½ ln of the mean square of the learnt norms less the true ones", against: "steps"},
			{name: "acceptance", format: "%.2f", definition: "of proposals, at the last update"},
			{name: "seconds", format: "%.1f", definition: secondsAre + " of a training", timed: true},
		},
		curves: []curve{{name: "recall", x: "update", y: "recall of contacts"}},
		notes: []string{fmt.Sprintf("recall of pairs in any order: %.3f",
			float64(n)/float64(truth.sites*(truth.sites-1)))},
	}
	if o.alignment != "" {
		p.columns = slices.Delete(p.columns, 1, 2) // the true couplings are not known
	}
	p.trainings(o.samplers, o.steps, o.repeats, data,
		func(ctx context.Context, b *bench, spec Spec, steps int, data []int) error {
			return o.train(ctx, b, spec, steps, data, truth)
		})
	return p, nil
}

// read is the protein, and the sequences of an alignment.
func (o *learnContacts) read() (*protein, []int, error) {
	if (o.alignment == "") != (o.contacts == "") {
		return nil, nil, refuse("alignment", "it goes with --contacts: give both or none")
	}
	if o.alignment == "" {
		p, err := o.protein()
		return p, nil, err
	}
	if o.model != "" {
		return nil, nil, refuse("alignment", "it excludes --model: give one of the two")
	}
	var sequences []int
	var p *protein
	if err := readFile("alignment", o.alignment, func(r io.Reader) (err error) {
		sites := 0
		sequences, sites, err = readAlignment(r)
		p = newProtein(sites, len(residues))
		return err
	}); err != nil {
		return nil, nil, err
	}
	return p, sequences, readFile("contacts", o.contacts, func(r io.Reader) error { return readContacts(r, p) })
}

// coupledLearner learns h and J.
type coupledLearner struct {
	*coupled
	weights []float64 // h, then J
	fields  int
}

func newCoupledLearner(sites, states int) *coupledLearner {
	n := sites * states
	w := make([]float64, n+n*n)
	return &coupledLearner{newCoupled(sites, states, w[:n], w[n:]), w, n}
}

func (l *coupledLearner) parameters() []float64 { return l.weights }

func (l *coupledLearner) addGradient(_ context.Context, states []int, scale float64, gradient []float64) error {
	l.AddMoments(states, scale, gradient[:l.fields], gradient[l.fields:])
	return nil
}

func (o *learnContacts) train(ctx context.Context, b *bench, spec Spec, steps int, data []int, truth *protein) error {
	model := newCoupledLearner(truth.sites, truth.states)
	kernel, err := spec.New(model, nil)
	if err != nil {
		return refuse("samplers", "%w", err)
	}
	norms := func(couplings []float64) []float64 { return couplingNorms(couplings, truth.sites, truth.states) }
	training := o.training.pcd(model, kernel, steps, b)
	training.free = model.fields
	if err := training.run(ctx, b, o.training.updates, data, func(at float64) {
		b.point("recall", at, recall(norms(model.weights[model.fields:]), truth))
	}); err != nil {
		return err
	}
	learnt := norms(model.weights[model.fields:])
	b.number("recall", recall(learnt, truth))
	b.number("log-rmse", logRoot(learnt, norms(truth.couplings)))
	b.number("seconds", b.seconds())
	return b.picture("couplings", matrixImage(learnt, truth.sites, 8))
}

// couplingNorms is the Frobenius norm of every J_ij, [sites × sites].
func couplingNorms(couplings []float64, sites, states int) []float64 {
	n := sites * states
	norms, block := make([]float64, sites*sites), make([]float64, 0, states*states)
	for i := range sites {
		for j := range sites {
			block = block[:0]
			for v := range states {
				first := (i*states+v)*n + j*states
				block = append(block, couplings[first:first+states]...)
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
