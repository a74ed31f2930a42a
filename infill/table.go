package infill

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"infill/samplers"
)

// Option is a row of the table that flags, the terminal UI's panel, the methods of
// an evaluation, signatures and validation are made of.
type Option struct {
	// Name is how flags, methods and errors spell it: "step-size".
	Name string
	// Help is a phrase that explains it.
	Help string
	// Kind stands for a value in usage texts, such as "N" or "{auto|ALPHA}"; "" is a switch, true or false.
	Kind string
	// Unit is what a number counts, "" if it counts nothing.
	Unit string
	// Values are suggestions; if Closed, no other value is valid.
	Values []string
	Closed bool
	// Join stands between the values of an option that may be given several times.
	Join string
	// Sampling reports whether it is an option of [Sampling].
	Sampling bool

	want string // what every value is: the end of the sentence `"x" is not …`
	get  func(o *Options) string
	set  func(o *Options, text string) bool
	// list sets several values that stand apart, as in a list of JSON, and lists those that belong
	// to keys; nil if the option has no such values.
	list  func(o *Options, values []string) bool
	lists func(o *Options, values map[string][]string) bool
	// explain says more than want does of a text that set does not take; nil: nothing.
	explain func(text string) error
	valid   func(o *Options) bool   // whether the value is what want says; nil: it always is
	check   func(o *Options) string // what else is wrong with the value, "" for nothing; nil: nothing
	// useless says why the option has no effect: the name of a sampler or mode is put before it.
	useless []useless
}

// useless is a reason to leave an option out.
type useless struct {
	when   func(o *Options) bool
	reason string
}

// Get writes the value.
func (t Option) Get(o *Options) string { return t.get(o) }

// Set reads a value. An error completes the sentence `"x" is not …`. Validate checks whether the value fits the
// others.
func (t Option) Set(o *Options, text string) error {
	changed := *o
	if !t.set(&changed, text) {
		if t.explain != nil {
			return t.explain(text)
		}
		return errors.New(t.want)
	}
	*o = changed
	return nil
}

// decode reads a value as JSON has it: a string as the flag takes it, a number, true or
// false, a list of these, or an object for values that belong to keys; null and "" leave
// the option. An error completes the sentence `… is not …`.
func (t Option) decode(o *Options, value json.RawMessage) error {
	text, scalar := scalarText(value)
	if scalar && text == "" {
		return nil
	}
	if scalar {
		return t.Set(o, text)
	}
	changed := *o
	var list []json.RawMessage
	var object map[string]json.RawMessage
	switch {
	case t.list != nil && json.Unmarshal(value, &list) == nil:
		if texts, ok := scalarTexts(list); ok && t.list(&changed, texts) {
			*o = changed
			return nil
		}
	case t.lists != nil && json.Unmarshal(value, &object) == nil:
		lists := map[string][]string{}
		for key, value := range object {
			var list []json.RawMessage
			if text, scalar := scalarText(value); scalar {
				lists[key] = strings.Split(text, ",")
			} else if json.Unmarshal(value, &list) == nil {
				lists[key], _ = scalarTexts(list) // nil is no list of words
			}
		}
		if t.lists(&changed, lists) {
			*o = changed
			return nil
		}
	}
	return errors.New(t.want)
}

