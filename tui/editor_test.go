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
		{"a word of marks", "हिन्दी भा|षा", []string{"ctrl+t"}, "हिन्दी [MASK]|"},
		{"an accent behind a word", "the cafe\u0301|", []string{"ctrl+t"}, "the [MASK]|"},
		{"backspace takes a blank", "a [MASK=x~b.*]| c", []string{"backspace"}, "a | c"},
		{"delete takes a blank", "a |___ c", []string{"delete"}, "a | c"},
		{"within a blank, a letter", "a [MASK:2|] c", []string{"backspace"}, "a [MASK:|] c"},
		{"past a blank, a letter", "a [MASK]| c", []string{"left"}, "a [MASK|] c"},
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
		t.Run(name, waitless(func(t *testing.T) {
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
		}))
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

// TestIdleKeys: a key that has no effect says why.
func TestIdleKeys(t *testing.T) {
	c, _ := testConfig(t, "a text")
	d := newDriver(t, c, 100, 24)
	d.settle()
	d.keys("esc")
	frame := ansi.Strip(d.model.screen())
	if !strings.Contains(frame, "no blank yet: i writes, then _ inserts a blank") {
		t.Errorf("a text without a blank: %s", frame)
	}
	for _, k := range []struct{ key, says string }{
		{"y", "y: there is no fill yet"}, {"p", "p: there is no fill yet"}, {"s", "s: only fills that are drawn"},
		{"x", "x: nothing runs"}, {"P", "P: no blank is pinned"},
		{"z", "z: this key does nothing here; ? lists the keys"},
	} {
		d.keys(k.key)
		if frame := ansi.Strip(d.model.screen()); !strings.Contains(frame, k.says) {
			t.Errorf("%s does not say %q:\n%s", k.key, k.says, frame)
		}
	}
	d.keys("3", "z")
	if frame := ansi.Strip(d.model.screen()); !strings.Contains(frame, "z: this key does nothing here") {
		t.Errorf("on the page of chains:\n%s", frame)
	}
	d.keys("4")
	if frame := ansi.Strip(d.model.screen()); !strings.Contains(frame, "a text") {
		t.Errorf("page 4 hides the text:\n%s", frame)
	}
	d.keys("enter")
	if frame := ansi.Strip(d.model.screen()); !strings.Contains(frame, "enter: no evaluation is open") {
		t.Errorf("on the page of runs:\n%s", frame)
	}
}

// TestClearOption: ctrl+u clears the chosen option's field.
func TestClearOption(t *testing.T) {
	c, _ := testConfig(t, "a [MASK]")
	d := newDriver(t, c, 100, 24)
	d.settle()
	d.keys("esc", "o")
	d.model.panel.fail("ban", "")
	d.keys("c", "a", "t", "ctrl+u")
	if got := d.model.panel.current(); got.Name != "ban" || got.value != "" {
		t.Errorf("%s is %q", got.Name, got.value)
	}
	d.keys("d", "o", "g")
	if got := d.model.panel.current(); got.value != "dog" {
		t.Errorf("%s is %q, want dog", got.Name, got.value)
	}
}
