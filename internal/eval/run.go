package eval

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"infill/infill"
	"infill/internal/eval/corpus"
	"infill/internal/journal"
	"infill/internal/logmath"
	"infill/internal/parallel"
	"infill/metrics"
	"infill/samplers"
	"infill/tokenize"
)

type Options struct {
	Dir     string
	Config  Config
	Models  []*infill.Filler // Run closes each model after its last fill
	Corpora []*corpus.Corpus
	// Device is the requested device of the model calls, such as "cpu". Run
	// returns an error if the folder has samples of another device. "" and
	// "auto" allow any device.
	Device string
	// Judge, unless nil, is a model that rates the samples. Run closes it.
	Judge *infill.Filler
	// Jobs is the number of sentences that are filled at once; 0 means 1.
	Jobs int
	// Observe is called with every step, one call at a time.
	Observe func(Progress)
	Note    func(string)
}

type Progress struct {
	Model, Method       string
	Sentence, Sentences int // index of the sentence, and number of all sentences
	Step, Steps         int
	// Done and Total count fills. A fill is of one sentence by one method.
	Done, Total int
	Chains      int // chains of a fill
	// ChainsPerSecond and Left, the estimated remaining time, are computed from
	// the fills of this process. Both are 0 before its first fill is done.
	ChainsPerSecond float64
	Left            time.Duration
	// Scoring reports that all fills are done and that Run is computing the
	// scores. Then Step and Steps count the fills that the judge has rated.
	Scoring bool
}

// Run starts an evaluation, or resumes the evaluation in o.Dir, and returns
// its results. If ctx ends, Run returns ctx.Err(), and the fills finished so
// far stay in o.Dir.
func Run(ctx context.Context, o Options) (*Results, error) {
	if err := o.Config.Validate(); err != nil {
		return nil, err
	}
	header, err := newHeader(ctx, o)
	if err != nil {
		return nil, err
	}
	// If no sentence of a reference is left to compare with, return the error
	// before any work. The sentences themselves stand for their fills.
	var masked metrics.Hypotheses
	for _, p := range header.Prompts() {
		masked.Sentences = append(masked.Sentences, p.Source)
	}
	options := header.scoring()
	options.NoIntervals = true
	if _, err := metrics.Evaluate(ctx, masked, references(o.Corpora), options); err != nil {
		return nil, err
	}
	f, err := openFolder(o.Dir, header)
	if err != nil {
		return nil, err
	}
	r := &runner{folder: f, options: o, prompts: header.Prompts(), kept: len(f.records)}
	results, err := r.run(ctx)
	return results, errors.Join(err, f.Close())
}

func newHeader(ctx context.Context, o Options) (*header, error) {
	h := &header{
		Format: formatVersion, Configuration: o.Config, Paths: map[string]string{},
		Program: program{infill.Version(), runtime.Version()},
	}
	for _, f := range o.Models {
		m := f.Model()
		for _, other := range h.Models {
			if other.Name == m.Name {
				return nil, fmt.Errorf("two models are called %q: results could not be told apart", m.Name)
			}
		}
		h.Models = append(h.Models, modelVersion{m.Name, m.SHA256, m.Tokenizer, m.Cased})
		for _, v := range o.Config.Samplers {
			err := f.Check(o.Config.request(v))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", v.Name, err)
			}
		}
	}
	sources := 0
	for _, c := range o.Corpora {
		sources += logmath.Indicator(!c.Reference)
	}
	switch {
	case len(o.Models) == 0:
		return nil, errors.New("no model: name at least one")
	case sources == 0:
		return nil, errors.New("no corpus to take sentences of")
	case o.Config.Sentences < sources:
		return nil, fmt.Errorf("%d sentences of %d corpora: choose at least one of each", o.Config.Sentences, sources)
	}
	taken := 0
	for _, c := range o.Corpora {
		info := corpusInfo{
			Name: c.Name, SHA256: c.SHA256, Form: c.Form,
			Markers: cmp.Or(o.Config.Select.Markers, corpus.BertGen), Sentences: len(c.Sentences), Skipped: c.Skipped,
		}
		if info.Skipped == nil {
			info.Skipped = []corpus.Skip{}
		}
		if !c.Reference {
			// Each corpus gives the same number of sentences, or the first ones
			// one more if the total is no multiple.
			options := o.Config.Select
			options.Sentences = (o.Config.Sentences + sources - 1 - taken) / sources
			options.Seed, options.Check, info.Masked = o.Config.Seed, fits(ctx, o.Models), options.Sentences
			taken++
			selection, err := c.Select(options)
			if err != nil {
				return nil, err
			}
			h.Selection = append(h.Selection, selection)
		}
		h.Corpora = append(h.Corpora, info)
		h.Paths[c.Name] = c.Path
	}
	var err error
	h.Signature, err = h.signature()
	return h, err
}

