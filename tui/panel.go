package tui

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"infill/infill"
	"infill/internal/ask"
	"infill/samplers"
)

// panel edits the options of a run as texts, which the method options reads.
type panel struct {
	*styles
	fields []field
	at     int  // index of the chosen field in shown()
	typed  bool // whether the user is typing a value into the chosen field
	fault  string
}

// field is one line of the panel: an option, or the model. An option whose text is
// its default is given if it was given before, or if the user changed it.
type field struct {
	ask.Option
	value string
	given bool
}

// none is the value of the field sampler for a search, or for draws.
const none = "none"

// newPanel returns a panel: options of chains, all others, the model.
func newPanel(s *styles, given []ask.Given, model string, models []string) *panel {
	p := &panel{styles: s}
	for _, chains := range []bool{true, false} {
		for _, option := range ask.Options() {
			if ofChains(option) != chains {
				continue
			}
			f := field{Option: option, value: option.Default}
			g, ok := ask.Last(given, option.Name)
			if ok {
				f.value = g.Text()
				f.given = true
			}
			p.fields = append(p.fields, f)
		}
	}
	sampler := p.field("sampler")
	sampler.Values = append([]string{none}, sampler.Values...)
	sampler.value = cmp.Or(sampler.value, none)
	if !slices.Contains(models, model) {
		models = append([]string{model}, models...)
	}
	p.fields = append(p.fields, field{Option: ask.Option{Name: "model", Values: models,
		Help: "the name of a model, or the folder of one"}, value: model})
	return p
}

// ofChains reports whether an option is of chains alone.
func ofChains(o ask.Option) bool { return slices.Equal(o.Methods, []string{infill.MethodChains}) }

func (p *panel) field(name string) *field {
	return &p.fields[slices.IndexFunc(p.fields, func(f field) bool { return f.Name == name })]
}

func (p *panel) method() string {
	chooses := func(name string) bool {
		at := slices.IndexFunc(p.fields, func(f field) bool { return f.Name == name })
		return at >= 0 && p.fields[at].value != "" && p.fields[at].value != none
	}
	return ask.MethodFor(chooses).Name()
}

// shown returns the fields that have an effect now: those of the method, and those
// that choose another. Some samplers ignore some options of chains.
func (p *panel) shown() (list []*field) {
	method := p.method()
	name, _, _ := strings.Cut(p.field("sampler").value, ":")
	var settings []string
	uses := &samplers.OnText{}
	s, err := samplers.Parse(name)
	if err == nil {
		settings = samplers.Settings(s)
		uses = s.Describe().OnText
	}
	for i := range p.fields {
		f := &p.fields[i]
		chooses := f.Name == "sampler" || f.Name == "samples"
		switch {
		case !chooses && !f.In(method):
			continue
		case ofChains(f.Option) && f.Name != "sampler" && (err != nil || uses == nil),
			(f.Name == "step-size" || f.Name == "balance") && !slices.Contains(settings, f.Name),
			f.Name == "gradient" && uses.Gradient == "":
			continue
		}
		list = append(list, f)
	}
	return list
}

func (p *panel) current() *field {
	list := p.shown()
	p.at = min(p.at, len(list)-1)
	return list[p.at]
}

func (f *field) help() string {
	switch {
	case f.Name == "sampler" && (f.value == none || f.value == ""):
		return "none searches for the likeliest fills, or draws samples; a name moves chains"
	case f.Name == "sampler":
		g, err := f.Given(f.value)
		if err != nil {
			return fmt.Sprintf("%q is not %v", f.value, err)
		}
		d := g.Value().(samplers.Sampler).Describe()
		return fmt.Sprintf("%s: draws from %s; %s a step", d.Title, d.Target, d.Cost)
	}
	return f.Help
}

// key handles a key while the panel is open, but those that close it.
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
	case "ctrl+u":
		f := p.current()
		if !f.Closed {
			p.typed = true
			p.fault = ""
			f.given = true
			f.value = ""
		}
	case "backspace":
		f := p.current()
		if !f.Closed && f.value != "" {
			p.typed = true
			p.fault = ""
			f.given = true
			list := graphemes(f.value)
			f.value = f.value[:list[len(list)-1][0]]
		}
	default:
		p.typeText(k.Text)
	}
}

