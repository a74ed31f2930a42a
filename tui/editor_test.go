package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
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
		{"three underscores are one blank", "she |", []string{"_", "_", "_"}, "she [MASK]|"},
		{"a word becomes a blank", "It's a well-kn|own café.", []string{"ctrl+t"}, "It's a [MASK]| café."},
		{"the word before", "It's| ok", []string{"ctrl+t"}, "[MASK]| ok"},
		{"the last word", "the naïve café|", []string{"ctrl+t"}, "the naïve [MASK]|"},
		{"no word is none", "a , | b", []string{"ctrl+t"}, "a , | b"},
		{"a blank stays one", "a [MASK|] b", []string{"ctrl+t"}, "a [MASK|] b"},
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
	d.keys("home", "ctrl+t", "esc")
	exactly(t, d.model.screen(), 80, 24)
	d.settle()
}

// TestHostileTemplates come as arguments, unedited: whatever they hold, the
// frame holds no sequence but its own.
func TestHostileTemplates(t *testing.T) {
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
		"many blanks": "a " + strings.Repeat("[MASK] ", 9),
	} {
		if testing.Short() && name == "many blanks" {
			continue
		}
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
