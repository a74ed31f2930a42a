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
	"github.com/charmbracelet/x/ansi"
	"github.com/rivo/uniseg"

	"infill/tokenize"
)

// blankText is a blank as it is typed. The tokenizer has the last word on it.
const blankText = "[MASK]"

// editor is the template being written. textinput keeps the text and the cursor; how it looks, wrapped and with its
// blanks in colour, is this file's.
type editor struct {
	input   textinput.Model
	marking *marking
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

// editorView is what the editor needs to know to be drawn.
type editorView struct {
	*styles
	writing bool
	blank   int // the chosen one, -1 for none
	pins    map[int]string
	further string // another spelling of a blank
	rows    int    // at most
}

// span is a stretch of the text with a look of its own.
type span struct {
	from, to int
	shown    string
	style    lipgloss.Style
}

// spans are the blanks of the text, and the words that are being marked.
func (e *editor) spans(text string, v editorView) (list []span) {
	for i, b := range tokenize.BlankSpans(text, v.further) {
		word, pinned := v.pins[i]
		chosen := i == v.blank && !v.writing && len(v.pins) == 0
		s := span{b[0], b[1], text[b[0]:b[1]], v.blankLook(i).Underline(pinned || chosen)}
		if pinned {
			s.shown = word
		}
		list = append(list, s)
	}
	if m := e.marking; m != nil {
		for i, w := range m.words {
			style := v.text
			if m.marked[i] {
				style = v.blankLook(0).Reverse(true)
			}
			if i == m.at {
				style = style.Underline(true).Bold(true)
			}
			list = append(list, span{w[0], w[1], text[w[0]:w[1]], style})
		}
		slices.SortFunc(list, func(a, b span) int { return a.from - b.from })
	}
	return list
}

// render draws the text in as many lines as it needs, v.rows at most.
func (e *editor) render(v editorView, columns int) []string {
	text, cursor, writing := e.text(), e.cursor(), v.writing && e.marking == nil
	switch {
	case e.marking != nil:
		text, cursor = e.marking.base, e.marking.words[e.marking.at][0]
	case text == "" && !writing:
		return []string{v.faint.Render("no template yet: press i and write one")}
	case text == "":
		return []string{v.cursor.Render(" ") + v.faint.Render(
			cut("write a sentence, with _ where a word is wanted: she opened the _ and looked _", columns-1))}
	}
	var out strings.Builder
	at := 0
	draw := func(to int, shown string, style lipgloss.Style) {
		if c := cursor - at; writing && c >= 0 && cursor < to {
			under, rest, _, _ := uniseg.FirstGraphemeClusterInString(shown[c:], -1)
			out.WriteString(style.Render(harmless(shown[:c])) + v.underCursor(under))
			shown = rest
		}
		out.WriteString(style.Render(harmless(shown)))
		at = to
	}
	for _, s := range e.spans(text, v) {
		draw(s.from, text[at:s.from], v.text)
		draw(s.to, s.shown, s.style)
	}
	draw(len(text), text[at:], v.text)
	if writing && cursor == len(text) {
		out.WriteString(v.underCursor(" "))
	}
	lines := strings.Split(lipgloss.Wrap(out.String(), columns, ""), "\n")
	from := 0
	if v.writing || e.marking != nil {
		// The cursor stays in sight.
		line := strings.Count(ansi.Wrap(harmless(text[:cursor]), columns, ""), "\n")
		from = max(min(line-v.rows/2, len(lines)-v.rows), 0)
	}
	return lines[from:min(from+v.rows, len(lines))]
}

// underCursor draws the character under the cursor; a line does not break at it.
func (s *styles) underCursor(text string) string {
	if text = harmless(text); text == " " {
		text = "\u00a0"
	}
	return s.cursor.Render(text)
}
