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

// CheckUnchanged returns a *ChangedError that names what differs in the JSON of two configurations of a folder: the
// one it was begun with, and the one of now.
func CheckUnchanged(dir string, there, now any) error {
	before, err := leaves(there)
	if err != nil {
		return err
	}
	after, err := leaves(now)
	if err != nil {
		return err
	}
	both := maps.Clone(before)
	maps.Copy(both, after)
	short := func(value string) string { return cmp.Or(fmt.Sprintf("%.60s", value), "nothing") }
	var list []string
	for _, path := range slices.Sorted(maps.Keys(both)) {
		if was, is := before[path], after[path]; was != is {
			list = append(list, fmt.Sprintf("%s: %s there, %s now", path, short(was), short(is)))
		}
	}
	if list == nil {
		return nil
	}
	return &ChangedError{dir, list}
}

// leaves are the numbers, texts and Boolean values within the JSON of a value, by their paths.
func leaves(v any) (map[string]string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // a seed has more digits than a float64
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	found := map[string]string{}
	var visit func(path string, tree any)
	visit = func(path string, tree any) {
		switch v := tree.(type) {
		case map[string]any:
			for key, value := range v {
				visit(strings.TrimPrefix(path+"."+key, "."), value)
			}
		case []any:
			for i, value := range v {
				visit(fmt.Sprintf("%s[%d]", path, i), value)
			}
		default:
			found[path] = fmt.Sprint(v)
		}
	}
	visit("", tree)
	return found, nil
}
