package tui

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The files of an evaluation's folder, as far as they are shown. Fields that are
// not here are passed over, so that runs of later versions can be looked at.
type (
	runHeader struct {
		Configuration struct {
			Preset   string `json:"preset"`
			Samples  int    `json:"samples"`
			Seed     uint64 `json:"seed"`
			Samplers []struct {
				Name string `json:"name"`
			} `json:"samplers"`
		} `json:"configuration"`
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
		Selection []struct {
			Prompts []runPrompt `json:"prompts"`
		} `json:"selection"`
		Shard string `json:"shard"` // "I/N" for a part of a run
	}
	// runStatus is what a process tells while it is at work.
	runStatus struct {
		Model           string    `json:"model"`
		Method          string    `json:"method"`
		Sentence        int       `json:"sentence"`
		Step            int       `json:"step"`
		Steps           int       `json:"steps"`
		LogLikelihood   *float64  `json:"log_likelihood"`
		ChainsPerSecond float64   `json:"chains_per_second"`
		SecondsLeft     *float64  `json:"seconds_left"`
		Written         time.Time `json:"written"`
	}
	runPrompt struct {
		Corpus   string   `json:"corpus"`
		Line     int      `json:"line"`
		Template string   `json:"template"`
		Words    []string `json:"words"`
	}
	runRecord struct {
		Model               string     `json:"model"`
		Method              string     `json:"method"`
		Sentence            int        `json:"sentence"`
		Chains              []runChain `json:"chains"`
		AcceptanceRate      *float64   `json:"acceptance_rate"`
		ChangedSlotsPerStep float64    `json:"changed_slots_per_step"`
		ModelRows           int64      `json:"model_rows"`
		Seconds             float64    `json:"seconds"`
	}
	runChain struct {
		Text          string   `json:"text"`
		Fills         []string `json:"fills"`
		LogLikelihood float64  `json:"log_likelihood"`
	}
	runMetrics struct {
		Methods []struct {
			Model         string       `json:"model"`
			Method        string       `json:"method"`
			Acceptance    *runEstimate `json:"acceptance_rate"`
			LogLikelihood runEstimate  `json:"log_likelihood"`
			Rows          runEstimate  `json:"model_rows_per_sample"`
			Top           *struct {
				Scores []runScore `json:"scores"`
			} `json:"top"`
		} `json:"methods"`
	}
	runEstimate struct {
		Mean          *float64 `json:"mean"`
		StandardError *float64 `json:"standard_error"`
	}
	runScore struct {
		Metric    string   `json:"metric"`
		Reference string   `json:"reference"`
		N         int      `json:"n"`
		Value     *float64 `json:"value"`
		Interval  *struct {
			Low  *float64 `json:"low"`
			High *float64 `json:"high"`
		} `json:"interval"`
	}
)

// runMethod is one sampler with one model.
type runMethod struct{ model, method string }

type runKey struct {
	runMethod
	sentence int
}

// runState is what was read of a folder so far. A message carries a new one; the
// screen never changes it.
type runState struct {
	header  *runHeader
	prompts []runPrompt
	methods []runMethod
	records map[runKey]*runRecord
	offset  int64 // of samples.jsonl, whole lines
	lines   int
	bad     int // lines that could not be read, and the first of them
	badLine int
	metrics *runMetrics
	status  *runStatus    // nil: no process tells that it is at work
	silent  time.Duration // since it told so
	fault   string        // of the whole folder
	note    string        // of a part of it
}

// total is the number of fills of the run, or of the part of it that the folder is
// for: of N parts, part I has every Nth sentence from the Ith on.
func (s *runState) total() int {
	sentences := len(s.prompts)
	var part, parts int
	if n, err := fmt.Sscanf(s.header.Shard, "%d/%d", &part, &parts); err == nil && n == 2 && part >= 1 && part <= parts {
		sentences = (len(s.prompts) - part + parts) / parts
	}
	return sentences * len(s.methods)
}

// complete tells that every sentence was infilled by every method.
func (s *runState) complete() bool { return s.header != nil && len(s.records) >= s.total() }

// part tells that the folder is for a part of a run, which has no scores.
func (s *runState) part() bool { return s.header.Shard != "" }

// patience is how long a process may be silent before it is no longer believed to
// be at work. It tells of every second.
const patience = 15 * time.Second

// working is what a process does now, nil where none does.
func (s *runState) working() *runStatus {
	if s.status == nil || s.silent > patience {
		return nil
	}
	return s.status
}

