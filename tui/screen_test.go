package tui

import (
	"fmt"
	"image/color"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/golden"

	"infill/infill"
	"infill/internal/ask"
	"infill/samplers"
)

const two = "She opened the [MASK] and looked [MASK] ."

// TestScreens compares pages with stored ones; -update writes them again.
// Whatever the size, a frame is exactly as large as the terminal.
func TestScreens(t *testing.T) {
	for _, test := range []struct {
		name          string
		sampler       string
		columns, rows int
		keys          []string
	}{
		{"fills-80x24", "", 80, 24, nil},
		{"fills-60x16", "", 60, 16, nil},
		{"fills-160x30", "dmala", 160, 30, nil},
		{"chain-fills-80x24", "dmala", 80, 24, []string{"s", "down", "down"}},
		{"blanks-80x24", "", 80, 24, []string{"2", "right", "down"}},
		{"blanks-110x24", "dmala", 110, 24, []string{"2", "right", "down"}},
		{"chains-80x24", "dmala", 80, 24, []string{"3", "down"}},
		{"chains-60x16", "dmala", 60, 16, []string{"3"}},
		{"chains-of-a-search", "", 80, 16, []string{"3"}},
		{"help-80x24", "", 80, 24, []string{"?"}},
		{"options-80x24", "", 80, 24, []string{"o", "right", "down"}},
		{"pinned-80x24", "", 80, 24, []string{"p", "/", "o"}},
		{"writing-80x24", "", 80, 24, []string{"i", "end", " ", "_", "_", "_", "!"}},
	} {
		t.Run(test.name, waitless(func(t *testing.T) {
			c, _ := testConfig(t, two)
			if test.sampler != "" {
				c.Options = chainOptions(test.sampler)
			}
			d := newDriver(t, c, test.columns, test.rows)
			d.settle()
			for _, k := range test.keys {
				d.keys(k)
				d.settle()
			}
			exactly(t, d.model.screen(), test.columns, test.rows)
			golden.RequireEqual(t, []byte(d.frame()))
		}))
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

// TestColours stores one screen with its escape sequences for kinds of terminals.
func TestColours(t *testing.T) {
	for name, profile := range map[string]colorprofile.Profile{
		"true-dark": colorprofile.TrueColor, "true-light": colorprofile.TrueColor, "none": colorprofile.Ascii,
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := testConfig(t, two)
			c.Profile, c.Theme = profile, "auto"
			d := newDriver(t, c, 80, 20)
			if name == "true-light" {
				d.send(tea.BackgroundColorMsg{Color: color.White})
			}
			d.settle()
			d.keys("down")
			frame := d.model.screen()
			golden.RequireEqual(t, []byte(frame))
			if name == "none" {
				for _, colour := range []string{"[3", ";3", "[9", ";9", "48;"} {
					if strings.Contains(frame, "\x1b"+colour) {
						t.Errorf("a colour is left in %q", colour)
					}
				}
				if !strings.Contains(frame, "\x1b[1") {
					t.Error("bold was lost with the colours")
				}
			}
		})
	}
}

