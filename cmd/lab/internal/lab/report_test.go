package lab

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
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

// TestWrite: the folder holds what the report says, whole, and without times equal twice.
func TestWrite(t *testing.T) {
	p := opened(t, smallTraining+"updates=20,reference-samples=60", 0)
	report := func() *StudyReport {
		return compared(t, p, "gibbs,dmala:step-size=0.4,dmala:step-size=0.8", nil)
	}
	dir := filepath.Join(t.TempDir(), "new", "folder")
	paths, err := report().Write(dir, "svg")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"acceptance-by-proposed.svg", "curves.csv", "ess-by-second.svg", "ess.svg", "log-mmd-by-evaluation.svg",
		"log-mmd-by-second.svg", "log-mmd.svg", "log-rmse-by-evaluation.svg", "log-rmse-by-second.svg", "log-rmse.svg",
		"report.json", "results.csv",
	}
	if got := files(t, dir); !slices.Equal(got, want) || len(paths) != len(want) {
		t.Errorf("files %v, want %v", got, want)
	}
	for _, path := range paths[3:] {
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
	var back StudyReport
	if err := json.Unmarshal(content, &back); err != nil || len(back.Cells) != 3 || back.Signature == "" {
		t.Errorf("report.json: %v, %+v", err, back)
	}
	for _, word := range []string{"log-rmse-at-steps", "ess", "evaluations", "acceptance", "log-mmd-at-steps"} {
		if back.Definitions[word] == "" {
			t.Errorf("%s is not defined in the report", word)
		}
	}

	timeless := report()
	timeless.WithoutTimes()
	dir = t.TempDir()
	if _, err := timeless.Write(dir, "png"); err != nil {
		t.Fatal(err)
	}
	for _, name := range files(t, dir) {
		if strings.Contains(name, "second") {
			t.Errorf("%s is written without times", name)
		}
		if content, err := os.ReadFile(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		} else if _, err := png.Decode(bytes.NewReader(content)); err != nil && strings.HasSuffix(name, ".png") {
			t.Errorf("%s: %v", name, err)
		}
	}
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := report().Write(blocked, "none"); err == nil {
		t.Error("a file was taken for a folder")
	}
}

// presetStudy is a preset, shorter.
func presetStudy(t *testing.T, name string, chains, steps int) *Study {
	t.Helper()
	s := NewPreset()
	for flag, value := range map[string]any{"preset": name, "chains": chains, "steps": steps} {
		if err := s.Flags.Set(flag, fmt.Sprint(value)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestPresets: each runs, short, says what it is, and is drawn. The RBM of
// figure 4 takes seconds to train: TestReference runs its like.
func TestPresets(t *testing.T) {
	cells := map[string]int{"dlp-figure-1": 38, "dlp-figure-2": 25, "dlp-figure-3": 9, "dlp-figure-7": 16, "dlp-toy": 4}
	for _, f := range figures() {
		want, quick := cells[f.name]
		if !quick {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			var last Progress
			report := studied(t, presetStudy(t, f.name, 2, 40), StudyOptions{Seed: 1, Observe: func(p Progress) {
				if p.Sampler == last.Sampler && p.Step < last.Step || p.Step > p.Steps {
					t.Fatalf("progress %+v after %+v", p, last)
				}
				last = p
			}})
			if f.name != "dlp-figure-1" && (last.Step != last.Steps || last.Steps != 40) {
				t.Errorf("progress ends at %+v", last)
			}
			if len(report.Cells) != want || report.Title != f.name+": "+f.title {
				t.Errorf("%d cells, want %d; %q", len(report.Cells), want, report.Title)
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
	if len(cells) != len(figures())-1 {
		t.Error("a preset is not run")
	}
}

// Figure 7 gives Gibbs and DULA two and a half times the steps.
func TestFigure7Steps(t *testing.T) {
	report := studied(t, presetStudy(t, "dlp-figure-7", 1, 20), StudyOptions{Seed: 1})
	for i, c := range report.Cells {
		points := c.Curves[byStep]
		if got, want := points[len(points)-1].X, []float64{50, 20, 50, 20}[i%4]; got != want {
			t.Errorf("%v: %v steps, want %v", c.Labels, got, want)
		}
		at := slices.IndexFunc(points, func(s sample) bool { return s.Y == c.Numbers[byStep+"-at-steps"] })
		if points[at].X != 20 {
			t.Errorf("%v: compared at %v steps", c.Labels, points[at].X)
		}
	}
}
