package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
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
	// Keep lists columns that are not options, although an option has their name.
	Keep []string
	// Computing adds to the settings what the model's calls depend on, apart from the model,
	// such as the number of threads.
	Computing map[string]string
}

var _ work = (*Fill)(nil)

func (f *Fill) column() string { return f.Key }
func (f *Fill) aligned() bool  { return true }

func (f *Fill) settings() map[string]string {
	s := settings(f.Filler, &f.Options)
	s["work"], s["column"], s["keep"] = "fill", f.Key, strings.Join(f.Keep, ",")
	maps.Copy(s, f.Computing)
	return s
}

// keysOf are the keys of a struct as JSON.
func keysOf[T any]() (keys []string) {
	of := reflect.TypeFor[T]()
	for i := range of.NumField() {
		if key, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); key != "-" {
			keys = append(keys, key)
		}
	}
	return keys
}

var (
	resultKeys = keysOf[infill.Result]()
	fillKeys   = keysOf[infill.Fill]()
	// ofDraws are those of a fill's keys that draws and chains alone have.
	ofDraws = []string{"count", "share_error", "share_interval", "split_r_hat", "effective_draws", "final_count"}
	// leftOut are keys that a table leaves out: they tell of the row as a whole and would stand in each of its lines,
	// or say in another way what columns say.
	leftOut = []string{"format", "model", "signature", "fills", "alone", "stats", "values", "spans", "pieces"}
)

// blankColumn are the names of columns for the fills of blanks.
var blankColumn = regexp.MustCompile(`^blank_(\d+)$`)

// tabled reports whether a line of a table has a column of its own of that name.
func (f *Fill) tabled(name string) bool {
	return blankColumn.MatchString(name) || slices.Contains(fillKeys, name) && !slices.Contains(leftOut, name) &&
		!(f.Options.Chains == nil && f.Options.Samples == 0 && slices.Contains(ofDraws, name))
}

// lines are one for each fill: rank and text, a column for each blank, the rest of the fill and what holds for all
// fills, and then the columns of the user in their order.
func (f *Fill) lines(row object.Object) ([]object.Object, error) {
	var fills []object.Object
	if err := json.Unmarshal(row.Get("fills"), &fills); err != nil {
		return nil, err
	}
	var common, users object.Object
	for _, field := range row {
		switch {
		case !slices.Contains(resultKeys, field.Key):
			users = append(users, field)
		case !slices.Contains(leftOut, field.Key) && string(field.Value) != "[]":
			common = append(common, field)
		}
	}
	users = beside(users, f.tabled)
	for i, fill := range fills {
		var line, last object.Object
		for _, field := range fill {
			switch {
			case field.Key == "values":
				var words []json.RawMessage
				if err := json.Unmarshal(field.Value, &words); err != nil {
					return nil, err
				}
				for blank, word := range words {
					line = append(line, object.Field{Key: fmt.Sprintf("blank_%d", blank+1), Value: word})
				}
			case field.Key == "token_ids":
				last = object.Object{field}
			case !slices.Contains(leftOut, field.Key):
				line = append(line, field)
			}
		}
		line = append(append(line, last...), common...)
		result := line
		for _, field := range users {
			if result.Get(field.Key) != nil {
				return nil, reject("the key %q is one of the result, as the line asks for it: rename it", field.Key)
			}
			line = append(line, field)
		}
		fills[i] = line
	}
	return fills, nil
}

// plain is the likeliest fill.
func (f *Fill) plain(row object.Object) string {
	var fills []object.Object
	if err := json.Unmarshal(row.Get("fills"), &fills); err != nil || len(fills) == 0 {
		return ""
	}
	return oneLine(text(fills[0].Get("text")))
}

// oneLine keeps a text within a line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

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

func (f *Fill) environment(ctx context.Context) (map[string]string, error) {
	return environment(ctx, f.Filler)
}

func environment(ctx context.Context, f *infill.Filler) (map[string]string, error) {
	if err := f.Load(ctx); err != nil {
		return nil, err
	}
	m := f.Model()
	return map[string]string{"onnxruntime": m.Runtime, "device": m.Device}, nil
}

// Do returns one row: the columns that are not options, then the result.
func (f *Fill) Do(ctx context.Context, r Record) ([]object.Object, error) {
	keep := slices.Concat(f.Keep, []string{"id"})
	for _, field := range r.Object {
		if earlier(field) {
			keep = append(keep, field.Key)
		}
	}
	q, err := infill.ParseRequest(r.Object, f.Key, f.Options, keep...)
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
	kept := beside(q.Extra, func(name string) bool { return slices.Contains(resultKeys, name) })
	return []object.Object{append(kept, row...)}, nil
}

// earlier reports whether a column with the name of an option comes from the result of an earlier run: the rank of a
// fill.
func earlier(field object.Field) bool {
	_, err := strconv.Atoi(text(field.Value))
	return field.Key == "rank" && err == nil
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

// resultRow is a result without its times, and without the model and the signature: these stand in the
// manifest once.
func resultRow(result *infill.Result) (object.Object, error) {
	type stats struct {
		infill.Stats
		Seconds *float64 `json:"seconds,omitempty"`
	}
	value, err := object.Encode(struct {
		*infill.Result
		Model     *infill.Model `json:"model,omitempty"`
		Signature string        `json:"signature,omitempty"`
		Stats     stats         `json:"stats"`
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
