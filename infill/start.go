package infill

import (
	"errors"
	"slices"
	"strings"

	"infill/internal/option"
)

// Start says in which states chains start; the zero Start is "model".
type Start struct {
	Kind StartKind
	Fill []string // the text of each blank, if Kind is "fill"
}

// StartKind says where the starts come from. "model" draws from the model's
// conditionals with every slot masked, "random" draws uniformly, and "fill" is a
// given fill. "shared" is one draw from the model that all chains share, as in
// the DISCS benchmark. "mask" draws the slots one by one in a random order from
// the model, with later slots masked. This start is the nearest to a text of
// masks, which has no energy.
type StartKind string

// These are the values of StartKind.
const (
	StartModel  StartKind = "model"
	StartRandom StartKind = "random"
	StartShared StartKind = "shared"
	StartMask   StartKind = "mask"
	StartGiven  StartKind = "fill"
)

// MarshalText writes what UnmarshalText reads: Kind, or "fill:dark,blue".
func (s Start) MarshalText() ([]byte, error) {
	if s.Kind == StartGiven {
		return []byte(string(s.Kind) + ":" + option.Join(s.Fill)), nil
	}
	return []byte(s.Kind), nil
}

// UnmarshalText reads a kind, or a fill as "fill:dark,blue".
func (s *Start) UnmarshalText(text []byte) error {
	fill, given := strings.CutPrefix(string(text), string(StartGiven)+":")
	if given {
		words, err := option.Split(fill)
		if err != nil {
			return errors.New("a fill, as in fill:dark,blue")
		}
		*s = Start{StartGiven, words}
		return nil
	}
	read := Start{Kind: StartKind(text)}
	err := read.Check()
	if err == nil {
		*s = read
	}
	return err
}

// Check returns an error for an unknown kind, and for a fill without words.
func (s Start) Check() error {
	kinds := []StartKind{StartModel, StartRandom, StartShared, StartMask}
	if slices.Contains(kinds, s.Kind) || s.Kind == StartGiven && s.Fill != nil {
		return nil
	}
	return errors.New("fill:WORD,..., or one of model, random, shared, mask")
}
