package infill

import (
	"context"
	"math"

	"infill/samplers"
)

// MethodSearch finds the likeliest fills by the chain rule, and proves them.
const MethodSearch = "search"

const maxTop = 10000 // fills that a search can be asked to prove

// mostCombined is the largest number of fills of lists that a search scores
// completely, so that each fill has a share.
const mostCombined = 4096

var errNoFill = &ConstraintError{"the constraints forbid every fill: loosen them"}

// Search finds the likeliest fills under the chain rule and proves them.
type Search struct {
	// Order is the order of the chain rule.
	Order Order `option:"order" default:"l2r" examples:"l2r,r2l" word:"{l2r|r2l|N,N,...}" help:"order of the chain rule: left to right, right to left, or the blanks as numbered"`
	// Budget bounds the cost.
	Budget Budget `option:"budget" default:"4000" examples:"500,1000,2000,4000,10000,1s,5s,20s" word:"{ROWS|SECONDSs}" help:"model rows, or seconds as in 2s, that a search or draws may cost"`
}

func (Search) Name() string { return MethodSearch }

func (Search) random() bool { return false }

func (Search) heavy() bool { return false }

func (s Search) settled() Method {
	declared.Settle(&s)
	return s
}

func (s Search) check(r *Request, _ Model) error {
	if r.Top > maxTop {
		return wrong("top", "%d are too many to prove: ask for %d at most, or make draws with samples", r.Top, maxTop)
	}
	return nil
}

func (s Search) fits(p *Plan) error { return p.takes(s.Order) }

// cost: a search goes on to its first fill, whatever the budget.
func (s Search) cost(p *Plan) (rows int, bytes float64) {
	least := p.roots() + p.Slots() - 1
	switch {
	case p.Slots() == 1: // the row with all slots masked gives every probability
		rows = p.roots()
	case s.Budget.Rows > 0:
		rows = max(s.Budget.Rows, least)
	}
	held := float64(samplers.SearchBytes)
	if rows > 0 {
		held = min(held, float64(rows)*bytesOfConditional)
	}
	return rows, p.common() + held
}

// likely: the means of docs/measured/proofs.md, by the number of slots. A search
// scores no more fills of lists than there are.
func (s Search) likely(p *Plan) (rows int, bytes float64) {
	means := []int{0, 1, 11, 57, 280}
	n := 490
	if p.Slots() < len(means) {
		n = means[p.Slots()]
	}
	n += p.roots() - 1
	combined := p.combinations()
	if combined == 0 {
		combined = math.Inf(1)
	}
	most, _ := s.cost(p)
	s.Budget = Budget{Rows: int(min(float64(most), float64(n), combined+float64(p.roots())))}
	_, bytes = s.cost(p)
	return s.Budget.Rows, bytes
}

// solve searches until the k likeliest are proven, or budget or ctx end.
func (s Search) solve(ctx context.Context, w *work) (*answer, error) {
	search, err := samplers.NewSearch(w.laws(s.Order))
	if err != nil {
		return nil, err
	}
	all := 0 // the number of fills of the lists, if each is scored
	listed := w.plan.combinations()
	if listed <= mostCombined {
		all = int(listed)
	}
	top := int(w.plan.Request.Top)
	wanted := max(top, all)
	room := func() int { return s.Budget.room(w.asker.rows, w.began) }
	tell := func() {
		progress := Progress{Step: int(100 * s.Budget.share(w.asker.rows, w.began)), Steps: 100,
			Pieces: w.plan.layouts[0].pieces()}
		if search.Len() > 0 {
			progress.result = func() *Result { return w.result(w.found(search, all)) }
		}
		w.tell(progress)
	}
	for {
		err := search.Run(ctx, wanted, room, tell)
		switch {
		case search.Len() > 0:
		case err != nil:
			return nil, err
		case search.Proven():
			return nil, errNoFill
		default:
			return nil, constrained("no fill that the constraints allow was found in %d model rows: loosen them, or "+
				"give a larger budget", w.asker.rows)
		}
		a := w.found(search, all)
		if err != nil {
			return a, err
		}
		// Fills with the same text are listed once.
		missing := top - len(a.fills)
		if missing <= 0 || !search.Proven() || search.Len() < wanted {
			return a, nil
		}
		wanted += max(missing, wanted/2)
	}
}

func (p *Plan) combinations() float64 {
	n := 0.0
	for _, l := range p.layouts {
		c := l.combinations()
		if c == 0 {
			return 0
		}
		n += c
	}
	return n
}

// found returns the answer that a search has so far: the likeliest fills with
// different texts. all is the number of fills of the lists.
func (w *work) found(s *samplers.Search, all int) *answer {
	a := &answer{method: MethodSearch, law: true, proven: s.Proven(), distinct: s.Len(), place: "before the proof"}
	seen := map[string]bool{}
	states := s.Found()
	listed := len(states)
	for i, f := range states {
		text := w.plan.layouts[f.Law].template.Fill(f.State).Text
		if seen[text] {
			continue
		}
		if len(a.fills) == int(w.plan.Request.Top) {
			listed = i
			break
		}
		seen[text] = true
		a.fills = append(a.fills, found{layout: f.Law, tokens: f.State, logLikelihood: f.LogProbability})
	}
	a.left = s.LeftOut(listed)
	if all > 0 && s.Proven() {
		a.complete = true
		for _, f := range states {
			a.total += math.Exp(f.LogProbability)
		}
	}
	return a
}
