package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestWrite: the folder holds what the report says, whole, and without times
// equal twice.
func TestWrite(t *testing.T) {
	p, err := smallTraining(20).problem(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	report := func() *Report {
		return &Report{Runs: []*Run{compared(t, p, "gibbs,dmala:step-size=0.4,dmala:step-size=0.8", nil)},
			Definitions: definitions()}
	}
	dir := filepath.Join(t.TempDir(), "new", "folder")
	paths, err := report().Write(dir, "svg")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"acceptance-by-slots.svg", "ess-per-second.svg", "ess-per-step.svg", "log-mmd-by-second.svg",
		"log-mmd-by-step.svg",
		"log-rmse-by-evaluation.svg", "log-rmse-by-second.svg", "log-rmse-by-step.svg", "report.json",
	}
	if got := files(t, dir); !slices.Equal(got, want) || len(paths) != len(want) {
		t.Errorf("files %v, want %v", got, want)
	}
	for _, path := range paths[1:] {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(bytes.NewReader(content))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
		// Text is drawn as text, so the legend can be looked for.
		if strings.Contains(path, "log-") && !bytes.Contains(content, []byte("dmala:step-size=0.8")) {
			t.Errorf("%s names no sampler", path)
		}
	}
	content, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(content, &back); err != nil || len(back.Runs) != 1 || len(back.Runs[0].Samplers) != 3 ||
		back.Runs[0].Signature == "" {
		t.Errorf("report.json: %v, %+v", err, back)
	}
	for _, word := range []string{"log_rmse", "ess", "evaluations", "standard_error", "mmd2"} {
		if back.Definitions[word] == "" {
			t.Errorf("%s is not defined in the report", word)
		}
	}

	var twice [2][]byte
	for i := range twice {
		r := report()
		r.WithoutTimes()
		dir := t.TempDir()
		if _, err := r.Write(dir, "png"); err != nil {
			t.Fatal(err)
		}
		for _, name := range files(t, dir) {
			if strings.Contains(name, "second") {
				t.Errorf("%s is written without times", name)
			}
			content, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, ".png") {
				if _, err := png.Decode(bytes.NewReader(content)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			twice[i] = append(twice[i], content...)
		}
	}
	if !bytes.Equal(twice[0], twice[1]) {
		t.Error("two reports of one seed differ")
	}
	if _, err := report().Write(t.TempDir(), "pdf"); err == nil || !strings.Contains(err.Error(), "svg") {
		t.Errorf("pdf: %v", err)
	}
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := report().Write(blocked, "none"); err == nil {
		t.Error("a file was taken for a folder")
	}
}

// TestPresets: each runs, short, says what it is, and is drawn. The RBM of
// figure 4 takes seconds to train: TestReference runs its like.
func TestPresets(t *testing.T) {
	runs := map[string][]int{"dlp-figure-1": nil, "dlp-figure-2": {18, 7}, "dlp-figure-3": {9},
		"dlp-figure-7": {4, 4, 4, 4}, "dlp-toy": {4}}
	for _, p := range Presets() {
		want, quick := runs[p.Name]
		if !quick {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			last, all := 0, 0
			report, err := RunPreset(context.Background(), p.Name, Options{
				Chains: 2, Steps: 40, Seed: 1, Clock: ticker(),
				Observe: func(p Progress) {
					if p.Step < last || p.Step > p.Steps {
						t.Fatalf("progress %+v after %d", p, last)
					}
					last, all = p.Step, p.Steps
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if last != all || last == 0 {
				t.Errorf("progress ends at %d of %d", last, all)
			}
			var got []int
			for _, run := range report.Runs {
				got = append(got, len(run.Samplers))
				if run.Samplers[len(run.Samplers)-1].Steps != 40 {
					t.Errorf("%d steps", run.Samplers[0].Steps)
				}
			}
			if !slices.Equal(got, want) || report.Preset != p.Name || report.Title != p.Title {
				t.Errorf("samplers %v, want %v; %q, %q", got, want, report.Preset, report.Title)
			}
			if p.Name == "dlp-figure-1" && len(report.Bias) != 3 {
				t.Errorf("%d curves", len(report.Bias))
			}
			dir := t.TempDir()
			if _, err := report.Write(dir, "svg"); err != nil {
				t.Fatal(err)
			}
			if n := len(files(t, dir)); n < 4 {
				t.Errorf("%d files", n)
			}
		})
	}
	if len(runs) != len(Presets())-1 {
		t.Error("a preset is not run")
	}
	var option *OptionError
	_, err := RunPreset(context.Background(), "dlp-figure-9", Options{})
	if !errors.As(err, &option) ||
		!strings.HasPrefix(err.Error(), `preset: "dlp-figure-9" is not one of dlp-figure-1, `) {
		t.Error(err)
	}
	for _, name := range []string{"steps", "chains"} {
		if err := new(Options).PresetFlags().Set(name, "-1"); err == nil {
			t.Errorf("--%s -1: no error", name)
		}
	}
}

// Figure 7 gives Gibbs and DULA two and a half times the steps.
func TestFigure7Steps(t *testing.T) {
	report, err := RunPreset(context.Background(), "dlp-figure-7", Options{Chains: 1, Steps: 20, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range report.Runs {
		for i, want := range []int{50, 20, 50, 20} {
			if got := run.Samplers[i].Steps; got != want {
				t.Errorf("%s: %d steps, want %d", run.Samplers[i].Sampler, got, want)
			}
		}
		if run.Comparison.Steps != 20 {
			t.Errorf("compared at %d steps", run.Comparison.Steps)
		}
	}
}
