package main

import (
	"encoding/xml"
	"fmt"
	"image/color"
	"io"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
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
	letters    bool // of one cell each
}

// write draws a screen: lines of text with escape sequences for colours, bold,
// underline and reverse. Letters are text; blocks and lines, which fonts draw with
// gaps, are rectangles.
func write(w io.Writer, screen string, light bool) {
	t := themeOf(light)
	text := uv.NewStyledString(strings.TrimRight(screen, "\n"))
	size := text.Bounds()
	cells := uv.NewScreenBuffer(size.Dx(), size.Dy())
	cells.Method = ansi.GraphemeWidth
	text.Draw(cells, size)
	width, height := 2*padding+float64(size.Dx())*cellWidth, 2*padding+float64(size.Dy())*cellHeight
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.1f %.1f" width="%.0f" font-family="ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="%d">`+"\n",
		width, height, width, fontSize)
	fmt.Fprintf(w, `<rect width="100%%" height="100%%" rx="10" fill="%s" stroke="%s" stroke-opacity="0.25"/>`+"\n", t.background, t.basic[8])
	for y, line := range cells.Lines {
		for _, r := range runs(line, t) {
			draw(w, r, y, t)
		}
	}
	fmt.Fprintln(w, "</svg>")
}

// runs reads one line.
func runs(line []uv.Cell, t theme) []run {
	var list []run
	x := 0
	for _, c := range line {
		if c.Width == 0 {
			continue // the rest of a wide character
		}
		now := look{t.of(c.Style.Fg), t.of(c.Style.Bg), c.Style.Attrs&uv.AttrBold != 0, c.Style.Underline != 0, c.Style.Attrs&uv.AttrReverse != 0}
		letter := shape(c.Content) == nil && c.Width == 1
		if last := len(list) - 1; last >= 0 && letter && list[last].letters && list[last].look == now {
			list[last].text += c.Content
			list[last].columns++
		} else {
			list = append(list, run{now, x, c.Width, c.Content, letter})
		}
		x += c.Width
	}
	return list
}

// of is a colour as SVG writes it, "" for the terminal's own.
func (t theme) of(c color.Color) string {
	switch c := c.(type) {
	case nil:
		return ""
	case ansi.BasicColor:
		return t.basic[c]
	case ansi.IndexedColor:
		if c < 16 {
			return t.basic[c]
		}
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
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
