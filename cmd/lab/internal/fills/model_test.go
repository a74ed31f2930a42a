package fills

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/internal/check"
	"infill/internal/logmath"
)

// ownText reads a text of the laboratory.
func ownText(t *testing.T, name string) string {
	t.Helper()
	return string(check.Must(os.ReadFile(filepath.Join("..", "lab", "data", name)))(t))
}

// The texts are enough, have no pair twice, and ask for words that the built-in
// model has.
func TestModelTexts(t *testing.T) {
	pairs := check.Must(minimalPairs(ownText(t, "pairs.txt"), 1))(t)
	kinds, seen := map[string]int{}, map[string]bool{}
	for _, p := range pairs {
		kinds[p.kind]++
		key := p.right + "/" + p.wrong
		if seen[key] || p.right == p.wrong || strings.ContainsAny(key, "$[]|+") {
			t.Errorf("pair %+v", p)
		}
		seen[key] = true
	}
	for _, kind := range []string{"agreement", "determiners", "polarity", "order"} {
		if kinds[kind] < 100 {
			t.Errorf("%d pairs of %s", kinds[kind], kind)
		}
	}
	if len(pairs) != 667 || !slices.Equal(pairs, check.Must(minimalPairs(ownText(t, "pairs.txt"), 1))(t)) {
		t.Errorf("%d pairs, or another list from the same seed", len(pairs))
	}
	model := check.Must(openLanguage(t.Context(), "", &lab.Inputs{}))(t)
	defer model.Close()
	for name, want := range map[string]int{"clozes.tsv": 192, "probes.tsv": 10} {
		lines := check.Must(fieldsOf(ownText(t, name), 3))(t)
		if len(lines) != want {
			t.Errorf("%s: %d lines, want %d", name, len(lines), want)
		}
		for _, line := range lines {
			sentence, answers := line[1], line[2]
			if name == "probes.tsv" {
				sentence, answers = line[0], line[1]+"/"+line[2]
			}
			if template := check.Must(model.tokenizer.Template(sentence))(t); len(template.Slots) != 1 {
				t.Errorf("%s: %q has %d blanks", name, sentence, len(template.Slots))
			}
			if !slices.ContainsFunc(strings.Split(answers, "/"), func(word string) bool {
				_, known := model.tokenizer.ID(word)
				return known
			}) {
				t.Errorf("%s: %q: the model has none of %s", name, sentence, answers)
			}
		}
	}
	for text, want := range map[string]string{
		"agreement: The $person is here.": "line 1: neither",
		"a\n":                             "line 1: neither",
		"$a = b/c\norder: The [$b x|x $b] is here": "line 2: there is no list $b",
	} {
		_, err := minimalPairs(text, 1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// TestMeasurementError: the error is between clusters. With clusters of two
// equal items it is that of half as many items: the deviation of 3, 1, 4, 1, 5,
// 9, 2, 6 is sqrt(52.875/7), over the root of 8.
func TestMeasurementError(t *testing.T) {
	var single, double measurement
	for i, v := range []float64{3, 1, 4, 1, 5, 9, 2, 6} {
		single.add(i, v)
		double.add(i, v)
		double.add(i, v)
	}
	want := math.Sqrt(52.875 / 7 / 8)
	for _, m := range []measurement{single, double} {
		mean, e, clusters := m.estimate(func(v []float64) float64 { return v[0] })
		if mean != 3.875 || math.Abs(e-want) > 1e-12 || clusters != 8 {
			t.Errorf("%v ± %v of %d clusters, want 3.875 ± %v of 8", mean, e, clusters, want)
		}
	}
}

// TestModelStudy: of a sentence, nats are log P of the words that the raw model
// gives, one by one and left to right. A model beside itself has the same
// numbers and no difference, and what is obvious it has right.
func TestModelStudy(t *testing.T) {
	raw := openRaw(t)
	model := newLanguage(raw.MaskedLM, "raw", raw.tokenizer)
	both := []*language{model, model}
	plain := check.Must(model.tokenizer.Plain("the old man opened the door of his house ."))(t)
	text := sharedText{ids: [][]int{plain.IDs}}
	ids := text.ids[0]
	// "old" and "door"
	got := check.Must(mask(t.Context(), both, [][]int{ids, ids}, [][]int{{2, 2}, {6, 6}}))(t)
	two, one := slices.Clone(ids), slices.Clone(ids)
	two[2], two[6], one[6] = model.tokenizer.MaskID(), model.tokenizer.MaskID(), model.tokenizer.MaskID()
	want := -float64(raw.logp(t, 2, two)[0][ids[2]]) - float64(raw.logp(t, 6, one)[0][ids[6]])
	if !nearly(got.nats[0], want) || got.nats[1] != got.nats[0] || got.first[0] != 1 || got.first[1] != 1 {
		t.Errorf("%v nats, %v first; want %v and door first", got.nats, got.first, want)
	}

	all := pairsOf
	pairsOf = func(template int) int { return logmath.Indicator(template%8 == 0) * 2 }
	defer func() { pairsOf = all }()
	s := study(t, "model", "texts", calibrationTexts, "sentences", "3", "words", "3")
	report := labtest.Studied(t, s, lab.StudyOptions{Seed: 1})
	numbers := map[string]map[string]float64{}
	for _, c := range report.Cells {
		lab.Put(&numbers, c.Labels.String(), c.Numbers)
	}
	for name, want := range map[string]map[string]float64{
		"sentences: a word, nats":     {"items": 9, "clusters": 3},
		"sentences: 2 blanks, nats":   {"items": 3, "clusters": 3},
		"pairs, right":                {"items": 28, "clusters": 14, "percent": 100},
		"clozes: grammar, among five": {"items": 52, "clusters": 52, "percent": 100},
		"clozes: fact, first":         {"items": 80, "clusters": 80, "percent": 55},
		"The old man was [MASK]. weak/ill/slow : strong/well/quick": {"log-ratio": -0.07},
	} {
		for number, x := range want {
			if got := numbers[name+" small-uncased repeat 1"][number]; math.Abs(got-x) > 0.06 {
				t.Errorf("%s: %s is %v, the model's card has %v", name, number, got, x)
			}
		}
	}
	_, err := study(t, "model", "texts", calibrationTexts, "sentences", "30").Run(t.Context(), lab.StudyOptions{})
	if err == nil || !strings.Contains(err.Error(), "sentences: 12 of sentences have three words") {
		t.Errorf("30 of 12 sentences: %v", err)
	}
}
