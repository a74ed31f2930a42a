package tui

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/golden"
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
	for _, size := range [][2]int{{60, 16}, {110, 28}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			d := openRun(t, e.folder, size[0], size[1])
			exactly(t, d.model.screen(), size[0], size[1])
			golden.RequireEqual(t, []byte(d.frame()))
		})
	}
}

// TestRunInProgress reads a run while it is written, until it is done.
func TestRunInProgress(t *testing.T) { synctest.Test(t, runInProgress) }

func runInProgress(t *testing.T) {
	e := newEvaluation(t)
	e.add(record("dula:paper", 1, "dark"))
	d := openRun(t, e.folder, 100, 28)
	d.shows("● 1 of 6", "not yet", "if no process is at work here, the command that began the run goes on with it")
	e.add(record("gibbs", 0, "door up"))
	d.until("the next record", func() bool { return strings.Contains(d.frame(), "● 2 of 6") })
	e.add(record("dmala", 0, "door up") + record("dula:paper", 0, "door up") + record("gibbs", 1, "dark") +
		record("dmala", 1, "dark"))
	d.until("all records", func() bool { return strings.Contains(d.frame(), "● scores to come") })
	e.write("metrics.json", runScores)
	d.until("the scores", func() bool { return strings.Contains(d.frame(), "✓ complete") })
}

func TestDamagedRuns(t *testing.T) {
	tests := map[string]struct {
		damage func(e *evaluation)
		want   string
	}{
		"no run.json": {func(e *evaluation) { os.Remove(filepath.Join(e.folder, "run.json")) }, "there is no run.json"},
		"binary":      {func(e *evaluation) { e.write("run.json", "\x00\x1b[2J\xff") }, "run.json is damaged"},
		"bad lines": {func(e *evaluation) { e.add("{}\nnonsense\n\x1b]0;x\x07\n" + record("gibbs", 0, "door up")) },
			"3 lines of samples.jsonl are damaged and left out, the first is line 1"},
		"no chains": {func(e *evaluation) { e.add(record("gibbs", 0)) }, "line 1 of samples.jsonl is damaged"},
		"torn metrics": {func(e *evaluation) { e.complete(); e.write("metrics.json", `{"methods": [`) },
			"metrics.json is damaged"},
		"fewer fills than blanks": {func(e *evaluation) { e.add(record("gibbs", 0, "door")) }, "door"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := newEvaluation(t)
			test.damage(e)
			d := openRun(t, e.folder, 100, 24)
			for _, k := range []string{"", "down", "right", "end", "pgdown", "left"} {
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
