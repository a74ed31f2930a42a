package lm_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"infill/internal/check"
	"infill/internal/onnx"
	"infill/lm"
	"infill/models"
)

const exportFixtures = "../testdata/import"

// importedEnergy holds the energy and gradient of the exported model in double
// precision.
type importedEnergy struct {
	Template, Slots, Fill []int
	Energy                float64
	Gradient              [][]float64
}

func importedReference(t *testing.T) importedEnergy {
	t.Helper()
	content := check.Must(os.ReadFile(filepath.Join(exportFixtures, "reference.json")))(t)
	var r struct{ Energy importedEnergy }
	check.OK(t, json.Unmarshal(content, &r))
	return r.Energy
}

func importGraph(t *testing.T, file string) *models.Bundle {
	t.Helper()
	store := &models.Store{Dir: t.TempDir()}
	b, err := lm.Import(t.Context(), store, file, "exported", filepath.Join(exportFixtures, "tokenizer"), 24)
	check.OK(t, err)
	return b
}

// Graphs as exporters write them, run by onnxruntime: energy and gradient of a
// fill, against the exported model in double precision.
func TestImportedEnergyAndGradient(t *testing.T) {
	want := importedReference(t)
	for file, tolerance := range map[string]float64{
		"eager-11.onnx": 1e-5, "sdpa-14.onnx": 1e-5, "eager-17.onnx": 1e-5, "ids-18.onnx": 1e-5,
		"external-14.onnx": 1e-5, "dynamo-18.onnx": 1e-5, "float16-11.onnx": 2e-2,
	} {
		t.Run(file, func(t *testing.T) {
			bundle := importGraph(t, filepath.Join(exportFixtures, file))
			if !bundle.Config.Imported.Gradient || bundle.Config.VocabularySize != 64 {
				t.Fatalf("imported as %+v", bundle.Config.Imported)
			}
			m := openBundle(t, bundle, 4)
			target := targetOf(t, m, want.Template, want.Slots, lm.TargetOptions{Support: vocabularySupport(64, 3)})
			for _, chains := range []int{1, 3} { // rows of different numbers run through one session
				energy, gradient := make([]float64, chains), make([]float64, chains*3*64)
				var states []int
				for range chains - 1 {
					states = append(states, 6, 7, 8)
				}
				states = append(states, want.Fill...)
				check.OK(t, target.EnergyGradient(context.Background(), states, energy, gradient))
				last := chains - 1
				if d := math.Abs(energy[last] - want.Energy); !(d <= tolerance*(1+math.Abs(want.Energy))) {
					t.Errorf("energy %.8g, want %.8g", energy[last], want.Energy)
				}
				for j, row := range want.Gradient {
					for v, x := range row {
						if got := gradient[(last*3+j)*64+v]; !(math.Abs(got-x) <= tolerance*(1+math.Abs(x))) {
							t.Fatalf("derivative of slot %d by token %d is %.8g, want %.8g", j, v, got, x)
						}
					}
				}
			}
		})
	}
}

// A graph with an operator that cannot be differentiated serves energies and
// conditionals; the gradient's error names the operator.
func TestImportedWithoutGradient(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(exportFixtures, "eager-11.onnx"))
	check.OK(t, err)
	// Elu and Erf have names of equal length, and Elu no rule.
	altered := filepath.Join(t.TempDir(), "model.onnx")
	check.OK(t, os.WriteFile(altered, []byte(strings.ReplaceAll(string(content), "\x22\x03Erf", "\x22\x03Elu")),
		0o644))
	bundle := importGraph(t, altered)
	if bundle.Config.Imported.Gradient || !strings.Contains(bundle.Config.Imported.NoGradient, "operator Elu (") {
		t.Errorf("imported as %+v", bundle.Config.Imported)
	}
	m := openBundle(t, bundle, 4)
	want := importedReference(t)
	newTarget := func(gradient lm.Gradient) target {
		return targetOf(t, m, want.Template, want.Slots,
			lm.TargetOptions{Support: vocabularySupport(64, 3), Gradient: gradient})
	}
	energy, gradient := make([]float64, 1), make([]float64, 3*64)
	if err := newTarget(lm.Local).EnergyGradient(context.Background(), want.Fill, energy, gradient); err != nil ||
		energy[0] >= 0 || math.IsNaN(energy[0]) {
		t.Errorf("the local gradient, energy %g: %v", energy[0], err)
	}
	err = newTarget(lm.Full).EnergyGradient(context.Background(), want.Fill, energy, gradient)
	check.Says(t, err, "operator Elu (", "sampler without one")
}

