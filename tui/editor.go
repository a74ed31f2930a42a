package tui

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"infill/tokenize"
)

// blankText is a blank as it is typed. The tokenizer has the last word on it.
const blankText = "[MASK]"

// editor is the template being written. textinput keeps the text and the cursor; how it looks, wrapped and with its
// blanks in colour, is this file's.
type editor struct {
	input   textinput.Model
	marking *marking

	// glyphs are those of the text cut: a pasted page is not cut again for every frame.
	cut    string
	glyphs []glyph
}

// marking is the choice of words that become blanks.
type marking struct {
	base   string
	words  [][2]int // bytes of base
	marked map[int]bool
	at     int
}

// mostTyped is the longest text, in bytes, that the line takes: it is drawn at every key.
const mostTyped = 32 << 10

func newEditor(text string) editor {
	// One more than is taken, so that a text that is too long gives an error and is not cut.
	return editor{input: newInput(text, mostTyped+1)}
}

// newInput makes a line of text to be edited.
func newInput(text string, limit int) textinput.Model {
	input := textinput.New()
	input.CharLimit = limit
	input.SetValue(text)
	// ctrl+v would read the clipboard of the machine that runs the program; pasting is the terminal's business.
	input.KeyMap.Paste.SetEnabled(false)
	// The screen itself gives it the keys when it is time; the command would only make the cursor blink.
	input.Focus()
	return input
}

func (e *editor) text() string { return e.input.Value() }

// edit gives a key or a paste to the text; changed reports whether it did anything to it.
func (e *editor) edit(message tea.Msg) (changed bool) {
	e.marking = nil
	before, times := e.text(), 1
	switch m := message.(type) {
	case tea.KeyPressMsg:
		times = e.reach(m)
	case tea.PasteMsg:
		// The input itself takes control characters out.
		m.Content = strings.NewReplacer("\u2028", " ", "\u2029", " ").Replace(m.Content)
		message = m
	}
	for range times {
		e.input, _ = e.input.Update(message)
	}
	return e.text() != before
}

// cursor is the byte that the cursor stands before.
func (e *editor) cursor() int { return len(string([]rune(e.text())[:e.input.Position()])) }

// reach is how often a key is to be given to the input, which works on runes, to get past one character, such as a
// letter with its marks.
func (e *editor) reach(message tea.KeyPressMsg) int {
	keys, text, at := e.input.KeyMap, e.text(), e.cursor()
	back := key.Matches(message, keys.CharacterBackward, keys.DeleteCharacterBackward)
	if !back && !key.Matches(message, keys.CharacterForward, keys.DeleteCharacterForward) {
		return 1
	}
	for _, g := range graphemes(text) {
		switch {
		case back && g[0] < at && at <= g[1]:
			return utf8.RuneCountInString(text[g[0]:at])
		case !back && g[0] <= at && at < g[1]:
			return utf8.RuneCountInString(text[at:g[1]])
		}
	}
	return 1
}

// insideBlank reports whether the cursor stands in a blank that is being typed, where "_" may be part of a name.
func (e *editor) insideBlank() bool {
	left := e.text()[:e.cursor()]
	open := strings.LastIndex(left, "[MASK")
	return open >= 0 && !strings.Contains(left[open:], "]")
}

// insertBlank puts a blank at the cursor, set off from words beside it. Of an underscore after a blank it makes none,
// so that ___ is one blank.
func (e *editor) insertBlank(underscore bool) bool {
	left, rest := e.text()[:e.cursor()], e.text()[e.cursor():]
	if underscore && strings.HasSuffix(left, blankText) {
		return false
	}
	if r, _ := utf8.DecodeLastRuneInString(left); wordRune(r) {
		left += " "
	}
	left += blankText
	if r, _ := utf8.DecodeRuneInString(rest); wordRune(r) {
		left += " "
	}
	e.input.SetValue(left + rest)
	e.input.SetCursor(utf8.RuneCountInString(left))
	return true
}

func wordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}

// mark begins to choose words. further is another spelling of a blank.
func (e *editor) mark(further string) bool {
	if e.marking != nil {
		return true
	}
	text := e.text()
	words := wordsOf(text, further)
	if len(words) == 0 {
		return false
	}
	e.marking = &marking{base: text, words: words, marked: map[int]bool{}}
	return true
}

// wordsOf finds the words of a text that are not blanks.
func wordsOf(text, further string) [][2]int {
	blanks := tokenize.BlankSpans(text, further)
	var words [][2]int
	start := -1
	for at := 0; at <= len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		inside := size > 0 && wordRune(r)
		// An apostrophe or hyphen between letters belongs to the word.
		if start >= 0 && size > 0 && (r == '\'' || r == '’' || r == '-') {
			next, _ := utf8.DecodeRuneInString(text[at+size:])
			inside = wordRune(next)
		}
		for _, blank := range blanks {
			inside = inside && (at < blank[0] || at >= blank[1])
		}
		switch {
		case inside && start < 0:
			start = at
		case !inside && start >= 0:
			words = append(words, [2]int{start, at})
			start = -1
		}
		at += max(size, 1)
	}
	return words
}

