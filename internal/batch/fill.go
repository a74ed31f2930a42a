package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"infill/infill"
	"infill/internal/ask"
	"infill/internal/lines"
	"infill/internal/option"
	"infill/internal/rawjson"
	"infill/tokenize"
)

// Fill is the work that fills the template of each record.
type Fill struct {
	Filler *infill.Filler
	// Given are the options of every record, unless it gives others itself.
	Given []ask.Given
	Key   string // the column with the template
	// Keep lists columns that have the name of an option but are not read as the option.
	Keep []string

	seen     []string          // the columns of the input
	names    []string          // in the output, of seen without the template
	renamed  map[string]string // the name in the output of each of seen
	template string            // the name in the output of the column with the template

	parted first // a cell whose comma parts it into words
	typed  first // a warning that a sign is typed in two ways
}

// first is the text of the first line that has one. Several goroutines may note texts.
type first struct {
	lock sync.Mutex
	line int64
	text string // "" if no line has one
}

func (f *first) note(line int64, text string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if text != "" && (f.text == "" || line < f.line) {
		f.line, f.text = line, text
	}
}

var _ work = (*Fill)(nil)

func (f *Fill) column() string { return f.Key }

// warnings tells of Troy, Ohio as a list of two words, and of typing.
func (f *Fill) warnings() (list []string) {
	if f.parted.text != "" {
		list = append(list, fmt.Sprintf(`line %d: a comma parts %s into words: as one word it is "%[2]s", in a cell `+
			`of CSV """%[2]s"""`, f.parted.line, f.parted.text))
	}
	if f.typed.text != "" {
		list = append(list, fmt.Sprintf("line %d: %s", f.typed.line, f.typed.text))
	}
	return list
}

// part notes the cells of lists that a comma and a space part into words.
func (f *Fill) part(r Record) {
	for _, field := range r.Object {
		o, known := ask.Find(field.Key)
		text, err := field.Value.Text()
		if known && o.Name == "slot" && err == nil && f.isOption(field.Key) && strings.Contains(text, ", ") &&
			!strings.ContainsAny(text, `"=`) {
			f.parted.note(r.Line, text)
		}
	}
}

// options returns the columns that have the name of an option, as ReadRecord reads them.
func (f *Fill) options(input []string) (list []string, err error) {
	for _, name := range f.Keep {
		if !slices.Contains(input, name) {
			return nil, &infill.OptionError{Option: "keep",
				Reason: fmt.Sprintf("the input has no column %q: its columns are %s", name, quoted(input))}
		}
	}
	for _, name := range input {
		if f.isOption(name) {
			list = append(list, name)
		}
	}
	return list, nil
}

func (f *Fill) isOption(column string) bool {
	_, option := ask.Find(column)
	return option && column != f.Key && !slices.Contains(f.copied(), column)
}

// copied returns the columns that are no options, whatever their names.
func (f *Fill) copied() []string {
	// "rank" is a column of tables that an earlier run wrote, and not the option rank.
	return slices.Concat(f.Keep, []string{"id", "rank"})
}

func (f *Fill) layout(input []string, form Form) Layout {
	f.seen = input
	f.rename(form)
	if form.table() {
		return f.Layout(f.names)
	}
	keys := slices.DeleteFunc(slices.Clone(resultKeys), func(key string) bool {
		return slices.Contains([]string{"model", "signature", "template"}, key)
	})
	return Layout{After: slices.Concat(keys, []string{f.template}, f.names)}
}

// Layout returns the columns of a table of results, given those of the user.
func (f *Fill) Layout(copied []string) Layout {
	own := slices.Clone(resultColumns)
	own[slices.Index(own, "template")] = f.template
	return Layout{Own: own, Copied: copied, Before: own[:beforeBlanks],
		After: slices.Concat(own[beforeBlanks:], copied), Method: f.method()}
}

// rename gives each column of the input a name in the output, so that the names of
// results stay theirs. The template keeps the name of its column.
func (f *Fill) rename(form Form) {
	taken := inResult
	if form.table() {
		taken = inTable
	}
	others := slices.DeleteFunc(slices.Clone(f.seen), func(name string) bool { return name == f.Key })
	f.renamed = rawjson.Beside(others, f.Key, taken)
	f.template = f.renamed[f.Key]
	f.names = nil
	for _, name := range others {
		f.names = append(f.names, f.renamed[name])
	}
}

