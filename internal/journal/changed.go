package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ChangedError refuses to go on with a run of another configuration.
type ChangedError struct {
	Dir         string
	Differences []string
}

// Error names the first differences.
func (e *ChangedError) Error() string {
	shown := strings.Join(e.Differences[:min(3, len(e.Differences))], "; ")
	if more := len(e.Differences) - 3; more > 0 {
		shown += fmt.Sprintf("; and %d more", more)
	}
	return fmt.Sprintf("%s holds a run of another configuration (%s): give the old one, or another output", e.Dir,
		shown)
}

// Changed is a *ChangedError where there are differences.
func Changed(dir string, differences []string) error {
	if len(differences) == 0 {
		return nil
	}
	return &ChangedError{dir, differences}
}

// Differences names what two runs disagree in.
func Differences(there, now map[string]string) (list []string) {
	both := maps.Clone(now)
	if both == nil {
		both = map[string]string{}
	}
	maps.Copy(both, there)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		if there[name] != now[name] {
			list = append(list, fmt.Sprintf("%s: %s there, %s now", name, short(there[name]), short(now[name])))
		}
	}
	return list
}

func short(value string) string { return cmp.Or(fmt.Sprintf("%.60s", value), "nothing") }

// Flat is what a value is as JSON, by path.
func Flat(v any) (map[string]string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var tree any
	numbers := json.NewDecoder(bytes.NewReader(text))
	numbers.UseNumber() // a seed has more digits than a float64
	if err := numbers.Decode(&tree); err != nil {
		return nil, err
	}
	flat := map[string]string{}
	var walk func(name string, tree any)
	walk = func(name string, tree any) {
		switch v := tree.(type) {
		case map[string]any:
			for key, value := range v {
				walk(strings.TrimPrefix(name+"."+key, "."), value)
			}
		case []any:
			for i, value := range v {
				walk(fmt.Sprintf("%s[%d]", name, i), value)
			}
		case string:
			flat[name] = fmt.Sprintf("%q", v)
		default:
			flat[name] = fmt.Sprint(v)
		}
	}
	walk("", tree)
	return flat, nil
}
