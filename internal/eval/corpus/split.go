package corpus

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"infill/internal/lines"
)

// headingLines is how far detect looks for a heading of WikiText.
const headingLines = 50

// detect returns the form of a file by its name and its first lines.
func detect(path, text string) Kind {
	name := strings.TrimSuffix(filepath.Base(path), lines.Packed(path))
	if wikiName.MatchString(name) {
		return WikiText
	}
	seen := 0
	for line := range strings.Lines(text) {
		if !utf8.ValidString(line) || strings.TrimSpace(line) == "" {
			continue
		}
		if isHeading(line) {
			return WikiText
		}
		seen++
		if seen == headingLines {
			break
		}
	}
	return Lines
}

var wikiName = regexp.MustCompile(`^wiki\..*(tokens|raw)$`)

// isHeading reports whether a line is a heading: " = Title = ", " = =
// Section = = " or deeper, with equal sides.
func isHeading(text string) bool {
	words := strings.Fields(text)
	left := 0
	for left < len(words) && words[left] == "=" {
		left++
	}
	right := 0
	for right < len(words) && words[len(words)-1-right] == "=" {
		right++
	}
	return left > 0 && left == right && left+right < len(words)
}

// splitTokens cuts a paragraph of words with spaces between them into
// sentences. A sentence ends at a full stop, question or exclamation mark that
// is a word of its own, with the closing quotes and brackets after it. It does
// not end there if the next word begins with a small letter. (Full stops of
// abbreviations are not words of their own.)
func splitTokens(text string, emit func(raw string)) {
	quoted := false
	start := 0
	words := strings.Fields(text)
	for k := 0; k < len(words); k++ {
		if words[k] == `"` {
			quoted = !quoted
		}
		if !slices.Contains([]string{".", "?", "!"}, words[k]) {
			continue
		}
		for ; k+1 < len(words); k++ {
			if words[k+1] == `"` && quoted {
				quoted = false
			} else if !slices.Contains([]string{"''", ")", "]", ".", "?", "!"}, words[k+1]) {
				break
			}
		}
		if k+1 < len(words) {
			first, _ := utf8.DecodeRuneInString(words[k+1])
			if unicode.IsLower(first) {
				continue
			}
		}
		emit(strings.Join(words[start:k+1], " "))
		start = k + 1
	}
	if start < len(words) {
		emit(strings.Join(words[start:], " "))
	}
}
