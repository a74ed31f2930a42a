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

// draws is the method that makes independent draws by the chain rule.
type draws struct{}

func (draws) solve(ctx context.Context, w *work) error {
	o := &w.plan.Options
	laws, err := w.laws()
	if err != nil {
		return err
	}
	for i := range laws {
		err := laws[i].Target.(*law).keep()
		if err != nil {
			return err
		}
	}
	drawn, err := samplers.Draw(ctx, laws, o.Temperature, samplers.Streams(o.Seed, w.plan.Template, o.Samples),
		func(spent int) int { return o.Budget.room(len(w.roots)+spent, w.began) })
	if err != nil {
		return err
	}
	drawn = slices.DeleteFunc(drawn, func(d samplers.Drawn) bool { return !d.Done })
	if len(drawn) == 0 {
		return misfit("samples", "%s sufficed for no draw: each token of a draw takes a row, and a draw that the "+
			"blanks may not take is made again; give more with --budget", o.Budget.text())
	}
	w.answer = answer{method: MethodDraws, law: true, seeded: true, draws: len(drawn)}
	if missing := o.Samples - len(drawn); missing > 0 {
		w.answer.warnings = append(w.answer.warnings,
			fmt.Sprintf("%s sufficed for %d of %d draws: each token of a draw takes a row, and a draw that the "+
				"blanks may not take is made again; give more with --budget", o.Budget.text(), len(drawn), o.Samples))
	}
	index := map[string]int{}
	for _, d := range drawn {
		f := found{layout: d.Found.Law, tokens: d.Found.State, logLikelihood: d.Found.LogProbability, count: 1}
		text := w.plan.layouts[f.layout].template.Fill(f.tokens).Text
		at, again := index[text]
		if again && o.Rank == rankDistinct {
			w.answer.fills[at].count++
			continue
		}
		index[text] = len(w.answer.fills)
		w.answer.fills = append(w.answer.fills, f)
	}
	w.answer.distinct = len(index)
	if o.Rank == rankDistinct {
		slices.SortStableFunc(w.answer.fills,
			func(a, b found) int { return cmp.Compare(b.logLikelihood, a.logLikelihood) })
	}
	w.answer.fills = w.answer.fills[:min(len(w.answer.fills), o.Top)]
	return nil
}
