package tui

import (
	"fmt"
	"image/color"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/golden"
)

const two = "She opened the [MASK] and looked [MASK] ."

// TestScreens compares every page at several sizes with stored ones; -update
// writes them again. Whatever the size, a frame is exactly as large as the
// terminal.
func TestScreens(t *testing.T) {
	pages := map[string]func(d *driver){
		"fills":   func(*driver) {},
		"slots":   func(d *driver) { d.keys("2", "right", "down", "down") },
		"chains":  func(d *driver) { d.keys("3", "down") },
		"help":    func(d *driver) { d.keys("?") },
		"options": func(d *driver) { d.keys("o", "down") },
		"pinned":  func(d *driver) { d.keys("p", "down", "f", "/"); d.typeText("o") },
		"saving":  func(d *driver) { d.keys("s", "w") },
		"lengths": func(d *driver) {
			d.model.editor = newEditor("She opened the [MASK:1-2] and looked [MASK] .")
			d.run(d.model.edited())
			d.settle()
		},
		"scrolled": func(d *driver) { d.keys("o", "up", "up") },
		"marking":  func(d *driver) { d.keys("m", "right", " ") },
		"writing":  func(d *driver) { d.keys("i"); d.typeText(" and the _ ran") },
	}
	for name, act := range pages {
		sizes := [][2]int{{80, 24}, {60, 16}, {160, 45}}
		if testing.Short() || !slices.Contains([]string{"fills", "slots", "chains"}, name) {
			sizes = sizes[:1]
		}
		for _, size := range sizes {
			t.Run(fmt.Sprintf("%s-%dx%d", name, size[0], size[1]), func(t *testing.T) {
				c, _ := testConfig(t, two)
				d := newDriver(t, c, size[0], size[1])
				d.settle()
				act(d)
				d.settle()
				frame := d.model.screen()
				exactly(t, frame, size[0], size[1])
				golden.RequireEqual(t, []byte(ansi.Strip(frame)))
			})
		}
	}
}

// exactly checks that a frame fills the terminal and no more.
func exactly(t *testing.T, frame string, columns, rows int) {
	t.Helper()
	lines := strings.Split(frame, "\n")
	if len(lines) != rows {
		t.Errorf("%d lines, the terminal has %d", len(lines), rows)
	}
	for i, line := range lines {
		if w := ansi.StringWidth(line); w > columns {
			t.Errorf("line %d is %d wide, the terminal %d: %q", i+1, w, columns, ansi.Strip(line))
		}
	}
}

// TestColours stores one screen with its escape sequences for every kind of
// terminal.
func TestColours(t *testing.T) {
	for name, profile := range map[string]colorprofile.Profile{
		"true-dark": colorprofile.TrueColor, "true-light": colorprofile.TrueColor, "256": colorprofile.ANSI256,
		"16": colorprofile.ANSI, "none": colorprofile.Ascii,
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := testConfig(t, two)
			c.Profile, c.Theme = profile, "auto"
			d := newDriver(t, c, 80, 20)
			if name == "true-light" {
				d.send(tea.BackgroundColorMsg{Color: color.White})
			}
			d.settle()
			d.keys("down", "f")
			frame := d.model.screen()
			golden.RequireEqual(t, []byte(frame))
			if name == "none" {
				for _, colour := range []string{"[3", ";3", "[9", ";9", "[4m[", "48;"} {
					if strings.Contains(frame, "\x1b"+colour) {
						t.Errorf("a colour is left in %q", colour)
					}
				}
				if !strings.Contains(frame, "\x1b[1m") && !strings.Contains(frame, "\x1b[1") {
					t.Error("bold was lost with the colours")
				}
			}
		})
	}
}

// TestStages stores the screen of a run that is held at a step.
func TestStages(t *testing.T) {
	for name, step := range map[string]int{"warm-up": 12, "sampling": 30} {
		t.Run(name, func(t *testing.T) {
			c, filler := testConfig(t, two)
			filler.holdAt = step
			d := newDriver(t, c, 84, 18)
			d.until(name, func() bool { p := d.model.run.snapshot; return p != nil && p.Step == step })
			golden.RequireEqual(t, []byte(ansi.Strip(d.model.screen())))
			d.keys("x")
			d.settle()
			if !strings.Contains(ansi.Strip(d.model.screen()), "stopped at") {
				t.Error("the stopped run is not called so")
			}
		})
	}
}

