package main

import (
	"os/exec"
	"testing"
	"time"

	"infill/infill"
	"infill/lm"
	"infill/models"
	"infill/tokenize"
)

// BenchmarkProcess is a whole process, from start to exit, with everything in the
// cache: what a user waits for.
func BenchmarkProcess(b *testing.B) {
	for _, bench := range []struct {
		name string
		args []string
	}{
		{"version", []string{"version"}},
		{"one slot", []string{"--seed", "7", "he had [MASK] me"}},
		{"three slots", []string{"--seed", "7",
			"he took his [MASK] , opened the [MASK] , and [MASK] out into the rain ."}},
		{"score", []string{"score", "he took his hat , opened the door , and walked out into the rain ."}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				if out, err := exec.Command("infill", bench.args...).CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
			}
		})
	}
}

// BenchmarkStages says where the time to the first result goes, in milliseconds.
func BenchmarkStages(b *testing.B) {
	ctx := b.Context()
	spent := map[string]time.Duration{}
	for b.Loop() {
		last := time.Now()
		lap := func(stage string, err error) {
			if err != nil {
				b.Fatal(err)
			}
			now := time.Now()
			spent[stage] += now.Sub(last)
			last = now
		}
		bundle, err := models.Open("")
		lap("ms-bundle", err)
		tokenizer, err := tokenize.Load(bundle.FS())
		lap("ms-tokenizer", err)
		found, err := lm.EnsureLibrary(ctx, "cpu", nil)
		lap("ms-library", err)
		model, err := lm.Open(ctx, bundle, lm.Options{MaskID: tokenizer.MaskID(), Library: found.Path, Device: "cpu"})
		lap("ms-onnxruntime", err)
		template, err := tokenizer.Template("he had [MASK] me")
		if err == nil {
			_, err = model.MaskedLogProbabilities(ctx, template.IDs, template.Slots)
		}
		lap("ms-session-and-first-call", err)
		_, err = infill.New(model, tokenizer).Fill(ctx, template.Text, infill.DefaultOptions(), nil)
		lap("ms-sampling", err)
		lap("ms-closing", model.Close())
	}
	for stage, d := range spent {
		b.ReportMetric(float64(d.Microseconds())/1000/float64(b.N), stage)
	}
}
