package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"infill/infill"
	"infill/internal/ask"
	"infill/internal/eval/corpus"
	"infill/internal/journal"
	"infill/internal/lmtest"
	"infill/internal/logmath"
	"infill/metrics"
	"infill/samplers"
)

func run(t testing.TB, o Options) *Results {
	t.Helper()
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func read(t testing.TB, dir, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func write(t testing.TB, dir, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o666); err != nil {
		t.Fatal(err)
	}
}

// reference is a whole run, to which others are compared.
func reference(t testing.TB) (dir string, metrics []byte) {
	o, _ := small(t)
	run(t, o)
	return o.Dir, read(t, o.Dir, metricsFile)
}

func TestRun(t *testing.T) {
	o, _ := small(t)
	results := run(t, o)
	w := Watch(o.Dir)
	if w.Err != nil || w.Note != "" {
		t.Fatal(w.Err, w.Note)
	}
	h := w.Header
	var records []*Record
	for k := range h.fills {
		records = append(records, w.records[k])
	}
	if len(records) != 6*3 || len(h.Prompts()) != 6 || len(h.Selection) != 2 || len(h.Selection[0].Prompts) != 3 {
		t.Fatalf("%d records, %d prompts, %d selections", len(records), len(h.Prompts()), len(h.Selection))
	}
	for _, r := range records {
		if len(r.Chains) != 4 || r.Template != h.Prompts()[r.Sentence].Template {
			t.Errorf("record %+v", r.key())
		}
		for _, c := range r.Chains {
			want := 0.0
			for _, id := range c.TokenIDs {
				want += weight(id)
			}
			if math.Abs(c.LogLikelihood-want) > 1e-9 {
				t.Errorf("%v: U = %v, the tokens %v have %v", r.key(), c.LogLikelihood, c.TokenIDs, want)
			}
			text := r.Template
			for _, fill := range c.Fills {
				text = strings.Replace(text, corpus.Slot, fill, 1)
			}
			if !strings.EqualFold(text, c.Text) {
				t.Errorf("%v: %q filled with %q is not %q", r.key(), r.Template, c.Fills, c.Text)
			}
			if (c.AcceptanceRate == nil) != (r.Method == "gibbs") {
				t.Errorf("%v: acceptance rate %v", r.key(), c.AcceptanceRate)
			}
		}
	}
	// The likeliest two of each sentence, scored by package metrics directly.
	var h2 metrics.Hypotheses
	for sentence := range 6 {
		chains := slices.Clone(
			records[slices.IndexFunc(records,
				func(r *Record) bool { return r.Sentence == sentence && r.Method == "dmala" })].Chains)
		slices.SortStableFunc(chains, func(a, b chain) int {
			return int(math.Copysign(1, b.LogLikelihood-a.LogLikelihood)) * logmath.Indicator(
				a.LogLikelihood != b.LogLikelihood)
		})
		for _, c := range chains[:2] {
			h2.Sentences, h2.Prompts = append(h2.Sentences, c.Text), append(h2.Prompts, fmt.Sprint("p", sentence))
		}
	}
	var sources []string
	for _, p := range h.Prompts() {
		sources = append(sources, p.Source)
	}
	var references []metrics.Reference
	for _, c := range o.Corpora {
		references = append(references, metrics.Reference{Name: c.Name, Sentences: c.Raw()})
	}
	want, err := metrics.Evaluate(t.Context(), h2, references,
		metrics.Options{Tokenisation: metrics.BertGen, Sources: sources, NoIntervals: true})
	if err != nil {
		t.Fatal(err)
	}
	got := results.Methods[1].Top
	if results.Methods[1].Method != "dmala" {
		t.Errorf("method %s", results.Methods[1].Method)
	}
	for _, s := range want.Scores {
		if value := got.Value(s.Name()); value != s.Value {
			t.Errorf("%s is %v, want %v", s.Name(), value, s.Value)
		}
	}
	for _, ref := range got.References[:2] {
		if ref.Excluded != 3 {
			t.Errorf("reference %s: %d sentences left out, want the 3 that were masked", ref.Name, ref.Excluded)
		}
	}
	if all := results.Methods[1].All; all.Sentences != 24 || got.Sentences != 12 {
		t.Errorf("%d and %d sentences scored, want 24 and 12", all.Sentences, got.Sentences)
	}
}

// TestProgress: a run reports each step, with the pace of this process once it
// has done a fill, and the scoring once.
func TestProgress(t *testing.T) {
	o, _ := small(t)
	steps, scoring := 0, 0
	o.Observe = func(p Progress) {
		if steps++; p.Scoring {
			scoring++
		}
		if p.Chains != 4 || p.Sentences != 6 || p.Total != 18 || p.Step > p.Steps ||
			!p.Scoring && ((p.Left > 0) != (p.Done > 0) || (p.ChainsPerSecond > 0) != (p.Done > 0)) {
			t.Errorf("progress %+v", p)
		}
	}
	run(t, o)
	if want := 6*(7+7+4) + 1; steps != want || scoring != 1 {
		t.Errorf("%d steps were told, want %d; scoring %d times", steps, want, scoring)
	}
}

// TestNothingOfTime: neither the clock nor the order of the work nor the place
// enters metrics.json.
func TestNothingOfTime(t *testing.T) {
	_, want := reference(t)
	o, _ := small(t)
	o.Jobs = 4
	o.Corpora[0].Path = "elsewhere"
	run(t, o)
	if got := read(t, o.Dir, metricsFile); !bytes.Equal(got, want) {
		t.Errorf("metrics.json differs: %s", cmp.Diff(string(want), string(got)))
	}
	for _, word := range []string{"seconds", "elsewhere", `"path`} {
		if bytes.Contains(want, []byte(word)) {
			t.Errorf("metrics.json holds %q", word)
		}
	}
}

// TestTorn: whatever a killed process leaves of samples.jsonl, the run goes on
// from the last whole line and comes to the same end.
func TestTorn(t *testing.T) {
	dir, want := reference(t)
	samples, header := read(t, dir, samplesFile), read(t, dir, headFile)
	random := rand.New(rand.NewPCG(5, 0))
	lengths := []int{0, 1, len(samples) - 1, bytes.IndexByte(samples, '\n'), bytes.IndexByte(samples, '\n') + 1}
	for range 12 {
		lengths = append(lengths, random.IntN(len(samples)))
	}
	for _, length := range lengths {
		o, _ := small(t)
		write(t, o.Dir, headFile, header)
		write(t, o.Dir, samplesFile, samples[:length])
		// What atomic writing leaves behind.
		write(t, o.Dir, "."+metricsFile+"123456", []byte("{"))
		whole := bytes.Count(samples[:length], []byte("\n"))
		if w := Watch(o.Dir); w.Err != nil || w.Done() != whole || w.Total() != 18 || w.Results != nil {
			t.Errorf("cut at %d: %d of %d fills, %v", length, w.Done(), w.Total(), w.Err)
		}
		if _, err := ReadResults(o.Dir); err == nil || whole < 18 && !strings.Contains(err.Error(), "is not done") {
			t.Errorf("cut at %d: results of half a run: %v", length, err)
		}
		var notes []string
		o.Note = func(note string) { notes = append(notes, note) }
		fills := 0
		o.Observe = func(p Progress) { fills += logmath.Indicator(p.Step == 0 && !p.Scoring) }
		run(t, o)
		if got := read(t, o.Dir, metricsFile); !bytes.Equal(got, want) {
			t.Errorf("cut at %d: metrics.json differs", length)
		}
		if fills != 18-whole {
			t.Errorf("cut at %d: %d fills were made, %d were there", length, fills, whole)
		}
		torn := length > 0 && samples[length-1] != '\n'
		if (len(notes) == 1) != torn {
			t.Errorf("cut at %d, torn %t: notes %q", length, torn, notes)
		}
		if left, _ := filepath.Glob(filepath.Join(o.Dir, ".metrics*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	t.Run("zeroes at the end, as after a power cut", func(t *testing.T) {
		o, _ := small(t)
		write(t, o.Dir, headFile, header)
		write(t, o.Dir, samplesFile, append(slices.Clone(samples[:len(samples)/2]), append(make([]byte, 100), '\n')...))
		run(t, o)
		if !bytes.Equal(read(t, o.Dir, metricsFile), want) {
			t.Error("metrics.json differs")
		}
	})
	t.Run("damage in the middle", func(t *testing.T) {
		o, _ := small(t)
		write(t, o.Dir, headFile, header)
		bad := slices.Clone(samples)
		bad[10] = 0
		write(t, o.Dir, samplesFile, bad)
		if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "line 1: ") {
			t.Errorf("error %v, want one that names line 1", err)
		}
		if !bytes.Equal(read(t, o.Dir, samplesFile), bad) {
			t.Error("the file was changed")
		}
	})
}

func TestChangedConfiguration(t *testing.T) {
	dir, _ := reference(t)
	before := read(t, dir, samplesFile)
	tests := map[string]struct {
		change func(o *Options)
		want   string
	}{
		"steps": {func(o *Options) { o.Config.Samplers[1].Chains.Steps = 7 },
			"samplers[1].chains.steps: 6 there, 7 now"},
		"seed": {func(o *Options) { o.Config.Seed = 1<<60 + 1 }, "seed: 1 there, 1152921504606846977 now"},
		"sampler": {func(o *Options) { o.Config.Samplers[2].Name = "brief" },
			"samplers[2].name: short there, brief now"},
		"fewer": {func(o *Options) { o.Config.Samplers = o.Config.Samplers[:2] },
			"samplers[2].name: short there, not given now"},
		"model": {func(o *Options) {
			other := lmtest.New(1, 32)
			other.Info.SHA256 = "cd"
			o.Models[0] = infill.New(other, newTokenizer(t))
		}, "models[0].sha256: "},
		"corpus": {func(o *Options) { o.Corpora[1] = newCorpus(t, "ponds", ponds+"the cat sang .\n") },
			"corpora[1].sha256: "},
		"reference": {func(o *Options) { o.Config.Metrics.KeepSources = true },
			"metrics.keep_sources: false there, true now"},
		// Nothing is left to compute here, so nothing else would tell.
		"device": {func(o *Options) { o.Device = "cuda" }, "device: cpu there, cuda now"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o, _ := small(t)
			o.Dir = dir
			test.change(&o)
			_, err := Run(t.Context(), o)
			var changed *journal.ChangedError
			if !errors.As(err, &changed) ||
				!slices.ContainsFunc(changed.Differences,
					func(d string) bool { return strings.Contains(d, test.want) }) {
				t.Errorf("error %v, want one that holds %q", err, test.want)
			}
			if strings.Contains(fmt.Sprint(err), "\n") {
				t.Errorf("more than a line: %q", err)
			}
		})
	}
	if !bytes.Equal(read(t, dir, samplesFile), before) {
		t.Error("a refused run changed the samples")
	}
	for _, device := range []string{"", "auto", "cpu"} { // what was asked for by other words is no change
		o, _ := small(t)
		o.Dir, o.Device = dir, device
		run(t, o)
	}
	t.Run("another device", func(t *testing.T) {
		o, model := small(t)
		write(t, o.Dir, headFile, read(t, dir, headFile))
		write(t, o.Dir, samplesFile, before[:bytes.IndexByte(before, '\n')+1])
		model.Info.Device = "cuda:0"
		_, err := Run(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), "device: cpu there, cuda:0 now") {
			t.Errorf("error %v", err)
		}
	})
}

