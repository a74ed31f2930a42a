package tui

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"infill/infill"
	"infill/samplers"
)

// panel changes the options of a run. It edits words, and turns them into options
// when it is done.
type panel struct {
	*styles
	fields []field
	at     int
	typed  bool // the chosen field's value is being typed
	fault  string
}

// field is one line of the panel: an option of the table, or the model.
type field struct {
	infill.Option
	label, value string
}

// newPanel shows some of the options, in the order and with the words of the
// screen where those of the table are for a command line.
func newPanel(s *styles, o infill.Options, model string, models []string) *panel {
	p := &panel{styles: s}
	for _, line := range [][3]string{
		{"sampler"},
		{"step-size", "step size",
			"changing a slot costs 1/α nats; auto adapts α in the warm-up, the first half of the steps"},
		{"steps"},
		{"samples", "chains"},
		{"candidates"},
		{"temperature"},
		{"slot", "allowed",
			"what blanks may take, counted from 1: 1=red,blue 2=in the park,at home; empty is everything"},
		{"pos", "speech", "noun, verb, adjective or adverb, in English; 1=noun 2=verb for one blank each"},
		{"ban", "forbidden", "words that no blank may hold: red,blue"},
		{"seed", "seed", "the same seed gives the same run; r takes the next one"},
	} {
		option := infill.Find(line[0])
		option.Help = cmp.Or(line[2], option.Help)
		p.fields = append(p.fields, field{option, cmp.Or(line[1], line[0]), option.Get(&o)})
	}
	if !slices.Contains(models, model) {
		models = append([]string{model}, models...)
	}
	p.fields = append(p.fields,
		field{infill.Option{Help: "the name of a model, or the folder of one", Values: models}, "model", model})
	return p
}

// help says what the field is, or its value.
func (f field) help() string {
	switch f.Name {
	case "sampler":
		if f.value == infill.Auto {
			return "auto: the likeliest fills and their probabilities, as the command gives them; another name moves " +
				"chains"
		}
		d := samplers.Describe(f.value)
		return fmt.Sprintf("%s: draws from %s; %s a step", d.Title, d.Target, d.Cost)
	}
	return f.Help
}

// value is the value of a field.
func (p *panel) value(name string) *string {
	return &p.fields[slices.IndexFunc(p.fields, func(f field) bool { return f.Name == name })].value
}

// key gives a key to the panel; one that ends it is the screen's.
func (p *panel) key(k tea.KeyPressMsg) {
	switch k.String() {
	case "up", "shift+tab":
		p.move(-1)
	case "down", "tab":
		p.move(1)
	case "left":
		p.turn(-1)
	case "right":
		p.turn(1)
	case "backspace":
		if f := &p.fields[p.at]; !f.Closed && f.value != "" {
			p.typed, p.fault = true, ""
			list := graphemes(f.value)
			f.value = f.value[:list[len(list)-1][0]]
		}
	default:
		p.typeText(k.Text)
	}
}

// move chooses another field.
func (p *panel) move(by int) {
	p.at = (p.at + by + len(p.fields)) % len(p.fields)
	p.typed, p.fault = false, ""
}

// turn takes the next or the previous value, of a number without any the next
// number.
func (p *panel) turn(by int) {
	f := &p.fields[p.at]
	p.typed, p.fault = false, ""
	switch at := slices.Index(f.Values, f.value); {
	case f.counts():
		if n, err := strconv.ParseUint(f.value, 10, 64); err == nil && (by > 0 || n > 0) {
			f.value = strconv.FormatUint(n+uint64(by), 10)
		}
	case f.Values == nil:
	case at < 0 && by < 0:
		f.value = f.Values[len(f.Values)-1]
	default:
		f.value = f.Values[(at+by+len(f.Values))%len(f.Values)]
	}
	if f.Name == "sampler" {
		// A step size that the sampler has no use for is taken back.
		o := infill.DefaultOptions()
		o.Sampler = f.value
		if step := infill.Find("step-size"); step.Unfit(&o) != "" {
			*p.value("step-size") = step.Get(&o)
		}
	}
}

func (f *field) counts() bool { return f.Values == nil && f.Kind == "N" }

// typeText writes into the field: the first letter takes the place of the value.
func (p *panel) typeText(text string) {
	f := &p.fields[p.at]
	if f.Closed || text == "" {
		return
	}
	// A list is added to; any other value is written again.
	if !p.typed && f.Join == "" {
		f.value = ""
	}
	p.typed, p.fault = true, ""
	if len(f.value) < 400 {
		f.value += harmless(text)
	}
}

