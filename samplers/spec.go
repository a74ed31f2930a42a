package samplers

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
)

// A Spec names a sampler and some of its settings. It is written
// dmala:step-size=0.4,balance=ratio; Describe lists the settings.
type Spec struct {
	Name     string
	Settings []Assignment // in the order in which they were written
	OnText   bool         // whether other settings come from [Description.OnText]
}

// An Assignment gives a setting a value.
type Assignment struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
}

// Parse reads one sampler. It returns an error for unknown names, settings and values.
func Parse(text string) (Spec, error) {
	list, err := ParseList(text)
	if err != nil {
		return Spec{}, err
	}
	if len(list) != 1 {
		return Spec{}, fmt.Errorf("%q: %d samplers where one is wanted", text, len(list))
	}
	return list[0], list[0].Check()
}

// ParseList reads samplers with commas between them, as in
// gibbs,dmala:step-size=0.4,balance=ratio,gwg. A part with = and no colon is a
// setting of the sampler before. A setting may have no value. ParseList checks
// only the grammar, so that callers can add names and settings of their own:
// see Spec.Take and Spec.Check.
func ParseList(text string) ([]Spec, error) {
	var list []Spec
	colon := false // whether the last sampler has a colon
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			return nil, fmt.Errorf("%q: a sampler is missing between commas", text)
		}
		name, first, begins := strings.Cut(part, ":")
		if !begins && strings.Contains(part, "=") {
			if !colon {
				return nil, fmt.Errorf("%q belongs to no sampler: write NAME:%s", part, part)
			}
			first = part
		} else {
			list = append(list, Spec{Name: name})
			colon = begins
			if !begins {
				continue
			}
		}
		setting, value, assigned := strings.Cut(first, "=")
		if setting == "" || assigned && value == "" {
			return nil, fmt.Errorf("%q is no setting: write NAME:SETTING=VALUE", part)
		}
		s := &list[len(list)-1]
		if s.has(setting) {
			return nil, fmt.Errorf("%q: %s is given twice", s, setting)
		}
		s.Settings = append(s.Settings, Assignment{setting, value})
	}
	return list, nil
}

// String returns the text that [Parse] reads.
func (s Spec) String() string {
	var b strings.Builder
	b.WriteString(s.Name)
	for i, a := range s.Settings {
		separator := ","
		if i == 0 {
			separator = ":"
		}
		b.WriteString(separator + a.Setting)
		if a.Value != "" {
			b.WriteString("=" + a.Value)
		}
	}
	return b.String()
}

func (s Spec) has(setting string) bool {
	return slices.ContainsFunc(s.Settings, func(a Assignment) bool { return a.Setting == setting })
}

// With returns the spec with one setting added or changed. fmt.Sprint(value)
// must be the text of the value.
func (s Spec) With(setting string, value any) Spec {
	s.Settings = slices.Clone(s.Settings)
	s.Take(setting)
	s.Settings = append(s.Settings, Assignment{setting, fmt.Sprint(value)})
	return s
}

// Take removes a setting and returns its value. found is false if the spec does
// not have the setting.
func (s *Spec) Take(setting string) (value string, found bool) {
	for i, a := range s.Settings {
		if a.Setting == setting {
			s.Settings = slices.Concat(s.Settings[:i], s.Settings[i+1:])
			return a.Value, true
		}
	}
	return "", false
}

// Value returns the value of a setting: the given one, or the default. It
// returns "" for an unknown setting.
func (s Spec) Value(setting string) string {
	_, _, flags, err := s.settle()
	if err != nil || flags.Lookup(setting) == nil {
		return ""
	}
	return flags.Lookup(setting).Value.String()
}

// Check returns an error for an unknown name, setting or value. The error
// lists the known ones.
func (s Spec) Check() error {
	_, _, _, err := s.settle()
	return err
}

// settle returns the sampler's settings with the given values and the defaults filled in.
func (s Spec) settle() (entry, settings, *flag.FlagSet, error) {
	e := find(s.Name)
	if e.settings == nil {
		return e, nil, nil, fmt.Errorf("unknown sampler %q: valid are %s", s.Name, strings.Join(Names(), ", "))
	}
	own := e.settings()
	flags := flag.NewFlagSet(s.Name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	own.register(flags)
	all := s.Settings
	if s.OnText {
		if e.OnText == nil {
			return e, nil, nil, fmt.Errorf("%s is not for text: it needs slots of another kind", s.Name)
		}
		all = slices.Concat(e.OnText.Settings, all)
	}
	for _, a := range all {
		if flags.Lookup(a.Setting) == nil {
			return e, nil, nil, fmt.Errorf("%s has no %s: %s", s.Name, a.Setting, listed(flags))
		}
		if err := flags.Lookup(a.Setting).Value.Set(a.Value); err != nil {
			return e, nil, nil, fmt.Errorf("%s: %s %q is not %w", s.Name, a.Setting, a.Value, err)
		}
	}
	return e, own, flags, nil
}

// listed returns a phrase with the names of a sampler's settings.
func listed(flags *flag.FlagSet) string {
	var names []string
	flags.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	if names == nil {
		return "it has no settings"
	}
	return "its settings are " + strings.Join(names, ", ")
}

// New makes the sampler's kernel over a target. shared draws the subset of
// terms of a stochastic gradient, which all chains share. It must not be a
// chain's stream, and may be nil if no such subset is drawn. If the target
// lacks what the sampler needs, the error matches [ErrUnsupported].
func (s Spec) New(target Target, shared *rand.Rand) (Kernel, error) {
	e, own, _, err := s.settle()
	if err != nil {
		return nil, err
	}
	if err := checkTarget(target); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	m, err := own.mover(e.Name, target, shared)
	if err != nil {
		return nil, err
	}
	return &kernel{mover: m, spec: s, target: target}, nil
}

// New makes the kernel of a sampler over a target. sampler is a text that [Parse] reads.
func New(sampler string, target Target) (Kernel, error) {
	spec, err := Parse(sampler)
	if err != nil {
		return nil, err
	}
	return spec.New(target, nil)
}
