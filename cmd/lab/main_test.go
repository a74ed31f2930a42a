package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lab runs the program with a line of arguments.
func runLab(ctx context.Context, line string) (out, messages string, code int) {
	var o, m bytes.Buffer
	code = run(ctx, strings.Fields(line), &o, &m)
	return o.String(), m.String(), code
}

// Equal seeds give equal bytes, but for the times; a report is written too.
func TestReports(t *testing.T) {
	dir := t.TempDir()
	var outputs, files [2]string
	for i := range outputs {
		folder := filepath.Join(dir, string(rune('a'+i)))
		out, messages, code := runLab(t.Context(),
			"ising --size 3 --samplers gibbs,dmala --seed 4 --steps 100 --chains 4 --warm-up 20 --no-times -o "+folder)
		if code != 0 || !strings.HasSuffix(messages, "lab: wrote 4 files to "+folder+"\n") {
			t.Fatalf("exit code %d, %q", code, messages)
		}
		outputs[i] = out
		for _, name := range []string{"report.json", "log-rmse.svg"} {
			content, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			files[i] += string(content)
		}
	}
	if outputs[0] != outputs[1] || files[0] != files[1] ||
		!strings.Contains(outputs[0], "exact means: enumeration") {
		t.Errorf("two runs of a seed differ, or say nothing:\n%s", outputs[0])
	}
	// A seed that is not given is drawn and told.
	first, _, _ := runLab(t.Context(), "table --samplers gibbs --steps 20 -q")
	second, _, _ := runLab(t.Context(), "table --samplers gibbs --steps 20 -q")
	if !strings.Contains(first, "standard error between 16 chains; seed ") || first == second {
		t.Errorf("without a seed:\n%s", first)
	}
	for line, want := range map[string]string{
		"potts --samplers all --chains 2 --steps 9 --warm-up 3 --seed 1 -q":    "left out: r-mala needs ",
		"rbm --side 2 --hidden 2 --updates 5 --chains 2 --steps 9 --seed 1 -q": "on rbm, data bars-and-stripes",
		"--preset dlp-appendix-h --chains 2 --steps 9 --seed 1 -q":             "dlp-appendix-h: preconditioned DLP",
		"text --samplers all --candidates 5 --chains 2 --steps 9 --seed 1 -q":  "exact means: enumeration of 25 states",
		"calibration --sentences 8 --seed 1 -q --texts " + sentences:           "|texts:sentences.txt@",
		"--help":     "dlp-figure-3",
		"rbm --help": "auto|block-gibbs",
		"arm --help": "ARM",
	} {
		out, messages, code := runLab(t.Context(), line)
		if code != 0 || messages != "" || !strings.Contains(out, want) {
			t.Errorf("lab %s: exit code %d, %q, no %q in:\n%s", line, code, messages, want, out)
		}
	}
}

