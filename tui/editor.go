package tui

import (
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

// blankText is the text of a new blank. The tokenizer decides which texts are blanks.
const blankText = "[MASK]"

// editor edits the template. textinput keeps the text and the cursor. This file
// draws both, wrapped and with blanks in colour.
type editor struct{ input textinput.Model }

// mostTyped is the longest template, in bytes: every key draws all of it.
const mostTyped = 32 << 10

func newEditor(text string) editor {
	// One more, so that a longer text is an error and not cut silently.
	return editor{input: newInput(text, mostTyped+1)}
}

func newInput(text string, limit int) textinput.Model {
	input := textinput.New()
	input.CharLimit = limit
	input.SetValue(text)
	// ctrl+v would read the clipboard of this machine, not the terminal's.
	input.KeyMap.Paste.SetEnabled(false)
	// The command that Focus returns only makes the cursor blink.
	input.Focus()
	return input
}

func (e *editor) text() string { return e.input.Value() }

// edit applies a key or a paste, and reports whether the text has changed.
func (e *editor) edit(message tea.Msg, blank string) (changed bool) {
	before := e.text()
	times := 1
	switch m := message.(type) {
	case tea.KeyPressMsg:
		times = e.reach(m, blank)
	case tea.PasteMsg:
		// Update itself removes control characters.
		m.Content = strings.NewReplacer("\u2028", " ", "\u2029", " ").Replace(m.Content)
		message = m
	}
	for range times {
		e.input, _ = e.input.Update(message)
	}
	return e.text() != before
}

func (e *editor) cursor() int { return len(string([]rune(e.text())[:e.input.Position()])) }

// reach returns how often to repeat a key to pass one visible character, or to
// delete a whole blank: the input counts in runes.
func (e *editor) reach(message tea.KeyPressMsg, blank string) int {
	keys, text, at := e.input.KeyMap, e.text(), e.cursor()
	back := key.Matches(message, keys.CharacterBackward, keys.DeleteCharacterBackward)
	if !back && !key.Matches(message, keys.CharacterForward, keys.DeleteCharacterForward) {
		return 1
	}
	parts := graphemes(text)
	deletes := key.Matches(message, keys.DeleteCharacterBackward, keys.DeleteCharacterForward)
	for _, span := range tokenize.BlankSpans(text, blank) {
		if deletes && (back && at == span[1] || !back && at == span[0]) {
			parts = [][2]int{span}
		}
	}
	for _, g := range parts {
		switch {
		case back && g[0] < at && at <= g[1]:
			return utf8.RuneCountInString(text[g[0]:at])
		case !back && g[0] <= at && at < g[1]:
			return utf8.RuneCountInString(text[at:g[1]])
		}
	}
	return 1
}

// insideBlank reports whether the cursor is where "_" may be of a name.
func (e *editor) insideBlank() bool {
	left := e.text()[:e.cursor()]
	open := strings.LastIndex(left, "[MASK")
	return open >= 0 && !strings.Contains(left[open:], "]")
}

// insertBlank inserts a blank, with spaces between it and words; nothing for an
// underscore behind one, so that ___ is one blank.
func (e *editor) insertBlank(underscore bool) bool {
	left := e.text()[:e.cursor()]
	rest := e.text()[e.cursor():]
	if underscore && strings.HasSuffix(left, blankText) {
		return false
	}
	r, _ := utf8.DecodeLastRuneInString(left)
	if wordRune(r) {
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

// blankWord makes a blank of the word at the cursor, if there is one.
func (e *editor) blankWord(blank string) bool {
	text := e.text()
	at := e.cursor()
	for _, word := range tokenize.WordSpans(text, blank) {
		if word[0] <= at && at <= word[1] {
			e.replace(word, blankText)
			return true
		}
	}
	return false
}

// replace replaces a range of bytes of the text, and sets the cursor behind it.
func (e *editor) replace(span [2]int, by string) {
	text := e.text()
	e.input.SetValue(text[:span[0]] + by + text[span[1]:])
	e.input.SetCursor(utf8.RuneCountInString(text[:span[0]] + by))
}

// render draws the template in at most rows lines, with pinned words.
func (e *editor) render(m *model, columns, rows int) []string {
	text := e.text()
	cursor := e.cursor()
	writing := m.writing
	switch {
	case text == "" && !writing:
		return []string{m.faint.Render("no template yet: press i and write one")}
	case text == "":
		return []string{m.cursor.Render(" ") + m.faint.Render(
			cut("write a sentence, with _ where a word is wanted: she opened the _ and looked _", columns-1))}
	}
	var out strings.Builder
	at := 0
	draw := func(to int, shown string, style lipgloss.Style) {
		c := cursor - at
		if writing && c >= 0 && cursor < to {
			under, rest, _, _ := uniseg.FirstGraphemeClusterInString(shown[c:], -1)
			out.WriteString(style.Render(harmless(shown[:c])) + m.underCursor(under))
			shown = rest
		}
		out.WriteString(style.Render(harmless(shown)))
		at = to
	}
	for i, b := range tokenize.BlankSpans(text, string(m.run.request.Blank)) {
		draw(b[0], text[at:b[0]], m.text)
		word, pinned := m.pins[i]
		if !pinned || writing {
			word = text[b[0]:b[1]]
		}
		chosen := i == m.blank && len(m.pins) == 0 && m.view != runsView
		draw(b[1], word, m.blankLook(i).Underline(!writing && (pinned || chosen)))
	}
	draw(len(text), text[at:], m.text)
	if writing && cursor == len(text) {
		out.WriteString(m.underCursor(" "))
	}
	lines := strings.Split(lipgloss.Wrap(out.String(), columns, ""), "\n")
	from := 0
	if writing { // keep the cursor in sight
		line := strings.Count(ansi.Wrap(harmless(text[:cursor]), columns, ""), "\n")
		from = max(min(line-rows/2, len(lines)-rows), 0)
	}
	return lines[from:min(from+rows, len(lines))]
}

// underCursor draws a character. At a no-break space no line breaks.
func (s *styles) underCursor(text string) string {
	text = harmless(text)
	if text == " " {
		text = "\u00a0"
	}
	return s.cursor.Render(text)
}
