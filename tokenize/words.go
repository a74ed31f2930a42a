package tokenize

import "regexp"

// words are letters and digits with their marks, as in हिन्दी, and what ties
// two parts of a word: an apostrophe, a hyphen, or a joiner of scripts. The page
// of infill/serve has the same expression.
var words = regexp.MustCompile(`[\p{L}\p{N}][\p{L}\p{N}\p{M}]*(?:['’\x{200C}\x{200D}-][\p{L}\p{N}\p{M}]+)*`)

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
