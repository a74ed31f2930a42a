package lm_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/cpu"

	"infill/lm"
	"infill/lm/internal/ort/library"
	"infill/models"
	"infill/samplers"
)

// onOpenVINO runs the test in a process of its own, on the library that `infill setup --openvino` fetched: a process
// can load only one. It is false there where the test is to go on.
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

// rounds says whether this processor can compute in bfloat16.
func rounds() bool { return cpu.X86.HasAVX512F || cpu.X86.HasAVXVNNIInt8 }

// A processor that would take single precision in bfloat16's place is refused.
func refused(t *testing.T, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "precision bf16: this processor has neither") {
		t.Errorf("error %v", err)
	}
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
		if o.Precision == lm.BF16 && !rounds() {
			refused(t, err)
			continue
		}
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
		states := []int{0, 0, 1, 2, 3, 1}
		evaluate := func(states []int, energy, gradient []float64) {
			made, err := m.NewTarget(ids, slots, lm.TargetOptions{Support: support, Gradient: lm.Full})
			if err == nil {
				err = made.(samplers.GradientTarget).EnergyGradient(t.Context(), states, energy, gradient)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		evaluate(states, energy, gradient)
		// A chain's energy is one number, whatever the chains beside it are, and its gradient up to rounding.
		for chain := range energy {
			alone, slope := make([]float64, 1), make([]float64, 2*4)
			evaluate(states[2*chain:2*chain+2], alone, slope)
			_, apart := distance(slope, gradient[8*chain:8*chain+8], func(int) bool { return true })
			if alone[0] != energy[chain] || !(apart < 1e-5) {
				t.Errorf("%s: chain %d alone: %v %v, among others %v %v", names[i], chain, alone, slope, energy[chain],
					gradient[8*chain:8*chain+8])
			}
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

// Who asks is reported what ran where.
func TestOpenVINOTells(t *testing.T) {
	if onOpenVINO(t) {
		return
	}
	bundle, err := models.Open("")
	if err != nil {
		t.Fatal(err)
	}
	for precision, want := range map[lm.Precision][]string{
		lm.FP32: {"conditionals on onnxruntime's own kernels: .*; on OpenVINO: .*parts of the graph",
			"gradient on onnxruntime's own kernels: .*MatMul[^;]*$"},
		lm.BF16: {"conditionals on onnxruntime's own kernels: .*; on OpenVINO: .*parts of the graph",
			"gradient on onnxruntime's own kernels: .*; on OpenVINO: .*parts of the graph"},
	} {
		var lines []string
		m, err := lm.Open(t.Context(), bundle,
			lm.Options{Device: "openvino", Precision: precision, MaskID: maskID,
				Tell: func(line string) { lines = append(lines, line) }})
		if precision == lm.BF16 && !rounds() {
			refused(t, err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, gradient := range []bool{false, true} {
			if err := newWorkload(2, 12, 2, 4).run(t.Context(), m, gradient); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %q", precision, lines)
		if len(lines) != len(want) {
			t.Errorf("%s: %q", precision, lines)
			continue
		}
		for i, pattern := range want {
			if !regexp.MustCompile("^" + pattern).MatchString(lines[i]) {
				t.Errorf("%s: told %q", precision, lines[i])
			}
		}
	}
}

// TestOpenVINOTable writes the table of docs/measured/models.md with -update; its figures are those of one processor,
// so without it only their magnitude is held.
func TestOpenVINOTable(t *testing.T) {
	if onOpenVINO(t) {
		return
	}
	const rounds = 7
	list, names := alternatives(t)
	var reference measured
	var content strings.Builder
	content.WriteString("| device, precision | log p: mean, largest error | U: mean, largest error | acceptance | " +
		"log p, alone and among 63 | energies: rows per second | with gradient |\n| --- | --- | --- | --- | --- | " +
		"--- | --- |\n")
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
		meanLogP, worstLogP := distance(got.logp, reference.logp,
			func(i int) bool { return reference.logp[i] >= math.Log(1e-4) })
		meanU, worstU := distance(got.energy, reference.energy, func(int) bool { return true })
		neighbours := neighbours(t, m)
		fmt.Fprintf(&content, "| %s | %.2g, %.2g | %.2g, %.2g | %.3f | %.2g |", names[i], meanLogP, worstLogP, meanU,
			worstU, got.acceptance, neighbours)
		for k := range seconds {
			content.WriteString(" " + against(seconds[k][i], seconds[k][0]) + " |")
		}
		content.WriteString("\n")
		bound := map[lm.Precision]float64{lm.FP32: 1e-3, lm.BF16: 0.2}[m.Description().Precision]
		if !(meanU < bound && meanLogP < bound && neighbours < 5*bound) {
			t.Errorf("%s: log p is off by %g on average, U by %g, a row among others by up to %g", names[i], meanLogP,
				meanU, neighbours)
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
