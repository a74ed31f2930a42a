package lm_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"infill/lm"
	"infill/lm/internal/ort/library"
	"infill/models"
	"infill/samplers"
)

// onOpenVINO runs the test in a process of its own, on the library that `infill setup --openvino` fetched: a process can load only
// one. It is false there where the test is to go on.
func onOpenVINO(t *testing.T) (elsewhere bool) {
	t.Helper()
	found, _, _ := lm.OpenVINO(t.Context())
	switch {
	case !found.Found:
		t.Skip("OpenVINO is not installed: infill setup --openvino fetches it")
	case os.Getenv(library.Variable) == found.Path:
		return false
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	arguments := []string{"-test.run", "^" + t.Name() + "$", "-test.v"}
	if *update {
		arguments = append(arguments, "-update")
	}
	child := exec.CommandContext(t.Context(), self, arguments...)
	child.Env = append(os.Environ(), library.Variable+"="+found.Path)
	out, err := child.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	return true
}

// alternatives are devices and precisions beside single precision on onnxruntime's own kernels, the first of the list.
func alternatives(t *testing.T) (list []*lm.MaskedLM, names []string) {
	t.Helper()
	bundle, err := models.Open("")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []lm.Options{{Device: "cpu"}, {Device: "openvino"}, {Device: "openvino", Precision: lm.BF16}} {
		o.MaskID = maskID
		m, err := lm.Open(t.Context(), bundle, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
		d := m.Description()
		list, names = append(list, m), append(names, d.Device+" "+string(d.Precision))
	}
	return list, names
}

// Conditionals, energies and gradients all run on OpenVINO; in single precision they are the CPU's up to rounding.
func TestOpenVINOAgrees(t *testing.T) {
	if onOpenVINO(t) {
		return
	}
	ids, slots := []int{101, 2002, 103, 2005, 103, 2033, 1012, 102}, []int{2, 4}
	support := [][]int{{2001, 2002, 2003, 2004}, {3001, 3002, 3003}}
	var want []float64
	list, names := alternatives(t)
	for i, m := range list {
		var got []float64
		logp, err := m.MaskedLogProbabilities(t.Context(), ids, slots)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range logp {
			for _, x := range row {
				got = append(got, float64(x))
			}
		}
		energy, gradient := make([]float64, 3), make([]float64, 3*2*4)
		made, err := m.NewTarget(ids, slots, lm.TargetOptions{Support: support, Gradient: lm.Full})
		if err == nil {
			err = made.(samplers.GradientTarget).EnergyGradient(t.Context(), []int{0, 0, 1, 2, 3, 1}, energy, gradient)
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(append(got, energy...), gradient...)
		if i == 0 {
			want = got
			continue
		}
		_, worst := distance(got, want, func(int) bool { return true })
		t.Logf("%s: largest difference %.2g nats", names[i], worst)
		if bound := map[lm.Precision]float64{lm.FP32: 1e-3, lm.BF16: 1}[m.Description().Precision]; !(worst < bound) {
			t.Errorf("%s is off by %g nats, more than %g", names[i], worst, bound)
		}
	}
}

// TestOpenVINOTable writes the table of docs/models.md with -update; its figures are those of one processor, so without it only their
// magnitude is held.
func TestOpenVINOTable(t *testing.T) {
	if onOpenVINO(t) {
		return
	}
	const rounds = 7
	list, names := alternatives(t)
	var reference measured
	var content strings.Builder
	content.WriteString("| device, precision | log p: mean, largest error | U: mean, largest error | acceptance | log p, alone and among 63 | energies: rows per second | with gradient |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	seconds := [2][][]float64{make([][]float64, len(list)), make([][]float64, len(list))}
	if *update {
		for round := range rounds + 1 {
			for i, m := range list {
				for k, gradient := range []bool{false, true} {
					w := newWorkload(25, 24, 5, 250)
					start := time.Now()
					if err := w.run(t.Context(), m, gradient); err != nil {
						t.Fatal(err)
					}
					if round > 0 {
						seconds[k][i] = append(seconds[k][i], time.Since(start).Seconds())
					}
				}
			}
		}
	}
	for i, m := range list {
		got := measure(t, m)
		if i == 0 {
			reference = got
		}
		meanLogP, worstLogP := distance(got.logp, reference.logp, func(i int) bool { return reference.logp[i] >= math.Log(1e-4) })
		meanU, worstU := distance(got.energy, reference.energy, func(int) bool { return true })
		neighbours := neighbours(t, m)
		fmt.Fprintf(&content, "| %s | %.2g, %.2g | %.2g, %.2g | %.3f | %.2g |", names[i], meanLogP, worstLogP, meanU, worstU, got.acceptance, neighbours)
		for k := range seconds {
			content.WriteString(" " + against(seconds[k][i], seconds[k][0]) + " |")
		}
		content.WriteString("\n")
		bound := map[lm.Precision]float64{lm.FP32: 1e-3, lm.BF16: 0.2}[m.Description().Precision]
		if !(meanU < bound && meanLogP < bound && neighbours < 5*bound) {
			t.Errorf("%s: log p is off by %g on average, U by %g, a row among others by up to %g", names[i], meanLogP, meanU, neighbours)
		}
	}
	t.Log("\n" + content.String())
	if *update {
		writeTable(t, "openvino", "go test ./lm -run TestOpenVINOTable -update", content.String())
	}
}

// against is the median over rounds of how much faster one is than the other, with its quartiles.
func against(seconds, reference []float64) string {
	if len(seconds) == 0 {
		return ""
	}
	var ratios []float64
	for i, s := range seconds {
		ratios = append(ratios, reference[i]/s)
	}
	slices.Sort(ratios)
	n := len(ratios)
	return fmt.Sprintf("%.2f (%.2f–%.2f) ×", ratios[n/2], ratios[n/4], ratios[3*n/4])
}

// neighbours is how much a row's log-probability changes at most when 63 others share its call, in nats.
func neighbours(t *testing.T, m *lm.MaskedLM) float64 {
	t.Helper()
	c, err := golden(t)[0], error(nil)
	queries := make([]lm.Query, 64)
	for i := range queries {
		queries[i].Position = 1 + i%(len(c.IDs[0])-2)
		queries[i].Masked = []int{1 + i*5%(len(c.IDs[0])-2)}
	}
	together, err := m.Score(t.Context(), c.IDs[0], queries)
	alone := make([]float64, len(queries))
	for i, q := range queries {
		one, failed := m.Score(t.Context(), c.IDs[0], []lm.Query{q})
		if err = errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
		alone[i] = one[0]
	}
	_, worst := distance(together, alone, func(int) bool { return true })
	return worst
}