// fits returns a SelectOptions.Check that rejects templates that are too long
// for a model or hold forbidden text.
func fits(ctx context.Context, models []*infill.Filler) func(template string) string {
	return func(template string) string {
		for _, m := range models {
			plan, err := m.Plan(ctx, infill.Request{Template: template, Fit: infill.Fit{Fill: infill.FillAny}})
			var input *tokenize.InputError
			switch {
			case errors.As(err, &input):
				return fmt.Sprintf("refused by model %s: %v", m.Model().Name, input.Fault)
			case err != nil:
				return fmt.Sprintf("refused by model %s", m.Model().Name)
			case plan.TooLong() != nil: // the samples' metrics are of whole sentences
				return fmt.Sprintf("refused by model %s: %v", m.Model().Name, tokenize.ErrTooLong)
			}
		}
		return ""
	}
}

// signature returns one line that names everything on which the numbers of a
// run depend. The field configuration is a hash of all choices, so that none
// can be missing. onnxruntime and device are only in the signatures of the
// methods.
func (h *header) signature() (string, error) {
	c := h.Configuration
	choices, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	var models, corpora []string
	for _, m := range h.Models {
		models = append(models, fmt.Sprintf("%s@%.12s+%.12s", m.Name, m.SHA256, m.Tokenizer))
	}
	for _, k := range h.Corpora {
		corpora = append(corpora, fmt.Sprintf("%s[%d of %d@%.12s]", k.Name, k.Masked, k.Sentences, k.SHA256))
	}
	mask := fmt.Sprint("mask:", c.Select.Mask.Fraction)
	if c.Select.Mask.Count > 0 {
		mask = fmt.Sprint("slots:", c.Select.Mask.Count)
	}
	fields := []string{"evaluation:" + c.Preset, "models:" + strings.Join(models, ","),
		"corpora:" + strings.Join(corpora, ","), mask,
		fmt.Sprintf("tokens:%d-%d", c.Select.MinimumTokens, c.Select.MaximumTokens),
		fmt.Sprint("samples:", c.Chains), fmt.Sprint("top:", c.Top), fmt.Sprint("seed:", c.Seed),
		fmt.Sprintf("configuration:%.6x", sha256.Sum256(choices)), "version:" + h.Program.Version}
	for i := range fields {
		fields[i] = strings.ReplaceAll(fields[i], "|", "/")
	}
	return strings.Join(fields, "|"), nil
}

type runner struct {
	folder  *folder
	options Options
	prompts []corpus.Prompt
	kept    int // number of fills by earlier processes
	total   int

	mutex sync.Mutex
	start time.Time
	done  int // number of fills by this process
}

func (r *runner) run(ctx context.Context) (*Results, error) {
	f := r.folder
	o := r.options
	if f.journal.Cut > 0 {
		o.Note(fmt.Sprintf("%s ended in the middle of a line: %d bytes were cut off, their sentence is done again",
			samplesFile, f.journal.Cut))
	}
	for _, s := range f.header.Selection {
		if len(s.Skipped) > 0 {
			o.Note(fmt.Sprintf("corpus %s: left out of the %d sentences looked at: %s", s.Corpus, s.Considered,
				corpus.List(s.Skipped)))
		}
	}
	work := map[string][]key{} // keys of missing records, by model
	for k := range f.header.fills {
		r.total++
		record := f.records[k]
		if record == nil {
			work[k.model] = append(work[k.model], k)
		} else if err := f.checkEnvironment(record, o.Device); err != nil {
			return nil, err
		}
	}
	r.start = time.Now()
	for _, m := range o.Models {
		// Only one model at a time is in memory.
		err := r.fillAll(ctx, m, work[m.Model().Name])
		if err := errors.Join(err, m.Close()); err != nil {
			return nil, err
		}
	}
	o.Observe(Progress{Sentences: o.Config.Sentences, Done: r.total, Total: r.total, Chains: o.Config.Chains,
		Scoring: true})
	results, err := newResults(ctx, f.header, f.records, o.Corpora)
	if err != nil {
		return nil, err
	}
	err = results.joinOwn(f.dir) // a judge's numbers took hours, and stay
	if err != nil {
		return nil, err
	}
	if o.Judge != nil {
		j, err := r.judge(ctx)
		if err := errors.Join(err, o.Judge.Close()); err != nil {
			return nil, err
		}
		again := func(other joined) bool { return other.name == j.name }
		results.joined = append(slices.DeleteFunc(results.joined, again), j)
	}
	err = results.writeSamples(f.dir)
	if err != nil {
		return nil, err
	}
	return results, journal.WriteJSON(filepath.Join(f.dir, metricsFile), results)
}

