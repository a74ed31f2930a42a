package tui

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"infill/infill"
	"infill/samplers"
)

// panel changes the options of a run. It edits words, and turns them into options
// when it is done.
type panel struct {
	styles *styles
	title  string
	fields []field
	at     int
	typed  bool // the chosen field's value is being typed
	fault  string
}

// field is one line of the panel.
type field struct {
	name, value string
	choices     []string
	// closed fields take their choices only.
	closed bool
	help   func(value string) string
}

const auto = "auto"

// The fields, in their order.
const (
	samplerField = iota
	stepSizeField
	stepsField
	chainsField
	candidatesField
	temperatureField
	modeField
	allowedField
	bannedField
	seedField
	modelField
)

func newPanel(s *styles, title string, o infill.Options, model string, models []string) *panel {
	stepSize := auto
	if o.StepSize > 0 {
		stepSize = strconv.FormatFloat(o.StepSize, 'g', -1, 64)
	}
	say := func(text string) func(string) string { return func(string) string { return text } }
	if !slices.Contains(models, model) {
		models = append([]string{model}, models...)
	}
	return &panel{styles: s, title: title, fields: []field{
		samplerField:     {"sampler", o.Sampler, infill.Samplers(), true, describeSampler},
		stepSizeField:    {"step size", stepSize, []string{auto, "0.1", "0.2", "0.5", "1", "2", "5", "10", "50"}, false, say("changing a slot costs 1/α nats; auto adapts α in the warm-up, the first half of the steps")},
		stepsField:       {"steps", strconv.Itoa(o.Steps), []string{"0", "10", "20", "50", "100", "200", "500", "1000"}, false, say("of each chain, the warm-up included: its first half is not drawn from")},
		chainsField:      {"chains", strconv.Itoa(o.Chains), []string{"1", "5", "10", "25", "50", "100"}, false, say("independent of each other: their spread is what the errors come from")},
		candidatesField:  {"candidates", strconv.Itoa(o.Candidates), []string{"10", "50", "100", "250", "500", "1000", "0"}, false, say("a slot takes only the model's most probable words, this many; 0 is the whole vocabulary")},
		temperatureField: {"temperature", strconv.FormatFloat(o.Temperature, 'g', -1, 64), []string{"0.5", "0.7", "0.8", "1", "1.2", "1.5", "2"}, false, say("above 1 bolder, below 1 safer: the distribution to the power 1/T")},
		modeField:        {"mode", string(o.Mode), infill.Find("mode").Values, true, describeMode},
		allowedField:     {"allowed", allowedText(o.Constraints), nil, false, say("what blanks may take, counted from 1: 1=red,blue 2=in the park,at home; empty is everything")},
		bannedField:      {"forbidden", bannedText(o.Constraints), nil, false, say("words that no blank may hold: red,blue")},
		seedField:        {"seed", strconv.FormatUint(o.Seed, 10), nil, false, say("the same seed gives the same run; r takes the next one")},
		modelField:       {"model", model, models, false, say("the name of a model, or the folder of one")},
	}}
}

func describeSampler(name string) string {
	d := samplers.Describe(name)
	if d.Name == "" {
		return ""
	}
	return fmt.Sprintf("%s: draws from %s; %s a step", d.Title, d.Target, d.Cost)
}

func describeMode(mode string) string {
	return map[infill.Mode]string{
		infill.ModeSample: "draws from the distribution: the drawn shares mean something",
		infill.ModeBest:   "looks for the likeliest fills while the temperature falls; how often one is met means nothing",
		infill.ModeDecode: "fills the blanks one after the other, the surest first: quick, and no sampler is used",
	}[infill.Mode(mode)]
}

// allowedText writes the lists of the blanks as the panel reads them.
func allowedText(c infill.Constraints) string {
	var lists []string
	for _, blank := range slices.Sorted(maps.Keys(c.Words)) {
		lists = append(lists, strconv.Itoa(blank)+"="+strings.Join(c.Words[blank], ","))
	}
	return strings.Join(lists, " ")
}

func bannedText(c infill.Constraints) string { return strings.Join(c.Ban, ",") }

