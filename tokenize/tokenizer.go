package tokenize

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// maskToken is BERT's mask, and the usual spelling of a blank.
const maskToken = "[MASK]"

// maxVocabulary is the largest valid number of tokens. The largest published
// BERT vocabulary has half a million.
const maxVocabulary = 1 << 20

// Tokenizer is a vocabulary with the rules that turn text into its tokens and
// back. It never changes: any goroutine may use it.
type Tokenizer struct {
	vocabulary []string // token of each id
	ids        map[string]int
	sum        string
	warning    string // see Warning

	padding, unknown, classifier, separator, mask int

	added       matcher      // finds added tokens in a text as typed
	normalizers []normalizer // rewrite the text between added tokens
	normalized  matcher      // finds added tokens in the rewritten text
	splitters   []splitter   // cut the remaining text into words
	model       cutter       // cuts words into tokens

	alphabet       alphabet
	cased          bool
	prepends       bool     // whether a space is put before the first word of a text
	dropsBlank     bool     // whether decoding drops the space before the first word
	maskStripsLeft bool     // whether a slot includes the white space before it
	notWords       []bool   // per id: whether no slot takes the token
	silent         []bool   // per id: whether decoding leaves out the token
	forbidden      []string // special tokens that a user's text must not hold

	joins struct { // see continuing
		once   sync.Once
		pieces map[string]int
	}
}

// VocabularySize returns the number of tokens.
func (t *Tokenizer) VocabularySize() int { return len(t.vocabulary) }

// Token returns the token of an id, with "##" if it continues a word. For an id
// outside the vocabulary it returns "".
func (t *Tokenizer) Token(id int) string {
	if id < 0 || id >= len(t.vocabulary) {
		return ""
	}
	return t.vocabulary[id]
}

// ID returns the id of a token. ok is false if the vocabulary lacks the token.
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

// SHA256 returns a hash, in hexadecimal, of all that changes ids.
func (t *Tokenizer) SHA256() string { return t.sum }

// Continues reports whether a token continues the word on its left. Such a
// token is a "##" piece or, if the vocabulary marks spaces (Ġ, ▁), letters and
// digits without a space of their own.
func (t *Tokenizer) Continues(id int) bool {
	text, joins := t.read(t.Token(id))
	first, _ := utf8.DecodeRuneInString(text)
	return joins && (t.alphabet == alphabetPieces || wordRune(first))
}

// unspaced reports whether a token begins with a letter of a script that writes
// no spaces between words. A WordPiece token must be no "##" piece, and another
// token must have no space of its own.
func (t *Tokenizer) unspaced(id int) bool {
	text, joins := t.read(t.Token(id))
	first, _ := utf8.DecodeRuneInString(text)
	return unspaced(first) && joins != (t.alphabet == alphabetPieces)
}

// opensWord reports whether a token that follows another token begins a word.
func (t *Tokenizer) opensWord(id int) bool {
	_, joins := t.read(t.Token(id))
	return !joins || t.unspaced(id)
}

// Word reports whether a token is a word or a piece of a word: only letters,
// digits and the marks on them.
func (t *Tokenizer) Word(id int) bool {
	text, _ := t.read(t.Token(id))
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !wordRune(r) && !unicode.IsMark(r) })
}

// Fillable returns the ids that a slot may take, ascending. It leaves out
// special and added tokens, [unusedN], and tokens that are empty or a part of a
// character. It also leaves out tokens with a control character, which a
// terminal would obey. The caller owns the slice.
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
