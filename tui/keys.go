package tui

import (
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
)

// keyMap is every key of the screen; the help is written from it.
type keyMap struct {
	// While the template is written.
	Blank, Leave, MarkWhileWriting key.Binding
	// Anywhere else.
	Write, Mark                      key.Binding
	Views                            []key.Binding // by their number
	NextView, PreviousView           key.Binding
	Up, Down, PageUp, PageDown       key.Binding
	First, Last, Left, Right         key.Binding
	Pick, Favourite, Copy, Save      key.Binding
	Pin, Unpin, Resample, Stop       key.Binding
	Filter, Sort, OnlyFavourites     key.Binding
	Settings, Toggle, Apply, Dismiss key.Binding
	Help, Quit, Interrupt            key.Binding
}

func newKeys() keyMap {
	bind := func(shown, help string, keys ...string) key.Binding {
		return key.NewBinding(key.WithKeys(keys...), key.WithHelp(shown, help))
	}
	return keyMap{
		Blank:            bind("_", "blank", "_", "ctrl+b"),
		Leave:            bind("tab", "to the fills", "tab", "enter", "esc", "down"),
		MarkWhileWriting: bind("ctrl+t", "mark words", "ctrl+t"),

		Write: bind("i", "write the template", "i", "e"),
		Mark:  bind("m", "mark words as blanks", "m", "ctrl+t"),
		Views: []key.Binding{bind("1…4", "fills, slots, chains, runs", "1"), bind("", "", "2"), bind("", "", "3"),
			bind("", "", "4")},
		NextView:       bind("tab", "next view", "tab"),
		PreviousView:   bind("shift+tab", "previous view", "shift+tab"),
		Up:             bind("↑", "up", "up", "k"),
		Down:           bind("↓", "down", "down", "j"),
		PageUp:         bind("pgup", "page up", "pgup", "ctrl+u"),
		PageDown:       bind("pgdn", "page down", "pgdown", "ctrl+d"),
		First:          bind("home", "first", "home", "g"),
		Last:           bind("end", "last", "end", "G"),
		Left:           bind("←", "slot to the left", "left", "h"),
		Right:          bind("→", "slot to the right", "right", "l"),
		Pick:           bind("enter", "pick and leave", "enter"),
		Favourite:      bind("f", "favourite", "f", "space"),
		Copy:           bind("y", "copy", "y", "c"),
		Save:           bind("w", "save", "w", "ctrl+s"),
		Pin:            bind("p", "pin the slot", "p"),
		Unpin:          bind("P", "unpin all", "P"),
		Resample:       bind("r", "resample", "r"),
		Stop:           bind("x", "stop", "x"),
		Filter:         bind("/", "filter", "/"),
		Sort:           bind("s", "sort", "s"),
		OnlyFavourites: bind("F", "favourites only", "F"),
		Settings:       bind("o", "options", "o"),
		Toggle:         bind("space", "mark or unmark", "space", "x"),
		Apply:          bind("enter", "done", "enter"),
		Dismiss:        bind("esc", "leave", "esc"),
		Help:           bind("?", "help", "?"),
		Quit:           bind("q", "quit", "q"),
		Interrupt:      bind("ctrl+c", "quit", "ctrl+c"),
	}
}

// as tells of a key in other words, and labelled with another label too.
func as(b key.Binding, words string) key.Binding { return labelled(b, b.Help().Key, words) }

func labelled(b key.Binding, label, words string) key.Binding {
	b.SetHelp(label, words)
	return b
}

// help lists every key; offset lines of it are scrolled away.
type help struct{ offset int }

// key reports whether the help stays.
func (h *help) key(k tea.KeyPressMsg, keys keyMap) bool {
	switch {
	case key.Matches(k, keys.Up):
		h.offset = max(h.offset-1, 0)
	case key.Matches(k, keys.Down, keys.PageDown):
		h.offset++
	default:
		return false
	}
	return true
}

func (h *help) render(s *styles, k keyMap, columns, rows int) string {
	group := func(title string, keys ...key.Binding) []string {
		lines := []string{"  " + s.accent.Render(title)}
		if title == "" {
			lines = nil
		}
		for _, k := range keys {
			lines = append(lines, "  "+s.accent.Render(fit(k.Help().Key, 9))+" "+k.Help().Desc)
		}
		return lines
	}
	write := group("write", k.Write, as(k.Blank, "insert a blank, while writing (or ctrl+b)"),
		as(k.Mark, "mark words as blanks (ctrl+t while writing)"), as(k.Leave, "from writing to the fills"))
	look := group("look", k.Views[0], k.NextView, labelled(k.Up, "↑ ↓", "move; also j k, pgup pgdn, home end"),
		labelled(k.Left, "← →", "choose a slot; also h l"),
		k.Filter, as(k.Sort, "sort: likelihood, frequency, novelty"), k.OnlyFavourites)
	choose := group("choose", as(k.Pick, "print the fill to standard output and leave"),
		as(k.Favourite, "mark as favourite (or space)"),
		as(k.Copy, "copy to the clipboard (OSC 52)"), as(k.Save, "save favourites, or what is listed"))
	sample := group("sample", as(k.Pin, "pin the slot to this fill's word, or unpin it"), k.Unpin,
		as(k.Resample, "resample with the next seed"),
		as(k.Stop, "stop the chains"), as(k.Settings, "sampler, step size, chains, model, seed …"))
	leave := group("", k.Help, as(k.Quit, "quit (ctrl+c interrupts, ctrl+z suspends)"))
	mouse := []string{"", s.faint.Render("  The mouse chooses views, fills, slots and words; with shift it selects"),
		s.faint.Render("  text as ever. A bar is full at the best fill, empty 12 nats below.")}
	gap := []string{""}
	one := slices.Concat(write, gap, look)
	two := slices.Concat(choose, gap, sample, leave)
	if columns < 110 {
		one, two = slices.Concat(one, gap, two, mouse), nil
	} else {
		one = slices.Concat(one, mouse)
	}
	h.offset = min(h.offset, max(max(len(one), len(two))-rows, 0))
	if two == nil {
		return stack(columns, rows, one[h.offset:]...)
	}
	half := columns / 2
	return beside("", rows, stack(half, rows, one[min(h.offset, len(one)):]...),
		stack(columns-half, rows, two[min(h.offset, len(two)):]...))
}

// shortHelp writes keys on one line, as many as fit.
func shortHelp(s *styles, columns int, keys ...key.Binding) string {
	text, used := "", 0
	for _, k := range keys {
		shown, help := k.Help().Key, k.Help().Desc
		w := width(shown) + 1 + width(help)
		if used > 0 {
			w += 3
		}
		if used+w > columns {
			break
		}
		if used > 0 {
			text += s.faint.Render(" · ")
		}
		text += s.accent.Render(shown) + s.faint.Render(" "+help)
		used += w
	}
	return text + strings.Repeat(" ", max(columns-used, 0))
}
