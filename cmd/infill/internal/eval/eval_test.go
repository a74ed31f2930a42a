package eval

import (
	"testing"

	"infill/internal/eval"
)

func TestDescribe(t *testing.T) {
	left := 7500.
	for want, step := range map[string]eval.Progress{
		"sentence 3 of 20, 750 of 5500 chains (123/s), 2h05m left, dmala:step-size=0.3 toy": {Model: "toy",
			Method: "dmala:step-size=0.3", Sentence: 2, Sentences: 20, Done: 30, Total: 220, Chains: 25,
			ChainsPerSecond: 123.4, SecondsLeft: &left},
		"all 40 chains of 4 sentences are done: scoring": {Sentences: 4, Done: 8, Total: 8, Chains: 5, Scoring: true},
		"sentence 1 of 4, 0 of 40 chains, gibbs tiny": {Model: "tiny", Method: "gibbs", Sentences: 4, Total: 8,
			Chains: 5},
	} {
		if got := describe(step, 2); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
