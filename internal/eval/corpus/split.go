package corpus

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// headingLines is how many lines with text are looked at for a heading before a file counts as one sentence a line.
const headingLines = 50

// splitter cuts lines into sentences. While the form is Auto it holds lines back until the form is known.
type splitter struct {
	form Form
	held []Sentence // lines with text: of an undecided file, or of the paragraph being read
}

func (s *splitter) line(number int, text string, skipped *skips, emit func(line int, raw string)) {
	text = strings.TrimSpace(text)
	switch s.form {
	case Auto:
		if text == "" {
			return
		}
		s.held = append(s.held, Sentence{number, text})
		switch {
		case isHeading(text):
			s.form = WikiText
		case len(s.held) == headingLines:
			s.form = Lines
		default:
			return
		}
		lines := s.held
		s.held = nil
		for _, h := range lines {
			s.line(h.Line, h.Raw, skipped, emit)
		}
	case Lines:
		if text != "" {
			emit(number, text)
		}
	case WikiText:
		switch {
		case text == "":
		case isHeading(text):
			skipped.add(SkipHeading, number)
		default:
			splitTokens(text, func(raw string) { emit(number, raw) })
		}
	case Prose:
		if text == "" {
			s.paragraph(emit)
		} else {
			s.held = append(s.held, Sentence{number, text})
		}
	}
}

// flush hands out what was held back at the end of the file.
func (s *splitter) flush(emit func(line int, raw string)) {
	switch s.form {
	case Auto:
		for _, h := range s.held {
			emit(h.Line, h.Raw)
		}
		s.held = nil
	case Prose:
		s.paragraph(emit)
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
	quoted, start := false, 0
	type word struct{ from, to int }
	var words []word
	for from := 0; from < len(text); {
		width := strings.IndexFunc(text[from:], unicode.IsSpace)
		if width < 0 {
			width = len(text) - from
		}
		if width > 0 {
			words = append(words, word{from, from + width})
		}
		from += width
		_, size := utf8.DecodeRuneInString(text[from:])
		from += size
	}
	for k := 0; k < len(words); k++ {
		token := text[words[k].from:words[k].to]
		if token == `"` {
			quoted = !quoted
		}
		if token != "." && token != "?" && token != "!" {
			continue
		}
		for ; k+1 < len(words); k++ {
			next := text[words[k+1].from:words[k+1].to]
			if next == `"` && quoted {
				quoted = false
			} else if next != "''" && next != ")" && next != "]" && next != "." && next != "?" && next != "!" {
				break
			}
		}
		if k+1 < len(words) {
			first, _ := utf8.DecodeRuneInString(text[words[k+1].from:])
			if unicode.IsLower(first) {
				continue
			}
		}
		emit(text[words[start].from:words[k].to])
		start = k + 1
	}
	if start < len(words) {
		emit(text[words[start].from:])
	}
}