func TestFolder(t *testing.T) {
	for want, file := range map[string][2]string{
		"holds no run, but thesis.tex": {"thesis.tex", "x"},
		"run.json is damaged":          {headFile, "{"},
		"format 99":                    {headFile, `{"format": 99}`}, // of the future
		"another process is at work":   {},
	} {
		o, _ := small(t)
		if file[0] != "" {
			write(t, o.Dir, file[0], []byte(file[1]))
		} else {
			lock, err := journal.Lock(filepath.Join(o.Dir, samplesFile), "")
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Unlock()
		}
		if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestBadInput: what cannot be used is refused or left out, counted, and said.
func TestBadInput(t *testing.T) {
	fails := map[string]struct {
		change func(o *Options)
		want   string
	}{
		"no sentence of the length": {func(o *Options) { o.Config.Select.MinimumTokens = 90 }, "too short"},
		"too many sentences":        {func(o *Options) { o.Config.Sentences = 60 }, "30"},
		"one sentence, two corpora": {func(o *Options) { o.Config.Sentences = 1 }, "choose at least one of each"},
		"no sentence":               {func(o *Options) { o.Config.Sentences = 0 }, "0 sentences"},
		"references alone": {func(o *Options) {
			for i := range o.Corpora {
				o.Corpora[i].Reference = true
			}
		}, "no corpus to take sentences of"},
		"nothing to compare with": {func(o *Options) {
			o.Corpora[1] = newCorpus(t, "ponds", "the fish swam over the pond .\nThe fish swam over the  pond .\n")
			o.Config.Sentences = 2
		}, `reference "ponds" has no sentence left: all 2 are sources of the hypotheses; take fewer`},
		"same name": {func(o *Options) { o.Corpora[1].Name = "gardens" },
			`two references are named "gardens"`},
		"same model": {func(o *Options) { o.Models = append(o.Models, o.Models[0]) },
			`two models are called "fake"`},
		"top above samples":  {func(o *Options) { o.Config.Top = 5 }, "top 5"},
		"too many slots":     {func(o *Options) { o.Config.Select.Mask = corpus.Mask{Count: 40} }, "too few words"},
		"a model that fails": {nil, "closing fails"},
	}
	for name, test := range fails {
		t.Run(name, func(t *testing.T) {
			o, model := small(t)
			if test.change == nil {
				o.Models[0] = infill.New(failsToClose{model}, newTokenizer(t))
			} else {
				test.change(&o)
			}
			if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that holds %q", err, test.want)
			}
		})
	}
}

func TestParseVariants(t *testing.T) {
	with := func(sampler string, change func(s *ask.Chains)) ask.Chains {
		own, err := samplers.Parse(sampler)
		if err != nil {
			t.Fatal(err)
		}
		c := ask.Chains{Sampler: own}
		change(&c)
		return c
	}
	none := func(*ask.Chains) {}
	tests := []struct {
		text string
		want []variant
		err  string
	}{
		{"gibbs", []variant{{"gibbs", with("gibbs", none)}}, ""},
		{"gibbs, dmala", []variant{{"gibbs", with("gibbs", none)}, {"dmala", with("dmala", none)}}, ""},
		{"dmala:paper,gwg", []variant{
			{"dmala:paper", with("dmala", func(s *ask.Chains) {
				s.Candidates, s.WarmUp = infill.None, infill.None
				s.Balance, s.Gradient, s.StepSize = "sqrt", "full", 0.2
			})},
			{"gwg", with("gwg", none)},
		}, ""},
		{"dmala:paper,step-size=0.4,name=big,dmala:candidates=50,steps=9,warm-up=3", []variant{
			{"big", with("dmala", func(s *ask.Chains) {
				s.Candidates, s.WarmUp = infill.None, infill.None
				s.Balance, s.Gradient, s.StepSize = "sqrt", "full", 0.4
			})},
			{"dmala:candidates=50,steps=9,warm-up=3",
				with("dmala", func(s *ask.Chains) {
					s.Candidates, s.Steps, s.WarmUp = 50, 9, 3
				})},
		}, ""},
		{"", nil, "a sampler is missing"},
		{"gibbs,,dmala", nil, "a sampler is missing"},
		{"gibs", nil, `"gibs" is not one of dmala`},
		{"steps=3", nil, "belongs to no sampler"},
		{"gibbs,steps=3", nil, `write NAME:steps=3`},
		{"gibbs:papers", nil, "gibbs has no papers"},
		{"dmala:speed=3", nil, "dmala has no speed: "},
		{"dmala:steps=-1", nil, `steps: "-1" is not a whole number`},
		{"dmala:step-size=0", nil, `step-size: "0" is not a number above 0`},
		{"dmala:step-size=NaN", nil, "step-size"},
		{"gibbs:step-size=1", nil, "step-size: gibbs has none"},
		{"gibbs,gibbs", nil, `two samplers are called "gibbs"`},
		{"gibbs:name=a|b", nil, "name"},
		{"dmala:warm-up=99", nil, "warm-up"},
		{"dmala:steps=few", nil,
			`"dmala:steps=few" is not a sampler with its settings: steps: "few" is not a whole number`},
		{"hamming-ball:radius=1", []variant{{"hamming-ball:radius=1", with("hamming-ball", func(s *ask.Chains) {
			s.Sampler = samplers.HammingBall{Radius: 1}
		})}}, ""},
	}
	for _, test := range tests {
		got, err := ParseVariants(test.text, nil)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q: error %v, want one that holds %q", test.text, err, test.err)
			}
			continue
		}
		if diff := cmp.Diff(test.want, got, cmpopts.IgnoreUnexported(ask.Chains{})); err != nil || diff != "" {
			t.Errorf("%q: %v %s", test.text, err, diff)
		}
	}
}

