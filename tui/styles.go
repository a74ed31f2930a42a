package tui

import (
	"bytes"
	"io"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// Theme says which colours are readable on the terminal.
type Theme struct {
	// Profile is how many colours the terminal shows; colorprofile.Ascii shows
	// none, but bold, underline and reverse (NO_COLOR).
	Profile colorprofile.Profile
	// Light is for a light background.
	Light bool
}

// styles names every look by what it is for.
type styles struct {
	profile colorprofile.Profile

	text, faint, strong       lipgloss.Style
	brand, tab, activeTab     lipgloss.Style
	rule, done, warmUp        lipgloss.Style
	bar, marker               lipgloss.Style
	selected, cursor          lipgloss.Style
	good, warning, fault      lipgloss.Style
	key, favourite, pinned    lipgloss.Style
	border, title, panelTitle lipgloss.Style
	slots                     []lipgloss.Style
}

func newStyles(t Theme) *styles {
	r := lipgloss.NewRenderer(io.Discard)
	switch t.Profile {
	case colorprofile.TrueColor:
		r.SetColorProfile(termenv.TrueColor)
	case colorprofile.ANSI256:
		r.SetColorProfile(termenv.ANSI256)
	default:
		// Without colours the attributes are still wanted; paint takes the
		// colours away.
		r.SetColorProfile(termenv.ANSI)
	}
	r.SetHasDarkBackground(!t.Light)
	style := r.NewStyle
	// The 16 colours are the terminal's own, so they suit its background; the
	// finer ones are chosen for dark and light.
	shade := func(darkTrue, dark256, lightTrue, light256, basic string) lipgloss.TerminalColor {
		return lipgloss.CompleteAdaptiveColor{
			Dark:  lipgloss.CompleteColor{TrueColor: darkTrue, ANSI256: dark256, ANSI: basic},
			Light: lipgloss.CompleteColor{TrueColor: lightTrue, ANSI256: light256, ANSI: basic},
		}
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
		profile: t.Profile,
		text:    style(),
		faint:   style().Foreground(quiet),
		strong:  style().Bold(true),

		brand:     style().Bold(true).Foreground(accent),
		tab:       style().Foreground(quiet),
		activeTab: style().Bold(true).Foreground(accent).Underline(true),

		rule:   style().Foreground(line),
		done:   style().Foreground(accent),
		warmUp: style().Foreground(amber),

		bar:    style().Foreground(blue),
		marker: style().Foreground(accent).Bold(true),

		cursor:    style().Reverse(true),
		good:      style().Foreground(green),
		warning:   style().Foreground(amber),
		fault:     style().Foreground(red),
		key:       style().Foreground(accent).Bold(true),
		favourite: style().Foreground(amber),
		pinned:    style().Bold(true).Underline(true),

		border:     style().Foreground(line),
		title:      style().Foreground(quiet),
		panelTitle: style().Bold(true).Foreground(accent),
	}
	if t.Profile < colorprofile.ANSI {
		// What no colour can tell has to be told by the attributes that are left.
		s.faint, s.tab, s.title = style().Faint(true), style().Faint(true), style().Faint(true)
	}
	s.selected = style().Bold(true)
	if t.Profile >= colorprofile.ANSI256 {
		s.selected = s.selected.Background(band)
	}
	for _, colour := range []lipgloss.TerminalColor{accent, amber, violet, green, red, blue} {
		s.slots = append(s.slots, style().Foreground(colour).Bold(true))
	}
	return s
}

// slot is the look of a blank, the same wherever it stands.
func (s *styles) slot(blank int) lipgloss.Style { return s.slots[blank%len(s.slots)] }

// paint leaves out what the terminal cannot show.
func (s *styles) paint(frame string) string {
	if s.profile != colorprofile.Ascii && s.profile != colorprofile.NoTTY {
		return frame
	}
	var b bytes.Buffer
	w := colorprofile.Writer{Forward: &b, Profile: s.profile}
	// A buffer takes everything.
	_, _ = w.WriteString(frame)
	return b.String()
}

// marked styles the parts of a text; row is the look of what they stand on.
func (s *styles) marked(list []part, row lipgloss.Style, pinned map[int]pin) string {
	text := ""
	for _, p := range list {
		if p.text == "" {
			continue
		}
		look := row.Bold(false)
		if p.slot >= 0 {
			look = s.slot(p.slot).Inherit(row)
			if _, ok := pinned[p.slot]; ok {
				look = look.Underline(true)
			}
		}
		text += look.Render(p.text)
	}
	return text
}
