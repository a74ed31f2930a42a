package tui

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/rivo/uniseg"

	"infill/infill"
	"infill/internal/lines"
	"infill/internal/phrase"
)

// harmless makes any text safe to show on one line. Control characters become
// their pictures, white space becomes spaces, and characters that would reorder
// or hide others (bidirectional controls, line separators) become U+FFFD.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case r < ' ':
			return '\u2400' + r
		case r == 0x7f:
			return '\u2421'
		case r > 0x7f && r < 0xa0 || hides(r):
			return utf8.RuneError
		}
		return r
	}, text)
}

// hides reports whether r changes how other characters are displayed. It
// returns false for joiners, which emoji and several scripts need.
func hides(r rune) bool {
	return r == '\u2028' || r == '\u2029' || r != '\u200c' && r != '\u200d' && unicode.Is(unicode.Cf, r)
}

func width(text string) int { return ansi.StringWidth(text) }

func cut(text string, columns int) string { return ansi.Truncate(text, columns, "…") }

// wrapped breaks text into lines, at most rows, else with an ellipsis.
func wrapped(text string, columns, rows int) []string {
	list := strings.Split(ansi.Wrap(text, columns, ""), "\n")
	if len(list) <= rows {
		return list
	}
	list = list[:max(rows, 1)]
	list[len(list)-1] = cut(list[len(list)-1]+" …", columns)
	return list
}

// fit cuts or pads text, at its right end, to exactly columns.
func fit(text string, columns int) string {
	w := width(text)
	if w > columns {
		text = cut(text, max(columns, 0))
	}
	// If cut removes a wide character, a column may be free.
	return text + spaces(columns-width(text))
}

// right pads text at its left end to columns.
func right(text string, columns int) string {
	return spaces(columns-width(text)) + fit(text, min(columns, width(text)))
}

func spaces(columns int) string { return strings.Repeat(" ", max(columns, 0)) }

// between puts two texts at the ends of a line, and shortens left if need be.
func between(left, rightEnd string, columns int) string {
	rightEnd = fit(rightEnd, min(columns, width(rightEnd)))
	return fit(left, columns-width(rightEnd)) + rightEnd
}

type part struct {
	text  string
	blank int // index of the blank that the part fills; -1 for the text around blanks
}

// parts splits text at the spans of its blanks. It makes each part harmless.
func parts(text string, spans [][2]int) []part {
	list := make([]part, 0, 2*len(spans)+1)
	from := 0
	for blank, span := range spans {
		list = append(list, part{harmless(text[from:span[0]]), -1}, part{harmless(text[span[0]:span[1]]), blank})
		from = span[1]
	}
	return append(list, part{harmless(text[from:]), -1})
}

func filled(f *infill.Fill) []part { return parts(f.Text, lines.Bytes(f.Text, f.Spans)) }

func graphemes(text string) [][2]int {
	var list [][2]int
	for g := uniseg.NewGraphemes(text); g.Next(); {
		from, to := g.Positions()
		list = append(list, [2]int{from, to})
	}
	return list
}

// decimal formats nats, with "?" if x is not known yet (NaN).
func decimal(x float64) string {
	if math.IsNaN(x) {
		return "?"
	}
	return fmt.Sprintf("%.2f", x)
}

// scale returns the head of a column of bars, with its lowest and highest.
func scale(most float64, columns int) string {
	if most <= 0 || columns < 10 {
		return spaces(columns)
	}
	end := phrase.Percent(most)
	line := columns - 1 - width(end)
	if line > 0 {
		return "0" + strings.Repeat("─", line) + end
	}
	return right(end, columns)
}

// bar draws a share from 0 to 1 as a line, to half a column.
func bar(share float64, columns int) string {
	if !(share > 0) {
		return spaces(columns)
	}
	halves := min(max(int(share*float64(columns)*2+0.5), 1), columns*2)
	return fit(strings.Repeat("━", halves/2)+strings.Repeat("╸", halves%2), columns)
}

// sparkline draws values as blocks from low to high, in each column the mean of
// several if need be. A NaN leaves a gap.
func sparkline(values []float32, columns int, low, high float64) string {
	if len(values) == 0 || columns <= 0 {
		return ""
	}
	// The highest blocks are left out, so that lines do not touch each other.
	blocks := []rune("▁▂▃▄▅▆")
	cells := min(columns, len(values))
	var text strings.Builder
	for cell := range cells {
		sum := 0.0
		n := 0
		for _, v := range values[cell*len(values)/cells : (cell+1)*len(values)/cells] {
			if v == v {
				sum += float64(v)
				n++
			}
		}
		if n == 0 {
			text.WriteByte(' ')
			continue
		}
		level := len(blocks) - 1
		if high > low {
			level = int((sum/float64(n) - low) / (high - low) * float64(len(blocks)))
		}
		text.WriteRune(blocks[min(max(level, 0), len(blocks)-1)])
	}
	return text.String()
}

// stack puts blocks below each other, exactly as wide and high as given.
func stack(columns, rows int, blocks ...string) string {
	text := strings.Join(blocks, "\n") + strings.Repeat("\n", rows)
	lines := strings.Split(text, "\n")[:rows]
	for i := range lines {
		lines[i] = fit(lines[i], columns)
	}
	return strings.Join(lines, "\n")
}

// beside puts blocks of equal height side by side, with a rule between each two.
func beside(rule string, rows int, blocks ...string) string {
	column := strings.TrimSuffix(strings.Repeat(rule+"\n", rows), "\n")
	text := blocks[0]
	for _, block := range blocks[1:] {
		text = lipgloss.JoinHorizontal(lipgloss.Top, text, column, block)
	}
	return text
}
