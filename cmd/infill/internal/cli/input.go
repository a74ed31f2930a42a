package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/terminal"
	"infill/internal/batch"
	"infill/internal/parallel"
	"infill/internal/phrase"
	"infill/internal/rawjson"
	"infill/lm"
)

type Entry struct {
	Text string
	Line int             // number of the line in standard input or File, from 1; 0 for an argument
	File string          // "" for standard input
	Of   rawjson.Object  // object of a line of JSON, or record of a file; else nil
	ID   json.RawMessage // the id that the user gave the text, or nil
	Err  error           // why the line has no text
	// Caller is who asks the model for the text's rows: earlier texts go first.
	Caller *lm.Caller

	Blank bool // whether the line has only white space
}

// Place returns "line 3: " for a line of standard input, "FILE, line 3: " for a
// line of File, and "" for an argument.
func (e Entry) Place() string {
	if e.Line == 0 {
		return ""
	}
	return strings.TrimPrefix(fmt.Sprintf("%s, line %d: ", e.File, e.Line), ", ")
}

// InputOptions holds the texts of a command and the format of its result.
type InputOptions struct {
	Streams *terminal.Streams
	Key     string  // key of the text in a JSON object, and the word for a text in messages
	Texts   []Entry // from the arguments; empty for standard input
	Input   string
	Format  string
	// Reads reports whether a key is read, beside the text's and "id".
	Reads func(key string) bool
}

func Inputs() []string { return []string{"lines", "jsonl"} }

// Register defines --input and --format. further are formats beside Formats.
func (o *InputOptions) Register(cmd *cobra.Command, further ...string) {
	o.Input, o.Format = Inputs()[0], Formats()[0]
	AddChoice(cmd, &o.Input, "input", "", Inputs(),
		fmt.Sprintf(`form of standard input; jsonl: {%q: "...", "id": ...}`, o.Key))
	AddChoice(cmd, &o.Format, "format", "", append(Formats(), further...), "form of the result")
}

// Take takes args as texts; none, or a dash, means standard input. If that is a
// terminal, Take returns an error with the hint.
func (o *InputOptions) Take(args []string, hint string) error {
	for _, arg := range args {
		o.Texts = append(o.Texts, Entry{Text: arg})
	}
	if slices.Equal(args, []string{"-"}) {
		o.Texts = nil
	}
	if len(o.Texts) == 0 && o.Streams.InTerminal {
		return &UsageError{fmt.Errorf("no %s: give one, or pipe %[1]ss to standard input", o.Key), hint}
	}
	return nil
}

