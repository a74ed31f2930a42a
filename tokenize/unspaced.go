package tokenize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// unspaced reports whether a character is a letter of a script that writes no blanks between words: what stands beside
// it need not be the same word.
func unspaced(r rune) bool {
	return r >= 0xe00 &&
		unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer,
			unicode.Myanmar) || r == 'ー'
}

// unspacedBeside reports whether the letter before or the one behind a place is of such a script, white space left out.
func unspacedBeside(left, right string) bool {
	before, _ := utf8.DecodeLastRuneInString(strings.TrimRightFunc(left, unicode.IsSpace))
	after, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(right, unicode.IsSpace))
	return unspaced(before) || unspaced(after)
}
