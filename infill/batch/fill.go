package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"infill/infill"
	"infill/internal/object"
)

// Fill is the work that fills the template of each record.
type Fill struct {
	Filler *infill.Filler
	// Given are the options of every record, unless it gives others itself.
	Given []infill.Given
	Key   string // the column with the template
	// Keep lists columns that have the name of an option but are not read as the option.
	Keep []string
}

var _ work = (*Fill)(nil)

func (f *Fill) column() string     { return f.Key }
func (f *Fill) columns() []string  { return []string{"rank", "text"} }
func (f *Fill) warnings() []string { return nil }

func (f *Fill) settings(ctx context.Context) (map[string]string, error) {
	r, err := infill.NewRequest("", f.Given)
	if err != nil {
		return nil, err
	}
	s, err := settings(ctx, f.Filler, r)
	s["keep"] = strings.Join(f.Keep, ",")
	return s, err
}

// settings loads the model. It returns its description, the program's version,
// and the options of a request.
func settings(ctx context.Context, f *infill.Filler, r infill.Request) (map[string]string, error) {
	err := f.Load(ctx)
	s := map[string]string{}
	for _, fact := range r.Facts() {
		s[fact.Name] = fact.Text
	}
	m := f.Model()
	s["model"] = fmt.Sprintf("%s@%.16s", m.Name, m.SHA256)
	s["tokenizer"] = fmt.Sprintf("%.16s", m.Tokenizer)
	s["version"] = infill.Version()
	s["onnxruntime"] = m.Runtime
	s["device"] = m.Device
	return s, err
}

// do returns the record's columns that are not options, and the result. The
// result is one JSON object, a line of a table for each fill, or the best
// fill as plain text.
func (f *Fill) do(ctx context.Context, r Record, form Form) (lines []json.RawMessage, err error) {
	// "rank" is a column of tables that an earlier run wrote, and not the option rank.
	q, err := infill.ReadRecord(r.Object, f.Key, slices.Concat(f.Keep, []string{"id", "rank"})...)
	var option *infill.OptionError
	switch {
	case errors.As(err, &option):
		return nil, reject("%q: %s; --keep %[1]s passes the column on as it is", option.Option, option.Reason)
	case err != nil:
		return nil, reject("%w, or name the column", err)
	}
	request, err := q.Request(f.Given)
	if err != nil {
		return nil, rejected(err)
	}
	plan, err := f.Filler.Plan(request)
	if err != nil {
		return nil, rejected(err)
	}
	result, err := plan.Fill(ctx, nil)
	if err != nil {
		return nil, rejected(err)
	}
	if form == formText {
		best := ""
		if len(result.Fills) > 0 {
			best = result.Fills[0].Text
		}
		return []json.RawMessage{json.RawMessage(object.Quote(OneLine(best)))}, nil
	}
	// The template keeps the name of its column.
	taken := inResult
	if form.table() {
		taken = inTable
	}
	extra, template := object.Beside(q.Extra, f.Key, taken)
	if form.table() {
		table, err := Table(result)
		for _, line := range table {
			line = append(line.Rename("template", template), extra...)
			lines = append(lines, line.Append(nil))
		}
		return lines, err
	}
	row, err := rowOf(result)
	row = append(row.Rename("template", template), extra.Without("id")...)
	id := extra.Get("id")
	if id != nil { // the id comes first, as in the answer to a request
		row = append(object.Object{{Key: "id", Value: id}}, row...)
	}
	return []json.RawMessage{row.Append(nil)}, err
}

// rejected wraps err in a *RejectError if the template or an option of the record
// is at fault, so that the run goes on.
func rejected(err error) error {
	blame, line := infill.Describe(err, infill.Keys)
	if blame == infill.BlameProgram {
		return err
	}
	return &RejectError{line}
}

// OneLine replaces each line break in a text by a space.
func OneLine(text string) string { return lineBreaks.Replace(text) }

var lineBreaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ")

// rowOf returns a result without its seconds, and without model and signature,
// which the run prints once.
func rowOf(result *infill.Result) (object.Object, error) {
	row, err := object.Of(result)
	for i, field := range row {
		if field.Key == "stats" && err == nil {
			var stats object.Object
			stats, err = object.Parse(field.Value)
			row[i].Value = stats.Without("seconds").Append(nil)
		}
	}
	return row.Without("model", "signature"), err
}

var (
	resultKeys = object.Keys[infill.Result]()
	fillKeys   = object.Keys[infill.Fill]()
	// leftOut are keys of a Result or Fill that a table leaves out. They
	// describe the whole result and would repeat in each of its lines, or they
	// repeat other columns.
	leftOut = []string{"format", "model", "signature", "fills", "alone", "stats", "values", "spans", "pieces"}
	// blankColumn matches the names of the columns that hold the fills of
	// single blanks, such as blank_1.
	blankColumn = regexp.MustCompile(`^blank_(\d+)$`)
)

// inResult reports whether results have a key called name, besides "template";
// inTable asks it of a table's columns.
func inResult(name string) bool { return name != "template" && slices.Contains(resultKeys, name) }
func inTable(name string) bool {
	return inResult(name) || slices.Contains(fillKeys, name) || blankColumn.MatchString(name)
}

// Columns returns the columns of a table of results whose templates have that
// many blanks: rank and text, a column for each blank, the other keys of a
// fill, and the keys that are the same for all fills.
func Columns(blanks int) (names []string) {
	for _, key := range fillKeys {
		if key == "values" {
			for blank := range blanks {
				names = append(names, fmt.Sprintf("blank_%d", blank+1))
			}
		} else if key != "token_ids" && !slices.Contains(leftOut, key) {
			names = append(names, key)
		}
	}
	names = append(names, "token_ids")
	return append(names, slices.DeleteFunc(slices.Clone(resultKeys),
		func(key string) bool { return slices.Contains(leftOut, key) })...)
}

// Table returns a line for each fill of a result, with the columns of Columns
// that are not empty.
func Table(result *infill.Result) (lines []object.Object, err error) {
	common, err := rowOf(result)
	if err != nil {
		return nil, err
	}
	names := Columns(len(result.Blanks))
	for _, fill := range result.Fills {
		fields, err := object.Of(fill)
		if err != nil {
			return nil, err
		}
		for blank, word := range fill.Values {
			fields = append(fields, object.Field{Key: fmt.Sprintf("blank_%d", blank+1), Value: object.Quote(word)})
		}
		fields = append(fields, common...)
		var line object.Object
		for _, name := range names {
			value := fields.Get(name)
			if value != nil && string(value) != "[]" {
				line = append(line, object.Field{Key: name, Value: value})
			}
		}
		lines = append(lines, line)
	}
	return lines, nil
}
