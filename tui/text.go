package tui

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/rivo/uniseg"
)

// harmless makes any text fit to be shown on one line: control characters become
// their pictures, white space becomes blanks, and what would reorder or hide the
// text around it (bidirectional controls, line separators) U+FFFD.
func harmless(text string) string {
	clean := true
	for _, r := range text {
		if r < ' ' || r == utf8.RuneError || r >= 0x7f && (r < 0xa0 || hides(r)) {
			clean = false
			break
		}
	}
	if clean {
		return text
	}
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

// hides tells of characters that change how others are shown. The joiners, which
// emoji and several scripts need, are none.
func hides(r rune) bool {
	return r == '\u2028' || r == '\u2029' || r != '\u200c' && r != '\u200d' && unicode.Is(unicode.Cf, r)
}

// width is how many columns a text takes.
func width(text string) int { return ansi.StringWidth(text) }

// fit cuts or pads a text to a width, on the right.
func fit(text string, columns int) string {
	if columns <= 0 {
		return ""
	}
	if w := width(text); w < columns {
		return text + strings.Repeat(" ", columns-w)
	} else if w == columns {
		return text
	}
	text = ansi.Truncate(text, columns, "…")
	// A wide rune that did not fit leaves a column free.
	return text + strings.Repeat(" ", max(columns-width(text), 0))
}

// right pads a text on the left.
func right(text string, columns int) string {
	if w := width(text); w < columns {
		return strings.Repeat(" ", columns-w) + text
	}
	return fit(text, columns)
}

// between puts one text at the left end and one at the right end of a line; the
// left one gives way.
func between(left, rightEnd string, columns int) string {
	room := columns - width(rightEnd)
	if room < 0 {
		return fit(rightEnd, columns)
	}
	return fit(left, room) + rightEnd
}

// part is a stretch of a text with one style.
type part struct {
	text string
	slot int // of the blank it fills, -1 for the text around
}

// parts cuts a text at the spans of its blanks. The parts are harmless.
func parts(text string, spans [][2]int) []part {
	list := make([]part, 0, 2*len(spans)+1)
	from := 0
	for slot, span := range spans {
		list = append(list, part{harmless(text[from:span[0]]), -1}, part{harmless(text[span[0]:span[1]]), slot})
		from = span[1]
	}
	return append(list, part{harmless(text[from:]), -1})
}

// excerpt shortens the text around the blanks, so that they stay in sight: the
// first stretch at its start, the last at its end, the others in their middle.
func excerpt(list []part, columns int) []part { return shorten(list, allowance(list, columns)) }

// allowance is the longest that each stretch around the blanks may be for the whole
// to fit.
func allowance(list []part, columns int) int {
	fills, longest := 0, 0
	var around []int
	for _, p := range list {
		if w := width(p.text); p.slot < 0 {
			around = append(around, w)
			longest = max(longest, w)
		} else {
			fills += w
		}
	}
	for allowed := longest; allowed > 1; allowed-- {
		length := fills
		for _, w := range around {
			length += min(w, allowed)
		}
		if length <= columns {
			return allowed
		}
	}
	return 1
}

func shorten(list []part, allowed int) []part {
	short := make([]part, len(list))
	for i, p := range list {
		short[i] = p
		w := width(p.text)
		if p.slot >= 0 || w <= allowed {
			continue
		}
		switch {
		case i == 0:
			short[i].text = "…" + wholeWords(ansi.TruncateLeft(p.text, w-allowed+1, ""), true)
		case i == len(list)-1:
			short[i].text = wholeWords(ansi.Truncate(p.text, allowed-1, ""), false) + "…"
		default:
			head := (allowed - 1) / 2
			short[i].text = wholeWords(ansi.Truncate(p.text, head, ""), false) + "…" + wholeWords(ansi.TruncateLeft(p.text, w-(allowed-1-head), ""), true)
		}
	}
	return short
}

// wholeWords takes off the word that was cut, at the start or at the end of a text.
func wholeWords(text string, atStart bool) string {
	if atStart {
		if at := strings.IndexByte(text, ' '); at >= 0 {
			return text[at:]
		}
	} else if at := strings.LastIndexByte(text, ' '); at >= 0 {
		return text[:at+1]
	}
	return text
}

// glyph is one user-perceived character of a text, which may be of several runes.
type glyph struct {
	text       string
	start, end int // bytes
	width      int // columns
}

// glyphs cuts a text into what takes cells of its own. White space and control
// characters come out as blanks and pictures.
func glyphs(text string) []glyph {
	var list []glyph
	state := -1
	for at := 0; at < len(text); {
		cluster, _, _, next := uniseg.FirstGraphemeClusterInString(text[at:], state)
		state = next
		shown := harmless(cluster)
		if cluster == "\r\n" {
			shown = " "
		}
		g := glyph{text: shown, start: at, end: at + len(cluster), width: width(shown)}
		at = g.end
		if g.width == 0 && len(list) > 0 {
			// What takes no cell goes with what stands before it.
			last := &list[len(list)-1]
			last.text += g.text
			last.end = g.end
			continue
		}
		list = append(list, g)
	}
	return list
}

// wrap breaks glyphs into lines of at most the given columns, after blanks where
// it can.
func wrap(list []glyph, columns int) [][]glyph {
	var lines [][]glyph
	start, used, breakAt := 0, 0, -1
	for i := 0; i < len(list); i++ {
		if used+list[i].width > columns && i > start {
			end := i
			if breakAt > start {
				end = breakAt
			}
			lines = append(lines, list[start:end])
			start, used, breakAt = end, 0, -1
			i = end - 1
			continue
		}
		used += list[i].width
		if list[i].text == " " {
			breakAt = i + 1
		}
	}
	return append(lines, list[start:])
}

// bar draws a share of 1 as a line, to half a cell.
func bar(share float64, columns int) string {
	if !(share > 0) {
		return strings.Repeat(" ", columns)
	}
	halves := min(max(int(share*float64(columns)*2+0.5), 1), columns*2)
	return fit(strings.Repeat("━", halves/2)+strings.Repeat("╸", halves%2), columns)
}

// sparkline draws values as the heights of blocks, several to a cell where there
// are more of them than cells (their mean), from low (the lowest block) to high.
// What is not a number leaves a gap.
func sparkline(values []float32, columns int, low, high float64) string {
	if len(values) == 0 || columns <= 0 {
		return ""
	}
	// The highest blocks are left out, so that lines below each other stay apart.
	blocks := []rune("▁▂▃▄▅▆")
	cells := min(columns, len(values))
	var text strings.Builder
	for cell := range cells {
		sum, n := 0.0, 0
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

// stack joins texts below each other and makes them exactly as wide and high as
// given.
func stack(columns, rows int, blocks ...string) string {
	var lines []string
	for _, block := range blocks {
		lines = append(lines, strings.Split(block, "\n")...)
	}
	for len(lines) < rows {
		lines = append(lines, "")
	}
	lines = lines[:rows]
	for i := range lines {
		lines[i] = fit(lines[i], columns)
	}
	return strings.Join(lines, "\n")
}

// beside joins blocks of equal height side by side with a rule between them.
func beside(rule string, rows int, left, rightSide string) string {
	column := strings.TrimSuffix(strings.Repeat(rule+"\n", rows), "\n")
	return lipgloss.JoinHorizontal(lipgloss.Top, left, column, rightSide)
}
