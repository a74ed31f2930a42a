package infill

import (
	"unicode/utf8"

	"infill/tokenize"
)

// ScoredWord is a word of a scored text, or a sign between words.
type ScoredWord struct {
	Word string `json:"word"`
	// Start and End are a range of characters (code points) of the text, from 0.
	Start  int `json:"start"`
	End    int `json:"end"`
	Tokens int `json:"tokens"`
	// LogLikelihood is the sum over the word's tokens, in nats. Its negative is
	// the word's surprisal.
	LogLikelihood float64 `json:"log_likelihood"`
}

// words returns the words of a scored text and the signs between them, see
// [tokenize.Parts]. Each token counts in one of them, so that their
// log-likelihoods add up to the text's. Parts without a token are left out, and
// parts that share a token are one.
func words(text string, tokens []TokenScore) []ScoredWord {
	parts := tokenize.Parts(text)
	words := []ScoredWord{}
	var spans [][2]int // of words, in bytes
	next := 0
	for _, t := range tokens {
		last := len(spans) - 1
		if last >= 0 && t.Span[0] < spans[last][1] {
			spans[last][1] = max(spans[last][1], t.Span[1])
		} else {
			for next < len(parts)-1 && parts[next].End <= t.Span[0] {
				next++
			}
			spans = append(spans, [2]int{min(parts[next].Start, t.Span[0]), max(parts[next].End, t.Span[1])})
			words = append(words, ScoredWord{})
			last++
		}
		words[last].Tokens++
		words[last].LogLikelihood += t.LogProb
	}
	for i, span := range spans {
		words[i].Word = text[span[0]:span[1]]
		words[i].Start = utf8.RuneCountInString(text[:span[0]])
		words[i].End = words[i].Start + utf8.RuneCountInString(words[i].Word)
	}
	return words
}
