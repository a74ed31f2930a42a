package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"infill/samplers"
)

// all is the sampler list that stands for every sampler that suits the target.
const all = "all"

// A Spec is one sampler of a comparison.
type Spec struct {
	samplers.Spec
	// Label is what the spec was written as; it names the sampler in results and picks its random streams.
	Label string
	// Steps of each chain; 0 for the comparison's own number.
	Steps int
}

// named is a sampler that chooses everything itself.
func named(name string) Spec { return Spec{Label: name, Spec: samplers.Spec{Name: name}} }

func labelsOf(specs []Spec) string {
	var labels []string
	for _, s := range specs {
		labels = append(labels, s.Label)
	}
	return strings.Join(labels, ",")
}

// ParseSpecs reads samplers as [samplers.ParseList] does, with one more setting, steps:
// "gibbs,dmala:step-size=0.4,balance=ratio,gwg:steps=500". "all" is one spec of that name, which a comparison unfolds.
func ParseSpecs(text string) (specs []Spec, err error) {
	list, err := samplers.ParseList(text)
	if err != nil {
		return nil, refuse("samplers", "%w", err)
	}
	for _, sampler := range list {
		s := Spec{Spec: sampler, Label: sampler.String()}
		if slices.ContainsFunc(specs, func(earlier Spec) bool { return earlier.Label == s.Label }) {
			return nil, refuse("samplers", "%q is given twice", s.Label)
		}
		if err := s.check(); err != nil {
			return nil, refuse("samplers", "%w", err)
		}
		specs = append(specs, s)
	}
	return specs, nil
}

func (s *Spec) check() error {
	if steps, given := s.Take("steps"); given {
		n, err := strconv.Atoi(steps)
		if err != nil || n < 1 {
			return fmt.Errorf("%s: steps %q is not a whole number of 1 or more", s.Name, steps)
		}
		s.Steps = n
	}
	if s.Name == all && len(s.Settings) == 0 && s.Steps == 0 {
		return nil
	}
	if samplers.Describe(s.Name).Name == "" {
		return fmt.Errorf("%q is not one of %s, %s", s.Name, all, strings.Join(samplers.Names(), ", "))
	}
	return s.Check()
}
