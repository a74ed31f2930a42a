package infill_test

import (
	"fmt"
	"math"
	"testing"

	"infill/infill"
	"infill/internal/check"
	"infill/samplers"
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
	request := func(sampler string, temperature float64) infill.Request {
		c := infill.Chains{Sampler: parsedSampler(t, sampler)}
		c.Samples, c.Steps, c.Temperature = 100, 300, temperature
		return infill.Request{Template: template, Top: 1000, Seed: 3, Method: c, Fit: infill.Fit{Slots: infill.Lists{
			1: {"old man", "young woman", "dark house", "white horse", "stone wall"},
			2: {"river", "door", "window", "sea", "fire"},
		}}}
	}
	all, err := f.Fill(t.Context(), request("dmala", 20), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Fills) != 25 {
		t.Fatalf("%d fills were drawn at a high temperature, want all 25", len(all.Fills))
	}
	total := 0.0
	energy := map[string]float64{}
	for _, s := range all.Fills {
		total += math.Exp(s.LogLikelihood)
		energy[fmt.Sprint(s.TokenIDs)] = s.LogLikelihood
	}
	for _, sampler := range []string{"dmala", "gwg", "lb-1"} {
		t.Run(sampler, func(t *testing.T) {
			result, err := f.Fill(t.Context(), request(sampler, 1), nil)
			if err != nil {
				t.Fatal(err)
			}
			distance, found := 0.0, 0.0
			for _, s := range result.Fills {
				u := energy[fmt.Sprint(s.TokenIDs)]
				distance += math.Abs(*s.Share-math.Exp(u)/total) / 2
				found += math.Exp(u) / total
				if !check.SameNats(s.LogLikelihood, u, len(s.TokenIDs)) {
					t.Errorf("%v: U %v, want %v", s.Values, s.LogLikelihood, u)
				}
			}
			if distance += (1 - found) / 2; distance > 0.05 {
				t.Errorf("total variation %.3f over 25 fills", distance)
			}
		})
	}
}

// parsedSampler reads a sampler.
func parsedSampler(t testing.TB, text string) samplers.Sampler {
	t.Helper()
	return check.Must(samplers.Parse(text))(t)
}
