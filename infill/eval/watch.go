package eval

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"infill/infill/eval/internal/corpus"
)

// Watched is what was read of a run's folder so far. It does not change: Again
// gives another.
type Watched struct {
	Header *header // nil where Err is not
	// Prompts are the sentences of the run, in order.
	Prompts []corpus.Prompt
	// Results are nil before the run is scored, and for a part of a run.
	Results *Results
	// Status is what a process at work told last, nil where none did.
	Status *Progress
	// Err says why nothing can be shown, Note what is left out.
	Err  error
	Note string

	dir string
	log
}

// Watch reads the folder of a run, also while another process is at work in it:
// what is there is read as far as it is whole.
func Watch(dir string) *Watched { return (&Watched{dir: dir}).Again() }

// Again reads what has come since.
func (w *Watched) Again() *Watched {
	next := &Watched{dir: w.dir, log: w.log}
	next.records = maps.Clone(w.records)
	note := func(err error) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			next.Note = err.Error()
		}
	}
	h, err := readHeader(w.dir)
	switch {
	case err != nil:
		next.Err = err
	case h == nil:
		next.Err = fmt.Errorf("%s holds no run: there is no %s in it", w.dir, runFile)
	case len(h.Prompts()) == 0 || len(h.Models) == 0 || len(h.Configuration.Samplers) == 0:
		next.Err = fmt.Errorf("%s names no sentences or no samplers: it is not a run's", runFile)
	}
	if next.Err != nil {
		next.log = log{}
		return next
	}
	next.Header, next.Prompts = h, h.Prompts()
	note(next.log.read(filepath.Join(w.dir, samplesFile), next.Header))
	if next.bad == 1 {
		next.Note = fmt.Sprintf("line %d of %s is damaged and left out", next.badLine, samplesFile)
	} else if next.bad > 1 {
		next.Note = fmt.Sprintf("%d lines of %s are damaged and left out, the first is line %d", next.bad, samplesFile, next.badLine)
	}
	// The status is replaced as a whole, and one that cannot be read says nothing.
	if status, err := readJSON[Progress](w.dir, statusFile); err == nil {
		next.Status = status
	}
	next.Results, err = readJSON[Results](w.dir, metricsFile)
	note(err)
	return next
}

// Record is what a method with a model made of a sentence, nil where that is not
// done.
func (w *Watched) Record(model, method string, sentence int) *Record {
	return w.records[key{model, method, sentence}]
}

// Done is the number of fills there are, and Total that of the run, or of the part of
// it that the folder is for.
func (w *Watched) Done() int { return len(w.records) }

// Total is what Done will be.
func (w *Watched) Total() (total int) {
	for k := range w.Header.fills {
		total += indicator(has(w.Header.Shard, k.sentence))
	}
	return total
}

// readJSON reads a file of a run's folder.
func readJSON[T any](dir, name string) (*T, error) {
	file, err := openRegular(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	var value T
	if err := json.Unmarshal(content, &value); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", name, err)
	}
	return &value, nil
}

// openRegular opens a file, but no pipe or device, which could be waited for
// without end.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is no file", filepath.Base(path))
	}
	return os.Open(path)
}

// readHeader reads run.json of whatever version; nil where there is none.
func readHeader(dir string) (*header, error) {
	h, err := readJSON[header](dir, runFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return h, nil
}

// readRun reads a run that is to be gone on with.
func readRun(dir string) (*Watched, error) {
	w := Watch(dir)
	if w.Err != nil {
		return nil, w.Err
	}
	if _, err := w.whole(); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, samplesFile), err)
	}
	return w, w.Header.supported(dir)
}

// supported refuses a run of a version that this program cannot go on with.
func (h *header) supported(dir string) error {
	if h.Format == formatVersion {
		return nil
	}
	return fmt.Errorf("%s has format %d, this program reads %d: choose another folder, or the program that wrote it", filepath.Join(dir, runFile), h.Format, formatVersion)
}

// log is what was read of samples.jsonl. It is no journal of package batch, which is in the
// order of its input, by one model, and nobody's to read before its end: here a record is
// there, and on the disk, as soon as it is done, whatever those before it take.
type log struct {
	records map[key]*Record
	lines   int
	end     int64 // of the lines that were read
	// bad lines are left out; of the first one its number, where it begins, what is
	// wrong, and whether it is no JSON at all.
	bad, badLine int
	badAt        int64
	badErr       error
	torn         bool
}

// read reads the lines that have come since. What has no end yet is being written.
func (l *log) read(path string, h *header) error {
	file, err := openRegular(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil {
		return err
	} else if info.Size() < l.end || l.records == nil {
		// Begun anew, or its torn end was cut off.
		*l = log{records: map[key]*Record{}}
	}
	if _, err := file.Seek(l.end, io.SeekStart); err != nil {
		return err
	}
	sentences := len(h.Prompts())
	lines := bufio.NewReaderSize(file, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		var r Record
		err = json.Unmarshal(line, &r)
		torn := err != nil
		if err == nil {
			switch _, twice := l.records[r.key()]; {
			case !h.has(r.Model, r.Method) || r.Sentence < 0 || r.Sentence >= sentences || len(r.Chains) != h.Configuration.Chains:
				err = fmt.Errorf("not of this run (%s, %s, sentence %d)", r.Model, r.Method, r.Sentence)
			case twice:
				err = errors.New("the same sentence and method as an earlier line")
			}
		}
		l.lines++
		if err == nil {
			l.records[r.key()] = &r
		} else if l.bad++; l.bad == 1 {
			l.badLine, l.badAt, l.badErr, l.torn = l.lines, l.end, err, torn
		}
		l.end += int64(len(line))
	}
}

// has tells whether the run is by a method with a model.
func (h *header) has(model, method string) bool {
	return slices.ContainsFunc(h.Models, func(m modelVersion) bool { return m.Name == model }) &&
		slices.ContainsFunc(h.Configuration.Samplers, func(v Variant) bool { return v.Name == method })
}

// whole is where the lines end that can be gone on with: a last line that is no JSON
// is what a power cut leaves. A bad line elsewhere is an error.
func (l *log) whole() (int64, error) {
	switch {
	case l.bad == 0:
		return l.end, nil
	case l.torn && l.badLine == l.lines:
		return l.badAt, nil
	}
	return 0, fmt.Errorf("line %d: %w", l.badLine, l.badErr)
}
