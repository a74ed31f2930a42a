package tokenize_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"infill/tokenize"
)

// largeTokenizer is a tokenizer.json of Gemma's layout with 256,000 tokens and as many merges, of made-up words.
func largeTokenizer(b *testing.B) []byte {
	b.Helper()
	var file map[string]any
	if err := json.Unmarshal(familyFile(b, "gemma.tokenizer.json"), &file); err != nil {
		b.Fatal(err)
	}
	model := file["model"].(map[string]any)
	vocabulary, merges := model["vocab"].(map[string]any), model["merges"].([]any)
	var parts []string
	for token := range vocabulary {
		if !strings.ContainsAny(token, "<\n") {
			parts = append(parts, token)
		}
	}
	slices.Sort(parts)
	random := rand.New(rand.NewPCG(1, 2))
	for len(vocabulary) < 256000 {
		left, right := parts[random.IntN(len(parts))], parts[random.IntN(len(parts))]
		if token := left + right; vocabulary[token] == nil && len(token) < 20 && !strings.Contains(right, "▁") {
			vocabulary[token], parts, merges = len(vocabulary), append(parts, token),
				append(merges, [2]string{left, right})
		}
	}
	model["merges"] = merges
	content, err := json.Marshal(file)
	if err != nil {
		b.Fatal(err)
	}
	return content
}

// BenchmarkLarge loads a vocabulary of 256,000 tokens, and reads a book with it.
func BenchmarkLarge(b *testing.B) {
	files := fstest.MapFS{"tokenizer.json": {Data: largeTokenizer(b)}}
	var tokenizer *tokenize.Tokenizer
	b.Run("load", func(b *testing.B) {
		b.SetBytes(int64(len(files["tokenizer.json"].Data)))
		b.ReportAllocs()
		for b.Loop() {
			var err error
			if tokenizer, err = tokenize.Load(files); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("plain", func(b *testing.B) {
		text := strings.Repeat(strings.Join(sentences(), " ")+" 我喜欢苹果。 ", 500)
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if _, err := tokenizer.Plain(text); err != nil {
				b.Fatal(err)
			}
		}
	})
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
