package infill

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"infill/internal/object"
)

// Request is a template with its options.
type Request struct {
	// ID is the user's name for the request; nil if the user gave no name.
	ID       json.RawMessage
	Template string
	Options  Options
	// Originals are the words that the blanks replaced, if known: a fill takes
	// the capitals of its original.
	Originals []string
	// Extra are the fields of the request's JSON object that are neither
	// template, options nor ID, in their order.
	Extra []object.Field
}

// ParseRequest reads a request from a JSON object: the template under key,
// "id", and options by their names, see Find. Lines of JSON, records of files,
// HTTP and tools of agents all use ParseRequest. A value is a string in the
// syntax of the flag, a number, true or false, a list of these, or an object
// for options with keys. null and "" keep the default, [] and {} are an empty
// list, and 3.0 is 3 where a whole number is wanted. Keys in keep go to Extra,
// even if an option has the same name. A wrong value, and an option that is
// given twice, give an *OptionError. Filler.Plan checks whether the values fit
// together.
func ParseRequest(fields []object.Field, key string, defaults Options, keep ...string) (Request, error) {
	r := Request{Options: defaults}
	given := map[string]string{} // the key of each option
	for _, field := range fields {
		kept := slices.Contains(keep, field.Key)
		option := Find(field.Key)
		switch {
		case field.Key == key:
		case kept || option.Name == "" && field.Key != "id":
			r.Extra = append(r.Extra, field)
		case option.Name == "":
			r.ID = json.RawMessage(object.Object{field}.Given("id"))
		case given[option.Name] != "":
			return r, &OptionError{Option: field.Key,
				Reason: fmt.Sprintf("it is the same as %s: give one of them", given[option.Name])}
		default:
			given[option.Name] = field.Key
			err := option.take(&r.Options, field)
			if err != nil {
				return r, err
			}
		}
	}
	var err error
	r.Template, err = object.Object(fields).Text(key)
	return r, err
}

// take sets the option to the value of a field. It returns an *OptionError for
// a wrong value.
func (t Option) take(o *Options, field object.Field) error {
	if field.Value.IsNull() {
		return nil
	}
	err := object.Whole(field.Value)
	if err != nil {
		return &OptionError{Option: field.Key, Reason: "the value " + err.Error()}
	}
	pointer := o.fields()[t.Name]
	if empty(field.Value, pointer) {
		return t.Set(o, "")
	}
	err = t.decode(o, json.RawMessage(plainOf(field.Value, pointer)))
	if err != nil {
		return &OptionError{Option: field.Key, Reason: fmt.Sprintf("%.60q is not %v", shown(field.Value), err)}
	}
	return nil
}

// shown returns a value for an error: a string without its quotes.
func shown(v object.Value) string {
	text, err := v.Text()
	if err != nil {
		return string(v)
	}
	return text
}

// empty reports whether a value is an empty list, for an option that is a list
// or several. pointer points to the option's value.
func empty(v object.Value, pointer any) bool {
	switch pointer.(type) {
	case *Words:
		return v.IsList() && len(v.List()) == 0
	case *Lists:
		return (v.IsList() || v.IsObject()) && len(v.List())+len(v.Object()) == 0
	}
	return false
}

// plainOf returns a value as decode reads it: for whole numbers 3 in place of
// 3.0, and for lists by number without those that are null. pointer points to
// the option's value.
func plainOf(v object.Value, pointer any) object.Value {
	switch pointer.(type) {
	case *int, *uint64, *Budget:
		return wholeOf(v)
	case *Order:
		if !v.IsList() {
			return v
		}
		var numbers []string
		for _, number := range v.List() {
			numbers = append(numbers, string(wholeOf(number)))
		}
		return object.Value("[" + strings.Join(numbers, ",") + "]")
	case *Lists:
		if !v.IsObject() {
			return v
		}
		given := slices.DeleteFunc(v.Object(), func(f object.Field) bool { return f.Value.IsNull() })
		return given.Append(nil)
	}
	return v
}

// wholeOf writes a whole number without a point or an exponent. It returns any
// other value as it is.
func wholeOf(v object.Value) object.Value {
	n, ok := v.Whole()
	if !ok {
		return v
	}
	return object.Value(strconv.Itoa(n))
}
