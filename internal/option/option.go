// Package option makes options of the tags of structs. The tags are the one place
// where an option is declared: flags, keys of JSON, columns of a file, schemas, fields
// of a screen, checks and the texts of signatures are made of them.
//
// The tags of a field are option (the name), help (a phrase), word (what stands for
// a value in usage texts; none for a switch), unit (the things that a number counts),
// join (what separates the values of an option that may be given several times),
// alias (another name) and short (the letter of a flag). If list is "true", help
// texts end with the valid values. default is the text of the value that a zero stands
// for. As in JSON Schema, minimum, maximum and exclusiveMinimum bound a number, enum
// lists the only valid texts, and examples are suggestions, each with commas. words
// gives values texts of their own, as in "half=0,0=-1,none=-1"; a value prints as its
// first text. Of fields with one name, the first has all tags but default, which
// belongs to its own.
//
// A field is a bool, an int, an int64, a uint64, a float64, a string, a time.Duration, a
// []string, an []int or a []float64, or its type reads and writes a text of its own, with
// a method Check (see [Syntax]), or has a [Type] beside it. The text of a list has commas,
// where a comma inside quotes parts nothing, or what the tag between names. If infinite is
// "true", a number may be +Inf.
package option

import (
	"cmp"
	"encoding"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Syntax is the type of an option that knows its wrong values. It may read
// and write texts as package encoding has it. Errors complete `"x" is not …`.
type Syntax interface {
	// Check returns what is wrong with a value that is not the zero value.
	Check() error
}

// suggesting is a Syntax with suggestions.
type suggesting interface{ Values() []string }

// A Type reads the values of a type that does not do so itself. Its errors complete the
// sentence `"x" is not …`.
type Type interface {
	Read(text string) (any, error)
	// Schema says which JSON the option takes. Without Values, the examples of the tag are
	// suggested.
	Schema() Schema
}

// Writer is a Type that writes values, instead of their own text.
type Writer interface{ Text(value any) string }

// Listed is a Type that also reads lists of JSON.
type Listed interface {
	List(values []string) (any, error)
}

// Numbered is a Type that also reads JSON objects with lists by their keys, where Split cuts
// the text of a list.
type Numbered interface {
	Lists(values map[string][]string) (any, error)
	Split(text string) ([]string, error)
}

// Joined is a Type of an option that may be given several times. Join returns a value
// together with a later one; ok is false if they exclude each other.
type Joined interface {
	Join(one, later any) (both any, ok bool)
}

// A Schema says which JSON an option takes.
type Schema struct {
	// Kind is string, integer, number, boolean, array or object (of arrays).
	Kind string
	// Values are suggestions or, if Closed, the only valid texts.
	Values []string
	Closed bool
	// Want completes the sentence `… is not …` for JSON of another kind. Types
	// that do not take every text leave it to UnmarshalText.
	Want string
}

// An Option is a setting that a user can give by a name.
type Option struct {
	Name, Help, Word, Join string
	Short, Alias           string   // "" if there is none
	Values                 []string // as of a Schema
	Closed                 bool
	// JSON is the value's Schema.Kind. A string with its text is taken, too.
	JSON string
	// Methods are the owners that have the option; nil for every request.
	Methods []string

	// Default is the text of the value that holds if the option is not given, by the
	// first field that has it; "" if there is none.
	Default string

	rule rule
}

// An Owner is a struct with options, and its method; "" for every request.
type Owner struct {
	Method string
	Zero   any
}

// A Set is the options of some structs.
type Set struct {
	list  []Option
	known sync.Map // of each struct that was asked for, by its reflect.Type, its bounds
}

// bound is a field of a struct with the rule of its option.
type bound struct {
	field
	rule     rule
	fallback reflect.Value // what a zero stands for; invalid if the field has no default
}

// bounds returns the fields of a struct that are options. The tags are read once.
func (s *Set) bounds(of reflect.Type) []bound {
	known, ok := s.known.Load(of)
	if ok {
		return known.([]bound)
	}
	var list []bound
	for _, f := range fields(of) {
		o, ok := s.Find(f.name)
		if !ok {
			panic(f.name + " is no option of the set") // only a bug in the program leads here
		}
		b := bound{field: f, rule: o.rule}
		text := f.Tag.Get("default")
		if text != "" {
			b.fallback = o.rule.must(text)
		}
		list = append(list, b)
	}
	s.known.Store(of, list)
	return list
}

// Of reads the tags of structs. It panics for wrong ones, which are bugs.
func Of(owners ...Owner) *Set { return OfTypes(nil, owners...) }

// OfTypes does what Of does, for structs some of whose fields are of types with a Type.
func OfTypes(types map[reflect.Type]Type, owners ...Owner) *Set {
	s := &Set{}
	for _, owner := range owners {
		for _, field := range fields(reflect.TypeOf(owner.Zero)) {
			at := slices.IndexFunc(s.list, func(o Option) bool { return o.Name == field.name })
			if at < 0 {
				at = len(s.list)
				s.list = append(s.list, newOption(field, types[field.Type]))
			}
			if owner.Method != "" {
				s.list[at].Methods = append(s.list[at].Methods, owner.Method)
			}
		}
	}
	return s
}

type field struct {
	reflect.StructField
	name string
}

var read sync.Map // fields of each struct, by its reflect.Type

func fields(of reflect.Type) (list []field) {
	known, ok := read.Load(of)
	if ok {
		return known.([]field)
	}
	if of.Kind() != reflect.Struct { // such as the sampler of another module
		return nil
	}
	for i := range of.NumField() {
		name := of.Field(i).Tag.Get("option")
		if name != "" {
			list = append(list, field{of.Field(i), name})
		}
	}
	read.Store(of, list)
	return list
}

func newOption(f field, own Type) Option {
	tag := f.Tag
	r := ruleOf(f)
	r.own = own
	s := r.schema()
	o := Option{Name: f.name, Alias: tag.Get("alias"), Short: tag.Get("short"), Help: tag.Get("help"),
		Word: tag.Get("word"), Join: tag.Get("join"),
		Values: s.Values, Closed: s.Closed, JSON: s.Kind, rule: r}
	if tag.Get("default") != "" {
		o.Default = r.text(r.must(tag.Get("default")))
	}
	if tag.Get("list") == "true" {
		o.Help += "; one of " + strings.Join(s.Values, ", ")
	}
	return o
}

// Choice returns an option without a name whose value is one of valid.
func Choice(valid []string) Option {
	return Option{Values: valid, Closed: true, JSON: "string", rule: rule{of: reflect.TypeFor[string](), enum: valid}}
}

func (s *Set) Options() []Option { return slices.Clone(s.list) }

// Find returns the option with a name. It accepts the spellings of JSON too: _ for -.
func (s *Set) Find(name string) (o Option, ok bool) {
	name = strings.ReplaceAll(name, "_", "-")
	called := func(o Option) bool { return o.Name == name || o.Alias != "" && o.Alias == name }
	at := slices.IndexFunc(s.list, called)
	if at < 0 {
		return Option{}, false
	}
	return s.list[at], true
}

func (o Option) In(method string) bool { return o.Methods == nil || slices.Contains(o.Methods, method) }

// A rule says which values a field may have, and how they are written.
type rule struct {
	of       reflect.Type
	own      Type // of the field's type, or nil
	enum     []string
	examples []string
	words    []word
	low      float64
	above    bool // whether low itself is too low
	high     float64
	bounded  [2]bool // whether the tags have low and high
	infinite bool
	between  string // what stands between the values of a list; "" is a comma
}

// word is a value with a text of its own.
type word struct{ text, value string }

// ruleOf reads the tags of a field. A wrong tag is a mistake in the program.
func ruleOf(f field) rule {
	tag := f.Tag
	r := rule{of: f.Type, low: math.Inf(-1), high: math.Inf(1), enum: list(tag.Get("enum")),
		examples: list(tag.Get("examples")), infinite: tag.Get("infinite") == "true", between: tag.Get("between")}
	for _, pair := range list(tag.Get("words")) {
		text, value, ok := strings.Cut(pair, "=")
		if !ok {
			panic(f.name + ": words: " + pair)
		}
		r.words = append(r.words, word{text, value})
	}
	bound := func(name string, to *float64, have *bool) bool {
		text := tag.Get(name)
		if text == "" {
			return false
		}
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			panic(f.name + ": " + name + ": " + text)
		}
		*to, *have = x, true
		return true
	}
	bound("minimum", &r.low, &r.bounded[0])
	r.above = bound("exclusiveMinimum", &r.low, &r.bounded[0])
	bound("maximum", &r.high, &r.bounded[1])
	return r
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// syntax returns the zero value of a type with a syntax of its own.
func (r rule) syntax() (s Syntax, ok bool) {
	s, ok = reflect.Zero(r.of).Interface().(Syntax)
	return s, ok
}

// schema tells which values are allowed. Examples leave it open.
func (r rule) schema() Schema {
	values := r.examples
	if r.enum != nil {
		values = r.enum
	}
	s, own := r.syntax()
	list, suggests := s.(suggesting)
	switch {
	case r.own != nil:
		s := r.own.Schema()
		if s.Values == nil {
			s.Values = values
		}
		return s
	case suggests:
		return Schema{Kind: "string", Values: list.Values()}
	case own:
		return Schema{Kind: "string", Values: values}
	}
	switch r.of.Kind() {
	case reflect.Bool:
		return Schema{Kind: "boolean", Values: []string{"false", "true"}, Closed: true}
	case reflect.Float64:
		return Schema{Kind: "number", Values: values}
	case reflect.Slice:
		return Schema{Kind: "array"}
	case reflect.String:
		want := "a text"
		if r.enum != nil {
			want = ""
		}
		return Schema{Kind: "string", Values: values, Closed: r.enum != nil, Want: want}
	}
	return Schema{Kind: "integer", Values: values}
}

// read reads the text of a value. Its error completes the sentence `"x" is not …`.
func (r rule) read(text string) (reflect.Value, error) {
	v := reflect.New(r.of).Elem()
	if r.own != nil {
		value, err := r.own.Read(text)
		if err == nil {
			v.Set(reflect.ValueOf(value))
		}
		return v, err
	}
	reader, own := v.Addr().Interface().(encoding.TextUnmarshaler)
	if own {
		err := reader.UnmarshalText([]byte(text))
		return v, err
	}
	if r.word(v, text) {
		return v, nil
	}
	err := r.parse(v, text)
	if err != nil || !r.within(v) {
		return v, r.wanted()
	}
	r.word(v, fmt.Sprint(v.Interface())) // 0.0 is the word 0, too
	return v, nil
}

// word sets v to the value of a word, and reports whether there is such a word.
func (r rule) word(v reflect.Value, text string) bool {
	at := slices.IndexFunc(r.words, func(w word) bool { return w.text == text })
	if at < 0 {
		return false
	}
	err := r.parse(v, r.words[at].value)
	if err != nil {
		panic(err) // only a wrong tag leads here
	}
	return true
}

func (r rule) must(text string) reflect.Value {
	v, err := r.read(text)
	if err != nil {
		panic(fmt.Sprintf("%q is not %v", text, err)) // only a wrong tag leads here
	}
	return v
}

// parse sets v to the value of a text, without looking at bounds and words. A whole number
// may be written as 3.0, as pandas writes 3 beside gaps.
func (r rule) parse(v reflect.Value, text string) error {
	switch r.of.Kind() {
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		v.SetBool(b)
		return err
	case reflect.Int, reflect.Int64:
		if r.of == duration {
			length, err := time.ParseDuration(text)
			v.SetInt(int64(length))
			return err
		}
		n, err := strconv.ParseInt(strings.TrimSuffix(text, ".0"), 10, 64)
		v.SetInt(n)
		return err
	case reflect.Slice:
		return r.parseList(v, text)
	case reflect.Uint64:
		n, err := strconv.ParseUint(strings.TrimSuffix(text, ".0"), 10, 64)
		v.SetUint(n)
		return err
	case reflect.Float64:
		x, err := strconv.ParseFloat(text, 64)
		v.SetFloat(x)
		return err
	case reflect.String:
		v.SetString(text)
		return nil
	}
	panic(r.of.String() + " is no type of an option") // only a bug in the program leads here
}

var duration = reflect.TypeFor[time.Duration]()

func (r rule) parseList(v reflect.Value, text string) error {
	v.SetLen(0)
	if text == "" {
		return nil
	}
	words := strings.Split(text, r.between)
	if r.between == "" {
		var err error
		words, err = Split(text)
		if err != nil {
			return err
		}
	}
	for _, word := range words {
		element := reflect.New(r.of.Elem()).Elem()
		err := rule{of: r.of.Elem()}.parse(element, strings.TrimSpace(word))
		if err != nil {
			return err
		}
		v.Set(reflect.Append(v, element))
	}
	return nil
}

// Split cuts a text at its commas. A comma inside quotes does not cut. Text
// after a line with quotes is an error, or its words would be lost.
func Split(text string) ([]string, error) {
	if !strings.Contains(text, `"`) {
		return strings.Split(text, ","), nil
	}
	reader := csv.NewReader(strings.NewReader(text))
	reader.LazyQuotes = true
	reader.TrimLeadingSpace = true
	words, err := reader.Read()
	rest := text[reader.InputOffset():]
	if strings.TrimSpace(rest) != "" {
		return nil, errors.New("more than a line")
	}
	return words, err
}

// Join writes words in the form that Split reads.
func Join(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = word
		if strings.ContainsAny(word, "\",=\r\n") || strings.HasPrefix(word, "@") {
			quoted[i] = `"` + strings.ReplaceAll(word, `"`, `""`) + `"`
		}
	}
	return strings.Join(quoted, ",")
}

