package infill

import (
	"encoding/json"
	"fmt"
	"slices"

	"infill/internal/object"
)

// Request is a template with its options.
type Request struct {
	// ID is the user's name for the request; nil if the user gave no name.
	ID       json.RawMessage
	Template string
	Options  Options
	// Originals are the words that the blanks replaced, if known: a fill takes the capitals of its original.
	Originals []string
	// Extra are the fields of the request's JSON object that are neither template, options nor ID, in their order.
	Extra []object.Field
}

// ParseRequest reads a request from a JSON object: the template under key, "id", and options by their names, see Find.
// Lines of JSON, records of files, HTTP and tools of agents all use ParseRequest. A value is a string in the syntax of
// the flag, a number, true or false, a list of these, or an object for options with keys. null and "" keep the default.
// Keys in keep go to Extra, even if an option has the same name. A wrong value gives an *OptionError. Filler.Plan
// checks whether the values fit together.
func ParseRequest(fields []object.Field, key string, defaults Options, keep ...string) (Request, error) {
	r := Request{Options: defaults}
	if !slices.Contains(keep, "id") {
		r.ID = object.Object(fields).Get("id")
	}
	for _, field := range fields {
		option := Option{}
		if !slices.Contains(keep, field.Key) {
			option = Find(field.Key)
		}
		switch {
		case field.Key == key:
		case option.Name != "":
			if err := option.decode(&r.Options, field.Value); err != nil {
				value, scalar := scalarText(field.Value)
				if !scalar {
					value = string(field.Value)
				}
				return r, &OptionError{Option: field.Key, Reason: fmt.Sprintf("%.60q is not %v", value, err)}
			}
		case field.Key == "id" && r.ID != nil:
		default:
			r.Extra = append(r.Extra, field)
		}
	}
	var err error
	r.Template, err = object.Object(fields).Text(key)
	return r, err
}
