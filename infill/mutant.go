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

// The methods of [Filler.Mutants]. The first three are defined by Meier et al. (NeurIPS 2021), with these names.
const (
	// MaskedMarginals: Σ log f(mutant) − log f(wild type) over the sites, all of them masked in the wild type.
	MaskedMarginals ScoreMethod = "masked-marginals"
	// WildTypeMarginals: the same sum with nothing masked.
	WildTypeMarginals ScoreMethod = "wt-marginals"
	// MutantPLL: the pseudo-log-likelihood of the mutant minus that of the wild type, one residue masked at a time.
	MutantPLL ScoreMethod = "pll"
	// MutantJoint: log P(mutant) − log P(wild type) of all sites together, P being the mean over both orders of the chain rule.
	MutantJoint ScoreMethod = "joint"
)

// MutantMethods lists the methods of [Filler.Mutants].
func MutantMethods() []ScoreMethod {
	return []ScoreMethod{MaskedMarginals, WildTypeMarginals, MutantPLL, MutantJoint}
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

// Mutants rates variants of a wild type, each written like "A24G:K30R" with places from 1, by how much likelier than the wild type
// the model holds them, [mutants], in nats. A residue is a token. Errors: *OptionError for a mutant or the method,
// *tokenize.InputError for the wild type.
func (f *Filler) Mutants(ctx context.Context, wildType string, mutants []string, method ScoreMethod) ([]float64, error) {
	if !slices.Contains(MutantMethods(), method) {
		return nil, &OptionError{Option: "method", Reason: fmt.Sprintf("%q is not one of %v", method, MutantMethods())}
	}
	encoding, err := f.Plain(wildType)
	if err != nil {
		return nil, err
	}
	ids := encoding.IDs
	if len(ids) > f.maxPositions {
		return nil, misfit("mutants", "the wild type has %d residues, the model takes %d: give the domain around the sites", len(ids)-2, f.maxPositions-2)
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
	r := &mutantRater{filler: f, model: model, wildType: ids}
	scores := make([]float64, len(mutants))
	for i := range mutants {
		group := bySites[string(appendKey(nil, read[i].sites))]
		if group[0] != i {
			continue // rated with the first
		}
		if err := r.rate(ctx, method, read, group, scores); err != nil {
			return nil, cancelled(ctx, err)
		}
	}
	return scores, nil
}

// mutantRater rates the mutants of a wild type.
type mutantRater struct {
	filler   *Filler
	model    LanguageModel
	wildType []int
	whole    map[int][]float32 // by site, log p with nothing masked
	pll      float64           // of the wild type, once asked
	asked    bool
}

// rate sets the scores of the mutants of a group, which have the same sites.
func (r *mutantRater) rate(ctx context.Context, method ScoreMethod, mutants []mutant, group []int, scores []float64) error {
	sites := mutants[group[0]].sites
	switch method {
	case MutantPLL:
		for _, i := range group {
			if err := r.difference(ctx, mutants[i], &scores[i]); err != nil {
				return err
			}
		}
		return nil
	case MutantJoint:
		return r.joint(ctx, mutants, group, scores)
	}
	var logp [][]float32
	var err error
	if method == MaskedMarginals {
		logp, err = r.model.MaskedLogProbabilities(ctx, r.wildType, sites)
	} else {
		logp, err = r.unmasked(ctx, sites)
	}
	if err != nil {
		return err
	}
	for _, i := range group {
		for j, site := range sites {
			scores[i] += float64(logp[j][mutants[i].to[j]]) - float64(logp[j][r.wildType[site]])
		}
	}
	return nil
}

// unmasked is log p at sites with nothing masked; all places of the wild type are asked for at once.
func (r *mutantRater) unmasked(ctx context.Context, sites []int) ([][]float32, error) {
	if r.whole == nil {
		var rows []lm.Row
		for site := 1; site < len(r.wildType)-1; site++ {
			rows = append(rows, lm.Row{IDs: r.wildType, Position: site})
		}
		logp, err := r.model.LogProbabilities(ctx, rows)
		if err != nil {
			return nil, err
		}
		r.whole = map[int][]float32{}
		for i, row := range rows {
			r.whole[row.Position] = logp[i]
		}
	}
	logp := make([][]float32, len(sites))
	for j, site := range sites {
		logp[j] = r.whole[site]
	}
	return logp, nil
}

// difference is the pseudo-log-likelihood of a mutant minus the wild type's.
func (r *mutantRater) difference(ctx context.Context, m mutant, score *float64) error {
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
	var err error
	if !r.asked {
		if r.pll, err = sum(r.wildType); err != nil {
			return err
		}
		r.asked = true
	}
	ids := slices.Clone(r.wildType)
	for j, site := range m.sites {
		ids[site] = m.to[j]
	}
	*score, err = sum(ids)
	*score -= r.pll
	return err
}

// joint rates mutants by the law of their sites, which is the chain rule's over both orders.
func (r *mutantRater) joint(ctx context.Context, mutants []mutant, group []int, scores []float64) error {
	sites := mutants[group[0]].sites
	text := lawText{ids: slices.Clone(r.wildType), number: len(sites)}
	l := &textLaw{model: r.model, mask: r.filler.tokenizer.MaskID(), temperature: 1, rows: new(int64)}
	order, states := make([]int, len(sites)), [][]int{make([]int, len(sites))}
	for j, site := range sites {
		text.ids[site], order[j], states[0][j] = l.mask, j, r.wildType[site]
		l.slots = append(l.slots, lawSlot{position: site})
	}
	l.texts = []lawText{text}
	var err error
	if l.root, err = r.model.MaskedLogProbabilities(ctx, r.wildType, sites); err != nil {
		return err
	}
	for _, i := range group {
		states = append(states, mutants[i].to)
	}
	back := slices.Clone(order)
	slices.Reverse(back)
	law := samplers.Law{Target: l, Orders: [][]int{order, back}}
	logp, err := law.LogProbability(ctx, states)
	if err != nil {
		return err
	}
	for k, i := range group {
		scores[i] = logp[k+1] - logp[0]
	}
	return nil
}
