package chains

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"infill/cmd/lab/internal/lab"
	"infill/internal/eval"
	"infill/internal/eval/corpus"
	"infill/metrics"
)

func newInfilling() *lab.Study {
	s := lab.NewStudy("infilling")
	dir := s.Flags.String("run", "", "folder `DIR` of the run (needed)")
	named := s.Flags.StringArray("corpus", nil, "a corpus of the run, as `NAME=FILE`; give it again for each: with "+
		"all of them, the columns that compare with them are there too")
	s.Plan = func(_ context.Context, in *lab.Inputs, _ uint64) (*lab.Plan, error) {
		if *dir == "" {
			return nil, lab.Refuse("run", "name the folder of a finished run of infill eval")
		}
		results, err := eval.ReadResults(*dir)
		if err != nil {
			return nil, lab.Refuse("run", "%w", err)
		}
		_, err = in.Read("run", filepath.Join(*dir, "samples.jsonl"), nil, "")
		if err != nil {
			return nil, lab.Refuse("run", "%w", err)
		}
		references, err := readCorpora(in, *named)
		if err != nil {
			return nil, err
		}
		watched := eval.Watch(*dir)
		p := s.NewPlan("samplers on text, by sentences")
		wanted := slices.Clone(ownScores)
		for _, r := range references {
			wanted = append(wanted, scoreColumn{r.Name + "-2", "unique_ngrams/" + r.Name + "/2"},
				scoreColumn{r.Name + "-3", "unique_ngrams/" + r.Name + "/3"})
		}
		if len(references) > 0 {
			wanted = append(wanted, scoreColumn{"bleu", "corpus_bleu/" + metrics.Union})
		}
		for i, w := range wanted {
			p.Columns = slices.Insert(p.Columns, i, lab.Column{Name: w.column, Format: "%.2f",
				Definition: fmt.Sprintf("%s of the %d likeliest samples of each sentence, percent: pseudo-values of "+
					"the jackknife, whose mean is that of the run", w.score, results.Configuration.Top)})
		}
		for _, m := range results.Methods {
			r := runOfMethod{watched: watched, model: m.Model, method: m.Method, top: results.Configuration.Top,
				options: watched.Scoring(), references: references, wanted: wanted}
			values, err := r.pseudoValues(m.Top)
			if err != nil {
				return nil, lab.Refuse("run", "%s: %w", m.Method, err)
			}
			for sentence, value := range values {
				p.Cells = append(p.Cells, lab.Cell{
					Labels: lab.Labels{{Name: "sampler", Value: m.Method}, {Name: "model", Value: m.Model},
						{Name: lab.RepeatLabel, Value: strconv.Itoa(sentence + 1)}},
					Run: func(_ context.Context, b *lab.Bench) error { return r.record(b, sentence, value) }})
			}
		}
		return p, nil
	}
	return s
}

// A scoreColumn is a column of the study, and the name of its score in a report.
type scoreColumn struct{ column, score string }

// ownScores compare samples with each other, and need no corpora.
var ownScores = []scoreColumn{
	{"self-bleu", metrics.MetricSelfBLEU},
	{"self-2", "unique_ngrams/" + metrics.Self + "/2"},
	{"self-3", "unique_ngrams/" + metrics.Self + "/3"},
}

func readCorpora(in *lab.Inputs, named []string) (list []metrics.Reference, err error) {
	for _, text := range named {
		name, path, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, lab.Refuse("corpus", "%q is not NAME=FILE", text)
		}
		c, err := corpus.Read(name, path, nil, "")
		if err != nil {
			return nil, lab.Refuse("corpus", "%w", err)
		}
		in.Add("corpus", path, c.SHA256)
		list = append(list, metrics.Reference{Name: name, Sentences: c.Raw()})
	}
	return list, nil
}

type runOfMethod struct {
	watched       *eval.Watched
	model, method string
	top           int
	options       metrics.Options // of the run
	references    []metrics.Reference
	wanted        []scoreColumn
}

// pseudoValues returns the pseudo-values of each sentence, by the names of their
// columns, moved so that their mean is the score and not the jackknife's
// correction of it: reports have the score. reported is what the run itself says.
func (r runOfMethod) pseudoValues(reported *metrics.Report) ([]map[string]float64, error) {
	n := len(r.watched.Prompts)
	whole, err := r.scores(-1)
	if err != nil {
		return nil, err
	}
	for _, w := range r.wanted {
		said := float64(reported.Value(w.score))
		if !(math.Abs(said-whole[w.column]) <= 1e-6) { // also if the run has none
			return nil, fmt.Errorf("%s is %v here, and %v in the run: score it again, and name the run's own corpora",
				w.score, whole[w.column], said)
		}
	}
	var without []map[string]float64
	mean := map[string]float64{} // of those without a sentence
	for sentence := range n {
		others, err := r.scores(sentence)
		if err != nil {
			return nil, err
		}
		without = append(without, others)
		for name, x := range others {
			mean[name] += x / float64(n)
		}
	}
	var values []map[string]float64
	for _, others := range without {
		own := map[string]float64{}
		for name, all := range whole {
			own[name] = all + float64(n-1)*(mean[name]-others[name])
		}
		values = append(values, own)
	}
	return values, nil
}

// scores returns the wanted scores of the likeliest samples of all sentences,
// but of one that is left out.
func (r runOfMethod) scores(without int) (map[string]float64, error) {
	var texts metrics.Hypotheses
	o := r.options
	o.NoIntervals = true
	for sentence := range r.watched.Prompts {
		if sentence == without {
			continue
		}
		for _, c := range r.watched.Record(r.model, r.method, sentence).Likeliest(r.top) {
			texts.Sentences = append(texts.Sentences, c.Text)
			texts.Prompts = append(texts.Prompts, strconv.Itoa(sentence))
		}
	}
	report, err := metrics.Evaluate(context.Background(), texts, r.references, o)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for _, w := range r.wanted {
		values[w.column] = float64(report.Value(w.score))
	}
	return values, nil
}

func (r runOfMethod) record(b *lab.Bench, sentence int, values map[string]float64) error {
	own := r.watched.Record(r.model, r.method, sentence)
	u := 0.0
	for _, c := range own.Chains {
		u += c.LogLikelihood / float64(len(own.Chains))
	}
	for name, value := range values {
		b.Number(name, value)
	}
	b.Number("u", u)
	b.Number("changed", own.ChangedSlotsPerStep)
	return nil
}