// wordList cuts a list at its commas; the words may hold blanks.
func wordList(text string) []string {
	var list []string
	for _, word := range strings.Split(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			list = append(list, word)
		}
	}
	return list
}

// readAllowed reads the lists of the blanks: each begins with its number and an
// equals sign, and ends where the next one begins.
func readAllowed(text string) (map[int][]string, error) {
	starts := regexp.MustCompile(`(?:^|\s)(\d+)=`).FindAllStringSubmatchIndex(text, -1)
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if len(starts) == 0 || strings.TrimSpace(text[:starts[0][0]]) != "" {
		return nil, fmt.Errorf("%q does not begin with the number of a blank: write 1=red,blue", text)
	}
	lists := map[int][]string{}
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		blank, err := strconv.Atoi(text[at[2]:at[3]])
		words := wordList(text[at[1]:end])
		switch {
		case err != nil:
			return nil, fmt.Errorf("%q is the number of no blank", text[at[2]:at[3]])
		case len(words) == 0:
			return nil, fmt.Errorf("no word for blank %d", blank)
		case lists[blank] != nil:
			return nil, fmt.Errorf("blank %d has two lists", blank)
		}
		lists[blank] = words
	}
	return lists, nil
}

// constraints changes the lists of c, and leaves what the panel does not show.
func (p *panel) constraints(c infill.Constraints) (_ infill.Constraints, err error) {
	c.Words, err = readAllowed(p.fields[allowedField].value)
	c.Ban = wordList(p.fields[bannedField].value)
	return c, err
}

// move chooses another field.
func (p *panel) move(by int) {
	p.at = (p.at + by + len(p.fields)) % len(p.fields)
	p.typed, p.fault = false, ""
}

// turn takes the next or the previous choice.
func (p *panel) turn(by int) {
	f := &p.fields[p.at]
	p.typed, p.fault = false, ""
	if f.choices == nil {
		if p.at != seedField {
			return
		}
		if n, err := strconv.ParseUint(f.value, 10, 64); err == nil && (by > 0 || n > 0) {
			f.value = strconv.FormatUint(n+uint64(by), 10)
		}
		return
	}
	at := slices.Index(f.choices, f.value)
	if at < 0 {
		at = -1
		if by < 0 {
			at = 0
		}
	}
	f.value = f.choices[(at+by+len(f.choices))%len(f.choices)]
	if p.at == samplerField {
		p.suit()
	}
}

// suit takes back a step size that the sampler has no use for.
func (p *panel) suit() {
	o := infill.DefaultOptions()
	o.Sampler, o.StepSize = p.fields[samplerField].value, 1
	if o.Validate() != nil {
		p.fields[stepSizeField].value = auto
	}
}

// typeText writes into the field: the first letter takes the place of the value.
func (p *panel) typeText(text string) {
	f := &p.fields[p.at]
	if f.closed {
		return
	}
	// A list is added to; any other value is written anew.
	if !p.typed && p.at != allowedField && p.at != bannedField {
		f.value = ""
	}
	p.typed, p.fault = true, ""
	if len(f.value) < 400 {
		f.value += harmless(text)
	}
}

// erase takes the last character away.
func (p *panel) erase() {
	f := &p.fields[p.at]
	if f.closed || f.value == "" {
		return
	}
	p.typed, p.fault = true, ""
	list := graphemes(f.value)
	f.value = f.value[:list[len(list)-1][0]]
}

// mostStates is how many states of chains a run may have here, all of which are
// kept to be shown. Longer ones are for the command.
const mostStates = 2_000_000

