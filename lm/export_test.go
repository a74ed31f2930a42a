package lm_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"infill/internal/modelstest"
	"infill/lm"
	"infill/lm/internal/onnx"
	"infill/lm/internal/ort"
	"infill/lm/internal/ort/library"
	"infill/models"
)

func exportTiny(t *testing.T) (*models.Bundle, string) {
	t.Helper()
	bundle := writeBundle(t, 30, 0.3)
	dir := filepath.Join(t.TempDir(), "exported")
	if _, err := lm.Export(t.Context(), bundle, tinyMask, 3, dir); err != nil {
		t.Fatal(err)
	}
	return bundle, dir
}

func openRuntime(t *testing.T) *ort.Runtime {
	t.Helper()
	found, err := library.Ensure(t.Context(), library.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := ort.Open(t.Context(), ort.Options{LibraryPath: found.Path, Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// exportedRun runs an exported graph with its own inputs and outputs.
func exportedRun(t *testing.T, r *ort.Runtime, dir, file string, inputs, outputs []ort.Tensor) {
	t.Helper()
	model, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := onnx.Decode(bytes.NewReader(model), int64(len(model)), file)
	if err != nil {
		t.Fatal(err)
	}
	names := func(values []onnx.ModelValue) []string {
		var names []string
		for _, v := range values {
			names = append(names, v.Name)
		}
		return names
	}
	session, err := r.NewSession(model,
		ort.SessionOptions{ExternalDir: dir, Inputs: names(decoded.Inputs), Outputs: names(decoded.Outputs)})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := session.Run(t.Context(), inputs, outputs); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// testExported holds exported graphs of energies and gradients against the
// model's own target, and the graph of conditionals against the energies.
func testExported(t *testing.T, bundle *models.Bundle, mask int, template, slots []int, states []int) {
	dir := filepath.Join(t.TempDir(), "exported")
	if _, err := lm.Export(t.Context(), bundle, mask, 3, dir); err != nil {
		t.Fatal(err)
	}
	m := openBundle(t, bundle, mask)
	v, n := bundle.Config.VocabularySize, len(slots)
	chains := len(states) / n
	target := targetOf(t, m, template, slots, lm.TargetOptions{Support: vocabularySupport(v, n)})
	wantEnergy, wantGradient := make([]float64, chains), make([]float64, len(states)*v)
	if err := target.EnergyGradient(t.Context(), states, wantEnergy, wantGradient); err != nil {
		t.Fatal(err)
	}

	r := openRuntime(t)
	tokens := len(template)
	var ids, at, maskedIDs, queries, targets []int64
	for _, s := range slots {
		at = append(at, int64(s))
	}
	for c := range chains {
		text := make([]int64, tokens)
		for p, id := range template {
			text[p] = int64(id)
		}
		for j, s := range slots {
			text[s] = int64(states[c*n+j])
		}
		ids = append(ids, text...)
		for i, s := range slots {
			masked := slices.Clone(text)
			masked[s] = int64(mask)
			maskedIDs = append(maskedIDs, masked...)
			queries = append(queries, int64((c*n+i)*tokens+s))
			targets = append(targets, text[s])
		}
	}
	rows := int64(chains * n)
	scores := make([]float32, rows)
	exportedRun(t, r, dir, "conditionals.onnx", []ort.Tensor{
		ort.Int64([]int64{rows, int64(tokens)}, maskedIDs), ort.Int64([]int64{rows, 1}, queries),
		ort.Int64([]int64{rows, 1}, targets),
		ort.Int64([]int64{rows, 0}, nil), ort.Int64([]int64{0}, nil),
	}, []ort.Tensor{ort.Float32([]int64{rows, 1}, scores), ort.Float32([]int64{rows, 0}, nil),
		ort.Float32([]int64{0, int64(v)}, nil)})

	texts := []ort.Tensor{ort.Int64([]int64{int64(chains), int64(tokens)}, ids), ort.Int64([]int64{int64(n)}, at)}
	energy, again, gradient := make([]float32, chains), make([]float32, chains), make([]float32, len(states)*v)
	exportedRun(t, r, dir, "energy.onnx", texts, []ort.Tensor{ort.Float32([]int64{int64(chains)}, energy)})
	exportedRun(t, r, dir, "gradient.onnx", texts, []ort.Tensor{
		ort.Float32([]int64{int64(chains)}, again), ort.Float32([]int64{int64(chains), int64(n), int64(v)}, gradient),
	})
	for c, want := range wantEnergy {
		sum := 0.0
		for _, s := range scores[c*n:][:n] {
			sum += float64(s)
		}
		for file, got := range map[string]float64{"conditionals.onnx": sum, "energy.onnx": float64(energy[c]),
			"gradient.onnx": float64(again[c])} {
			if !close32(got, want) {
				t.Errorf("%s: energy %g of chain %d, the target's is %g", file, got, c, want)
			}
		}
	}
	for i, want := range wantGradient {
		if !close32(float64(gradient[i]), want) {
			t.Fatalf("gradient %d is %g, the target's is %g", i, gradient[i], want)
		}
	}
	// The direct part alone would not do.
	local := targetOf(t, m, template, slots, lm.TargetOptions{Support: vocabularySupport(v, n), Gradient: lm.Local})
	direct := make([]float64, len(wantGradient))
	if err := local.EnergyGradient(t.Context(), states, wantEnergy, direct); err != nil {
		t.Fatal(err)
	}
	if n > 1 && slices.EqualFunc(direct, wantGradient, close32) {
		t.Error("nothing goes through the context: the case shows too little")
	}
}

// Exported graphs of every family, from one slot to three and one chain to two.
func TestExportedGraphsGiveEnergyAndGradient(t *testing.T) {
	t.Run("bert", func(t *testing.T) {
		bundle := writeBundle(t, 30, 0.3)
		testExported(t, bundle, tinyMask, exampleIDs, exampleSlots, []int{7, 12, 20, 9, 9, 11})
		testExported(t, bundle, tinyMask, exampleIDs, exampleSlots[:1], []int{7})
	})
	t.Run("imported", func(t *testing.T) {
		want := importedReference(t)
		for _, file := range []string{"sdpa-14.onnx", "external-14.onnx", "dynamo-18.onnx"} {
			testExported(t, importGraph(t, filepath.Join(exportFixtures, file)), 4, want.Template, want.Slots,
				append([]int{6, 7, 8}, want.Fill...))
		}
	})
	for _, r := range references(t) {
		t.Run(r.Name, func(t *testing.T) {
			c := slices.MaxFunc(r.Cases, func(a, b referenceCase) int { return len(a.Slots) - len(b.Slots) })
			var states []int
			for _, s := range c.Slots {
				states = append(states, c.IDs[s])
			}
			other := slices.Clone(states)
			slices.Reverse(other)
			testExported(t, r.Bundle, r.Mask, c.IDs, c.Slots, append(states, other...))
		})
	}
}

func vocabularySupport(vocabulary, slots int) [][]int {
	all := make([]int, vocabulary)
	for i := range all {
		all[i] = i
	}
	return slices.Repeat([][]int{all}, slots)
}

// The exported folder is complete without the bundle, and documents what the
// graphs declare.
func TestExportedFolder(t *testing.T) {
	bundle, dir := exportTiny(t)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := []string{"README.md", "conditionals.onnx", "config.json", "energy.onnx", "gradient.onnx", "manifest.json",
		"model.safetensors", "tokenizer_config.json", "vocab.txt"}
	if !slices.Equal(names, want) {
		t.Errorf("files %q, want %q", names, want)
	}
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		bundle.SHA256, "| `ids` | int64 | [rows × tokens] |",
		"| `target_log_probability` | float | [queries·rows × 1] |",
		"| `energy` | float | [chains] |", "| `gradient` | float | [chains × slots × 30] |", "the id 4.",
	} {
		if !strings.Contains(string(readme), part) {
			t.Errorf("README.md does not say %q:\n%s", part, readme)
		}
	}
	// What was exported is the model, here and in the store.
	again, err := (&models.Store{Dir: t.TempDir()}).Import(t.Context(), dir, "again")
	if err != nil {
		t.Fatal(err)
	}
	if again.SHA256 != bundle.SHA256 {
		t.Errorf("the exported folder is imported as %s, the model is %s", again.SHA256, bundle.SHA256)
	}
	energyOf := func(b *models.Bundle) float64 {
		target, energy := targetOf(t, openBundle(t, b, tinyMask), []int{2, 7, 4, 9, 4, 3}, []int{2, 4},
			lm.TargetOptions{Support: vocabularySupport(b.Config.VocabularySize, 2)}), make([]float64, 1)
		if err := target.Energy(t.Context(), []int{8, 11}, energy); err != nil {
			t.Fatal(err)
		}
		return energy[0]
	}
	if got, want := energyOf(again), energyOf(bundle); got != want {
		t.Errorf("energy %v of the imported model, %v of the exported", got, want)
	}
}

func TestExportRefuses(t *testing.T) {
	bundle := writeBundle(t, 30, 0.02)
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := lm.Export(t.Context(), bundle, tinyMask, 3, full); err == nil ||
		!strings.Contains(err.Error(), "is not empty") {
		t.Errorf("into a folder with files: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	parent := t.TempDir()
	if _, err := lm.Export(cancelled, bundle, tinyMask, 3, filepath.Join(parent, "exported")); err == nil {
		t.Error("no error when cancelled")
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	// An empty folder is taken.
	if _, err := lm.Export(t.Context(), bundle, tinyMask, 3, parent); err != nil {
		t.Error(err)
	}
}

// A disk that is full leaves nothing behind.
func TestExportInLittleRoom(t *testing.T) {
	bundle, parent := writeBundle(t, 30, 0.02), t.TempDir()
	err := modelstest.InLittleRoom(t, 1024, parent, func(parent string) error {
		_, err := lm.Export(t.Context(), bundle, tinyMask, 3, filepath.Join(parent, "exported"))
		return err
	})
	if !strings.Contains(err.Error(), "exported.partial") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q does not name the file in one line", err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// The standard's own checker accepts the files, shapes and types included.
func TestExportPassesTheChecker(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3, in which the checker is written")
	}
	if out, err := exec.Command(python, "-c", "import onnx.checker").CombinedOutput(); err != nil {
		t.Skipf("python3 has no onnx, the package with the checker: %s", out)
	}
	_, dir := exportTiny(t)
	files, err := filepath.Glob(filepath.Join(dir, "*.onnx"))
	if err != nil || len(files) != 3 {
		t.Fatalf("graphs %q, %v", files, err)
	}
	for _, file := range files {
		const check = "import sys, onnx.checker; onnx.checker.check_model(sys.argv[1], full_check=True)"
		if out, err := exec.Command(python, "-c", check, file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
}