// move chooses the next field if by is 1, and the previous field if by is -1.
func (p *panel) move(by int) {
	n := len(p.shown())
	p.at = (min(p.at, n-1) + by + n) % n
	p.typed = false
	p.fault = ""
}

// turn takes the next or previous value; a number goes up or down by 1.
func (p *panel) turn(by int) {
	f := p.current()
	p.typed = false
	p.fault = ""
	f.given = true
	switch at := slices.Index(f.Values, f.value); {
	case f.counts():
		n, err := strconv.ParseUint(f.value, 10, 64)
		if err == nil && (by > 0 || n > 0) {
			f.value = strconv.FormatUint(n+uint64(by), 10)
		}
	case f.Values == nil:
	case at < 0 && by < 0:
		f.value = f.Values[len(f.Values)-1]
	default:
		f.value = f.Values[(at+by+len(f.Values))%len(f.Values)]
	}
}

func (f *field) counts() bool { return f.Values == nil && f.Word == "N" }

// typeText types into the chosen field; the first text replaces its value.
func (p *panel) typeText(text string) {
	f := p.current()
	if f.Closed || text == "" {
		return
	}
	// In a list, the text is added to the old value.
	if !p.typed && f.Join == "" {
		f.value = ""
	}
	p.typed = true
	p.fault = ""
	f.given = true
	if len(f.value) < 400 {
		f.value += harmless(text)
	}
}

// options reads the fields. It chooses a wrong one, and shows its error.
func (p *panel) options() (given []ask.Given, r infill.Request, model string, ok bool) {
	for _, f := range p.shown() {
		switch {
		case f.Name == "model":
			model = f.value
		case !f.given || f.value == "" || f.Name == "sampler" && f.value == none:
		default:
			g, err := f.Given(f.value)
			if err != nil {
				p.fail(f.Name, fmt.Sprintf("%q is not %s", f.value, err))
				return nil, r, "", false
			}
			given = append(given, g)
		}
	}
	r, err := requestOf("", given)
	if err != nil {
		name := ""
		wrong := (*infill.OptionError)(nil)
		if errors.As(err, &wrong) {
			name = wrong.Option
		}
		p.fail(name, explain(err))
		return nil, r, "", false
	}
	return given, r, model, true
}

func (p *panel) fail(name, fault string) {
	at := slices.IndexFunc(p.shown(), func(f *field) bool { return f.Name == name })
	if at >= 0 {
		p.at = at
	}
	p.typed = false
	p.fault = fault
}

func (p *panel) render(columns, rows int) string {
	const name = 13
	current := p.current()
	fields := p.shown()
	inner := columns - 5 - name
	help := current.help()
	look := p.faint
	if p.fault != "" {
		help = p.fault
		look = p.styles.fault
	}
	told := wrapped(help, columns-4, rows-2)
	helpRows := max(len(told), 3)
	// If there is no room for all fields, show the fields around the chosen one.
	number := min(len(fields), max(rows-1-helpRows, 1))
	first := min(max(p.at-number/2, 0), len(fields)-number)
	lines := []string{"  " + p.accent.Render("options") +
		p.faint.Render(fmt.Sprintf("  %d to %d of %d", first+1, first+number, len(fields)))}
	for i, f := range fields[first : first+number] {
		value := ansi.TruncateLeft(f.value, max(width(f.value)-inner+4, 0), "…")
		marker := "  "
		switch chosen := first+i == p.at; {
		case !chosen:
			value = "  " + p.text.Render(value)
		case p.typed:
			value = "  " + p.strong.Render(value) + p.cursor.Render(" ")
		case f.Values != nil || f.counts():
			value = p.accent.Render("‹ ") + p.strong.Render(value) + p.accent.Render(" ›")
		default:
			value = "  " + p.strong.Render(value)
		}
		if f == current {
			marker = p.accent.Render("▸ ")
		}
		lines = append(lines, marker+p.faint.Render(fit(f.Name, name))+value)
	}
	for _, line := range told {
		lines = append(lines, "  "+look.Render(line))
	}
	return stack(columns, rows, lines...)
}
