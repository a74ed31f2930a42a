package batch

import (
	"context"
	"encoding/json"
	"fmt"

	"infill/internal/object"
)

// work is what is done with each record. It serves several goroutines at once.
type work interface {
	// settings are everything that a row depends on, apart from its record and from environment: options,
	// model, version. Runs whose settings differ are not mixed.
	settings() map[string]string
	// environment loads the model and tells what computes.
	environment(ctx context.Context) (map[string]string, error)
	// column is where a record's text stands, and what a line of plain text is.
	column() string
	// aligned reports whether each record has one row, so that plain text has an empty
	// line for a record without one.
	aligned() bool
	// Do returns the rows of a record. A *RejectError reports that the record is wrong;
	// any other error ends the run.
	Do(ctx context.Context, r Record) ([]object.Object, error)
	// lines are those of a row in a table, plain is its line in plain text.
	lines(row object.Object) ([]object.Object, error)
	plain(row object.Object) string
}

// rendered are the lines of the output that a row has in a form: objects, and strings in plain text.
func rendered(w work, row object.Object, form Form) (lines []json.RawMessage, err error) {
	switch form {
	case formText:
		return []json.RawMessage{object.Quote(w.plain(row))}, nil
	case formJSONL:
		return []json.RawMessage{row.Append(nil)}, nil
	}
	objects, err := w.lines(row)
	for _, o := range objects {
		lines = append(lines, o.Append(nil))
	}
	return lines, err
}

// beside are the columns of a user with other names, input_NAME, where a result has them.
func beside(columns object.Object, taken func(name string) bool) object.Object {
	var list object.Object
	for _, f := range columns {
		name := f.Key
		for taken(name) || name != f.Key && columns.Get(name) != nil {
			name = "input_" + name
		}
		list = append(list, object.Field{Key: name, Value: f.Value})
	}
	return list
}

// RejectError says why a record was rejected.
type RejectError struct{ Err error }

var _ error = (*RejectError)(nil)

func (e *RejectError) Error() string { return e.Err.Error() }
func (e *RejectError) Unwrap() error { return e.Err }

func reject(format string, args ...any) error { return &RejectError{fmt.Errorf(format, args...)} }

// text is a value as it stands in a cell or behind a flag: a string without its
// quotes, nothing for null, JSON for all others.
func text(value json.RawMessage) string {
	if len(value) > 0 && value[0] == '"' {
		var s string
		if json.Unmarshal(value, &s) == nil {
			return s
		}
	}
	if string(value) == "null" {
		return ""
	}
	return string(value)
}
