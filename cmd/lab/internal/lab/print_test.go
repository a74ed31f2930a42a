package lab

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
		if err := os.WriteFile(path, []byte(steady(got)), 0o644); err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
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
