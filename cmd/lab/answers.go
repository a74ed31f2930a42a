package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"infill/infill"
)

// answerTemplates are those that auto is compared on, of two to five blanks. The
// second has modes in which its blanks copy each other.
var answerTemplates = []string{
	"the old [MASK] sat by the [MASK] and said nothing .",
	"they were [MASK] and [MASK] at the same time .",
	"the [MASK] of the [MASK] looked over the [MASK] river .",
	"he had not [MASK] the [MASK] since the [MASK] .",
	"in the early [MASK] century , the [MASK] was [MASK] by the king .",
	"i had never [MASK] such a [MASK] , and i [MASK] him so [MASK] .",
	"in the [MASK] the [MASK] were [MASK] , but the [MASK] of the [MASK] remained .",
}

const (
	likeliest       = 10 // fills whose probabilities are compared
	referenceError  = 0.04
	candidatesOfAll = 250
)

// answerJoints are the default, and the papers' energy.
var answerJoints = []infill.Joint{infill.JointChain, infill.JointPLL}

// answerOptions are those of auto for a joint.
func answerOptions(joint infill.Joint, candidates int) infill.Options {
	o := infill.DefaultOptions()
	o.Sampler, o.Joint, o.Candidates, o.Top = infill.Auto, joint, candidates, 1000
	return o
}

// writeAnswers writes what auto costs beside chains.
func writeAnswers(ctx context.Context, w io.Writer, seeds int) error {
	model, err := openLanguage(ctx, "")
	if err != nil {
		return err
	}
	defer model.Close()
	d := model.Description()
	fmt.Fprintf(w, `# What an answer costs

Written by `+"`go run ./cmd/lab answers -o docs/answers.md`"+`; do not edit. How answers are found is told in docs/probabilities.md, whether
their errors hold in docs/draws.md. Model %s (%s), onnxruntime %s, %s with
%d threads.

The law is exp U over %d candidates a blank, U being that of `+"`--joint chain`, the default, or `--joint pll`"+`, the papers' energy. The true probabilities are enumerated for two blanks; for more they are of weighted draws
with a relative standard error of %.0f %%, or what is told. **Error**: the root mean square, over the %d likeliest fills and %d seeds, of
the estimate's relative error; a fill that is not listed counts as 0. `+"`dmala`"+` runs with the command's default chains and steps, `+"`auto`"+` with its default
error and budget. **Ratios** are of auto to dmala at equal error, that of auto or %g if it is smaller: what dmala would need for it, if its error falls with the
square root of its cost, which is kind to chains that do not mix.

| joint | template | dmala: error | rows | seconds | auto: method | error | rows | seconds | rows, ratio | seconds, ratio | reference |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
`, d.Name, d.SHA256[:12], d.Runtime, d.Device, d.Threads, candidatesOfAll, 100*referenceError, likeliest, seeds, infill.DefaultOptions().Error)
	ratios := map[infill.Joint]*[2][]float64{}
	for _, joint := range answerJoints {
		ratio := new([2][]float64)
		ratios[joint] = ratio
		for _, text := range answerTemplates {
			c, err := model.compareAnswers(ctx, text, joint, seeds)
			if err != nil {
				return fmt.Errorf("%q: %w", text, err)
			}
			equal := c.chains.at(max(c.auto.error, infill.DefaultOptions().Error))
			line := fmt.Sprintf("| %s | %s | %.2f | %.0f | %.2f | %s | %.2f | %.0f | %.2f | %.2g | %.2g | %s |", joint, text, c.chains.error, c.chains.rows, c.chains.seconds,
				c.method, c.auto.error, c.auto.rows, c.auto.seconds, c.auto.rows/equal.rows, c.auto.seconds/equal.seconds, c.reference)
			fmt.Fprintln(w, line)
			log.Print(line)
			ratio[0], ratio[1] = append(ratio[0], math.Log(c.auto.rows/equal.rows)), append(ratio[1], math.Log(c.auto.seconds/equal.seconds))
		}
	}
	geometric := func(logs []float64) string {
		mean, deviation := stat.MeanStdDev(logs, nil)
		return fmt.Sprintf("%.2g ×÷ %.1f between templates, at most %.2g", math.Exp(mean), math.Exp(deviation), math.Exp(slices.Max(logs)))
	}
	fmt.Fprint(w, "\nGeometric means of the ratios:\n\n")
	for _, joint := range answerJoints {
		fmt.Fprintf(w, "- %s: rows %s; seconds %s.\n", joint, geometric(ratios[joint][0]), geometric(ratios[joint][1]))
	}
	return nil
}

// at is what the chains would cost at another error: errors fall with the square root of
// what is spent, once chains mix.
func (e expense) at(error float64) expense {
	factor := e.error * e.error / (error * error)
	return expense{error, e.rows * factor, e.seconds * factor}
}

// An expense is what runs of one method cost, and how far off they were.
type expense struct{ error, rows, seconds float64 }

// comparison is that of auto with chains on one template.
type comparison struct {
	chains, auto      expense
	method, reference string
}

func (l *language) compareAnswers(ctx context.Context, text string, joint infill.Joint, seeds int) (c comparison, err error) {
	filler := infill.New(l, l.tokenizer)
	exact := answerOptions(joint, candidatesOfAll)
	exact.Seed, exact.Error, exact.Budget = 99, referenceError, infill.Budget{Rows: 8000}
	truth, err := filler.Fill(ctx, text, exact, nil)
	if err != nil {
		return c, err
	}
	c.reference = truth.Method
	if e := *truth.Fills[0].ProbabilityError; e > 0 {
		c.reference += fmt.Sprintf(" ± %.0f %%", 100*e / *truth.Fills[0].Probability)
	}
	run := func(o infill.Options) (infill.Result, expense, error) {
		var e expense
		var last infill.Result
		for seed := range seeds {
			o.Seed = uint64(seed) + 1
			r, err := filler.Fill(ctx, text, o, nil)
			if err != nil {
				return last, e, err
			}
			last = *r
			said := map[string]float64{}
			for _, f := range r.Fills {
				said[f.Text] = *f.Probability
			}
			n := min(likeliest, len(truth.Fills))
			for _, f := range truth.Fills[:n] {
				d := said[f.Text] / *f.Probability - 1
				e.error += d * d / float64(n*seeds)
			}
			e.rows += float64(r.Stats.ModelRows) / float64(seeds)
			e.seconds += r.Stats.Seconds / float64(seeds)
		}
		e.error = math.Sqrt(e.error)
		return last, e, nil
	}
	chains := answerOptions(joint, candidatesOfAll)
	chains.Sampler = "dmala"
	if joint == infill.JointPLL { // the law that auto takes
		chains.Temperature = cmp.Or(l.Description().PLLTemperature, 1)
	}
	if _, c.chains, err = run(chains); err != nil {
		return c, err
	}
	last, cost, err := run(answerOptions(joint, candidatesOfAll))
	c.method, c.auto = last.Method, cost
	return c, err
}
