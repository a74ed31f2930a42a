package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/cmd/infill/internal/terminal"
	"infill/samplers"
	"infill/samplers/lab"
)

// runLab runs `infill lab` with a line of arguments.
func runLab(t *testing.T, width int, line string) (out, errors string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	s := terminalOf(&o, width)
	s.Err = &e
	err = parse(t, newCmdLab(s, nil), line)
	return o.String(), e.String(), err
}

var (
	version = regexp.MustCompile(`\|version:[^|"\n]*`)
	digits  = regexp.MustCompile(`-?[0-9]+\.[0-9]{7,}(e-?[0-9]+)?`)
)

// steady leaves out the version and the last digits, which the processor's way
// of rounding decides.
func steady(text string) string {
	return digits.ReplaceAllStringFunc(version.ReplaceAllString(text, "|version:X"), func(number string) string {
		x, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return number
		}
		return strconv.FormatFloat(x, 'g', 6, 64)
	})
}

// TestLabGoldens: everything but times is the same for a seed, in every form.
func TestLabGoldens(t *testing.T) {
	const few = " --chains 2 --steps 40 --seed 3 --no-times -q"
	tests := []struct {
		name  string
		width int
		line  string
	}{
		{"lab-ising.txt", 0, "ising --size 3x3 --samplers gibbs,gwg,dula:step-size=0.4,dmala:step-size=0.8 --warm-up 5" + few},
		{"lab-ising-80.txt", 80, "ising --size 2x3 --coupling -0.2 --samplers hamming-ball:block=2,radius=1,dmala --warm-up 20" + few},
		{"lab-potts.txt", 0, "potts --size 2 --states 3 --warm-up 0 --samplers gibbs-x:block=2,dmala:step-size=1,balance=ratio" + few},
		{"lab-table.csv", 0, "table --categories 2,3 --gradient-error 0.5 --samplers gibbs,pafs:radius=2 --format csv" + few},
		{"lab-rbm.txt", 0, "rbm --side 2 --hidden 2 --updates 20 --reference-samples 10 --reference block-gibbs --reference-steps 5 --samplers rbm-gibbs,dmala:step-size=0.4" + few},
		{"lab-ising.json", 0, "ising --size 1x2 --samplers gwg --chains 2 --steps 3 --seed 3 --no-times -q --format json"},
		{"lab-bias.txt", 80, "--preset dlp-figure-1" + few},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out, errors, err := runLab(t, test.width, test.line)
			if err != nil || errors != "" {
				t.Fatalf("%v, %q", err, errors)
			}
			golden(t, test.name, []byte(steady(out)))
			again, _, err := runLab(t, test.width, test.line)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(out, again); d != "" {
				t.Errorf("a second run differs:\n%s", d)
			}
		})
	}
}

// TestLabAll says of every kernel that does not suit why it was left out.
func TestLabAll(t *testing.T) {
	out, _, err := runLab(t, 0, "potts --size 2 --samplers all --chains 2 --steps 9 --warm-up 3 --seed 1 -q")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range samplers.Names() {
		if !strings.Contains(out, "\n  "+name+" ") && !strings.Contains(out, "\nleft out: "+name+" needs ") {
			t.Errorf("nothing of %s in:\n%s", name, out)
		}
	}
}

// TestLabTimes: with times the result has seconds, in every form; warnings go
// to standard error.
func TestLabTimes(t *testing.T) {
	const line = "ising --samplers gibbs,dula:step-size=0.01 --chains 2 --steps 50 --seed 1"
	out, errors, err := runLab(t, 0, line)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ESS/s", " s\n", "noisy", "standard error between 2 chains; seed 1"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if !strings.Contains(errors, "infill: warning: dula:step-size=0.01: ") {
		t.Errorf("no warning of chains that stand: %q", errors)
	}
	out, _, err = runLab(t, 0, line+" --format json -q")
	if err != nil {
		t.Fatal(err)
	}
	var report lab.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Runs[0].Samplers {
		if r.Timing == nil || !(r.Timing.Seconds > 0) || !(r.Timing.ESSPerSecond > 0) {
			t.Errorf("%s: %+v", r.Sampler, r.Timing)
		}
	}
	if report.Runs[0].Threads != 1 {
		t.Errorf("timed on %d threads", report.Runs[0].Threads)
	}
	out, _, err = runLab(t, 0, line+" --format csv -q")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%v, %d rows", err, len(rows))
	}
}

// TestLabOutput: -o writes the report and the plots, and says so.
func TestLabOutput(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	_, errors, err := runLab(t, 0, `ising --size 2 --samplers gibbs --chains 4 --steps 300 --seed 1 --plots png -o "`+dir+`"`)
	if err != nil {
		t.Fatal(err)
	}
	if want := "infill: wrote 7 files to " + dir + "\n"; errors != want {
		t.Errorf("got %q, want %q", errors, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "log-rmse-by-step.png")); err != nil {
		t.Error(err)
	}
	blocked := filepath.Join(dir, "report.json")
	out, _, err := runLab(t, 0, `ising --size 2 --samplers gibbs --steps 5 --seed 1 -o "`+blocked+`"`)
	if err == nil || !strings.HasPrefix(err.Error(), "write to "+blocked+": ") || out != "" {
		t.Errorf("a file for a folder: %v, %q", err, out)
	}
}

