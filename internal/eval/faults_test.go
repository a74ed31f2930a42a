package eval

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"infill/infill"
	"infill/internal/modelstest"
)

var errFault = errors.New("the model is out of memory")

// TestModelFaults: whichever call of a model fails, the run ends with its error
// and the sentence. The same run goes on to the same scores.
func TestModelFaults(t *testing.T) {
	_, want := reference(t)
	o, model := small(t)
	calls := 0
	model.Before = func(context.Context) error { calls++; return nil }
	run(t, o)
	all := calls
	dir := t.TempDir()
	for failAt := 1; failAt < all; failAt += max(1, all/25) { // a run goes on where the fault before has left it
		o, model := small(t)
		o.Dir = dir
		calls = 0
		model.Before = func(context.Context) error {
			calls++
			if calls == failAt {
				return errFault
			}
			return nil
		}
		_, err := Run(t.Context(), o)
		if calls < failAt {
			if err != nil {
				t.Errorf("without a fault in %d calls: %v", calls, err)
			}
			continue
		}
		if !errors.Is(err, errFault) || !strings.Contains(err.Error(), "sentence ") {
			t.Errorf("call %d of %d fails: %v", failAt, all, err)
		}
		_, err = os.Stat(filepath.Join(dir, metricsFile))
		if err == nil {
			t.Errorf("call %d of %d fails: there are scores", failAt, all)
		}
	}
	o, _ = small(t)
	o.Dir = dir
	run(t, o)
	if got := read(t, dir, metricsFile); string(got) != string(want) {
		t.Error("a run with faults comes to other scores")
	}
}

// TestDiskFaults: what cannot be read, made, renamed or removed is an error, and
// the run goes on to the same scores without it.
func TestDiskFaults(t *testing.T) {
	_, want := reference(t)
	for name, what := range map[string]string{
		headFile:              "run.json: not a regular file",
		samplesFile:           "holds no run, but samples.jsonl",
		metricsFile:           "file exists",
		".run.json.lock":      ".run.json.lock: not a regular file: a folder",
		".samples.jsonl.lock": ".samples.jsonl.lock: not a regular file: a folder",
		".metrics.json123":    ".metrics.json123: directory not empty", // half-written, of a killed process
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := small(t)
			obstacle := filepath.Join(o.Dir, name)
			put := func() {
				err := errors.Join(os.MkdirAll(obstacle, 0o777), os.WriteFile(filepath.Join(obstacle, "x"), nil, 0o666))
				if err != nil {
					t.Fatal(err)
				}
			}
			if name == metricsFile { // a folder of strangers is refused at once
				o.Observe = func(p Progress) {
					if p.Scoring {
						put()
					}
				}
			} else {
				put()
			}
			_, err := Run(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), what) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %q", err, what)
			}
			os.RemoveAll(obstacle)
			again, _ := small(t)
			again.Dir = o.Dir
			run(t, again)
			if got := read(t, o.Dir, metricsFile); string(got) != string(want) {
				t.Error("other scores")
			}
		})
	}
}

// TestLittleRoom: a disk that is full at any of the files of a run ends the run.
func TestLittleRoom(t *testing.T) {
	_, want := reference(t)
	for name, limit := range map[string]uint64{headFile: 100, samplesFile: 8000} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			err := modelstest.InLittleRoom(t, limit, dir, func(dir string) error {
				o, _ := small(t)
				o.Dir = dir
				_, err := Run(t.Context(), o)
				return err
			})
			if !strings.Contains(err.Error(), "file too large") {
				t.Error(err)
			}
			o, _ := small(t)
			o.Dir = dir
			run(t, o)
			if got := read(t, dir, metricsFile); string(got) != string(want) {
				t.Error("other scores")
			}
		})
	}
}

// TestCloses: a run whose fill and whose model's end both fail tells of both.
func TestCloses(t *testing.T) {
	o, model := small(t)
	model.Before = func(context.Context) error { return errFault }
	o.Models = []*infill.Filler{infill.New(failsToClose{model}, newTokenizer(t))}
	_, err := Run(t.Context(), o)
	if !errors.Is(err, errFault) || !strings.Contains(err.Error(), "closing fails") {
		t.Errorf("error %v", err)
	}
}
