package infill

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// An Option is a field of Request, Fit, Search, Draws or Chains that a user can
// set by a name. The tags of these fields are the one place where options are
// declared: flags, keys of JSON, columns of a file, schemas, the panel of the
// screen, the methods of an evaluation and signatures are made of them.
//
// The tags are option (the name), help (a phrase), word (what stands for a value
// in usage texts; none for a switch), unit (the things that a number counts) and
// join (what separates the values of an option that may be given several times).
// If list is "true", help texts end with the valid values. Of fields with one
// name, the first has the other tags.
type Option struct {
	Name string
	Help string
	Word string
	Unit string
	Join string
	// Values are suggestions or, if Closed, the only valid values.
	Values []string
	Closed bool
	// JSON is the type of the value in JSON: "string", "integer", "number",
	// "boolean", "array" (of strings) or "object" (of arrays of strings).
	// A string with the text of the value is taken as well.
	JSON string
	// Methods are the names of the methods that have the option; nil if every
	// request has it.
	Methods []string

	of reflect.Type
}

// A value is the type of an option. Its pointer reads the text.
type value interface {
	encoding.TextMarshaler
	schema() schema
}

var options = readOptions()

// readOptions reads the tags, see Option.
func readOptions() []Option {
	var list []Option
	for _, owner := range []struct {
		method string
		of     reflect.Type
	}{
		{"", reflect.TypeFor[Fit]()}, {"", reflect.TypeFor[Request]()}, {MethodSearch, reflect.TypeFor[Search]()},
		{MethodDraws, reflect.TypeFor[Draws]()}, {methodChains, reflect.TypeFor[Chains]()},
	} {
		for i := range owner.of.NumField() {
			field := owner.of.Field(i)
			name := field.Tag.Get("option")
			if name == "" {
				continue
			}
			at := slices.IndexFunc(list, func(o Option) bool { return o.Name == name })
			if at < 0 {
				at = len(list)
				list = append(list, newOption(field))
			}
			if owner.method != "" {
				list[at].Methods = append(list[at].Methods, owner.method)
			}
		}
	}
	return list
}

func newOption(field reflect.StructField) Option {
	tag := field.Tag
	s := reflect.Zero(field.Type).Interface().(value).schema()
	o := Option{Name: tag.Get("option"), Help: tag.Get("help"), Word: tag.Get("word"), Unit: tag.Get("unit"),
		Join: tag.Get("join"), Values: s.values, Closed: s.closed, JSON: s.kind, of: field.Type}
	if tag.Get("list") == "true" {
		o.Help += "; one of " + strings.Join(s.values, ", ")
	}
	return o
}

// Options lists the options, in the order of the command's help.
func Options() []Option { return slices.Clone(options) }

// Find returns the option with a name. It accepts the spellings of JSON too: _
// for -, and "slots" for "slot".
func Find(name string) (o Option, ok bool) {
	name = strings.ReplaceAll(name, "_", "-")
	if name == "slots" {
		name = "slot"
	}
	at := slices.IndexFunc(options, func(o Option) bool { return o.Name == name })
	if at < 0 {
		return Option{}, false
	}
	return options[at], true
}

// of reports whether a method has the option.
func (o Option) in(method string) bool { return o.Methods == nil || slices.Contains(o.Methods, method) }

// A Given is an option with the value that a user gave.
type Given struct {
	Option Option
	value  reflect.Value // of Option.of
}

// Text returns the value in the text form of a flag.
func (g Given) Text() string { return textOf(g.value) }

func textOf(v reflect.Value) string {
	text, _ := v.Interface().(encoding.TextMarshaler).MarshalText() // no MarshalText of an option fails
	return string(text)
}

// Given reads the text of a flag. An error completes the sentence `"x" is not …`.
func (o Option) Given(text string) (Given, error) {
	pointer := reflect.New(o.of)
	err := pointer.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	return Given{o, pointer.Elem()}, err
}

// given reads a value of JSON: a string as for the flag, a number, true or false,
// a list of these, or an object for options with keys. ok is false for null and
// "", which say nothing. An error completes the sentence `… is not …`.
func (o Option) given(value json.RawMessage) (g Given, ok bool, err error) {
	text, scalar := scalarText(value)
	if scalar && text == "" {
		return g, false, nil
	}
	if scalar {
		g, err = o.Given(text)
		return g, true, err
	}
	pointer := reflect.New(o.of)
	err = readList(pointer.Interface(), value)
	return Given{o, pointer.Elem()}, true, err
}

