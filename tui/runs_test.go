package tui

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/golden"

	"infill/internal/eval"
)

// evaluation writes a run's folder, with its first records as they would come.
type evaluation struct {
	t      *testing.T
	folder string
}

func newEvaluation(t *testing.T) *evaluation {
	e := &evaluation{t, filepath.Join(t.TempDir(), "first-run")}
	if err := os.Mkdir(e.folder, 0o755); err != nil {
		t.Fatal(err)
	}
	e.write("run.json",
		`{"format": 1, "configuration": {"preset": "dlp", "samples": 3, "seed": 5, "samplers": [{"name": "gibbs"}, {"name": "dmala"}, {"name": "dula:paper"}]},
		"models": [{"name": "toy"}], "later": {"field": true},
		"selection": [{"corpus": "tbc", "prompts": [
			{"corpus": "tbc", "line": 12, "template": "she opened the [MASK] and looked [MASK] .", "words": ["door", "up"]},
			{"corpus": "tbc", "line": 40, "template": "it was a [MASK] night .", "words": ["dark"]}]}]}`)
	return e
}

func (e *evaluation) write(name, text string) {
	e.t.Helper()
	if err := os.WriteFile(filepath.Join(e.folder, name), []byte(text), 0o644); err != nil {
		e.t.Fatal(err)
	}
}