// TestPresets: every preset is a valid configuration once it has a model.
func TestPresets(t *testing.T) {
	for _, name := range Presets() {
		c, base, samplers, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		if c.Samplers, err = ParseVariants(samplers, base); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if shared := c.Samplers[0].Chains.Initial.Kind == infill.StartShared; shared != (name == "discs") {
			t.Errorf("%s: all chains from one start is %t", name, shared)
		}
	}
	if _, _, _, err := Preset("tables"); err == nil {
		t.Error("an unknown preset is taken")
	}
}

// TestLeftOut: what is passed over while choosing is reported with its count, and what
// is left out of the references stands below the table.
func TestLeftOut(t *testing.T) {
	// Of the 10 lines of gardens one has a single word and one is too long for
	// the model: 8 can be had, 9 not.
	o, _ := small(t)
	o.Config.Sentences, o.Corpora = 9, o.Corpora[:1]
	_, failed := Run(t.Context(), o)
	var notes []string
	o.Note = func(note string) { notes = append(notes, note) }
	o.Config.Sentences, o.Config.Seed = 8, 2
	results := run(t, o)
	for _, want := range []string{"1 × too short (such as line 4)",
		"1 × refused by model fake: text too long (such as line 7)"} {
		if failed == nil || !strings.Contains(failed.Error(), want) {
			t.Errorf("error %v, want one that holds %q", failed, want)
		}
		if len(notes) != 1 || !strings.Contains(notes[0], "corpus gardens: left out of the 10 ") ||
			!strings.Contains(notes[0], want) {
			t.Errorf("notes %q, want %q", notes, want)
		}
	}
	if s := Watch(o.Dir).Header.Selection[0]; len(s.Prompts) != 8 || s.Considered != 10 {
		t.Errorf("%d sentences of %d", len(s.Prompts), s.Considered)
	}
	if notes := strings.Join(results.Table("top").Notes, "\n"); !strings.Contains(notes,
		"2 sentences of gardens (8 left out: the masked ones and their copies)") {
		t.Errorf("notes of the table: %s", notes)
	}
}

