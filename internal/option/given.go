package option

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"infill/internal/rawjson"
)

// A Given is an option with the value that a user gave.
type Given struct {
	Option Option
	value  reflect.Value
}

func (g Given) Text() string { return g.Option.rule.text(g.value) }

func (g Given) Value() any { return g.value.Interface() }

// Given reads the text of a flag. An error completes the sentence `"x" is not …`.
func (o Option) Given(text string) (Given, error) {
	v, err := o.rule.read(text)
	return Given{o, v}, err
}

// Field returns the field of a struct that has the option.
func (o Option) Field(of reflect.Value) reflect.Value {
	for _, f := range fields(of.Type()) {
		if f.name == o.Name {
			return of.FieldByIndex(f.Index)
		}
	}
	panic("no field for " + o.Name) // only a bug in the program leads here
}

// Of returns the option with a value.
func (o Option) Of(value any) Given { return Given{o, reflect.ValueOf(value)} }

// With returns a value together with that of a later use of the same flag. ok is
// false if the two exclude each other.
func (g Given) With(later Given) (both Given, ok bool) {
	joined, joins := g.Option.rule.own.(Joined)
	if !joins {
		return later, true
	}
	value, ok := joined.Join(g.Value(), later.Value())
	return Given{g.Option, reflect.ValueOf(value)}, ok
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

// Assign sets the fields of *to, a struct, that are options to the values given.
func Assign(to any, given []Given) {
	v := reflect.ValueOf(to).Elem()
	for _, f := range fields(v.Type()) {
		g, ok := Last(given, f.name)
		if ok {
			v.FieldByIndex(f.Index).Set(g.value)
		}
	}
}

// With returns a struct whose fields that are options have the values given.
func With[T any](of T, given []Given) T { return Changed(of, func(to any) { Assign(to, given) }) }

// Changed returns a copy of a struct that change has changed.
func Changed[T any](of T, change func(to any)) T {
	own := reflect.New(reflect.TypeOf(of))
	own.Elem().Set(reflect.ValueOf(of))
	change(own.Interface())
	return own.Elem().Interface().(T)
}

// An Error says what is wrong with the value of a key.
type Error struct{ Key, Reason string }

var _ error = (*Error)(nil)

func (e *Error) Error() string { return e.Key + ": " + e.Reason }

// Read reads the fields of a JSON object that are options. A value is a string in the
// syntax of the flag, a number, true or false, a list of these, or an object for
// options with keys. null and "" say nothing, [] and {} are an empty list, and 3.0
// is 3 where a whole number is wanted. Keys for which keep is true, and unknown ones,
// are the rest. Its errors are *Errors.
func (s *Set) Read(fields []rawjson.Field, keep func(key string) bool) (given []Given, rest []rawjson.Field,
	err error) {
	keys := map[string]string{} // the key of each option
	for _, field := range fields {
		o, known := s.Find(field.Key)
		if !known || keep(field.Key) {
			rest = append(rest, field)
			continue
		}
		g, ok, err := o.Read(field)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		if keys[o.Name] != "" {
			return nil, nil, &Error{field.Key, fmt.Sprintf("it is the same as %s: give one of them", keys[o.Name])}
		}
		keys[o.Name] = field.Key
		given = append(given, g)
	}
	return given, rest, nil
}

// Read reads a field of JSON, see [Set.Read]. ok is false if the value says nothing.
func (o Option) Read(field rawjson.Field) (g Given, ok bool, err error) {
	v := field.Value
	if v.IsNull() || string(v) == `""` {
		return g, false, nil
	}
	err = rawjson.Whole(v)
	if err != nil {
		return g, false, &Error{field.Key, "the value " + err.Error()}
	}
	value, err := o.rule.json(v)
	if err != nil {
		return g, false, &Error{field.Key, fmt.Sprintf("%q is not %v", shown(v), err)}
	}
	return Given{o, value}, true, nil
}

// shown returns a value as text: a string without its quotes.
func shown(v rawjson.Value) string {
	text, err := v.Text()
	if err != nil {
		return string(v)
	}
	return text
}

func (r rule) json(v rawjson.Value) (reflect.Value, error) {
	lists, numbered := r.own.(Numbered)
	list, listed := r.own.(Listed)
	switch {
	case v.IsObject() && numbered:
		values, err := listsIn(v, lists)
		if err != nil {
			return reflect.Value{}, err
		}
		value, err := lists.Lists(values)
		return reflect.ValueOf(value), err
	case v.IsList() && listed:
		value, err := list.List(textsIn(v))
		return reflect.ValueOf(value), err
	case v.IsList() && r.of == reflect.TypeFor[[]string]():
		return reflect.ValueOf(textsIn(v)), nil
	case v.IsObject() || v.IsList():
		return reflect.Value{}, r.otherKind(v)
	}
	value, err := r.read(shown(v))
	n, whole := v.Whole()
	if err != nil && whole { // 3e0 is 3
		return r.read(strconv.Itoa(n))
	}
	return value, err
}

// otherKind returns the error of an option for JSON of a kind that it does not take.
func (r rule) otherKind(v rawjson.Value) error {
	want := r.schema().Want
	if want != "" {
		return errors.New(want)
	}
	_, err := r.read(string(v))
	return cmp.Or(err, r.wanted())
}

// textsIn returns a list's texts, and "", which no option takes, for all else.
func textsIn(v rawjson.Value) []string {
	texts := []string{}
	for _, element := range v.List() {
		one := ""
		if !element.IsList() && !element.IsObject() && !element.IsNull() {
			one = shown(element)
		}
		texts = append(texts, one)
	}
	return texts
}

// listsIn returns an object's lists but null ones; a string is a list's text.
func listsIn(v rawjson.Value, of Numbered) (lists map[string][]string, err error) {
	lists = map[string][]string{}
	for _, f := range v.Object() {
		switch {
		case f.Value.IsNull():
		case f.Value.IsList():
			lists[f.Key] = textsIn(f.Value)
		default:
			lists[f.Key], err = of.Split(shown(f.Value))
		}
		if err != nil {
			return nil, err
		}
	}
	return lists, nil
}