// mostStates is how many states of chains a run may have here, all of which are
// kept to be shown. Longer ones are for the command.
const mostStates = 2_000_000

// Validate returns an *infill.OptionError for wrong options, and for those of a run with more states than the screen
// keeps.
func (c Config) Validate() error {
	if o := c.Options; o.Chains > 0 && o.Steps > mostStates/o.Chains {
		return cmp.Or(o.Validate(), error(&infill.OptionError{Option: "steps",
			Reason: fmt.Sprintf("chains × steps is above %d: run longer ones with the command", mostStates)}))
	}
	return c.Options.Validate()
}

// options reads the fields into o. Errors name the field and stay in the panel.
func (p *panel) options(o infill.Options) (_ infill.Options, model string, ok bool) {
	fail := func(name, fault string) (infill.Options, string, bool) {
		if at := slices.IndexFunc(p.fields, func(f field) bool { return f.Name == name }); at >= 0 {
			p.at = at
		}
		p.typed, p.fault = false, fault
		return o, "", false
	}
	for _, f := range p.fields {
		if f.Name == "" {
			model = f.value
		} else if err := f.Set(&o, f.value); err != nil {
			return fail(f.Name, fmt.Sprintf("%q is not %s", f.value, err))
		}
	}
	// What a sampler of another kind was given does not suit this one.
	o.Balance, o.Gradient = "", ""
	if err := (Config{Options: o}).Validate(); err != nil {
		var wrong *infill.OptionError
		errors.As(err, &wrong)
		return fail(wrong.Option, explain(err))
	}
	return o, model, true
}

// render draws the panel, at most as wide and high as given.
func (p *panel) render(columns, rows int) string {
	const title, nameWidth, helpRows = "options", 13, 3
	inner := min(columns-4, 72)
	var lines []string
	roomy := rows >= len(p.fields)+8
	if roomy {
		lines = append(lines, "")
	}
	// Where there is no room for all fields, those around the chosen one are shown.
	shown := min(len(p.fields), max(rows-3, 1))
	first := min(max(p.at-shown/2, 0), len(p.fields)-shown)
	for i := first; i < first+shown; i++ {
		f := p.fields[i]
		value := ansi.TruncateLeft(f.value, max(width(f.value)-(inner-2-nameWidth-4)+1, 0), "…")
		marker := "  "
		switch {
		case i != p.at:
			value = "  " + p.text.Render(value)
		case p.typed:
			value = "  " + p.strong.Render(value) + p.cursor.Render(" ")
		case f.Values != nil || f.counts():
			value = p.accent.Render("‹ ") + p.strong.Render(value) + p.accent.Render(" ›")
		default:
			value = "  " + p.strong.Render(value)
		}
		if i == p.at {
			marker = p.accent.Render("▸ ")
		}
		lines = append(lines, marker+p.faint.Render(fit(f.label, nameWidth))+value)
	}
	above, below := "", ""
	if first > 0 {
		above = fmt.Sprintf(" ↑ %d more ", first)
	}
	if left := len(p.fields) - first - shown; left > 0 {
		below = fmt.Sprintf(" ↓ %d more ", left)
	}
	help := p.faint.Render(ansi.Wrap(p.fields[p.at].help(), inner, ""))
	if p.fault != "" {
		help = p.styles.fault.Render(ansi.Wrap(p.fault, inner, ""))
	}
	helpLines := strings.Split(help, "\n")
	helpLines = helpLines[:min(max(rows-len(lines)-2, 1), len(helpLines), helpRows)]
	if roomy {
		// The box keeps its height whatever the help is.
		helpLines = append(append([]string{""}, helpLines...), make([]string, helpRows-len(helpLines))...)
	}
	frame := lipgloss.RoundedBorder()
	out := []string{p.line.Render(frame.TopLeft+frame.Top) + " " + p.accent.Render(title) + " " +
		p.line.Render(strings.Repeat(frame.Top, inner-2-width(title)-width(above))) + p.amber.Render(
		above) + p.line.Render(frame.Top+frame.TopRight)}
	for _, line := range append(lines, helpLines...) {
		out = append(out, p.line.Render(frame.Left)+" "+fit(line, inner)+" "+p.line.Render(frame.Right))
	}
	out = append(out, p.line.Render(frame.BottomLeft+strings.Repeat(frame.Bottom, inner+1-width(below)))+
		p.amber.Render(below)+p.line.Render(frame.Bottom+frame.BottomRight))
	return strings.Join(out, "\n")
}
