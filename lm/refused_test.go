package lm_test

import (
	"os"
	"path/filepath"
	"testing"

	"infill/internal/check"
	"infill/lm"
	"infill/models"
)

// TestOpenRefuses: a mask outside the vocabulary, a device and a library that are
// none are errors of Open.
func TestOpenRefuses(t *testing.T) {
	bundle := writeBundle(t, 30, 0.3)
	text := filepath.Join(t.TempDir(), "libonnxruntime.so")
	check.OK(t, os.WriteFile(text, []byte("no library"), 0o600))
	for says, o := range map[string]lm.Options{
		"[MASK] has id 0, outside the model's vocabulary of 30":  {Device: "cpu"},
		"[MASK] has id 30, outside the model's vocabulary of 30": {Device: "cpu", MaskID: 30},
		"tpu":         {Device: "tpu", MaskID: tinyMask},
		"onnxruntime": {Device: "cpu", MaskID: tinyMask, Library: text},
	} {
		m, err := lm.Open(t.Context(), bundle, o)
		check.Says(t, err, says)
		if m != nil {
			t.Errorf("%+v: a model, and an error", o)
		}
	}
	m := check.Must(lm.Open(t.Context(), bundle, lm.Options{Device: "cpu", MaskID: 29}))(t)
	check.OK(t, m.Close())
}

// TestRowsRefused: ids outside the vocabulary, positions outside the text and
// texts that are too long are errors of every call, and the nearest ones inside
// are not.
func TestRowsRefused(t *testing.T) {
	m := tiny(t)
	fits := []int{2, 0, 29, 5, 3}
	calls := func(ids []int, position int) []error {
		row := lm.Row{IDs: ids, Positions: []int{0, position}}
		rated := lm.Row{IDs: ids, Positions: []int{position}, Targets: []int{29}}
		_, whole := m.LogProbabilities(t.Context(), []lm.Row{row})
		_, one := m.LogProbabilities(t.Context(), []lm.Row{rated})
		_, both := m.LogProbabilities(t.Context(), []lm.Row{{IDs: fits, Positions: []int{1}}, rated})
		return []error{whole, one, both}
	}
	long := make([]int, 17)
	for _, c := range []struct {
		ids      []int
		position int
		says     string // "" if it is right
	}{
		{fits, 0, ""},
		{fits, 4, ""},
		{fits, -1, "-1"},
		{fits, 5, "5"},
		{[]int{2, -1, 3}, 0, "token -1 at position 1 is outside the vocabulary of 30"},
		{[]int{2, 30, 3}, 0, "token 30 at position 1 is outside the vocabulary of 30"},
		{long[:16], 15, ""},
		{long, 1, "the text has 17 tokens, the model takes at most 16"},
	} {
		for i, err := range calls(c.ids, c.position) {
			if c.says == "" {
				check.OK(t, err)
				continue
			}
			if err == nil {
				t.Errorf("call %d of %v, position %d: no error", i, c.ids, c.position)
				continue
			}
			check.Says(t, err, c.says)
		}
	}
	for says, row := range map[string]lm.Row{
		"a row asks for no position":                {IDs: fits},
		"a row has 2 positions and 1 targets":       {IDs: fits, Positions: []int{1, 2}, Targets: []int{5}},
		"target 30 is outside the vocabulary of 30": {IDs: fits, Positions: []int{1}, Targets: []int{30}},
		"target -1 is outside the vocabulary of 30": {IDs: fits, Positions: []int{1}, Targets: []int{-1}},
	} {
		_, err := m.LogProbabilities(t.Context(), []lm.Row{row})
		check.Says(t, err, says)
	}
	rows, err := m.LogProbabilities(t.Context(), nil)
	check.OK(t, err)
	if calls, _ := m.Calls(); len(rows) > 0 || calls != 10 {
		t.Errorf("nothing asked: %v; %d calls in all", rows, calls)
	}
}

// TestImportedGradientNaN: a gradient that is no number is an error, as a
// distribution is.
func TestImportedGradientNaN(t *testing.T) {
	want := importedReference(t)
	m := openBundle(t, unfitWeights(t), 4)
	target := targetOf(t, m, want.Template, want.Slots, lm.TargetOptions{Support: vocabularySupport(64, 3)})
	energy := make([]float64, 1)
	gradient := make([]float64, 3*64)
	check.Says(t, target.EnergyGradient(t.Context(), []int{5, 6, 7}, energy, gradient),
		"the model computes what is no number (NaN): its weights are damaged")
}

// TestGraphThatIsGone: a graph that cannot be read any more is an error of the
// first call, and of the next.
func TestGraphThatIsGone(t *testing.T) {
	dir := t.TempDir()
	check.OK(t, os.CopyFS(dir, importGraph(t, filepath.Join(exportFixtures, "eager-11.onnx")).FS()))
	m := openBundle(t, check.Must(models.Open(dir))(t), 4)
	graphs := check.Must(filepath.Glob(filepath.Join(dir, "*.onnx")))(t)
	check.OK(t, os.Remove(graphs[0]))
	for range 2 {
		rows, err := m.LogProbabilities(t.Context(), []lm.Row{{IDs: []int{2, 6, 4, 8, 3}, Positions: []int{2}}})
		check.Says(t, err, filepath.Base(graphs[0]))
		if rows != nil {
			t.Error("rows, and an error")
		}
	}
}
