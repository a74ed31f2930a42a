package infill

import (
	"errors"
	"reflect"

	"infill/internal/option"
	"infill/samplers"
)

// These are the options of requests by the tags of their fields: defaults, bounds, and
// texts in signatures. Package internal/ask reads the same tags for those who ask.
var (
	declared = option.OfTypes(map[reflect.Type]option.Type{reflect.TypeFor[samplers.Sampler](): samplerText{}},
		option.Owner{Zero: Fit{}}, option.Owner{Zero: Request{}}, option.Owner{Zero: Search{}},
		option.Owner{Zero: Draws{}}, option.Owner{Zero: Chains{}})
	declaredScore = option.Of(option.Owner{Zero: ScoreRequest{}})
	declaredGaps  = option.Of(option.Owner{Zero: GapsRequest{}})
)

// samplerText is the type of the sampler of chains in signatures, which have its text. The
// engine reads none, and Chains.check looks at the sampler.
type samplerText struct{}

var (
	_ option.Type   = samplerText{}
	_ option.Writer = samplerText{}
)

func (samplerText) Read(string) (any, error) { return nil, errors.ErrUnsupported }
func (samplerText) Schema() option.Schema    { return option.Schema{} }
func (samplerText) Text(value any) string    { return samplers.Text(value.(samplers.Sampler)) }

// checkValues returns an *OptionError for the first option of a struct whose value is
// wrong. A zero value says that the option is not given.
func checkValues(options *option.Set, of any) error {
	err := options.Check(of)
	var wrong *option.Error
	if errors.As(err, &wrong) {
		return &OptionError{Option: wrong.Key, Reason: wrong.Reason}
	}
	return err
}
