package infill

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"infill/lm"
	"infill/samplers"
)

// MaskedMarginals is the default method of [Filler.Mutants].
const MaskedMarginals ScoreMethod = "masked-marginals"

const (
	wildTypeMarginals ScoreMethod = "wt-marginals"
	mutantPLL         ScoreMethod = "pll"
	mutantJoint       ScoreMethod = "joint"
)

// MutantMethods lists the methods of [Filler.Mutants], the first three by Meier et al. (NeurIPS 2021):
//   - "masked-marginals": Σ log f(mutant) − log f(wild type) over the sites, all of them masked in the wild type
//   - "wt-marginals": the same sum with nothing masked
//   - "pll": the pseudo-log-likelihood of the mutant minus that of the wild type, one residue masked at a time
//   - "joint": log P(mutant) − log P(wild type) of all sites together, P being the mean over both orders of the chain
//     rule
func MutantMethods() []ScoreMethod {
	return []ScoreMethod{MaskedMarginals, wildTypeMarginals, mutantPLL, mutantJoint}
}

// mutant is a text in which residues were replaced.
type mutant struct {
	sites []int // positions of tokens, ascending
	to    []int // the new tokens
}

var substitution = regexp.MustCompile(`^([A-Z])([1-9][0-9]{0,8})([A-Z])$`)

// readMutant reads "A24G:K30R" for a text of those ids; places count from 1.
func (f *Filler) readMutant(text string, ids []int) (m mutant, err error) {
	for part := range strings.SplitSeq(text, ":") {
		found := substitution.FindStringSubmatch(part)
		if found == nil {
			return m, misfit("mutants", "%.40q is not like A24G or A24G:K30R", text)
		}
		site, _ := strconv.Atoi(found[2])
		if site > len(ids)-2 {
			return m, misfit("mutants", "%.40q: the wild type has %d residues", text, len(ids)-2)
		}
		if token := f.tokenizer.Token(ids[site]); token != found[1] {
			return m, misfit("mutants", "%.40q: the wild type has %s at place %d", text, token, site)
		}
		to, ok := f.tokenizer.ID(found[3])
		if !ok {
			return m, misfit("mutants", "%.40q: the model has no residue %s", text, found[3])
		}
		at, twice := slices.BinarySearch(m.sites, site)
		if twice {
			return m, misfit("mutants", "%.40q names place %d twice", text, site)
		}
		m.sites, m.to = slices.Insert(m.sites, at, site), slices.Insert(m.to, at, to)
	}
	return m, nil
}

// Mutants rates variants of a wild type, each written like "A24G:K30R" with places from 1. It returns how much
// likelier than the wild type the model finds each, [mutants], in nats. A residue is a token. Errors:
// *OptionError for a mutant or the method, *tokenize.InputError for the wild type.
func (f *Filler) Mutants(ctx context.Context, wildType string, mutants []string,
	method ScoreMethod) ([]float64, error) {
	if !slices.Contains(MutantMethods(), method) {
		return nil, &OptionError{Option: "method", Reason: fmt.Sprintf("%q is not one of %v", method, MutantMethods())}
	}
	encoding, err := f.Plain(wildType)
	if err != nil {
		return nil, err
	}
	ids := encoding.IDs
	if len(ids) > f.maxPositions {
		return nil, misfit("mutants",
			"the wild type has %d residues, the model takes %d: give the domain around the sites", len(ids)-2,
			f.maxPositions-2)
	}
	for _, id := range ids[1 : len(ids)-1] {
		if token := f.tokenizer.Token(id); len(token) > 1 && id != f.tokenizer.UnknownID() {
			return nil, misfit("mutants", "model %s reads %.40q in the wild type, and not a letter for each residue: "+
				"take a model of proteins, such as ESM-2", f.Model().Name, token)
		}
	}
	read := make([]mutant, len(mutants))
	bySites := map[string][]int{} // mutants of the same sites share rows
	for i, text := range mutants {
		if read[i], err = f.readMutant(text, ids); err != nil {
			return nil, err
		}
		key := string(appendKey(nil, read[i].sites))
		bySites[key] = append(bySites[key], i)
	}
	model, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	r := &mutantRater{model: model, mask: f.tokenizer.MaskID(), wildType: ids, mutants: read}
	rate := map[ScoreMethod]func(context.Context, []int, []int, []float64) error{
		MaskedMarginals: r.masked, wildTypeMarginals: r.unmasked, mutantPLL: r.pseudo, mutantJoint: r.joint,
	}[method]
	scores := make([]float64, len(mutants))
	for i := range mutants {
		group := bySites[string(appendKey(nil, read[i].sites))]
		if group[0] != i {
			continue // rated with the first
		}
		if err := rate(ctx, read[i].sites, group, scores); err != nil {
			return nil, cancelled(ctx, err)
		}
	}
	return scores, nil
}

