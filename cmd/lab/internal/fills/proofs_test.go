package fills

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"testing"

	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/infill"
	"infill/internal/check"
	"infill/internal/eval/corpus"
)

// TestProofs: the least rows are those of a walk over all beginnings that are
// as likely as the last fill, by the model alone. The walk finds as many fills
// as were asked for, and no fewer rows prove them.
func TestProofs(t *testing.T) {
	const seed, sentences = 3, 4
	s := study(t, "proofs", "texts", calibrationTexts, "sentences", strconv.Itoa(sentences), "blanks", "1,2,3",
		"k", "1,3")
	report := labtest.Studied(t, s, lab.StudyOptions{Seed: seed})
	model := openRaw(t)
	filler := check.Must(infill.Open(infill.OpenOptions{}))(t)
	defer filler.Close()
	text := check.Must(corpus.Read("sentences.txt", calibrationTexts, nil, ""))(t)
	for _, c := range report.Cells {
		blanks := check.Must(strconv.Atoi(c.Labels.Value("blanks")))(t)
		k := check.Must(strconv.Atoi(c.Labels.Value("k")))(t)
		least, rows := 0.0, 0.0
		for _, p := range check.Must(maskWords(t.Context(), filler, text, sentences, blanks, seed))(t) {
			template := check.Must(model.tokenizer.Template(p.Template))(t)
			result := check.Must(filler.Fill(t.Context(), infill.Request{Template: p.Template, Top: k}, nil))(t)
			rows += float64(result.Stats.ModelRows) / sentences
			last := result.Fills[k-1].LogLikelihood
			fills, beginnings := model.walk(t, template.IDs, template.Slots, last-1e-5)
			least += float64(beginnings) / sentences
			slices.SortFunc(fills, func(a, b begun) int { return cmp.Compare(a.logp, b.logp) })
			if len(fills) != k || !nearly(fills[0].logp, last) {
				t.Errorf("%s: the walk finds %v, the proof ends with %v", p.Template, fills, last)
			}
		}
		if got := c.Numbers; got["proven"] != sentences || math.Abs(got["least"]-least) > 1e-9 ||
			math.Abs(got["rows"]-rows) > 1e-9 || got["rows"] < got["least"] {
			t.Errorf("%v: %v; the walk has %v least rows, and the proofs take %v", c.Labels, got, least, rows)
		}
		if blanks == 1 && (c.Numbers["least"] != 1 || c.Numbers["rows"] != 1) {
			t.Errorf("%v: %v", c.Labels, c.Numbers)
		}
	}
	// A budget of one row proves nothing of three blanks.
	short := labtest.Studied(t, study(t, "proofs", "texts", calibrationTexts, "sentences", "3", "blanks", "3", "k", "5",
		"budget", "1"), lab.StudyOptions{Seed: seed})
	if n := short.Cells[0].Numbers["proven"]; n != 0 {
		t.Errorf("%v sentences proven with a row", n)
	}
}
