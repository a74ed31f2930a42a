package infill

import "fmt"

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

// Error returns one line: which constraints leave too little, and a remedy.
func (e *ConstraintError) Error() string { return e.Reason }

func constrained(format string, args ...any) error {
	return &ConstraintError{fmt.Sprintf(format, args...)}
}
