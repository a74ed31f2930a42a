package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

// TestEditor types keys into a text; "|" is the cursor.
func TestEditor(t *testing.T) {
	tests := []struct {
		name, before string
		keys         []string
		after        string
	}{
		{"a letter", "ab|c", []string{"x"}, "abx|c"},
		{"a letter and its marks is one", "e\u0301x|", []string{"left", "left"}, "|e\u0301x"},
		{"forth over it", "|e\u0301x", []string{"right"}, "e\u0301|x"},
		{"deleted as one", "ae\u0301|x", []string{"backspace"}, "a|x"},
		{"deleted forward as one", "a|e\u0301x", []string{"delete"}, "a|x"},
		{"a family is one", "a👨‍👩‍👧|b", []string{"backspace"}, "a|b"},
		{"a wide letter", "日本|", []string{"backspace"}, "日|"},
		{"a blank by key", "she |", []string{"ctrl+b"}, "she [MASK]|"},
		{"a blank sets itself off", "she|ran", []string{"ctrl+b"}, "she [MASK] |ran"},
		{"a blank before a full stop", "she |.", []string{"_"}, "she [MASK]|."},
		{"ctrl+v pastes nothing", "ab|", []string{"ctrl+v"}, "ab|"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			left, rest, _ := strings.Cut(test.before, "|")
			c, _ := testConfig(t, left+rest)
			m := newModel(t.Context(), c)
			m.width, m.height, m.writing = 80, 24, true
			m.editor.input.SetCursor(len([]rune(left)))
			for _, k := range test.keys {
				m.Update(keyOf(k))
			}
			runes := []rune(m.editor.text())
			at := m.editor.input.Position()
			if got := string(runes[:at]) + "|" + string(runes[at:]); got != test.after {
				t.Errorf("got %q, want %q", got, test.after)
			}
		})
	}
}

// TestUnderscoreInAName keeps "_" a letter where a blank is being named.
func TestUnderscoreInAName(t *testing.T) {
	c, _ := testConfig(t, "")
	m := newModel(t.Context(), c)
	m.width, m.height = 80, 24
	for _, r := range "a [MASK=x_1] _" {
		m.Update(keyOf(string(r)))
	}
	if got, want := m.editor.text(), "a [MASK=x_1] [MASK]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMarking(t *testing.T) {
	const sentence = "It's a well-known [MASK], the naïve café — ok?"
	c, _ := testConfig(t, sentence)
	d := newDriver(t, c, 80, 24)
	d.settle()
	d.keys("m")
	var words []string
	for _, w := range d.model.editor.marking.words {
		words = append(words, sentence[w[0]:w[1]])
	}
	if got := strings.Join(words, "|"); got != "It's|a|well-known|the|naïve|café|ok" {
		t.Errorf("the words are %s", got)
	}
	d.keys(" ", "right", "right", " ", "end", " ")
	if got, want := d.model.editor.text(), "[MASK] a [MASK] [MASK], the naïve café — [MASK]?"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	d.keys(" ", "home", " ")
	if got, want := d.model.editor.text(), "It's a [MASK] [MASK], the naïve café — ok?"; got != want {
		t.Errorf("a mark taken away: got %q, want %q", got, want)
	}
	d.keys("enter")
	if d.model.editor.marking != nil {
		t.Error("enter does not end marking")
	}
	d.settle()
}

// TestClicks uses the mouse on the template: a word becomes a blank, and the
// cursor follows while writing.
func TestClicks(t *testing.T) {
	c, _ := testConfig(t, "she opened the door and looked up .")
	d := newDriver(t, c, 80, 24)
	d.settle()
	click := func(x, y int) {
		d.send(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft})
	}
	origin := d.model.editorOrigin
	click(origin[0]+16, origin[1]) // in "door"
	if got, want := d.model.editor.text(), "she opened the [MASK] and looked up ."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	d.settle()
	if len(d.model.fills.listed) == 0 {
		t.Fatalf("no fills:\n%s", ansi.Strip(d.model.screen()))
	}
	d.keys("esc", "i")
	click(origin[0]+4, origin[1])
	if at := d.model.editor.input.Position(); at != 4 {
		t.Errorf("the cursor is at %d, want 4", at)
	}
	d.keys("esc")
	// The third fill, then its star, then a tab.
	row := strings.Split(ansi.Strip(d.model.screen()), "\n")
	top := 0
	for i, line := range row {
		if strings.HasPrefix(line, "▸") {
			top = i
		}
	}
	click(10, top+2)
	if d.model.fills.selected != 2 {
		t.Errorf("fill %d is selected, want the third", d.model.fills.selected+1)
	}
	click(3, top+2)
	if len(d.model.fills.favourites) != 1 {
		t.Error("the star was not set")
	}
	d.send(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	if d.model.fills.selected != 3 {
		t.Error("the wheel does not move")
	}
	click(12, top-3)
	if d.model.view != slotsView {
		t.Errorf("view %d after a click on the second tab:\n%s", d.model.view, ansi.Strip(d.model.screen()))
	}
	d.settle()
}

