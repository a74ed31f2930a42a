package lm_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"infill/lm"
	"infill/lm/bert"
	"infill/lm/bert/berttest"
	"infill/lm/ort"
	"infill/lm/ort/library"
	"infill/models"
	"infill/models/modelstest"
)

func exportTiny(t *testing.T) (*models.Bundle, string) {
	t.Helper()
	bundle := berttest.Write(t, t.TempDir(), berttest.Shape{Layers: 2, Spread: 0.3})
	dir := filepath.Join(t.TempDir(), "exported")
	if err := lm.Export(t.Context(), bundle, dir); err != nil {
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

// What the README of an export says about energy and gradient, done with the
// exported files alone, gives the target's own energy and gradient.
func TestExportedGraphsGiveEnergyAndGradient(t *testing.T) {
	bundle, dir := exportTiny(t)
	m := openBundle(t, bundle, berttest.MaskID)
	vocabulary, slots := bundle.Config.VocabularySize, len(exampleSlots)
	target, err := m.NewTarget(exampleIDs, exampleSlots, lm.TargetOptions{Support: vocabularySupport(vocabulary, slots)})
	if err != nil {
		t.Fatal(err)
	}
	fill := []int{7, 12, 20}
	wantEnergy, wantGradient := make([]float64, 1), make([]float64, slots*vocabulary)
	if err := target.EnergyGradient(context.Background(), fill, wantEnergy, wantGradient); err != nil {
		t.Fatal(err)
	}

	tokens := len(exampleIDs)
	n := []int64{int64(slots), int64(tokens), int64(vocabulary)}
	var ids, queries, targets, chosen, at, chosenSlots []int64
	var weights []float32
	for i, s := range exampleSlots {
		row := make([]int64, tokens)
		for p, id := range exampleIDs {
			row[p] = int64(id)
		}
		for j, r := range exampleSlots {
			row[r] = int64(fill[j])
			at = append(at, int64(i*tokens+r))
			weight := float32(1)
			if i == j {
				weight = 0
			}
			weights = append(weights, weight)
		}
		row[s] = berttest.MaskID
		ids = append(ids, row...)
		queries = append(queries, int64(i*tokens+s))
		targets = append(targets, int64(fill[i]))
		chosen, chosenSlots = append(chosen, int64(i)), append(chosenSlots, int64(i))
	}
	logp, through := make([]float32, slots*vocabulary), make([]float32, slots*vocabulary)
	scores := make([]float32, slots)
	r := openRuntime(t)
	common := []ort.Tensor{
		ort.Int64([]int64{n[0], n[1]}, ids), ort.Int64([]int64{n[0], 1}, queries), ort.Int64([]int64{n[0], 1}, targets),
		ort.Int64([]int64{n[0], 0}, nil), ort.Int64([]int64{n[0]}, chosen),
	}
	results := []ort.Tensor{ort.Float32([]int64{n[0], 1}, scores), ort.Float32([]int64{n[0], 0}, nil), ort.Float32([]int64{n[0], n[2]}, logp)}
	run := func(file string, inputs, outputs []ort.Tensor, inputNames, outputNames []string) {
		t.Helper()
		model, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		session, err := r.NewSession(model, ort.SessionOptions{ExternalDir: dir, Inputs: inputNames, Outputs: outputNames})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		if err := session.Run(context.Background(), inputs, outputs); err != nil {
			t.Fatal(err)
		}
	}
	inputs := []string{bert.InputIDs, bert.InputQueries, bert.InputTargets, bert.InputCandidates, bert.InputChosen}
	outputs := []string{bert.OutputTarget, bert.OutputCandidates, bert.OutputVocabulary}
	run("conditionals.onnx", common, results, inputs, outputs)
	energy := 0.0
	for _, s := range scores {
		energy += float64(s)
	}
	if !close32(energy, wantEnergy[0]) {
		t.Errorf("energy %g, the target's is %g", energy, wantEnergy[0])
	}
	run("gradient.onnx",
		append(slices.Clone(common), ort.Int64([]int64{n[0], n[0]}, at), ort.Float32([]int64{1, n[0], n[0], 1}, weights),
			ort.Int64([]int64{n[0], 0}, nil), ort.Int64([]int64{n[0]}, chosenSlots)),
		append(slices.Clone(results), ort.Float32([]int64{n[0], 1, 0}, nil), ort.Float32([]int64{n[0], n[2]}, through)),
		append(slices.Clone(inputs), bert.InputSlots, bert.InputWeights, bert.InputSlotCandidates, bert.InputChosenSlots),
		append(slices.Clone(outputs), bert.OutputSlotCandidates, bert.OutputSlotsVocabulary))
	differs := false
	for i, want := range wantGradient {
		if got := float64(logp[i]) + float64(through[i]); !close32(got, want) {
			t.Fatalf("gradient %d is %g, the target's is %g", i, got, want)
		}
		differs = differs || through[i] != 0
	}
	if !differs {
		t.Error("nothing goes through the context: the case shows too little")
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
	want := []string{"README.md", "conditionals.onnx", "gradient.onnx", "tokenizer_config.json", "vocab.txt", "weights.bin"}
	if !slices.Equal(names, want) {
		t.Errorf("files %q, want %q", names, want)
	}
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		bundle.SHA256, "| `ids` | int64 | [rows × tokens] |", "| `target_log_probability` | float | [queries·rows × 1] |",
		"| `weights` | float | [chains × terms × slots × 1] |", "| `gradient` | float | [chosen_slots × 30] |",
	} {
		if !strings.Contains(string(readme), part) {
			t.Errorf("README.md does not say %q:\n%s", part, readme)
		}
	}
	// Both graphs share their weights.
	whole, err := os.Stat(filepath.Join(bundle.Dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	packed, err := os.Stat(filepath.Join(dir, "weights.bin"))
	if err != nil {
		t.Fatal(err)
	}
	tensors := int64(len(bundle.Config.Tensors()))
	if packed.Size() < whole.Size()/2 || packed.Size() > whole.Size()+tensors*4096 {
		t.Errorf("weights.bin has %d bytes, the bundle's weights %d in %d tensors", packed.Size(), whole.Size(), tensors)
	}
}

func TestExportRefuses(t *testing.T) {
	bundle := berttest.Write(t, t.TempDir(), berttest.Shape{})
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := lm.Export(t.Context(), bundle, full); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("into a folder with files: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	parent := t.TempDir()
	if err := lm.Export(cancelled, bundle, filepath.Join(parent, "exported")); err == nil {
		t.Error("no error when cancelled")
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	// An empty folder is taken.
	if err := lm.Export(t.Context(), bundle, parent); err != nil {
		t.Error(err)
	}
}

// A disk that is full leaves nothing behind.
func TestExportInLittleRoom(t *testing.T) {
	parent := t.TempDir()
	err := modelstest.RunInLittleRoom(t, "TestExportWithLimit", 1024, "INFILL_TEST_EXPORT_DIR="+parent)
	if !strings.Contains(err.Error(), "exported.partial") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q does not name the file in one line", err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestExportWithLimit(t *testing.T) {
	parent := os.Getenv("INFILL_TEST_EXPORT_DIR")
	if parent == "" {
		t.Skip("runs in a process of its own")
	}
	bundle := berttest.Write(t, t.TempDir(), berttest.Shape{})
	modelstest.LittleRoom(t, func() error { return lm.Export(t.Context(), bundle, filepath.Join(parent, "exported")) })
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
	for _, file := range lm.ExportFiles() {
		const check = "import sys, onnx.checker; onnx.checker.check_model(sys.argv[1], full_check=True)"
		if out, err := exec.Command(python, "-c", check, filepath.Join(dir, file)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
}