// toggle marks a word or takes its mark away, and writes the text again.
func (e *editor) toggle(word int) {
	m := e.marking
	m.marked[word] = !m.marked[word]
	var text strings.Builder
	from := 0
	for i, w := range m.words {
		if m.marked[i] {
			text.WriteString(m.base[from:w[0]] + blankText)
			from = w[1]
		}
	}
	e.input.SetValue(text.String() + m.base[from:])
}

// cell is a glyph of the editor with its look.
type cell struct {
	glyph
	look
}

// look is what decides how a cell is drawn.
type look struct {
	blank, word    int // -1 outside blanks, and outside the words to choose from
	marked, cursor bool
}

// editorView is what the editor needs to know to be drawn.
type editorView struct {
	*styles
	writing bool
	blank   int // the chosen one, -1 for none
	pins    map[int]string
	further string // another spelling of a blank
	rows    int    // at most
}

// lines lays the text out, as much of it as there are rows for.
func (e *editor) lines(v editorView, columns int) [][]cell {
	shown, cursor, writing := e.text(), e.cursor(), v.writing && e.marking == nil
	if e.marking != nil {
		shown, cursor = e.marking.base, e.marking.words[e.marking.at][0]
	}
	blanks := tokenize.BlankSpans(shown, v.further)
	if e.cut != shown || e.glyphs == nil {
		e.cut, e.glyphs = shown, glyphs(shown)
	}
	list := slices.Clip(e.glyphs)
	if writing {
		list = append(list, glyph{text: " ", start: len(shown), end: len(shown) + 1, width: 1})
	}
	cells := make([]cell, 0, len(list))
	next, word := 0, 0
	for _, g := range list {
		c := cell{g, look{blank: -1, word: -1, cursor: writing && g.start <= cursor && cursor < g.end}}
		for next < len(blanks) && g.start >= blanks[next][1] {
			next++
		}
		if next < len(blanks) && g.start >= blanks[next][0] {
			c.blank = next
			if p, ok := v.pins[next]; ok && !v.writing && e.marking == nil {
				// A pinned blank shows its word.
				if g.start == blanks[next][0] {
					for _, of := range glyphs(p) {
						of.start, of.end = blanks[next][0], blanks[next][1]
						cells = append(cells, cell{of, c.look})
					}
				}
				continue
			}
		}
		if m := e.marking; m != nil {
			for word < len(m.words) && g.start >= m.words[word][1] {
				word++
			}
			if word < len(m.words) && g.start >= m.words[word][0] {
				c.word, c.marked = word, m.marked[word]
			}
		}
		cells = append(cells, c)
	}
	lines := wrap(cells, columns)
	if len(lines) <= v.rows {
		return lines
	}
	from := 0
	if v.writing || e.marking != nil {
		// The cursor stays in sight.
		at := slices.IndexFunc(lines, func(line []cell) bool {
			return slices.ContainsFunc(line, func(c cell) bool { return c.start <= cursor && cursor < c.end })
		})
		from = min(max(at-v.rows/2, 0), len(lines)-v.rows)
	}
	return lines[from : from+v.rows]
}

// render draws the text in as many lines as it needs, v.rows at most.
func (e *editor) render(v editorView, columns int) []string {
	switch {
	case e.text() == "" && !v.writing:
		return []string{v.faint.Render("no template yet: press i and write one")}
	case e.text() == "":
		return []string{v.cursor.Render(" ") + v.faint.Render(
			cut("write a sentence, with _ where a word is wanted: she opened the _ and looked _", columns-1))}
	}
	var rows []string
	for _, line := range e.lines(v, columns) {
		row := ""
		for i := 0; i < len(line); {
			// Cells of one look are drawn together.
			text, end := line[i].text, i+1
			for end < len(line) && line[i].look == line[end].look {
				text += line[end].text
				end++
			}
			row += e.style(v, line[i].look).Render(text)
			i = end
		}
		rows = append(rows, row)
	}
	return rows
}

func (e *editor) style(v editorView, c look) lipgloss.Style {
	style := v.text
	switch {
	case c.marked:
		style = v.styles.blankLook(0)
	case c.blank >= 0:
		_, pinned := v.pins[c.blank]
		style = v.styles.blankLook(c.blank).Underline(pinned || c.blank == v.blank && !v.writing && len(v.pins) == 0)
	}
	if m := e.marking; m != nil && c.word >= 0 && c.word == m.at {
		style = style.Underline(true).Bold(true)
	}
	return style.Reverse(c.marked || c.cursor)
}
