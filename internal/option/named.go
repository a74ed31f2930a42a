package option

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Named is a name with settings: dmala:step-size=0.4,balance=ratio.
type Named struct {
	Name     string
	Settings []Setting // in the order in which they were written
}

// A Setting gives a setting a value, which may be "".
type Setting struct{ Name, Value string }

var ErrTwice = errors.New("it is given twice")

// ParseNamed reads names with commas between them, as in
// gibbs,dmala:step-size=0.4,balance=ratio,gwg. A part with = and no colon is a
// setting of the name before. ParseNamed checks only the grammar, so that each
// reader can take settings of its own: see Named.Take.
func ParseNamed(text string) ([]Named, error) {
	var list []Named
	colon := false // whether the last name has a colon
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
			list = append(list, Named{Name: name})
			colon = begins
			if !begins {
				continue
			}
		}
		setting, value, assigned := strings.Cut(first, "=")
		if setting == "" || assigned && value == "" {
			return nil, fmt.Errorf("%q is no setting: write NAME:SETTING=VALUE", part)
		}
		n := &list[len(list)-1]
		if n.Has(setting) {
			return nil, fmt.Errorf("%s: %w", setting, ErrTwice)
		}
		n.Settings = append(n.Settings, Setting{setting, value})
	}
	return list, nil
}

// ParseOne reads a single name with its settings, as ParseNamed does.
func ParseOne(text string) (Named, error) {
	list, err := ParseNamed(text)
	if err != nil {
		return Named{}, err
	}
	if len(list) != 1 {
		return Named{}, fmt.Errorf("%q: %d samplers where one is wanted", text, len(list))
	}
	return list[0], nil
}

// String returns the text that ParseOne reads.
func (n Named) String() string {
	text := n.Name
	separator := ":"
	for _, s := range n.Settings {
		text += separator + s.Name
		separator = ","
		if s.Value != "" {
			text += "=" + s.Value
		}
	}
	return text
}

func (n Named) Has(setting string) bool {
	return slices.ContainsFunc(n.Settings, func(s Setting) bool { return s.Name == setting })
}

// Take removes a setting and returns its value. found is false if there is none.
func (n *Named) Take(setting string) (value string, found bool) {
	for i, s := range n.Settings {
		if s.Name == setting {
			n.Settings = slices.Concat(n.Settings[:i], n.Settings[i+1:])
			return s.Value, true
		}
	}
	return "", false
}
