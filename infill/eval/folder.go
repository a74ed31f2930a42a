package eval

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2/maybe"

	"infill/infill/eval/corpus"
)

// The files of a run's folder.
const (
	RunFile     = "run.json"
	SamplesFile = "samples.jsonl"
	MetricsFile = "metrics.json"
	ReportFile  = "report.html"
	lockFile    = ".lock"
)

// formatVersion is that of the files; it rises when an older program could not
// read them.
const formatVersion = 1

// Header is run.json: what was asked for, of what, and with what.
type Header struct {
	Format        int            `json:"format"`
	Configuration Config         `json:"configuration"`
	Models        []ModelVersion `json:"models"`
	Corpora       []CorpusInfo   `json:"corpora"`
	// Selection holds the sentences and their masks, by corpus.
	Selection []*corpus.Selection `json:"selection"`
	// Threads is the number of threads of one model call, on which the last
	// digits of a result can hang.
	Threads   int     `json:"threads"`
	Program   Program `json:"program"`
	Signature string  `json:"signature"`
	// Shard is "" for a whole run, or one that was merged.
	Shard Shard `json:"shard"`
	// Paths says where the corpora were read from, by name. They may move.
	Paths map[string]string `json:"paths"`
}

// ModelVersion says which model is meant.
type ModelVersion struct {
	Name      string `json:"name"`
	SHA256    string `json:"sha256"`           // of the bundle
	Tokenizer string `json:"tokenizer_sha256"` // of vocabulary and options
	Cased     bool   `json:"cased"`
}

// CorpusInfo says what was read.
type CorpusInfo struct {
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

// Program is what computed.
type Program struct {
	Version string `json:"version"`
	Go      string `json:"go"`
}

// Prompts are the sentences of the run, in order.
func (h *Header) Prompts() []corpus.Prompt {
	var prompts []corpus.Prompt
	for _, s := range h.Selection {
		prompts = append(prompts, s.Prompts...)
	}
	return prompts
}

// Record is a line of samples.jsonl: one sentence infilled by one method.
type Record struct {
	Model     string  `json:"model"`
	Method    string  `json:"method"`   // name of a Variant
	Sentence  int     `json:"sentence"` // number in Header.Prompts, from 0
	Template  string  `json:"template"`
	Chains    []Chain `json:"chains"`
	Trace     []Point `json:"trace"`
	Signature string  `json:"signature"` // of package infill, with everything but the template
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

// Chain is where a chain ended, and how it got there.
type Chain struct {
	Text          string   `json:"text"`
	Fills         []string `json:"fills"`
	TokenIDs      []int    `json:"token_ids"`
	LogLikelihood float64  `json:"log_likelihood"` // U in nats
	// AcceptanceRate and ChangedSlotsPerStep are means over the steps after the
	// warm-up; the rate is null for samplers that accept always.
	AcceptanceRate      *float64 `json:"acceptance_rate"`
	ChangedSlotsPerStep float64  `json:"changed_slots_per_step"`
}

// Point is a moment of a run, as a mean over chains.
type Point struct {
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
	dir     string
	lock    *flock.Flock
	header  *Header // nil: none there yet
	records map[key]*Record
	cut     int64 // bytes of a torn last line that were cut off
	samples *os.File
}

// openFolder locks a folder, making it where there is none, and reads what is
// there.
func openFolder(dir string) (_ *folder, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("the run's folder: %w", err)
	}
	f := &folder{dir: dir, lock: flock.New(filepath.Join(dir, lockFile)), records: map[key]*Record{}}
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
	if f.header, err = readHeader(dir); err != nil {
		return nil, err
	}
	return f, nil
}

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
		case name == RunFile:
			has = true
		case name == lockFile:
		case isTemporary(name), name == StatusFile:
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

// isTemporary tells the names that renameio gives.
func isTemporary(name string) bool {
	for _, target := range []string{RunFile, SamplesFile, MetricsFile, ReportFile, StatusFile} {
		if rest, ok := strings.CutPrefix(name, "."+strings.TrimPrefix(target, ".")); ok && strings.Trim(rest, "0123456789") == "" {
			return true
		}
	}
	return false
}

func readHeader(dir string) (*Header, error) {
	path := filepath.Join(dir, RunFile)
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var h Header
	if err := json.Unmarshal(content, &h); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w: choose another folder", path, err)
	}
	if h.Format != formatVersion {
		return nil, fmt.Errorf("%s has format %d, this program reads %d: choose another folder, or the program that wrote it", path, h.Format, formatVersion)
	}
	return &h, nil
}

