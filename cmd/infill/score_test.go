package main

import (
	"encoding/json"
	"math"
	"testing"

	"infill/infill"
)

// TestSurprisal: a word of one token has the surprisal of a blank in its place,
// with a context and without.
func TestSurprisal(t *testing.T) {
	for _, before := range []string{"", "The sky was grey."} {
		ask := func(to any, args ...string) {
			t.Helper()
			code, out, told := call(t, nil, append(args, "--context", before, "--format", "jsonl", "-q")...)
			if code != 0 {
				t.Fatal(args, told)
			}
			err := json.Unmarshal([]byte(out), to)
			if err != nil {
				t.Fatal(err)
			}
		}
		var score infill.Score
		ask(&score, "score", "It rained all day.")
		var result infill.Result
		ask(&result, "It [MASK] all day.", "--slot", "1=rained")
		word := score.Words[1]
		if word.Word != "rained" || math.Abs(word.LogLikelihood-result.Fills[0].LogLikelihood) > 1e-5 {
			t.Errorf("after %q: %+v, and the blank has %v", before, word, result.Fills[0].LogLikelihood)
		}
	}
}
