package infill

import (
	"cmp"
	"encoding/json"
	"slices"

	"infill/internal/object"
	"infill/internal/option"
)

// Request says what to fill, and how. The zero value of every field but Template
// is its default.
type Request struct {
	Template string
	// Blank is a further spelling of a blank, beside [MASK], ___, <mask> and the
	// model's own mask; "" adds no spelling.
	Blank string `option:"blank" word:"TEXT" help:"a further spelling of a blank, beside [MASK], ___ and <mask>"`
	// Context is a text that the model reads before the template, as
	// [CLS] context [SEP] text [SEP]; "" for no context. It changes P.
	Context string `option:"context" word:"TEXT" help:"a text that the model reads before each template: the sentence before, a definition, the original"`
	// Fit says which fills are seen; it changes no probability.
	Fit Fit
	// Top is the number of fills to keep.
	Top int `option:"top" default:"5" minimum:"1" maximum:"65536" word:"N" help:"fills to print"`
	// Method finds the fills; nil is Search{}.
	Method Method
	// Seed starts all random numbers.
	Seed uint64 `option:"seed" word:"N" help:"start of all random numbers; drawn and printed when not given"`
	// Originals are the words that the blanks replaced, if known: a fill takes
	// the capitals of its original.
	Originals []string
}

// Fit narrows which fills are allowed, and changes no probability. Patterns in
// the template do so too.
type Fit struct {
	// Slots lists, by the number of a blank from 1, or under 0 for every blank
	// without a list of its own, the fills that the blank may take. A fill is
	// one word or several. A blank typed without a length may have the length of
	// any fill in its list.
	Slots Lists `option:"slot" alias:"slots" word:"[N=]WORD,..." join:" " help:"what each blank, or blank N, counted from 1, may take; see infill help templates"`
	// Speech lists parts of speech by the number of a blank from 1, or under 0
	// for all blanks. Such a blank takes only a single English word that can be
	// a listed part of speech.
	Speech Parts `option:"pos" word:"[N=]PART,..." join:" " help:"part of speech of the English word in each blank, or in blank N: noun, verb, adjective, adverb"`
	// Ban lists words that no blank may hold. A ban also forbids pieces that
	// spell the word side by side.
	Ban Words `option:"ban" word:"WORD,..." join:"," help:"words that no blank may hold"`
	// Fill says which fills blanks without a list may take.
	Fill FillKind `option:"fill" default:"words" enum:"words,tokens,any" word:"{words|tokens|any}" help:"what a blank may take: words; words and punctuation; or any token, parts of words included"`
	// Case says how fills are capitalised.
	Case Case `option:"case" default:"auto" enum:"auto,keep" word:"{auto|keep}" help:"give fills capitals as the text asks for them, or keep the model's letters"`
	// Distinct forbids two blanks to hold the same text, unless the blanks have
	// the same name.
	Distinct bool `option:"distinct" default:"false" help:"no two blanks hold the same; those of one name count as one"`
}

// Settled returns the request with the defaults of all fields written out.
func (r Request) Settled() Request {
	options.Settle(&r.Fit)
	options.Settle(&r)
	if r.Method == nil {
		r.Method = Search{}
	}
	r.Method = r.Method.settled()
	return r
}

// NewRequest makes a request of the options that were given. Of several values of
// one option, the last counts.
func NewRequest(template string, given []Given) (Request, error) {
	method, err := Decide(given)
	if err != nil {
		return Request{}, err
	}
	r := Request{Template: template, Method: method}
	option.Assign(&r, given)
	option.Assign(&r.Fit, given)
	return r, nil
}

// Decide makes the method of the options that were given: Chains if a sampler is
// among them, Draws if samples are, else Search. An option that the method does
// not have is an error, whatever its value.
func Decide(given []Given) (Method, error) {
	given, err := unfolded(given)
	if err != nil {
		return nil, err
	}
	method := MethodFor(func(name string) bool {
		_, ok := Last(given, name)
		return ok
	})
	for _, g := range given {
		if !g.Option.In(method.Name()) {
			return nil, foreign(g.Option)
		}
	}
	return option.With(method, given), nil
}

