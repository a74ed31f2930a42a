package fills

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/infill"
	"infill/internal/check"
	"infill/internal/eval/corpus"
	"infill/internal/picture"
	"infill/lm"
	"infill/models"
	"infill/samplers"
	"infill/tokenize"
)

// calibrationTexts is a file of twelve sentences.
var calibrationTexts = filepath.Join("testdata", "sentences.txt")

// rawModel is a model without a search: only what it says of one slot.
type rawModel struct {
	*lm.MaskedLM
	tokenizer *tokenize.Tokenizer
	words     []int // tokens that are whole words
}

func openRaw(t *testing.T) *rawModel {
	t.Helper()
	bundle := check.Must(models.Open(""))(t)
	tokenizer := check.Must(bundle.Tokenizer())(t)
	model := check.Must(lm.Open(t.Context(), bundle, lm.Options{Device: "cpu", MaskID: tokenizer.MaskID(),
		SeparatorID: tokenizer.SeparatorID()}))(t)
	t.Cleanup(func() { check.OK(t, model.Close()) })
	words := slices.DeleteFunc(tokenizer.Fillable(), func(token int) bool {
		return !tokenizer.Word(token) || tokenizer.Continues(token)
	})
	return &rawModel{model, tokenizer, words}
}

// logp returns log P of every token for one slot of each of ids.
func (m *rawModel) logp(t *testing.T, slot int, ids ...[]int) (logp [][]float32) {
	t.Helper()
	var rows []lm.Row
	for _, of := range ids {
		rows = append(rows, lm.Row{IDs: of, Positions: []int{slot}})
	}
	for _, of := range check.Must(m.LogProbabilities(t.Context(), rows))(t) {
		logp = append(logp, of[0])
	}
	return logp
}

// chain returns log P of tokens by the chain rule, in the order of the slots.
func (m *rawModel) chain(t *testing.T, masked, slots, tokens []int) (sum float64) {
	t.Helper()
	ids := slices.Clone(masked)
	for i, slot := range slots {
		sum += float64(m.logp(t, slot, ids)[0][tokens[i]])
		ids[slot] = tokens[i]
	}
	return sum
}

// begun holds tokens of the first slots, and their log P.
type begun struct {
	tokens []int
	logp   float64
}

// walk returns every fill of words whose log P is at least least, and the number
// of their beginnings, each of which has a row: each word that has it in the
// first slot, then in the next.
func (m *rawModel) walk(t *testing.T, masked, slots []int, least float64) (fills []begun, rows int) {
	t.Helper()
	fills = []begun{{}}
	for _, slot := range slots {
		var asked [][]int
		for _, b := range fills {
			ids := slices.Clone(masked)
			for i, token := range b.tokens {
				ids[slots[i]] = token
			}
			asked = append(asked, ids)
		}
		rows += len(asked)
		var longer []begun
		for i, row := range m.logp(t, slot, asked...) {
			for _, token := range m.words {
				own := fills[i].logp + float64(row[token])
				if own >= least {
					longer = append(longer, begun{append(slices.Clone(fills[i].tokens), token), own})
				}
			}
		}
		fills = longer
	}
	return fills, rows
}

