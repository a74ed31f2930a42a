package tui

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/rivo/uniseg"

	"infill/tokenize"
)

// blankText is a blank as it is typed. The tokenizer has the last word on it.
const blankText = "[MASK]"

// blankPattern finds what will be read as a blank, to colour it while it is typed.
func blankPattern() *regexp.Regexp { return regexp.MustCompile(`\[MASK(?:[:=][^\]\s]*)?\]`) }

// editor is the template being written. textinput keeps the text and the cursor;
// how it looks, wrapped and with its blanks in colour, is this file's.
type editor struct {
	input   textinput.Model
	pattern *regexp.Regexp
	marking *marking

	// glyphs are those of the text cut: a pasted page is not cut again for every
	// frame.
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

func newEditor(text string) editor {
	// One more than is taken, so that a text that is too long is told, not cut.
	return editor{input: newInput(text, tokenize.MaxText+1), pattern: blankPattern()}
}

// newInput makes a line of text to be edited.
func newInput(text string, limit int) textinput.Model {
	input := textinput.New()
	input.CharLimit = limit
	input.SetValue(text)
	// ctrl+v would read the clipboard of the machine that runs the program;
	// pasting is the terminal's business.
	input.KeyMap.Paste.SetEnabled(false)
	// The screen itself gives it the keys when it is time; the command would
	// only make the cursor blink.
	input.Focus()
	return input
}

func (e *editor) text() string { return e.input.Value() }

// edit gives a key or a paste to the text; changed tells whether it did anything to it.
func (e *editor) edit(message tea.Msg) (changed bool) {
	e.marking = nil
	before := e.text()
	times := 1
	switch message := message.(type) {
	case tea.KeyPressMsg:
		times = e.reach(message)
	case tea.PasteMsg:
		// The input itself takes control characters out.
		message.Content = strings.NewReplacer("\u2028", " ", "\u2029", " ").Replace(message.Content)
		e.input, _ = e.input.Update(message)
		return e.text() != before
	}
	for range times {
		e.input, _ = e.input.Update(message)
	}
	return e.text() != before
}

// reach is how often a key is to be given to the input, which works on runes, to
// get past one character, such as a letter with its marks.
func (e *editor) reach(message tea.KeyPressMsg) int {
	keys := e.input.KeyMap
	back := key.Matches(message, keys.CharacterBackward, keys.DeleteCharacterBackward)
	forth := key.Matches(message, keys.CharacterForward, keys.DeleteCharacterForward)
	if !back && !forth {
		return 1
	}
	text := e.text()
	at := len(string([]rune(text)[:e.input.Position()]))
	for _, g := range graphemes(text) {
		switch {
		case back && g[0] < at && at <= g[1]:
			return utf8.RuneCountInString(text[g[0]:at])
		case forth && g[0] <= at && at < g[1]:
			return utf8.RuneCountInString(text[at:g[1]])
		}
	}
	return 1
}

// graphemes returns the byte ranges of the characters of a text.
func graphemes(text string) [][2]int {
	var list [][2]int
	state := -1
	for at := 0; at < len(text); {
		cluster, _, _, next := uniseg.FirstGraphemeClusterInString(text[at:], state)
		state = next
		list = append(list, [2]int{at, at + len(cluster)})
		at += len(cluster)
	}
	return list
}

// insideBlank tells whether the cursor stands in a blank that is being typed, where
// "_" may be part of a name.
func (e *editor) insideBlank() bool {
	left := string([]rune(e.text())[:e.input.Position()])
	open := strings.LastIndex(left, "[MASK")
	return open >= 0 && !strings.Contains(left[open:], "]")
}

// insertBlank puts a blank at the cursor, set off from words beside it.
func (e *editor) insertBlank() {
	e.marking = nil
	runes := []rune(e.text())
	at := e.input.Position()
	blank := blankText
	if at > 0 && wordRune(runes[at-1]) {
		blank = " " + blank
	}
	if at < len(runes) && wordRune(runes[at]) {
		blank += " "
	}
	e.input.SetValue(string(runes[:at]) + blank + string(runes[at:]))
	e.input.SetCursor(at + len([]rune(blank)))
}

func wordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}

// mark begins to choose words.
func (e *editor) mark() bool {
	if e.marking != nil {
		return true
	}
	text := e.text()
	words := wordsOf(text, e.pattern)
	if len(words) == 0 {
		return false
	}
	e.marking = &marking{base: text, words: words, marked: map[int]bool{}}
	return true
}

