package tokenize

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sugarme/tokenizer/decoder"
)

// alphabet says how the tokens of a vocabulary spell a text.
type alphabet int

const (
	alphabetPieces     alphabet = iota // ## before a piece that continues a word (WordPiece)
	alphabetBytes                      // a character for each byte, such as Ġ for a space (byte-level BPE)
	alphabetSpaces                     // ▁ for a space (Unigram)
	alphabetCharacters                 // ▁ for a space, and <0x0A> for a byte (BPE over characters)
)

// continuation begins a piece that goes on with a word; metaspace is a space.
const (
	continuation = "##"
	metaspace    = '▁'
)

// continues reports whether a token is "##" and more; "##" alone is text.
func continues(token string) bool {
	return len(token) > len(continuation) && strings.HasPrefix(token, continuation)
}

// bare reports whether the token of a text's first word has no space, although
// the tokens of later words have one.
func (t *Tokenizer) bare() bool {
	return t.alphabet == alphabetBytes || t.alphabet == alphabetCharacters && !t.prepends
}

// read returns the text that a token stands for. joins reports whether the
// token joins the text on its left without a space. If the token is spelled in
// bytes, text may be a part of a character.
func (t *Tokenizer) read(token string) (text string, joins bool) {
	switch t.alphabet {
	case alphabetPieces:
		if continues(token) {
			return token[len(continuation):], true
		}
		return token, false
	case alphabetBytes:
		word, spaced := strings.CutPrefix(decodeBytes(token), " ")
		return word, !spaced
	case alphabetCharacters:
		b := byteOf(token)
		if b >= 0 {
			return string([]byte{byte(b)}), true
		}
	}
	word, spaced := strings.CutPrefix(token, string(metaspace))
	return strings.ReplaceAll(word, string(metaspace), " "), !spaced
}

// bound reports whether a token joins the text on its left without a space.
func (t *Tokenizer) bound(token string) bool {
	_, joins := t.read(token)
	return joins
}

// wordPieces joins tokens with spaces between words, but without a space before
// punctuation such as a full stop.
var wordPieces = decoder.NewWordPieceDecoder(continuation, true)

// apart reports whether two tokens of neighbouring slots get a space between them.
func (t *Tokenizer) apart(left, right string) bool {
	if t.alphabet != alphabetPieces {
		return !t.bound(right)
	}
	last, _ := utf8.DecodeLastRuneInString(left)
	first, _ := utf8.DecodeRuneInString(right)
	if unspaced(last) && unspaced(first) {
		return false
	}
	return strings.HasPrefix(wordPieces.DecodeChain([]string{left, right})[1], " ")
}

// Decode returns the text of ids as Hugging Face's decoder does. It leaves out
// special tokens and joins pieces. For WordPiece it writes no space before . ,
// ? !. It ignores ids outside the vocabulary.
func (t *Tokenizer) Decode(ids []int) string {
	tokens := make([]string, 0, len(ids))
	for _, id := range ids {
		if id >= 0 && id < len(t.vocabulary) && !t.silent[id] {
			tokens = append(tokens, t.vocabulary[id])
		}
	}
	switch {
	case len(tokens) == 0:
		return ""
	case t.alphabet == alphabetPieces:
		return strings.Join(wordPieces.DecodeChain(tokens), "")
	case t.alphabet == alphabetBytes:
		return strings.ToValidUTF8(decodeBytes(strings.Join(tokens, "")), string(utf8.RuneError))
	case t.alphabet == alphabetCharacters:
		return t.decodeCharacters(tokens)
	}
	first := strings.ReplaceAll(tokens[0], string(metaspace), "") // the reference drops every space of the first token
	return first + strings.ReplaceAll(strings.Join(tokens[1:], ""), string(metaspace), " ")
}

// decodeCharacters joins tokens of a vocabulary of characters. Byte tokens that
// are not valid UTF-8 become U+FFFD each.
func (t *Tokenizer) decodeCharacters(tokens []string) string {
	var text strings.Builder
	var spelled []byte
	flush := func() {
		if utf8.Valid(spelled) {
			text.Write(spelled)
		} else {
			text.WriteString(strings.Repeat(string(utf8.RuneError), len(spelled)))
		}
		spelled = spelled[:0]
	}
	for _, token := range tokens {
		b := byteOf(token)
		if b >= 0 {
			spelled = append(spelled, byte(b))
			continue
		}
		flush()
		text.WriteString(strings.ReplaceAll(token, string(metaspace), " "))
	}
	flush()
	if t.dropsBlank {
		return strings.TrimPrefix(text.String(), " ")
	}
	return text.String()
}

// unspaced reports whether a character is a letter of a script that writes no
// spaces between words, so that its neighbours may belong to other words.
func unspaced(r rune) bool {
	return r >= 0xe00 &&
		unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer,
			unicode.Myanmar) || r == 'ー'
}

// unspacedBeside reports whether the last letter of left or the first of right
// is unspaced; white space does not count.
func unspacedBeside(left, right string) bool {
	before, _ := utf8.DecodeLastRuneInString(strings.TrimRightFunc(left, unicode.IsSpace))
	after, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(right, unicode.IsSpace))
	return unspaced(before) || unspaced(after)
}
