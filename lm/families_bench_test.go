package lm_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"infill/internal/modelstest"
	"infill/lm"
	"infill/models"
)

// published are the shapes of well-known models, as their config.json has them.
var published = []struct{ name, config string }{
	{"bert-base", `{"model_type": "bert", "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
		"intermediate_size": 3072, "max_position_embeddings": 512, "type_vocab_size": 2}`},
	{"bert-large", `{"model_type": "bert", "vocab_size": 30522, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
		"intermediate_size": 4096, "max_position_embeddings": 512, "type_vocab_size": 2}`},
	{"distilbert-base",
		`{"model_type": "distilbert", "vocab_size": 30522, "dim": 768, "n_layers": 6, "n_heads": 12, "hidden_dim": 3072, "max_position_embeddings": 512}`},
	{"electra-base-generator",
		`{"model_type": "electra", "vocab_size": 30522, "embedding_size": 768, "hidden_size": 256, "num_hidden_layers": 12,
		"num_attention_heads": 4, "intermediate_size": 1024, "max_position_embeddings": 512}`},
	{"roberta-base",
		`{"model_type": "roberta", "vocab_size": 50265, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
		"intermediate_size": 3072, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5}`},
	{"xlm-roberta-base",
		`{"model_type": "xlm-roberta", "vocab_size": 250002, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
		"intermediate_size": 3072, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5}`},
	{"camembert-base",
		`{"model_type": "camembert", "vocab_size": 32005, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
		"intermediate_size": 3072, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5}`},
	{"albert-base", `{"model_type": "albert", "vocab_size": 30000, "embedding_size": 128, "hidden_size": 768, "num_hidden_layers": 12,
		"num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 512}`},
	{"deberta-v3-small",
		`{"model_type": "deberta-v2", "vocab_size": 128100, "hidden_size": 768, "num_hidden_layers": 6, "num_attention_heads": 12,
		"intermediate_size": 3072, "max_position_embeddings": 512, "relative_attention": true, "position_buckets": 256, "norm_rel_ebd": "layer_norm",
		"share_att_key": true, "pos_att_type": "p2c|c2p", "position_biased_input": false, "type_vocab_size": 0}`},
	{"modernbert-base",
		`{"model_type": "modernbert", "vocab_size": 50368, "hidden_size": 768, "num_hidden_layers": 22, "num_attention_heads": 12,
		"intermediate_size": 1152, "max_position_embeddings": 8192}`},
	{"mmbert-base", `{"model_type": "modernbert", "vocab_size": 256000, "hidden_size": 768, "num_hidden_layers": 22, "num_attention_heads": 12,
		"intermediate_size": 1152, "max_position_embeddings": 8192, "pad_token_id": 0, "local_rope_theta": 160000}`},
}

const (
	processVariable = "INFILL_TEST_FAMILY_DIR"
	publishedMask   = 4
)

// figure is one of the figures of a process that ran a model.
type figure struct {
	unit   string
	digits int // behind the point, in the table
	values []float64
}

// figures lists them in the order of a process's output.
func figures() []figure {
	return []figure{
		{unit: "open-s", digits: 2}, {unit: "first-energy-s", digits: 2}, {unit: "first-gradient-s", digits: 2},
		{unit: "rows/s"}, {unit: "gradient-rows/s"},
		{unit: "memory/weights", digits: 2}, {unit: "gradient-memory/weights", digits: 2},
	}
}

// BenchmarkFamilies measures models of published shapes with random weights in
// single precision, as most are published, each in a process of its own:
//
//   - seconds until the files are verified and the model is open, until the
//     first energy (the session is made then), and from there until the first
//     gradient;
//   - masked rows per second of energies, and of energies with full gradients, of 4
//     chains with 3 slots in 24 tokens over 1,000 candidates;
//   - memory, as a multiple of the weights' bytes, after energies, and after
//     gradients.
//
// With -update it writes the table in docs/measured/models.md. To measure one:
//
//	go test ./lm -run '^$' -bench Families/albert-base -benchtime 5x
func BenchmarkFamilies(b *testing.B) {
	var rows strings.Builder
	for _, p := range published {
		b.Run(p.name, func(b *testing.B) {
			dir := b.TempDir()
			if err := modelstest.Write(dir, p.config, modelstest.Options{}); err != nil {
				b.Fatal(err)
			}
			info, err := os.Stat(filepath.Join(dir, "model.safetensors"))
			if err != nil {
				b.Fatal(err)
			}
			all := figures()
			for b.Loop() {
				for i, x := range runFamily(b, dir) {
					all[i].values = append(all[i].values, x)
				}
			}
			fmt.Fprintf(&rows, "| %s | %d MB |", p.name, info.Size()/1e6)
			for _, f := range all {
				mean, deviation := stat.MeanStdDev(f.values, nil)
				b.ReportMetric(mean, f.unit)
				fmt.Fprintf(&rows, " %.*f ± %.*f |", f.digits, mean, f.digits,
					deviation/math.Sqrt(float64(len(f.values))))
			}
			rows.WriteString("\n")
		})
	}
	if *update {
		const head = "| shape | weights | open, s | first energy, s | first gradient, s | rows/s | rows/s with " +
			"gradient | memory / weights | with gradient |\n" +
			"| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
		writeTable(b, "speed", "go test ./lm -run '^$' -bench Families -benchtime 5x -update", head+rows.String())
	}
}

// runFamily runs TestFamilyProcess and returns its figures.
func runFamily(b *testing.B, dir string) []float64 {
	command := exec.Command(os.Args[0], "-test.run=^TestFamilyProcess$", "-test.v")
	command.Env = append(os.Environ(), processVariable+"="+dir)
	out, err := command.CombinedOutput()
	if err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	_, line, found := bytes.Cut(out, []byte("figures "))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	var values []float64
	if err := json.Unmarshal(line, &values); !found || err != nil || len(values) != len(figures()) {
		b.Fatalf("%v, no figures in\n%s", err, out)
	}
	return values
}

// BenchmarkFamilies runs TestFamilyProcess in a process of its own.
func TestFamilyProcess(t *testing.T) {
	dir := os.Getenv(processVariable)
	if dir == "" {
		t.Skip("a part of BenchmarkFamilies")
	}
	ctx, before, start := context.Background(), resident(t), time.Now()
	bundle, err := models.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := lm.Open(ctx, bundle, lm.Options{Device: "cpu", MaskID: publishedMask})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	open := time.Since(start).Seconds()
	work := newWorkload(4, 24, 3, 1000)
	once := func(gradient bool) float64 {
		start := time.Now()
		if err := work.run(ctx, m, gradient); err != nil {
			t.Fatal(err)
		}
		return time.Since(start).Seconds()
	}
	rate := func(gradient bool) float64 {
		const repeats = 5
		seconds := 0.0
		for range repeats {
			seconds += once(gradient)
		}
		return repeats * float64(len(work.states)) / seconds
	}
	memory := func() float64 {
		runtime.GC()
		return (resident(t) - before) / float64(bundle.Manifest.Size())
	}
	firstEnergy := open + once(false)
	energies, small := rate(false), memory()
	firstGradient := once(true)
	gradients, large := rate(true), memory()
	out, err := json.Marshal([]float64{open, firstEnergy, firstGradient, energies, gradients, small, large})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("figures %s\n", out)
}

// resident is this process's memory in bytes, pages that are mapped twice
// counted once.
func resident(t *testing.T) float64 {
	content, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		t.Skip(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "Pss:"); ok {
			kilobytes, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 64)
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes * 1024
		}
	}
	t.Fatalf("the kernel tells no memory:\n%s", content)
	return 0
}
