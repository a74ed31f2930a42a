package infill

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"infill/internal/object"
	"infill/lm"
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
		{MethodDraws, reflect.TypeFor[Draws]()}, {MethodChains, reflect.TypeFor[Chains]()},
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

// MustFind returns the option with a name. It panics for a name that no option
// has, which only a bug in the program leads to.
func MustFind(name string) Option {
	o, ok := Find(name)
	if !ok {
		panic(name + " is no option")
	}
	return o
}

// MustGive returns an option with a value by their texts. It panics for texts
// that are wrong, which only a bug in the program leads to.
func MustGive(name, text string) Given {
	g, err := MustFind(name).Given(text)
	if err != nil {
		panic(fmt.Sprintf("%s: %q is not %v", name, text, err))
	}
	return g
}

// in reports whether a method has the option.
func (o Option) in(method string) bool { return o.Methods == nil || slices.Contains(o.Methods, method) }

// Default returns the text of the value that holds if the option is not given; ""
// if it then has no value.
func (o Option) Default() string {
	chains := NewChains("")
	chains.Energy = Energy(lm.PLL)
	chains.Initial.Kind = StartModel
	for _, of := range []any{Request{}.settled(), Fit{}.settled(), Search{}.settled(), Draws{}.settled(), chains} {
		for _, f := range textsOf(of) {
			if f.Name == o.Name && f.Text != "0" {
				return f.Text
			}
		}
	}
	return ""
}

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

// With returns a value together with that of a later use of the same flag. ok is
// false if both have a list of one blank.
func (g Given) With(later Given) (both Given, ok bool) {
	switch one := g.value.Interface().(type) {
	case Words:
		words := slices.Concat(one, later.value.Interface().(Words))
		return Given{g.Option, reflect.ValueOf(words)}, true
	case Lists:
		lists, ok := together(one, later.value.Interface().(Lists))
		return Given{g.Option, reflect.ValueOf(Lists(lists))}, ok
	case Parts:
		parts, ok := together(one, later.value.Interface().(Parts))
		return Given{g.Option, reflect.ValueOf(Parts(parts))}, ok
	}
	return later, true
}

// together returns the lists of two maps. ok is false if both have one key.
func together(one, other map[int][]string) (lists map[int][]string, ok bool) {
	lists = maps.Clone(one)
	for number, words := range other {
		if lists[number] != nil {
			return nil, false
		}
		lists[number] = words
	}
	return lists, true
}

// Given reads the text of a flag. An error completes the sentence `"x" is not …`.
func (o Option) Given(text string) (Given, error) {
	pointer := reflect.New(o.of)
	err := pointer.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	return Given{o, pointer.Elem()}, err
}

// given reads a field of JSON, see ReadRecord. ok is false if the value says
// nothing. Its errors are *OptionErrors that name the key.
func (o Option) given(field object.Field) (g Given, ok bool, err error) {
	v := field.Value
	if v.IsNull() || string(v) == `""` {
		return g, false, nil
	}
	err = object.Whole(v)
	if err != nil {
		return g, false, &OptionError{Option: field.Key, Reason: "the value " + err.Error()}
	}
	pointer := reflect.New(o.of)
	err = readJSON(pointer.Interface(), v)
	if err != nil {
		return g, false, &OptionError{Option: field.Key, Reason: fmt.Sprintf("%.60q is not %v", shown(v), err)}
	}
	return Given{o, pointer.Elem()}, true, nil
}

// shown returns a value for an error: a string without its quotes.
func shown(v object.Value) string {
	text, err := v.Text()
	if err != nil {
		return string(v)
	}
	return text
}

// readJSON reads JSON into an option.
func readJSON(pointer any, v object.Value) error {
	lists, numbered := pointer.(interface {
		setLists(map[string][]string) error
	})
	list, listed := pointer.(interface{ setList([]string) error })
	switch {
	case v.IsObject() && numbered:
		return lists.setLists(listsIn(v))
	case v.IsList() && listed:
		return list.setList(textsIn(v))
	case v.IsObject() || v.IsList():
		return otherKind(pointer, v)
	}
	reader := pointer.(encoding.TextUnmarshaler)
	err := reader.UnmarshalText([]byte(shown(v)))
	n, whole := v.Whole()
	if err != nil && whole { // 3e0 is 3
		return reader.UnmarshalText([]byte(strconv.Itoa(n)))
	}
	return err
}

// otherKind returns the error of an option for JSON of a kind that it does not
// take.
func otherKind(pointer any, v object.Value) error {
	want := reflect.ValueOf(pointer).Elem().Interface().(value).schema().want
	if want != "" {
		return errors.New(want)
	}
	return pointer.(encoding.TextUnmarshaler).UnmarshalText([]byte(v))
}

// textsIn returns the elements of a list as texts; one that is no text is an
// empty one, which no option takes.
func textsIn(v object.Value) []string {
	var texts []string
	for _, element := range v.List() {
		one := ""
		if !element.IsList() && !element.IsObject() && !element.IsNull() {
			one = shown(element)
		}
		texts = append(texts, one)
	}
	return texts
}

// listsIn returns the lists of an object by their keys, without those that are
// null. A string is a list with commas.
func listsIn(v object.Value) map[string][]string {
	lists := map[string][]string{}
	for _, f := range v.Object() {
		switch {
		case f.Value.IsNull():
		case f.Value.IsList():
			lists[f.Key] = textsIn(f.Value)
		default:
			words, _ := splitWords(shown(f.Value)) // nil says that it is no list
			lists[f.Key] = words
		}
	}
	return lists
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

// textsOf returns the options of a struct with their texts.
func textsOf(of any) []Fact {
	var facts []Fact
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("option")
		if name != "" {
			facts = append(facts, Fact{name, textOf(v.Field(i))})
		}
	}
	return facts
}

// factsOf is textsOf without the options whose value is empty, "auto" or "false".
func factsOf(of any) []Fact {
	return slices.DeleteFunc(textsOf(of), func(f Fact) bool {
		return f.Text == "" || f.Text == auto || f.Text == "false"
	})
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
