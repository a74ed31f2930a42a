package eval

import (
	"encoding/json"
	"math"
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
	if got.Method != "gibbs" || got.Model != "fake" || got.Sentence != 0 || got.Steps != 6 || got.Total != 18 ||
		got.Done != 0 || got.SecondsLeft != nil {
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

func TestPace(t *testing.T) {
	start := time.Unix(1000, 0)
	fills := func(method string, sentences ...int) (keys []key) {
		for _, s := range sentences {
			keys = append(keys, key{"m", method, s})
		}
		return keys
	}
	// Sentence 9 is three times the size of the others.
	sizes := slices.Repeat([]float64{10}, 10)
	sizes[9] = 30
	work := append(fills("cheap", 0, 1, 2, 9), fills("dear", 0, 1, 2)...)
	done := map[key]*Record{{"m", "dear", 9}: {Model: "m", Method: "dear", Sentence: 9, Seconds: 60}}
	p := newPace(work, done, sizes, 1, start)
	approximately := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	// Before any fill of this process: all take what that of an earlier one took for its size.
	rate, left := p.at(start)
	approximately("rate", rate, 0)
	approximately("left", *left, (3*20+60)+3*20)
	// A small cheap one ends after 2 seconds: two small and a large one, and 3 dear ones, are left.
	p.ended(&Record{Model: "m", Method: "cheap", Sentence: 0, Seconds: 2, Chains: make([]chain, 25)},
		start.Add(2*time.Second))
	rate, left = p.at(start.Add(2 * time.Second))
	approximately("rate", rate, 12.5)
	approximately("left", *left, (2*2+6)+3*20)
	// The next one has run for 5 seconds; one that hangs takes no other's time.
	_, left = p.at(start.Add(7 * time.Second))
	approximately("left", *left, (2*2+6)+3*20-5)
	_, left = p.at(start.Add(1000 * time.Second))
	approximately("left", *left, (2*2+6)+2*20)
	// Two at once are done in half the time.
	_, left = newPace(work, done, sizes, 2, start).at(start)
	approximately("left with two jobs", *left, 90)
	if _, left := newPace(work, nil, sizes, 1, start).at(start); left != nil {
		t.Errorf("left %v, though nothing is known", left)
	}
}
