package lm_test

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"infill/internal/check"
	"infill/internal/modelstest"
	"infill/internal/safetensors"
	"infill/lm"
	"infill/models"
	"infill/tokenize"
)

var update = flag.Bool("update", false, "write the tables of ../docs again")

// A bundle's tokenizer and its graph fit: a template of every family can be
// filled, and its text comes back. So it is with a model that was published
// without tokenizer.json, and imported: byte-level BPE in vocab.json and
// merges.txt.
func TestFamilyTemplates(t *testing.T) {
	bundles := map[string]*models.Bundle{"unconverted": unconverted(t)}
	for _, r := range references(t) {
		bundles[r.Name] = r.Bundle
		if tokenizer := check.Must(tokenize.Load(r.Bundle.FS()))(t); tokenizer.MaskID() != r.Mask {
			t.Errorf("%s: the mask is %d, want %d", r.Name, tokenizer.MaskID(), r.Mask)
		}
	}
	for name, bundle := range bundles {
		t.Run(name, func(t *testing.T) {
			tokenizer := check.Must(tokenize.Load(bundle.FS()))(t)
			if tokenizer.VocabularySize() > bundle.Config.VocabularySize {
				t.Fatalf("the tokenizer has %d tokens, the model %d", tokenizer.VocabularySize(),
					bundle.Config.VocabularySize)
			}
			first, second := "he had ", " me "
			template := check.Must(tokenizer.Template(first + "[MASK]" + second + "[MASK]"))(t)
			fillable := tokenizer.Fillable()
			target := targetOf(t, openBundle(t, bundle, tokenizer.MaskID()), template.IDs, template.Slots,
				lm.TargetOptions{Support: [][]int{fillable, fillable}})
			logp := make([]float64, 2*len(fillable))
			check.OK(t, target.LogMaskedConditionals(t.Context(), []int{0, 0}, []bool{true, true}, logp))
			best := func(row []float64) int { return fillable[slices.Index(row, slices.Max(row))] }
			filled := template.Fill([]int{best(logp[:len(fillable)]), best(logp[len(fillable):])})
			if !strings.HasPrefix(filled.Text, strings.TrimSpace(first)) ||
				!strings.Contains(filled.Text, strings.TrimSpace(second)) || strings.Contains(filled.Text, "[MASK]") {
				t.Errorf("filled: %q", filled.Text)
			}
		})
	}
}

