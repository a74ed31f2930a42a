package infill

import (
	"math"

	"infill/tokenize"
)

// Plan is a checked request, ready to be filled. Only one goroutine may fill it at a time.
type Plan struct {
	Request
	filler  *Filler
	typed   *tokenize.Template // each blank at its shortest
	lengths [][2]int           // the fewest and the most slots of each blank
	layouts []*layout          // of each combination of lengths; nil if there are windows
	windows [][2]int           // of a long text: the first and the last blank of each
	first   *window            // what the first of them sees
}

// Plan checks and prepares a request without running the model. Errors: *OptionError for the options, those that
// do not fit the template among them, *tokenize.InputError for the template.
func (f *Filler) Plan(r Request) (*Plan, error) {
	if err := r.Options.Validate(); err != nil {
		return nil, err
	}
	typed, err := f.read(r.Template)
	if err != nil {
		return nil, err
	}
	return f.plan(typed, r, false)
}

// plan is Plan of checked options and a template that is read; escaped leaves the
// backslashes of \[MASK] in the texts of fills.
func (f *Filler) plan(typed *tokenize.Template, r Request, escaped bool) (*Plan, error) {
	rules, err := f.rules(typed, r.Options.Constraints, r.Options.Fill)
	if err != nil {
		return nil, err
	}
	if _, err := f.context(&r.Options); err != nil { // before windows count it
		return nil, err
	}
	_, rules.exist = f.words()
	p := &Plan{Request: r, filler: f, typed: typed, lengths: rules.lengths(typed)}
	if p.tokens() > f.windowTokens(&r.Options) {
		err = p.divide()
	} else {
		p.layouts, err = f.combinations(typed, rules, p.lengths, &p.Options, tokenize.Spelling{
			KeepEscapes: escaped, KeepCase: r.Options.Case == caseKeep, Written: rules.spelled, Originals: r.Originals})
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// tokens is the most tokens that the text has, [CLS] and [SEP] included.
func (p *Plan) tokens() int { return len(p.typed.IDs) - len(p.typed.Slots) + p.Slots() }

// Slots is the most slots that the blanks have together.
func (p *Plan) Slots() (slots int) {
	for _, length := range p.lengths {
		slots += length[1]
	}
	return slots
}

// MaxRows bounds the model rows that Fill needs; 0 if only seconds bound them.
func (p *Plan) MaxRows() int {
	o := &p.Options
	times := float64(max(1, len(p.windows)))
	if o.draws() { // each in one order, and its probability in both
		return max(int(min(times*float64(o.Budget.Rows), math.MaxInt32)),
			int(min(3*float64(o.Chains)*float64(p.Slots())*float64(1+len(o.Together)), math.MaxInt32)))
	}
	if o.answers() {
		least := 0 // one fill in both orders, whatever the budget
		if o.searches() && o.Budget.Rows > 0 {
			least = 2 * p.Slots() * (1 + len(o.Together))
		}
		if o.Joint != JointChain { // each combination of lengths has the whole budget
			times *= float64(max(1, len(p.layouts)))
		}
		return int(min(times*float64(max(o.Budget.Rows, least)), math.MaxInt32))
	}
	chains := float64(o.Chained().Chains) * float64(max(1, len(o.Ladder)))
	rows := chains * float64(o.Steps+1) * float64(p.Slots()) * float64(1+len(o.Together))
	return int(min(rows, math.MaxInt32))
}
