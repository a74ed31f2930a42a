package batch

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"

	"github.com/gofrs/flock"
	"golang.org/x/sync/errgroup"
)

// entry is a line of a part.
type entry struct {
	Number int64 `json:"n,omitempty"`
	Line   int64 `json:"line,omitempty"`
	// Rows, or what is wrong; neither for a blank line.
	Rows  []Object `json:"rows,omitempty"`
	Error string   `json:"error,omitempty"`
	Input string   `json:"input,omitempty"` // of a wrong record
	// Environment stands alone, before the first record that a model worked at.
	Environment map[string]string `json:"environment,omitempty"`
	// End stands alone, in the last line of a finished part.
	End *ending `json:"end,omitempty"`
}

// ending closes a part.
type ending struct {
	Settings map[string]string `json:"settings"`
	Records  int64             `json:"records"`
	SHA256   string            `json:"sha256"` // of all lines before
}

func (e *entry) place() string {
	if e.Line > 0 {
		return fmt.Sprintf("line %d", e.Line)
	}
	return fmt.Sprintf("row %d", e.Number)
}

// state is how far a part is.
type state struct {
	Records, Rejected, Blank, Rows int64
	environment                    map[string]string
	firstReject                    error
	hash                           hash.Hash
	bytes                          int64
	end                            *ending
}

func newState() *state { return &state{hash: sha256.New()} }

func (s *state) summary() *Summary {
	return &Summary{Records: s.Records, Rejected: s.Rejected, Blank: s.Blank, Rows: s.Rows}
}

// take counts a line.
func (s *state) take(e *entry, line []byte) {
	if e.End != nil {
		s.end = e.End
		return
	}
	s.hash.Write(line)
	s.bytes += int64(len(line))
	switch {
	case e.Environment != nil:
		s.environment = e.Environment
		return
	case e.Error != "":
		s.Rejected++
		if s.firstReject == nil {
			s.firstReject = &RecordError{e.place(), errors.New(e.Error)}
		}
	case len(e.Rows) == 0:
		s.Blank++
	}
	s.Records++
	s.Rows += int64(len(e.Rows))
}

// part is a part of a run, locked.
type part struct {
	dir   string
	shard Shard
	lock  *flock.Flock
	// begun tells that there is a journal, finished that the part is done.
	begun, finished bool
	plan            *plan
	file            *os.File
}

var (
	partName = regexp.MustCompile(`^\d+-of-\d+\.(journal|jsonl|lock)$`)
	ownFile  = regexp.MustCompile(`^(\.?plan\.json\d*|(output|rejects|manifest)\.part|merge\.lock|\.manifest\.part\d*)$`)
)

func (p *part) name() string     { return fmt.Sprintf("%05d-of-%05d", p.shard.Index, p.shard.Count) }
func (p *part) journal() string  { return filepath.Join(p.dir, p.name()+".journal") }
func (p *part) complete() string { return filepath.Join(p.dir, p.name()+".jsonl") }

// openPart locks a part.
func openPart(dir string, shard Shard) (*part, error) {
	p := &part{dir: dir, shard: shard}
	var err error
	p.lock, err = lockFile(filepath.Join(dir, p.name()+".lock"), func() error {
		return fmt.Errorf("another process is at work at part %s in %s: wait for it, or choose another output", shard, dir)
	})
	if err != nil {
		return nil, err
	}
	_, err = os.Stat(p.complete())
	if p.finished = err == nil; p.finished {
		if p.plan, err = readPlan(dir); err == nil && p.plan == nil {
			err = fmt.Errorf("%s has no %s: begin anew with --overwrite", dir, planFile)
		}
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	_, err = os.Stat(p.journal())
	p.begun = err == nil
	return p, nil
}

// lockFile locks a file; taken is the error where another process has it.
func lockFile(path string, taken func() error) (*flock.Flock, error) {
	lock := flock.New(path)
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w: is the folder on a file system with locks?", path, err)
	}
	if !locked {
		return nil, taken()
	}
	return lock, nil
}

// reset removes all of a run but the lock of this part, unless another process is at
// work at a part of it.
func (p *part) reset() error {
	locks, err := filepath.Glob(filepath.Join(p.dir, "*.lock"))
	if err != nil {
		return err
	}
	for _, path := range locks {
		if path == p.lock.Path() {
			continue
		}
		other := flock.New(path)
		locked, err := other.TryLock()
		if err != nil {
			return err
		}
		if !locked {
			return fmt.Errorf("another process is at work in %s: wait for it, or choose another output", p.dir)
		}
		defer other.Unlock()
	}
	p.begun, p.finished, p.plan = false, false, nil
	return removeFiles(p.dir, filepath.Base(p.lock.Path()))
}

func (p *part) close() error {
	var err error
	if p.file != nil {
		err = p.file.Close()
	}
	return errors.Join(err, p.lock.Unlock())
}

