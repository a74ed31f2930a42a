package main

import (
	"regexp"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// definition matches a line that says what something is: a term, two spaces or more, and words about it, which go on
// below their beginning.
var definition = regexp.MustCompile(`^( *\S+(?: \S+)* {2,})\S`)

// reflow writes a help text for a terminal: lines of one paragraph, and of one definition, are filled up to the width
// and no further. Other lines that are indented, as examples, stand by themselves.
func reflow(text string, width int) string {
	var b strings.Builder
	line, hang, goesOn := "", -1, false
	end := func() {
		if hang < 0 {
			return
		}
		head, margin := line[:hang], hang
		if hang > width/2 && ansi.StringWidth(line) > width { // too narrow for two columns
			b.WriteString(strings.TrimRight(head, " ") + "\n")
			margin = width / 5
			head = strings.Repeat(" ", margin)
		}
		// A flag is not broken behind its hyphens, where Wordwrap breaks words.
		body := ansi.Wordwrap(strings.ReplaceAll(line[hang:], "-", "\u2011"), max(width-margin, 1), "")
		body = strings.ReplaceAll(body, "\u2011", "-")
		b.WriteString(head + strings.ReplaceAll(body, "\n", "\n"+strings.Repeat(" ", margin)) + "\n")
	}
	for next := range strings.Lines(text) {
		next = strings.TrimRight(next, " \n")
		words := strings.TrimLeft(next, " ")
		indent := len(next) - len(words)
		if goesOn && words != "" && indent == hang {
			line += " " + words
			continue
		}
		end()
		line, hang, goesOn = next, indent, indent == 0 && words != "" && !strings.HasSuffix(words, ":")
		if found := definition.FindStringSubmatch(next); found != nil {
			hang, goesOn = len(found[1]), true
		}
	}
	end()
	return b.String()
}
