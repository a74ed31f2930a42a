package eval

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"infill/internal/eval/corpus"
	"infill/internal/journal"
)

// The files of a run's folder.
const (
	headFile    = "run.json"
	samplesFile = "samples.jsonl"
	metricsFile = "metrics.json"
	reportFile  = "report.html"
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
	Name      string          `json:"name"`
	SHA256    string          `json:"sha256"` // of the file
	Form      corpus.Form     `json:"form"`
	Encoding  corpus.Encoding `json:"encoding"`
	Markers   corpus.Markers  `json:"markers"`
	Sentences int             `json:"sentences"`
	Skipped   []corpus.Skip   `json:"skipped"`
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
	Model     string       `json:"model"`
	Method    string       `json:"method"`   // name of a variant
	Sentence  int          `json:"sentence"` // number of the prompt, from 0
	Template  string       `json:"template"`
	Chains    []chain      `json:"chains"`
	Trace     []tracePoint `json:"trace"`
	Signature string       `json:"signature"` // of package infill, with everything but the template
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

// environment is what a record was computed with.
type environment struct {
	Runtime string `json:"onnxruntime"` // its version
	Device  string `json:"device"`
	Version string `json:"version"` // of this program
}

// differences lists what differs from another record; an empty field of an earlier
// version's record, or of a demand, does not differ.
func (e environment) differences(other environment) []string {
	there, now := map[string]string{}, map[string]string{}
	for _, field := range [][3]string{{"onnxruntime", e.Runtime, other.Runtime}, {"device", e.Device, other.Device},
		{"version", e.Version, other.Version}} {
		if field[1] != "" && field[2] != "" {
			there[field[0]], now[field[0]] = field[1], field[2]
		}
	}
	return journal.Differences(there, now)
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

// tracePoint is a moment of a run, as a mean over chains.
type tracePoint struct {
	Step int `json:"step"` // 0 is the start
	// LogLikelihood is U in nats, null if the sampler did not know it.
	LogLikelihood *float64 `json:"log_likelihood"`
	// Accepted and Changed are those of the step alone: the share of chains that
	// took their proposal, and the slots that changed. Null at step 0.
	Accepted *float64 `json:"accepted"`
	Changed  *float64 `json:"changed"`
}

// key is what there is one record of.
type key struct {
	model, method string
	sentence      int
}

func (r *Record) key() key { return key{r.Model, r.Method, r.Sentence} }

// folder is the journal of a run at work, with its protocol.
type folder struct {
	*journal.Journal
	dir    string
	header *header // nil: none there yet
	log
	cut  int64     // bytes of a torn last line that were cut off
	told time.Time // when the status was written last
}

// openFolder locks a folder, making it if there is none, and reads what is there.
func openFolder(dir string) (_ *folder, err error) {
	f := &folder{dir: dir}
	f.Journal, err = journal.Open(filepath.Join(dir, samplesFile), "another process is at work in "+dir)
	if err != nil {
		return nil, err
	}
	if err = f.tidy(); err == nil {
		f.header, err = readHeader(dir)
	}
	if err == nil && f.header != nil {
		err = f.header.supported(dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// temporary are the names of the status and of what renameio has not renamed yet.
var temporary = regexp.MustCompile(`^\.(run\.json|samples\.jsonl|metrics\.json|report\.html|status\.json)\d*$`)

// tidy refuses a folder that holds something else, and removes what a killed
// process left half-written beside its target.
func (f *folder) tidy() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	has := false
	var strangers []string
	for _, e := range entries {
		switch name := e.Name(); {
		case name == headFile:
			has = true
		case filepath.Join(f.dir, name) == journal.LockOf(filepath.Join(f.dir, samplesFile)):
		case temporary.MatchString(name):
			if err := os.Remove(filepath.Join(f.dir, name)); err != nil {
				return err
			}
		default:
			strangers = append(strangers, name)
		}
	}
	if !has && len(strangers) > 0 {
		return fmt.Errorf("%s holds no run, but %s: choose an empty or a new folder", f.dir,
			strings.Join(strangers[:min(3, len(strangers))], ", "))
	}
	return nil
}

// load reads the records, and opens their file for more.
func (f *folder) load() (err error) {
	f.log = log{records: map[key]*Record{}}
	f.cut, err = f.Resume(func(line []byte) error { return f.log.add(line, f.header) })
	return err
}

// append writes a record through to the disk.
func (f *folder) append(r *Record) error {
	f.records[r.key()] = r
	_, err := f.Append(r)
	return err
}

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

// comparable is what must agree, by path: paths and the Go release may differ.
func (h *header) comparable() (map[string]string, error) {
	return journal.Flat(struct {
		Config
		Models    any    `json:"models"`
		Corpora   any    `json:"corpora"`
		Selection any    `json:"selection"`
		Threads   int    `json:"threads"`
		Version   string `json:"version"`
	}{h.Configuration, h.Models, h.Corpora, h.Selection, h.Threads, h.Program.Version})
}

// check refuses to go on with another run.
func (f *folder) check(h *header) error {
	there, err := f.header.comparable()
	if err != nil {
		return err
	}
	now, err := h.comparable()
	if err != nil {
		return err
	}
	return journal.Changed(f.dir, journal.Differences(there, now))
}