// load reads the records and opens the file for more. A last line that was torn
// by the end of a process is cut off; a bad line elsewhere is an error.
func (f *folder) load() error {
	file, err := os.OpenFile(filepath.Join(f.dir, SamplesFile), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	f.samples = file
	whole, err := readRecords(file, f.header, func(r *Record) error {
		if _, twice := f.records[r.key()]; twice {
			return errors.New("the same sentence and method as an earlier line")
		}
		f.records[r.key()] = r
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w: the file was changed by something else; choose another folder", file.Name(), err)
	}
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if f.cut = end - whole; f.cut > 0 {
		if err := file.Truncate(whole); err != nil {
			return err
		}
	}
	_, err = file.Seek(whole, io.SeekStart)
	return err
}

// readRecords calls do for every whole record and returns the length of what is
// whole. The last line may be torn: its end is missing, or it is no JSON.
func readRecords(r io.Reader, h *Header, do func(*Record) error) (whole int64, err error) {
	lines := bufio.NewReaderSize(r, 1<<16)
	models, methods, sentences := h.names()
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return whole, nil // what is left of a line has no end, so it is torn
		}
		if err != nil {
			return whole, err
		}
		var record Record
		if err := json.Unmarshal(line, &record); err != nil {
			if _, peek := lines.Peek(1); peek == io.EOF {
				return whole, nil
			}
			return whole, fmt.Errorf("line %d: %w", number, err)
		}
		if !models[record.Model] || !methods[record.Method] || record.Sentence < 0 || record.Sentence >= sentences ||
			len(record.Chains) != h.Configuration.Chains {
			return whole, fmt.Errorf("line %d: not of this run (%s, %s, sentence %d)", number, record.Model, record.Method, record.Sentence)
		}
		if err := do(&record); err != nil {
			return whole, fmt.Errorf("line %d: %w", number, err)
		}
		whole += int64(len(line))
	}
}

func (h *Header) names() (models, methods map[string]bool, sentences int) {
	models, methods = map[string]bool{}, map[string]bool{}
	for _, m := range h.Models {
		models[m.Name] = true
	}
	for _, v := range h.Configuration.Samplers {
		methods[v.Name] = true
	}
	return models, methods, len(h.Prompts())
}

// append writes a record through to the disk.
func (f *folder) append(r *Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := f.samples.Write(append(line, '\n')); err != nil {
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

func (f *folder) writeHeader(h *Header) error {
	text, err := indented(h)
	if err != nil {
		return err
	}
	f.header = h
	return f.write(RunFile, text)
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

// ordered lists the records as a run makes them: by model, sentence and method.
func (h *Header) ordered(records map[key]*Record) []*Record {
	list := make([]*Record, 0, len(records))
	for _, m := range h.Models {
		for sentence := range h.Prompts() {
			for _, v := range h.Configuration.Samplers {
				if r := records[key{m.Name, v.Name, sentence}]; r != nil {
					list = append(list, r)
				}
			}
		}
	}
	return list
}

// differences names what two runs disagree in: where, the value of the first and
// that of the second. Paths, parts and the Go release may differ.
func differences(first, second *Header) ([]string, error) {
	a, err := comparable(first)
	if err != nil {
		return nil, err
	}
	b, err := comparable(second)
	if err != nil {
		return nil, err
	}
	names := map[string]struct{}{}
	for name := range a {
		names[name] = struct{}{}
	}
	for name := range b {
		names[name] = struct{}{}
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a[name] != b[name] {
			list = append(list, fmt.Sprintf("%s: %s there, %s now", name, cmp.Or(a[name], "nothing"), cmp.Or(b[name], "nothing")))
		}
	}
	return list, nil
}

// comparable is what must agree, by path.
func comparable(h *Header) (map[string]string, error) {
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
func (f *folder) check(h *Header) error {
	list, err := differences(f.header, h)
	if err != nil {
		return err
	}
	if f.header.Shard != h.Shard {
		list = append([]string{fmt.Sprintf("shard: %s there, %s now", cmp.Or(f.header.Shard.String(), "all"), cmp.Or(h.Shard.String(), "all"))}, list...)
	}
	if len(list) == 0 {
		return nil
	}
	return &ChangedError{Dir: f.dir, Differences: list}
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
