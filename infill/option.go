package infill

import (
	"errors"
	"fmt"

	"infill/internal/option"
)

// An Option is a field of Request, Fit, Search, Draws or Chains that a user can set by
// a name. The tags of these fields, which package internal/option reads, are the one
// place where options are declared.
type Option = option.Option

// A Given is an option with the value that a user gave.
type Given = option.Given

// A Fact is an option with the text of its value, as a signature has it.
type Fact = option.Fact

var options = readOptions()

func readOptions() *option.Set {
	owners := []option.Owner{{Zero: Fit{}}, {Zero: Request{}}}
	for _, m := range methods() {
		owners = append(owners, option.Owner{Method: m.Name(), Zero: m})
	}
	return option.Of(owners...)
}

// Options lists the options, in the order of the command's help.
func Options() []Option { return options.Options() }

// Find returns the option with a name. It accepts the spellings of JSON too: _
// for -, and "slots" for "slot".
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

// factsOf returns the options of a struct that say something, with their texts.
func factsOf(of any) []Fact { return options.Said(of) }

// checkValues returns an *OptionError for the first option of a struct whose value is
// wrong. A zero value says that the option is not given.
func checkValues(of any) error { return optionError(options.Check(of)) }

// optionError makes an error of package option an *OptionError.
func optionError(err error) error {
	var wrong *option.Error
	if errors.As(err, &wrong) {
		return &OptionError{Option: wrong.Key, Reason: wrong.Reason}
	}
	return err
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

// Error returns one line: which constraints leave too little, and what would loosen
// them.
func (e *ConstraintError) Error() string { return e.Reason }

func constrained(format string, args ...any) error {
	return &ConstraintError{fmt.Sprintf(format, args...)}
}
