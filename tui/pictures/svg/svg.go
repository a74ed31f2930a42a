// Package svg draws a terminal's screen. Letters are text; blocks and lines, which
// fonts draw with gaps, are rectangles.
package svg

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/rivo/uniseg"
)

// Sizes in user units. A cell is as wide as most monospaced fonts at this size.
const (
	cellWidth, cellHeight = 8.4, 18.0
	fontSize              = 14
	padding               = 16.0
)

// look is how a cell is drawn.
type look struct {
	foreground, background   string // "" is the terminal's own
	bold, underline, reverse bool
}

// theme is a terminal's own colours.
type theme struct {
	foreground, background string
	basic                  [16]string
}

func themeOf(light bool) theme {
	if light {
		return theme{"#24292f", "#ffffff", [16]string{"#24292f", "#c0263d", "#2f7d32", "#a15c00", "#1d4ed8", "#7c3aed", "#0369a1", "#d0d5dd",
			"#6b7280", "#c0263d", "#2f7d32", "#a15c00", "#1d4ed8", "#7c3aed", "#0369a1", "#ffffff"}}
	}
	return theme{"#d5daea", "#16181f", [16]string{"#16181f", "#f7768e", "#9ece6a", "#e0af68", "#7aa2f7", "#bb9af7", "#7dcfff", "#d5daea",
		"#8a93a5", "#f7768e", "#9ece6a", "#e0af68", "#7aa2f7", "#bb9af7", "#7dcfff", "#ffffff"}}
}

// run is a stretch of cells of one look.
type run struct {
	look
	x, columns int
	text       string
}

