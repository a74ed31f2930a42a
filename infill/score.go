package infill

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"infill/internal/lines"
	"infill/tokenize"
)

// ScoreMethod says which tokens are masked together when a text is scored.
type ScoreMethod string

const (
	// WordScore scores each word as a blank that holds the word: a token is
	// masked together with those on its right in its word ([tokenize.Parts]).
	WordScore ScoreMethod = "l2r"
	// TokenizerWordScore does the same with the words of the tokenizer, in which
	// a hyphen and an apostrophe are words of their own (Kauf and Ivanova, ACL 2023).
	TokenizerWordScore ScoreMethod = "within_word_l2r"
	// PieceScore masks one token at a time (Salazar et al., ACL 2020).
	PieceScore ScoreMethod = "original"
)

// ScoreRequest is a text to score. Its zero values are the defaults.
type ScoreRequest struct {
	Text string
	// Context is what stands before the text. The model reads it, and it is not
	// scored.
	Context string      `option:"context" word:"TEXT" help:"text that stands before each text, and is not scored"`
	Method  ScoreMethod `option:"method" default:"l2r" enum:"l2r,within_word_l2r,original" word:"{l2r|within_word_l2r|original}" help:"what is masked with each token: the rest of its word, the rest of the tokenizer's word (as minicons does), or nothing more"`
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
	// Seen is how many tokens around each word the model saw of a text that is
	// too long for it; 0 if it saw the whole text.
	Seen     int      `json:"seen,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Typed is as in Result.
	Typed string `json:"-"`
}

// TokenScore is the score of one token in a Score. The token is a word or a
// piece of a word.
type TokenScore struct {
	Token   string  `json:"token"`
	ID      int     `json:"id"`
	LogProb float64 `json:"log_prob"` // nats
	// Span is the token's range of characters (code points) of the text, from 0.
	Span [2]int `json:"span"`
}

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

// Score rates a whole text by its pseudo-log-likelihood,
//
//	Σ_t log f(w_t | text with w_t masked, and those that the method masks with it)
//
// where f is the model's probability over the whole vocabulary; [CLS], [SEP] and
// the context are not scored. Errors: *OptionError for the method and the
// context, *tokenize.InputError for the text.
func (f *Filler) Score(ctx context.Context, r ScoreRequest) (*Score, error) {
	q, err := f.scoring(r)
	if err != nil {
		return nil, err
	}
	asker, err := f.asker(ctx, false)
	if err != nil {
		return nil, err
	}
	encoding, words := q.encoding, q.words
	var all []held
	seen := 0
	for _, positions := range q.sets {
		h := f.held(encoding, positions, q.context)
		seen = max(seen, h.question.seen())
		all = append(all, h)
	}
	given, err := asker.given(ctx, all)
	if err != nil {
		return nil, cancelled(ctx, err)
	}
	logProbs := slices.Concat(given...)
	score := &Score{Text: r.Text, Context: r.Context, Method: q.method, Model: f.Model(), Seen: seen, Words: words}
	spans := lines.Characters(r.Text, encoding.Offsets)
	for i, logProb := range logProbs {
		at := i + 1 // after [CLS]
		score.Tokens = append(score.Tokens, TokenScore{Token: encoding.Tokens[at], ID: encoding.IDs[at],
			LogProb: logProb, Span: spans[at]})
		score.LogLikelihood += logProb
	}
	rest := logProbs
	for i := range words {
		for _, logProb := range rest[:words[i].Tokens] {
			words[i].LogLikelihood += logProb
		}
		rest = rest[words[i].Tokens:]
	}
	score.PseudoPerplexity = math.Exp(-score.LogLikelihood / float64(len(logProbs)))
	score.Warnings = append(f.unknown("text", encoding.IDs), tooLong(len(encoding.IDs), seen, "each word")...)
	blanks := tokenize.BlankSpans(r.Text, "")
	if len(blanks) > 0 { // Plain refuses [MASK]; other blanks may be signs of the text
		first := r.Text[blanks[0][0]:blanks[0][1]]
		score.Warnings = append(score.Warnings,
			fmt.Sprintf("%q is scored as it stands: write the word that belongs there", first))
	}
	score.Typed = f.typography(nil, r.Text, r.Context)
	if score.Typed != "" {
		score.Warnings = append(score.Warnings, score.Typed)
	}
	score.Warnings = lines.ShortAll(score.Warnings)
	var s signature
	s.add("method", string(q.method))
	s.context(r.Context, score.Model)
	s.seen(seen)
	s.model(score.Model)
	score.Signature = s.String()
	return score, nil
}

// ScoreCost returns what Score needs, without the model; the errors are Score's.
func (f *Filler) ScoreCost(r ScoreRequest) (Cost, error) {
	q, err := f.scoring(r)
	if err != nil {
		return Cost{}, err
	}
	length := float64(len(r.Text))
	c := Cost{Bytes: min(askedBytes, bytesOfLetter*length+length*length)}
	for _, positions := range q.sets {
		h := f.held(q.encoding, positions, q.context)
		c.Rows += len(positions)
		c.Tokens += float64(len(positions) * h.question.size())
	}
	return c, nil
}

// bytesOfLetter is the memory for a byte of a scored text: its token, and what is said of it.
const bytesOfLetter = 128

// scoring is a checked request for a score: what is asked of the model.
type scoring struct {
	method   ScoreMethod
	encoding *tokenize.Encoding
	words    []ScoredWord // without their log-likelihoods
	context  []int        // tokens in front of the text
	sets     [][]int      // positions that are masked together
}

func (f *Filler) scoring(r ScoreRequest) (*scoring, error) {
	declaredScore.Settle(&r)
	err := checkValues(declaredScore, r)
	if err != nil {
		return nil, err
	}
	encoding, err := f.Plain(r.Text)
	if err != nil {
		return nil, err
	}
	before, err := f.context(r.Context)
	if err != nil {
		return nil, err
	}
	words := f.wordsOf(r.Text, encoding)
	return &scoring{method: r.Method, encoding: encoding, words: words, context: before,
		sets: f.masked(r.Method, encoding, words, f.room(before))}, nil
}

// Plain tokenizes a text to score, of any length, without running the model.
// Its errors are *tokenize.InputError.
func (f *Filler) Plain(text string) (*tokenize.Encoding, error) {
	return f.tokenizer.Plain(text)
}

// masked returns the positions of the tokens of a text, in sets that a method masks
// together. A word without room in a window has sets of its parts.
func (f *Filler) masked(method ScoreMethod, e *tokenize.Encoding, words []ScoredWord, room int) [][]int {
	var sizes []int
	switch method {
	case PieceScore:
		sizes = slices.Repeat([]int{1}, len(e.IDs)-2)
	case TokenizerWordScore:
		for position := 1; position < len(e.IDs)-1; position++ {
			if e.Words[position] != e.Words[position-1] {
				sizes = append(sizes, 0)
			}
			sizes[len(sizes)-1]++
		}
	default:
		for _, w := range words {
			sizes = append(sizes, w.Tokens)
		}
	}
	var sets [][]int
	next := 1 // after [CLS]
	for _, size := range sizes {
		var set []int
		for range size {
			set = append(set, next)
			next++
		}
		sets = slices.AppendSeq(sets, slices.Chunk(set, room))
	}
	return sets
}

// held makes the question of a text with the tokens at some positions as its answer.
// They have room in a window.
func (f *Filler) held(e *tokenize.Encoding, positions, context []int) held {
	q, _ := f.newQuestion(e.IDs, e.Offsets, positions, context)
	first := positions[0]
	return held{question: q, tokens: e.IDs[first : first+len(positions)]}
}

// wordsOf returns the words of a text and the signs between them, see
// [tokenize.Parts], with the number of their tokens. Each token is in one of them.
// Parts without a token are left out. Parts that share a token or a character, or
// of which a ## piece begins one, are one: no blank begins there.
func (f *Filler) wordsOf(text string, e *tokenize.Encoding) []ScoredWord {
	spans, tokens := f.rowsOf(text, e)
	words := make([]ScoredWord, len(spans))
	for i, span := range lines.Characters(text, spans) {
		words[i] = ScoredWord{Word: text[spans[i][0]:spans[i][1]], Start: span[0], End: span[1], Tokens: tokens[i]}
	}
	return words
}

// Maskable returns the words of a text that a blank may take the place of: those of
// [tokenize.Maskable] of which each is a word that Score rates. No blank is a part
// of one, such as a sign of a chain that the tokenizer does not part. Errors:
// *tokenize.InputError for the text.
func (f *Filler) Maskable(text string, protected ...[2]int) ([]tokenize.Part, error) {
	e, err := f.Plain(text)
	if err != nil {
		return nil, err
	}
	return f.maskable(text, e, protected), nil
}

// maskable does what Maskable does, by the encoding of the text.
func (f *Filler) maskable(text string, e *tokenize.Encoding, protected [][2]int) []tokenize.Part {
	spans, _ := f.rowsOf(text, e)
	parts := tokenize.Maskable(text, protected...)
	return slices.DeleteFunc(parts, func(p tokenize.Part) bool {
		_, whole := slices.BinarySearchFunc(spans, p, func(span [2]int, p tokenize.Part) int {
			return cmp.Or(span[0]-p.Start, span[1]-p.End)
		})
		return !whole
	})
}

// rowsOf returns the byte ranges of wordsOf, and their numbers of tokens.
func (f *Filler) rowsOf(text string, e *tokenize.Encoding) (spans [][2]int, tokens []int) {
	parts := tokenize.Parts(text)
	next := 0
	for i, at := range e.Offsets[1 : len(e.Offsets)-1] {
		for next < len(parts)-1 && parts[next].End <= at[0] {
			next++
		}
		start, end := min(parts[next].Start, at[0]), max(parts[next].End, at[1])
		last := len(spans) - 1
		continues := strings.HasPrefix(e.Tokens[i+1], "##") && f.tokenizer.Continues(e.IDs[i+1])
		if last < 0 || start >= spans[last][1] && !continues {
			spans = append(spans, [2]int{start, end})
			tokens = append(tokens, 0)
			last++
		}
		spans[last][1] = max(spans[last][1], end)
		tokens[last]++
	}
	return spans, tokens
}