// TestCalibration: the numbers of the study are those of an enumeration of all
// fills, with the model alone.
func TestCalibration(t *testing.T) {
	const seed, sentences, least = 5, 10, 0.03
	s := study(t, "calibration", "texts", calibrationTexts, "sentences", strconv.Itoa(sentences), "blanks", "1,2,3")
	report := labtest.Studied(t, s, lab.StudyOptions{Seed: seed})
	if want := 3 * 13; len(report.Cells) != want {
		t.Fatalf("%d cells, want %d", len(report.Cells), want)
	}
	model := openRaw(t)
	filler := check.Must(infill.Open(infill.OpenOptions{}))(t)
	defer filler.Close()
	texts := check.Must(corpus.Read("sentences.txt", calibrationTexts, nil, ""))(t)
	for blanks := 1; blanks <= 3; blanks++ {
		chosen := check.Must(texts.Select(corpus.SelectOptions{Sentences: sentences, Mask: corpus.Mask{Count: blanks},
			Seed: seed, Word: func(word string) bool { return oneToken(filler, word) }}))(t)
		fills, said, right := map[string]float64{}, map[string]float64{}, map[string]float64{}
		var forth, back, apart []float64
		for _, p := range chosen.Prompts {
			template := check.Must(model.tokenizer.Template(p.Template))(t)
			var truth []int
			for _, word := range p.Words {
				truth = append(truth, check.Must(model.tokenizer.Candidate(word))(t)...)
			}
			masked, slots := template.IDs, template.Slots
			walked, _ := model.walk(t, masked, slots, math.Log(least))
			for _, f := range walked {
				p := math.Exp(f.logp)
				for _, name := range partsOf(p) {
					fills[name]++
					said[name] += p
					if slices.Equal(f.tokens, truth) {
						right[name]++
					}
				}
			}
			l2r := model.chain(t, masked, slots, truth)
			backwards := slices.Clone(truth)
			slices.Reverse(backwards)
			ends := slices.Clone(slots)
			slices.Reverse(ends)
			r2l := model.chain(t, masked, ends, backwards)
			forth = append(forth, l2r)
			back = append(back, r2l)
			apart = append(apart, math.Abs(l2r-r2l))
		}
		slices.Sort(apart)
		for _, c := range report.Cells {
			if c.Labels.Value("blanks") != strconv.Itoa(blanks) {
				continue
			}
			part := c.Labels.Value("forecast")
			want := map[string]float64{"fills": fills[part]}
			if fills[part] > 0 {
				want["said"] = 100 * said[part] / fills[part]
				want["right"] = 100 * right[part] / fills[part]
			}
			if part == "all" {
				mean, e := samplers.MeanAndError(forth)
				want = map[string]float64{"sentences": sentences, "unproven": 0, "log-p": mean}
				if !nearly(c.Errors["log-p"], e) {
					t.Errorf("%d blanks: log P ± %v, want %v", blanks, c.Errors["log-p"], e)
				}
				if blanks > 1 {
					want["log-p-r2l"], _ = samplers.MeanAndError(back)
					want["apart-50"] = apart[4] // the fifth of ten
					want["apart-90"] = apart[8]
					want["apart-99"] = apart[9]
				}
			}
			for name, value := range want {
				got, known := c.Numbers[name]
				if !known || !nearly(got, value) {
					t.Errorf("%d blanks, %s: %s is %v (%v), the enumeration has %v", blanks, part, name, got, known,
						value)
				}
			}
		}
	}
}

// nearly compares rows that were computed in different batches.
func nearly(a, b float64) bool { return check.SameNats(a, b, 10*int(max(1, math.Abs(b)))) }

// partsOf names the parts of a probability, as the study's rows do.
func partsOf(p float64) []string {
	tenth := min(int(10*p), 9)
	names := []string{fmt.Sprintf("%d to %d %%", 10*tenth, 10*tenth+10)}
	switch {
	case p < 0.1:
		return []string{"3 to 10 %"}
	case p < 0.3:
		return append(names, "10 to 30 %")
	}
	return append(names, "30 to 100 %")
}

// TestCalibrationErrors: shares of fills whose errors are known.
func TestCalibrationErrors(t *testing.T) {
	// A hundred sentences of one fill, half of them right, and then each twice.
	once, twice, hits := slices.Repeat([]float64{1}, 100), slices.Repeat([]float64{2}, 100), make([]float64, 100)
	for i := range 50 {
		hits[i] = 1
	}
	value, e := ratio(hits, once)
	if value != 0.5 || math.Abs(e-0.5/math.Sqrt(99)) > 1e-12 {
		t.Errorf("%v ± %v", value, e)
	}
	if n := independentDraws(value, e, 100, 100); math.Abs(n-99) > 1e-9 {
		t.Errorf("%v independent draws of 100", n)
	}
	for i := range hits {
		hits[i] *= 2
	}
	value, e = ratio(hits, twice)
	if n := independentDraws(value, e, 200, 100); value != 0.5 || math.Abs(n-99) > 1e-9 {
		t.Errorf("pairs that are right together: %v ± %v, %v draws", value, e, n)
	}
	value, e = ratio(twice, twice)
	if n := independentDraws(value, e, 200, 100); value != 1 || !math.IsNaN(e) || n != 100 {
		t.Errorf("all right: %v ± %v, %v draws", value, e, n)
	}
}

