package batch

import (
	"encoding/json"

	"infill/internal/object"
)

// Object is a record's keys with their values.
type Object = object.Object

// text is a value as it stands in a cell or behind a flag: a string without its
// quotes, nothing for null, JSON for all others.
func text(value json.RawMessage) string {
	switch {
	case len(value) == 0 || string(value) == "null":
		return ""
	case value[0] == '"':
		var s string
		if err := json.Unmarshal(value, &s); err == nil {
			return s
		}
	}
	return string(value)
}