// Warnings go to standard error, and a folder that cannot be made is reported.
func TestMessages(t *testing.T) {
	_, messages, code := runLab(t.Context(), "ising --samplers dula:step-size=0.01 --chains 2 --steps 50 --seed 1")
	if code != 0 || !strings.HasPrefix(messages, "lab: warning: dula:step-size=0.01: ") {
		t.Errorf("exit code %d, %q", code, messages)
	}
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, messages, code := runLab(t.Context(), "ising --size 2 --samplers gibbs --steps 5 --seed 1 -q -o "+blocked)
	if code != 1 || !strings.HasPrefix(messages, "lab: write to "+blocked+": ") || out != "" {
		t.Errorf("exit code %d, %q, %q", code, messages, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, messages, code := runLab(ctx, "ising --size 2 --seed 1"); code != 1 || !strings.Contains(messages, "cancel") {
		t.Errorf("cancelled: exit code %d, %q", code, messages)
	}
}

// sentences is a small file of sentences.
var sentences = filepath.Join("internal", "fills", "testdata", "sentences.txt")

// One line says what is wrong and what would do.
func TestBadInput(t *testing.T) {
	for line, want := range map[string]string{
		"":                       "lab: no target: name one, as in lab ising, or give --preset: see --help",
		"arm":                    "lab: no experiment: name one, as in lab arm toy",
		"--preset dlp-figure-11": `lab: --preset: "dlp-figure-11" is not one of dlp-figure-1, `,
		"--preset dlp-figure-5":  `lab: --preset: dlp-figure-5 has a command of its own: lab learn ising`,
		"--preset arm-table-4": "lab: --preset: arm-table-4 has a command of its own: lab arm vae " +
			"--structures halves",
		"--preset dlp-figure-3 --steps -1":   `lab: --steps: "-1" is not a whole number from 0 to 1073741824`,
		"ising --samplers gibbs,gibs":        `lab: --samplers: "gibbs,gibs" is not a list of samplers: "gibs" is not one of all, gibbs, `,
		"text --template plain":              "lab: --template: no blank in the template",
		"ising --samplers dmala:step-size=0": `lab: --samplers: "dmala:step-size=0" is not a list of samplers: dmala: step-size "0" is not a number above 0`,
		"ising --steps 0":                    `lab: --steps: "0" is not a whole number from 1 to 1073741824`,
		"ising --warm-up -1":                 `lab: --warm-up: "-1" is not a whole number from 0`,
		"ising --seed x":                     `lab: --seed: "x" is not a whole number`,
		"ising --initial zero":               `lab: --initial: "zero" is not one of uniform, independent`,
		"table --energies ring.csv --categories 3,3": "lab: --categories: 3,3, but --energies ring.csv has its own: " +
			"give one of the two",
		"table --gradient-error NaN":    `lab: --gradient-error: "NaN" is not a finite number of 0 or more`,
		"ising --samplers ,":            `lab: --samplers: "," is not a list of samplers: ",": a sampler is missing`,
		"isnig":                         `lab: unknown command "isnig" for "lab": see --help`,
		"arm toys":                      `lab: unknown command "toys" for "lab arm": see --help`,
		"ising 5":                       `lab: unknown command "5" for "lab ising": see --help`,
		"ising --colour red":            "lab: unknown flag: --colour",
		"potts --samplers gibbs,r-mala": `lab: --samplers: "r-mala" does not suit this potts: r-mala needs a target with`,
		"table --initial independent":   "lab: --initial: independent has no meaning for a table: choose uniform",
		"arm vae --estimators arm,dam":  `lab: --estimators: "arm,dam" is not a list: "dam" is not one of arm, augment, `,
		"arm vae --estimators wake-sleep --structures halves": "lab: --estimators: no training remains: left out on " +
			"halves: wake-sleep dreams whole images, ",
		"calibration":                  "lab: --texts: name a file with a sentence on each line",
		"calibration --texts none.txt": "lab: --texts: corpus none.txt: open none.txt: no such file or directory",
		"calibration --least 0.5":      `lab: --least: "0.5" is not a number of 0.001 or more, below 0.1`,
		"calibration --blanks 2,9 --sentences 12 --texts " + sentences: "lab: --blanks: 9 are too many: at most 8",
		"calibration --blanks 2 --sentences 50 --texts " + sentences: "lab: --sentences: corpus sentences.txt: " +
			"12 of the 50 sentences wanted are there (of 12: ",
		"calibration --model none --texts " + sentences: "lab: --model: ",
		"arm toy --rate NaN":                            `lab: --rate: "NaN" is not a finite number above 0`,
	} {
		out, messages, code := runLab(t.Context(), line)
		if code != 2 || !strings.HasPrefix(messages, want) || strings.Count(messages, "\n") != 1 || out != "" {
			t.Errorf("lab %s: exit code %d, %q, want %q; output %q", line, code, messages, want, out)
		}
	}
}

// The commands of the README are run as they stand there.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	run := 0
	for _, line := range strings.Split(string(text), "\n") {
		command, found := strings.CutPrefix(strings.TrimSpace(line), "go run ./cmd/lab ")
		if !found {
			continue
		}
		run++
		if out, messages, code := runLab(t.Context(), command); code != 0 || out == "" {
			t.Errorf("%s: exit code %d, %q", line, code, messages)
		}
	}
	if run == 0 {
		t.Error("the README has no command of the laboratory")
	}
}

// Studies run on the real network, and go on where they stopped.
func TestStudies(t *testing.T) {
	dir := t.TempDir()
	for line, want := range map[string]string{
		"learn images --data bars-and-stripes --side 3 --samplers gwg --updates 5 --steps 2 --features 3 --blocks 1 " +
			"--downsampling 1 --ais-steps 10 --ais-chains 10 --buffer 10 --batch 5 --repeats 1": "exact-ll",
		"arm toy --steps 5 --repeats 1":                              "probability",
		"ising --size 2x3 --chains 2 --steps 20 --warm-up 0 --quiet": "steps of a sampler, 20",
	} {
		name := strings.Join(strings.Fields(line)[:2], "-")
		args := strings.Fields(line + " --seed 3 -o " + filepath.Join(dir, name))
		var first string
		for range 2 {
			var out, messages bytes.Buffer
			if code := run(t.Context(), args, &out, &messages); code != 0 || !strings.Contains(out.String(), want) {
				t.Fatalf("%s: exit code %d\n%s%s", line, code, messages.String(), out.String())
			}
			if first != "" && out.String() != first {
				t.Errorf("again:\n%s\nat first:\n%s", out.String(), first)
			}
			first = out.String()
		}
	}
	if _, messages, code := runLab(t.Context(), "learn"); code != 2 || !strings.Contains(messages, "learn ising") {
		t.Errorf("learn without a model: exit code %d, %q", code, messages)
	}
	other := filepath.Join(dir, "learn-images")
	if _, messages, code := runLab(t.Context(), "learn ising --seed 5 -o "+other); code != 2 ||
		!strings.Contains(messages, "another experiment") {
		t.Errorf("another study's folder: exit code %d, %q", code, messages)
	}
}

// TestVerdicts: each verdict stands above its claims and their intervals.
// Without results, one line says what to name.
func TestVerdicts(t *testing.T) {
	folder := filepath.Join("..", "..", "docs", "measured", "laboratory")
	out, messages, code := runLab(t.Context(), "verdicts --results "+folder)
	for _, want := range []string{
		"DLP appendix D, no term in α, hardly accepted: yes\n    acceptance without it below: holds; acceptance " +
			"differs by -0.",
		"10 repetitions), p ", "DLP algorithms 1, 2, DULA, DMALA: yes, by a test\n",
		"\nDLP figure 3, log RMSE, 5 × 5 Ising, by steps: ", "\nDLP figure 3, by run time: ",
		" distinct claims are tested: ",
	} {
		if code != 0 || messages != "" || !strings.Contains(out, want) {
			t.Errorf("exit code %d, %q, no %q in:\n%s", code, messages, want, out)
		}
	}
	empty := t.TempDir()
	out, messages, code = runLab(t.Context(), "verdicts --results "+empty)
	want := "lab: " + empty +
		" has no results: name a folder with files as learn-ising.csv or learn-ising/results.csv\n"
	if code != 1 || messages != want || out != "" {
		t.Errorf("exit code %d, %q, want %q; output %q", code, messages, want, out)
	}
}
