package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// The texts are enough, hold no pair twice, and ask for words that the built-in model has.
func TestModelTexts(t *testing.T) {
	pairs, err := minimalPairs(pairsText, 1)
	if err != nil {
		t.Fatal(err)
	}
	kinds, seen := map[string]int{}, map[string]bool{}
	for _, p := range pairs {
		kinds[p.kind]++
		if key := p.right + "/" + p.wrong; seen[key] || p.right == p.wrong || strings.ContainsAny(key, "$[]|+") {
			t.Errorf("pair %+v", p)
		} else {
			seen[key] = true
		}
	}
	for _, kind := range []string{"agreement", "determiners", "polarity", "order"} {
		if kinds[kind] < 100 {
			t.Errorf("%d pairs of %s", kinds[kind], kind)
		}
	}
	if len(pairs) < 500 {
		t.Errorf("%d pairs, want 500", len(pairs))
	}
	again, err := minimalPairs(pairsText, 1)
	if err != nil || !slices.Equal(pairs, again) {
		t.Errorf("a seed gives two lists of pairs, %v", err)
	}
	model, err := openLanguage(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	for what, text := range map[string]string{"clozes": clozesText, "probes": probesText} {
		lines, err := fields(text, 3)
		if want := map[string]int{"clozes": 150, "probes": 10}[what]; err != nil || len(lines) < want {
			t.Fatalf("%s: %d, %v", what, len(lines), err)
		}
		for _, line := range lines {
			sentence, answers := line[1], line[2:]
			if what == "probes" {
				sentence, answers = line[0], line[1:]
			}
			template, err := model.tokenizer.Template(sentence)
			if err != nil || len(template.Slots) != 1 {
				t.Errorf("%s: %q: %v", what, sentence, err)
			}
			known := 0
			for _, answer := range strings.Split(strings.Join(answers, "/"), "/") {
				if _, ok := model.tokenizer.ID(answer); ok {
					known++
				}
			}
			if known == 0 {
				t.Errorf("%s: %q: the model has none of the words %q", what, sentence, answers)
			}
		}
	}
	for text, want := range map[string]string{
		"agreement: The $person is here.": "line 1: neither",
		"a\n":                             "line 1: neither",
		"$a = b/c\norder: The [$b x|x $b] is here": "line 2: there is no list $b",
	} {
		if _, err := minimalPairs(text, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// A cell is the mean and the standard error between clusters: with clusters of two equal items it is that of half as
// many items.
func TestCell(t *testing.T) {
	single, double := measurement{format: "%.6f", scale: 1}, measurement{format: "%.6f", scale: 1}
	values, mean, squares := []float64{3, 1, 4, 1, 5, 9, 2, 6}, 31.0/8, 0.0
	for i, v := range values {
		single.add(i, v)
		double.add(i, v)
		double.add(i, v)
		squares += (v - mean) * (v - mean)
	}
	value := func(v []float64) float64 { return v[0] }
	want := fmt.Sprintf("3.875000 ± %.6f", math.Sqrt(squares/7/8))
	if got := single.cell(value); got != want || double.cell(value) != want {
		t.Errorf("%s and %s, want %s", got, double.cell(value), want)
	}
}

// A model compared with itself: the same numbers twice, and no difference. What is obvious it has right.
func TestCompareWithItself(t *testing.T) {
	model, err := openLanguage(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	all := []*language{model, model}
	const text = "the old man opened the door of his house .\nshe said that it was too late to go home , and `` so " +
		"did he '' .\nit is @@UNKNOWN@@\n"
	found, err := measureSentences(t.Context(), all, corpus{"tales", text}, modelOptions{sentences: 1, words: 3}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	pairs, err := measurePairs(t.Context(), all,
		[]pair{{"agreement", "The boys are here.", "The boys is here.", 1},
			{"order", "It lay on the floor.", "It lay the on floor.", 2}}, &list)
	if err != nil {
		t.Fatal(err)
	}
	clozes, err := measureClozes(t.Context(), all,
		"grammar\tHe wants [MASK] go home.\tto\nfact\tShe lives in New [MASK].\tzealand/york\n", &list)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range slices.Concat(found, pairs, clozes) {
		for _, v := range m.values {
			if v[0] != v[1] || v[0] < 0 {
				t.Errorf("%s: %v", m.name, v)
			}
			if m.scale == 100 && !strings.Contains(m.name, "a word") && v[0] != 1 {
				t.Errorf("%s: wrong, in\n%s", m.name, list.String())
			}
		}
	}
	if len(found[0].values) != 3 || len(found[2].values) != 1 || !(found[2].values[0][0] > 0) {
		t.Errorf("%d words, %d pairs of blanks", len(found[0].values), len(found[2].values))
	}
	// Two sentences can be taken; the third has an unknown word and one other.
	if _, err := measureSentences(t.Context(), all, corpus{"tales", text}, modelOptions{sentences: 3, words: 3},
		1); err == nil {
		t.Error("3 sentences were asked for, and 2 can be taken")
	}
}