func (o *InputOptions) Lines(ctx context.Context) (list []Entry, err error) {
	own := *o
	own.Texts = nil
	next := own.entries(ctx)
	for {
		e, err := next()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
}

// entries returns all arguments or, without any, lines; then io.EOF.
func (o *InputOptions) entries(ctx context.Context) func() (Entry, error) {
	if len(o.Texts) == 0 {
		form := map[string]batch.Form{"lines": "text", "jsonl": "jsonl"}[o.Input]
		lines := batch.NewReader(o.Streams.In, form, o.Key)
		return func() (Entry, error) {
			return parallel.Interruptible(ctx, func() (Entry, error) { return o.line(lines) })
		}
	}
	i := -1
	return func() (Entry, error) {
		i++
		if i == len(o.Texts) {
			return Entry{}, io.EOF
		}
		return o.Texts[i], nil
	}
}

// line reads a line, which is a text or a JSON object with the text under o.Key.
func (o *InputOptions) line(lines *batch.Reader) (Entry, error) {
	line, err := lines.Next()
	if err == io.EOF {
		return Entry{}, err
	}
	e := Entry{Line: int(line.Line), Err: line.Err, Blank: line.Blank}
	switch {
	case err != nil:
		return e, fmt.Errorf("read standard input: %w", err)
	case errors.Is(e.Err, rawjson.ErrNone):
		e.Err = fmt.Errorf("%w: write {%q: \"...\"}", e.Err, o.Key)
	case e.Err == nil && !e.Blank:
		e.Text, e.Err = line.Object.Text(o.Key)
		if e.Err == nil && o.Input == "jsonl" {
			e.Of, e.ID = line.Object, json.RawMessage(line.Object.Given("id"))
		}
	}
	return e, nil
}

// task is a text on which Each works; tell and wrong are the results of the work.
type task[T any] struct {
	Entry
	value T
	tell  func() error
	wrong error
}

// Each reads every text and works on many at once, so that they share the
// model's calls. For each text, work returns a function tell (or nil) that
// prints the result; Each calls tell in the order of the texts, and at last
// end. A wrong argument ends the command before any work. A wrong line of
// standard input is reported with its number, and the other lines are done. Each
// skips and counts blank lines. It warns of an unknown key once.
func Each[T any](ctx context.Context, o *InputOptions, model *ModelOptions, read func(Entry) (T, error),
	end func() error, work func(context.Context, Entry, T) (tell func() error, err error)) error {
	arguments := make([]T, len(o.Texts))
	for i, text := range o.Texts {
		if text.Line > 0 {
			continue
		}
		var err error
		arguments[i], err = read(text)
		if err != nil {
			var wrong *UsageError
			if !errors.As(err, &wrong) {
				wrong = &UsageError{err, ""}
			}
			if len(o.Texts) > 1 {
				wrong = &UsageError{fmt.Errorf("%s %d: %w", o.Key, i+1, wrong.Err), wrong.Hint}
			}
			return wrong
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	entries := o.entries(ctx)
	turn := int64(0)
	next := func(context.Context) (*task[T], error) {
		e, err := entries()
		turn++
		e.Caller = &lm.Caller{Heavy: true, Turn: turn}
		t := &task[T]{Entry: e, wrong: e.Err}
		switch {
		case err != nil || t.Blank || t.wrong != nil:
		case t.Line == 0:
			t.value = arguments[turn-1]
		default:
			t.value, t.wrong = read(t.Entry)
		}
		return t, err
	}
	do := func(_ context.Context, t *task[T]) (*task[T], error) {
		if t.Blank || t.wrong != nil {
			return t, nil
		}
		t.tell, t.wrong = work(ctx, t.Entry, t.value)
		return t, nil
	}
	all := &reporter{input: o, quiet: model.Quiet, unread: map[string]bool{}}
	// After an interrupt, Each prints the fills found so far: only work ends.
	err := parallel.Each(context.WithoutCancel(ctx), lm.InFlight(model.Threads), next, do, func(t *task[T]) error {
		err := all.tell(t.Entry, t.wrong, t.tell)
		if err != nil {
			cancel() // nobody needs the results that are still missing
		}
		return err
	})
	if all.blank > 0 {
		Warn(o.Streams, model.Quiet, "%s of %s passed over, the first is line %d",
			phrase.Counted(all.blank, "blank line"), cmp.Or(all.firstBlank.File, "standard input"), all.firstBlank.Line)
	}
	switch {
	case err != nil:
		return err
	case !all.any:
		return &UsageError{fmt.Errorf("no %s on standard input", o.Key), "give one as an argument, or one a line"}
	case all.failed:
		return errors.Join(end(), ErrReported)
	}
	return end()
}

// reporter prints results and errors of texts, and counts blank lines.
type reporter struct {
	input       *InputOptions
	quiet       bool
	unread      map[string]bool // keys of which it has warned
	any, failed bool
	blank       int // the number of blank lines
	firstBlank  Entry
}

// tell prints the result or error of one text, in the order of the texts.
func (r *reporter) tell(e Entry, err error, tell func() error) error {
	if e.Blank {
		r.blank++
		if r.blank == 1 {
			r.firstBlank = e
		}
		return nil
	}
	r.any = true
	for _, f := range e.Of {
		if f.Key != r.input.Key && f.Key != "id" && !r.unread[f.Key] && !r.input.Reads(f.Key) {
			r.unread[f.Key] = true
			Warn(r.input.Streams, r.quiet, "%sthe key %q is not read", e.Place(), f.Key)
		}
	}
	if tell != nil {
		err = tell()
	}
	switch {
	case err == nil:
	case e.Line == 0 || errors.Is(err, context.Canceled) || e.Err == nil && !isInput(err):
		return err
	default:
		r.failed = true
		PrintError(r.input.Streams.Err, fmt.Errorf("%s%w", e.Place(), err), "")
	}
	return nil
}

// Spool copies in to a temporary file, which can be read several times.
func Spool(in io.Reader) (path string, remove func() error, err error) {
	dir, err := os.MkdirTemp("", "infill-")
	if err != nil {
		return "", nil, err
	}
	remove = func() error { return os.RemoveAll(dir) }
	path = filepath.Join(dir, "standard input")
	file, err := os.Create(path)
	if err != nil {
		return "", nil, errors.Join(err, remove())
	}
	_, err = io.Copy(file, in)
	err = errors.Join(err, file.Close())
	if err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return path, remove, nil
}