// scalarText is a value of JSON that is neither a list nor an object as a flag has it,
// "" for null.
func scalarText(value json.RawMessage) (text string, ok bool) {
	switch {
	case len(value) == 0 || string(value) == "null":
		return "", true
	case value[0] == '"':
		return text, json.Unmarshal(value, &text) == nil
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

// Unfit says why the sampler or mode does not use the option; "" if it does.
func (t Option) Unfit(o *Options) string {
	for _, u := range t.useless {
		switch {
		case !u.when(o):
		case o.Mode != ModeSample:
			return string(o.Mode) + " " + u.reason
		default:
			return o.moves() + " " + u.reason
		}
	}
	return ""
}

// fault says what is wrong with an option, "" for nothing.
func (t Option) fault(o *Options) string {
	if t.check != nil {
		if reason := t.check(o); reason != "" {
			return reason
		}
	}
	defaults := DefaultOptions()
	switch value := t.get(o); {
	case value == t.get(&defaults):
		return ""
	case t.valid != nil && !t.valid(o):
		return fmt.Sprintf("%q is not %s", value, t.want)
	}
	return t.Unfit(o)
}

// The largest counts that are taken. They only keep a typing mistake from
// asking for more memory than there is.
const (
	maxChains     = 1 << 16
	maxTop        = 10000 // fills to prove
	maxSteps      = 1 << 24
	maxRungs      = 64
	maxPieces     = 16 // of a blank that can be written
	maxCharacters = 1 << 16
)

const auto = "auto"

// Find returns the row of an option, the zero value for an unknown name. JSON's spelling works too, with _ for
// -; "slots" is "slot".
func Find(name string) Option {
	if name = strings.ReplaceAll(name, "_", "-"); name == "slots" {
		name = "slot"
	}
	for _, option := range table() {
		if option.Name == name {
			return option
		}
	}
	return Option{}
}

// Table lists the options of a fill, in the order of the command's help.
func Table() []Option { return slices.Clone(table()) }

// rows are the table, written down once.
var rows struct {
	once sync.Once
	list []Option
}

func table() []Option {
	rows.once.Do(func() { rows.list = newTable() })
	return rows.list
}

func texts[T ~string](values []T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

// orAuto and orEmpty translate the empty value, which leaves a choice to the sampler.
func orAuto(text string) string {
	if text == "" {
		return auto
	}
	return text
}

func orEmpty(text string) string {
	if text == auto {
		return ""
	}
	return text
}

// choice is an enumeration; the empty value is one of it where t has the value auto.
func choice[T ~string](t Option, field func(*Options) *T, values ...T) Option {
	t.Closed, t.Values = true, append(t.Values, texts(values)...)
	// A long list would push the descriptions of all flags to the right.
	if t.Kind = "{" + strings.Join(t.Values, "|") + "}"; len(t.Kind) > 36 {
		t.Kind = "NAME"
	}
	t.want = "one of " + strings.Join(t.Values, ", ")
	t.get = func(o *Options) string { return string(*field(o)) }
	if t.Values[0] == auto {
		t.get = func(o *Options) string { return orAuto(string(*field(o))) }
	}
	t.set = func(o *Options, text string) bool {
		*field(o) = T(orEmpty(text))
		return slices.Contains(t.Values, text)
	}
	t.valid = func(o *Options) bool { return slices.Contains(values, *field(o)) }
	return t
}

// numeric is a number from low to high; word, where not "", stands for the value of.
func numeric[T int | uint64 | float64](t Option, field func(*Options) *T, word string, of, low, high T) Option {
	t.get = func(o *Options) string {
		if word != "" && *field(o) == of {
			return word
		}
		return fmt.Sprint(*field(o))
	}
	t.set = func(o *Options, text string) bool {
		if word != "" && text == word {
			*field(o) = of
			return true
		}
		var err error
		switch x := any(field(o)).(type) {
		case *int:
			*x, err = strconv.Atoi(text)
		case *uint64:
			*x, err = strconv.ParseUint(text, 10, 64)
		case *float64:
			*x, err = strconv.ParseFloat(text, 64)
		}
		return err == nil && within(*field(o), low, high)
	}
	t.valid = func(o *Options) bool { return within(*field(o), low, high) }
	return t
}

// within reports whether a number is within bounds; NaN is within none.
func within[T int | uint64 | float64](x, low, high T) bool { return x >= low && x <= high }

// words are the values of a list without the space around them; an empty word does not count.
func words(values []string) (list []string, ok bool) {
	for _, word := range values {
		list = append(list, strings.TrimSpace(word))
	}
	return list, list != nil && !slices.Contains(list, "")
}

// bounds is a range of whole numbers from 1 to largest, both ends in it; one that lacks an
// end has 0 there, and 0 and 0 are none.
func bounds(t Option, largest int, field func(*Options) (low, high *int)) Option {
	end := func(text string) (n int, ok bool) {
		if text == "" {
			return 0, true
		}
		n, err := strconv.Atoi(text)
		return n, err == nil && n >= 1 && n <= largest
	}
	t.Kind = "MIN-MAX"
	t.get = func(o *Options) string {
		if low, high := field(o); *low != 0 || *high != 0 {
			return span(*low, *high)
		}
		return ""
	}
	t.valid = func(o *Options) bool {
		low, high := field(o)
		return within(*low, 0, largest) && within(*high, 0, largest) && (*high == 0 || *high >= *low)
	}
	t.set = func(o *Options, text string) bool {
		first, last, ranged := strings.Cut(text, "-")
		if !ranged {
			last = first
		}
		low, high := field(o)
		var lowOK, highOK bool
		*low, lowOK = end(first)
		*high, highOK = end(last)
		return lowOK && highOK && (*high >= *low && *high > 0 || *high == 0 && *low > 0)
	}
	return t
}

// read takes a sampler as it is written. An error completes the sentence `"x" is not …`.
func (s *Sampling) read(text string) error {
	if text == Auto {
		s.Sampler, s.Settings = Auto, nil
		return nil
	}
	spec, err := samplers.ParseList(text)
	if err != nil || len(spec) != 1 {
		return errors.New("a sampler, as in dmala:step-size=0.4,balance=sqrt")
	}
	return s.Take(spec[0])
}

// Take sets the sampler and its settings. An error completes the sentence `"x" is not …`.
func (s *Sampling) Take(spec samplers.Spec) error {
	if !slices.Contains(Samplers(), spec.Name) {
		return errors.New("one of " + strings.Join(samplerNames(), ", "))
	}
	o := Options{Sampling: *s}
	o.Sampler, o.Settings = spec.Name, nil
	for _, a := range spec.Settings {
		option := Find(a.Setting)
		if !option.Sampling {
			o.Settings = append(o.Settings, a)
		} else if err := option.Set(&o, a.Value); err != nil {
			return fmt.Errorf("a sampler with its settings: %s: %q is not %w", a.Setting, a.Value, err)
		}
	}
	if err := o.own().Check(); err != nil {
		return fmt.Errorf("a sampler with its settings: %w", err)
	}
	*s = o.Sampling
	return nil
}

// Validate returns an *OptionError for the first value that cannot be used.
func (o *Options) Validate() error {
	for _, option := range table() {
		if reason := option.fault(o); reason != "" {
			return &OptionError{Option: option.Name, Reason: reason}
		}
	}
	return nil
}

// span writes a range; an end of 0 is left out.
func span(low, high int) string {
	switch {
	case high == 0:
		return strconv.Itoa(low) + "-"
	case low == 0:
		return "-" + strconv.Itoa(high)
	case low == high:
		return strconv.Itoa(low)
	}
	return strconv.Itoa(low) + "-" + strconv.Itoa(high)
}