// within reports whether a value, or each of a list, is in its bounds.
func (r rule) within(v reflect.Value) bool {
	x := 0.0
	switch r.of.Kind() {
	case reflect.Int, reflect.Int64:
		x = float64(v.Int())
	case reflect.Float64:
		x = v.Float()
		if math.IsInf(x, 0) && !(r.infinite && x > 0) {
			return false
		}
	case reflect.String:
		return r.enum == nil || slices.Contains(r.enum, v.String())
	case reflect.Slice:
		r.of = r.of.Elem()
		for i := range v.Len() {
			if !r.within(v.Index(i)) {
				return false
			}
		}
		return true
	default:
		return true
	}
	return x >= r.low && x <= r.high && !(r.above && x == r.low)
}

// wanted returns what is not wanted otherwise.
func (r rule) wanted() error {
	number := "a number"
	switch r.of.Kind() {
	case reflect.Bool:
		return errors.New("one of false, true")
	case reflect.String:
		return errors.New("one of " + strings.Join(r.enum, ", "))
	case reflect.Uint64:
		return errors.New("a whole number of 0 or more, below 2^64")
	case reflect.Slice:
		if r.of.Elem().Kind() == reflect.Int {
			return errors.New("a list of whole numbers, such as 2,3")
		}
		if r.of.Elem().Kind() == reflect.Float64 {
			one := rule{of: r.of.Elem(), low: r.low, above: r.above, high: r.high, bounded: r.bounded}
			return fmt.Errorf("finite numbers with %s between them, each %w", cmp.Or(r.between, ","), one.wanted())
		}
		return errors.New("a list of texts, such as red,dark blue")
	case reflect.Int, reflect.Int64:
		number = "a whole number"
	}
	if r.of == duration {
		return errors.New("a length of time, such as 90s or 5m")
	}
	digits := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	switch {
	case r.above && r.bounded[1]:
		number += " above " + digits(r.low) + " and at most " + digits(r.high)
	case r.above:
		number += " above " + digits(r.low)
	case r.bounded[0] && r.bounded[1]:
		number += " from " + digits(r.low) + " to " + digits(r.high)
	case r.bounded[0]:
		number += " of " + digits(r.low) + " or more"
	}
	for _, w := range r.words {
		_, err := strconv.Atoi(w.text)
		if err != nil {
			number += ", or " + w.text
		}
	}
	return errors.New(number)
}

