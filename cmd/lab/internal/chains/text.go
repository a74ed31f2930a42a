package chains

import (
	"context"
	"slices"

	"github.com/spf13/pflag"

	"infill/cmd/lab/internal/lab"
	"infill/lm"
	"infill/models"
	"infill/samplers"
	"infill/tokenize"
)

// newText makes the target of fills of a template, under a masked language
// model. Each blank takes its most probable tokens. The observables are the
// indicators of every token.
func newText(f *pflag.FlagSet) maker {
	template := f.String("template", "the old [MASK] sat by the [MASK] and said nothing .", "`TEXT` with its blanks")
	candidates := lab.WholeFlag(f, "candidates", 40, 2, lab.MaxCategories,
		"the most probable tokens, which a blank may take")
	name := f.String("model", "", "`NAME` of a model, or a folder with one (default: the built-in)")
	return func(ctx context.Context, in *lab.Inputs) (*distribution, error) {
		model, tokenizer, err := OpenModel(ctx, in, "model", *name)
		if err != nil {
			return nil, err
		}
		typed, err := tokenizer.Template(*template)
		if err != nil {
			return nil, lab.Refuse("template", "%w", err)
		}
		logp, err := Expected(ctx, model, typed.IDs, typed.Slots)
		if err != nil {
			return nil, err
		}
		o := lm.TargetOptions{Gradient: lm.Local}
		for _, row := range logp {
			best := samplers.Likeliest(tokenizer.Fillable(), row, *candidates)
			slices.Sort(best)
			o.Support = append(o.Support, best)
		}
		d := &distribution{kind: "text", inconsistent: true, onText: true,
			parameters: settings(f, "template", "candidates", "model")}
		d.Target, err = model.NewTarget(typed.IDs, typed.Slots, o)
		if err != nil {
			return nil, err
		}
		d.observables = indicators(d.Target.Categories())
		return d, d.settleSmall(ctx)
	}
}

// OpenModel opens the model that an option names, on the CPU.
func OpenModel(ctx context.Context, in *lab.Inputs, option, name string) (*lm.MaskedLM, *tokenize.Tokenizer, error) {
	bundle, err := models.Open(name)
	if err != nil {
		return nil, nil, err
	}
	in.Add(option, bundle.Name, bundle.SHA256)
	tokenizer, err := bundle.Tokenizer()
	if err != nil {
		return nil, nil, err
	}
	model, err := lm.Open(ctx, bundle, lm.Options{Device: "cpu", MaskID: tokenizer.MaskID(),
		SeparatorID: tokenizer.SeparatorID()})
	return model, tokenizer, err
}

// Expected returns log P of every token in some slots of a text while all of them
// are masked, [slots][vocabulary].
func Expected(ctx context.Context, m *lm.MaskedLM, ids, slots []int) ([][]float32, error) {
	ids = slices.Clone(ids)
	for _, slot := range slots {
		ids[slot] = m.MaskID()
	}
	rows, err := m.LogProbabilities(ctx, []lm.Row{{IDs: ids, Positions: slots}})
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}
