package metrics

import (
	"context"
	"fmt"
)

// Comparison is the result of [CompareMethods].
type Comparison struct {
	Unit      string       `json:"unit"` // what is paired: "prompt" or "sentence"
	Units     int          `json:"units"`
	Scores    []Difference `json:"scores"`
	Warnings  []Warning    `json:"warnings"`
	Signature string       `json:"signature"`
}

// Difference is the paired comparison of one score.
type Difference struct {
	Metric    string `json:"metric"`
	Reference string `json:"reference,omitempty"`
	N         int    `json:"n,omitempty"`
	Unit      string `json:"unit"` // "percent" or "nats"
	PairedTest
	Signature string `json:"signature"`
}

// Name is the score in one word, as [Score.Name].
func (d Difference) Name() string { return scoreName(d.Metric, d.Reference, d.N) }

// CompareMethods tests every score of [Evaluate] for a difference between two methods that worked on the same prompts,
// or, without prompts, sentence by sentence. The p-values are of single tests; correct them if you look at many
// scores or pairs of methods.
func CompareMethods(ctx context.Context, first, second Hypotheses, references []Reference,
	o Options) (*Comparison, error) {
	o, err := o.normal()
	if err != nil {
		return nil, err
	}
	if o.Resamples < 0 {
		return nil, fmt.Errorf("resamples %d: a paired test needs a number above 0, or 0 for %d", o.Resamples,
			DefaultOptions().Resamples)
	}
	e, err := newEvaluation([]Hypotheses{first, second}, references, o)
	if err != nil {
		return nil, err
	}
	if len(e.groups) > 0 {
		err = samePrompts(first.Prompts, second.Prompts)
	} else if len(first.Sentences) != len(second.Sentences) {
		err = fmt.Errorf("%d sentences against %d: without prompts, methods are compared sentence by sentence",
			len(first.Sentences), len(second.Sentences))
	}
	if err != nil {
		return nil, err
	}
	c := &Comparison{Unit: e.units.name, Units: e.units.count, Signature: e.wholeSignature("paired")}
	if c.Units < fewestToDiffer {
		e.warn("%d %ss: with fewer than %d no difference can reach p = 0.05", c.Units, c.Unit, fewestToDiffer)
	}
	for _, m := range e.metrics() {
		d := Difference{Metric: m.kind.name, Reference: m.reference, N: m.n, Unit: m.kind.unit,
			Signature: m.signature}
		test, err := compare(ctx, m.metric, e.units, e.second, e.random(), o.Resamples, o.Confidence)
		if err != nil {
			return nil, fmt.Errorf("comparing %s: %w", d.Name(), err)
		}
		if d.PairedTest = *test; !d.Difference.Defined() {
			e.warnings = append(e.warnings, Warning{d.Name(), "not defined for both methods"})
		}
		c.Scores = append(c.Scores, d)
	}
	c.Warnings = append([]Warning{}, e.warnings...)
	return c, nil
}

func samePrompts(first, second []string) error {
	for _, pair := range [][2][]string{{first, second}, {second, first}} {
		known := map[string]bool{}
		for _, prompt := range pair[1] {
			known[prompt] = true
		}
		for _, prompt := range pair[0] {
			if !known[prompt] {
				return fmt.Errorf("prompt %q has sentences of one method only: a paired test needs the same prompts",
					prompt)
			}
		}
	}
	return nil
}
