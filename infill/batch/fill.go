package batch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"infill/infill"
	"infill/internal/object"
	"infill/tokenize"
)

// Fill fills a template of each record.
type Fill struct {
	Filler  *infill.Filler
	Options infill.Options
	// Key is the column with the template.
	Key string
	// Keep lists columns that stay what they are although an option has their name.
	Keep []string
	// Computing adds to the settings what the model's calls hang on beside the model,
	// such as the number of threads.
	Computing map[string]string
}

var _ Work = (*Fill)(nil)

// Column implements Work.
func (f *Fill) Column() string { return f.Key }

// Layout implements Work: a table has a line for each fill.
func (f *Fill) Layout() Layout {
	return Layout{Explode: "samples", Fields: fillKeys(), Apart: []string{"marginals", "stats"}, Text: "text", Aligned: true}
}

// fillKeys are the keys that a fill's object may have.
func fillKeys() (keys []string) {
	fill := reflect.TypeFor[infill.Fill]()
	for i := range fill.NumField() {
		key, _, _ := strings.Cut(fill.Field(i).Tag.Get("json"), ",")
		if key != "-" {
			keys = append(keys, key)
		}
	}
	return keys
}

// Settings implements Work.
func (f *Fill) Settings() map[string]string {
	s := settings(f.Filler, &f.Options)
	s["work"], s["column"], s["keep"] = "fill", f.Key, strings.Join(f.Keep, ",")
	maps.Copy(s, f.Computing)
	return s
}

// settings are the options that are not left to their defaults, and the model.
func settings(f *infill.Filler, o *infill.Options) map[string]string {
	s, defaults := map[string]string{}, infill.DefaultOptions()
	for _, option := range infill.Table() {
		if value := option.Get(o); value != option.Get(&defaults) || option.Name == "seed" {
			s[option.Name] = value
		}
	}
	m := f.Model()
	s["model"], s["tokenizer"], s["version"] = m.Name+"@"+m.SHA256, m.Tokenizer, infill.Version()
	return s
}

// Environment implements Work.
func (f *Fill) Environment() map[string]string { return environment(f.Filler) }

func environment(f *infill.Filler) map[string]string {
	m := f.Model()
	if m.Runtime == "" {
		return nil
	}
	return map[string]string{"onnxruntime": m.Runtime, "device": m.Device, "precision": string(m.Precision)}
}

// Do implements Work: one row, the result of the template behind the columns that are
// no options.
func (f *Fill) Do(ctx context.Context, r Record) ([]Object, error) {
	q, err := infill.ParseRequest(r.Object, f.Key, f.Options, append(f.Keep, "id")...)
	var option *infill.OptionError
	switch {
	case errors.As(err, &option):
		return nil, reject("%q: %s; --keep %[1]s passes the column on as it is", option.Option, option.Reason)
	case err != nil:
		return nil, reject("%w, or name the column", err)
	}
	plan, err := f.Filler.Plan(q)
	if err != nil {
		return nil, rejected(err)
	}
	result, err := plan.Fill(ctx, nil)
	if err != nil {
		return nil, rejected(err)
	}
	row, err := resultRow(result)
	if err != nil {
		return nil, err
	}
	for _, field := range q.Extra {
		if row.Get(field.Key) != nil {
			return nil, reject("the key %q is one of the result: rename it", field.Key)
		}
	}
	return []Object{append(Object(q.Extra), row...)}, nil
}

// textOf is the text of a record.
func textOf(r Record, key string) (string, error) {
	text, err := r.Object.Text(key)
	if err != nil {
		return "", reject("%w, or name the column", err)
	}
	return text, nil
}

// rejected marks the errors that lie in a record.
func rejected(err error) error {
	var input *tokenize.InputError
	var option *infill.OptionError
	if errors.As(err, &input) || errors.As(err, &option) {
		return &RejectError{err}
	}
	return err
}

// resultRow is a result without what hangs on the machine's mood, and without the
// model, which stands in the manifest once.
func resultRow(result *infill.Result) (Object, error) {
	type stats struct {
		infill.Stats
		Seconds *float64 `json:"seconds,omitempty"`
	}
	value, err := object.Encode(struct {
		*infill.Result
		Model *infill.Model `json:"model,omitempty"`
		Stats stats         `json:"stats"`
	}{Result: result, Stats: stats{Stats: result.Stats}})
	if err != nil {
		return nil, fmt.Errorf("write the result: %w", err)
	}
	row, err := object.Parse(bytes.TrimSpace(value))
	if err != nil {
		return nil, fmt.Errorf("write the result: %w", err)
	}
	return row, nil
}
