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

// formatVersion is the version of the files' form; it rises when an older program could not read them.
const formatVersion = 1

// header is run.json: the configuration of a run, its models, corpora and sentences, and the program.
type header struct {
	Format        int            `json:"format"`
	Configuration Config         `json:"configuration"`
	Models        []modelVersion `json:"models"`
	Corpora       []corpusInfo   `json:"corpora"`
	// Selection holds the sentences and their masks, by corpus.
	Selection []*corpus.Selection `json:"selection"`
	// Threads is the number of threads of one model call, on which the last digits of a result can depend.
	Threads   int     `json:"threads"`
	Program   program `json:"program"`
	Signature string  `json:"signature"`
	// Paths are the paths from which the corpora were read, by name. They may move.
	Paths map[string]string `json:"paths"`
}

// modelVersion identifies a model.
type modelVersion struct {
	Name      string `json:"name"`
	SHA256    string `json:"sha256"`           // of the bundle
	Tokenizer string `json:"tokenizer_sha256"` // of the tokenizer's vocabulary and options
	Cased     bool   `json:"cased"`
}

// corpusInfo describes a corpus of the run.
type corpusInfo struct {
	Name      string         `json:"name"`
	SHA256    string         `json:"sha256"` // of the file
	Form      corpus.Form    `json:"form"`
	Markers   corpus.Markers `json:"markers"`
	Sentences int            `json:"sentences"`
	Skipped   []corpus.Skip  `json:"skipped"`
	// Masked is the number of its sentences to fill; 0 for a corpus that is only a reference.
	Masked int `json:"masked"`
}

// program is the version of the program that computed the run.
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

// sentences returns the number of prompts.
func (h *header) sentences() (n int) {
	for _, s := range h.Selection {
		n += len(s.Prompts)
	}
	return n
}

// Record is a line of samples.jsonl: the fills of one sentence by one method.
type Record struct {
	Model     string  `json:"model"`
	Method    string  `json:"method"`   // the name of a variant
	Sentence  int     `json:"sentence"` // number of the prompt, from 0
	Template  string  `json:"template"`
	Chains    []chain `json:"chains"`
	Signature string  `json:"signature"` // from package infill, which leaves only the template out
	environment
	// StepSize is null for samplers without a step size, and if it is infinite.
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

// environment is the software and device that computed a record: the same for all records of a model.
type environment struct {
	Runtime string `json:"onnxruntime"` // its version
	Device  string `json:"device"`
	Version string `json:"version"` // of this program
}

// chain is the final state of a chain, with its acceptance and changes.
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

// key identifies a record: there is one for each model, method and sentence.
type key struct {
	model, method string
	sentence      int
}

func (r *Record) key() key { return key{r.Model, r.Method, r.Sentence} }

// fills yields the keys of all records of a run: by model, sentence and method.
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

// fixed returns the part of the header that must stay the same when a run goes on: not the corpora's paths, nor the Go
// release.
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

// folder is the open folder of a run.
type folder struct {
	dir    string
	header *header
	log
	lock    *flock.Flock     // the lock of run.json: only the process that has it begins or continues a run
	journal *journal.Journal // the journal of samples.jsonl
	// environments has the environment of each model's records.
	environments map[string]environment
}

// openFolder makes a folder if there is none, locks it, begins the run in it, and reads its records. It returns an
// error for the folder of another run.
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

// Close syncs the records to the disk and unlocks the folder.
func (f *folder) Close() error { return errors.Join(f.journal.Close(), f.lock.Unlock()) }

// unfinished matches the names of locks, and of files that renameio has not renamed yet.
var unfinished = regexp.MustCompile(`^\.(run\.json|samples\.jsonl|metrics\.json)(\.lock|\d*)$`)

// begin writes run.json. It returns an error for a folder that holds other things, and removes half-written files of a
// killed process.
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

// append adds a record, in memory and on the disk.
func (f *folder) append(r *Record) error {
	f.records[r.key()] = r
	return f.journal.Append(r)
}

// checkEnvironment returns an error for a record that was computed with another onnxruntime or device than earlier
// records of its model, or on another device than the requested one; "" and "auto" allow any.
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