// TestLabBadInput: one line that says what is wrong and what would do.
func TestLabBadInput(t *testing.T) {
	names := strings.Join(samplers.Names(), ", ")
	tests := []struct{ line, want string }{
		{"--preset dlp-figure-9", `--preset: "dlp-figure-9" is not one of ` + strings.Join(lab.PresetNames(), ", ")},
		{"--preset dlp-toy --steps -1", "--steps: -1 is not a whole number of 0 (the preset's own) or more"},
		{"--preset dlp-toy --chains -1", "--chains: -1 is not a whole number of 0 (the preset's own) or more"},
		{"isng", `unexpected argument "isng"`},
		{"ising 5", `unexpected argument "5"`},
		{"ising --samplers gibbs,gibs", `--samplers: "gibbs,gibs" is not a list of samplers: "gibs" is not one of all, ` + names},
		{"ising --samplers dmala:step-size=0", `--samplers: "dmala:step-size=0" is not a list of samplers: dmala: step-size "0" is not a number above 0`},
		{"ising --steps 0", "--steps: 0 is not a whole number from 1 to 1073741824"},
		{"ising --steps many", `--steps: "many" is not a whole number`},
		{"ising --chains 0", "--chains: 0 is not a whole number from 1 to 16384"},
		{"ising --warm-up -1", "--warm-up: -1 is not a whole number from 0 to 1073741824"},
		{"ising --discard 1", "--discard: 1 is not a number of 0 or more and below 1"},
		{"ising --size 0", "--size: 0x0 is not a lattice: both sides must be at least 1"},
		{"ising --size 3x", `--size: "3x" is not a size as 5x5, or 5 for both sides`},
		{"ising --coupling x", `--coupling: "x" is not a number`},
		{"ising --coupling nan", "--coupling: NaN is not a finite number"},
		{"ising --truth guess", `--truth: "guess" is not one of auto, exact, run`},
		{"ising --size 20 --truth exact", "--truth: too large for exact means: a torus of 20 × 20 sites with 2 categories has 1.05e+06 states of its shorter side: the transfer matrix takes at most 1024: choose run"},
		{"ising --plots pdf", `--plots: "pdf" is not one of svg, png, none`},
		{"ising --format yaml", `--format: "yaml" is not one of text, json, csv`},
		{"ising --initial zero", `--initial: "zero" is not one of uniform, independent`},
		{"potts --field 1,x", `--field: "1,x" is not numbers with commas between them`},
		{"potts --field 1,2 --states 2", "--field and --states exclude each other: give one"},
		{"potts --states 0", "--states: 0 is not a whole number from 1 to 256"},
		{"table --categories 3,x", `--categories: "3,x" is not whole numbers with commas between them`},
		{"table --categories 9,9,9,9,9,9,9,9", "--categories: 9,9,9,9,9,9,9,9 give a table of 4.3e+07 states, too large to keep with its gradients: take fewer or smaller slots"},
		{"table --initial independent", "--initial: independent has no meaning for a table: choose uniform"},
		{"rbm --data mnist", `--data: "mnist" is not one of bars-and-stripes, none`},
		{"rbm --side 1", "--side: 1 is not a whole number from 2 to 16"},
		{"rbm --reference x", `--reference: "x" is not one of auto, exact, block-gibbs`},
	}
	for _, test := range tests {
		t.Run(test.line, func(t *testing.T) {
			out, _, err := runLab(t, 0, test.line)
			checkUsage(t, err, test.want)
			if out != "" {
				t.Errorf("standard output has %q", out)
			}
		})
	}
	// What the target lacks is said in the kernel's own words.
	_, _, err := runLab(t, 0, "potts --samplers gibbs,r-mala")
	if err == nil || !strings.HasPrefix(err.Error(), `--samplers: "r-mala" does not suit this potts: r-mala needs a target with`) {
		t.Error(err)
	}
}

// TestLabFlags: flags reach the options.
func TestLabFlags(t *testing.T) {
	var got *labOptions
	keep := func(_ context.Context, o *labOptions) error { got = o; return nil }
	line := "ising --samplers dmala:step-size=0.4,gibbs --chains 3 --steps 7 --warm-up 2 --discard 0.5 --initial independent --seed 9 -o DIR --plots none --format csv --no-times -q"
	if err := parse(t, newCmdLab(&terminal.Streams{}, keep), line); err != nil {
		t.Fatal(err)
	}
	specs, err := lab.ParseSpecs("dmala:step-size=0.4,gibbs")
	if err != nil {
		t.Fatal(err)
	}
	want := lab.Options{Samplers: specs, Chains: 3, Steps: 7, WarmUp: 2, Discard: 0.5, Initial: "independent", Seed: 9}
	if fmt.Sprintf("%+v", got.Options) != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %+v\nwant %+v", got.Options, want)
	}
	if got.output != "DIR" || got.plots != "none" || got.format != "csv" || !got.noTimes || !got.quiet || !got.seedGiven {
		t.Errorf("%+v", got)
	}
	if err := parse(t, newCmdLab(&terminal.Streams{}, keep), "--preset dlp-toy --chains 4"); err != nil {
		t.Fatal(err)
	}
	if got.preset != "dlp-toy" || got.Chains != 4 || got.Steps != 0 {
		t.Errorf("%+v", got)
	}
	for _, command := range newCmdLab(&terminal.Streams{}, nil).Commands() {
		if command.Short == "" || command.Long == "" {
			t.Errorf("%s has no description", command.Name())
		}
		if command.Flags().Lookup("samplers").DefValue != "gibbs,gwg,dula:step-size=0.4,dmala" {
			t.Errorf("%s: samplers are %s", command.Name(), command.Flags().Lookup("samplers").DefValue)
		}
	}
}

func TestLabScripts(t *testing.T) { scripts(t, "lab") }
