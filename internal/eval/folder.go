package eval

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/gofrs/flock"

	"infill/internal/eval/corpus"
	"infill/internal/journal"
)

// The files of a run's folder.
const (
	headFile    = "run.json"
	samplesFile = "samples.jsonl"
	metricsFile = "metrics.json"
)

// formatVersion is that of the files; it rises when an older program could not read them.
const formatVersion = 1

// header is run.json: what was asked for, of what, and with what.
type header struct {
	Format        int            `json:"format"`
	Configuration Config         `json:"configuration"`
	Models        []modelVersion `json:"models"`
	Corpora       []corpusInfo   `json:"corpora"`
	// Selection holds the sentences and their masks, by corpus.
	Selection []*corpus.Selection `json:"selection"`
	// Threads is the number of threads of one model call, on which the last digits of a result can hang.
	Threads   int     `json:"threads"`
	Program   program `json:"program"`
	Signature string  `json:"signature"`
	// Paths says where the corpora were read from, by name. They may move.
	Paths map[string]string `json:"paths"`
}

// modelVersion says which model is meant.
type modelVersion struct {
	Name      string `json:"name"`
	SHA256    string `json:"sha256"`           // of the bundle
	Tokenizer string `json:"tokenizer_sha256"` // of vocabulary and options
	Cased     bool   `json:"cased"`
}

// corpusInfo says what was read.
type corpusInfo struct {
	Name      string         `json:"name"`
	SHA256    string         `json:"sha256"` // of the file
	Form      corpus.Form    `json:"form"`
	Markers   corpus.Markers `json:"markers"`
	Sentences int            `json:"sentences"`
	Skipped   []corpus.Skip  `json:"skipped"`
	// Masked is how many of its sentences are infilled; 0 for a corpus that is a reference alone.
	Masked int `json:"masked"`
}

// program is what computed.
type program struct {
	Version string `json:"version"`
	Go      string `json:"go"`
}

// Prompts are the sentences of the run, in order.
func (h *header) Prompts() []corpus.Prompt {
	var prompts []corpus.Prompt
	for _, s := range h.Selection {
		prompts = append(prompts, s.Prompts...)
	}
	return prompts
}

// sentences is the number of prompts.
func (h *header) sentences() (n int) {
	for _, s := range h.Selection {
		n += len(s.Prompts)
	}
	return n
}

// Record is a line of samples.jsonl: one sentence infilled by one method.
type Record struct {
	Model     string  `json:"model"`
	Method    string  `json:"method"`   // name of a variant
	Sentence  int     `json:"sentence"` // number of the prompt, from 0
	Template  string  `json:"template"`
	Chains    []chain `json:"chains"`
	Signature string  `json:"signature"` // of package infill, with everything but the template
	environment
	// StepSize is null for samplers that have none, and where it is infinite.
	StepSize *float64 `json:"step_size"`
	// AcceptanceRate and ChangedSlotsPerStep are means over chains and the steps
	// after the warm-up; the rate is null for samplers that accept always.
	AcceptanceRate      *float64 `json:"acceptance_rate"`
	ChangedSlotsPerStep float64  `json:"changed_slots_per_step"`
	EnergyEvaluations   int64    `json:"energy_evaluations"`
	GradientEvaluations int64    `json:"gradient_evaluations"`
	ModelRows           int64    `json:"model_rows"`
	Warnings            []string `json:"warnings"`
	Seconds             float64  `json:"seconds"`
}

// environment is what a record was computed with: the same for all of a model.
type environment struct {
	Runtime string `json:"onnxruntime"` // its version
	Device  string `json:"device"`
	Version string `json:"version"` // of this program
}

// chain is where a chain ended, and how it got there.
type chain struct {
	Text          string   `json:"text"`
	Fills         []string `json:"fills"`
	TokenIDs      []int    `json:"token_ids"`
	LogLikelihood float64  `json:"log_likelihood"` // U in nats
	// AcceptanceRate and ChangedSlotsPerStep are means over the steps after the
	// warm-up; the rate is null for samplers that accept always.
	AcceptanceRate      *float64 `json:"acceptance_rate"`
	ChangedSlotsPerStep float64  `json:"changed_slots_per_step"`
}

