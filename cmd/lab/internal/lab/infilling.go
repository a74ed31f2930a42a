package lab

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"infill/internal/eval"
	"infill/metrics"
)

// newInfilling returns the study of a run of infill eval.
func newInfilling() *Study {
	s := newStudy("infilling", "Compare the samplers of a run of infill eval, sentence by sentence",
		`Read a finished run of infill eval, and take each number apart by sentences. A repetition is a
sentence. It has the jackknife's pseudo-value: n times the number of all n sentences, less n-1
times the number without this one. Pseudo-values of two samplers, in pairs, give the interval of
the difference, which lab verdicts uses: table 3 of the discrete Langevin paper.`)
	dir := s.Flags.String("run", "", "folder `DIR` of the run (needed)")
	s.plan = func(_ context.Context, in *inputs, _ uint64) (*plan, error) {
		if *dir == "" {
			return nil, refuse("run", "name the folder of a finished run of infill eval")
		}
		results, err := eval.ReadResults(*dir)
		if err != nil {
			return nil, refuse("run", "%w", err)
		}
		_, err = in.read("run", filepath.Join(*dir, "samples.jsonl"), nil, "")
		if err != nil {
			return nil, refuse("run", "%w", err)
		}
		watched := eval.Watch(*dir)
		p := newPlan("samplers on text, by sentences", []column{
			{name: "self-bleu", format: "%.2f", definition: fmt.Sprintf("of the %d likeliest samples of each "+
				"sentence, percent: pseudo-values of the jackknife", results.Configuration.Top)},
			{name: "u", format: "%.2f", definition: "mean U of all samples of the sentence, nats"},
			{name: "changed", format: "%.2f", definition: "slots that a step changes"},
		})
		for _, m := range results.Methods {
			r := runOfMethod{watched: watched, model: m.Model, method: m.Method, top: results.Configuration.Top,
				tokenisation: results.Configuration.Metrics.Tokenisation}
			values, err := r.pseudoValues(m.Top)
			if err != nil {
				return nil, refuse("run", "%s: %w", m.Method, err)
			}
			for sentence, value := range values {
				p.cells = append(p.cells, cell{
					labels{{"sampler", m.Method}, {"model", m.Model}, {repeatLabel, strconv.Itoa(sentence + 1)}},
					func(_ context.Context, b *bench) error { return r.record(b, sentence, value) }})
			}
		}
		return p, nil
	}
	return s
}

// runOfMethod are the samples of one method.
type runOfMethod struct {
	watched       *eval.Watched
	model, method string
	top           int
	tokenisation  metrics.Tokenisation
}

// pseudoValues returns the pseudo-value of self-BLEU of each sentence. reported
// is what the run itself says.
func (r runOfMethod) pseudoValues(reported *metrics.Report) ([]float64, error) {
	n := len(r.watched.Prompts)
	whole, err := r.selfBLEU(-1)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(reported.Scores, func(s metrics.Score) bool { return s.Metric == metrics.MetricSelfBLEU })
	if at < 0 || math.Abs(float64(reported.Scores[at].Value)-whole) > 1e-6 {
		return nil, fmt.Errorf("self-BLEU is %v here, and otherwise in the run: score it again", whole)
	}
	var values []float64
	for sentence := range n {
		without, err := r.selfBLEU(sentence)
		if err != nil {
			return nil, err
		}
		values = append(values, float64(n)*whole-float64(n-1)*without)
	}
	return values, nil
}

// selfBLEU returns self-BLEU of the likeliest samples of all sentences, but of
// one that is left out.
func (r runOfMethod) selfBLEU(without int) (float64, error) {
	var texts metrics.Hypotheses
	for sentence := range r.watched.Prompts {
		if sentence == without {
			continue
		}
		for _, c := range r.watched.Record(r.model, r.method, sentence).Likeliest(r.top) {
			texts.Sentences = append(texts.Sentences, c.Text)
			texts.Prompts = append(texts.Prompts, strconv.Itoa(sentence))
		}
	}
	o := metrics.DefaultOptions()
	o.Tokenisation = r.tokenisation
	o.NoIntervals = true
	report, err := metrics.Evaluate(context.Background(), texts, nil, o)
	if err != nil {
		return 0, err
	}
	at := slices.IndexFunc(report.Scores, func(s metrics.Score) bool { return s.Metric == metrics.MetricSelfBLEU })
	return float64(report.Scores[at].Value), nil
}

// record records a sentence.
func (r runOfMethod) record(b *bench, sentence int, selfBLEU float64) error {
	own := r.watched.Record(r.model, r.method, sentence)
	u := 0.0
	for _, c := range own.Chains {
		u += c.LogLikelihood / float64(len(own.Chains))
	}
	b.number("self-bleu", selfBLEU)
	b.number("u", u)
	b.number("changed", own.ChangedSlotsPerStep)
	return nil
}
