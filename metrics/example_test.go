package metrics_test

import (
	"context"
	"fmt"
	"log"

	"infill/metrics"
)

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
