package lm_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"infill/internal/modelstest"
	"infill/lm"
	"infill/lm/internal/bert/berttest"
	"infill/lm/internal/ort/library"
	"infill/models"
	"infill/samplers"
)

// ownCache gives the test a cache folder of its own, and leaves it the
// library.
func ownCache(t *testing.T) string {
	t.Helper()
	found, err := library.Ensure(t.Context(), library.Options{})
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	t.Setenv(library.Variable, found.Path)
	t.Setenv(models.CacheVariable, root)
	return root
}

func openPrecision(t testing.TB, bundle *models.Bundle, mask int, precision lm.Precision) *lm.MaskedLM {
	t.Helper()
	m, err := lm.Open(t.Context(), bundle, lm.Options{Device: "cpu", MaskID: mask, Precision: precision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// In int8 a state's energy is one number, whatever runs beside it, before or
// after a gradient: what Metropolis-Hastings needs. It is near the one in
// single precision, and so is the gradient.
func TestInt8Energies(t *testing.T) {
	ownCache(t)
	bundle := berttest.Write(t, t.TempDir(), berttest.Shape{Layers: 2, Spread: 0.25, Hidden: 16, Intermediate: 32})
	plain, integer := openPrecision(t, bundle, berttest.MaskID, lm.FP32),
		openPrecision(t, bundle, berttest.MaskID, lm.INT8)
	if integer.Description().Precision != lm.INT8 || plain.Description().Precision != lm.FP32 {
		t.Errorf("%+v and %+v", integer.Description(), plain.Description())
	}
	states := manyStates()
	wantEnergy, wantGradient := evaluateAll(t, newTarget(t, plain, lm.TargetOptions{}), states, 60)
	energy, gradient := evaluateAll(t, newTarget(t, integer, lm.TargetOptions{}), states, 60)
	differs := false
	for i, u := range energy {
		if !(math.Abs(u-wantEnergy[i]) < 0.25) {
			t.Errorf("energy %d is %g, in single precision %g", i, u, wantEnergy[i])
		}
		differs = differs || u != wantEnergy[i]
	}
	for i, d := range gradient {
		if !(math.Abs(d-wantGradient[i]) < 0.5) {
			t.Errorf("gradient %d is %g, in single precision %g", i, d, wantGradient[i])
		}
	}
	if !differs {
		t.Error("nothing is rounded")
	}
	for _, chains := range []int{1, 7} {
		target := newTarget(t, integer, lm.TargetOptions{})
		for range 2 {
			again, _ := evaluateAll(t, target, states, chains)
			if !slices.Equal(again, energy) {
				t.Errorf("energies in batches of %d differ from those in one batch", chains)
			}
		}
		only := make([]float64, chains)
		if err := newTarget(t, integer, lm.TargetOptions{}).Energy(t.Context(), states[:3*chains], only); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(only, energy[:chains]) {
			t.Errorf("energies without a gradient differ from those with one")
		}
	}
}

// What is prepared is kept, verified, and made again when it is damaged.
func TestPreparedWeights(t *testing.T) {
	root := ownCache(t)
	bundle := berttest.Write(t, t.TempDir(), berttest.Shape{Spread: 0.3})
	score := func() float64 {
		t.Helper()
		s, err := openPrecision(t, bundle, berttest.MaskID, lm.INT8).Score(t.Context(), exampleIDs,
			[]lm.Query{{Position: 1}})
		if err != nil {
			t.Fatal(err)
		}
		return s[0]
	}
	want := score()
	files, err := filepath.Glob(filepath.Join(root, "precision", "*", "conditionals.*"))
	if err != nil || len(files) != 3 {
		t.Fatalf("prepared %q, %v", files, err)
	}
	content := map[string][]byte{}
	times := map[string]time.Time{}
	for _, f := range files {
		if content[f], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		times[f] = info.ModTime()
	}
	if got := score(); got != want {
		t.Errorf("score %g the second time, %g the first", got, want)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.ModTime() != times[f] {
			t.Errorf("%s was written again: %v", f, err)
		}
	}
	for _, f := range files {
		damaged := bytes.Clone(content[f])
		damaged[len(damaged)/2] ^= 1
		if err := os.WriteFile(f, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		if got := score(); got != want {
			t.Errorf("score %g with a damaged %s, want %g", got, filepath.Base(f), want)
		}
		if now, err := os.ReadFile(f); err != nil || !bytes.Equal(now, content[f]) {
			t.Errorf("%s is not mended: %v", filepath.Base(f), err)
		}
	}
}

func TestPrecisionRefuses(t *testing.T) {
	root := ownCache(t)
	bundle := berttest.Write(t, t.TempDir(), berttest.Shape{})
	if _, err := lm.Open(t.Context(), bundle,
		lm.Options{Device: "cpu", MaskID: berttest.MaskID, Precision: "fp64"}); err == nil ||
		!strings.Contains(err.Error(), `"fp64" is not one of fp32, fp16, int8`) {
		t.Errorf("error %v", err)
	}
	// A file where the folder belongs.
	if err := os.WriteFile(filepath.Join(root, "precision"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := openPrecision(t, bundle, berttest.MaskID, lm.INT8).Score(t.Context(), exampleIDs,
		[]lm.Query{{Position: 1}})
	if err == nil || !strings.Contains(err.Error(), models.CacheVariable) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
}

// withSinglePrecision is the built-in model, whose weights are stored in half
// precision, as if it had been published in single: each weight moved by less
// than half of what half precision can tell apart.
func withSinglePrecision(t *testing.T, from *models.Bundle) *models.Bundle {
	t.Helper()
	dir, random := t.TempDir(), rand.New(rand.NewPCG(11, 0))
	err := modelstest.Alter(dir, from, func(x float32) float32 { return x * float32(1+(random.Float64()-0.5)/2048) })
	if err != nil {
		t.Fatal(err)
	}
	b, err := models.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// onCPU are the precisions of onnxruntime's own kernels.
func onCPU() []lm.Precision { return []lm.Precision{lm.FP32, lm.FP16, lm.INT8} }

// precisionRow is what a precision does to the built-in model.
type precisionRow struct {
	megabytes           float64 // of weights on disk
	meanLogP, worstLogP float64 // nats, over tokens of probability 1e-4 and more
	meanEnergy, worstE  float64 // nats, over the golden states
	acceptance          float64
}

// TestPrecisionTable holds the table of docs/measured/models.md against a measurement,
// or writes it with -update. Seconds depend on the machine and are only written.
func TestPrecisionTable(t *testing.T) {
	if testing.Short() {
		t.Skip("a table of the documentation, which the plain run checks")
	}
	const name, command = "precision", "go test ./lm -run TestPrecisionTable -update"
	const rounds = 15
	root := ownCache(t)
	builtIn, err := models.Open("")
	if err != nil {
		t.Fatal(err)
	}
	bundle := withSinglePrecision(t, builtIn)
	var reference measured
	rows, opened, seconds := map[lm.Precision]precisionRow{}, map[lm.Precision]*lm.MaskedLM{},
		map[lm.Precision][]float64{}
	for _, p := range onCPU() {
		m := openPrecision(t, bundle, maskID, p)
		got := measure(t, m)
		if p == lm.FP32 {
			reference = got
		}
		row := precisionRow{acceptance: got.acceptance}
		row.meanLogP, row.worstLogP = distance(got.logp, reference.logp,
			func(i int) bool { return reference.logp[i] >= math.Log(1e-4) })
		row.meanEnergy, row.worstE = distance(got.energy, reference.energy, func(int) bool { return true })
		path := filepath.Join(bundle.Dir, "model.safetensors")
		if p != lm.FP32 {
			found, err := filepath.Glob(filepath.Join(root, "precision", "*-"+string(p)+"-*", "conditionals.bin"))
			if err != nil || len(found) != 1 {
				t.Fatalf("weights in %s: %q, %v", p, found, err)
			}
			path = found[0]
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		row.megabytes = float64(info.Size()) / 1e6
		rows[p], opened[p] = row, m
	}
	if *update {
		for range rounds { // in turn: what else the machine does meets all of them
			for _, p := range onCPU() {
				seconds[p] = append(seconds[p], scoring(t, opened[p]))
			}
		}
		var content strings.Builder
		content.WriteString("| `--precision` | weights on disk | log p: mean, largest error | U: mean, largest error " +
			"| acceptance | rows per second |\n| --- | --- | --- | --- | --- | --- |\n")
		for _, p := range onCPU() {
			r := rows[p]
			fmt.Fprintf(&content, "| %s | %.0f MB | %.2g, %.2g | %.2g, %.2g | %.3f | %s |\n", p, r.megabytes,
				r.meanLogP, r.worstLogP, r.meanEnergy, r.worstE, r.acceptance, against(seconds[p], seconds[lm.FP32]))
		}
		writeTable(t, name, command, content.String())
		return
	}
	written := table(t, name, command)
	for _, p := range onCPU() {
		line := regexp.MustCompile(`(?m)^\| ` + string(p) +
			` \| (\S+) MB \| (\S+), (\S+) \| (\S+), (\S+) \| (\S+) \| \S+ \(\S+\) × \|$`).FindStringSubmatch(written)
		if line == nil {
			t.Errorf("the row of %s is missing or old; run with -update", p)
			continue
		}
		r := rows[p]
		for i, measured := range []float64{r.megabytes, r.meanLogP, r.worstLogP, r.meanEnergy, r.worstE} {
			stated, err := strconv.ParseFloat(line[1+i], 64)
			if err != nil || !(measured <= 1.5*stated+1e-9) {
				t.Errorf("%s, column %d: the table states %s, measured %.3g", p, i+1, line[1+i], measured)
			}
		}
		if stated, err := strconv.ParseFloat(line[6], 64); err != nil || !(math.Abs(stated-r.acceptance) <= 0.05) {
			t.Errorf("%s: the table states an acceptance of %s, measured %.3f", p, line[6], r.acceptance)
		}
	}
}

// measured is what the golden templates give in one precision.
type measured struct {
	logp, energy []float64
	acceptance   float64
}

func measure(t *testing.T, m *lm.MaskedLM) measured {
	t.Helper()
	var out measured
	for _, c := range golden(t) {
		rows, err := m.MaskedLogProbabilities(t.Context(), c.IDs[0], c.Slots)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			for _, x := range row {
				out.logp = append(out.logp, float64(x))
			}
		}
		target := targetOf(t, m, c.IDs[0], c.Slots,
			lm.TargetOptions{Support: vocabulary(m, len(c.Slots)), Gradient: lm.Local})
		var states []int
		for _, ids := range c.IDs {
			for _, s := range c.Slots {
				states = append(states, ids[s])
			}
		}
		energy := make([]float64, len(c.IDs))
		if err := target.Energy(t.Context(), states, energy); err != nil {
			t.Fatal(err)
		}
		out.energy = append(out.energy, energy...)
	}
	out.acceptance = acceptance(t, m, golden(t)[0])
	return out
}

// acceptance is the mean acceptance of DMALA on the first golden template.
func acceptance(t *testing.T, m *lm.MaskedLM, c goldenCase) float64 {
	t.Helper()
	const chains, steps = 16, 20
	support := vocabulary(m, len(c.Slots))
	for j := range support {
		support[j] = support[j][2000:2250]
	}
	target := targetOf(t, m, c.IDs[0], c.Slots, lm.TargetOptions{Support: support, Gradient: lm.Local})
	kernel, err := samplers.New("dmala:step-size=0.3", target)
	if err != nil {
		t.Fatal(err)
	}
	streams := samplers.Streams(1, "precision", chains)
	start := make([]int, chains*len(c.Slots))
	for i := range start {
		start[i] = streams[i/len(c.Slots)].IntN(250)
	}
	sum := 0.0
	_, err = samplers.Sample(t.Context(), kernel, start, samplers.Plan{Streams: streams, Steps: steps},
		func(s samplers.Step) error {
			if s.Info == nil {
				return nil
			}
			for _, ratio := range s.Info.LogAcceptance {
				sum += min(1, math.Exp(ratio))
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return sum / chains / steps
}

func distance(got, want []float64, counts func(i int) bool) (mean, worst float64) {
	n := 0
	for i, x := range got {
		if counts(i) {
			mean, worst, n = mean+math.Abs(x-want[i]), max(worst, math.Abs(x-want[i])), n+1
		}
	}
	return mean / float64(n), worst
}

// scoring is how long a template of the golden cases takes to score at 256 places, in seconds.
func scoring(t *testing.T, m *lm.MaskedLM) float64 {
	t.Helper()
	c := golden(t)[0]
	queries := make([]lm.Query, 256)
	for i := range queries {
		queries[i].Position = 1 + i%(len(c.IDs[0])-2)
	}
	start := time.Now()
	if _, err := m.Score(context.Background(), c.IDs[0], queries); err != nil {
		t.Fatal(err)
	}
	return time.Since(start).Seconds()
}

// BenchmarkPrecisions measures rows per second of energies in single precision and
// in integers, of the built-in model and of one of BERT-base's shape: 25 chains, 5
// slots in 24 tokens, 250 candidates. With -update it writes the table in
// docs/measured/models.md.
func BenchmarkPrecisions(b *testing.B) {
	base := b.TempDir()
	if err := modelstest.Write(base, published[0].config, modelstest.Options{}); err != nil {
		b.Fatal(err)
	}
	var table strings.Builder
	lines := map[string]string{} // of the last run of each
	for _, c := range []struct {
		name, model string
		mask        int
	}{{"small-uncased (built in)", "", maskID}, {"bert-base, random weights", base, publishedMask}} {
		bundle, err := models.Open(c.model)
		if err != nil {
			b.Fatal(err)
		}
		both := []lm.Precision{lm.FP32, lm.INT8}
		var list []*lm.MaskedLM
		for _, precision := range both {
			list = append(list, openPrecision(b, bundle, c.mask, precision))
		}
		b.Run(strings.Fields(c.name)[0], func(b *testing.B) {
			const chains, slots = 25, 5
			w := newWorkload(chains, 24, slots, 250)
			for _, m := range list { // makes the sessions
				if err := w.run(b.Context(), m, false); err != nil {
					b.Fatal(err)
				}
			}
			seconds := make([][]float64, len(list))
			for b.Loop() {
				for i, m := range list { // in turn: what else the machine does meets both
					start := time.Now()
					if err := w.run(b.Context(), m, false); err != nil {
						b.Fatal(err)
					}
					seconds[i] = append(seconds[i], time.Since(start).Seconds())
				}
			}
			line := "| " + c.name + " |"
			for i := range list {
				sorted := slices.Sorted(slices.Values(seconds[i]))
				rate := chains * slots / sorted[len(sorted)/2]
				b.ReportMetric(rate, string(both[i])+"-rows/s")
				line += fmt.Sprintf(" %.0f |", rate)
			}
			lines[c.name] = line + " " + against(seconds[1], seconds[0]) + " |\n"
		})
		table.WriteString(lines[c.name])
	}
	if *update {
		writeTable(b, "integers", "go test ./lm -run '^$' -bench Precisions -benchtime 20x -update",
			"| model | fp32, rows/s | int8, rows/s | ratio |\n| --- | ---: | ---: | ---: |\n"+table.String())
	}
}
