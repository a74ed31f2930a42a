package main

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// definition matches a line that says what something is: a term, two spaces or more, and words about it, which go on below their beginning.
var definition = regexp.MustCompile(`^( *\S+(?: \S+)* {2,})\S`)

// reflow writes a help text for a terminal: lines of one paragraph, and of one term, are filled up to the width and no further.
// Lines that are indented without a term, as examples, stand by themselves.
func reflow(text string, width int) string {
	var b strings.Builder
	line, hang := "", 0
	end := func() {
		if hang > width/2 && utf8.RuneCountInString(line) > width { // too narrow for two columns
			head := cut(line, hang)
			b.WriteString(strings.TrimRight(head, " ") + "\n")
			hang = width / 5
			line = strings.Repeat(" ", hang) + line[len(head):]
		}
		for utf8.RuneCountInString(line) > width {
			at := strings.LastIndexByte(cut(line, width+1), ' ')
			if at < 0 || strings.TrimSpace(line[:at]) == "" { // a word that is wider than the terminal
				break
			}
			b.WriteString(strings.TrimRight(line[:at], " ") + "\n")
			line = strings.Repeat(" ", hang) + line[at+1:]
		}
		b.WriteString(line + "\n")
	}
	begun := false
	for next := range strings.Lines(text) {
		next = strings.TrimRight(next, " \n")
		trimmed := strings.TrimLeft(next, " ")
		indent := len(next) - len(trimmed)
		if begun && trimmed != "" && line != "" && indent == hang && (indent > 0 || !strings.HasSuffix(line, ":")) {
			line += " " + trimmed
			continue
		}
		if begun {
			end()
		}
		begun, line = true, next
		switch found := definition.FindStringSubmatch(next); {
		case found != nil:
			hang = utf8.RuneCountInString(found[1])
		case indent == 0:
			hang = 0
		default: // what goes on with an example is indented further
			hang = indent + 4
		}
	}
	if begun {
		end()
	}
	return b.String()
}

// cut is the first n characters of a text.
func cut(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}