// key is what there is one record of.
type key struct {
	model, method string
	sentence      int
}

func (r *Record) key() key { return key{r.Model, r.Method, r.Sentence} }

// fills goes through what a run has a record of: by model, sentence and method.
func (h *header) fills(yield func(key) bool) {
	for _, m := range h.Models {
		for sentence := range h.sentences() {
			for _, v := range h.Configuration.Samplers {
				if !yield(key{m.Name, v.Name, sentence}) {
					return
				}
			}
		}
	}
}

// fixed is what a run goes on with: where the corpora lie and the Go release may differ.
func (h *header) fixed() any {
	return struct {
		Config
		Models    any    `json:"models"`
		Corpora   any    `json:"corpora"`
		Selection any    `json:"selection"`
		Threads   int    `json:"threads"`
		Version   string `json:"version"`
	}{h.Configuration, h.Models, h.Corpora, h.Selection, h.Threads, h.Program.Version}
}

// folder is that of a run at work.
type folder struct {
	dir    string
	header *header
	log
	lock    *flock.Flock     // of run.json: while one process has it, no other begins a run or goes on with it
	journal *journal.Journal // of samples.jsonl
	// environments are those of the records, by model.
	environments map[string]environment
}

// openFolder locks a folder, making it if there is none, begins the run in it or refuses another one, and reads the
// records that are there.
func openFolder(dir string, h *header) (_ *folder, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("the run's folder: %w", err)
	}
	taken := "another process is at work in " + dir
	f := &folder{dir: dir, header: h, log: log{records: map[key]*Record{}},
		environments: map[string]environment{}}
	if f.lock, err = journal.Lock(filepath.Join(dir, headFile), taken); err != nil {
		return nil, err
	}
	if err = f.begin(); err == nil {
		f.journal, err = journal.Open(filepath.Join(dir, samplesFile), taken,
			func(line []byte) error { return f.log.add(line, h) })
	}
	if err != nil {
		return nil, errors.Join(err, f.lock.Unlock())
	}
	return f, nil
}

// Close brings the records to the disk and unlocks the folder.
func (f *folder) Close() error { return errors.Join(f.journal.Close(), f.lock.Unlock()) }

// unfinished are the names of locks and of what renameio has not renamed yet.
var unfinished = regexp.MustCompile(`^\.(run\.json|samples\.jsonl|metrics\.json)(\.lock|\d*)$`)

// begin writes run.json. It refuses a folder that holds something else, and removes what a killed process left
// half-written.
func (f *folder) begin() error {
	there, err := readHeader(f.dir)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	var strangers []string
	for _, e := range entries {
		if name := e.Name(); !unfinished.MatchString(name) {
			strangers = append(strangers, name)
		} else if filepath.Ext(name) != ".lock" {
			if err := os.Remove(filepath.Join(f.dir, name)); err != nil {
				return err
			}
		}
	}
	switch {
	case there != nil:
		return cmp.Or(there.supported(f.dir), journal.CheckUnchanged(f.dir, there.fixed(), f.header.fixed()))
	case len(strangers) > 0:
		return fmt.Errorf("%s holds no run, but %s: choose an empty or a new folder", f.dir,
			strings.Join(strangers[:min(3, len(strangers))], ", "))
	}
	return journal.WriteJSON(filepath.Join(f.dir, headFile), f.header)
}

// append writes a record through to the disk.
func (f *folder) append(r *Record) error {
	f.records[r.key()] = r
	return f.journal.Append(r)
}

// checkEnvironment refuses a record that was computed with another onnxruntime or device than those of its model
// before, or on another device than is asked for; "" and "auto" ask for none.
func (f *folder) checkEnvironment(r *Record, device string) error {
	if device != "" && device != "auto" && r.Device != device && !strings.HasPrefix(r.Device, device+":") {
		return journal.CheckUnchanged(f.dir, map[string]string{"device": r.Device}, map[string]string{"device": device})
	}
	first, known := f.environments[r.Model]
	if !known {
		first = r.environment
		f.environments[r.Model] = first
	}
	return journal.CheckUnchanged(f.dir, first, r.environment)
}
