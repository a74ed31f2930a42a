package lm_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"infill/lm"
	"infill/models"
	"infill/models/modelstest"
	"infill/models/safetensors"
)

// large are the shapes of large models, with the type their weights have on the hub.
var large = []struct {
	name, config string
	dtype        safetensors.DType
}{
	{"bert-base", `{"model_type": "bert", "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
		"intermediate_size": 3072, "max_position_embeddings": 512, "type_vocab_size": 2}`, safetensors.F32},
	{"bert-base-half", `{"model_type": "bert", "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
		"intermediate_size": 3072, "max_position_embeddings": 512, "type_vocab_size": 2}`, safetensors.F16},
	{"bert-large", `{"model_type": "bert", "vocab_size": 30522, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
		"intermediate_size": 4096, "max_position_embeddings": 512, "type_vocab_size": 2}`, safetensors.F32},
	{"xlm-roberta-base", `{"model_type": "xlm-roberta", "vocab_size": 250002, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
		"intermediate_size": 3072, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5}`, safetensors.F32},
}

const largeVariable = "INFILL_TEST_LARGE_MODEL"

// largeFigures are what one process, which ran one model, saw.
type largeFigures struct {
	Weights                int64    // bytes of the file
	Open, Energy, Gradient float64  // seconds until the first result
	Rows, GradientRows     float64  // per second, afterwards
	Resident               [4]int64 // bytes: before, with energies, with gradients, at most
}

// BenchmarkLarge measures models of large shapes with random weights, each in a process of its own: seconds from opening the
// verified bundle to the first energy and gradient, rows per second, and memory over that of the empty process, as a multiple
// of the weights.
func BenchmarkLarge(b *testing.B) {
	for _, shape := range large {
		b.Run(shape.name, func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), shape.name)
			if err := modelstest.WriteJSON(dir, []byte(shape.config), modelstest.Options{DType: shape.dtype}); err != nil {
				b.Fatal(err)
			}
			var sum largeFigures
			for b.Loop() {
				f := runLarge(b, dir)
				sum.Weights = f.Weights
				sum.Open += f.Open
				sum.Energy += f.Energy
				sum.Gradient += f.Gradient
				sum.Rows += f.Rows
				sum.GradientRows += f.GradientRows
				for i := range sum.Resident {
					sum.Resident[i] += f.Resident[i]
				}
			}
			n := float64(b.N)
			b.ReportMetric(sum.Open/n, "open-s")
			b.ReportMetric(sum.Energy/n, "first-energy-s")
			b.ReportMetric(sum.Gradient/n, "first-gradient-s")
			b.ReportMetric(sum.Rows/n, "rows/s")
			b.ReportMetric(sum.GradientRows/n, "gradient-rows/s")
			b.ReportMetric(float64(sum.Weights)/1e6, "weights-MB")
			for i, name := range []string{"energy", "gradient", "peak"} {
				b.ReportMetric(float64(sum.Resident[i+1]-sum.Resident[0])/n/float64(sum.Weights), name+"-memory/weights")
			}
		})
	}
}

func runLarge(b *testing.B, dir string) largeFigures {
	command := exec.Command(os.Args[0], "-test.run=^TestLargeProcess$", "-test.v")
	command.Env = append(os.Environ(), largeVariable+"="+dir)
	out, err := command.CombinedOutput()
	if err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	var f largeFigures
	for line := range strings.Lines(string(out)) {
		if rest, ok := strings.CutPrefix(line, "figures "); ok {
			if err := json.Unmarshal([]byte(rest), &f); err != nil {
				b.Fatal(err)
			}
			return f
		}
	}
	b.Fatalf("no figures in\n%s", out)
	return f
}

// TestLargeProcess is what BenchmarkLarge runs in a process of its own.
func TestLargeProcess(t *testing.T) {
	dir := os.Getenv(largeVariable)
	if dir == "" {
		t.Skip("a part of BenchmarkLarge")
	}
	ctx, f := context.Background(), largeFigures{}
	f.Resident[0] = memory(t, "Pss")
	start := time.Now()
	bundle, err := models.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	const mask = 4
	m, err := lm.Open(ctx, bundle, lm.Options{Device: "cpu", MaskID: mask})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	f.Open = time.Since(start).Seconds()
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
	f.Energy = f.Open + once(false)
	f.Rows = rate(false)
	runtime.GC()
	f.Resident[1] = memory(t, "Pss")
	f.Gradient = once(true)
	f.GradientRows = rate(true)
	runtime.GC()
	f.Resident[2] = memory(t, "Pss")
	f.Resident[3] = memory(t, "VmHWM")
	if info, err := os.Stat(filepath.Join(dir, "model.safetensors")); err == nil {
		f.Weights = info.Size()
	}
	out, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("figures %s\n", out)
}

// memory is a figure of the kernel about this process, in bytes.
func memory(t *testing.T, name string) int64 {
	for _, path := range []string{"/proc/self/smaps_rollup", "/proc/self/status"} {
		file, err := os.Open(path)
		if err != nil {
			t.Skip(err)
		}
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if rest, ok := strings.CutPrefix(lines.Text(), name+":"); ok {
				kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				return kilobytes << 10
			}
		}
	}
	t.Fatalf("the kernel tells no %s", name)
	return 0
}
