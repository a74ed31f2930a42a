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
	alphabetPieces     alphabet = iota // ## continues a word (WordPiece)
	alphabetBytes                      // a character stands for a byte, Ġ for a space (byte-level BPE)
	alphabetSpaces                     // ▁ stands for a space (Unigram)
	alphabetCharacters                 // the same, and <0x0A> for a byte (BPE over characters)
)

// continuation starts a piece that continues the word on its left, and metaspace stands for a space.
const (
	continuation = "##"
	metaspace    = '▁'
)

// continues reports whether a token starts with "##"; a bare "##" is text.
func continues(token string) bool {
	return len(token) > len(continuation) && strings.HasPrefix(token, continuation)
}

// bare reports whether the token of a text's first word has no space, although those of other words have one.
func (t *Tokenizer) bare() bool {
	return t.alphabet == alphabetBytes || t.alphabet == alphabetCharacters && !t.prepends
}

// read returns the text that a token stands for, and whether it joins the text on its left without a space. The text of
// a token of bytes may be a part of a character.
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
		if b := byteOf(token); b >= 0 {
			return string([]byte{byte(b)}), true
		}
	}
	word, spaced := strings.CutPrefix(token, string(metaspace))
	return strings.ReplaceAll(word, string(metaspace), " "), !spaced
}

// wordPieces puts spaces between words, but none before a full stop.
var wordPieces = decoder.NewWordPieceDecoder(continuation, true)

// apart reports whether two tokens with no text between them get a space between them.
func (t *Tokenizer) apart(left, right string) bool {
	if t.alphabet != alphabetPieces {
		_, joins := t.read(right)
		return !joins
	}
	last, _ := utf8.DecodeLastRuneInString(left)
	if first, _ := utf8.DecodeRuneInString(right); unspaced(last) && unspaced(first) {
		return false
	}
	return strings.HasPrefix(wordPieces.DecodeChain([]string{left, right})[1], " ")
}

// Decode returns the text of ids as Hugging Face's decoder does: without special tokens, pieces joined, and for
// WordPiece without the space before . , ? !. Ids outside the vocabulary are left out.
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
	first := strings.ReplaceAll(tokens[0], string(metaspace), "") // the reference drops every space of it
	return first + strings.ReplaceAll(strings.Join(tokens[1:], ""), string(metaspace), " ")
}

// decodeCharacters joins tokens of a vocabulary of characters. Bytes that are no characters read as one U+FFFD each.
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
		if b := byteOf(token); b >= 0 {
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

// unspaced reports whether a character is a letter of a script that writes no spaces between words: its neighbours may
// belong to other words.
func unspaced(r rune) bool {
	return r >= 0xe00 &&
		unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer,
			unicode.Myanmar) || r == 'ー'
}

// unspacedBeside reports whether the letter before or after a place is unspaced; white space between does not count.
func unspacedBeside(left, right string) bool {
	before, _ := utf8.DecodeLastRuneInString(strings.TrimRightFunc(left, unicode.IsSpace))
	after, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(right, unicode.IsSpace))
	return unspaced(before) || unspaced(after)
}
