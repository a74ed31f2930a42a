package chains

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot/vg"

	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/internal/check"
	"infill/internal/picture"
)

// TestWrite: the folder holds what the report says, whole, and without times
// equal twice.
func TestWrite(t *testing.T) {
	p := opened(t, smallTraining+"updates=20,reference-samples=60")
	report := func() *lab.StudyReport {
		return compared(t, p, "gibbs,dmala:step-size=0.4,dmala:step-size=0.8", nil)
	}
	paths := check.Must(report().Write(filepath.Join(t.TempDir(), "new", "folder")))(t)
	want := []string{
		"report.json", "results.csv", "acceptance-by-proposed.svg", "log-mmd.svg",
		"log-mmd-by-second.svg", "log-rmse.svg", "log-rmse-by-second.svg",
	}
	for i, path := range paths {
		if filepath.Base(path) != want[i] || len(paths) != len(want) {
			t.Fatalf("files %v, want %v", paths, want)
		}
	}
	for _, path := range paths[2:] {
		content := check.Must(os.ReadFile(path))(t)
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
	content := check.Must(os.ReadFile(paths[0]))(t)
	var back lab.StudyReport
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
	for _, path := range check.Must(timeless.Write(t.TempDir()))(t) {
		if strings.Contains(filepath.Base(path), "second") {
			t.Errorf("%s is written without times", path)
		}
	}
	blocked := filepath.Join(t.TempDir(), "file")
	check.OK(t, os.WriteFile(blocked, nil, 0o600))
	if _, err := report().Write(blocked); err == nil {
		t.Error("a file was taken for a folder")
	}
}

// presetStudy is a preset, shorter.
func presetStudy(t *testing.T, name string, chains, steps int) *lab.Study {
	t.Helper()
	s := NewPreset()
	for flag, value := range map[string]any{"preset": name, "chains": chains, "steps": steps} {
		check.OK(t, s.Flags.Set(flag, fmt.Sprint(value)))
	}
	return s
}

// TestPresets: each runs, short, says what it is, and is drawn; those of figure 4
// on a smaller machine, as the reference of theirs takes seconds. Stored results
// have the settings of today.
func TestPresets(t *testing.T) {
	cells := map[string]int{"dlp-figure-1": 38, "dlp-figure-2": 25, "dlp-figure-3": 11, "dlp-figure-3-grid": 45,
		"dlp-figure-4": 8, "dlp-figure-4-grid": 27, "dlp-figure-7": 16, "dlp-appendix-h": 10}
	for _, f := range figures() {
		if f.Command != "" {
			continue
		}
		want := cells[f.Name]
		t.Run(f.Name, func(t *testing.T) {
			stored, err := os.ReadFile(filepath.Join("../../../../docs/measured/laboratory", f.Name+".csv"))
			if err != nil && f.Name != "dlp-figure-4" { // which has no result of its own
				t.Error(err)
			}
			if err == nil && !strings.Contains(string(stored), "|preset:"+f.Name+"@"+f.sum()[:12]+"|") {
				t.Errorf("the stored result has other settings than %s", f.sum())
			}
			at, last, whole := "", 0, 0
			observe := func(cell string, done, of int) {
				if cell == at && done < last || done > of {
					t.Fatalf("%s: progress %d after %d of %d", cell, done, last, of)
				}
				at, last, whole = cell, done, of
			}
			s := presetStudy(t, f.Name, 2, 40)
			if strings.HasPrefix(f.Name, "dlp-figure-4") {
				f.Parts[0].Target = "rbm:data=none,visible=12,hidden=5,reference=block-gibbs,reference-samples=10"
				s.Plan = func(ctx context.Context, in *lab.Inputs, seed uint64) (*lab.Plan, error) {
					return f.plan(ctx, in, s, 2, 40, seed)
				}
			}
			report := labtest.Studied(t, s, lab.StudyOptions{Seed: 1, Observe: observe})
			if f.Name != "dlp-figure-1" && (last != 40 || whole != 40) {
				t.Errorf("progress ends at %d of %d", last, whole)
			}
			if len(report.Cells) != want || report.Title != f.Name+": "+f.Title {
				t.Errorf("%d cells, want %d; %q", len(report.Cells), want, report.Title)
			}
			if n := len(check.Must(report.Write(t.TempDir()))(t)); n < 4 {
				t.Errorf("%d files", n)
			}
		})
	}
}

// Figure 7 gives Gibbs and DULA two and a half times the steps.
func TestFigure7Steps(t *testing.T) {
	report := labtest.Studied(t, presetStudy(t, "dlp-figure-7", 1, 20), lab.StudyOptions{Seed: 1})
	for i, c := range report.Cells {
		points := c.Curves[byStep]
		if got, want := points[len(points)-1].X, []float64{50, 20, 50, 20}[i%4]; got != want {
			t.Errorf("%v: %v steps, want %v", c.Labels, got, want)
		}
		at := slices.IndexFunc(points, func(s lab.Sample) bool { return s.Y == c.Numbers[byStep+"-at-steps"] })
		if points[at].X != 20 {
			t.Errorf("%v: compared at %v steps", c.Labels, points[at].X)
		}
	}
}

// drawnText matches a text in a plot; that of the y axis is turned.
var drawnText = regexp.MustCompile(`<text x="([-0-9.]+)" y="([-0-9.]+)" transform="scale\(1, -1\)"\s[^>]*>([^<]*)</text>`)

// TestDraw: twenty series look different from each other, the legend stands
// outside the frame, and no text leaves the picture.
func TestDraw(t *testing.T) {
	r := &lab.StudyReport{Plan: lab.NewStudy("ising").NewPlan("a title, with many settings")}
	names := map[string]bool{}
	for i := range 20 {
		c := &lab.CellResult{Labels: lab.Labels{
			{Name: "sampler", Value: fmt.Sprintf("dmala%d:step-size=0.%02d,balance=sqrt", i, i)}}}
		c.Numbers = map[string]float64{"acceptance": 0.5, "proposed": float64(i)}
		c.Curves = map[string][]lab.Sample{}
		names[c.Labels[0].Value], names[fmt.Sprint("dmala", i)] = true, true
		for step := 1; step < 100; step *= 2 {
			c.Curves[byStep] = append(c.Curves[byStep], lab.Sample{X: float64(step), Y: float64(-i - step)})
		}
		r.Cells = append(r.Cells, c)
	}
	list := check.Must(r.Draw())(t)
	for _, name := range []string{"log-rmse", "acceptance-by-proposed"} {
		drawn := string(check.Must(picture.SVG(list[name]))(t))
		size := regexp.MustCompile(`<svg width="([0-9.]+)pt" height="([0-9.]+)pt"`).FindStringSubmatch(drawn)
		width := check.Must(strconv.ParseFloat(size[1], 64))(t)
		height := check.Must(strconv.ParseFloat(size[2], 64))(t)
		beside := 0
		for _, text := range drawnText.FindAllStringSubmatch(drawn, -1) {
			x, y := check.Must(strconv.ParseFloat(text[1], 64))(t), -check.Must(strconv.ParseFloat(text[2], 64))(t)
			w := list[name].Legend.TextStyle.Width(text[3]).Points()
			if names[text[3]] && x > 16*vg.Centimeter.Points() {
				beside++
			}
			turned := text[3] == list[name].Y.Label.Text
			if !turned && (x < 0 || x+w > width || y < 0 || y > height) {
				t.Errorf("%s: %q at %v, %v, %.0f wide, leaves the picture of %v × %v", name, text[3], x, y, w, width,
					height)
			}
		}
		looks := map[string]bool{}
		for _, style := range regexp.MustCompile(`stroke:[^"]*stroke-width:1.4[^"]*`).FindAllString(drawn, -1) {
			looks[style] = true
		}
		if lines := name != "ess"; lines && (beside != 20 || len(looks) != 20) {
			t.Errorf("%s: %d of 20 names stand beside the frame, in %d looks", name, beside, len(looks))
		}
	}
}

var update = flag.Bool("update", false, "write the golden files again")

var digits = regexp.MustCompile(`-?[0-9]+\.[0-9]{7,}(e-?[0-9]+)?`)

// steady leaves out the last digits, which the processor's way of rounding
// decides.
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
		check.OK(t, os.WriteFile(path, []byte(steady(got)), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: go test ./cmd/lab/internal/chains -update writes it", err)
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
	}{
		{"ising.txt", "ising", "size 3x3 samplers gibbs,gwg,dula:step-size=0.4,dmala:step-size=0.8 warm-up 5"},
		{"ising-tuned.txt", "ising", "size 2x3 coupling -0.2 samplers hamming-ball:block=2,radius=1,dmala warm-up 20"},
		{"potts.txt", "potts",
			"size 2 field 0,0,0 samplers gibbs-x:block=2,dmala:step-size=1,balance=ratio warm-up 0"},
		{"table.csv", "table", "categories 2/3 gradient-error 0.5 samplers gibbs,pafs:radius=2"},
		{"rbm.txt", "rbm", "side 2 hidden 2 updates 20 reference-samples 10 reference block-gibbs reference-steps 5 " +
			"samplers rbm-gibbs,dmala:step-size=0.4"},
		{"ising.json", "ising", "size 1x2 samplers gwg steps 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := study(t, c.study, append(settings[:4:4], strings.Fields(c.settings)...)...)
			r := labtest.Studied(t, s, lab.StudyOptions{Seed: 3, Version: "X"})
			r.WithoutTimes()
			golden(t, c.name, written(t, r, filepath.Ext(c.name)))
		})
	}
	bias := labtest.Studied(t, presetStudy(t, "dlp-figure-1", 2, 40), lab.StudyOptions{Seed: 3})
	golden(t, "bias.txt", written(t, bias, ".txt"))
	if rows := strings.Count(written(t, bias, ".csv"), "\n"); rows != 1+16+11+11 {
		t.Errorf("%d rows of CSV", rows)
	}
}

// written is a report in the form of a file's name.
func written(t *testing.T, r *lab.StudyReport, extension string) string {
	t.Helper()
	var text []byte
	var err error
	switch extension {
	case ".json":
		text, err = r.JSON()
	case ".csv":
		text, err = r.CSV()
	default:
		return r.Text()
	}
	check.OK(t, err)
	return string(text)
}

// TestTimes: with times a report has seconds, in every form.
func TestTimes(t *testing.T) {
	r := compared(t, smallIsing(t), "gibbs,dula:step-size=0.01", func(o *compareOptions) { o.now = lab.Clock })
	for _, want := range []string{"ess-by-second", "  seconds\n", "noisy", "standard error between 3 chains; seed 7"} {
		if !strings.Contains(r.Text(), want) {
			t.Errorf("no %q in:\n%s", want, r.Text())
		}
	}
	if text := written(t, r, ".csv"); strings.Count(text, "\n") != 3 || !strings.Contains(text, "ess-by-second") {
		t.Errorf("CSV:\n%s", text)
	}
}