func TestImportRefuses(t *testing.T) {
	tokenizer := filepath.Join(exportFixtures, "tokenizer")
	good := filepath.Join(exportFixtures, "eager-11.onnx")
	altered := func(from string, pairs ...string) string {
		content := check.Must(os.ReadFile(filepath.Join(exportFixtures, from)))(t)
		changed := strings.NewReplacer(pairs...).Replace(string(content))
		if changed == string(content) {
			t.Fatalf("%q is not in %s", pairs[0], from)
		}
		path := filepath.Join(t.TempDir(), "model.onnx")
		check.OK(t, os.WriteFile(path, []byte(changed), 0o644))
		return path
	}
	// Dynamic quantization as onnxruntime's tools write it.
	g := onnx.New("int8")
	ids := g.Input("input_ids", onnx.Int64, onnx.Symbol("rows"), onnx.Symbol("tokens"))
	rounded := g.Apply("DynamicQuantizeLinear", 3, []*onnx.Value{g.Cast(ids, onnx.Float)})
	g.Output("logits", g.Apply("DequantizeLinear", 1, rounded)[0])
	int8s := filepath.Join(t.TempDir(), "int8.onnx")
	check.OK(t, os.WriteFile(int8s, check.Must(g.Encode())(t), 0o644))
	larger := t.TempDir()
	check.OK(t, os.WriteFile(filepath.Join(larger, "vocab.txt"), []byte(strings.Repeat("word\n", 100)),
		0o644))
	for _, c := range []struct {
		name, file, tokenizer string
		positions             int
		want                  string
	}{
		{"no such file", "nowhere.onnx", tokenizer, 24, "nowhere.onnx"},
		{"no graph", filepath.Join(tokenizer, "vocab.txt"), tokenizer, 24, "vocab.txt: onnx: "},
		{"no length", good, tokenizer, 0, "the longest text"},
		{"another tokenizer", good, larger, 24, "64 columns, the tokenizer 100 tokens"},
		{"a tokenizer of another family", filepath.Join(exportFixtures, "sdpa-14.onnx"),
			"../tokenize/testdata/unconverted/roberta", 24, "the tokenizer has 481 tokens, the model embeds 64"},
		{"no tokenizer", good, t.TempDir(), 24, "no tokenizer files"},
		{"an input of something else", altered("eager-11.onnx", "token_type_ids", "pixel_value_id"), tokenizer, 24,
			`input "pixel_value_id" is not one of`},
		{"weights that are missing",
			altered("external-14.onnx", "never", "never", "bert.embeddings", "bert_embeddings"), tokenizer, 24,
			"weights is missing"},
		{"numbers that depend on other texts", int8s, tokenizer, 24, "): an operator that " +
			"rounds by the largest number of all texts of a call"},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := &models.Store{Dir: filepath.Join(t.TempDir(), "models")}
			_, err := lm.Import(t.Context(), store, c.file, "exported", c.tokenizer, c.positions)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
			if entries, err := store.List(); err != nil || len(entries) != 1 {
				t.Errorf("stored %v, %v", entries, err)
			}
		})
	}
}

// unfitWeights is an exported graph with weights that are no numbers.
func unfitWeights(t *testing.T) *models.Bundle {
	t.Helper()
	dir := t.TempDir()
	check.OK(t, os.CopyFS(dir, importGraph(t, filepath.Join(exportFixtures, "external-14.onnx")).FS()))
	check.OK(t, os.Remove(filepath.Join(dir, "manifest.json"))) // of the good weights
	data := filepath.Join(dir, "external-14.onnx_data")
	content := check.Must(os.ReadFile(data))(t)
	for i := range len(content) / 8 {
		copy(content[4*i:], "\x00\x00\xc0\x7f")
	}
	check.OK(t, os.WriteFile(data, content, 0o644))
	return check.Must(models.Open(dir))(t)
}

// A graph with a weight that is no number fills nothing.
func TestImportedUnfitWeights(t *testing.T) {
	m := openBundle(t, unfitWeights(t), 4)
	_, err := m.LogProbabilities(t.Context(), []lm.Row{{IDs: []int{2, 6, 4, 8, 3}, Positions: []int{2}}})
	check.Says(t, err, "the model computes what is no number (NaN): its weights are damaged")
}

