package infill

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"infill/tokenize"
)

// SetJSON reads an option as an object of JSON has it: key is its name, with - or _
// ("slots" is "slot"), and value a string as the flag takes it, a number, true or false, a
// list of these, or an object for KEY=VALUE pairs; null and "" leave the option. known is
// false where no option has the name. Errors are *OptionError.
func (o *Options) SetJSON(key string, value json.RawMessage) (known bool, err error) {
	name := strings.ReplaceAll(key, "_", "-")
	if name == "slots" {
		name = "slot"
	}
	option := Find(name)
	if option.Name == "" {
		return false, nil
	}
	text, err := jsonText(value, option.Join)
	if err == nil && text != "" {
		if err = option.Set(o, text); err != nil {
			err = fmt.Errorf("%.60q is not %w", text, err)
		}
	}
	if err != nil {
		return true, &OptionError{Option: key, Reason: err.Error()}
	}
	return true, nil
}

// jsonText writes a value as a flag has it.
func jsonText(value json.RawMessage, join string) (string, error) {
	if join == "" {
		join = ","
	}
	value = bytes.TrimSpace(value)
	switch {
	case len(value) == 0 || string(value) == "null":
		return "", nil
	case value[0] == '"':
		var text string
		return text, json.Unmarshal(value, &text)
	case value[0] == '[':
		var list []json.RawMessage
		if err := json.Unmarshal(value, &list); err != nil {
			return "", err
		}
		return joinJSON(list, nil, join)
	case value[0] == '{':
		var object map[string]json.RawMessage
		if err := json.Unmarshal(value, &object); err != nil {
			return "", err
		}
		var keys []string
		for key := range object {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		values := make([]json.RawMessage, len(keys))
		for i, key := range keys {
			values[i] = object[key]
		}
		return joinJSON(values, keys, join)
	}
	return string(value), nil
}

func joinJSON(values []json.RawMessage, keys []string, join string) (string, error) {
	parts := make([]string, len(values))
	for i, value := range values {
		if v := bytes.TrimSpace(value); keys == nil && len(v) > 0 && (v[0] == '[' || v[0] == '{') {
			return "", errors.New("a list within a list is none of its values")
		}
		text, err := jsonText(value, ",")
		if err != nil {
			return "", err
		}
		if keys != nil {
			text = keys[i] + "=" + text
		}
		parts[i] = text
	}
	return strings.Join(parts, join), nil
}

// MostRows bounds the model rows that a fill of so many slots asks for; 0 where seconds
// bound it.
func (o *Options) MostRows(slots int) int {
	if o.draws() { // each in one order, and its probability in both
		return max(o.Budget.Rows, int(min(3*float64(o.Chains)*float64(slots)*float64(1+len(o.Together)), math.MaxInt32)))
	}
	if o.answers() {
		return o.Budget.Rows
	}
	rows := float64(o.Chained().Chains) * float64(o.Steps+1) * float64(slots) * float64(max(1, len(o.Ladder))) * float64(1+len(o.Together))
	return int(min(rows, math.MaxInt32))
}

// Tokenizer is the model's.
func (f *Filler) Tokenizer() *tokenize.Tokenizer { return f.tokenizer }

// Calls tells how often the model was called, and how many rows went through it in
// these calls; both 0 for a model that does not count.
func (f *Filler) Calls() (calls, rows int64) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if m, ok := f.loaded.(interface{ Calls() (calls, rows int64) }); ok {
		return m.Calls()
	}
	return 0, 0
}
