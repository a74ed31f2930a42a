package eval

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"infill/internal/ask"
	"infill/internal/eval/corpus"
	"infill/internal/logmath"
	"infill/metrics"
	"infill/samplers"
)

// Results is the content of metrics.json. It does not depend on time, the order
// of the work, or the paths of files.
type Results struct {
	Format        int            `json:"format"`
	Signature     string         `json:"signature"`
	Configuration Config         `json:"configuration"`
	Models        []modelVersion `json:"models"`
	Corpora       []corpusInfo   `json:"corpora"`
	Methods       []methodResult `json:"methods"`
	Warnings      []string       `json:"warnings"`

	joined  []joined
	header  *header
	records map[key]*Record
}

// methodResult is the result of one sampler with one model over all sentences.
type methodResult struct {
	Model     string     `json:"model"`
	Method    string     `json:"method"`
	Chains    ask.Chains `json:"chains"`
	Signature string     `json:"signature"` // of package infill
	Sentences int        `json:"sentences"`
	Samples   int        `json:"samples"` // of each sentence
	// AcceptanceRate, ChangedSlotsPerStep and StepSize are means over
	// sentences. The rate is null if the sampler accepts every proposal, and
	// the step size is null if the sampler has none.
	AcceptanceRate      *Estimate `json:"acceptance_rate"`
	ChangedSlotsPerStep Estimate  `json:"changed_slots_per_step"`
	StepSize            *Estimate `json:"step_size"`
	// LogLikelihood is the mean U of the final states of all chains, in nats.
	LogLikelihood Estimate `json:"log_likelihood"`
	// These are the costs of one sample. An evaluation is of one state; a row
	// is a token sequence in a model call.
	EnergyEvaluationsPerSample   Estimate `json:"energy_evaluations_per_sample"`
	GradientEvaluationsPerSample Estimate `json:"gradient_evaluations_per_sample"`
	ModelRowsPerSample           Estimate `json:"model_rows_per_sample"`
	// Top holds the scores of the likeliest final states of each sentence. All
	// holds the scores of all final states.
	Top *metrics.Report `json:"top"`
	All *metrics.Report `json:"all"`

	// SecondsPerSample depends on the machine, so metrics.json does not contain it.
	SecondsPerSample Estimate `json:"-"`
}

// Estimate is a mean over sentences; of one alone the error is null.
type Estimate struct {
	Mean          float64  `json:"mean"`
	StandardError *float64 `json:"standard_error"`
}

// estimate returns the mean of value over the records for which value is not
// nil, or nil if there are none.
func estimate(records []*Record, value func(*Record) *float64) *Estimate {
	var values []float64
	for _, r := range records {
		x := value(r)
		if x != nil {
			values = append(values, *x)
		}
	}
	if values == nil {
		return nil
	}
	mean, e := samplers.MeanAndError(values)
	return &Estimate{mean, logmath.Known(e)}
}

// perSample returns a sample's mean cost, of records whose cost is total.
func perSample(records []*Record, total func(*Record) float64) Estimate {
	return *estimate(records, func(r *Record) *float64 {
		return new(total(r) / float64(len(r.Chains)))
	})
}

func secondsPerSample(records []*Record) Estimate {
	return perSample(records, func(r *Record) float64 { return r.Seconds })
}

func newResults(ctx context.Context, h *header, records map[key]*Record, corpora []*corpus.Corpus) (*Results, error) {
	c := h.Configuration
	r := &Results{
		Format: formatVersion, Signature: h.Signature, Configuration: c, Models: h.Models, Corpora: h.Corpora,
		Methods: []methodResult{}, Warnings: []string{}, header: h, records: records,
	}
	references := references(corpora)
	options := h.scoring()
	for _, m := range h.Models {
		for _, v := range c.Samplers {
			list, err := h.recordsOf(records, m.Name, v.Name)
			if err != nil {
				return nil, err
			}
			result := summarise(m, v, list)
			result.Top, err = metrics.Evaluate(ctx, hypotheses(h, m, list, c.Top), references, options)
			if err != nil {
				return nil, fmt.Errorf("scores of %s: %w", v.Name, err)
			}
			result.All, err = metrics.Evaluate(ctx, hypotheses(h, m, list, c.Chains), references, options)
			if err != nil {
				return nil, fmt.Errorf("scores of %s: %w", v.Name, err)
			}
			for _, w := range result.Top.Warnings {
				// A warning about the whole run is added only once.
				if w.Score == "" && !slices.Contains(r.Warnings, w.Message) {
					r.Warnings = append(r.Warnings, w.Message)
				}
			}
			r.Methods = append(r.Methods, result)
		}
	}
	return r, nil
}