func (r rule) text(v reflect.Value) string {
	if v.Kind() == reflect.Interface && v.IsNil() {
		return ""
	}
	writer, writes := r.own.(Writer)
	if writes {
		return writer.Text(v.Interface())
	}
	own, ok := v.Interface().(encoding.TextMarshaler)
	if ok {
		text, _ := own.MarshalText() // no MarshalText of an option fails
		return string(text)
	}
	if v.Kind() == reflect.Slice {
		var words []string
		for i := range v.Len() {
			words = append(words, fmt.Sprint(v.Index(i).Interface()))
		}
		if r.between != "" {
			return strings.Join(words, r.between)
		}
		return Join(words)
	}
	text := fmt.Sprint(v.Interface())
	at := slices.IndexFunc(r.words, func(w word) bool { return w.value == text })
	if at >= 0 {
		return r.words[at].text
	}
	return text
}

// check returns what is wrong with a value; a zero value is the default.
func (r rule) check(v reflect.Value) error {
	if v.IsZero() {
		return nil
	}
	_, syntax := r.syntax()
	text := ""
	if r.words != nil {
		text = r.text(v)
	}
	switch {
	case slices.ContainsFunc(r.words, func(w word) bool { return w.text == text }):
		return nil
	case syntax:
		return v.Interface().(Syntax).Check()
	case !r.within(v):
		return r.wanted()
	}
	return nil
}