func TestTooSmall(t *testing.T) {
	c, _ := testConfig(t, two)
	d := newDriver(t, c, 80, 24)
	d.settle()
	for _, size := range [][2]int{{59, 16}, {60, 15}, {20, 5}, {1, 1}} {
		d.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		exactly(t, d.model.screen(), size[0], size[1])
	}
	d.send(tea.WindowSizeMsg{Width: 40, Height: 10})
	if frame := d.model.screen(); !strings.Contains(frame, "infill needs 60 × 16") ||
		!strings.Contains(frame, "40 × 10") {
		t.Errorf("no polite message:\n%s", frame)
	}
}

// TestResizeStorm draws every page at many sizes in a row.
func TestResizeStorm(t *testing.T) {
	c, _ := testConfig(t, "it was a [MASK] [MASK] and [MASK] night , and she looked [MASK] .")
	d := newDriver(t, c, 80, 24)
	d.settle()
	every := 19
	if testing.Short() {
		every = 97
	}
	for page := range int(views) {
		d.keys(fmt.Sprint(page + 1))
		d.settle()
		for _, open := range []string{"", "?", "o"} {
			if open != "" {
				d.keys(open)
			}
			for columns := 1; columns < 260; columns += every {
				for _, rows := range []int{1, 16, 21, 22, 70} {
					d.send(tea.WindowSizeMsg{Width: columns, Height: rows})
					exactly(t, d.model.screen(), columns, rows)
				}
			}
			if open != "" {
				d.keys("esc")
			}
		}
	}
}

// TestNumbersKeepTheirSpace: on narrow screens words give way, and no number is cut.
func TestNumbersKeepTheirSpace(t *testing.T) {
	for _, columns := range []int{60, 80} {
		c, _ := testConfig(t, two)
		d := newDriver(t, c, columns, 24)
		d.settle()
		d.keys("3")
		d.settle()
		frame := ansi.Strip(d.model.screen())
		s := d.model.run.snapshot
		for _, want := range []string{fmt.Sprintf("ESS %.0f of %d", s.ESS, s.Rounds*s.Chains),
			fmt.Sprintf("α %.3g", s.stepSize())} {
			if !strings.Contains(frame, want) {
				t.Errorf("%d columns: no %q in\n%s", columns, want, frame)
			}
		}
	}
}

// TestOptionsScroll: where the options have no room, marks tell how many more there are.
func TestOptionsScroll(t *testing.T) {
	c, _ := testConfig(t, two)
	d := newDriver(t, c, 60, 16)
	d.settle()
	d.keys("o")
	total := len(d.model.panel.fields)
	above, below := regexp.MustCompile(`↑ (\d+) more`), regexp.MustCompile(`↓ (\d+) more`)
	number := func(p *regexp.Regexp, frame string) int {
		n := 0
		if found := p.FindStringSubmatch(frame); found != nil {
			n, _ = strconv.Atoi(found[1])
		}
		return n
	}
	shown := 0
	for at := range total {
		frame := ansi.Strip(d.model.screen())
		if !strings.Contains(frame, "▸ "+d.model.panel.fields[at].label) {
			t.Errorf("the chosen option %d is not in sight:\n%s", at, frame)
		}
		here := total - number(above, frame) - number(below, frame)
		if at > 0 && here != shown || here >= total {
			t.Errorf("at %d, %d of %d options are in sight", at, here, total)
		}
		shown = here
		d.keys("down")
	}
}

// TestSaveName: the name that is proposed gives way to what is typed, and is edited after a move.
func TestSaveName(t *testing.T) {
	for _, test := range []struct {
		keys  []string
		typed string
		want  string
	}{
		{nil, "out.jsonl", "out.jsonl"},
		{[]string{"home"}, "my-", "my-fills.txt"},
		{[]string{"backspace"}, "", "fills.tx"},
		{[]string{"end"}, "2", "fills.txt2"},
	} {
		c, _ := testConfig(t, two)
		d := newDriver(t, c, 80, 24)
		d.settle()
		d.keys("w")
		d.keys(test.keys...)
		d.typeText(test.typed)
		if got := d.model.prompt.input.Value(); got != test.want {
			t.Errorf("%q and %q typed: %q, want %q", test.keys, test.typed, got, test.want)
		}
	}
}
