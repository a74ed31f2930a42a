package metrics_test

import (
	"context"
	"fmt"
	"log"

	"infill/metrics"
)

// All scores of a report come with their signatures, which say what was counted
// and how.
func ExampleEvaluate() {
	fills := metrics.Hypotheses{Sentences: []string{
		"the ferry leaves the harbour at six",
		"the ferry leaves the harbour at nine",
		"the ferry enters the harbour at nine",
	}}
	references := []metrics.Reference{{Name: "log", Sentences: []string{
		"at noon the ferry leaves the harbour",
		"the boats come home at nine",
	}}}
	report, err := metrics.Evaluate(context.Background(), fills, references,
		metrics.Options{NoIntervals: true, Version: "1.0"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("self-BLEU %.2f\n", report.Value("self_bleu"))
	fmt.Printf("corpus BLEU %.2f\n", report.Value("corpus_bleu/log"))
	fmt.Printf("unique 2-grams %.2f, not in log %.2f\n", report.Value("unique_ngrams/self/2"),
		report.Value("unique_ngrams/log/2"))
	fmt.Println(report.Scores[0].Signature)
	// Output:
	// self-BLEU 77.92
	// corpus BLEU 53.25
	// unique 2-grams 16.67, not in log 22.22
	// metric:self-bleu|tokenisation:whitespace|bleu-n:4|smoothing:none|length:closest|version:1.0
}

// Self-BLEU is high if sentences repeat each other. Two sets differ only if
// their intervals are apart, or nearly so.
func ExampleScore_selfBLEU() {
	fills := metrics.Hypotheses{Sentences: []string{
		"the ferry leaves the harbour at six", "the ferry leaves the harbour at nine",
		"the ferry enters the harbour at nine", "a boat leaves the harbour at dawn",
		"the ferry leaves the island at six", "the last boat leaves the island late",
	}}
	report, err := metrics.Evaluate(context.Background(), fills, nil, metrics.Options{Order: 2})
	if err != nil {
		log.Fatal(err)
	}
	score, _ := report.Score(metrics.MetricSelfBLEU)
	i := score.Interval
	fmt.Printf("%s %.1f %%, %.0f %% interval %.1f to %.1f over %d %ss\n", score.Title(), score.Value,
		100*i.Confidence, i.Low, i.High, i.Units, i.Unit)
	// Output:
	// self-BLEU 82.8 %, 95 % interval 74.3 to 91.3 over 6 sentences
}

// Corpus BLEU tells how much of the sentences a reference has. Its ingredients
// say why it is low: few matches, or short sentences.
func ExampleBLEUScore() {
	fills := metrics.Hypotheses{Sentences: []string{"the ferry leaves the harbour", "the boats come home"}}
	references := []metrics.Reference{{Name: "log", Sentences: []string{
		"at noon the ferry leaves the harbour", "the boats come home at nine",
	}}}
	report, err := metrics.Evaluate(context.Background(), fills, references,
		metrics.Options{Order: 2, NoIntervals: true})
	if err != nil {
		log.Fatal(err)
	}
	score, _ := report.Score("corpus_bleu/log")
	b := score.BLEU
	fmt.Println("matches", b.Matches, "of", b.Totals)
	fmt.Printf("brevity penalty %.2f for %d tokens of %d\n", b.BrevityPenalty, b.HypothesisLength, b.ReferenceLength)
	// Output:
	// matches [9 7] of [9 7]
	// brevity penalty 0.72 for 9 tokens of 12
}

// Unique n-grams against a reference are those that the reference lacks: what a
// model says that its corpus does not.
func ExampleScore_uniqueNGrams() {
	fills := metrics.Hypotheses{Sentences: []string{
		"the ferry leaves at six", "the ferry leaves at nine", "the ferry enters at nine",
		"the ferry waits at dawn", "the ferry sails at noon",
	}}
	references := []metrics.Reference{{Name: "log", Sentences: []string{"the ferry leaves at noon"}}}
	report, err := metrics.Evaluate(context.Background(), fills, references, metrics.Options{UniqueOrders: []int{1, 2}})
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"unique_ngrams/log/1", "unique_ngrams/log/2"} {
		score, _ := report.Score(name)
		fmt.Printf("%s: %.1f %% ± %.1f\n", score.Title(), score.Value, score.Interval.StandardError)
	}
	// Output:
	// unique 1-grams against log: 24.0 % ± 5.5
	// unique 2-grams against log: 45.0 % ± 12.1
}

// Distinct n-grams fall, and repeated sentences rise, when a sampler says the
// same again.
func ExampleScore_repetition() {
	fills := metrics.Hypotheses{Sentences: []string{
		"it was late", "it was late", "it was dark", "it was late", "he was late", "it was cold",
	}}
	report, err := metrics.Evaluate(context.Background(), fills, nil, metrics.Options{UniqueOrders: []int{2}})
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"distinct_ngrams/2", "repeated_sentences"} {
		score, _ := report.Score(name)
		fmt.Printf("%s: %.1f %%, from %.1f to %.1f\n", score.Title(), score.Value, score.Interval.Low,
			score.Interval.High)
	}
	// Output:
	// distinct 2-grams: 41.7 %, from 12.9 to 70.4
	// repeated sentences: 33.3 %, from 0.0 to 90.8
}

// If several sentences fill one template, name it: then whole templates are
// left out for the intervals, because their sentences are not independent.
func ExampleHypotheses() {
	fills := metrics.Hypotheses{
		Sentences: []string{"he told me", "he left me", "it was a day", "it was a dog", "it was a dog",
			"she saw us", "she sees us", "we go home", "we went home", "they are here", "they were here"},
		Prompts: []string{"he", "he", "it", "it", "it", "she", "she", "we", "we", "they", "they"},
		LogLikelihoods: []float64{-2.5, -3.1, -2.2, -4.0, -4.0,
			-3.3, -5.2, -2.8, -3.0, -1.9, -2.1},
	}
	report, err := metrics.Evaluate(context.Background(), fills, nil, metrics.Options{})
	if err != nil {
		log.Fatal(err)
	}
	score, _ := report.Score(metrics.MetricLogLikelihoodMean)
	fmt.Printf("%s: %.2f ± %.2f over %d %ss\n", score.Title(), score.Value, score.Interval.StandardError,
		score.Interval.Units, score.Interval.Unit)
	fmt.Printf("repeated within a template: %.1f %%\n", report.Value("repeated_within_prompt"))
	// Output:
	// mean log-likelihood, nats: -3.10 ± 0.34 over 5 prompts
	// repeated within a template: 9.1 %
}

// Wilson bounds a probability by a count, also where none or all were seen: 0
// of 20 draws do not make a fill impossible.
func ExampleWilson() {
	low, high := metrics.Wilson(0, 20, 0.95)
	fmt.Printf("%.3f to %.3f\n", low, high)
	// Output:
	// 0.000 to 0.161
}
