package infill_test

import (
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"infill/infill"
	"infill/internal/modelstest"
	"infill/models"
)

// What was fitted to a model stands in its manifest, and is the temperature of its
// pseudo-log-likelihood of several slots; it multiplies the temperature of the call, and
// enters nowhere else.
func TestPLLTemperatureOfTheManifest(t *testing.T) {
	const fitted = 1.5
	open := func(joint *models.Joint) *infill.Filler {
		dir := t.TempDir()
		if err := modelstest.Write(dir, modelstest.Tiny, modelstest.Options{Spread: 0.5, Seed: 3}); err != nil {
			t.Fatal(err)
		}
		if joint != nil {
			manifest := models.Manifest{Schema: 1, Name: "fitted", Family: "bert", Joint: joint}
			files, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files { // in ascending order
				content, err := os.ReadFile(filepath.Join(dir, f.Name()))
				if err != nil {
					t.Fatal(err)
				}
				manifest.Files = append(manifest.Files,
					models.ManifestFile{Path: f.Name(), Size: int64(len(content)),
						SHA256: fmt.Sprintf("%x", sha256.Sum256(content))})
			}
			if err := os.WriteFile(filepath.Join(dir, "manifest.json"), manifest.Encode(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		filler, err := infill.Open(infill.OpenOptions{Model: dir})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { filler.Close() })
		return filler
	}
	plain, kept := open(nil), open(&models.Joint{PLLTemperature: fitted})
	fill := func(f *infill.Filler, template string, change func(o *infill.Options)) *infill.Result {
		o := infill.DefaultOptions()
		o.Joint, o.Fill, o.Candidates, o.Top, o.Error = infill.JointPLL, infill.FillAny, 8, 8, 0.1
		change(&o)
		r, err := f.Fill(t.Context(), template, o, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	same := func(what string, a, b *infill.Result) {
		t.Helper()
		if len(a.Fills) == 0 || len(a.Fills) != len(b.Fills) {
			t.Fatalf("%s: %d and %d fills", what, len(a.Fills), len(b.Fills))
		}
		for i, f := range a.Fills {
			g := b.Fills[i]
			if f.Text != g.Text || f.Probability != nil && math.Abs(*f.Probability-*g.Probability) > 1e-6 {
				t.Errorf("%s: %q %v and %q %v", what, f.Text, f.Probability, g.Text, g.Probability)
			}
		}
	}
	const two = "a [MASK] b [MASK] c"
	for _, temperature := range []float64{1, 2} {
		got := fill(kept, two, func(o *infill.Options) { o.Temperature = temperature })
		same("two slots", got, fill(plain, two, func(o *infill.Options) { o.Temperature = temperature * fitted }))
		if got.Method != infill.MethodExact || got.Stats.PLLTemperature == nil || *got.Stats.PLLTemperature != fitted ||
			!strings.Contains(got.Signature, "|pll-temperature:1.5|") {
			t.Errorf("%s, temperature %v, %s", got.Method, got.Stats.PLLTemperature, got.Signature)
		}
	}
	// Weighted draws have the same law: each probability within what its error allows.
	const three = "a [MASK] b [MASK] c [MASK] d"
	drawn := fill(kept, three, func(o *infill.Options) { o.Candidates = 24 })
	if drawn.Method == infill.MethodExact {
		t.Fatalf("method %s", drawn.Method)
	}
	same("three slots", drawn, fill(plain, three, func(o *infill.Options) { o.Candidates, o.Temperature = 24, fitted }))
	for what, change := range map[string]func(o *infill.Options){
		"chain rule": func(o *infill.Options) {
			o.Joint, o.Candidates, o.Error = infill.JointChain, infill.AutoCandidates, infill.DefaultOptions().Error
		},
		"ag":            func(o *infill.Options) { o.Joint = "ag" },
		"named sampler": func(o *infill.Options) { o.Sampler, o.Error = "mlm-mh", infill.DefaultOptions().Error },
	} {
		got := fill(kept, two, change)
		same(what, got, fill(plain, two, change))
		if got.Stats.PLLTemperature != nil || strings.Contains(got.Signature, "pll-temperature") {
			t.Errorf("%s: temperature %v, %s", what, got.Stats.PLLTemperature, got.Signature)
		}
	}
	same("one slot", fill(kept, "a [MASK] b", func(*infill.Options) {}),
		fill(plain, "a [MASK] b", func(*infill.Options) {}))
	if r := fill(plain, two, func(*infill.Options) {}); r.Stats.PLLTemperature != nil ||
		slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "temperature") }) {
		t.Errorf("nothing was fitted: %v, %q", r.Stats.PLLTemperature, r.Warnings)
	}
}