// Settle replaces the zero fields of *to, one of the structs, by defaults.
func (s *Set) Settle(to any) {
	v := reflect.ValueOf(to).Elem()
	for _, b := range s.bounds(v.Type()) {
		own := v.FieldByIndex(b.Index)
		if b.fallback.IsValid() && own.IsZero() {
			own.Set(b.fallback)
		}
	}
}

// Check returns the error of the first option of a struct with a value that it may
// not have. The zero value of a field is its default. Its error is an *Error.
func (s *Set) Check(of any) error {
	v := reflect.Indirect(reflect.ValueOf(of))
	for _, b := range s.bounds(v.Type()) {
		own := v.FieldByIndex(b.Index)
		err := b.rule.check(own)
		if err != nil {
			return &Error{b.name, fmt.Sprintf("%q is not %v", b.rule.text(own), err)}
		}
	}
	return nil
}

// A Fact is an option with the text of its value, as a signature has it.
type Fact struct{ Name, Text string }

// Said returns the options of a struct that say something, with their texts: not those
// that are empty, off, or left to the program (auto).
func (s *Set) Said(of any) []Fact {
	return s.facts(of, func(r rule, own reflect.Value, text string) bool {
		_, syntax := r.syntax()
		off := own.Kind() == reflect.Bool && own.IsZero()
		automatic := text == "auto" && (r.enum != nil || r.words != nil || syntax && own.IsZero())
		return text != "" && !off && !automatic
	})
}

func (s *Set) NonZero(of any) []Fact {
	return s.facts(of, func(_ rule, own reflect.Value, _ string) bool { return !own.IsZero() })
}

// Fill sets the zero fields of *to, one of the structs, to those of from.
func (s *Set) Fill(to, from any) {
	v := reflect.ValueOf(to).Elem()
	other := reflect.Indirect(reflect.ValueOf(from))
	for _, b := range s.bounds(v.Type()) {
		own := v.FieldByIndex(b.Index)
		if own.IsZero() {
			own.Set(other.FieldByIndex(b.Index))
		}
	}
}

func (s *Set) Facts(of any) []Fact {
	return s.facts(of, func(rule, reflect.Value, string) bool { return true })
}

// facts returns the options of a struct that are wanted, with their texts.
func (s *Set) facts(of any, wanted func(r rule, own reflect.Value, text string) bool) (list []Fact) {
	v := reflect.Indirect(reflect.ValueOf(of))
	for _, b := range s.bounds(v.Type()) {
		own := v.FieldByIndex(b.Index)
		text := b.rule.text(own)
		if wanted(b.rule, own, text) {
			list = append(list, Fact{b.name, text})
		}
	}
	return list
}