// Write draws a screen: lines of text with escape sequences for colours, bold,
// underline and reverse.
func Write(w io.Writer, screen string, light bool) {
	t := themeOf(light)
	lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
	columns := 0
	for _, line := range lines {
		columns = max(columns, ansi.StringWidth(line))
	}
	width, height := 2*padding+float64(columns)*cellWidth, 2*padding+float64(len(lines))*cellHeight
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.1f %.1f" width="%.0f" font-family="ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="%d">`+"\n",
		width, height, width, fontSize)
	fmt.Fprintf(w, `<rect width="100%%" height="100%%" rx="10" fill="%s" stroke="%s" stroke-opacity="0.25"/>`+"\n", t.background, t.basic[8])
	for y, line := range lines {
		for _, r := range runs(line, t) {
			draw(w, r, y, t)
		}
	}
	fmt.Fprintln(w, "</svg>")
}

// runs reads one line.
func runs(line string, t theme) []run {
	var list []run
	var now look
	x := 0
	for len(line) > 0 {
		if strings.HasPrefix(line, "\x1b[") {
			end := strings.IndexFunc(line[2:], func(r rune) bool { return r >= '@' && r <= '~' })
			if end < 0 {
				break
			}
			if line[2+end] == 'm' {
				now = now.after(line[2:2+end], t)
			}
			line = line[2+end+1:]
			continue
		}
		cluster, rest, _, _ := uniseg.FirstGraphemeClusterInString(line, -1)
		line = rest
		columns := ansi.StringWidth(cluster)
		if last := len(list) - 1; last >= 0 && list[last].look == now && list[last].x+list[last].columns == x && shape(cluster) == nil && columns == 1 &&
			shape(list[last].text) == nil && ansi.StringWidth(list[last].text) == list[last].columns {
			list[last].text += cluster
			list[last].columns += columns
		} else {
			list = append(list, run{now, x, columns, cluster})
		}
		x += columns
	}
	return list
}

// after applies the parameters of one SGR sequence.
func (l look) after(parameters string, t theme) look {
	fields := strings.FieldsFunc(parameters, func(r rune) bool { return r == ';' || r == ':' })
	if len(fields) == 0 {
		return look{}
	}
	for i := 0; i < len(fields); i++ {
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			return l
		}
		switch {
		case n == 0:
			l = look{}
		case n == 1:
			l.bold = true
		case n == 4:
			l.underline = true
		case n == 7:
			l.reverse = true
		case n == 22:
			l.bold = false
		case n == 24:
			l.underline = false
		case n == 27:
			l.reverse = false
		case n >= 30 && n <= 37:
			l.foreground = t.basic[n-30]
		case n >= 90 && n <= 97:
			l.foreground = t.basic[n-90+8]
		case n >= 40 && n <= 47:
			l.background = t.basic[n-40]
		case n == 39:
			l.foreground = ""
		case n == 49:
			l.background = ""
		case n == 38 || n == 48:
			colour, used := extended(fields[i+1:], t)
			i += used
			if n == 38 {
				l.foreground = colour
			} else {
				l.background = colour
			}
		}
	}
	return l
}

// extended reads "5;N" or "2;R;G;B".
func extended(fields []string, t theme) (colour string, used int) {
	var n [4]int
	for i := range min(len(fields), 4) {
		n[i], _ = strconv.Atoi(fields[i])
	}
	switch {
	case n[0] == 2 && len(fields) >= 4:
		return fmt.Sprintf("#%02x%02x%02x", n[1], n[2], n[3]), 4
	case n[0] != 5 || len(fields) < 2:
		return "", len(fields)
	case n[1] < 16:
		return t.basic[n[1]], 2
	case n[1] >= 232:
		v := 8 + 10*(n[1]-232)
		return fmt.Sprintf("#%02x%02x%02x", v, v, v), 2
	}
	levels, c := [6]int{0, 95, 135, 175, 215, 255}, n[1]-16
	return fmt.Sprintf("#%02x%02x%02x", levels[c/36], levels[c/6%6], levels[c%6]), 2
}

// shape is the rectangle of a glyph, as shares of the cell {x, y, width, height};
// nil for a letter.
func shape(glyph string) []float64 {
	r := []rune(glyph)
	if len(r) != 1 {
		return nil
	}
	const thin, heavy = 1.0 / cellHeight, 2.5 / cellHeight
	switch {
	case r[0] >= '▁' && r[0] <= '█':
		h := float64(r[0]-'▁'+1) / 8
		return []float64{0, 1 - h, 1, h}
	case r[0] == '━':
		return []float64{0, 0.5 - heavy/2, 1, heavy}
	case r[0] == '╸':
		return []float64{0, 0.5 - heavy/2, 0.5, heavy}
	case r[0] == '─':
		return []float64{0, 0.5 - thin/2, 1, thin}
	case r[0] == '│':
		return []float64{0.5 - 0.5/cellWidth, 0, 1 / cellWidth, 1}
	case r[0] == '▎':
		return []float64{0, 0, 0.25, 1}
	}
	return nil
}

func draw(w io.Writer, r run, y int, t theme) {
	foreground, background := r.foreground, r.background
	if foreground == "" {
		foreground = t.foreground
	}
	if r.reverse {
		if background == "" {
			background = t.background
		}
		foreground, background = background, foreground
	}
	left, top, wide := padding+float64(r.x)*cellWidth, padding+float64(y)*cellHeight, float64(r.columns)*cellWidth
	if background != "" {
		fmt.Fprintf(w, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", left, top, wide, cellHeight, background)
	}
	if r.underline {
		fmt.Fprintf(w, `<rect x="%.1f" y="%.1f" width="%.1f" height="1" fill="%s"/>`+"\n", left, top+cellHeight-2, wide, foreground)
	}
	if box := shape(r.text); box != nil {
		fmt.Fprintf(w, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s"/>`+"\n",
			left+box[0]*cellWidth, top+box[1]*cellHeight, box[2]*cellWidth, box[3]*cellHeight, foreground)
		return
	}
	if strings.TrimSpace(r.text) == "" {
		return
	}
	weight := ""
	if r.bold {
		weight = ` font-weight="bold"`
	}
	var text strings.Builder
	// A strings.Builder takes everything.
	_ = xml.EscapeText(&text, []byte(r.text))
	fmt.Fprintf(w, `<text x="%.1f" y="%.1f" textLength="%.1f" lengthAdjust="spacingAndGlyphs" xml:space="preserve" fill="%s"%s>%s</text>`+"\n",
		left, top+13.5, wide, foreground, weight, text.String())
}
