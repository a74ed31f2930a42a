package gaps

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/google/renameio/v2/maybe"

	"infill/cmd/infill/internal/cli"
	"infill/infill"
	"infill/internal/rawjson"
)

func (c *command) read(ctx context.Context) (e *infill.Exercise, err error) {
	name := c.from
	var content []byte
	if name == "-" {
		name = "standard input"
		content, err = c.input(ctx)
	} else {
		content, err = cli.ReadText(ctx, name)
	}
	if err != nil {
		return nil, cli.Usagef("--from: %w", err)
	}
	e = &infill.Exercise{}
	err = decode(content, e)
	if err == nil {
		err = e.Check()
	}
	if err != nil {
		return nil, cli.Usagef("--from: %s: %w", name, err)
	}
	return e, nil
}

// decode reads the JSON of an exercise, and refuses what it would leave out.
func decode(content []byte, e *infill.Exercise) error {
	v, err := rawjson.Read(content)
	if err == nil {
		err = rawjson.Whole(content)
	}
	if err != nil {
		return fmt.Errorf("it %w; a text is given without --from", err)
	}
	for i, gap := range v.Object().Get("gaps").List() {
		var g infill.Gap
		err = fields(gap, &g)
		if err == nil && len(gap.Object().Get("span").List()) != 2 {
			err = errors.New("its span is not two numbers")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", strings.TrimSuffix(fmt.Sprintf("gap %d (%s)", i+1, g.Key), " ()"), err)
		}
	}
	err = fields(v, e)
	if err != nil {
		return err
	}
	for i, g := range e.Gaps {
		if len(g.Options) == 0 {
			e.Gaps[i].Options = nil // an empty list is as none
		}
		if g.Rivals == nil {
			e.Gaps[i].Rivals = []string{}
		}
	}
	model := v.Object().Get("model")
	if model.IsNull() {
		return nil
	}
	return fields(model, &e.Model)
}

// fields reads an object into a struct, and refuses keys that the struct lacks.
func fields[T any](v rawjson.Value, to *T) error {
	if !v.IsObject() {
		return fmt.Errorf("%s is not an object of JSON", v)
	}
	err := json.Unmarshal(v, to)
	known := rawjson.Keys[T]()
	for _, f := range v.Object() {
		if !slices.Contains(known, f.Key) {
			return fmt.Errorf("it has %q, and only %s are read", f.Key, strings.Join(known, ", "))
		}
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Type.Kind() == reflect.Slice {
		return fmt.Errorf(`its %s is no list: write ["..."]`, wrong.Field)
	}
	if errors.As(err, &wrong) {
		return fmt.Errorf("its %s cannot be a JSON %s", wrong.Field, wrong.Value)
	}
	return err
}

type output struct {
	Path      string `option:"out" short:"o" word:"FILE" help:"FILE of the sheet; without --format, its ending chooses the form"` // "" is standard output
	Overwrite bool   `option:"overwrite" help:"replace the file of --out"`
}

var endings = map[string]string{".txt": "text", ".md": "markdown", ".html": "html", ".csv": "csv", ".gift": "gift",
	".xml": "moodle", ".json": "json"}

func (o *output) format() (string, error) {
	format, ok := endings[strings.ToLower(filepath.Ext(o.Path))]
	if !ok {
		return "", cli.Usagef("--out: %s: its ending is not one of %s: give --format, too", o.Path,
			strings.Join(slices.Sorted(maps.Keys(endings)), ", "))
	}
	return format, nil
}

// check returns an error if the output would replace one of the inputs, or a file without
// --overwrite.
func (o *output) check(inputs ...string) error {
	switch {
	case o.Path == "" && o.Overwrite:
		return cli.Usagef("--overwrite: say by --out which file")
	case o.Path == "-":
		return cli.Usagef("--out: without it, the sheet goes to standard output")
	}
	folder, err := os.Stat(filepath.Dir(o.Path))
	if err != nil || !folder.IsDir() {
		return cli.Usagef("--out: there is no folder %s: make it first", filepath.Dir(o.Path))
	}
	there, err := os.Stat(o.Path)
	if err != nil { // there is none
		return nil
	}
	for _, name := range inputs {
		input, err := os.Stat(name)
		if err == nil && os.SameFile(input, there) {
			return cli.Usagef("--out: %s would be replaced, and is the input: choose another output", o.Path)
		}
	}
	switch {
	case !there.Mode().IsRegular():
		return cli.Usagef("--out: %s is a folder, a device or a pipe: choose another output", o.Path)
	case !o.Overwrite:
		return cli.Usagef("--out: %s is there already: --overwrite makes it again", o.Path)
	}
	return nil
}

// write writes the output, a file whole or not at all.
func (o *output) write(printed io.Writer, sheet func(w io.Writer) error) error {
	if o.Path == "" {
		return sheet(printed)
	}
	var content bytes.Buffer
	err := sheet(&content)
	if err != nil {
		return err
	}
	return maybe.WriteFile(o.Path, content.Bytes(), 0o666)
}