// TestImportedSegments: the ids of segments that reach a graph are those of the
// exporter's configuration. The graph's logit of token v is v times the
// segment.
func TestImportedSegments(t *testing.T) {
	g := onnx.New("segments")
	rows, tokens := onnx.Symbol("batch"), onnx.Symbol("sequence")
	g.Input("input_ids", onnx.Int64, rows, tokens)
	segments := g.Input("token_type_ids", onnx.Int64, rows, tokens)
	g.Output("logits", g.Mul(g.Cast(g.Reshape(segments, rows, tokens, onnx.Fixed(1)), onnx.Float),
		g.Cast(g.Range(onnx.Fixed(64)), onnx.Float)))
	content := check.Must(g.Encode())(t)
	for config, want := range map[string][]float64{
		`{"model_type": "bert", "type_vocab_size": 2}`:    {0, 0, 0, 0, 1, 1, 1},
		`{"model_type": "bert", "type_vocab_size": 1}`:    {0, 0, 0, 0, 0, 0, 0},
		`{"model_type": "roberta", "type_vocab_size": 2}`: {0, 0, 0, 0, 0, 0, 0},
		`{}`: {0, 0, 0, 0, 0, 0, 0},
	} {
		dir := t.TempDir()
		check.OK(t, errors.Join(os.CopyFS(dir, os.DirFS(filepath.Join(exportFixtures, "tokenizer"))),
			os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600),
			os.WriteFile(filepath.Join(dir, "model.onnx"), content, 0o600)))
		bundle, err := lm.Import(t.Context(), &models.Store{Dir: t.TempDir()}, filepath.Join(dir, "model.onnx"),
			"segments", dir, 24)
		check.OK(t, err)
		m := check.Must(lm.Open(t.Context(), bundle, lm.Options{Device: "cpu", MaskID: 4, SeparatorID: 3}))(t)
		for position, segment := range want {
			row := lm.Row{IDs: []int{2, 6, 7, 3, 4, 8, 3}, Positions: []int{position}}
			logp := check.Must(m.LogProbabilities(t.Context(), []lm.Row{row}))(t)
			if d := float64(logp[0][0][63] - logp[0][0][0]); math.Abs(d-63*segment) > 1e-4 {
				t.Errorf("%s: token %d is of segment %v, want %v", config, position, d/63, segment)
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestImportTries: a graph that can be read and does not run is refused, and changes
// nothing in the store.
func TestImportTries(t *testing.T) {
	good := check.Must(os.ReadFile(filepath.Join(exportFixtures, "eager-11.onnx")))(t)
	version := protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), 1<<31)
	newer := protowire.AppendBytes(protowire.AppendTag(slices.Clone(good), 8, protowire.BytesType), version)
	g := onnx.New("large")
	rows, tokens := onnx.Symbol("batch"), onnx.Symbol("sequence")
	ids := g.Input("input_ids", onnx.Int64, rows, tokens)
	// The size is the tokens' own, so that nothing is known of it before.
	size := g.Apply("Add", 1, []*onnx.Value{g.Apply("ReduceMax", 1, []*onnx.Value{ids},
		onnx.Attribute{Name: "keepdims", Value: int64(0)})[0], g.Ints(1 << 40)})[0]
	size = g.Apply("Reshape", 1, []*onnx.Value{size, g.Ints(1)})[0]
	large := g.Apply("Expand", 1, []*onnx.Value{g.Scalar(0), size})[0]
	sum := g.Apply("ReduceSum", 1, []*onnx.Value{large})[0]
	logits := g.Mul(g.Cast(g.Reshape(ids, rows, tokens, onnx.Fixed(1)), onnx.Float),
		g.Cast(g.Range(onnx.Fixed(64)), onnx.Float))
	g.Output("logits", g.Add(logits, g.Reshape(sum, onnx.Fixed(1))))
	for name, content := range map[string][]byte{"a version that no library knows": newer,
		"more memory than there is": check.Must(g.Encode())(t)} {
		store := &models.Store{Dir: t.TempDir()}
		file := filepath.Join(t.TempDir(), "model.onnx")
		take := func(content []byte) error {
			check.OK(t, os.WriteFile(file, content, 0o600))
			_, err := lm.Import(t.Context(), store, file, "mine", filepath.Join(exportFixtures, "tokenizer"), 24)
			return err
		}
		check.OK(t, take(good))
		before := check.Must(store.Find("mine"))(t)
		err := take(content)
		if err == nil || !strings.HasPrefix(err.Error(), file+" does not run: ") ||
			strings.Contains(err.Error(), store.Dir) {
			t.Errorf("%s: error %v", name, err)
		}
		after, err := store.Find("mine")
		if err != nil || after.Revision != before.Revision {
			t.Errorf("%s: the store has %s, and had %s, error %v", name, after.Revision, before.Revision, err)
		}
		left := check.Must(filepath.Glob(filepath.Join(store.Dir, "*", "*")))(t)
		if len(left) != 2 { // the model, and the lock
			t.Errorf("%s: the store holds %q", name, left)
		}
	}
}
