package metrics

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// benchmarkSentences look like text to the counters: word frequencies fall as
// in Zipf's law, lengths run from 5 to 35 (mean 20), and half of the words
// follow the word before them, so that longer n-grams are shared.
func benchmarkSentences(seed uint64, count int) [][]string {
	random := rand.New(rand.NewPCG(seed, 0))
	zipf := rand.NewZipf(random, 1.1, 2, 30000)
	sentences := make([][]string, count)
	for i := range sentences {
		word := zipf.Uint64()
		for range 5 + random.IntN(31) {
			sentences[i] = append(sentences[i], fmt.Sprint("w", word))
			if random.IntN(2) == 0 {
				word = (word*31 + 7) % 1000
			} else {
				word = zipf.Uint64()
			}
		}
	}
	return sentences
}

func lines(sentences [][]string) []string {
	text := make([]string, len(sentences))
	for i, tokens := range sentences {
		text[i] = strings.Join(tokens, " ")
	}
	return text
}

// All scores of `infill metrics`, from lines of text, against two references,
// with and without 1,000 bootstrap samples.
func BenchmarkEvaluate1000x2x5000(b *testing.B) {
	hypotheses := Hypotheses{Sentences: lines(benchmarkSentences(1, 1000))}
	references := []Reference{{"one", lines(benchmarkSentences(2, 5000))}, {"two", lines(benchmarkSentences(3, 5000))}}
	for name, none := range map[string]bool{"scores": true, "intervals": false} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Evaluate(b.Context(), hypotheses, references, Options{NoIntervals: none}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