// options reads the fields. Errors name the field and stay in the panel.
func (p *panel) options(o infill.Options) (_ infill.Options, model string, ok bool) {
	fail := func(at int, format string, args ...any) (infill.Options, string, bool) {
		p.at, p.typed, p.fault = at, false, fmt.Sprintf(format, args...)
		return o, "", false
	}
	o.Sampler, o.Mode = p.fields[samplerField].value, infill.Mode(p.fields[modeField].value)
	// What a sampler of another kind was given does not suit this one.
	o.Balance, o.Gradient = "", ""
	o.StepSize = 0
	if value := p.fields[stepSizeField].value; value != auto {
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || !(x > 0) {
			return fail(stepSizeField, "%q is not a number above 0, or auto", value)
		}
		o.StepSize = x
	}
	for _, whole := range []struct {
		at    int
		value *int
	}{{stepsField, &o.Steps}, {chainsField, &o.Chains}, {candidatesField, &o.Candidates}} {
		n, err := strconv.Atoi(p.fields[whole.at].value)
		if err != nil {
			return fail(whole.at, "%q is not a whole number", p.fields[whole.at].value)
		}
		*whole.value = n
	}
	var err error
	if o.Temperature, err = strconv.ParseFloat(p.fields[temperatureField].value, 64); err != nil {
		return fail(temperatureField, "%q is not a number", p.fields[temperatureField].value)
	}
	if o.Seed, err = strconv.ParseUint(p.fields[seedField].value, 10, 64); err != nil {
		return fail(seedField, "%q is not a whole number of 0 or more", p.fields[seedField].value)
	}
	if o.Constraints, err = p.constraints(o.Constraints); err != nil {
		return fail(allowedField, "%s", err)
	}
	if o.WarmUp > o.Steps || o.Mode != infill.ModeSample {
		o.WarmUp = infill.HalfSteps
	}
	if o.Mode != infill.ModeSample {
		// Nothing is drawn from, so that nothing is tempered.
		o.Ladder = nil
	}
	if err := o.Validate(); err != nil {
		return fail(p.at, "%s", explain(err))
	}
	if o.Steps > mostStates/o.Chains {
		return fail(stepsField, "chains × steps is above %d: run longer ones with the command", mostStates)
	}
	return o, p.fields[modelField].value, true
}

// render draws the panel, at most as wide and high as given.
func (p *panel) render(columns, rows int) string {
	s := p.styles
	inner := min(columns-4, 72)
	nameWidth := 13
	var lines []string
	roomy := rows >= len(p.fields)+8
	if roomy {
		lines = append(lines, "")
	}
	// Where there is no room for all fields, those around the chosen one are shown.
	shown := min(len(p.fields), max(rows-3, 1))
	first := min(max(p.at-shown/2, 0), len(p.fields)-shown)
	for i, f := range p.fields {
		if i < first || i >= first+shown {
			continue
		}
		marker, look := "  ", s.text
		if i == p.at {
			marker, look = s.marker.Render("▸ "), s.strong
		}
		room := inner - 2 - nameWidth - 4
		value := ansi.TruncateLeft(f.value, max(width(f.value)-room+1, 0), "…")
		switch {
		case i == p.at && p.typed:
			value = "  " + look.Render(value) + s.cursor.Render(" ")
		case i == p.at && (f.choices != nil || i == seedField):
			value = s.key.Render("‹ ") + look.Render(value) + s.key.Render(" ›")
		default:
			value = "  " + look.Render(value)
		}
		lines = append(lines, fit(marker+s.faint.Render(fit(f.name, nameWidth))+value, inner))
	}
	help := s.faint.Render(ansi.Wrap(p.fields[p.at].help(p.fields[p.at].value), inner, ""))
	if p.fault != "" {
		help = s.fault.Render(ansi.Wrap(p.fault, inner, ""))
	}
	const helpRows = 3
	helpLines := strings.Split(help, "\n")
	helpLines = helpLines[:min(max(rows-len(lines)-2, 1), len(helpLines), helpRows)]
	if roomy {
		lines = append(lines, "")
	}
	lines = append(lines, helpLines...)
	if roomy {
		// The box keeps its height whatever the help is.
		for range helpRows - len(helpLines) {
			lines = append(lines, "")
		}
	}
	for i := range lines {
		lines[i] = fit(lines[i], inner)
	}
	frame := lipgloss.RoundedBorder()
	rule := func(text string) string { return s.border.Render(text) }
	out := []string{rule(frame.TopLeft+frame.Top) + " " + s.panelTitle.Render(p.title) + " " +
		rule(strings.Repeat(frame.Top, inner-1-width(p.title))+frame.TopRight)}
	for _, line := range lines {
		out = append(out, rule(frame.Left)+" "+line+" "+rule(frame.Right))
	}
	out = append(out, rule(frame.BottomLeft+strings.Repeat(frame.Bottom, inner+2)+frame.BottomRight))
	return strings.Join(out, "\n")
}
