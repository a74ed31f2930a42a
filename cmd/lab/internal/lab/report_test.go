package lab

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"

	"infill/internal/chart"
)

func files(t *testing.T, dir string) []string {
	t.Helper()
	entries := must(os.ReadDir(dir))(t)
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
	paths := must(report().Write(dir, "svg"))(t)
	want := []string{
		"acceptance-by-proposed.svg", "curves.csv", "ess-by-second.svg", "ess.svg", "log-mmd-by-evaluation.svg",
		"log-mmd-by-second.svg", "log-mmd.svg", "log-rmse-by-evaluation.svg", "log-rmse-by-second.svg", "log-rmse.svg",
		"report.json", "results.csv",
	}
	if got := files(t, dir); !slices.Equal(got, want) || len(paths) != len(want) {
		t.Errorf("files %v, want %v", got, want)
	}
	for _, path := range paths[3:] {
		content := must(os.ReadFile(path))(t)
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
	content := must(os.ReadFile(paths[0]))(t)
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
	none(t, os.WriteFile(blocked, nil, 0o600))
	if _, err := report().Write(blocked, "none"); err == nil {
		t.Error("a file was taken for a folder")
	}
}

// presetStudy is a preset, shorter.
func presetStudy(t *testing.T, name string, chains, steps int) *Study {
	t.Helper()
	s := NewPreset()
	for flag, value := range map[string]any{"preset": name, "chains": chains, "steps": steps} {
		none(t, s.Flags.Set(flag, fmt.Sprint(value)))
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

// TestFigure: twenty series look different from each other, the legend stands outside the
// frame, and no text leaves the picture.
func TestFigure(t *testing.T) {
	r := &StudyReport{Title: "a title that is much longer than the frame is wide, since it says of which model the " +
		"draws are, of how many chains, and how long they ran", plan: newComparisonPlan("", 2)}
	names := map[string]bool{}
	for i := range 20 {
		c := &cellResult{Labels: labels{{"sampler", fmt.Sprintf("dmala%d:step-size=0.%02d,balance=sqrt", i, i)}}}
		c.Numbers = map[string]float64{"acceptance": 0.5, "proposed": float64(i), "ess": float64(i + 1)}
		c.Errors, c.Curves = map[string]float64{"ess": 0.5}, map[string][]sample{}
		names[c.Labels[0].Value], names[fmt.Sprint("dmala", i)] = true, true
		for step := 1; step < 100; step *= 2 {
			c.Curves[byStep] = append(c.Curves[byStep], sample{X: float64(step), Y: float64(-i - step)})
		}
		r.Cells = append(r.Cells, c)
	}
	looks := map[string]bool{}
	for i := range r.Cells {
		looks[fmt.Sprint(chart.Style(i))] = true
	}
	if len(looks) != 20 {
		t.Errorf("20 series have %d looks", len(looks))
	}
	figures, err := r.draw()
	if err != nil || len(figures) < 3 {
		t.Fatal(figures, err)
	}
	for _, f := range figures {
		width, height := f.Size()
		var c recorder.Canvas
		f.Draw(draw.NewCanvas(&c, width, height))
		legend := 0
		for _, action := range c.Actions {
			s, ok := action.(*recorder.FillString)
			if !ok {
				continue
			}
			w := f.Plot.Legend.TextStyle.Width(s.String)
			if names[s.String] && s.Point.X > chart.Width {
				legend++
			}
			if s.String == f.Plot.Y.Label.Text { // it is turned
				continue
			}
			if s.Point.X < 0 || s.Point.X+w > width || s.Point.Y < 0 || s.Point.Y > height {
				t.Errorf("%s: %q at %v, %.0f wide, leaves the picture of %.0f × %.0f", f.Name, s.String, s.Point, w,
					width, height)
			}
		}
		if lines := slices.Contains([]string{"log-rmse", "acceptance-by-proposed"}, f.Name); lines && legend != 20 {
			t.Errorf("%s: %d of 20 names stand beside the frame", f.Name, legend)
		}
	}
}

var update = flag.Bool("update", false, "write the golden files again")

var digits = regexp.MustCompile(`-?[0-9]+\.[0-9]{7,}(e-?[0-9]+)?`)

// steady leaves out the last digits, which the processor's way of rounding decides.
func steady(text string) string {
	return digits.ReplaceAllStringFunc(text, func(number string) string {
		x, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return number
		}
		return strconv.FormatFloat(x, 'g', 6, 64)
	})
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		none(t, os.WriteFile(path, []byte(steady(got)), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: go test ./cmd/lab/internal/lab -update writes it", err)
	}
	if d := cmp.Diff(string(want), steady(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

// TestGoldens: everything but times is the same for a seed, in every form.
func TestGoldens(t *testing.T) {
	settings := strings.Fields("chains 2 steps 40")
	for _, c := range []struct {
		name, study, settings string
		width                 int
	}{
		{"ising.txt", "ising", "size 3x3 samplers gibbs,gwg,dula:step-size=0.4,dmala:step-size=0.8 warm-up 5", 0},
		{"ising-80.txt", "ising", "size 2x3 coupling -0.2 samplers hamming-ball:block=2,radius=1,dmala warm-up 20", 80},
		{"potts.txt", "potts",
			"size 2 field 0,0,0 samplers gibbs-x:block=2,dmala:step-size=1,balance=ratio warm-up 0", 0},
		{"table.csv", "table", "categories 2/3 gradient-error 0.5 samplers gibbs,pafs:radius=2", 0},
		{"rbm.txt", "rbm", "side 2 hidden 2 updates 20 reference-samples 10 reference block-gibbs reference-steps 5 " +
			"samplers rbm-gibbs,dmala:step-size=0.4", 0},
		{"ising.json", "ising", "size 1x2 samplers gwg steps 3", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := study(t, c.study, append(settings[:4:4], strings.Fields(c.settings)...)...)
			r := studied(t, s, StudyOptions{Seed: 3, Version: "X"})
			r.WithoutTimes()
			golden(t, c.name, written(t, r, filepath.Ext(c.name), c.width))
		})
	}
	bias := studied(t, presetStudy(t, "dlp-figure-1", 2, 40), StudyOptions{Seed: 3})
	golden(t, "bias.txt", written(t, bias, ".txt", 80))
	if rows := strings.Count(written(t, bias, ".csv", 0), "\n"); rows != 1+16+11+11 {
		t.Errorf("%d rows of CSV", rows)
	}
}

// written is a report in the form of a file's name.
func written(t *testing.T, r *StudyReport, extension string, width int) string {
	t.Helper()
	var text []byte
	var err error
	switch extension {
	case ".json":
		text, err = r.JSON()
	case ".csv":
		text, err = r.CSV()
	default:
		return r.Text(width)
	}
	none(t, err)
	return string(text)
}

// TestTimes: with times a report has seconds, in every form.
func TestTimes(t *testing.T) {
	r := compared(t, smallIsing(t), "gibbs,dula:step-size=0.01", func(o *compareOptions) { o.now = clock })
	for _, want := range []string{"ess-by-second", "  seconds\n", "noisy", "standard error between 3 chains; seed 7"} {
		if !strings.Contains(r.Text(0), want) {
			t.Errorf("no %q in:\n%s", want, r.Text(0))
		}
	}
	if text := written(t, r, ".csv", 0); strings.Count(text, "\n") != 3 || !strings.Contains(text, "ess-by-second") {
		t.Errorf("CSV:\n%s", text)
	}
	for _, line := range strings.Split(r.Text(60), "\n") {
		if !strings.HasPrefix(line, "  ") && len([]rune(line)) > 60 {
			t.Errorf("a line of %d characters: %q", len([]rune(line)), line)
		}
	}
}