// foreign returns the error for an option that a request's method does not have.
func foreign(o Option) error {
	chains := o.In(MethodChains)
	search := o.In(MethodSearch)
	switch {
	case search: // and of draws, so that chains are without it
		return wrong(o.Name, "it is an option of the chain rule, and samplers have none: leave it out")
	case chains && o.In(MethodDraws):
		return wrong(o.Name, "it is an option of draws and chains: give samples or a sampler, too")
	case o.In(MethodDraws):
		return wrong(o.Name, "it is an option of draws: give samples, too")
	}
	return wrong(o.Name, "it is an option of samplers: name one, such as %s", Samplers()[0])
}

// unfolded returns the options with the settings of a sampler that are options,
// as in dmala:step-size=0.4, given by themselves.
func unfolded(given []Given) ([]Given, error) {
	var list []Given
	last := 0 // the sampler that counts
	for i, g := range given {
		if g.Option.Name == "sampler" {
			last = i
		}
	}
	for i, g := range given {
		s, ok := g.Value().(Sampler)
		if !ok {
			list = append(list, g)
		}
		if !ok || i < last {
			continue
		}
		own := NewSampler(s.Spec.Name)
		var inner []Given
		for _, a := range s.Spec.Settings {
			o, known := Find(a.Setting)
			// The number of samples and their rank are no settings of a sampler.
			if !known || !o.In(MethodChains) || o.In(MethodDraws) && o.Name != "temperature" {
				own.Spec.Settings = append(own.Spec.Settings, a)
				continue
			}
			read, err := o.Given(a.Value)
			if err != nil {
				return nil, wrong("sampler", "%q is not a sampler with its settings: %s: %q is not %v", s.Spec,
					a.Setting, a.Value, err)
			}
			inner = append(inner, read)
		}
		err := own.Spec.Check()
		if err != nil {
			return nil, wrong("sampler", "%q is not a sampler with its settings: %v", s.Spec, err)
		}
		list = append(append(list, g.Option.Of(own)), inner...)
	}
	return list, nil
}

// check returns an *OptionError for a value of a settled request that cannot be
// used with any template. m is the model, or the zero value for any model.
func (r *Request) check(m Model) error {
	return cmp.Or(checkValues(r.Fit), checkValues(*r), checkValues(r.Method), r.Method.check(r, m))
}

// Check returns an *OptionError for a value that cannot be used with any template.
func (r Request) Check() error {
	r = r.Settled()
	return r.check(Model{})
}

// Check does what [Request.Check] does, for templates of the filler's model.
func (f *Filler) Check(r Request) error {
	r = r.Settled()
	return r.check(f.Model())
}

// Facts returns the options that a result of the request depends on, with their
// texts, in the order of Options.
func (r Request) Facts() []Fact {
	r = r.Settled()
	facts := factsOf(r.Method)
	fit := factsOf(r.Fit)
	return slices.Concat(facts, fit, factsOf(r))
}

// A Record is a request as a JSON object, a line of a file or a row of a table
// has it.
type Record struct {
	// ID is the user's name for the request; nil if there is none.
	ID       json.RawMessage
	Template string
	Given    []Given
	// Extra are the fields that are neither template, options nor ID, in their
	// order.
	Extra []object.Field
}

// ReadRecord reads a request from a JSON object: the template under key, "id",
// and options by their names, see Find. Lines of JSON, records of files, HTTP and
// tools of agents all use ReadRecord. A value is a string in the syntax of the
// flag, a number, true or false, a list of these, or an object for options with
// keys. null and "" say nothing, [] and {} are an empty list, and 3.0 is 3 where a
// whole number is wanted. Keys in keep go to Extra, even if an option has the same
// name. A wrong value, and an option that is given twice, give an *OptionError
// that names the key.
func ReadRecord(fields []object.Field, key string, keep ...string) (Record, error) {
	var r Record
	keeps := func(name string) bool { return name == key || slices.Contains(keep, name) }
	given, rest, err := options.Read(fields, keeps)
	if err != nil {
		return r, optionError(err)
	}
	r.Given = given
	for _, field := range rest {
		switch {
		case field.Key == key:
		case field.Key == "id" && !keeps("id"):
			r.ID = json.RawMessage(object.Object{field}.Given("id"))
		default:
			r.Extra = append(r.Extra, field)
		}
	}
	r.Template, err = object.Object(fields).Text(key)
	return r, err
}

// Request makes the request of the record. defaults are options that hold unless
// the record gives others.
func (r Record) Request(defaults []Given) (Request, error) {
	return NewRequest(r.Template, slices.Concat(defaults, r.Given))
}
