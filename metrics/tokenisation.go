package metrics

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// Tokenisation says how to split a line of text into the tokens that scores
// count. The zero value is [WhiteSpace].
type Tokenisation string

const (
	// WhiteSpace splits at white space as Python's str.split does and
	// changes nothing else.
	WhiteSpace Tokenisation = "whitespace"
	// BertGen treats both sides as the notebook of nyu-dl/bert-gen treats
	// its references. It splits at white space, lower-cases every token,
	// and replaces @@UNKNOWN@@ by [UNK], `` and '' by ". @-@ stays,
	// although BERT writes -.
	BertGen Tokenisation = "bert-gen"
	// DISCS counts like the published evaluator of google-research/discs
	// (discs/evaluators/lm_eval.py), for comparison with its figures.
	// Hypotheses keep their case and go through the clean-up of Hugging
	// Face's decode ("sat ." becomes "sat."). References are those of
	// BertGen, with separate punctuation. This mismatch lowers BLEU and
	// raises unique n-grams.
	DISCS Tokenisation = "discs"
)

// Values lists the tokenisations.
func (Tokenisation) Values() []Tokenisation { return []Tokenisation{WhiteSpace, BertGen, DISCS} }

func (t Tokenisation) hypothesis(text string) []string {
	switch t {
	case BertGen:
		return t.Reference(text)
	case DISCS:
		return split(cleanUp(text))
	default:
		return split(text)
	}
}

// Reference returns the tokens of a sentence in a reference corpus.
func (t Tokenisation) Reference(text string) []string {
	tokens := split(text)
	if t != BertGen && t != DISCS {
		return tokens
	}
	for i, token := range tokens {
		token = lower(token)
		switch token {
		case "@@unknown@@", "[unk]":
			token = "[UNK]"
		case "``", "''":
			token = `"`
		}
		tokens[i] = token
	}
	return tokens
}

// split cuts at white space as Python's str.isspace defines it: Unicode's
// White_Space and the four ASCII separators.
func split(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f })
}

// lower returns a token in lower case by Unicode's full rules (final sigma,
// dotted capital I), unlike strings.ToLower.
func lower(token string) string {
	if strings.ContainsFunc(token, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return cases.Lower(language.Und).String(token)
	}
	return strings.ToLower(token)
}

// cleanUp joins punctuation and contractions to the word before them, in the
// order of clean_up_tokenization of Hugging Face transformers.
func cleanUp(text string) string {
	for _, mark := range []string{".", "?", "!", ","} {
		text = strings.ReplaceAll(text, " "+mark, mark)
	}
	text = strings.ReplaceAll(text, " ' ", "'")
	for _, contraction := range []string{"n't", "'m", "'s", "'ve", "'re"} {
		text = strings.ReplaceAll(text, " "+contraction, contraction)
	}
	return text
}
