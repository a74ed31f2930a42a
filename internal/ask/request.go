package ask

import (
	"encoding/json"
	"slices"

	"infill/infill"
	"infill/internal/option"
	"infill/internal/rawjson"
)

// NewRequest makes a request of options on one level or several, such as those
// of a record above the command's. Of several values, the last counts.
func NewRequest(template string, levels ...[]Given) (infill.Request, error) {
	given, err := unfolded(levels)
	if err != nil {
		return infill.Request{}, err
	}
	method := MethodFor(func(name string) bool {
		_, ok := Last(given, name)
		return ok
	})
	for _, g := range given {
		if !g.Option.In(method.Name()) {
			return infill.Request{}, foreign(g.Option)
		}
	}
	r := infill.Request{Template: template, Method: option.With(method, given)}
	option.Assign(&r, given)
	option.Assign(&r.Fit, given)
	return r, nil
}

// Decide makes the method of the options that were given, as NewRequest does, see
// [MethodFor]. An option that the method does not have is an error, whatever its value.
func Decide(levels ...[]Given) (infill.Method, error) {
	r, err := NewRequest("", levels...)
	return r.Method, err
}

// foreign returns the error for an option that a request's method does not have.
func foreign(o Option) error {
	chains := o.In(infill.MethodChains)
	search := o.In(infill.MethodSearch)
	switch {
	case search: // and of draws, so that chains are without it
		return wrong(o.Name, "it is an option of the chain rule, and samplers have none: leave it out")
	case chains && o.In(infill.MethodDraws):
		return wrong(o.Name, "it is an option of draws and chains: give samples or a sampler, too")
	}
	return wrong(o.Name, "it is an option of samplers: name one, such as %s", Samplers()[0])
}

// unfolded returns the options of all levels, those in a sampler, as in
// dmala:step-size=0.4, by themselves. Of several samplers the last counts. What
// its own level gives twice is an error.
func unfolded(levels [][]Given) (list []Given, err error) {
	samplersLeft := 0
	for _, level := range levels {
		for _, g := range level {
			if g.Option.Name == "sampler" {
				samplersLeft++
			}
		}
	}
	for _, level := range levels {
		var own []Given
		for _, g := range level {
			if g.Option.Name != "sampler" {
				own = append(own, g)
				continue
			}
			samplersLeft--
			if samplersLeft > 0 {
				continue
			}
			w := g.Value().(written)
			for _, inner := range w.given {
				_, twice := Last(level, inner.Option.Name)
				if twice {
					return nil, wrong(inner.Option.Name,
						"it is given twice, by itself and in the sampler %s: leave one out", w.text)
				}
			}
			list = append(list, w.preset...)
			own = append(append(own, g.Option.Of(w.sampler)), w.given...)
		}
		list = append(list, own...)
	}
	return list, nil
}

// A Record is a request as JSON, a line of a file or a row of a table has it.
type Record struct {
	// ID is the user's name for the request; nil if there is none.
	ID       json.RawMessage
	Template string
	Given    []Given
	// Extra are the fields that are neither template, options nor ID.
	Extra []rawjson.Field
}

// ReadRecord reads a request from a JSON object: the template under key, "id",
// and options, see [option.Set.Read]. Lines of JSON, records of files, HTTP and
// tools of agents all use ReadRecord. Keys in keep go to Extra, even if an option
// has the same name. A wrong value, and an option that is given twice, give an
// *infill.OptionError that names the key.
func ReadRecord(fields []rawjson.Field, key string, keep ...string) (Record, error) {
	var r Record
	keeps := func(name string) bool { return name == key || slices.Contains(keep, name) }
	given, rest, err := options.Read(fields, keeps)
	if err != nil {
		return r, OptionError(err)
	}
	r.Given = given
	for _, field := range rest {
		switch {
		case field.Key == key:
		case field.Key == "id" && !keeps("id"):
			r.ID = json.RawMessage(rawjson.Object{field}.Given("id"))
		default:
			r.Extra = append(r.Extra, field)
		}
	}
	r.Template, err = rawjson.Object(fields).Text(key)
	return r, err
}

// Request makes the request of the record, whose options come before defaults.
func (r Record) Request(defaults []Given) (infill.Request, error) {
	return NewRequest(r.Template, defaults, r.Given)
}
