package infill

import (
	"cmp"
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

// ScoreRequest is a text to score. Its zero values are the defaults.
type ScoreRequest struct {
	Text string
	// Context is what stands before the text. The model reads it, and it is not
	// scored.
	Context string
	Method  ScoreMethod // "" for WordScore
}

// Score is the pseudo-log-likelihood of one text. Its JSON is part of the
// command's contract: new fields may come, but no field is renamed.
type Score struct {
	Text          string       `json:"text"`
	Context       string       `json:"context,omitempty"`
	LogLikelihood float64      `json:"log_likelihood"` // sum over Tokens, nats
	Method        ScoreMethod  `json:"method"`
	Tokens        []TokenScore `json:"tokens"`
	Words         []ScoredWord `json:"words"`
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
// where f is the model's probability over the whole vocabulary; [CLS], [SEP] and
// the context are not scored. Errors: *OptionError for the method and the
// context, *tokenize.InputError for the text.
func (f *Filler) Score(ctx context.Context, r ScoreRequest) (*Score, error) {
	method := cmp.Or(r.Method, WordScore)
	if method != WordScore && method != PieceScore {
		return nil, &OptionError{Option: "method",
			Reason: fmt.Sprintf("%q is not one of %s, %s", method, WordScore, PieceScore)}
	}
	encoding, err := f.Plain(r.Text)
	if err != nil {
		return nil, err
	}
	before, err := f.context(r.Context)
	if err != nil {
		return nil, err
	}
	model, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	queries := scoreQueries(encoding, method)
	long := scored{ids: encoding.IDs, context: before, width: f.maxPositions - 2 - len(before)}
	logProbs, windows, err := long.score(ctx, model, queries)
	if err != nil {
		return nil, cancelled(ctx, err)
	}
	score := &Score{Text: r.Text, Context: r.Context, Method: method, Model: f.Model(), Windows: windows,
		Warnings: f.unknown("text", encoding.IDs)}
	blanks := tokenize.BlankSpans(r.Text, "")
	if len(blanks) > 0 { // Plain refuses [MASK]; other blanks may be signs of the text
		first := r.Text[blanks[0][0]:blanks[0][1]]
		score.Warnings = append(score.Warnings,
			fmt.Sprintf("%q is scored as it stands: write the word that belongs there", first))
	}
	for i, q := range queries {
		score.Tokens = append(score.Tokens, TokenScore{
			Token: encoding.Tokens[q.Position], ID: encoding.IDs[q.Position], LogProb: logProbs[i],
			Span: encoding.Offsets[q.Position],
		})
		score.LogLikelihood += logProbs[i]
	}
	score.Words = words(r.Text, score.Tokens)
	score.PseudoPerplexity = math.Exp(-score.LogLikelihood / float64(len(queries)))
	var s signature
	s.add("method", string(method))
	s.context(r.Context, score.Model)
	if windows > 0 {
		s.add("windows", fmt.Sprintf("%d/%d", f.maxPositions, long.width/2))
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

// scored is a text that is scored, perhaps in windows. The context stands in
// front of each.
type scored struct {
	ids     []int // [CLS], the text, [SEP]
	context []int // tokens of the context with the separator after it
	width   int   // largest number of the text's tokens in a window
}

// score rates the queries of a text. The model reads a text that is too
// long for it in windows, each of which begins half a window after the window
// before. Each token is rated in the window whose middle is nearest. windows is
// the number of windows, or 0 if the text fits.
func (s scored) score(ctx context.Context, model LanguageModel, queries []lm.Query) (logProbs []float64,
	windows int, err error) {
	last := len(s.ids) - 2 - s.width
	if last <= 0 {
		logProbs, err = s.window(ctx, model, 0, len(s.ids)-2, queries)
		return logProbs, 0, err
	}
	stride := max(1, s.width/2)
	for at := 0; at < len(queries); windows++ {
		start := windowOf(queries[at].Position, stride, last)
		end := at
		for end < len(queries) && windowOf(queries[end].Position, stride, last) == start {
			end++
		}
		rated, err := s.window(ctx, model, start, s.width, queries[at:end])
		if err != nil {
			return nil, 0, err
		}
		logProbs = append(logProbs, rated...)
		at = end
	}
	return logProbs, windows, nil
}

// window rates queries in the window of width tokens that begins after start
// tokens of the text.
func (s scored) window(ctx context.Context, model LanguageModel, start, width int, queries []lm.Query) ([]float64,
	error) {
	ids := slices.Concat(s.ids[:1], s.context, s.ids[start+1:start+1+width], s.ids[len(s.ids)-1:])
	moved := len(s.context) - start
	var own []lm.Query
	for _, q := range queries {
		query := lm.Query{Position: q.Position + moved}
		for _, p := range q.Masked {
			// A word with more pieces than a quarter of a window can end outside
			// its window.
			if p-start <= width {
				query.Masked = append(query.Masked, p+moved)
			}
		}
		own = append(own, query)
	}
	return model.Score(ctx, ids, own)
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
