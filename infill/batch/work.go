package batch

import (
	"context"
	"fmt"

	"infill/internal/object"
)

// work is what is done with each record. It serves several goroutines at once.
type work interface {
	// settings are everything that a row depends on, apart from its record: options,
	// model, version. Runs whose settings differ are not mixed.
	settings() map[string]string
	// environment tells what computes, nil until that is known.
	environment() map[string]string
	// column is where a record's text stands, and what a line of plain text is.
	column() string
	// aligned reports whether each record has one row, so that plain text has an empty
	// line for a record without one.
	aligned() bool
	// Do returns the rows of a record. A *RejectError reports that the record is wrong;
	// any other error ends the run.
	Do(ctx context.Context, r Record) ([]Object, error)
	// lines are those of a row in a table, plain is its line in plain text.
	lines(row Object) ([]Object, error)
	plain(row Object) string
}

// beside are the columns of a user with other names, input_NAME, where a result has them.
func beside(columns Object, taken func(name string) bool) Object {
	var list Object
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
