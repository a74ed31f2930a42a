package tokenize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maskToken is BERT's mask, and the usual spelling of a blank.
const maskToken = "[MASK]"

// roles returns pointers to the ids of the special tokens.
func (t *Tokenizer) roles() []*int {
	return []*int{&t.padding, &t.unknown, &t.classifier, &t.separator, &t.mask}
}

// maxVocabulary is the largest valid number of tokens. The largest published BERT vocabulary has half a million.
const maxVocabulary = 1 << 20

// Tokenizer is a vocabulary with the rules that turn text into its tokens and back.
// It does not change once made and serves any number of goroutines.
type Tokenizer struct {
	vocabulary []string // token of each id
	ids        map[string]int
	sum        string

	padding, unknown, classifier, separator, mask int

	added       matcher      // finds tokens in a text as it is
	normalizers []normalizer // rewrite the text between those tokens
	normalized  matcher      // finds tokens in the rewritten text
	splitters   []splitter   // cut the rest into words
	model       cutter       // cuts words into tokens

	alphabet       alphabet
	cased          bool
	prepends       bool     // whether a text gets a space before its first word
	dropsBlank     bool     // whether decoding drops that space
	maskStripsLeft bool     // whether the white space before a slot belongs to it
	notWords       []bool   // per id: added tokens and others that no slot takes
	silent         []bool   // per id: special tokens, which decoding leaves out
	forbidden      []string // special tokens that a user's text may not hold
}

// VocabularySize returns the number of tokens.
func (t *Tokenizer) VocabularySize() int { return len(t.vocabulary) }

// Token returns the token of an id, with "##" if it continues a word, and "" for an id outside the vocabulary.
func (t *Tokenizer) Token(id int) string {
	if id < 0 || id >= len(t.vocabulary) {
		return ""
	}
	return t.vocabulary[id]
}

// ID returns the id of a token.
func (t *Tokenizer) ID(token string) (id int, ok bool) {
	id, ok = t.ids[token]
	return id, ok
}

// MaskID returns the id of [MASK].
func (t *Tokenizer) MaskID() int { return t.mask }

// SeparatorID returns the id of [SEP].
func (t *Tokenizer) SeparatorID() int { return t.separator }

// UnknownID returns the id of [UNK].
func (t *Tokenizer) UnknownID() int { return t.unknown }

// Cased reports whether the tokenizer keeps capitals.
func (t *Tokenizer) Cased() bool { return t.cased }

// SHA256 returns, in hexadecimal, a hash of the vocabulary and every option that changes ids.
func (t *Tokenizer) SHA256() string { return t.sum }

// Continues reports whether a token continues the word on its left: a "##" piece, or letters and digits without
// a space of their own if the vocabulary marks spaces (Ġ, ▁).
func (t *Tokenizer) Continues(id int) bool {
	text, joins := t.read(t.Token(id))
	first, _ := utf8.DecodeRuneInString(text)
	return joins && (t.alphabet == alphabetPieces || wordRune(first))
}

// Unspaced reports whether the token of an id begins with a letter of a script that writes no spaces between words, and
// is no "##" piece.
func (t *Tokenizer) Unspaced(id int) bool {
	text, joins := t.read(t.Token(id))
	first, _ := utf8.DecodeRuneInString(text)
	return unspaced(first) && joins != (t.alphabet == alphabetPieces)
}

// opensWord reports whether a token that follows another begins a word.
func (t *Tokenizer) opensWord(id int) bool {
	_, joins := t.read(t.Token(id))
	return !joins || t.Unspaced(id)
}

// Word reports whether the token of an id is a word or a piece of one: letters, digits and the marks on them alone.
func (t *Tokenizer) Word(id int) bool {
	text, _ := t.read(t.Token(id))
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !wordRune(r) && !unicode.IsMark(r) })
}

// Fillable returns the ids that a slot may take, ascending: all tokens except special and added ones, [unused0],
// [unused1], ..., and tokens that are empty text or a part of a character, or hold a control character: a terminal
// would obey it. The caller owns the slice.
func (t *Tokenizer) Fillable() []int {
	fillable := make([]int, 0, len(t.vocabulary))
	for id, token := range t.vocabulary {
		text, _ := t.read(token)
		if !t.notWords[id] && !unused(token) && utf8.ValidString(text) && strings.TrimSpace(text) != "" &&
			!strings.ContainsFunc(text, unicode.IsControl) {
			fillable = append(fillable, id)
		}
	}
	return fillable
}

// unused reports whether a token is a reserved place of the vocabulary, [unusedN].
func unused(token string) bool {
	number, found := strings.CutPrefix(token, "[unused")
	number, closed := strings.CutSuffix(number, "]")
	return found && closed && number != "" && strings.Trim(number, "0123456789") == ""
}
