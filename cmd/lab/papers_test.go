package main

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat"

	"infill/cmd/lab/internal/papers"
	"infill/internal/eval"
	"infill/internal/modelstest"
	"infill/metrics"
)

var update = flag.Bool("update", false, "write the golden file again")

// shorter has what makes the commands that begin so take less than a second.
var shorter = []struct{ command, flags string }{
	{"--preset", "--chains 2 --steps 6"},
	{"rbm --data none", "--visible 20 --hidden 5 --reference-samples 10 --chains 2 --steps 6 --repeats 2"},
	{"rbm", "--hidden 4 --updates 5 --reference-samples 10 --chains 2 --steps 6 --warm-up 2"},
	{"learn images", "--data bars-and-stripes --side 3 --samplers gwg --updates 2 --steps 1 --features 2 --blocks 1 " +
		"--downsampling 1 --ais-steps 3 --ais-chains 3 --buffer 5 --batch 5 --repeats 1"},
	{"learn text", "--words 4 --vocabulary 9 --updates 2 --steps 1 --repeats 1 --batch 5 --buffer 5 --ais-steps 3 " +
		"--ais-chains 3"},
	{"learn contacts", "--size 2x3 --states 3 --updates 2 --steps 1 --repeats 2 --data 9 --data-sweeps 2 --batch 5 " +
		"--buffer 5"},
	{"learn", "--size 2x3 --updates 2 --steps 1 --repeats 2 --data 9 --data-sweeps 2 --batch 5 --buffer 5"},
	{"networks", "--hidden 2 --chains 2 --steps 2 --repeats 1"},
	{"arm gradients", "--estimates 20 --repeats 2"},
	{"arm toy", "--steps 5 --repeats 1"},
	{"arm vae", "--updates 2 --particles 2 --bits 3 --hidden 3 --repeats 1"},
	{"ais", "--repeats 1 --steps 3 --target ising:size=2x3"},
	{"fhmm", "--times 6 --factors 2 --chains 2 --steps 6 --repeats 2"},
	{"ising --coupling 0.1 --field 0.2", "--chains 2 --steps 6 --repeats 2"},
	{"", "--chains 2 --steps 6 --warm-up 2"},
}

// TestPapers runs the command of every stored result and of every line of the
// papers, shortened, and compares its first table with stored digits, but where
// float32 decides.
func TestPapers(t *testing.T) {
	var commands []string
	for _, run := range papers.Runs() {
		// The machine of figure 4 takes seconds: TestPresets runs it smaller.
		if run.Needs == "" && run.Name != "dlp-figure-4-grid" {
			commands = append(commands, run.Command)
		}
		if run.Before != "" {
			commands = append(commands, run.Before)
		}
	}
	for _, row := range papers.Rows() {
		if row.Command != "" {
			commands = append(commands, row.Command)
		}
	}
	known, got := map[string]bool{}, ""
	for _, command := range commands {
		words := strings.Fields(strings.Replace(command, "DIR", t.TempDir(), 1))
		if words[0] == "infill" {
			runInfill(t, words[1:])
			continue
		}
		if known[command] {
			continue
		}
		known[command] = true
		for _, s := range shorter {
			if strings.HasPrefix(command, s.command) {
				words = append(words, strings.Fields(s.flags+" --seed 1 --no-times -q")...)
				break
			}
		}
		out, messages, code := runLab(t.Context(), strings.Join(words, " "))
		if code != 0 || messages != "" {
			t.Errorf("%s: exit code %d, %s", command, code, messages)
		}
		if first := strings.SplitN(out, "\n\n", 3); !strings.HasPrefix(command, "learn images") && code == 0 {
			got += command + "\n" + first[1] + "\n\n"
		}
	}
	golden := filepath.Join("testdata", "papers.txt")
	var err error
	if *update {
		err = os.WriteFile(golden, []byte(got), 0o644)
	}
	if want, failed := os.ReadFile(golden); err != nil || failed != nil || string(want) != got {
		t.Errorf("%v, %v: digits (-stored +now):\n%s", err, failed, cmp.Diff(string(want), got))
	}
}

// runInfill runs the command, shortened, on two corpora. A model that would have
// to be fetched becomes one of random weights.
func runInfill(t *testing.T, words []string) {
	t.Helper()
	var short []string
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "--tbc", "--wt103", "--samplers", "-o":
			i++ // evaluate has its own
		case "-m":
			i++
			short = append(short, "-m", randomBERT(t, words[i]))
		default:
			short = append(short, words[i])
		}
	}
	evaluate(t, append(short, "--sentences", "2", "--steps", "1", "-n", "2", "-k", "2", "--samplers",
		"gibbs:paper,dmala:paper"))
}

