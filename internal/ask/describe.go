package ask

import (
	"errors"
	"fmt"
	"strings"

	"infill/infill"
	"infill/tokenize"
)

// A Blame says what an error is about, and so who can mend it.
type Blame int

const (
	// BlameProgram: neither the text nor an option is wrong.
	BlameProgram Blame = iota
	// BlameText: the text is wrong, or does not fit the options. Others may do.
	BlameText
	// BlameOptions: an option is wrong for every text.
	BlameOptions
)

// Flags writes an option as the command line does, Keys as JSON and tables do.
func Flags(option string) string { return "--" + option }
func Keys(option string) string  { return option }

// Describe returns what is to blame for an error, and the error with the names of
// options as a door's users write them. All doors describe errors by it.
func Describe(err error, door func(option string) string) (Blame, error) {
	var option *infill.OptionError
	var constraint *infill.ConstraintError
	var input *tokenize.InputError
	switch {
	case errors.As(err, &option):
		place := strings.TrimSuffix(err.Error(), option.Error()) // such as "text 2: "
		line := fmt.Errorf("%s%s: %s", place, door(option.Option), option.Reason)
		if option.Misfit {
			return BlameText, line
		}
		return BlameOptions, line
	case errors.As(err, &constraint), errors.As(err, &input):
		return BlameText, err
	}
	return BlameProgram, err
}
