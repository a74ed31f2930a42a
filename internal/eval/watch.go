package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"infill/internal/eval/corpus"
	"infill/internal/journal"
	"infill/metrics"
)

// Watched is the content of a run's folder as read so far. It does not change:
// Again returns a new Watched.
type Watched struct {
	Header  *header // nil if Err is not nil
	Prompts []corpus.Prompt
	// Results are nil until the run is scored.
	Results *Results
	// Err says why nothing can be shown. Note says what is left out.
	Err  error
	Note string

	dir string
	log
}

// Watch reads a run's folder, also while it grows, by complete lines.
func Watch(dir string) *Watched { return (&Watched{dir: dir}).Again() }

// Again reads the folder again. Of samples.jsonl it reads only the new lines.
func (w *Watched) Again() *Watched {
	next := &Watched{dir: w.dir}
	h, err := readHeader(w.dir)
	switch {
	case err != nil:
		next.Err = err
	case h == nil:
		next.Err = fmt.Errorf("%s holds no run: there is no %s in it", w.dir, headFile)
	case h.sentences() == 0 || len(h.Models) == 0 || len(h.Configuration.Samplers) == 0:
		next.Err = fmt.Errorf("%s names no sentences or no samplers: it is not a run's", headFile)
	}
	if next.Err != nil {
		return next
	}
	next.Header, next.Prompts = h, h.Prompts()
	note := func(err error) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			next.Note = err.Error()
		}
	}
	note(next.follow(w.log))
	if next.bad == 1 {
		next.Note = fmt.Sprintf("line %d of %s is damaged and left out", next.firstBad, samplesFile)
	} else if next.bad > 1 {
		next.Note = fmt.Sprintf("%d lines of %s are damaged and left out, the first is line %d", next.bad, samplesFile,
			next.firstBad)
	}
	var results Results
	there, err := journal.ReadJSON(filepath.Join(w.dir, metricsFile), &results)
	note(err)
	if there {
		results.header, results.records = h, next.records
		next.Results = &results
		note(next.addSeconds())
	}
	return next
}

// follow reads the records since last, but a last line without its end.
func (w *Watched) follow(last log) error {
	path := filepath.Join(w.dir, samplesFile)
	w.log = last
	w.records = maps.Clone(last.records)
	info, err := os.Stat(path)
	if err == nil && info.Size() < last.end || last.records == nil {
		w.log = log{records: map[key]*Record{}} // the file was begun again, or its half-written last line was cut off
	}
	return journal.Follow(path, w.end, func(line []byte) error {
		if err := w.add(line, w.Header); err != nil {
			w.bad++
			if w.bad == 1 {
				w.firstBad = w.lines
				w.firstErr = err
			}
		}
		return nil
	})
}

// Record returns the record of a fill, or nil if it is not done.
func (w *Watched) Record(model, method string, sentence int) *Record {
	return w.records[key{model, method, sentence}]
}

func (w *Watched) Done() int { return len(w.records) }

func (w *Watched) Total() int {
	return len(w.Header.Models) * w.Header.sentences() * len(w.Header.Configuration.Samplers)
}

// readHeader reads run.json of any format, or returns nil for none.
func readHeader(dir string) (*header, error) {
	var h header
	if ok, err := journal.ReadJSON(filepath.Join(dir, headFile), &h); !ok || err != nil {
		return nil, err
	}
	return &h, nil
}

// supported returns an error if this program cannot continue a run with h.Format.
func (h *header) supported(dir string) error {
	if h.Format == formatVersion {
		return nil
	}
	return fmt.Errorf("%s has format %d, this program reads %d: choose another folder, or the program that wrote it",
		filepath.Join(dir, headFile), h.Format, formatVersion)
}

// log holds the records of samples.jsonl. They are in no particular order,
// because each record is written as soon as its fill is done.
type log struct {
	records map[key]*Record
	lines   int
	end     int64 // end of the lines read so far, in bytes
	// bad counts damaged lines, which are left out. firstBad is the line number
	// of the first, and firstErr its error.
	bad, firstBad int
	firstErr      error
}

// add adds the record in a line of samples.jsonl. It returns an error if the
// line is damaged or not of the run h.
func (l *log) add(line []byte, h *header) error {
	l.lines++
	l.end += int64(len(line))
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return fmt.Errorf("line %d: %w", l.lines, err)
	}
	_, twice := l.records[r.key()]
	switch c := h.Configuration; {
	case !slices.ContainsFunc(h.Models, func(m modelVersion) bool { return m.Name == r.Model }),
		!slices.ContainsFunc(c.Samplers, func(v variant) bool { return v.Name == r.Method }),
		r.Sentence < 0 || r.Sentence >= h.sentences(), len(r.Chains) != c.Chains:
		return fmt.Errorf("line %d: not of this run (%s, %s, sentence %d)", l.lines, r.Model, r.Method, r.Sentence)
	case twice:
		return fmt.Errorf("line %d: the same sentence and method as an earlier line", l.lines)
	}
	l.records[r.key()] = &r
	return nil
}

func ReadResults(dir string) (*Results, error) {
	w := Watch(dir)
	switch {
	case w.Err != nil:
		return nil, w.Err
	case w.firstErr != nil:
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, samplesFile), w.firstErr)
	case w.Header.supported(dir) != nil:
		return nil, w.Header.supported(dir)
	case w.Results != nil:
		return w.Results, errors.Join(w.addSeconds(), w.Results.joinOwn(dir))
	case w.Note != "":
		return nil, fmt.Errorf("%s: start the run again, which writes it again", w.Note)
	case w.Done() >= w.Total():
		return nil, fmt.Errorf("the run in %s has all its samples, but no scores yet: start it again, and it goes on",
			dir)
	}
	return nil, fmt.Errorf("the run in %s is not done: %d of %d fills; start it again, and it goes on", dir, w.Done(),
		w.Total())
}

func (w *Watched) Scoring() metrics.Options { return w.Header.scoring() }

// addSeconds sets SecondsPerSample in the results from the records.
// metrics.json does not contain the seconds.
func (w *Watched) addSeconds() error {
	for i, m := range w.Results.Methods {
		records, err := w.Header.recordsOf(w.records, m.Model, m.Method)
		if err != nil {
			return fmt.Errorf("%s is not that of %s: %w", filepath.Join(w.dir, samplesFile), metricsFile, err)
		}
		w.Results.Methods[i].SecondsPerSample = secondsPerSample(records)
	}
	return nil
}
