package tui

import (
	"image/color"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
)

type styles struct {
	text, strong, faint lipgloss.Style
	accent, active      lipgloss.Style // keys, marks and titles; the chosen item of several
	line, done, bar     lipgloss.Style // rules and frames; the progress of a run; bars
	amber, good, fault  lipgloss.Style // warnings; success; faults
	selected, cursor    lipgloss.Style
	blanks              []lipgloss.Style
}

// newStyles returns styles for a profile and a light or dark background.
// Without colours (colorprofile.Ascii), they differ in attributes only.
func newStyles(profile colorprofile.Profile, light bool) *styles {
	style := lipgloss.NewStyle
	complete := lipgloss.Complete(profile)
	fitting := lipgloss.LightDark(!light)
	// The 16 basic colours suit the terminal's background; finer ones may not.
	shade := func(darkTrue, dark256, lightTrue, light256, basic string) color.Color {
		return complete(lipgloss.Color(basic), fitting(lipgloss.Color(light256), lipgloss.Color(dark256)),
			fitting(lipgloss.Color(lightTrue), lipgloss.Color(darkTrue)))
	}
	var (
		quiet  = shade("#8a93a5", "246", "#6b7280", "242", "8")
		line   = shade("#3b4252", "238", "#d0d5dd", "252", "8")
		accent = shade("#7dcfff", "117", "#0369a1", "25", "6")
		amber  = shade("#e0af68", "179", "#a15c00", "130", "3")
		green  = shade("#9ece6a", "149", "#2f7d32", "28", "2")
		red    = shade("#f7768e", "204", "#c0263d", "161", "1")
		violet = shade("#bb9af7", "141", "#7c3aed", "92", "5")
		blue   = shade("#7aa2f7", "111", "#1d4ed8", "26", "4")
		band   = shade("#262c3d", "236", "#e8f1fa", "255", "")
	)
	s := &styles{
		text: style(), strong: style().Bold(true), faint: style().Foreground(quiet),
		accent: style().Bold(true).Foreground(accent), active: style().Bold(true).Foreground(accent).Underline(true),
		line: style().Foreground(line), done: style().Foreground(accent), bar: style().Foreground(blue),
		amber: style().Foreground(amber), good: style().Foreground(green), fault: style().Foreground(red),
		selected: style().Bold(true).Background(band), cursor: style().Reverse(true),
	}
	if profile < colorprofile.ANSI {
		s.faint = style().Faint(true)
	}
	for _, colour := range []color.Color{accent, amber, violet, green, red, blue} {
		s.blanks = append(s.blanks, style().Foreground(colour).Bold(true))
	}
	return s
}

// blankLook returns the style of a blank, which is the same everywhere on the screen.
func (s *styles) blankLook(blank int) lipgloss.Style { return s.blanks[blank%len(s.blanks)] }

// marked styles the parts of a text. row is the style of the line that has them.
func (s *styles) marked(list []part, row lipgloss.Style, pinned map[int]string) string {
	text := ""
	for _, p := range list {
		if p.text == "" {
			continue
		}
		look := row.Bold(false)
		if p.blank >= 0 {
			_, held := pinned[p.blank]
			look = s.blankLook(p.blank).Inherit(row).Underline(held)
		}
		text += look.Render(p.text)
	}
	return text
}
