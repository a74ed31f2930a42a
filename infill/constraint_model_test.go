package infill_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"infill/infill"
)

// open is a small model.
func open(t *testing.T) *infill.Filler {
	t.Helper()
	f, err := infill.Open(infill.OpenOptions{Model: mini, Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestWordsOnModel: on a real model, lists of words of two pieces and of one
// are drawn from the law of the enumerated fills, through the whole pipeline.
func TestWordsOnModel(t *testing.T) {
	f := open(t)
	const template = "the [MASK:2] stood by the [MASK] ."
	o := chainOptions()
	o.Chains, o.Steps, o.Top, o.Seed = 100, 300, 1000, 3
	o.Constraints = infill.Constraints{Words: map[int][]string{
		1: {"old man", "young woman", "dark house", "white horse", "stone wall"},
		2: {"river", "door", "window", "sea", "fire"},
	}}
	hot := o
	hot.Temperature = 20
	all, err := f.Fill(t.Context(), template, hot, nil)
	if err != nil {
		t.Fatal(err)
	}
	var fills [][]int
	for _, s := range all.Fills {
		fills = append(fills, s.TokenIDs)
	}
	if len(fills) != 25 {
		t.Fatalf("%d fills were drawn at a high temperature, want all 25", len(fills))
	}
	energies, err := f.LogLikelihoods(t.Context(), template, o, fills)
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	energy := map[string]float64{}
	for i, u := range energies {
		total += math.Exp(u)
		energy[fmt.Sprint(fills[i])] = u
	}
	for _, sampler := range []string{"dmala", "gwg", "lb-1"} {
		t.Run(sampler, func(t *testing.T) {
			o := o
			o.Sampler = sampler
			result, err := f.Fill(t.Context(), template, o, nil)
			if err != nil {
				t.Fatal(err)
			}
			distance, found := 0.0, 0.0
			for _, s := range result.Fills {
				u := energy[fmt.Sprint(s.TokenIDs)]
				distance += math.Abs(s.Frequency-math.Exp(u)/total) / 2
				found += math.Exp(u) / total
				if math.Abs(s.LogLikelihood-u) > 1e-5 {
					t.Errorf("%v: U %v, want %v", s.Values, s.LogLikelihood, u)
				}
			}
			if distance += (1 - found) / 2; distance > 0.05 {
				t.Errorf("total variation %.3f over 25 fills", distance)
			}
		})
	}
}

// TestScoreOnModel: by words, the score of a fill is the mean over its words of what
// scoring the whole text from left to right gives the tokens of the blank.
func TestScoreOnModel(t *testing.T) {
	f := open(t)
	o := chainOptions()
	o.Seed, o.LengthScore = 2, "word-l2r"
	o.Constraints = infill.Constraints{Words: map[int][]string{1: {"london", "new york", "a small hooligan",
		"hooligan"}}}
	result, err := f.Fill(t.Context(), "they lived in [MASK] .", o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Fills) != 4 {
		t.Fatalf("%d fills, want 4", len(result.Fills))
	}
	pieces := 0
	for _, s := range result.Fills {
		whole, err := f.Score(t.Context(), s.Text, "l2r")
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, token := range whole.Tokens {
			if token.Span[0] >= s.Spans[0][0] && token.Span[1] <= s.Spans[0][1] {
				sum += token.LogProb
				pieces++
			}
		}
		if want := sum / float64(len(strings.Fields(s.Values[0]))); math.Abs(*s.Score-want) > 1e-4 {
			t.Errorf("%v: score %v, want %v", s.Values, *s.Score, want)
		}
	}
	if pieces < 10 {
		t.Errorf("the fills have %d pieces: no word is cut into several", pieces)
	}
}
