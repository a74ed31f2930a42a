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
	warm := slices.Clone(laws)
	for i := range warm {
		if err := laws[i].Target.(*law).keep(); err != nil {
			return err
		}
		if o.Temperature != 1 {
			warm[i].Target = &tempered{law: laws[i].Target.(*law), layout: w.plan.layouts[i],
				temperature: o.Temperature}
		}
	}
	drawn, err := samplers.Draw(ctx, warm, samplers.Streams(o.Seed, w.plan.Template, o.Samples),
		func(spent int) int { return o.Budget.room(len(w.roots)+spent, w.began) })
	if err != nil {
		return err
	}
	drawn = slices.DeleteFunc(drawn, func(d samplers.Drawn) bool { return d.State == nil })
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
		f := found{layout: d.Law, tokens: d.State, count: 1}
		text := w.plan.layouts[d.Law].template.Fill(d.State).Text
		at, again := index[text]
		if again && o.Rank == rankDistinct {
			w.answer.fills[at].count++
			continue
		}
		index[text] = len(w.answer.fills)
		w.answer.fills = append(w.answer.fills, f)
	}
	w.answer.distinct = len(index)
	for number := range laws {
		var own []*found
		for i := range w.answer.fills {
			if f := &w.answer.fills[i]; f.layout == number {
				own = append(own, f)
			}
		}
		const batch = 256
		for part := range slices.Chunk(own, batch) {
			states := make([][]int, len(part))
			for i, f := range part {
				states[i] = f.tokens
			}
			logp, err := laws[number].LogProbability(ctx, states)
			if err != nil {
				return err
			}
			for i, f := range part {
				f.logLikelihood = logp[i]
			}
		}
	}
	if o.Rank == rankDistinct {
		slices.SortStableFunc(w.answer.fills,
			func(a, b found) int { return cmp.Compare(b.logLikelihood, a.logLikelihood) })
	}
	w.answer.fills = w.answer.fills[:min(len(w.answer.fills), o.Top)]
	return nil
}
