package tokenize

import (
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// Part is a word of a text, or one of the signs between words.
type Part struct {
	Start, End int  // byte range
	Word       bool // whether it has a letter or a digit
}

// Parts cuts a text into its words and the signs between them, by Unicode's
// rules (UAX #29): "don't" is one word, and a letter keeps its accents. White
// space is in no part.
func Parts(text string) (list []Part) {
	state := -1
	at := 0
	for rest := text; rest != ""; {
		var part string
		part, rest, state = uniseg.FirstWordInString(rest, state)
		if strings.TrimSpace(part) != "" {
			list = append(list, Part{Start: at, End: at + len(part), Word: strings.ContainsFunc(part, inWord)})
		}
		at += len(part)
	}
	return list
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }
