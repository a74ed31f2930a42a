package lm_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"infill/internal/check"
	"infill/internal/modelstest"
	"infill/lm"
	"infill/models"
)

const baseShape = `"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072, `

// published are the shapes of well-known models, as their config.json has them.
var published = []struct{ name, config string }{
	{"bert-base", `{"model_type": "bert", "vocab_size": 30522, ` + baseShape + `"num_hidden_layers": 12,
		"max_position_embeddings": 512}`},
	{"bert-large", `{"model_type": "bert", "vocab_size": 30522, "hidden_size": 1024, "num_hidden_layers": 24,
		"num_attention_heads": 16, "intermediate_size": 4096, "max_position_embeddings": 512}`},
	{"distilbert-base", `{"model_type": "distilbert", "vocab_size": 30522, "dim": 768, "n_layers": 6, "n_heads": 12,
		"hidden_dim": 3072, "max_position_embeddings": 512}`},
	{"electra-base-generator", `{"model_type": "electra", "vocab_size": 30522, "embedding_size": 768, "hidden_size": 256,
		"num_hidden_layers": 12, "num_attention_heads": 4, "intermediate_size": 1024, "max_position_embeddings": 512}`},
	{"roberta-base", `{"model_type": "roberta", "vocab_size": 50265, ` + baseShape + `"num_hidden_layers": 12,
		"max_position_embeddings": 514, "type_vocab_size": 1}`},
	{"xlm-roberta-base", `{"model_type": "xlm-roberta", "vocab_size": 250002, ` + baseShape + `"num_hidden_layers": 12,
		"max_position_embeddings": 514, "type_vocab_size": 1}`},
	{"camembert-base", `{"model_type": "camembert", "vocab_size": 32005, ` + baseShape + `"num_hidden_layers": 12,
		"max_position_embeddings": 514, "type_vocab_size": 1}`},
	{"albert-base", `{"model_type": "albert", "vocab_size": 30000, ` + baseShape + `"num_hidden_layers": 12,
		"max_position_embeddings": 512, "embedding_size": 128}`},
	{"deberta-v3-small", `{"model_type": "deberta-v2", "vocab_size": 128100, ` + baseShape + `"num_hidden_layers": 6,
		"max_position_embeddings": 512, "relative_attention": true, "position_buckets": 256, "norm_rel_ebd": "layer_norm",
		"share_att_key": true, "pos_att_type": "p2c|c2p", "position_biased_input": false, "type_vocab_size": 0}`},
	{"modernbert-base", `{"model_type": "modernbert", "vocab_size": 50368, "hidden_size": 768, "num_hidden_layers": 22,
		"num_attention_heads": 12, "intermediate_size": 1152, "max_position_embeddings": 8192}`},
	{"mmbert-base", `{"model_type": "modernbert", "vocab_size": 256000, "hidden_size": 768, "num_hidden_layers": 22,
		"num_attention_heads": 12, "intermediate_size": 1152, "max_position_embeddings": 8192, "pad_token_id": 0,
		"local_rope_theta": 160000}`},
}

// figures are those of a process that ran a model, in the order in which it
// prints them, with the digits behind the point that they have in the table.
var figures = []struct {
	unit   string
	digits int
}{
	{"open-s", 2}, {"first-energy-s", 2}, {"first-gradient-s", 2}, {"rows/s", 0}, {"gradient-rows/s", 0},
	{"memory/weights", 2}, {"gradient-memory/weights", 2},
}

const processVariable = "INFILL_TEST_FAMILY_DIR"

// BenchmarkFamilies measures models of published shapes with random weights in
// single precision, as most are published, each in a process of its own:
//
//   - seconds until the files are verified and the model is open, until the first energy (the session is made then),
//     and from there until the first gradient;
//   - masked rows per second of energies, and of energies with full gradients, of 4 chains with 3 slots in 24 tokens
//     over 1,000 candidates;
//   - memory, as a multiple of the weights' bytes, after energies, and after gradients.
//
// With -update it writes the table in docs/measured/models.md. To measure one:
//
//	go test ./lm -run '^$' -bench Families/albert-base -benchtime 5x
func BenchmarkFamilies(b *testing.B) {
	content := "| shape | weights | open, s | first energy, s | first gradient, s | rows/s | rows/s with gradient | " +
		"memory / weights | with gradient |\n| --- |" + strings.Repeat(" ---: |", 8) + "\n"
	for _, p := range published {
		b.Run(p.name, func(b *testing.B) {
			dir := b.TempDir()
			check.OK(b, modelstest.Write(dir, p.config, modelstest.Options{}))
			values := make([][]float64, len(figures))
			for b.Loop() {
				command := exec.Command(os.Args[0], "-test.run=^TestFamilyProcess$", "-test.v")
				command.Env = append(os.Environ(), processVariable+"="+dir)
				out, err := command.CombinedOutput()
				words := strings.Fields(string(regexp.MustCompile(`(?m)^figures .*$`).Find(out)))
				if err != nil || len(words) != 1+len(figures) {
					b.Fatalf("%v, no figures in\n%s", err, out)
				}
				for i, word := range words[1:] {
					x := 0.0
					fmt.Sscan(word, &x)
					values[i] = append(values[i], x)
				}
			}
			info := check.Must(os.Stat(filepath.Join(dir, "model.safetensors")))(b)
			content += fmt.Sprintf("| %s | %d MB |", p.name, info.Size()/1e6)
			for i, f := range figures {
				mean, deviation := stat.MeanStdDev(values[i], nil)
				b.ReportMetric(mean, f.unit)
				content += fmt.Sprintf(" %.*f ± %.*f |", f.digits, mean, f.digits,
					deviation/math.Sqrt(float64(len(values[i]))))
			}
			content += "\n"
		})
	}
	if *update {
		writeTable(b, "speed", "go test ./lm -run '^$' -bench Families -benchtime 5x -update", content)
	}
}

// BenchmarkFamilies runs TestFamilyProcess in a process of its own.
func TestFamilyProcess(t *testing.T) {
	dir := os.Getenv(processVariable)
	if dir == "" {
		t.Skip("a part of BenchmarkFamilies")
	}
	before, start := resident(t), time.Now()
	bundle := check.Must(models.Open(dir))(t)
	m := check.Must(lm.Open(t.Context(), bundle, lm.Options{Device: "cpu", MaskID: tinyMask}))(t)
	defer m.Close()
	open := time.Since(start).Seconds()
	work := newWorkload(4, 24, 3, 1000)
	seconds := func(gradient bool, repeats int) float64 {
		start := time.Now()
		for range repeats {
			check.OK(t, work.run(t.Context(), m, gradient))
		}
		return time.Since(start).Seconds()
	}
	var first, rate, memory [2]float64 // of energies, and of gradients
	for i, gradient := range []bool{false, true} {
		first[i] = seconds(gradient, 1)
		rate[i] = 5 * float64(len(work.states)) / seconds(gradient, 5)
		runtime.GC()
		memory[i] = (resident(t) - before) / float64(bundle.Manifest.Size())
	}
	fmt.Println("\nfigures", open, open+first[0], first[1], rate[0], rate[1], memory[0], memory[1])
}

// resident is this process's memory in bytes, pages that are mapped twice
// counted once.
func resident(t *testing.T) float64 {
	content, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(content), "\nPss:")
	kilobytes := 0.0
	check.Must(fmt.Sscan(rest, &kilobytes))(t)
	return kilobytes * 1024
}