// unconverted imports a small RoBERTa with the tokenizer's files of
// tokenize/testdata/unconverted.
func unconverted(t *testing.T) *models.Bundle {
	files, dir := os.DirFS("../tokenize/testdata/unconverted/roberta"), t.TempDir()
	config := fmt.Sprintf(`{"model_type": "roberta", "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
		"intermediate_size": 32, "max_position_embeddings": 40, "vocab_size": %d}`,
		check.Must(tokenize.Load(files))(t).VocabularySize())
	check.OK(t, modelstest.Write(dir, config, modelstest.Options{Spread: 0.3}))
	for _, name := range []string{"vocab.txt", "tokenizer_config.json"} {
		check.OK(t, os.Remove(filepath.Join(dir, name)))
	}
	for _, name := range []string{"vocab.json", "merges.txt"} {
		content := check.Must(fs.ReadFile(files, name))(t)
		check.OK(t, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
	return check.Must((&models.Store{Dir: t.TempDir()}).Import(t.Context(), dir, "my/model"))(t)
}

// worstDifference is the largest |x − reference|/(1 + |reference|) over
// log-probabilities and gradients.
func worstDifference(t *testing.T, m *lm.MaskedLM, r reference) float64 {
	t.Helper()
	ctx, v, width := context.Background(), m.Vocabulary(), r.Bundle.Config.EmbeddingSize
	words, _ := r.Bundle.Tensor(r.Bundle.Config.Layout().Words.Name)
	embedding := check.Must(check.Must(safetensors.Open(words.Path))(t).Float32s(words.Name))(t)
	worst := 0.0
	compare := func(got, want float64) {
		if d := math.Abs(got-want) / (1 + math.Abs(want)); !(d <= worst) {
			worst = d
		}
	}
	for _, c := range r.Cases {
		slots := len(c.Slots)
		state, each := make([]int, slots), make([]int, slots)
		for j, s := range c.Slots {
			state[j], each[j] = c.IDs[s], j
		}
		target := targetOf(t, m, c.IDs, c.Slots, lm.TargetOptions{Support: vocabularySupport(v, slots)})
		var states []int // the same state for each slot
		for range slots {
			states = append(states, state...)
		}
		logp := make([]float64, slots*v)
		check.OK(t, target.LogConditionals(ctx, states, each, logp))
		energy, gradient, want := make([]float64, 1), make([]float64, slots*v), 0.0
		check.OK(t, target.EnergyGradient(ctx, state, energy, gradient))
		for j := range slots {
			want += c.LogProbability[j][state[j]]
			for k := range v {
				compare(logp[j*v+k], c.LogProbability[j][k])
				slope := c.LogProbability[j][k]
				for i := range slots {
					for d, x := range c.Gradient[i][j] {
						slope += x * float64(embedding[k*width+d])
					}
				}
				compare(gradient[j*v+k], slope)
			}
		}
		compare(energy[0], want)
	}
	return worst
}

// described holds the columns of the table of families beside the measurements.
var described = []struct{ family, example, tokenizer, missing string }{
	{"bert", "google-bert/bert-base-uncased", "WordPiece", "relative positions (`position_embedding_type`), decoders"},
	{"distilbert", "distilbert/distilbert-base-cased", "WordPiece", ""},
	{"electra", "google/electra-base-generator", "WordPiece", "discriminators: they have no head over the vocabulary"},
	{"roberta", "FacebookAI/roberta-base", "byte-level BPE", "BERTweet's `bpe.codes`"},
	{"xlm-roberta", "FacebookAI/xlm-roberta-base", "Unigram", ""},
	{"camembert", "almanach/camembert-base", "Unigram", "as XLM-R; the graph is RoBERTa's"},
	{"data2vec-text", "facebook/data2vec-text-base", "byte-level BPE", ""},
	{"ernie", "nghuyong/ernie-3.0-base-zh", "WordPiece", ""},
	{"albert", "albert/albert-base-v2", "Unigram", ""},
	{"deberta-v2", "microsoft/deberta-v2-xlarge", "Unigram",
		"absolute attention; `embedding_size`, `attention_head_size` and `conv_groups` other than the usual"},
	{"modernbert", "answerdotai/ModernBERT-base", "byte-level BPE; mmBERT: BPE over characters",
		"scaled rotary positions (`rope_scaling`)"},
}

// Every family on onnxruntime, in single precision, against its reference
// implementation in double precision: conditionals, energy and gradient. The
// table of families in docs/measured/models.md has a row for each, and its
// errors are those measured, within a factor of ten: they depend on the
// machine.
func TestFamilyTable(t *testing.T) {
	const name, command, tolerance = "families", "go test ./lm -run TestFamilyTable -update", 1e-4
	single := map[string]float64{}
	for _, r := range references(t) {
		family, worst := r.Bundle.Config.ModelType, worstDifference(t, openBundle(t, r.Bundle, r.Mask), r)
		if single[family] = max(single[family], worst); !(worst <= tolerance) {
			t.Errorf("%s: largest difference %.1g, more than %g", r.Name, worst, tolerance)
		}
	}
	single["camembert"] = single["roberta"] // under another name, with the same tensors
	var content strings.Builder
	content.WriteString("| family (`model_type`) | for example | tokenizer | error | not " +
		"supported |\n| --- | --- | --- | --- | --- |\n")
	var families []string
	for _, d := range described {
		families = append(families, d.family)
		if single[d.family] == 0 {
			t.Errorf("family %s has no reference values", d.family)
		}
		fmt.Fprintf(&content, "| `%s` | %s | %s | %.0e | %s |\n", d.family, d.example, d.tokenizer,
			single[d.family], d.missing)
	}
	slices.Sort(families)
	if !slices.Equal(families, models.Families()) {
		t.Errorf("the table has %v, there are %v", families, models.Families())
	}

	if *update {
		writeTable(t, name, command, content.String())
		return
	}
	_, written, _ := table(t, name, command)
	for _, d := range described {
		row := regexp.MustCompile("(?m)^\\| `" + d.family + "` \\| " + regexp.QuoteMeta(d.example) + ` \| ` +
			regexp.QuoteMeta(d.tokenizer) + ` \| (\S+) \| ` + regexp.QuoteMeta(d.missing) +
			` \|$`).FindStringSubmatch(written)
		if row == nil {
			t.Errorf("the row of %s is missing or old; run with -update", d.family)
			continue
		}
		stated, err := strconv.ParseFloat(row[1], 64)
		if err != nil || !(single[d.family] <= 10*stated) {
			t.Errorf("%s: the table states an error of %s, measured %.1g", d.family, row[1], single[d.family])
		}
	}
}

// page is where the tables of models are.
var page = filepath.Join("..", "docs", "measured", "models.md")

// table cuts page at the marks "<!-- NAME: COMMAND -->" and "<!-- /NAME -->";
// COMMAND writes what is between them.
func table(t testing.TB, name, command string) (before, content, after string) {
	t.Helper()
	begin, end := "<!-- "+name+": "+command+" -->\n", "<!-- /"+name+" -->\n"
	before, rest, found := strings.Cut(string(check.Must(os.ReadFile(page))(t)), begin)
	content, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no table between %q and %q", page, begin, end)
	}
	return before + begin, content, end + after
}

// writeTable puts content between the marks.
func writeTable(t testing.TB, name, command, content string) {
	t.Helper()
	before, _, after := table(t, name, command)
	check.OK(t, os.WriteFile(page, []byte(before+"\n"+content+"\n"+after), 0o644))
}
