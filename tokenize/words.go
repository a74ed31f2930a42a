package tokenize

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// words finds the words of a text. A word is letters and digits with their
// marks, as in हिन्दी. An apostrophe, a hyphen, a full stop or what nobody sees (a
// joiner, a soft hyphen, a space of no width) ties two parts of a word, and a comma
// two of a number. Chinese characters and hiragana are words by themselves. The page of infill/serve has the same
// expression.
var words = regexp.MustCompile(`[\p{Han}\p{Hiragana}]\p{M}*|` + letter + `(?:` + letter + `|\p{M})*` +
	`(?:(?:\p{Cf}+|\p{Cf}*['’.·-]\p{Cf}*)(?:` + letter + `|\p{M})+|,\p{N}+)*`)

const letter = `(?:[^\P{L}\p{Han}\p{Hiragana}]|\p{N})`

// Part is a word of a text, or one of the signs between words.
type Part struct {
	Start, End int  // byte range
	Word       bool // false for a sign
}

// Parts cuts a text into its words and the signs between them. White space is in
// no part.
func Parts(text string) (list []Part) {
	from := 0
	signs := func(to int) {
		for from < to {
			r, size := utf8.DecodeRuneInString(text[from:])
			last := len(list) - 1
			switch {
			case unicode.IsSpace(r):
			case unicode.IsMark(r) && last >= 0 && list[last].End == from:
				list[last].End += size
			default:
				list = append(list, Part{Start: from, End: from + size})
			}
			from += size
		}
	}
	for _, at := range words.FindAllStringIndex(text, -1) {
		signs(at[0])
		list = append(list, Part{Start: at[0], End: at[1], Word: true})
		from = at[1]
	}
	signs(len(text))
	return list
}

// shortForms stand behind an apostrophe.
var shortForms = []string{"s", "t", "d", "m", "re", "ve", "ll", "em"}

// Maskable returns the words of a text that a blank may take the place of: they begin
// with a letter, and are no short forms after an apostrophe ('s).
func Maskable(text string) (list []Part) {
	for _, p := range Parts(text) {
		word := text[p.Start:p.End]
		first, _ := utf8.DecodeRuneInString(word)
		before, _ := utf8.DecodeLastRuneInString(text[:p.Start])
		short := strings.ContainsRune("'’", before) && slices.Contains(shortForms, strings.ToLower(word))
		if unicode.IsLetter(first) && !short {
			list = append(list, p)
		}
	}
	return list
}

// WordSpans returns the byte ranges of the words of a text, those inside blanks
// left out. further is a further spelling of a blank, or "".
func WordSpans(text, further string) (spans [][2]int) {
	from := 0
	add := func(to int) {
		for _, at := range words.FindAllStringIndex(text[from:to], -1) {
			spans = append(spans, [2]int{from + at[0], from + at[1]})
		}
	}
	for _, m := range spelled(further).marks(text) {
		if m.end >= 0 {
			add(m.start)
			from = m.end
		}
	}
	add(len(text))
	return spans
}