func (e *evaluation) add(text string) {
	e.t.Helper()
	file, err := os.OpenFile(filepath.Join(e.folder, "samples.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		e.t.Fatal(err)
	}
	if _, err := file.WriteString(text); err != nil {
		e.t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		e.t.Fatal(err)
	}
}

func record(method string, sentence int, fills ...string) string {
	for len(fills) > 0 && len(fills) < 3 {
		fills = append(fills, fills[0])
	}
	type chain struct {
		Text          string   `json:"text"`
		Fills         []string `json:"fills"`
		LogLikelihood float64  `json:"log_likelihood"`
	}
	r := map[string]any{"model": "toy", "method": method, "sentence": sentence, "model_rows": 70, "seconds": 0.5,
		"acceptance_rate": 0.61}
	var chains []chain
	for i, fill := range fills {
		chains = append(chains, chain{"text of " + fill, strings.Split(fill, " "), float64(-3 * (i + 1))})
	}
	r["chains"] = chains
	line, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(line) + "\n"
}

const runScores = `{"methods": [
	{"model": "toy", "method": "gibbs", "acceptance_rate": null, "log_likelihood": {"mean": -4.5, "standard_error": 0.3}, "model_rows_per_sample": {"mean": 12.5, "standard_error": 0.5},
	 "top": {"scores": [{"metric": "self_bleu", "value": 84.2, "interval": {"low": 80.1, "high": 88}}, {"metric": "unique_ngrams", "reference": "self", "n": 2, "value": null}]}},
	{"model": "toy", "method": "dmala", "acceptance_rate": {"mean": 0.61, "standard_error": null}, "log_likelihood": {"mean": -5, "standard_error": 0.25}, "model_rows_per_sample": {"mean": 20, "standard_error": null}, "top": null}]}`

func (e *evaluation) complete() {
	for sentence, fills := range [][]string{{"door up", "door up", "window out"}, {"dark", "cold", "long"}} {
		for _, method := range []string{"gibbs", "dmala", "dula:paper"} {
			e.add(record(method, sentence, fills...))
		}
	}
	e.write("metrics.json", runScores)
}

func openRun(t *testing.T, folder string, columns, rows int) *driver {
	c, _ := testConfig(t, "")
	c.Folder = folder
	d := newDriver(t, c, columns, rows)
	d.until("the run", func() bool { return d.model.runs.state != nil && !d.model.opening })
	return d
}

func TestRunScreens(t *testing.T) {
	e := newEvaluation(t)
	e.complete()
	for _, size := range [][2]int{{60, 16}, {100, 28}, {180, 40}} {
		t.Run(fmt.Sprintf("sentence-%dx%d", size[0], size[1]), func(t *testing.T) {
			d := openRun(t, e.folder, size[0], size[1])
			exactly(t, d.model.screen(), size[0], size[1])
			golden.RequireEqual(t, []byte(ansi.Strip(d.model.screen())))
		})
		t.Run(fmt.Sprintf("scores-%dx%d", size[0], size[1]), func(t *testing.T) {
			d := openRun(t, e.folder, size[0], size[1])
			d.keys("s")
			exactly(t, d.model.screen(), size[0], size[1])
			golden.RequireEqual(t, []byte(ansi.Strip(d.model.screen())))
		})
	}
}

// TestRunInProgress reads a run while it is written: a line counts when it has its
// end, and nothing is read twice.
func TestRunInProgress(t *testing.T) {
	e := newEvaluation(t)
	s := eval.Watch(e.folder)
	if s.Err != nil || s.Done() != 0 || s.Total() != 6 {
		t.Fatalf("a run without samples: %+v", s)
	}
	e.add(record("gibbs", 0, "door up"))
	torn := record("dmala", 0, "window out")
	e.add(torn[:20])
	s = s.Again()
	if s.Done() != 1 || s.Note != "" {
		t.Fatalf("%d records, note %q after one and a torn one", s.Done(), s.Note)
	}
	e.add(torn[20:])
	next := s.Again()
	if next.Done() != 2 || next.Note != "" {
		t.Fatalf("%d records, note %q", next.Done(), next.Note)
	}
	if s.Done() != 1 {
		t.Error("the state before was changed")
	}
	// Begun again with less: everything is read again.
	e.write("samples.jsonl", record("dula:paper", 1, "dark"))
	again := next.Again()
	if again.Done() != 1 || again.Record("toy", "dula:paper", 1) == nil {
		t.Errorf("after a new beginning: %d records", again.Done())
	}

	d := openRun(t, e.folder, 100, 28)
	if frame := ansi.Strip(d.model.screen()); !strings.Contains(frame, "● 1 of 6") ||
		!strings.Contains(frame, "not yet") {
		t.Errorf("a run in progress:\n%s", frame)
	}
	e.add(record("gibbs", 0, "door up"))
	d.until("the next record", func() bool { return strings.Contains(ansi.Strip(d.model.screen()), "● 2 of 6") })
}

// TestWatching looks at a run that another process is at work on: what it does, how
// fast, how long still; that it has fallen silent; and that it is done.
func TestWatching(t *testing.T) {
	e := newEvaluation(t)
	e.add(record("gibbs", 0, "door up"))
	d := openRun(t, e.folder, 100, 28)
	shows := func(texts ...string) {
		t.Helper()
		d.model.Update(d.model.runs.load()())
		frame := ansi.Strip(d.model.screen())
		for _, text := range texts {
			if !strings.Contains(frame, text) {
				t.Errorf("%q is missing:\n%s", text, frame)
			}
		}
		exactly(t, d.model.screen(), 100, 28)
	}
	shows("● 1 of 6", "not yet", "no process is at work here; the command that began the run goes on with it")
	status := func(at time.Time) string {
		return fmt.Sprintf(
			`{"model": "toy", "method": "dmala", "sentence": 0, "step": 20, "steps": 50, "log_likelihood": -12.34,
			"chains_per_second": 31.4, "seconds_left": 130, "written": %q}`, at.Format(time.RFC3339Nano))
	}
	now := d.model.config.Now()
	e.write(".status.json", status(now.Add(-2*time.Second)))
	shows("31 chains/s, 2 min 10 s left, dmala at sentence 1, step 20 of 50, mean log-likelihood -12.3",
		"● step 20 of 50")
	e.write(".status.json", status(now.Add(-3*time.Minute)))
	shows("the process at work has been silent for 3 min 00 s; the command")
	e.write(".status.json", "{")
	shows("no process is at work here")
	if err := os.Remove(filepath.Join(e.folder, ".status.json")); err != nil {
		t.Fatal(err)
	}
	for sentence := range 2 {
		for _, method := range []string{"gibbs", "dmala", "dula:paper"} {
			e.add(record(method, sentence, "dark"))
		}
	}
	shows("● scores to come")
	e.write("metrics.json", runScores)
	shows("✓ complete")
}

func TestDamagedRuns(t *testing.T) {
	tests := map[string]struct {
		damage func(e *evaluation)
		want   string
	}{
		"no run.json": {func(e *evaluation) { os.Remove(filepath.Join(e.folder, "run.json")) },
			"there is no run.json"},
		"torn run.json": {func(e *evaluation) { e.write("run.json", `{"format": 1, "conf`) },
			"run.json is damaged"},
		"another's json": {func(e *evaluation) { e.write("run.json", `{"name": "x"}`) }, "names no sentences"},
		"wrong types": {func(e *evaluation) { e.write("run.json", `{"models": 7}`) },
			"run.json is damaged"},
		"binary": {func(e *evaluation) { e.write("run.json", "\x00\x1b[2J\xff") },
			"run.json is damaged"},
		"a pipe": {func(e *evaluation) { os.Remove(filepath.Join(e.folder, "run.json")); mkfifo(e) },
			"it is no file"},
		"bad lines": {func(
			e *evaluation) {
			e.add("{}\nnonsense\n\x1b]0;x\x07\n" + record("gibbs", 0, "door up"))
		}, "3 lines of samples.jsonl are damaged and left out, the first is line 1"},
		"of another run": {func(
			e *evaluation) {
			e.add(record("gibbs", 0, "door up") + record("gwg", 99, "x"))
		}, "line 2 of samples.jsonl is damaged"},
		"no chains": {func(e *evaluation) { e.add(record("gibbs", 0)) },
			"line 1 of samples.jsonl is damaged"},
		"torn metrics": {func(e *evaluation) { e.complete(); e.write("metrics.json", `{"methods": [`) },
			"metrics.json is damaged"},
		"samples a folder": {func(
			e *evaluation) {
			_ = os.Mkdir(filepath.Join(e.folder, "samples.jsonl"), 0o755)
		}, "it is no file"},
		"fewer fills than blanks": {func(e *evaluation) { e.add(record("gibbs", 0, "door")) }, "door"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := newEvaluation(t)
			test.damage(e)
			d := openRun(t, e.folder, 100, 24)
			for _, k := range []string{"", "s", "down", "right", "s", "end", "pgdown", "left"} {
				if k != "" {
					d.keys(k)
				}
				frame := d.model.screen()
				exactly(t, frame, 100, 24)
				for _, r := range ansi.Strip(frame) {
					if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 {
						t.Fatalf("%U is on the screen", r)
					}
				}
				if k == "" && !strings.Contains(ansi.Strip(frame), test.want) {
					t.Errorf("%q is not on the screen:\n%s", test.want, ansi.Strip(frame))
				}
			}
		})
	}
}

func mkfifo(e *evaluation) {
	if err := syscall.Mkfifo(filepath.Join(e.folder, "run.json"), 0o644); err != nil {
		e.t.Skip(err)
	}
}

// TestHarmlessRun looks at a run whose texts hold control sequences.
func TestHarmlessRun(t *testing.T) {
	e := newEvaluation(t)
	e.write("run.json",
		`{"configuration": {"preset": "\u001b[31mx", "samples": 1, "samplers": [{"name": "gib\u001b[2Jbs"}]}, "models": [{"name": "\u001b]0;m\u0007"}, {"name": "n"}],
		"selection": [{"prompts": [{"corpus": "c\u0007", "template": "a\u001b[1m [MASK]\u202e b", "words": ["w\u009b31m"]}]}]}`)
	line, err := json.Marshal(
		map[string]any{"model": "n", "method": "gib\x1b[2Jbs",
			"chains": []any{map[string]any{"text": "\x1b[H", "fills": []string{"\x1b[Hf"}}}})
	if err != nil {
		t.Fatal(err)
	}
	e.add(string(line) + "\n")
	d := openRun(t, e.folder, 100, 24)
	frame := d.model.screen()
	for _, sequence := range []string{"\x1b[2J", "\x1b]", "\x07", "\x1b[H", "\u009b", "\u202e"} {
		if strings.Contains(frame, sequence) {
			t.Errorf("%q is on the screen", sequence)
		}
	}
	if !strings.Contains(ansi.Strip(frame), "␛[Hf") {
		t.Errorf("the fill is not shown:\n%s", ansi.Strip(frame))
	}
}

// TestTryIt samples a run's sentence with the present options.
func TestTryIt(t *testing.T) {
	e := newEvaluation(t)
	e.complete()
	d := openRun(t, e.folder, 100, 24)
	d.keys("enter")
	d.until("fills", func() bool { return d.model.view == fillsView && len(d.model.fills.listed) > 0 })
	if got := d.model.editor.text(); got != "she opened the [MASK] and looked [MASK] ." {
		t.Errorf("the template is %q", got)
	}
}
