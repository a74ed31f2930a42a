package batch

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Work is what is done with each record. It serves several goroutines at once.
type Work interface {
	// Settings name all that the rows hang on beside the record: options, model,
	// version. Runs whose settings differ are not mixed.
	Settings() map[string]string
	// Environment tells what computes, "" or nil until that is known.
	Environment() map[string]string
	// Column is where a record's text stands, and what a line of plain text is.
	Column() string
	// Layout tells how rows become the lines of a table or of plain text.
	Layout() Layout
	// Do returns the rows of a record. A *RejectError tells that the record is wrong;
	// any other error ends the run.
	Do(ctx context.Context, r Record) ([]Object, error)
}

// Layout tells how the rows of a work are written where a row is no JSON object.
type Layout struct {
	// Explode is the key of a list of objects, each of which becomes a line of CSV,
	// TSV or Parquet with the other keys before its own; "" is none.
	Explode string `json:"explode,omitempty"`
	// Fields are the keys that the list's objects may have. A column of the input with
	// such a name is called input_NAME in these lines.
	Fields []string `json:"fields,omitempty"`
	// Apart are keys that such a line leaves out: they tell of the row as a whole, and
	// would stand in each of its lines.
	Apart []string `json:"apart,omitempty"`
	// Text is the key of what plain text shows, in the first of the list's objects
	// where there is a list.
	Text string `json:"text"`
	// Aligned tells that a record has one row, so that plain text has an empty line
	// where one has none.
	Aligned bool `json:"aligned,omitempty"`
}

// flat are the lines of a row in a table.
func (l Layout) flat(row Object) ([]Object, error) {
	at := slices.IndexFunc(row, func(f Field) bool { return l.Explode != "" && f.Key == l.Explode })
	if at < 0 {
		return []Object{row}, nil
	}
	var list []Object
	if err := json.Unmarshal(row[at].Value, &list); err != nil {
		return nil, err
	}
	var base Object
	for _, f := range row {
		if f.Key == l.Explode || slices.Contains(l.Apart, f.Key) {
			continue
		}
		name := f.Key
		for slices.Contains(l.Fields, name) || name != f.Key && row.Get(name) != nil {
			name = "input_" + name
		}
		base = append(base, Field{name, f.Value})
	}
	for i, one := range list {
		list[i] = append(slices.Clip(base), one...)
	}
	return list, nil
}

// plain is the line of plain text of a row.
func (l Layout) plain(row Object) string {
	if list := row.Get(l.Explode); l.Explode != "" && list != nil {
		var objects []Object
		if err := json.Unmarshal(list, &objects); err != nil || len(objects) == 0 {
			return ""
		}
		row = objects[0]
	}
	return strings.Join(strings.Fields(text(row.Get(l.Text))), " ")
}

// RejectError says why a record is left out.
type RejectError struct{ Err error }

var _ error = (*RejectError)(nil)

func (e *RejectError) Error() string { return e.Err.Error() }
func (e *RejectError) Unwrap() error { return e.Err }

func reject(format string, args ...any) error { return &RejectError{fmt.Errorf(format, args...)} }
