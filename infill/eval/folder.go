package eval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2/maybe"

	"infill/infill/eval/internal/corpus"
)

// The files of a run's folder.
const (
	runFile     = "run.json"
	samplesFile = "samples.jsonl"
	metricsFile = "metrics.json"
	reportFile  = "report.html"
	lockFile    = ".lock"
)

// formatVersion is that of the files; it rises when an older program could not
// read them.
const formatVersion = 1

// header is run.json: what was asked for, of what, and with what.
type header struct {
	Format        int            `json:"format"`
	Configuration Config         `json:"configuration"`
	Models        []modelVersion `json:"models"`
	Corpora       []corpusInfo   `json:"corpora"`
	// Selection holds the sentences and their masks, by corpus.
	Selection []*corpus.Selection `json:"selection"`
	// Threads is the number of threads of one model call, on which the last
	// digits of a result can hang.
	Threads   int     `json:"threads"`
	Program   program `json:"program"`
	Signature string  `json:"signature"`
	// Shard is "" for a whole run, or one that was merged.
	Shard Shard `json:"shard"`
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
	// Masked is how many of its sentences are infilled; 0 for a corpus that is
	// a reference alone.
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

// Record is a line of samples.jsonl: one sentence infilled by one method.
type Record struct {
	Model     string       `json:"model"`
	Method    string       `json:"method"`   // name of a Variant
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
	Runtime   string `json:"onnxruntime"` // its version
	Device    string `json:"device"`
	Precision string `json:"precision"`
	Version   string `json:"version"` // of this program
}

// differences from what another record of the model was computed with; what a
// record of an earlier version does not tell is none.
func (e environment) differences(now environment) (list []string) {
	for _, field := range [][3]string{{"onnxruntime", e.Runtime, now.Runtime}, {"device", e.Device, now.Device},
		{"precision", e.Precision, now.Precision}, {"version", e.Version, now.Version}} {
		if field[1] != "" && field[2] != "" && field[1] != field[2] {
			list = append(list, fmt.Sprintf("%s: %s there, %s now", field[0], field[1], field[2]))
		}
	}
	return list
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
	// LogLikelihood is U in nats, null where the sampler did not know it.
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

// folder is an open, locked folder of a run.
type folder struct {
	dir    string
	lock   *flock.Flock
	header *header // nil: none there yet
	log
	cut     int64 // bytes of a torn last line that were cut off
	samples *os.File
	told    time.Time // when the status was written last
}

// openFolder locks a folder, making it where there is none, and reads what is
// there.
func openFolder(dir string) (_ *folder, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("the run's folder: %w", err)
	}
	f := &folder{dir: dir, lock: flock.New(filepath.Join(dir, lockFile))}
	locked, err := f.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if !locked {
		return nil, fmt.Errorf("another process is at work in %s: wait for it, or choose another folder", dir)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	if err := f.tidy(); err != nil {
		return nil, err
	}
	if f.header, err = readHeader(dir); err != nil || f.header == nil {
		return f, err
	}
	return f, f.header.supported(dir)
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
		case name == runFile:
			has = true
		case name == lockFile:
		case temporary.MatchString(name):
			if err := os.Remove(filepath.Join(f.dir, name)); err != nil {
				return err
			}
		default:
			strangers = append(strangers, name)
		}
	}
	if !has && len(strangers) > 0 {
		return fmt.Errorf("%s holds no run, but %s: choose an empty or a new folder", f.dir, strings.Join(strangers[:min(3, len(strangers))], ", "))
	}
	return nil
}

// load opens the file of records for more. A last line that was torn by the end of a
// process is cut off; a bad line elsewhere is an error.
func (f *folder) load() error {
	path := filepath.Join(f.dir, samplesFile)
	f.log = log{records: map[key]*Record{}}
	if err := f.log.read(path, f.header); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	whole, err := f.log.whole()
	if err != nil {
		return fmt.Errorf("%s: %w: the file was changed by something else; choose another folder", path, err)
	}
	if info, err := os.Stat(path); err == nil && info.Size() > whole {
		f.cut = info.Size() - whole
		if err := os.Truncate(path, whole); err != nil {
			return err
		}
	}
	f.samples, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	return err
}