func references(corpora []*corpus.Corpus) (list []metrics.Reference) {
	for _, c := range corpora {
		list = append(list, metrics.Reference{Name: c.Name, Sentences: c.Raw()})
	}
	return list
}

func (h *header) scoring() metrics.Options {
	o := h.Configuration.metrics()
	o.Version = h.Program.Version
	if !h.Configuration.Metrics.KeepSources {
		for _, p := range h.Prompts() {
			o.Sources = append(o.Sources, p.Source)
		}
	}
	return o
}

// recordsOf returns the records of a method with a model, in the order of the sentences.
func (h *header) recordsOf(records map[key]*Record, model, method string) (list []*Record, err error) {
	for sentence := range h.sentences() {
		record := records[key{model, method, sentence}]
		if record == nil {
			return nil, fmt.Errorf("sentence %d is missing for %s with model %s", sentence+1, method, model)
		}
		list = append(list, record)
		if record.Signature != list[0].Signature {
			return nil, fmt.Errorf("%s with model %s: sentence %d was computed otherwise than the first: %s, %s",
				method, model, sentence+1, record.Signature, list[0].Signature)
		}
	}
	return list, nil
}

// hypotheses returns each sentence's likeliest final states, number at most. Of
// equals, the earlier chain comes first.
func hypotheses(h *header, m modelVersion, records []*Record, number int) metrics.Hypotheses {
	var set metrics.Hypotheses
	for _, r := range records {
		for _, c := range r.Likeliest(number) {
			text := c.Text
			if h.Configuration.Metrics.Tokenisation == metrics.DISCS && !m.Cased {
				// In DISCS, sentences are the joined tokens of the uncased model.
				text = strings.ToLower(text)
			}
			set.Sentences = append(set.Sentences, text)
			set.Prompts = append(set.Prompts, fmt.Sprint(r.Sentence))
			set.LogLikelihoods = append(set.LogLikelihoods, c.LogLikelihood)
		}
	}
	return set
}

// Likeliest returns the chains with the likeliest final states, the likeliest
// first, at most number of them.
func (r *Record) Likeliest(number int) (list []chain) {
	for _, i := range r.likeliest(number) {
		list = append(list, r.Chains[i])
	}
	return list
}

func (r *Record) likeliest(number int) (list []int) {
	for i := range r.Chains {
		list = append(list, i)
	}
	slices.SortStableFunc(list, func(a, b int) int {
		return cmp.Compare(r.Chains[b].LogLikelihood, r.Chains[a].LogLikelihood)
	})
	return list[:min(number, len(list))]
}

// summarise computes a method's result, without the scores of texts.
func summarise(m modelVersion, v variant, records []*Record) methodResult {
	return methodResult{
		Model: m.Name, Method: v.Name, Chains: v.Chains, Signature: records[0].Signature, Sentences: len(records),
		Samples:             len(records[0].Chains),
		AcceptanceRate:      estimate(records, func(r *Record) *float64 { return r.AcceptanceRate }),
		StepSize:            estimate(records, func(r *Record) *float64 { return r.StepSize }),
		ChangedSlotsPerStep: *estimate(records, func(r *Record) *float64 { return &r.ChangedSlotsPerStep }),
		LogLikelihood: *estimate(records, func(r *Record) *float64 {
			u := 0.0
			for _, chain := range r.Chains {
				u += chain.LogLikelihood / float64(len(r.Chains))
			}
			return &u
		}),
		SecondsPerSample: secondsPerSample(records),
		EnergyEvaluationsPerSample: perSample(records,
			func(r *Record) float64 { return float64(r.EnergyEvaluations) }),
		GradientEvaluationsPerSample: perSample(records,
			func(r *Record) float64 { return float64(r.GradientEvaluations) }),
		ModelRowsPerSample: perSample(records, func(r *Record) float64 { return float64(r.ModelRows) }),
	}
}