// lines goes through the whole lines of a part, and returns how many bytes they have.
// A line that is torn or no entry ends it, with an error where a whole one follows.
func lines(path string, do func(e *entry, line []byte) error) (whole int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, bufferSize)
	for {
		list, read := someLines(r)
		entries, wrong := make([]entry, len(list)), make([]error, len(list))
		var group errgroup.Group
		group.SetLimit(runtime.GOMAXPROCS(0))
		for i, line := range list {
			group.Go(func() error {
				wrong[i] = json.Unmarshal(line, &entries[i])
				return nil
			})
		}
		_ = group.Wait() // what is wrong is told in its turn
		for i, line := range list {
			if wrong[i] != nil {
				// A machine that failed can leave anything, but only at the end.
				if i == len(list)-1 && read == nil {
					_, read = r.ReadBytes('\n')
				}
				if i == len(list)-1 && read == io.EOF {
					return whole, nil
				}
				return whole, fmt.Errorf("%s: byte %d is no line of a run: the file was changed by something else; begin anew with --overwrite", path, whole)
			}
			if err := do(&entries[i], line); err != nil {
				return whole, err
			}
			whole += int64(len(line))
		}
		if read == io.EOF {
			return whole, nil
		}
		if read != nil {
			return whole, read
		}
	}
}

// someLines reads the next whole lines, few enough to hold.
func someLines(r *bufio.Reader) (list [][]byte, err error) {
	for size := 0; size < bufferSize && len(list) < 256; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return list, err
		}
		list, size = append(list, line), size+len(line)
	}
	return list, nil
}

// resume reads what the journal has, cuts a torn line off, and opens it for more.
func (p *part) resume() (*state, error) {
	s := newState()
	of := p.plan.Shards[p.shard.Index-1]
	_, err := lines(p.journal(), func(e *entry, line []byte) error {
		if e.Environment == nil && e.End == nil && e.Number != of.First+s.Records {
			return fmt.Errorf("%s: record %d where %d is due: the file was changed by something else; begin anew with --overwrite", p.journal(), e.Number, of.First+s.Records)
		}
		s.take(e, line)
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if s.Records > of.Records {
		return nil, fmt.Errorf("%s has %d records, the part has %d: begin anew with --overwrite", p.journal(), s.Records, of.Records)
	}
	if p.file, err = os.OpenFile(p.journal(), os.O_WRONLY|os.O_CREATE, 0o666); err != nil {
		return nil, full(err)
	}
	// The last line of a part that was killed while it was finished is written again.
	s.end = nil
	if err := p.file.Truncate(s.bytes); err != nil {
		return nil, err
	}
	_, err = p.file.Seek(s.bytes, io.SeekStart)
	return s, err
}

// append writes a line in one piece.
func (p *part) append(s *state, e *entry) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return err
	}
	if _, err := p.file.Write(b.Bytes()); err != nil {
		return full(err)
	}
	s.take(e, b.Bytes())
	return nil
}

// environment writes down what computes, once it is known, and refuses to mix it.
func (p *part) environment(s *state, now map[string]string) error {
	if now == nil {
		return nil
	}
	if s.environment == nil {
		return p.append(s, &entry{Environment: now})
	}
	return changed(p.journal(), differences(s.environment, now))
}

// finish closes the journal and gives it the name of a finished part.
func (p *part) finish(s *state) error {
	end := &entry{End: &ending{Settings: p.plan.Settings, Records: s.Records, SHA256: fmt.Sprintf("%x", s.hash.Sum(nil))}}
	if err := p.append(s, end); err != nil {
		return err
	}
	if err := p.file.Sync(); err != nil {
		return full(err)
	}
	if err := os.Rename(p.journal(), p.complete()); err != nil {
		return err
	}
	p.finished = true
	return nil
}

// readPart verifies a finished part, and gives its lines to do, which may be nil.
func readPart(path string, plan *plan, of span, do func(*entry) error) (*state, error) {
	s := newState()
	damaged := func(reason string) error {
		return fmt.Errorf("%s is damaged (%s): remove it, and run the part again", path, reason)
	}
	whole, err := lines(path, func(e *entry, line []byte) error {
		if s.end != nil {
			return damaged("lines after its end")
		}
		if s.take(e, line); do != nil && e.End == nil {
			return do(e)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case s.end == nil || whole != info.Size():
		return nil, damaged("it has no end")
	case s.end.SHA256 != fmt.Sprintf("%x", s.hash.Sum(nil)):
		return nil, damaged("its SHA-256 is not what its last line says")
	case s.Records != of.Records || s.end.Records != s.Records:
		return nil, damaged(fmt.Sprintf("%d records, not %d", s.Records, of.Records))
	}
	return s, changed(path, differences(s.end.Settings, plan.Settings))
}

// full says what to do where there is no room.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("%w: make room, and go on with --resume", err)
	}
	return err
}

// notThere says in words that an input ended before its time.
func notThere(err error) error {
	if err == io.EOF {
		return errors.New("the file has become shorter since the run began: begin anew with --overwrite")
	}
	return err
}