// wordsOf finds the words of a text that are not blanks.
func wordsOf(text string, pattern *regexp.Regexp) [][2]int {
	blanks := pattern.FindAllStringIndex(text, -1)
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

// toggle marks a word or takes its mark away, and writes the text anew.
func (e *editor) toggle(word int) {
	m := e.marking
	if m.marked[word] {
		delete(m.marked, word)
	} else {
		m.marked[word] = true
	}
	var text strings.Builder
	from := 0
	for _, w := range slices.Sorted(maps.Keys(m.marked)) {
		text.WriteString(m.base[from:m.words[w][0]])
		text.WriteString(blankText)
		from = m.words[w][1]
	}
	text.WriteString(m.base[from:])
	kept := e.marking
	e.input.SetValue(text.String())
	e.marking = kept
}

// cell is a glyph of the editor with its look.
type cell struct {
	glyph
	blank    int // -1 outside blanks
	word     int // of the marking, -1
	isMarked bool
}

// editorView is what the editor needs to know to be drawn.
type editorView struct {
	styles  *styles
	writing bool
	slot    int // the chosen blank, -1 for none
	pins    map[int]pin
	rows    int // at most
}

// lines lays the text out; cursorLine is the line to keep in sight.
func (e *editor) lines(v editorView, columns int) (lines [][]cell, cursorLine int) {
	shown := e.text()
	if e.marking != nil {
		shown = e.marking.base
	}
	blanks := e.pattern.FindAllStringIndex(shown, -1)
	if e.cut != shown || e.glyphs == nil {
		e.cut, e.glyphs = shown, glyphs(shown)
	}
	list := slices.Clip(e.glyphs)
	if v.writing && e.marking == nil {
		list = append(list, glyph{text: " ", start: len(shown), end: len(shown) + 1, width: 1})
	}
	cells := make([]cell, 0, len(list))
	next, word := 0, 0
	for _, g := range list {
		c := cell{glyph: g, blank: -1, word: -1}
		for next < len(blanks) && g.start >= blanks[next][1] {
			next++
		}
		if next < len(blanks) && g.start >= blanks[next][0] {
			c.blank = next
			if p, ok := v.pins[next]; ok && !v.writing && e.marking == nil {
				// A pinned blank shows its word.
				if g.start == blanks[next][0] {
					for _, of := range glyphs(p.text) {
						of.start, of.end = blanks[next][0], blanks[next][1]
						cells = append(cells, cell{glyph: of, blank: next, word: -1})
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
				c.word, c.isMarked = word, m.marked[word]
			}
		}
		cells = append(cells, c)
	}
	plain := make([]glyph, len(cells))
	for i, c := range cells {
		plain[i] = c.glyph
	}
	cursorAt := len(string([]rune(e.text())[:e.input.Position()]))
	if e.marking != nil {
		cursorAt = e.marking.words[e.marking.at][0]
	}
	from := 0
	for i, line := range wrap(plain, columns) {
		part := cells[from : from+len(line)]
		from += len(line)
		lines = append(lines, part)
		for _, c := range part {
			if c.start <= cursorAt && cursorAt < c.end {
				cursorLine = i
			}
		}
	}
	return lines, cursorLine
}

// window is the part of the lines that fits.
func (e *editor) window(v editorView, columns int) [][]cell {
	lines, cursorLine := e.lines(v, columns)
	if len(lines) <= v.rows {
		return lines
	}
	from := 0
	if v.writing || e.marking != nil {
		from = min(max(cursorLine-v.rows/2, 0), len(lines)-v.rows)
	}
	return lines[from : from+v.rows]
}

// render draws the text in as many lines as it needs, v.rows at most.
func (e *editor) render(v editorView, columns int) string {
	if e.text() == "" && !v.writing {
		return fit(v.styles.faint.Render("no template yet: press i and write one"), columns)
	}
	if e.text() == "" {
		hint := "write a sentence, with _ where a word is wanted: she opened the _ and looked _"
		return fit(v.styles.cursor.Render(" ")+v.styles.faint.Render(ansi.Truncate(hint, columns-1, "…")), columns)
	}
	cursorAt := len(string([]rune(e.text())[:e.input.Position()]))
	var rows []string
	for _, line := range e.window(v, columns) {
		var row strings.Builder
		for i := 0; i < len(line); {
			// Cells of one look are drawn together.
			text, end := line[i].text, i+1
			for end < len(line) && same(line[i], line[end]) && e.cursor(v, line[i], cursorAt) == e.cursor(v, line[end], cursorAt) {
				text += line[end].text
				end++
			}
			row.WriteString(e.look(v, line[i], cursorAt).Render(text))
			i = end
		}
		rows = append(rows, fit(row.String(), columns))
	}
	return strings.Join(rows, "\n")
}

func same(a, b cell) bool {
	return a.blank == b.blank && a.word == b.word && a.isMarked == b.isMarked
}

func (e *editor) cursor(v editorView, c cell, at int) bool {
	return v.writing && e.marking == nil && c.start <= at && at < c.end
}

func (e *editor) look(v editorView, c cell, cursorAt int) lipgloss.Style {
	s := v.styles
	style := s.text
	switch {
	case c.isMarked:
		style = s.slot(0).Reverse(true)
	case c.blank >= 0:
		style = s.slot(c.blank)
		if _, ok := v.pins[c.blank]; ok {
			style = style.Underline(true)
		}
		if c.blank == v.slot && !v.writing && len(v.pins) == 0 {
			style = style.Underline(true)
		}
	}
	if m := e.marking; m != nil && c.word >= 0 && c.word == m.at {
		style = style.Underline(true).Bold(true)
	}
	if e.cursor(v, c, cursorAt) {
		style = style.Reverse(true)
	}
	return style
}

// at returns the cell under a point of what render drew.
func (e *editor) at(v editorView, columns, x, y int) (cell, bool) {
	lines := e.window(v, columns)
	if y < 0 || y >= len(lines) {
		return cell{}, false
	}
	for _, c := range lines[y] {
		if x < c.width {
			return c, true
		}
		x -= c.width
	}
	return cell{}, false
}

// click acts on a point: it moves the cursor while the text is written, and marks
// a word otherwise. changed tells whether the text is another.
func (e *editor) click(v editorView, columns, x, y int) (changed bool) {
	c, ok := e.at(v, columns, x, y)
	if v.writing && e.marking == nil {
		at := len(e.text())
		if ok {
			at = min(c.start, at)
		}
		e.input.SetCursor(len([]rune(e.text()[:at])))
		return false
	}
	if !ok || !e.mark() {
		return false
	}
	m := e.marking
	for w, word := range m.words {
		// The picture may be of the text before marking began, which is the base.
		if c.start >= word[0] && c.start < word[1] {
			m.at = w
			e.toggle(w)
			return true
		}
	}
	return false
}
