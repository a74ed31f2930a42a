// Package ask is the language in which people and programs ask the engine, package infill:
// the options by their names, as flags, keys of JSON and columns have them, the texts of
// their values, requests and records made of them, and what is said of results and errors.
package ask

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"infill/infill"
	"infill/internal/option"
	"infill/samplers"
)

// Options are declared by the tags of the fields of requests and methods.
type (
	Option = option.Option
	Given  = option.Given
	Fact   = option.Fact
)

// types are the types of options whose values have lists, or settings of their own.
var types = map[reflect.Type]option.Type{
	reflect.TypeFor[infill.Words]():     wordsType{},
	reflect.TypeFor[infill.Lists]():     listsType[infill.Lists]{"object", plainWords},
	reflect.TypeFor[infill.Parts]():     listsType[infill.Parts]{"string", func(string) error { return nil }},
	reflect.TypeFor[infill.Order]():     orderType{},
	reflect.TypeFor[samplers.Sampler](): samplerType{},
}

var options = func() *option.Set {
	owners := []option.Owner{{Zero: infill.Fit{}}, {Zero: infill.Request{}}}
	for _, m := range methods {
		owners = append(owners, option.Owner{Method: m.zero.Name(), Zero: m.zero})
	}
	return option.OfTypes(types, owners...)
}()

// These are the options of an infill.ScoreRequest and of an infill.GapsRequest.
var (
	ScoreOptions = option.OfTypes(types, option.Owner{Zero: infill.ScoreRequest{}})
	GapsOptions  = option.OfTypes(types, option.Owner{Zero: infill.GapsRequest{}})
)

// Options lists the options of requests for fills, in the order of the command's help.
func Options() []Option { return options.Options() }

// Find returns an option by its name, an alias, or as JSON writes it, with _.
func Find(name string) (o Option, ok bool) { return options.Find(name) }

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

// Last returns the last value given for an option; ok is false if there is none.
func Last(given []Given, name string) (g Given, ok bool) { return option.Last(given, name) }

// Facts returns the options that a result depends on, as Options orders them.
func Facts(r infill.Request) []Fact {
	r = r.Settled()
	return slices.Concat(options.Said(r.Method), options.Said(r.Fit), options.Said(r))
}

// OptionError makes an error of package option an *infill.OptionError.
func OptionError(err error) error {
	var known *option.Error
	if errors.As(err, &known) {
		return &infill.OptionError{Option: known.Key, Reason: known.Reason}
	}
	return err
}

func wrong(option, format string, args ...any) error {
	return &infill.OptionError{Option: option, Reason: fmt.Sprintf(format, args...)}
}
