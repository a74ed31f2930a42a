package infill

import (
	"context"
	"fmt"
	"math"
	"slices"

	"infill/lm"
	"infill/tokenize"
)

// ScoreMethod says which tokens are masked together with a piece when a text is scored.
type ScoreMethod string

const (
	// WordScore masks a piece together with the pieces to its right in
	// the same word, so that they do not betray a long word (Kauf and
	// Ivanova, ACL 2023).
	WordScore ScoreMethod = "l2r"
	// PieceScore masks one piece at a time (Salazar et al., ACL 2020).
	PieceScore ScoreMethod = "original"
)

// Score is the pseudo-log-likelihood of one text. Its JSON is part of the
// command's contract: new fields may come, but no field is renamed.
type Score struct {
	Text          string       `json:"text"`
	LogLikelihood float64      `json:"log_likelihood"` // sum over Tokens, nats
	Method        ScoreMethod  `json:"method"`
	Tokens        []TokenScore `json:"tokens"`
	// PseudoPerplexity is exp(-LogLikelihood / number of tokens).
	PseudoPerplexity float64 `json:"pseudo_perplexity"`
	Model            Model   `json:"model"`
	Signature        string  `json:"signature"`
	// Windows is the number of overlapping parts in which the model read a text
	// that is too long for it; 0 if the model read the text at once.
	Windows  int      `json:"windows,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// TokenScore is the score of one token in a Score. The token is a word or a
// piece of a word.
type TokenScore struct {
	Token   string  `json:"token"`
	ID      int     `json:"id"`
	LogProb float64 `json:"log_prob"` // nats
	// Span is the byte range of the token in the text.
	Span [2]int `json:"span"`
}

// Score rates a whole text by its pseudo-log-likelihood,
//
//	Σ_t log f(w_t | text with w_t masked, and by WordScore the rest of its word)
//
// where f is the model's probability over the whole vocabulary; [CLS] and
// [SEP] are not scored. Errors: *OptionError for the
// method, *tokenize.InputError for the text.
func (f *Filler) Score(ctx context.Context, text string, method ScoreMethod) (*Score, error) {
	if method != WordScore && method != PieceScore {
		return nil, &OptionError{Option: "method",
			Reason: fmt.Sprintf("%q is not one of %s, %s", method, WordScore, PieceScore)}
	}
	encoding, err := f.Plain(text)
	if err != nil {
		return nil, err
	}
	model, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	queries := scoreQueries(encoding, method)
	logProbs, windows, err := f.scoreWindows(ctx, model, encoding.IDs, queries)
	if err != nil {
		return nil, cancelled(ctx, err)
	}
	score := &Score{Text: text, Method: method, Model: f.Model(), Windows: windows,
		Warnings: f.unknown("text", encoding.IDs)}
	for i, q := range queries {
		score.Tokens = append(score.Tokens, TokenScore{
			Token: encoding.Tokens[q.Position], ID: encoding.IDs[q.Position], LogProb: logProbs[i],
			Span: encoding.Offsets[q.Position],
		})
		score.LogLikelihood += logProbs[i]
	}
	score.PseudoPerplexity = math.Exp(-score.LogLikelihood / float64(len(queries)))
	var s signature
	s.add("method", string(method))
	if windows > 0 {
		s.add("windows", fmt.Sprintf("%d/%d", f.maxPositions, (f.maxPositions-2)/2))
	}
	s.model(score.Model)
	score.Signature = s.String()
	return score, nil
}

// Plain tokenizes a text to score, of any length, without running the model.
// Its errors are *tokenize.InputError.
func (f *Filler) Plain(text string) (*tokenize.Encoding, error) {
	return f.tokenizer.Plain(text)
}

// scoreWindows rates the queries of a text. The model reads a text that is too
// long for it in windows, each of which begins half a window after the window
// before. Each token is rated in the window whose middle is nearest. windows is
// the number of windows, or 0 if the text fits.
func (f *Filler) scoreWindows(ctx context.Context, model LanguageModel, ids []int,
	queries []lm.Query) (logProbs []float64, windows int, err error) {
	width := f.maxPositions - 2 // tokens of a window without [CLS] and [SEP]
	last := len(ids) - 2 - width
	if last <= 0 {
		logProbs, err = model.Score(ctx, ids, queries)
		return logProbs, 0, err
	}
	stride := max(1, width/2)
	for at := 0; at < len(queries); windows++ {
		start := windowOf(queries[at].Position, stride, last)
		end := at
		var part []lm.Query
		for ; end < len(queries) && windowOf(queries[end].Position, stride, last) == start; end++ {
			q := lm.Query{Position: queries[end].Position - start}
			for _, p := range queries[end].Masked {
				// A word with more pieces than a quarter of a window can end
				// outside its window.
				if p-start <= width {
					q.Masked = append(q.Masked, p-start)
				}
			}
			part = append(part, q)
		}
		window := slices.Concat(ids[:1], ids[start+1:start+1+width], ids[len(ids)-1:])
		rated, err := model.Score(ctx, window, part)
		if err != nil {
			return nil, 0, err
		}
		logProbs = append(logProbs, rated...)
		at = end
	}
	return logProbs, windows, nil
}

// windowOf returns the start of the window for a token's position: a multiple
// of stride, at most last.
func windowOf(position, stride, last int) int {
	return min(max(0, position-1-stride/2)/stride*stride, last)
}

// scoreQueries returns a query for every token of a text except [CLS] and
// [SEP], in order.
func scoreQueries(encoding *tokenize.Encoding, method ScoreMethod) []lm.Query {
	var queries []lm.Query
	for position, word := range encoding.Words {
		if word < 0 {
			continue
		}
		masked := []int{position}
		if method == WordScore {
			for next := position + 1; encoding.Words[next] == word; next++ {
				masked = append(masked, next)
			}
		}
		queries = append(queries, lm.Query{Position: position, Masked: masked})
	}
	return queries
}