// Copied returns the columns of a record that stay beside its result, with their names in
// the output. It is for records that come one by one, without a Job.
func (f *Fill) Copied(fields rawjson.Object, form Form) rawjson.Object {
	for _, field := range fields {
		if !slices.Contains(f.seen, field.Key) {
			f.seen = append(f.seen, field.Key)
		}
	}
	f.rename(form)
	return f.copy(fields)
}

func (f *Fill) copy(fields rawjson.Object) rawjson.Object {
	return fields.Without(f.Key).Rename(f.renamed)
}

// method returns the name of the method where the record has no options.
func (f *Fill) method() string {
	request, _ := ask.NewRequest("", f.Given) // settings returns the error
	return request.Settled().Method.Name()
}

func (f *Fill) settings(ctx context.Context) (map[string]string, error) {
	r, err := ask.NewRequest("", f.Given)
	if err != nil {
		return nil, err
	}
	s, err := settings(ctx, f.Filler, r)
	s["keep"] = option.Join(f.Keep)
	return s, err
}

// settings checks the request and loads the model. It returns the model's
// description, the program's version, and the options of the request.
func settings(ctx context.Context, f *infill.Filler, r infill.Request) (map[string]string, error) {
	s := map[string]string{}
	err := f.Check(r)
	if err != nil {
		return s, err
	}
	err = f.Load(ctx)
	for _, fact := range ask.Facts(r) {
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

// do fills the template of a record. It returns one JSON object, a line of a
// table for each fill, or the best fill as plain text.
func (f *Fill) do(ctx context.Context, r Record, form Form) (made Rows, err error) {
	f.part(r)
	result, err := f.fill(ctx, r)
	if err != nil {
		made.Blanks = f.blanks(r.Object)
		return made, err
	}
	f.typed.note(r.Line, result.Typed)
	made, err = f.rows(r.Object, result, form)
	made.Unproven = result.Proven != nil && !*result.Proven
	made.Excluded = made.Unproven && result.Excluded
	return made, err
}

func (f *Fill) rows(fields rawjson.Object, result *infill.Result, form Form) (made Rows, err error) {
	if form == formText {
		best := ""
		if len(result.Fills) > 0 {
			best = result.Fills[0].Text
		}
		made.Lines = []json.RawMessage{json.RawMessage(rawjson.Quote(lines.One(best)))}
		return made, nil
	}
	copied := f.copy(fields)
	if form.table() {
		made, err = f.Rows(result)
		made.Copied = cellsUnder(f.names, copied)
		return made, err
	}
	line, err := f.Object(result, copied, "model", "signature", "seconds")
	made.Lines = []json.RawMessage{line}
	return made, err
}

// Object returns a result as a JSON object: the user's id first, and his other columns
// last. It leaves out keys of the result and of its stats.
func (f *Fill) Object(result *infill.Result, copied rawjson.Object, without ...string) (json.RawMessage, error) {
	encoded, err := rawjson.Encode(result)
	if err != nil {
		return nil, err
	}
	row := encoded.Object().Without(without...).Rename(map[string]string{"template": f.template})
	for i, field := range row {
		if field.Key == "stats" {
			row[i].Value = field.Value.Object().Without(without...).Append(nil)
		}
	}
	id := copied.Get("id")
	if id != nil { // as in the answer to a request
		row = append(rawjson.Object{{Key: "id", Value: id}}, row...)
	}
	return append(row, copied.Without("id")...).Append(nil), nil
}

func (f *Fill) Rows(result *infill.Result) (made Rows, err error) {
	encoded, err := rawjson.Encode(result)
	if err != nil {
		return made, err
	}
	made.Method = result.Method
	made.Entropies = entropies(result)
	common := make([]string, len(resultColumns))
	set := func(cells []string, of rawjson.Object) {
		for _, field := range of {
			i := slices.Index(resultColumns, field.Key)
			if i >= 0 && string(field.Value) != "[]" {
				cells[i] = rawjson.Plain(field.Value)
			}
		}
	}
	row := encoded.Object()
	set(common, row)
	for i, fill := range row.Get("fills").List() {
		words := result.Fills[i].Values
		made.Blanks = len(words)
		cells := append(slices.Clone(common), words...)
		for _, tokens := range result.Fills[i].Tokens {
			cells = append(cells, strconv.Itoa(tokens))
		}
		set(cells, fill.Object())
		made.addCells(cells)
	}
	return made, nil
}

func (f *Fill) fill(ctx context.Context, r Record) (*infill.Result, error) {
	fields := r.Object
	request, err := f.Request(fields)
	var option *infill.OptionError
	if err != nil && !errors.As(err, &option) {
		return nil, reject("%w, or name the column", err)
	}
	if err != nil {
		return nil, f.rejected(fields, err)
	}
	plan, err := f.Filler.For(r.caller()).Plan(ctx, request)
	if err != nil {
		return nil, f.rejected(fields, err)
	}
	result, err := plan.Fill(ctx, nil)
	if err != nil {
		return nil, f.rejected(fields, err)
	}
	return result, nil
}

// blanks returns the number of blanks that a record means, also if it cannot be filled.
func (f *Fill) blanks(fields rawjson.Object) int {
	text, err := fields.Text(f.Key)
	if err != nil {
		return 0
	}
	r, _ := f.Request(fields)
	return len(tokenize.BlankSpans(text, r.Blank))
}

// Request returns the request of a record, with the record's own options. An error of an
// option is an *infill.OptionError; any other says that there is no template.
func (f *Fill) Request(fields rawjson.Object) (infill.Request, error) {
	record, err := ask.ReadRecord(fields, f.Key, f.copied()...)
	if err != nil {
		return infill.Request{}, err
	}
	return record.Request(f.Given)
}

// rejected is rejectedRecord, and tells how to copy an option's column.
func (f *Fill) rejected(fields rawjson.Object, err error) error {
	var option *infill.OptionError
	if !errors.As(err, &option) {
		return rejectedRecord(err)
	}
	for _, field := range fields {
		if !f.isOption(field.Key) {
			continue
		}
		known, _ := ask.Find(field.Key)
		if option.Option == field.Key || option.Option == known.Name {
			return &RejectError{option: field.Key, error: fmt.Errorf(
				"%q: %s; --keep %[1]s passes the column on as it is", field.Key, option.Reason)}
		}
	}
	return rejectedRecord(err)
}

// rejectedRecord wraps err in a *RejectError if the template or an option of the
// record is at fault, so that the run goes on.
func rejectedRecord(err error) error {
	blame, line := ask.Describe(err, ask.Keys)
	if blame == ask.BlameProgram {
		return err
	}
	return &RejectError{error: line}
}

var (
	resultKeys = rawjson.Keys[infill.Result]()
	fillKeys   = rawjson.Keys[infill.Fill]()
	// leftOut are keys that a table leaves out: they describe the whole result,
	// or repeat other columns.
	leftOut = []string{"format", "model", "signature", "fills", "alone", "entropy", "stats", "values", "spans",
		"tokens"}
	types = func() map[string]string {
		all := rawjson.Types[infill.Result]()
		maps.Copy(all, rawjson.Types[infill.Fill]())
		return all
	}()
	// blankColumn matches columns of single blanks, such as blank_1.
	blankColumn = regexp.MustCompile(`^(blank|entropy|tokens)_(\d+)$`)
)

// inResult reports whether results have a key called name, besides "template";
// inTable asks it of a table's columns.
func inResult(name string) bool { return name != "template" && slices.Contains(resultKeys, name) }
func inTable(name string) bool {
	return inResult(name) || slices.Contains(fillKeys, name) || blankColumn.MatchString(name)
}

// beforeBlanks is the number of columns before those of blanks: rank, text.
const beforeBlanks = 2

// resultColumns are the columns of a table of results, without those of the
// blanks: those of a fill, and those that are the same for all fills.
var resultColumns = func() (names []string) {
	for _, key := range fillKeys {
		if key != "token_ids" && !slices.Contains(leftOut, key) {
			names = append(names, key)
		}
	}
	names = append(names, "token_ids")
	return append(names, slices.DeleteFunc(slices.Clone(resultKeys),
		func(key string) bool { return slices.Contains(leftOut, key) })...)
}()

func entropies(result *infill.Result) []string {
	cells := make([]string, len(result.Entropy))
	for i, h := range result.Entropy {
		if h != nil {
			cells[i] = strconv.FormatFloat(*h, 'g', -1, 64)
		}
	}
	return cells
}