// randomBERT makes a model of random weights. It has the shape of BERT-base in
// all but its widths, or the heads of BERT-large, whose 24 layers take seconds.
func randomBERT(t *testing.T, name string) (folder string) {
	t.Helper()
	layers, heads := 12, 12
	if strings.Contains(name, "large") {
		layers, heads = 2, 16
	}
	folder = filepath.Join(t.TempDir(), filepath.Base(name))
	config := fmt.Sprintf(`{"model_type": "bert", "vocab_size": 200, "hidden_size": %d, "num_hidden_layers": %d,
		"num_attention_heads": %d, "intermediate_size": 256, "max_position_embeddings": 512}`, 4*heads, layers, heads)
	if err := modelstest.Write(folder, config, modelstest.Options{}); err != nil {
		t.Fatal(err)
	}
	return folder
}

// evaluate runs infill eval on two corpora, and returns the folder of the run.
func evaluate(t *testing.T, words []string) (folder string) {
	t.Helper()
	corpus, text := filepath.Join(t.TempDir(), "corpus.txt"), ""
	for day := range 40 {
		text += fmt.Sprintf("on day %d he opened the door and went out .\n", day)
	}
	if err := os.WriteFile(corpus, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	folder = filepath.Join(filepath.Dir(corpus), "run")
	words = append(append([]string{"run", "../infill"}, words...), "--tbc", corpus, "--wt103", corpus, "-q", "-o",
		folder)
	if out, err := exec.CommandContext(t.Context(), "go", words...).CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", words, err, out)
	}
	return folder
}

// TestInfilling: the pseudo-values of a run have the run's mean U and self-BLEU,
// and an error of self-BLEU that the run's own interval has too, but for its correction,
// which takes at most half of the error away.
func TestInfilling(t *testing.T) {
	run := evaluate(t, strings.Fields("eval --sentences 6 --steps 2 -n 3 -k 2 --samplers gibbs,dmala --seed 1 "+
		"--union-first 20"))
	folder := filepath.Join(t.TempDir(), "lab")
	_, messages, code := runLab(t.Context(), "infilling --seed 1 -q --run "+run+" -o "+folder)
	if code != 0 || messages != "" {
		t.Fatalf("exit code %d, %s", code, messages)
	}
	results, err := eval.ReadResults(run)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(folder, "results.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	const head = "sampler model repeat self-bleu self-2 self-3 u changed"
	if err != nil || len(rows) != 1+2*6 || strings.Join(rows[0][:8], " ") != head {
		t.Fatalf("%v: %d rows, %v", err, len(rows), rows[0])
	}
	for i, m := range results.Methods {
		var scores, us []float64
		for _, row := range rows[1+6*i : 7+6*i] {
			if row[0] != m.Method {
				t.Fatalf("%v is a row of %s", row, m.Method)
			}
			score, _ := strconv.ParseFloat(row[3], 64)
			u, _ := strconv.ParseFloat(row[6], 64)
			scores, us = append(scores, score), append(us, u)
		}
		if got := stat.Mean(us, nil); math.Abs(got-m.LogLikelihood.Mean) > 1e-9 {
			t.Errorf("%s: mean U %v, want %v", m.Method, got, m.LogLikelihood.Mean)
		}
		at := slices.IndexFunc(m.Top.Scores, func(s metrics.Score) bool { return s.Name() == "self_bleu" })
		if got, of := stat.Mean(scores, nil), float64(m.Top.Scores[at].Value); math.Abs(got-of) > 1e-9 {
			t.Errorf("%s: self-BLEU %v, and %v in the run", m.Method, got, of)
		}
		of := float64(m.Top.Scores[at].Interval.StandardError)
		got := stat.StdErr(stat.StdDev(scores, nil), 6)
		if got < of-1e-9 || got > 2*of+1e-9 {
			t.Errorf("%s: self-BLEU ± %v, and ± %v in the run", m.Method, got, of)
		}
	}
	// The corpora, compressed, are those of the run.
	text, err := os.ReadFile(filepath.Join(filepath.Dir(run), "corpus.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var content bytes.Buffer
	z := gzip.NewWriter(&content)
	_, err = z.Write(text)
	packed := filepath.Join(t.TempDir(), "corpus.txt.gz")
	err = errors.Join(err, z.Close(), os.WriteFile(packed, content.Bytes(), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	_, messages, code = runLab(t.Context(),
		fmt.Sprintf("infilling --seed 1 -q --run %s --corpus tbc=%s --corpus wt103=%[2]s", run, packed))
	if code != 0 || messages != "" {
		t.Errorf("with corpora exit code %d, %s", code, messages)
	}
	for flags, want := range map[string]string{
		"infilling":                 "lab: --run: name the folder of a finished run",
		"infilling --run " + folder: "lab: --run: " + folder + " holds no run",
	} {
		_, messages, code := runLab(t.Context(), flags)
		if code != 2 || !strings.HasPrefix(messages, want) || strings.Count(messages, "\n") != 1 {
			t.Errorf("%s: exit code %d, %s", flags, code, messages)
		}
	}
}
