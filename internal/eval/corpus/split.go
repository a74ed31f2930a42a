package corpus

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// headingLines is the number of first lines of text without a heading after which a file counts as one sentence a line.
const headingLines = 50

// detect returns the form of a file, from its name and its first lines.
func detect(path, text string) Form {
	if wikiName.MatchString(filepath.Base(path)) {
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
		if seen++; seen == headingLines {
			break
		}
	}
	return Lines
}

var wikiName = regexp.MustCompile(`^wiki\..*(tokens|raw)$`)

// isHeading recognises " = Title = ", " = = Section = = " and deeper headings, with as many equals signs on each side.
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

// splitTokens cuts a paragraph of separate words into sentences. A sentence ends at a full stop, question or
// exclamation mark that is a word of its own (those of abbreviations are not), with closing quotes and brackets after
// it, unless the next word begins with a small letter.
func splitTokens(text string, emit func(raw string)) {
	quoted, start, words := false, 0, strings.Fields(text)
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
			if first, _ := utf8.DecodeRuneInString(words[k+1]); unicode.IsLower(first) {
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
