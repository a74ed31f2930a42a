package tui

import (
	"strings"

	"charm.land/bubbles/v2/key"
)

// keyMap is every key of the screen; the help is written from it.
type keyMap struct {
	// While the template is written.
	Blank, Leave, MarkWhileWriting key.Binding
	// Anywhere else.
	Write, Mark                      key.Binding
	Fills, Slots, Chains, Compare    key.Binding
	Runs, NextView, PreviousView     key.Binding
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

		Write:          bind("i", "write the template", "i", "e"),
		Mark:           bind("m", "mark words as blanks", "m", "ctrl+t"),
		Fills:          bind("1", "fills", "1"),
		Slots:          bind("2", "slots", "2"),
		Chains:         bind("3", "chains", "3"),
		Compare:        bind("4", "compare two samplers", "4"),
		Runs:           bind("5", "runs", "5"),
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

// helpGroup is a column of the help.
type helpGroup struct {
	title string
	keys  []key.Binding
}

func (k keyMap) groups() []helpGroup {
	with := func(b key.Binding, shown, help string) key.Binding { b.SetHelp(shown, help); return b }
	return []helpGroup{
		{"write", []key.Binding{
			k.Write,
			with(k.Blank, "_", "insert a blank, while writing (or ctrl+b)"),
			with(k.Mark, "m", "mark words as blanks (ctrl+t while writing)"),
			with(k.Leave, "tab", "from writing to the fills"),
		}},
		{"look", []key.Binding{
			with(k.Fills, "1…5", "fills, slots, chains, compare, runs"), k.NextView,
			with(k.Up, "↑ ↓", "move; also j k, pgup pgdn, home end"),
			with(k.Left, "← →", "choose a slot; also h l"),
			k.Filter, with(k.Sort, "s", "sort: likelihood, frequency, novelty"), k.OnlyFavourites,
		}},
		{"choose", []key.Binding{
			with(k.Pick, "enter", "print the fill to standard output and leave"),
			with(k.Favourite, "f", "mark as favourite (or space)"), with(k.Copy, "y", "copy to the clipboard (OSC 52)"),
			with(k.Save, "w", "save favourites, or what is listed"),
		}},
		{"sample", []key.Binding{
			with(k.Pin, "p", "pin the slot to this fill's word, or unpin it"), k.Unpin,
			with(k.Resample, "r", "resample with the next seed"), with(k.Stop, "x", "stop the chains"),
			with(k.Settings, "o", "sampler, step size, chains, model, seed …"),
		}},
		{"", []key.Binding{k.Help, with(k.Quit, "q", "quit (ctrl+c interrupts, ctrl+z suspends)")}},
	}
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
		text += s.key.Render(shown) + s.faint.Render(" "+help)
		used += w
	}
	return text + strings.Repeat(" ", max(columns-used, 0))
}