var errNoList = errors.New("one value")

// readList reads a JSON list, or an object of lists, into an option that takes
// such.
func readList(pointer any, value json.RawMessage) error {
	var list []json.RawMessage
	if value[0] == '[' {
		taker, ok := pointer.(interface{ setList([]string) error })
		if !ok {
			return errNoList
		}
		err := json.Unmarshal(value, &list)
		texts, scalars := scalarTexts(list)
		if err != nil || !scalars {
			texts = []string{""} // no list of words
		}
		return taker.setList(texts)
	}
	taker, ok := pointer.(interface {
		setLists(map[string][]string) error
	})
	if !ok {
		return errNoList
	}
	var object map[string]json.RawMessage
	err := json.Unmarshal(value, &object)
	if err != nil {
		return err
	}
	lists := map[string][]string{}
	for number, value := range object {
		lists[number] = wordsOf(value)
	}
	return taker.setLists(lists)
}

// wordsOf reads a text with commas, or a list of texts; nil if it is neither.
func wordsOf(value json.RawMessage) []string {
	text, scalar := scalarText(value)
	if scalar {
		words, _ := splitWords(text) // nil says that it is no list
		return words
	}
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil {
		return nil
	}
	words, ok := scalarTexts(list)
	if !ok {
		return nil
	}
	return words
}

// scalarText returns a JSON value in the syntax of a flag, "" for null. For lists
// and objects, ok is false.
func scalarText(value json.RawMessage) (text string, ok bool) {
	switch {
	case len(value) == 0 || string(value) == "null":
		return "", true
	case value[0] == '"':
		err := json.Unmarshal(value, &text)
		return text, err == nil
	}
	return string(value), value[0] != '[' && value[0] != '{'
}

func scalarTexts(values []json.RawMessage) (texts []string, ok bool) {
	for _, value := range values {
		text, ok := scalarText(value)
		if !ok {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, true
}

// Last returns the last value given for an option; ok is false if there is none.
func Last(given []Given, name string) (g Given, ok bool) {
	for _, g := range slices.Backward(given) {
		if g.Option.Name == name {
			return g, true
		}
	}
	return Given{}, false
}

// assign sets the fields of a struct that are options to the values given.
func assign(to any, given []Given) {
	v := reflect.ValueOf(to).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("option")
		g, ok := Last(given, name)
		if name != "" && ok {
			v.Field(i).Set(g.value)
		}
	}
}

// A Fact is an option with the text of its value, as a signature has it.
type Fact struct{ Name, Text string }

// factsOf returns the options of a struct, except those whose value is empty,
// "auto" or "false".
func factsOf(of any) []Fact {
	var facts []Fact
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("option")
		if name == "" {
			continue
		}
		text := textOf(v.Field(i))
		if text != "" && text != auto && text != "false" {
			facts = append(facts, Fact{name, text})
		}
	}
	return facts
}

// checkValues returns an *OptionError for the first option of a struct whose value
// its text form does not have.
func checkValues(of any) error {
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		option, known := Find(v.Type().Field(i).Tag.Get("option"))
		if !known {
			continue
		}
		text := textOf(v.Field(i))
		_, err := option.Given(text)
		if err != nil {
			return wrong(option.Name, "%q is not %v", text, err)
		}
	}
	return nil
}

// OptionError reports a value of an option that cannot be used.
type OptionError struct {
	// Option is the option's name: that of an Option, or of another setting of
	// the door that made the error, such as "out".
	Option string
	Reason string
	// Misfit reports whether only this template makes the value wrong.
	Misfit bool
}

var _ error = (*OptionError)(nil)

// Error returns one line: the option's name and what is wrong with its value.
func (e *OptionError) Error() string { return e.Option + ": " + e.Reason }

func misfit(option, format string, args ...any) error {
	return &OptionError{Option: option, Reason: fmt.Sprintf(format, args...), Misfit: true}
}

func wrong(option, format string, args ...any) error {
	return &OptionError{Option: option, Reason: fmt.Sprintf(format, args...)}
}

// A ConstraintError reports that constraints, several options and patterns
// together, leave a template no fill. A pattern is written in the template.
type ConstraintError struct{ Reason string }

var _ error = (*ConstraintError)(nil)

// Error returns one line that says what is left of what.
func (e *ConstraintError) Error() string { return e.Reason }

func constrained(format string, args ...any) error {
	return &ConstraintError{fmt.Sprintf(format, args...)}
}
