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

// These are the files in the folder of a run.
const (
	headFile    = "run.json"
	samplesFile = "samples.jsonl"
	tableFile   = "samples.csv"
	metricsFile = "metrics.json"
)

// formatVersion is the version of the format of the files. It rises when older
// programs cannot read a new format.
const formatVersion = 1

// header is the content of run.json: the configuration of a run, its models,
// corpora and sentences, and the program.
type header struct {
	Format        int            `json:"format"`
	Configuration Config         `json:"configuration"`
	Models        []modelVersion `json:"models"`
	Corpora       []corpusInfo   `json:"corpora"`
	// Selection holds the sentences and their masks, by corpus.
	Selection []*corpus.Selection `json:"selection"`
	Program   program             `json:"program"`
	Signature string              `json:"signature"`
	// Paths holds the path from which each corpus was read, by name. The files may move.
	Paths map[string]string `json:"paths"`
}

type modelVersion struct {
	Name      string `json:"name"`
	SHA256    string `json:"sha256"`           // of the bundle
	Tokenizer string `json:"tokenizer_sha256"` // of the tokenizer's vocabulary and options
	Cased     bool   `json:"cased"`
}

type corpusInfo struct {
	Name      string         `json:"name"`
	SHA256    string         `json:"sha256"` // of the file
	Form      corpus.Kind    `json:"form"`
	Markers   corpus.Markers `json:"markers"`
	Sentences int            `json:"sentences"`
	Skipped   []corpus.Skip  `json:"skipped"`
	// Masked is how many sentences to fill; 0 for a reference alone.
	Masked int `json:"masked"`
}

type program struct {
	Version string `json:"version"`
	Go      string `json:"go"`
}

// Prompts returns the sentences of the run, in order.
func (h *header) Prompts() []corpus.Prompt {
	var prompts []corpus.Prompt
	for _, s := range h.Selection {
		prompts = append(prompts, s.Prompts...)
	}
	return prompts
}

func (h *header) sentences() (n int) {
	for _, s := range h.Selection {
		n += len(s.Prompts)
	}
	return n
}

// Record is a line of samples.jsonl: the fills of one sentence by one method.
type Record struct {
	Model     string  `json:"model"`
	Method    string  `json:"method"`   // name of a variant
	Sentence  int     `json:"sentence"` // index in Prompts
	Template  string  `json:"template"`
	Chains    []chain `json:"chains"`
	Signature string  `json:"signature"` // of package infill: everything but the template
	environment
	// StepSize is null if the sampler has no step size, or if the step size is infinite.
	StepSize *float64 `json:"step_size"`
	moves
	EnergyEvaluations   int64    `json:"energy_evaluations"`
	GradientEvaluations int64    `json:"gradient_evaluations"`
	ModelRows           int64    `json:"model_rows"`
	Warnings            []string `json:"warnings"`
	Seconds             float64  `json:"seconds"`
}

// environment is a model's software and device, of all its records.
type environment struct {
	Runtime string `json:"onnxruntime"` // version of onnxruntime
	Device  string `json:"device"`
	Version string `json:"version"` // version of this program
}

// moves are means over the steps after the warm-up, of a chain or of all. The
// rate is null if the sampler accepts every proposal.
type moves struct {
	AcceptanceRate      *float64 `json:"acceptance_rate"`
	ChangedSlotsPerStep float64  `json:"changed_slots_per_step"`
}

// chain is the final state of a chain, and how it moved.
type chain struct {
	Text          string   `json:"text"`
	Fills         []string `json:"fills"`
	TokenIDs      []int    `json:"token_ids"`
	LogLikelihood float64  `json:"log_likelihood"` // U in nats
	moves
}

// key identifies a record. Each model, method and sentence has one record.
type key struct {
	model, method string
	sentence      int
}

func (r *Record) key() key { return key{r.Model, r.Method, r.Sentence} }

// fills yields the keys of all records by model, sentence and method.
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

// fixed returns the part of the header that must not change when a process
// continues the run. The paths of the corpora and the release of Go may change.
func (h *header) fixed() any {
	return struct {
		Config
		Models    any    `json:"models"`
		Corpora   any    `json:"corpora"`
		Selection any    `json:"selection"`
		Version   string `json:"version"`
	}{h.Configuration, h.Models, h.Corpora, h.Selection, h.Program.Version}
}

type folder struct {
	dir    string
	header *header
	log
	lock    *flock.Flock     // the lock of run.json: only the process that holds the lock begins or continues the run
	journal *journal.Journal // the journal of samples.jsonl
	// environments has the environment of each model's records, by the model's name.
	environments map[string]environment
}

// openFolder opens the folder dir for the run h: it makes the folder if
// necessary, locks it, begins the run and reads the records. It returns an
// error if the folder holds another run.
func openFolder(dir string, h *header) (_ *folder, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("the run's folder: %w", err)
	}
	taken := "another process is at work in " + dir
	f := &folder{dir: dir, header: h, log: log{records: map[key]*Record{}},
		environments: map[string]environment{}}
	f.lock, err = journal.Lock(filepath.Join(dir, headFile), taken)
	if err != nil {
		return nil, err
	}
	err = f.begin()
	if err != nil {
		return nil, errors.Join(err, f.lock.Unlock())
	}
	f.journal, err = journal.Open(filepath.Join(dir, samplesFile), taken,
		func(line []byte) error { return f.log.add(line, h) })
	if err != nil {
		return nil, errors.Join(err, f.lock.Unlock())
	}
	return f, nil
}

func (f *folder) Close() error { return errors.Join(f.journal.Close(), f.lock.Unlock()) }

// unfinished matches locks, and temporary files of renameio.
var unfinished = regexp.MustCompile(`^\.(run\.json|samples\.jsonl|samples\.csv|metrics\.json)(\.lock|\d*)$`)

// begin writes run.json, or checks an existing run.json. It removes
// half-written files of a killed process. It returns an error if the folder
// holds other files.
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
		name := e.Name()
		if !unfinished.MatchString(name) {
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

func (f *folder) append(r *Record) error {
	f.records[r.key()] = r
	return f.journal.Append(r)
}

// checkEnvironment returns an error if a record was computed with another
// onnxruntime or device than earlier records of its model, or on another device
// than device. If device is "" or "auto", the record may be of any device.
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
