package journal

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ChangedError says that a run cannot be resumed because its configuration has changed.
type ChangedError struct {
	Dir         string
	Differences []string
}

// Error names the first settings that differ.
func (e *ChangedError) Error() string {
	shown := strings.Join(e.Differences[:min(3, len(e.Differences))], "; ")
	more := len(e.Differences) - 3
	if more > 0 {
		shown += fmt.Sprintf("; and %d more", more)
	}
	return fmt.Sprintf("%s holds a run of another configuration (%s): give the old one, or another output", e.Dir,
		shown)
}

// CheckUnchanged returns a *ChangedError if the JSON of the configuration
// there, with which the run in dir began, differs from now.
func CheckUnchanged(dir string, there, now any) error {
	before := map[string]string{}
	after := map[string]string{}
	for _, side := range []struct {
		of     any
		leaves map[string]string
	}{{there, before}, {now, after}} {
		text, err := json.Marshal(side.of)
		if err != nil {
			return err
		}
		addLeaves(side.leaves, "", text)
	}
	both := maps.Clone(before)
	maps.Copy(both, after)
	var list []string
	for _, path := range slices.Sorted(maps.Keys(both)) {
		was := before[path]
		is := after[path]
		switch {
		case was == is:
		case is == "":
			list = append(list, fmt.Sprintf("%s: %.60s there, not given now", path, was))
		case was == "":
			list = append(list, fmt.Sprintf("%s: not given there, %.60s now", path, is))
		default:
			list = append(list, fmt.Sprintf("%s: %.60s there, %.60s now", path, was, is))
		}
	}
	if list == nil {
		return nil
	}
	return &ChangedError{dir, list}
}

// addLeaves adds all numbers, texts and Boolean values in JSON to leaves, by their paths.
func addLeaves(leaves map[string]string, path string, value json.RawMessage) {
	var object map[string]json.RawMessage
	var list []json.RawMessage
	var text string
	switch {
	case value[0] == '{' && json.Unmarshal(value, &object) == nil:
		for key, value := range object {
			addLeaves(leaves, strings.TrimPrefix(path+"."+key, "."), value)
		}
	case value[0] == '[' && json.Unmarshal(value, &list) == nil:
		for i, value := range list {
			addLeaves(leaves, fmt.Sprintf("%s[%d]", path, i), value)
		}
	case json.Unmarshal(value, &text) == nil: // true for null as well
		leaves[path] = text
	default:
		leaves[path] = string(value)
	}
}