// mutantRater rates the mutants of a wild type, a group that has the same sites at a time.
type mutantRater struct {
	model    LanguageModel
	mask     int
	wildType []int
	mutants  []mutant
	whole    [][]float32 // by place, log p with nothing masked
	pll      *float64    // of the wild type
}

// marginals sets the scores by log p at the sites, [sites][vocabulary].
func (r *mutantRater) marginals(logp [][]float32, sites, group []int, scores []float64) {
	for _, i := range group {
		for j, site := range sites {
			scores[i] += float64(logp[j][r.mutants[i].to[j]]) - float64(logp[j][r.wildType[site]])
		}
	}
}

func (r *mutantRater) masked(ctx context.Context, sites, group []int, scores []float64) error {
	logp, err := r.model.MaskedLogProbabilities(ctx, r.wildType, sites)
	if err == nil {
		r.marginals(logp, sites, group, scores)
	}
	return err
}

func (r *mutantRater) unmasked(ctx context.Context, sites, group []int, scores []float64) (err error) {
	if r.whole == nil {
		rows := make([]lm.Row, len(r.wildType)) // of one slice, which is one row of the model
		for site := range rows {
			rows[site] = lm.Row{IDs: r.wildType, Position: site}
		}
		if r.whole, err = r.model.LogProbabilities(ctx, rows); err != nil {
			return err
		}
	}
	logp := make([][]float32, len(sites))
	for j, site := range sites {
		logp[j] = r.whole[site]
	}
	r.marginals(logp, sites, group, scores)
	return nil
}

// pseudo compares pseudo-log-likelihoods.
func (r *mutantRater) pseudo(ctx context.Context, sites, group []int, scores []float64) error {
	sum := func(ids []int) (total float64, err error) {
		var queries []lm.Query
		for position := 1; position < len(ids)-1; position++ {
			queries = append(queries, lm.Query{Position: position})
		}
		logp, err := r.model.Score(ctx, ids, queries)
		for _, x := range logp {
			total += x
		}
		return total, err
	}
	if r.pll == nil {
		total, err := sum(r.wildType)
		if err != nil {
			return err
		}
		r.pll = &total
	}
	for _, i := range group {
		ids := slices.Clone(r.wildType)
		for j, site := range sites {
			ids[site] = r.mutants[i].to[j]
		}
		total, err := sum(ids)
		if err != nil {
			return err
		}
		scores[i] = total - *r.pll
	}
	return nil
}

// joint compares by the law of the sites, which is the chain rule's over both orders.
func (r *mutantRater) joint(ctx context.Context, sites, group []int, scores []float64) (err error) {
	text := lawText{ids: slices.Clone(r.wildType), number: len(sites)}
	l := &textLaw{model: r.model, mask: r.mask, temperature: 1, rows: new(int64)}
	order, states := make([]int, len(sites)), [][]int{make([]int, len(sites))}
	for j, site := range sites {
		text.ids[site], order[j], states[0][j] = l.mask, j, r.wildType[site]
		l.slots = append(l.slots, lawSlot{position: site})
	}
	l.texts = []lawText{text}
	if l.root, err = r.model.MaskedLogProbabilities(ctx, r.wildType, sites); err != nil {
		return err
	}
	for _, i := range group {
		states = append(states, r.mutants[i].to)
	}
	back := slices.Clone(order)
	slices.Reverse(back)
	logp, err := (&samplers.Law{Target: l, Orders: [][]int{order, back}}).LogProbability(ctx, states)
	if err != nil {
		return err
	}
	for k, i := range group {
		scores[i] = logp[k+1] - logp[0]
	}
	return nil
}