func TestTable(t *testing.T) {
	o, _ := small(t)
	results := run(t, o)
	again, err := ReadResults(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range Sets() {
		table := results.Table(set)
		rows := table.Rows()
		if diff := cmp.Diff(rows, again.Table(set).Rows()); len(rows) != 4 || diff != "" {
			t.Fatalf("%s: a run that is read again has another table of %d rows: %s", set, len(rows), diff)
		}
		at := func(row int, name string) string { return rows[row][slices.Index(rows[0], name)] }
		report := results.Methods[1].Top
		if set == "all" {
			report = results.Methods[1].All
		}
		for name, want := range map[string]metrics.Value{
			"self_bleu":             report.Value("self_bleu"),
			"unique_ngrams/self/2":  report.Value("unique_ngrams/self/2"),
			"unique_ngrams/ponds/3": report.Value("unique_ngrams/ponds/3"),
			"corpus_bleu/all":       0, /* no 4-gram in common */
			"model_rows_per_sample": metrics.Value(results.Methods[1].ModelRowsPerSample.Mean),
		} {
			if got := at(2, name); got != fmt.Sprint(float64(want)) {
				t.Errorf("%s: %s is %s, want %v", set, name, got, want)
			}
		}
		if at(1, "acceptance_rate") != "" || at(2, "acceptance_rate") == "" || at(2, "acceptance_rate_low") == "" {
			t.Errorf("acceptance: gibbs %q, dmala %q", at(1, "acceptance_rate"), at(2, "acceptance_rate"))
		}
		if at(2, "model_rows_per_sample_low") == "" || at(2, "model_rows_per_sample_high") == "" {
			t.Error("model rows without an interval")
		}
		if got := at(3, "signature"); got != results.Signature || got == "" {
			t.Errorf("%s: signature %q", set, got)
		}
		if grid := table.Grid(); fmt.Sprint(grid[0][:3]) != "[method self-BLEU ↓ unique 2-grams ↑]" ||
			len(grid) != 4 || grid[2][0] != "dmala" {
			t.Errorf("%s: %q", set, grid)
		}
		var fields struct{ Signature string }
		if text, err := json.Marshal(table); err != nil || json.Unmarshal(text, &fields) != nil ||
			fields.Signature != results.Signature {
			t.Errorf("%s: signature %q, %v", set, fields.Signature, err)
		}
	}
	// The half of the mass of Student's t with 5 degrees of freedom is within
	// 0.7267 standard errors.
	results.Configuration.Metrics.Confidence = 0.5
	narrow := results.Table("top")
	got, of := narrow.Methods[1].Numbers["acceptance_rate"], results.Methods[1].AcceptanceRate
	if want := of.Mean - 0.7266868438004226**of.StandardError; math.Abs(float64(got.Low)-want) > 1e-12 {
		t.Errorf("the interval of 50 %% begins at %v, want %v", got.Low, want)
	}
	// Of fewer than 5 sentences nothing has an interval, as it is with scores.
	results.Configuration.Sentences = 4
	few := results.Table("all")
	if got := few.Methods[1].Numbers["acceptance_rate"]; !math.IsNaN(float64(got.Low)) ||
		math.IsNaN(float64(got.Value)) {
		t.Errorf("4 sentences: %v", got)
	}
}

// TestSignature: each choice that changes the numbers changes the signature of
// the run.
func TestSignature(t *testing.T) {
	known := map[string]string{}
	check := func(name string, change func(c *Config)) {
		o, _ := small(t)
		change(&o.Config)
		h, err := newHeader(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if other, found := known[h.Signature]; found {
			t.Errorf("%s and %s have the signature %s", name, other, h.Signature)
		}
		known[h.Signature] = name
	}
	check("nothing", func(*Config) {})
	for _, text := range []string{"gibbs", "gibbs,dmala", "dmala:name=gibbs", "dmala:steps=7", "dmala:candidates=9",
		"dmala:temperature=2", "dmala:energy=pll", "dmala:energy=filled", "dmala:warm-up=3"} {
		variants, err := ParseVariants(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		check(text, func(c *Config) { c.Samplers = variants })
	}
	check("confidence", func(c *Config) { c.Metrics.Confidence = 0.5 })
	check("union", func(c *Config) { c.Metrics.UnionFirst = 1 })
	check("sources", func(c *Config) { c.Metrics.KeepSources = true })
	check("tokenisation", func(c *Config) { c.Metrics.Tokenisation = metrics.DISCS })
	check("seed", func(c *Config) { c.Seed = 9 })
}