// append writes a record through to the disk, a line in one piece.
func (f *folder) append(r *Record) error {
	if err := json.NewEncoder(f.samples).Encode(r); err != nil {
		return err
	}
	if err := f.samples.Sync(); err != nil {
		return err
	}
	f.records[r.key()] = r
	return nil
}

// write puts a file into its place at once.
func (f *folder) write(name string, content []byte) error {
	return maybe.WriteFile(filepath.Join(f.dir, name), content, 0o666)
}

func (f *folder) writeHeader(h *header) error {
	text, err := indented(h)
	if err != nil {
		return err
	}
	f.header = h
	return f.write(runFile, text)
}

// indented is JSON for files: no escapes that are for HTML.
func indented(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

func (f *folder) close() error {
	var err error
	if f.samples != nil {
		err = f.samples.Close()
	}
	return errors.Join(err, f.lock.Unlock())
}

// fills goes through what a run has a record of: by model, sentence and method.
func (h *header) fills(yield func(key) bool) {
	for _, m := range h.Models {
		for sentence := range h.Prompts() {
			for _, v := range h.Configuration.Samplers {
				if !yield(key{m.Name, v.Name, sentence}) {
					return
				}
			}
		}
	}
}

// differences names what two runs disagree in: where, the value of the first and
// that of the second. Paths, parts and the Go release may differ.
func differences(first, second *header) ([]string, error) {
	a, err := comparable(first)
	if err != nil {
		return nil, err
	}
	b, err := comparable(second)
	if err != nil {
		return nil, err
	}
	both := maps.Clone(a)
	maps.Copy(both, b)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(both)) {
		if a[name] != b[name] {
			list = append(list, fmt.Sprintf("%s: %s there, %s now", name, cmp.Or(a[name], "nothing"), cmp.Or(b[name], "nothing")))
		}
	}
	return list, nil
}

// comparable is what must agree, by path.
func comparable(h *header) (map[string]string, error) {
	text, err := json.Marshal(struct {
		Config
		Models    any    `json:"models"`
		Corpora   any    `json:"corpora"`
		Selection any    `json:"selection"`
		Threads   int    `json:"threads"`
		Version   string `json:"version"`
	}{h.Configuration, h.Models, h.Corpora, h.Selection, h.Threads, h.Program.Version})
	if err != nil {
		return nil, err
	}
	var tree any
	numbers := json.NewDecoder(bytes.NewReader(text))
	numbers.UseNumber() // a seed has more digits than a float64
	if err := numbers.Decode(&tree); err != nil {
		return nil, err
	}
	flat := map[string]string{}
	flatten(flat, "", tree)
	return flat, nil
}

func flatten(flat map[string]string, name string, tree any) {
	switch v := tree.(type) {
	case map[string]any:
		for key, value := range v {
			flatten(flat, strings.TrimPrefix(name+"."+key, "."), value)
		}
	case []any:
		for i, value := range v {
			flatten(flat, fmt.Sprintf("%s[%d]", name, i), value)
		}
	case string:
		flat[name] = fmt.Sprintf("%.60q", v)
	default:
		flat[name] = fmt.Sprint(v)
	}
}

// check refuses to go on with another run.
func (f *folder) check(h *header) error {
	list, err := differences(f.header, h)
	if err != nil {
		return err
	}
	if f.header.Shard != h.Shard {
		list = append([]string{fmt.Sprintf("shard: %s there, %s now", cmp.Or(f.header.Shard.String(), "all"), cmp.Or(h.Shard.String(), "all"))}, list...)
	}
	return f.changed(list)
}

// changed is an error where there are differences.
func (f *folder) changed(differences []string) error {
	if len(differences) == 0 {
		return nil
	}
	return &ChangedError{Dir: f.dir, Differences: differences}
}

// ChangedError refuses to continue a folder with another configuration.
type ChangedError struct {
	Dir         string
	Differences []string
}

// Error names the first differences.
func (e *ChangedError) Error() string {
	shown := e.Differences[:min(3, len(e.Differences))]
	text := strings.Join(shown, "; ")
	if more := len(e.Differences) - len(shown); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return fmt.Sprintf("%s holds a run of another configuration (%s): choose another folder, or the old configuration", e.Dir, text)
}
