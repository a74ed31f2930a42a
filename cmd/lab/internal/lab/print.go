package lab

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"infill/samplers"
)

// counted is a number of things.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// withError is a mean with its standard error, where that is known.
func withError(format string, mean float64, standardError *float64) string {
	text := fmt.Sprintf(format, mean)
	if standardError != nil {
		text += " ± " + fmt.Sprintf(format, *standardError)
	}
	return text
}

// MeanAndError writes a mean with its standard error, of one value without.
func MeanAndError(format string, values []float64) string {
	mean, e := samplers.MeanAndError(values)
	return withError(format, mean, e)
}

// printer writes for people.
type printer struct {
	text  strings.Builder
	width int
}

// wrap breaks a text that is wider than the page between words.
func (p *printer) wrap(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if p.width == 0 {
		return text
	}
	return ansi.Wordwrap(text, p.width, "")
}

func (p *printer) rest(format string, args ...any) {
	p.text.WriteString(p.wrap(fmt.Sprintf(format, args...)) + "\n")
}

// table aligns the first column to the left and the others, which are numbers, to the right.
func (p *printer) table(headers []string, rows [][]string) {
	widths := make([]int, len(headers))
	all := append([][]string{headers}, rows...)
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range all {
		line := ""
		for i, cell := range row {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line += "  " + cell + gap
			} else {
				line += "  " + gap + cell
			}
		}
		p.text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	p.text.WriteString("\n")
}
