package infill

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"infill/samplers"
)

// MethodDraws is the method that makes independent draws by the chain rule.
const MethodDraws = "draws"

// Draws makes independent draws by the chain rule.
type Draws struct {
	// Order is the order of the chain rule.
	Order Order `option:"order" default:"l2r"`
	// Temperature shapes the draws.
	Temperature float64 `option:"temperature" default:"1" minimum:"0.000001" maximum:"1000000" examples:"0.5,0.7,0.8,1,1.2,1.5,2" word:"T" help:"of draws: each conditional over the vocabulary to the power 1/T; of chains: exp(U/T)"`
	// Samples is the number of draws; required.
	Samples int `option:"samples" minimum:"1" maximum:"65536" examples:"1,5,10,25,50,100" word:"N" help:"independent draws from the model; with a sampler its chains (25), each of which ends in one sample"`
	// Rank says which draws are listed.
	Rank Rank `option:"rank" default:"distinct" enum:"distinct,final" word:"{distinct|final}" help:"of draws and chains: list the distinct fills, or each draw and each chain's final state with repeats"`
	// Budget bounds the cost.
	Budget Budget `option:"budget" default:"4000"`
}

func (Draws) Name() string { return MethodDraws }

func (Draws) random() bool { return true }

func (Draws) heavy() bool { return false }

func (d Draws) settled() Method {
	declared.Settle(&d)
	return d
}

func (d Draws) check(*Request, Model) error {
	if d.Samples == 0 {
		return wrong("samples", "draws need a number of them: give 1 or more")
	}
	return nil
}

func (d Draws) fits(p *Plan) error { return p.takes(d.Order) }

func (d Draws) cost(p *Plan) (rows int, bytes float64) {
	switch {
	case p.Slots() == 1: // the row with all slots masked gives every probability
		rows = p.roots()
	case d.Budget.Rows > 0:
		rows = max(d.Budget.Rows, p.roots())
	}
	n, vocabulary := float64(p.Slots()), float64(p.filler.tokenizer.VocabularySize())
	kept := float64(4 * keptNumbers * len(p.layouts))
	if rows > 0 {
		kept = min(kept, 4*float64(rows)*vocabulary)
	}
	return rows, p.common() + kept + float64(d.Samples)*2*(bytesOfState+8*n)
}

// likely: few draws are made again.
func (d Draws) likely(p *Plan) (rows int, bytes float64) {
	rows, bytes = d.cost(p)
	return min(rows, p.roots()+int(d.Samples)*(p.Slots()-1)), bytes
}

// solve draws fills from P while the budget lasts, and drops unfinished ones.
func (d Draws) solve(ctx context.Context, w *work) (*answer, error) {
	laws := w.laws(d.Order)
	for i := range laws {
		laws[i].Target.(*law).keep()
	}
	streams := samplers.Streams(uint64(w.plan.Request.Seed), w.plan.Request.Template, d.Samples)
	least := w.asker.rows + w.plan.Slots() - 1 // rows of one draw, the roots included
	drawn, err := samplers.Draw(ctx, laws, d.Temperature, streams, func(done, rejected int) int {
		w.tell(Progress{Step: done, Steps: d.Samples, Pieces: w.plan.layouts[0].pieces()})
		return d.room(w, rejected)
	})
	drawn = slices.DeleteFunc(drawn, func(d samplers.Drawn) bool { return !d.Done })
	if err != nil {
		return d.answer(w, drawn), err
	}
	if len(drawn) == 0 {
		return nil, d.tooSmall(least)
	}
	a := d.answer(w, drawn)
	if len(drawn) < d.Samples {
		a.wanted = d.Samples
		a.warnings = append(a.warnings, fmt.Sprintf("%s sufficed for %d of %d draws: %s; give a larger budget",
			d.Budget.text(), len(drawn), d.Samples, whatDrawsCost))
	}
	return a, nil
}

// room returns how many rows the draws may still take. rejected is the rows of
// draws that the blanks may not take.
func (d Draws) room(w *work, rejected int) int {
	left := d.Budget.room(w.asker.rows+rejected, w.began)
	if d.Budget.Seconds > 0 {
		return min(left, trialsAtOnce*(w.plan.Slots()-1))
	}
	return left
}

const whatDrawsCost = "each token of a draw takes a row, and a draw that the blanks may not take is made again"

// tooSmall is the error for a budget that suffices for no draw, of least rows.
func (d Draws) tooSmall(least int) error {
	advice := "give a larger budget, or loosen what they may take"
	if d.Budget.Rows > 0 && d.Budget.Rows < least {
		advice = fmt.Sprintf("give %d rows or more", least)
	}
	return misfit("budget", "%s sufficed for no draw: %s; %s", d.Budget.text(), whatDrawsCost, advice)
}

// trialsAtOnce is how many draws are open at once where seconds are the budget: all
// that have begun are carried to their end.
const trialsAtOnce = 64

// answer lists the fills of finished draws.
func (d Draws) answer(w *work, drawn []samplers.Drawn) *answer {
	a := &answer{method: MethodDraws, law: true, draws: len(drawn),
		place: fmt.Sprintf("after %d of %d draws", len(drawn), d.Samples)}
	index := map[string]int{}
	for _, one := range drawn {
		f := found{layout: one.Found.Law, tokens: one.Found.State, logLikelihood: one.Found.LogProbability, count: 1}
		text := w.plan.layouts[f.layout].template.Fill(f.tokens).Text
		at, again := index[text]
		if again && d.Rank == RankDistinct {
			if f.logLikelihood > a.fills[at].logLikelihood {
				f.count = a.fills[at].count
				a.fills[at] = f
			}
			a.fills[at].count++
			continue
		}
		index[text] = len(a.fills)
		a.fills = append(a.fills, f)
	}
	a.distinct = len(index)
	if d.Rank == RankDistinct {
		slices.SortStableFunc(a.fills,
			func(a, b found) int { return cmp.Compare(b.logLikelihood, a.logLikelihood) })
	}
	a.fills = a.fills[:min(len(a.fills), int(w.plan.Request.Top))]
	return a
}

// Rank says which fills of draws and chains are listed. "distinct" or "" lists
// different fills, the likeliest first: of all draws, or of all states of chains
// after the warm-up. "final" lists every draw, or the final state of every chain,
// repeats included, as the papers do. [Request].Top bounds both.
type Rank string

// These are the values of Rank.
const (
	RankDistinct Rank = "distinct"
	RankFinal    Rank = "final"
)