// mostBytes is the longest file that is read at a time, and mostLine the longest
// line: what is longer is no run's.
const mostBytes, mostLine = 64 << 20, 16 << 20

// readRun reads what is new in a folder, at the time now. Whatever is in it, the result can be
// shown; a run that is being written is read as far as it is whole.
func readRun(folder string, last *runState, now time.Time) *runState {
	s := &runState{records: map[runKey]*runRecord{}}
	content, err := readWhole(filepath.Join(folder, "run.json"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.fault = "there is no run.json in " + folder + ": it holds no evaluation, or one that is about to begin"
		return s
	case err != nil:
		s.fault = "run.json cannot be read: " + reason(err)
		return s
	}
	s.header = &runHeader{}
	if err := json.Unmarshal(content, s.header); err != nil {
		s.fault = "run.json is damaged: " + err.Error()
		return s
	}
	for _, selection := range s.header.Selection {
		s.prompts = append(s.prompts, selection.Prompts...)
	}
	for _, model := range s.header.Models {
		for _, method := range s.header.Configuration.Samplers {
			s.methods = append(s.methods, runMethod{model.Name, method.Name})
		}
	}
	if len(s.prompts) == 0 || len(s.methods) == 0 {
		s.fault = "run.json names no sentences or no samplers: it is not a run's"
		return s
	}
	if last != nil && last.header != nil && last.fault == "" {
		for k, record := range last.records {
			s.records[k] = record
		}
		s.offset, s.lines, s.bad, s.badLine = last.offset, last.lines, last.bad, last.badLine
	}
	if err := s.readSamples(filepath.Join(folder, "samples.jsonl")); err != nil {
		s.note = "samples.jsonl: " + reason(err)
	}
	if content, err := readWhole(filepath.Join(folder, ".status.json")); err == nil {
		// It is replaced as a whole, and one that cannot be read says nothing.
		if status := (&runStatus{}); json.Unmarshal(content, status) == nil {
			s.status, s.silent = status, now.Sub(status.Written)
		}
	}
	if content, err := readWhole(filepath.Join(folder, "metrics.json")); err == nil {
		s.metrics = &runMetrics{}
		if err := json.Unmarshal(content, s.metrics); err != nil {
			s.metrics, s.note = nil, "metrics.json is damaged: "+err.Error()
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		s.note = "metrics.json: " + reason(err)
	}
	return s
}

func readWhole(path string) ([]byte, error) {
	file, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, mostBytes+1))
	if err == nil && len(content) > mostBytes {
		return nil, fmt.Errorf("it is larger than %d MiB", mostBytes>>20)
	}
	return content, err
}

// openRegular opens a file, but no pipe or device, which could be waited for
// without end.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no file")
	}
	return os.Open(path)
}

// readSamples reads whole lines from the offset on.
func (s *runState) readSamples(path string) error {
	file, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil {
		return err
	} else if info.Size() < s.offset {
		// Begun anew, or its torn end was cut off.
		s.records, s.offset, s.lines, s.bad, s.badLine = map[runKey]*runRecord{}, 0, 0, 0, 0
	}
	if _, err := file.Seek(s.offset, io.SeekStart); err != nil {
		return err
	}
	content, err := io.ReadAll(io.LimitReader(file, mostBytes))
	if err != nil {
		return err
	}
	for {
		end := bytes.IndexByte(content, '\n')
		if end < 0 {
			if len(content) > mostLine {
				return fmt.Errorf("line %d is longer than %d MiB", s.lines+1, mostLine>>20)
			}
			return nil // what has no end yet is being written
		}
		line := content[:end]
		content = content[end+1:]
		s.offset += int64(end + 1)
		s.lines++
		var r runRecord
		k := runKey{}
		err := json.Unmarshal(line, &r)
		if err == nil {
			k = runKey{runMethod{r.Model, r.Method}, r.Sentence}
		}
		if err != nil || r.Sentence < 0 || r.Sentence >= len(s.prompts) || !slices.Contains(s.methods, k.runMethod) || len(r.Chains) == 0 {
			if s.bad++; s.bad == 1 {
				s.badLine = s.lines
			}
			continue
		}
		slices.SortStableFunc(r.Chains, func(a, b runChain) int { return cmp.Compare(b.LogLikelihood, a.LogLikelihood) })
		s.records[k] = &r
	}
}
