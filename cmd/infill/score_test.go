package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"infill/infill"
	"infill/internal/check"
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
		if word.Word != "rained" || !check.SameNats(word.LogLikelihood, result.Fills[0].LogLikelihood, 1) {
			t.Errorf("after %q: %+v, and the blank has %v", before, word, result.Fills[0].LogLikelihood)
		}
	}
}

// TestBitsAreSurprisal: infill gaps prints for each word the bits that infill score prints
// with --words.
func TestBitsAreSurprisal(t *testing.T) {
	const text = "The gate was open, and her mother-in-law walked slowly into the garden."
	numbers := func(word, number string, args ...string) (found []string, bits []float64) {
		t.Helper()
		code, out, told := call(t, nil, append(args, "--format", "csv", "-q")...)
		if code != 0 {
			t.Fatal(args, told)
		}
		rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows[1:] {
			value, err := strconv.ParseFloat(row[slices.Index(rows[0], number)], 64)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, row[slices.Index(rows[0], word)])
			bits = append(bits, value)
		}
		return found, bits
	}
	words, surprisals := numbers("word", "surprisal", "score", "--words", text)
	keys, bits := numbers("key", "bits", "gaps", text, "--every", "1")
	if len(keys) != 12 || !slices.Contains(keys, "mother-in-law") {
		t.Errorf("%q are gaps", keys)
	}
	for i, key := range keys {
		at := slices.Index(words, key)
		if at < 0 {
			t.Fatalf("%q has no %q behind the other keys", words, key)
		}
		if !check.SameNats(bits[i], surprisals[at], 5) {
			t.Errorf("%s: %v bits in gaps, %v in score", key, bits[i], surprisals[at])
		}
		words, surprisals = words[at+1:], surprisals[at+1:]
	}
}

// TestMinicons: tokens have the scores of minicons 0.3.39 by the same model, and
// words are the sums of their tokens. generate_minicons.py writes the file.
func TestMinicons(t *testing.T) {
	text, err := os.ReadFile("testdata/minicons.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Text, Metric string
		Tokens       [][2]any // token, log P
		Sum          float64
	}
	err = json.Unmarshal(text, &rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		code, out, told := call(t, nil, "score", row.Text, "--method", row.Metric, "--format", "jsonl", "-q")
		if code != 0 {
			t.Fatal(told)
		}
		var score infill.Score
		err := json.Unmarshal([]byte(out), &score)
		if err != nil {
			t.Fatal(err)
		}
		what := row.Text + ", " + row.Metric
		if len(score.Tokens) != len(row.Tokens) {
			t.Errorf("%s: %d tokens, want %d", what, len(score.Tokens), len(row.Tokens))
			continue
		}
		check.Nats(t, what, score.LogLikelihood, row.Sum, len(row.Tokens))
		for i, token := range score.Tokens {
			if token.Token != row.Tokens[i][0] {
				t.Errorf("%s: %v, want %v", what, token, row.Tokens[i])
			}
			check.Nats(t, what+", "+token.Token, token.LogProb, row.Tokens[i][1].(float64), 1)
		}
	}
}