// TestPastedPage pastes far more than a model takes, with line ends and control
// characters in it.
func TestPastedPage(t *testing.T) {
	c, _ := testConfig(t, "")
	d := newDriver(t, c, 80, 24)
	d.settle()
	page := strings.Repeat("A line of a page,\r\n\twith \x1b[31mred\x1b[0m and \x07bells. ", 900) + "[MASK]"
	d.send(tea.PasteMsg{Content: page})
	d.settle()
	frame := d.model.screen()
	exactly(t, frame, 80, 24)
	plain := ansi.Strip(frame)
	if strings.ContainsAny(plain, "\x1b\x07\r\t") || strings.Contains(frame, "\x1b[31m") {
		t.Error("a control sequence reached the screen")
	}
	if fault := d.model.run.fault; !strings.Contains(plain, "too long") {
		t.Errorf("no word of the length, but %q:\n%s", fault, plain)
	}
	if got := len([]rune(d.model.editor.text())); got > mostTyped+1 {
		t.Errorf("%d characters were kept", got)
	}
	d.keys("esc", "m", "right", " ")
	exactly(t, d.model.screen(), 80, 24)
	d.settle()
}

// TestHostileTemplates come as arguments, unedited: whatever they hold, the frame
// holds no sequence but its own.
func TestHostileTemplates(t *testing.T) {
	if testing.Short() {
		t.Skip("what a frame holds, which the plain run checks")
	}
	for name, text := range map[string]string{
		"escape":      "a \x1b]0;title\x07 \x1b[2J[MASK] b",
		"C1":          "a \u009b31m [MASK] b",
		"bidi":        "a \u202e [MASK] b",
		"invalid":     "a \xff\xfe [MASK] b",
		"nul":         "a \x00 [MASK] b",
		"zero width":  "\u0301\u200b[MASK]\u0301 b",
		"wide":        strings.Repeat("日本語 ", 40) + "[MASK]",
		"flags":       strings.Repeat("🇯🇵👨‍👩‍👧é", 30) + " [MASK]",
		"no space":    strings.Repeat("x", 400) + "[MASK]",
		"odd blanks":  "a [MASK:99] [MASK= b",
		"many blanks": "a " + strings.Repeat("[MASK] ", 30),
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := testConfig(t, text)
			d := newDriver(t, c, 72, 20)
			d.settle()
			for _, k := range []string{"", "2", "3", "4", "1", "i", "home", "right", "delete", "esc"} {
				if k != "" {
					d.keys(k)
				}
				d.settle()
				frame := d.model.screen()
				exactly(t, frame, 72, 20)
				for _, r := range ansi.Strip(frame) {
					if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || hides(r) {
						t.Fatalf("%U is on the screen", r)
					}
				}
				if strings.Contains(frame, "\x1b]") || strings.Contains(frame, "\x1b[2J") {
					t.Fatal("a sequence of the template is on the screen")
				}
			}
		})
	}
}

func TestHarmless(t *testing.T) {
	for text, want := range map[string]string{
		"plain, naïve 日本":      "plain, naïve 日本",
		"\x1b[31mred":          "␛[31mred",
		"a\tb\nc\r":            "a b c ",
		"del\x7f c1\u0085":     "del␡ c1\uFFFD",
		"\u202eabc\u2028":      "\uFFFDabc\uFFFD",
		"bad \xff":             "bad \uFFFD",
		"e\u0301 👨‍👩‍👧 \ufe0f": "e\u0301 👨‍👩‍👧 \ufe0f",
	} {
		if got := harmless(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestTextProperties checks that whatever the text, what is drawn has the width it
// was asked for, wraps without loss, and stays harmless.
func TestTextProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z日ée\x{301}🇯👨\x{200d} .\[\]MASK]{0,60}`)).Draw(t,
			"text")
		columns := rapid.IntRange(1, 50).Draw(t, "columns")
		shown := harmless(text)
		if got := fit(shown, columns); width(got) != columns {
			t.Fatalf("fit %q to %d: %q is %d wide", shown, columns, got, width(got))
		}
		var cells []cell
		for _, g := range glyphs(text) {
			cells = append(cells, cell{glyph: g})
		}
		from := 0
		for _, line := range wrap(cells, max(columns, 2)) {
			w := 0
			for _, g := range line {
				if g.start != from {
					t.Fatalf("bytes %d to %d of %q are lost", from, g.start, text)
				}
				from = g.end
				w += g.width
			}
			if w > max(columns, 2) {
				t.Fatalf("a line of %d columns in %d", w, columns)
			}
		}
		if from != len(text) {
			t.Fatalf("the end of %q is lost", text)
		}
		list := []part{{harmless(text), -1}, {"word", 0}, {harmless(text), -1}, {"other", 1}, {harmless(text), -1}}
		total := 0
		for _, p := range shorten(list, allowance(list, max(columns, 14))) {
			total += width(p.text)
		}
		if total > max(columns, 14) {
			t.Fatalf("an excerpt of %d columns in %d", total, max(columns, 14))
		}
	})
}