func (r *runner) fillAll(ctx context.Context, m *infill.Filler, work []key) error {
	return parallel.All(ctx, r.options.Jobs, len(work), func(ctx context.Context, i int) error {
		k := work[i]
		record, err := r.fill(ctx, m, k)
		if err != nil {
			return fmt.Errorf("%s, sentence %d (%.60q): %w", k.method, k.sentence+1, r.prompts[k.sentence].Template,
				err)
		}
		// At once: a finished fill does not wait for those before it.
		r.mutex.Lock()
		defer r.mutex.Unlock()
		if err := r.folder.checkEnvironment(record, ""); err != nil {
			return err
		}
		r.done++
		return r.folder.append(record)
	})
}

func (r *runner) observe(k key, step, steps int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	p := Progress{
		Model: k.model, Method: k.method, Sentence: k.sentence, Sentences: r.options.Config.Sentences, Step: step,
		Steps: steps, Done: r.kept + r.done, Total: r.total, Chains: r.options.Config.Chains,
	}
	spent := time.Since(r.start)
	if r.done > 0 {
		p.ChainsPerSecond = float64(r.done*p.Chains) / spent.Seconds()
		p.Left = time.Duration(float64(spent) / float64(r.done) * float64(p.Total-p.Done))
	}
	r.options.Observe(p)
}

func (r *runner) fill(ctx context.Context, f *infill.Filler, k key) (*Record, error) {
	ctx, done := infill.Unwanted(ctx)
	defer done()
	methods := r.options.Config.Samplers
	at := slices.IndexFunc(methods, func(v variant) bool { return v.Name == k.method })
	chains := r.options.Config.Chains
	request := r.options.Config.request(methods[at])
	request.Template = r.prompts[k.sentence].Template
	var after samplers.Acceptance // of the steps after the warm-up
	var last infill.Progress
	result, err := f.Fill(ctx, request, func(p infill.Progress) {
		last = p
		if !p.WarmUp && p.Step > 0 {
			after.Observe(p.Accepted, p.Changed)
		}
		r.observe(k, p.Step, p.Steps)
	})
	if err != nil {
		return nil, err
	}
	s := result.Stats
	m := result.Model
	moved := result.Stats.Chains
	record := &Record{
		Model: k.model, Method: k.method, Sentence: k.sentence, Template: request.Template,
		Chains:    make([]chain, chains),
		Signature: result.Signature, environment: environment{m.Runtime, m.Device, infill.Version()},
		StepSize: moved.StepSize, moves: moves{moved.AcceptanceRate, moved.ChangedSlotsPerStep},
		EnergyEvaluations: moved.EnergyEvaluations, GradientEvaluations: moved.GradientEvaluations,
		ModelRows: s.ModelRows, Warnings: result.Warnings, Seconds: s.Seconds,
	}
	slots := len(last.TokenIDs) / chains
	rates := after.Rates()
	changed := after.ChangedSlots()
	for c := range chains {
		ids := last.TokenIDs[c*slots : (c+1)*slots]
		at := slices.IndexFunc(result.Fills, func(f infill.Fill) bool { return slices.Equal(f.TokenIDs, ids) })
		if at < 0 {
			return nil, fmt.Errorf("chain %d ended in %v, which the result does not hold", c, ids)
		}
		end := result.Fills[at]
		record.Chains[c] = chain{end.Text, end.Values, ids, end.LogLikelihood, moves{nil, changed[c]}}
		if moved.AcceptanceRate != nil {
			record.Chains[c].AcceptanceRate = &rates[c]
		}
	}
	return record, nil
}
