package tui

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// TestMonkey types and resizes at random: nothing panics, every frame fits, and
// the screen still works in the end.
func TestMonkey(t *testing.T) {
	keys := []string{"up", "down", "left", "right", "tab", "shift+tab", "enter", "esc", "home", "end", "pgup", "pgdown",
		"backspace", "delete", "ctrl+b", "ctrl+t", "ctrl+v",
		" ", "1", "2", "3", "4", "5", "i", "m", "p", "P", "f", "F", "s", "r", "x", "o", "y", "/", "?", "_", ".", "q",
		"a", "日", "\u0301", "[MASK]"}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), waitless(func(t *testing.T) {
			stream := rand.New(rand.NewPCG(seed, 7))
			c, _ := testConfig(t, two)
			c.Options = chainOptions("dmala")
			c.Options = append(c.Options, given("steps=12", "samples=6")...)
			// Whatever is typed as a model is one.
			c.Open = func(context.Context, string) (Filler, error) { return newFakeFiller(t, newFake()), nil }
			d := newDriver(t, c, 80, 24)
			columns, rows := 80, 24
			for range 400 {
				switch stream.IntN(12) {
				case 0:
					columns, rows = 1+stream.IntN(200), 1+stream.IntN(60)
					d.send(tea.WindowSizeMsg{Width: columns, Height: rows})
				case 1:
					d.settle()
				default:
					d.keys(keys[stream.IntN(len(keys))])
				}
				exactly(t, d.drawn, columns, rows)
				for _, r := range ansi.Strip(d.drawn) {
					if r < ' ' && r != '\n' {
						t.Fatalf("%U is on the screen", r)
					}
				}
				if t.Failed() {
					t.FailNow()
				}
			}
			d.send(tea.WindowSizeMsg{Width: 80, Height: 24})
			d.model.filter, d.model.panel, d.model.help, d.model.fills.filter = nil, nil, nil, ""
			d.model.run.given, _ = Config{Options: chainOptions("dmala")}.given()
			d.model.run.request, _ = requestOf("", d.model.run.given)
			d.model.editor, d.model.writing, d.model.view = newEditor(two), false, fillsView
			d.run(d.model.edited())
			d.settle()
			if len(d.model.fills.listed) == 0 {
				t.Errorf("no fills any more:\n%s", ansi.Strip(d.model.screen()))
			}
		}))
	}
}
