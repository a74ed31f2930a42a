package corpus

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// headingLines is how many lines with text are looked at for a heading before a file counts as one sentence a line.
const headingLines = 50

// detect tells the form of a file that nobody named.
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

// splitter cuts lines into sentences.
type splitter struct {
	form Form
	held []Sentence // lines of the paragraph of prose that is being read
}

func (s *splitter) line(number int, text string, skipped *skips, emit func(line int, raw string)) {
	text = strings.TrimSpace(text)
	switch {
	case s.form == Prose && text == "":
		s.paragraph(emit)
	case text == "":
	case s.form == Prose:
		s.held = append(s.held, Sentence{number, text})
	case s.form == WikiText && isHeading(text):
		skipped.add(SkipHeading, number)
	case s.form == WikiText:
		splitTokens(text, func(raw string) { emit(number, raw) })
	default:
		emit(number, text)
	}
}

// paragraph joins the lines of a paragraph and cuts it by Unicode's sentence boundaries, but not before a small letter:
// UAX #29 ends a sentence at every question mark, also that of direct speech.
func (s *splitter) paragraph(emit func(line int, raw string)) {
	var text strings.Builder
	var starts []int // byte at which each held line starts
	for i, h := range s.held {
		if i > 0 {
			text.WriteByte(' ')
		}
		starts = append(starts, text.Len())
		text.WriteString(h.Raw)
	}
	var pieces []Sentence
	rest, state, at, line := text.String(), -1, 0, 0
	for rest != "" {
		var sentence string
		sentence, rest, state = uniseg.FirstSentenceInString(rest, state)
		for line+1 < len(starts) && starts[line+1] <= at {
			line++
		}
		at += len(sentence)
		first, _ := utf8.DecodeRuneInString(sentence)
		if len(pieces) > 0 && unicode.IsLower(first) {
			pieces[len(pieces)-1].Raw += sentence
		} else {
			pieces = append(pieces, Sentence{s.held[line].Line, sentence})
		}
	}
	for _, p := range pieces {
		if sentence := strings.TrimSpace(p.Raw); sentence != "" {
			emit(p.Line, sentence)
		}
	}
	s.held = s.held[:0]
}

// isHeading recognises " = Title = ", " = = Section = = " and deeper ones, which have as many equals signs on either
// side.
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

// splitTokens cuts a paragraph that is already cut into words. A sentence ends at a full stop, question or exclamation
// mark that is a word of its own (those of abbreviations are not), with the quotes and brackets closed after it, unless
// the next word begins with a small letter.
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
