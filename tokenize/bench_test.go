package tokenize_test

import (
	"os"
	"strings"
	"testing"

	"infill/tokenize"
)

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := tokenize.Load(os.DirFS(mini)); err != nil {
			b.Fatal(err)
		}
	}
}

// sentences are of the kinds that users type; about 80 bytes each.
func sentences() []string {
	return []string{
		"The ferry left before dawn, and nobody on the quay had thought to wave.",
		"after supper he read the letter twice , folded it , and said nothing at all .",
		"\"You could have told me,\" she said; \"I'd have brought the other umbrella.\"",
		"The café's façade was naïvely repainted in 1997 by two unpaid schoolboys.",
		"Photosynthesis, counterintuitively, wastes most of the sunlight that falls on a leaf.",
	}
}

func BenchmarkEncode(b *testing.B) {
	tokenizer := loadBuiltin(b)
	texts := sentences()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if _, err := tokenizer.Encode(texts[n%len(texts)]); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "sentences/s")
}

// BenchmarkEncodeWorst reads the longest text that a template may have, made of the words that take the model longest.
func BenchmarkEncodeWorst(b *testing.B) {
	tokenizer := loadBuiltin(b)
	text := strings.Repeat(strings.Repeat("zqxj", 25)+" ", tokenize.MaxText/101)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := tokenizer.Plain(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTemplate(b *testing.B) {
	tokenizer := loadBuiltin(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tokenizer.Template("The ferry left before [MASK], and [MASK] on the quay had thought to [MASK]."); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFill(b *testing.B) {
	tokenizer := loadBuiltin(b)
	template, err := tokenizer.Template("The ferry left before [MASK], and [MASK] on the quay had thought to [MASK].")
	if err != nil {
		b.Fatal(err)
	}
	ids := []int{2000, 3000, 4000}
	b.ReportAllocs()
	for b.Loop() {
		template.Fill(ids)
	}
}