// TestCalibrationText: the report names what its numbers depend on, is the
// same again, and another text is another signature.
func TestCalibrationText(t *testing.T) {
	text := func(sentences string) string {
		s := study(t, "calibration", "texts", calibrationTexts, "sentences", sentences,
			"blanks", "1,2")
		return labtest.Studied(t, s, lab.StudyOptions{Seed: 2, Version: "v1"}).Text()
	}
	first := text("4")
	for _, want := range []string{"calibration of small-uncased: fills of sentences.txt\n", " ± ", "|sentences:4|",
		"|model:small-uncased@", "|texts:sentences.txt@", "|seed:2|version:v1\n"} {
		if !strings.Contains(first, want) {
			t.Errorf("no %q in:\n%s", want, first)
		}
	}
	if again := text("4"); again != first {
		t.Errorf("the same again:\n%s\nat first:\n%s", again, first)
	}
	if other := text("5"); other == first {
		t.Error("five sentences give the report of four")
	}
	// A cell that is all of two tables stands in the second alone.
	if n := strings.Count(first, "\n  sentences.txt       1       all "); n != 1 {
		t.Errorf("%d rows of all sentences with one blank:\n%s", n, first)
	}
}

// TestCalibrationTogether: of two files, the cells of both together have the
// fills of each, and the pictures have the tenths of each with the intervals of
// the table.
func TestCalibrationTogether(t *testing.T) {
	text := string(check.Must(os.ReadFile(calibrationTexts))(t))
	other := filepath.Join(t.TempDir(), "other.txt")
	check.OK(t, os.WriteFile(other, []byte(strings.ReplaceAll(text, "the ", "a ")), 0o600))
	s := study(t, "calibration", "texts", calibrationTexts+","+other, "sentences", "8", "blanks", "1")
	report := labtest.Studied(t, s, lab.StudyOptions{Seed: 2})
	fills := map[string]float64{}
	for _, c := range report.Cells {
		text, part := c.Labels.Value("texts"), c.Labels.Value("forecast")
		if part != "all" && text != together {
			fills[part] += c.Numbers["fills"]
		}
		if part != "all" && text == together && c.Numbers["fills"] != fills[part] {
			t.Errorf("%s: %v fills together, want %v", part, c.Numbers["fills"], fills[part])
		}
	}
	for _, c := range report.Cells {
		if c.Labels.Value("forecast") != "all" {
			continue
		}
		points := c.Curves["calibration"]
		for _, of := range report.Cells {
			x, known := of.Numbers["said"]
			wide := strings.HasSuffix(of.Labels.Value("forecast"), "0 to 30 %") ||
				of.Labels.Value("forecast") == "30 to 100 %"
			if of.Labels.Value("texts") != c.Labels.Value("texts") || c.Labels.Value("texts") == together ||
				!known || wide && of.Labels.Value("forecast") != "20 to 30 %" {
				continue
			}
			want := lab.Sample{X: x, Y: of.Numbers["right"], Low: of.Numbers["low"], High: of.Numbers["high"]}
			if len(points) == 0 || points[0] != want {
				t.Fatalf("%v: the picture has %v, the table %v", of.Labels, points, want)
			}
			points = points[1:]
		}
		if len(points) > 0 {
			t.Errorf("%v: the picture has more: %v", c.Labels, points)
		}
	}
	drawn := string(check.Must(picture.SVG(check.Must(report.Draw())(t)["calibration-1-all"]))(t))
	for _, want := range []string{">sentences.txt<", ">other.txt<", ">as said<", "95 % interval", ">blanks 1<"} {
		if !strings.Contains(drawn, want) {
			t.Errorf("the picture has no %s", want)
		}
	}
	if strings.Contains(drawn, together) {
		t.Error("the picture repeats the texts together")
	}
	_, err := filesOf("a/x.txt,b/x.txt")
	if err == nil {
		t.Error("two files of one name were taken")
	}
}

func study(t *testing.T, name string, settings ...string) *lab.Study {
	t.Helper()
	return labtest.Study(t, Studies(), name, settings...)
}