// TestStages looks at chains that are held at a step, and stops them.
func TestStages(t *testing.T) {
	for step, want := range map[int]string{12: "● warm-up 12/40", 30: "● sampling 30/40"} {
		c, filler := testConfig(t, two)
		c.Options = chainOptions("dmala")
		filler.holdAt = step
		d := newDriver(t, c, 84, 18)
		d.until(want, func() bool { return strings.Contains(d.frame(), want) })
		title := "drawn"
		if step == 12 {
			title = "warm-up"
		}
		d.shows("x stop", title)
		if bar := strings.Split(d.frame(), "\n")[3]; strings.Count(bar, "━") != 84*step/40 {
			t.Errorf("at step %d of 40 the bar is %q", step, bar)
		}
		d.keys("x")
		d.settle()
		d.shows(fmt.Sprintf("■ stopped at %d/40", step), "She opened")
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
	d.shows("infill needs 60 × 16", "40 × 10")
}

// TestResizeStorm draws every page at many sizes in a row.
func TestResizeStorm(t *testing.T) {
	c, _ := testConfig(t, "it was a [MASK] [MASK] and [MASK] night , and she looked [MASK] .")
	c.Options = chainOptions("dmala")
	d := newDriver(t, c, 80, 24)
	d.settle()
	every := 19
	if testing.Short() {
		every = 97
	}
	for page := range int(views) {
		d.keys(fmt.Sprint(page + 1))
		for _, open := range []string{"", "?", "o"} {
			d.keys(open)
			for columns := 1; columns < 260; columns += every {
				for _, rows := range []int{1, 16, 21, 22, 70} {
					d.send(tea.WindowSizeMsg{Width: columns, Height: rows})
					exactly(t, d.drawn, columns, rows)
				}
			}
			d.keys("esc")
		}
	}
}

// TestNothingIsCut: at 110 columns no page cuts what it says.
func TestNothingIsCut(t *testing.T) {
	for _, sampler := range []string{"", "dmala", "gibbs"} {
		for _, template := range []string{two, "it was a [MASK] [MASK] and [MASK] night , and she looked [MASK] ."} {
			c, _ := testConfig(t, template)
			if sampler != "" {
				c.Options = chainOptions(sampler)
			}
			d := newDriver(t, c, 110, 30)
			d.settle()
			for _, k := range []string{"1", "2", "3", "4", "?", "esc", "o"} {
				d.keys(k)
				if frame := d.frame(); strings.Contains(strings.ReplaceAll(frame, "1…4", ""), "…") &&
					!strings.Contains(frame, " … ") {
					t.Errorf("sampler %q, %s:\n%s", sampler, k, frame)
				}
			}
		}
	}
}

// TestNumbersKeepTheirSpace: on narrow screens words give way, and no number is cut.
func TestNumbersKeepTheirSpace(t *testing.T) {
	for _, columns := range []int{60, 80} {
		c, _ := testConfig(t, two)
		c.Options = chainOptions("dmala")
		d := newDriver(t, c, columns, 24)
		d.settle()
		d.keys("3")
		s := d.model.run.shown
		d.shows(fmt.Sprintf("ESS %.0f of %d", *s.stats().EffectiveDraws, s.result.Stats.Draws),
			fmt.Sprintf("α %.3g", s.stepSize))
	}
}

// TestPanel: every option of the table that means something is offered, the
// chosen one is in sight with its help, and wrong values stay in the panel with
// a word of what is wrong.
func TestPanel(t *testing.T) {
	c, _ := testConfig(t, two)
	d := newDriver(t, c, 60, 16)
	d.settle()
	d.keys("o")
	walk := func() (names []string) {
		for range d.model.panel.shown() {
			f := d.model.panel.current()
			names = append(names, f.Name)
			d.shows("▸ " + f.Name)
			exactly(t, d.model.screen(), 60, 16)
			d.keys("down")
		}
		return names
	}
	want := 2 // the sampler and the model
	for _, option := range ask.Options() {
		if option.Methods == nil || slices.Contains(option.Methods, infill.MethodSearch) || option.Name == "samples" {
			want++
		}
	}
	if got := walk(); len(got) != want || got[0] != "sampler" || got[len(got)-1] != "model" {
		t.Errorf("%d options of a search, want %d: %q", len(got), want, got)
	}
	d.shows("none searches for the likeliest fills")
	for _, name := range ask.Samplers() {
		d.keys("right")
		if value := d.model.panel.current().value; value != name {
			t.Fatalf("%s comes after the others, want %s", value, name)
		}
		sampler, err := samplers.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		d.shows(sampler.Describe().Title[:20])
		has := false
		for _, option := range walk() {
			has = has || option == "step-size"
		}
		if has != slices.Contains(samplers.Settings(sampler), "step-size") {
			t.Errorf("%s: a step size is offered: %t", name, has)
		}
	}
	d.typeText("nobody")
	d.shows(`"nobody" is not one of dmala, gibbs`)
	d.keys("enter")
	if d.model.panel == nil {
		t.Error("a sampler that nobody knows was taken")
	}
	d.keys("esc")
	d.send(tea.WindowSizeMsg{Width: 100, Height: 30})
	d.option("budget")
	d.typeText("0")
	d.keys("enter")
	if m := d.model; m.panel == nil || m.panel.fault == "" || m.panel.current().Name != "budget" {
		t.Error("a budget of 0 was taken")
	}
	d.keys("esc")
	d.set("sampler", "dmala")
	for name, wrong := range map[string]string{"step-size": "-1", "steps": "many", "samples": "-1", "candidates": "-5",
		"temperature": "0", "seed": "-1", "slot": "1=red 1=blue", "pos": "verbs", "warm-up": "90"} {
		d.option(name)
		d.typeText(wrong)
		d.keys("enter")
		if m := d.model; m.panel == nil || m.panel.fault == "" || m.panel.current().Name != name {
			t.Errorf("%q was taken for %s", wrong, name)
		} else {
			exactly(t, m.screen(), 100, 30)
		}
		d.keys("esc")
	}
	d.option("steps")
	d.typeText("2000000")
	d.keys("enter")
	d.shows("chains × steps is above 2000000")
	d.keys("esc")
}
