package eval

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestStatus: who watches a run reads where it is; a run that has ended leaves
// nothing, and one that was killed leaves what the next start clears away.
func TestStatus(t *testing.T) {
	o, _ := small(t)
	write(t, o.Dir, statusFile, []byte(`{"method": "of a killed process"}`))
	write(t, o.Dir, statusFile+"0", []byte("{"))
	var first Progress
	var got Progress
	scoring := 0
	o.Observe = func(p Progress) {
		if p.Scoring {
			scoring++
			return
		}
		if first.Total == 0 {
			first = p
			if err := json.Unmarshal(read(t, o.Dir, statusFile), &got); err != nil {
				t.Error(err)
			}
		}
		if p.Chains != 4 || p.Total != 18 || p.ChainsPerSecond < 0 || (p.SecondsLeft == nil) != (p.Done == 0) {
			t.Errorf("progress %+v", p)
		}
	}
	run(t, o)
	if scoring != 1 {
		t.Errorf("scoring was told %d times", scoring)
	}
	if got.Method != "gibbs" || got.Model != "fake" || got.Sentence != 0 || got.Steps != 6 || got.Total != 18 || got.Done != 0 || got.SecondsLeft != nil {
		t.Errorf("status %+v", got)
	}
	if age := time.Since(got.Written); age < 0 || age > time.Minute {
		t.Errorf("written %v ago", age)
	}
	left, err := filepath.Glob(filepath.Join(o.Dir, statusFile+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestStatusOfInterrupted: also a run that ends early takes its status along.
func TestStatusOfInterrupted(t *testing.T) {
	o, model := small(t)
	model.closing = errors.New("closing fails")
	if _, err := Run(t.Context(), o); err == nil {
		t.Fatal("no error")
	}
	if _, err := os.Stat(filepath.Join(o.Dir, statusFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("status after the end: %v", err)
	}
}

func TestPace(t *testing.T) {
	start := time.Unix(1000, 0)
	fills := func(method string, number int) []key { return slices.Repeat([]key{{"m", method, 0}}, number) }
	work := append(fills("cheap", 4), fills("dear", 3)...)
	done := map[key]*Record{{"m", "dear", 9}: {Model: "m", Method: "dear", Seconds: 20}}
	p := newPace(work, done, 1, start)
	approximately := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	// Before any fill of this process: all take what that of an earlier one took.
	rate, left := p.at(start)
	approximately("rate", rate, 0)
	approximately("left", *left, 7*20)
	// A cheap one ends after 2 seconds: 3 cheap ones and 3 dear ones are left.
	p.ended(&Record{Model: "m", Method: "cheap", Seconds: 2, Chains: make([]chain, 25)}, start.Add(2*time.Second))
	rate, left = p.at(start.Add(2 * time.Second))
	approximately("rate", rate, 12.5)
	approximately("left", *left, 3*2+3*20)
	// The next one has run for 5 seconds; one that hangs takes no other's time.
	_, left = p.at(start.Add(7 * time.Second))
	approximately("left", *left, 3*2+3*20-5)
	_, left = p.at(start.Add(1000 * time.Second))
	approximately("left", *left, 3*2+2*20)
	// Two at once are done in half the time.
	_, left = newPace(work, done, 2, start).at(start)
	approximately("left with two jobs", *left, 70)
	if _, left := newPace(work, nil, 1, start).at(start); left != nil {
		t.Errorf("left %v, though nothing is known", left)
	}
}
