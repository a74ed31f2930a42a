package lab

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"infill/samplers"
)

// All is the sampler list that stands for every kernel that suits the target.
const All = "all"

// A Spec is one sampler of a comparison.
type Spec struct {
	// Label is the text the spec was written as; it names the sampler in
	// results and picks its random streams.
	Label   string
	Name    string // of the registry
	Options samplers.Options
	// Steps of each chain; 0 for the comparison's own number.
	Steps int
}

// fixed tells whether the spec sets anything a warm-up would tune.
func (s *Spec) fixed() bool {
	return s.Options.StepSize != 0 || s.Options.Radius != 0 || s.Options.Schedule != nil
}

// settings are the words of a spec.
func settings() []string {
	return []string{"step-size", "balance", "radius", "block", "smoothing", "leapfrog", "terms", "steps"}
}

// ParseSpecs reads samplers written as name[:step size][:setting=value...],
// separated by commas, as in "gibbs,dmala:0.4,gwg-x:radius=4,dmala:0.8:balance=ratio".
// "all" is one spec of that name, which [Compare] unfolds.
func ParseSpecs(text string) ([]Spec, error) {
	var specs []Spec
	for _, label := range strings.Split(text, ",") {
		s, err := parseSpec(strings.TrimSpace(label))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(specs, func(other Spec) bool { return other.Label == s.Label }) {
			return nil, refuse("samplers", "%q is given twice", s.Label)
		}
		specs = append(specs, s)
	}
	return specs, nil
}

func parseSpec(label string) (Spec, error) {
	words := strings.Split(label, ":")
	s := Spec{Label: label, Name: words[0]}
	if s.Name == All && len(words) == 1 {
		return s, nil
	}
	if !slices.Contains(samplers.Names(), s.Name) {
		return s, refuse("samplers", "%q is not one of %s, %s", s.Name, All, strings.Join(samplers.Names(), ", "))
	}
	for _, word := range words[1:] {
		key, value, found := strings.Cut(word, "=")
		if !found {
			key, value = "step-size", word
		}
		if err := s.set(key, value); err != nil {
			return s, refuse("samplers", "%q: %w", label, err)
		}
	}
	return s, nil
}

func (s *Spec) set(key, value string) error {
	var err error
	switch key {
	case "step-size":
		s.Options.StepSize, err = positive(value)
	case "smoothing":
		s.Options.Smoothing, err = positive(value)
	case "radius":
		s.Options.Radius, err = counting(value)
	case "block":
		s.Options.Block, err = counting(value)
	case "leapfrog":
		s.Options.Leapfrog, err = counting(value)
	case "terms":
		s.Options.Terms, err = counting(value)
	case "steps":
		s.Steps, err = counting(value)
	case "balance":
		s.Options.Balance, err = samplers.ParseBalance(value)
	default:
		return fmt.Errorf("%q is no setting: write a step size, or one of %s as name=value", key, strings.Join(settings(), ", "))
	}
	if err != nil {
		return fmt.Errorf("%s %w", key, err)
	}
	return nil
}

func positive(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x > 0) || math.IsNaN(x) {
		return 0, fmt.Errorf("%q is not a number above 0", text)
	}
	return x, nil
}

func counting(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a whole number of 1 or more", text)
	}
	return n, nil
}
