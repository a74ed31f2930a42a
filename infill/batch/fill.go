package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"infill/infill"
	"infill/internal/object"
	"infill/tokenize"
)

// Fill fills a template of each record.
type Fill struct {
	Filler  *infill.Filler
	Options infill.Options
	Key     string // the column with the template
	// Keep lists columns that are not options, although an option has their name.
	Keep []string
}

var _ work = (*Fill)(nil)

func (f *Fill) column() string     { return f.Key }
func (f *Fill) columns() []string  { return []string{"rank", "text"} }
func (f *Fill) warnings() []string { return nil }

func (f *Fill) settings(ctx context.Context) (map[string]string, error) {
	s, err := settings(ctx, f.Filler, &f.Options)
	s["keep"] = strings.Join(f.Keep, ",")
	return s, err
}

// settings loads the model, and returns what computes and the options that are not left to their defaults.
func settings(ctx context.Context, f *infill.Filler, o *infill.Options) (map[string]string, error) {
	err := f.Load(ctx)
	s, defaults := map[string]string{}, infill.DefaultOptions()
	for _, option := range infill.Table() {
		if value := option.Get(o); value != option.Get(&defaults) || option.Name == "seed" {
			s[option.Name] = value
		}
	}
	m := f.Model()
	s["model"], s["tokenizer"] = fmt.Sprintf("%s@%.16s", m.Name, m.SHA256), fmt.Sprintf("%.16s", m.Tokenizer)
	s["version"], s["onnxruntime"], s["device"] = infill.Version(), m.Runtime, m.Device
	return s, err
}

// do returns the columns that are not options, and the result: an object, a line of a table for each fill, or the
// best fill.
func (f *Fill) do(ctx context.Context, r Record, form Form) ([]json.RawMessage, error) {
	// A table that a run made has a rank in each line, which is no option.
	q, err := infill.ParseRequest(r.Object, f.Key, f.Options, slices.Concat(f.Keep, []string{"id", "rank"})...)
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
	switch form {
	case formText:
		best := ""
		if len(result.Fills) > 0 {
			best = result.Fills[0].Text
		}
		return []json.RawMessage{object.Quote(OneLine(best))}, nil
	case formJSONL:
		row, err := rowOf(result)
		return []json.RawMessage{append(beside(q.Extra, inResult), row...).Append(nil)}, err
	}
	return tableOf(result, q.Extra)
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

// OneLine makes spaces of the ends of lines, and keeps the spaces of a text as they are.
func OneLine(text string) string { return lineBreaks.Replace(text) }

var lineBreaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ")

// objectOf is the object that JSON has for a struct.
func objectOf(v any) (object.Object, error) {
	text, err := object.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("write the result: %w", err)
	}
	return object.Parse(text)
}

// rowOf is a result without its times, and without the model and the signature: the run tells these once.
func rowOf(result *infill.Result) (object.Object, error) {
	type stats struct {
		infill.Stats
		Seconds *float64 `json:"seconds,omitempty"`
	}
	return objectOf(struct {
		*infill.Result
		Model     *infill.Model `json:"model,omitempty"`
		Signature string        `json:"signature,omitempty"`
		Stats     stats         `json:"stats"`
	}{Result: result, Stats: stats{Stats: result.Stats}})
}

// keysOf are the keys of a struct as JSON.
func keysOf[T any]() (keys []string) {
	of := reflect.TypeFor[T]()
	for i := range of.NumField() {
		if key, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); key != "" && key != "-" {
			keys = append(keys, key)
		}
	}
	return keys
}

var (
	resultKeys = keysOf[infill.Result]()
	fillKeys   = keysOf[infill.Fill]()
	// leftOut are keys that a table leaves out: they tell of the row as a whole and would stand in each of its lines,
	// or say in another way what columns say.
	leftOut = []string{"format", "model", "signature", "fills", "alone", "stats", "values", "spans", "pieces"}
	// blankColumn are the names of columns for the fills of blanks.
	blankColumn = regexp.MustCompile(`^blank_(\d+)$`)
)

// inResult and inTable report whether a result has a key, or a column, of that name.
func inResult(name string) bool { return slices.Contains(resultKeys, name) }
func inTable(name string) bool {
	return inResult(name) || slices.Contains(fillKeys, name) || blankColumn.MatchString(name)
}

// tableOf has a line for each fill: rank and text, a column for each blank, the rest of the fill and what holds for all
// fills, and then the columns of the user in their order.
func tableOf(result *infill.Result, extra object.Object) ([]json.RawMessage, error) {
	row, err := rowOf(result)
	if err != nil {
		return nil, err
	}
	var common object.Object
	for _, field := range row {
		if !slices.Contains(leftOut, field.Key) && string(field.Value) != "[]" {
			common = append(common, field)
		}
	}
	common = append(common, beside(extra, inTable)...)
	var lines []json.RawMessage
	for _, fill := range result.Fills {
		fields, err := objectOf(fill)
		if err != nil {
			return nil, err
		}
		var line object.Object
		for _, field := range fields {
			if field.Key == "values" {
				for blank, word := range fill.Values {
					line = append(line, object.Field{Key: fmt.Sprintf("blank_%d", blank+1), Value: object.Quote(word)})
				}
			} else if field.Key != "token_ids" && !slices.Contains(leftOut, field.Key) {
				line = append(line, field)
			}
		}
		line = append(line, object.Field{Key: "token_ids", Value: fields.Get("token_ids")})
		lines = append(lines, append(line, common...).Append(nil))
	}
	return lines, nil
}

// beside are the columns of a user with other names, input_NAME, where a result has them.
func beside(columns object.Object, taken func(name string) bool) object.Object {
	names := map[string]bool{}
	for _, f := range columns {
		names[f.Key] = true
	}
	var list object.Object
	for _, f := range columns {
		name := f.Key
		for taken(name) || name != f.Key && names[name] {
			name = "input_" + name
		}
		list = append(list, object.Field{Key: name, Value: f.Value})
	}
	return list
}
