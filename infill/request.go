package infill

import (
	"encoding/json"
	"fmt"
	"slices"

	"infill/internal/object"
)

// Field is a key of a JSON object with its value.
type Field = object.Field

// Request is a template with all that is asked of it.
type Request struct {
	// ID is the user's own name of it, nil without one.
	ID       json.RawMessage
	Template string
	Options  Options
	// Originals are what stood in the blanks, where that is known: fills take their capitals.
	Originals []string
	// Extra are the fields of its object that are neither the template, the id nor an option,
	// in their order.
	Extra []Field
}

// ParseRequest reads a request as lines of JSON, records of files, HTTP and tools of agents
// have it: the template under key, "id", and options by their names, see [Find]. A value is a string as the flag takes
// it, a number, true or false, a list of these, or an object for values that belong to keys; null and "" leave what
// defaults says. The keys of keep are Extra whatever they are called. A wrong value is an
// *OptionError; whether the values go together is for [Filler.Plan].
func ParseRequest(fields []Field, key string, defaults Options, keep ...string) (Request, error) {
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
