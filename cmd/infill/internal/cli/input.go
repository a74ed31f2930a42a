package cli

import (
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
	"infill/infill/batch"
	"infill/internal/object"
	"infill/internal/parallel"
	"infill/lm"
)

// Entry is one template or text of the user.
type Entry struct {
	Text string
	Line int             // of standard input or File, from 1; 0 for an argument
	File string          // "" for standard input
	Of   object.Object   // the object of a line of JSON, or the record of a file; else nil
	ID   json.RawMessage // the user's own, nil if there is none
	Err  error           // why the line holds no text

	blank  bool // the line holds nothing but white space
	number int  // the number of an argument, from 0
}

// Place returns "line 3: " for a line of standard input, "FILE, line 3: " for a line of a file, and "" for an argument.
func (e Entry) Place() string {
	if e.Line == 0 {
		return ""
	}
	return strings.TrimPrefix(fmt.Sprintf("%s, line %d: ", e.File, e.Line), ", ")
}

// InputOptions are the texts of a command and the form of its result.
type InputOptions struct {
	Streams *terminal.Streams
	Key     string  // the key of a text in JSONL, and the word for a text
	Texts   []Entry // the arguments
	Input   string
	Format  string
	// Reads reports whether the command reads a key of an object, apart from the text and "id".
	Reads func(key string) bool
}

// Inputs lists the ways to read standard input.
func Inputs() []string { return []string{"lines", "jsonl"} }

// Register defines the flags. further are formats of the command that Formats lacks.
func (o *InputOptions) Register(cmd *cobra.Command, further ...string) {
	o.Input, o.Format = Inputs()[0], Formats()[0]
	AddChoice(cmd, &o.Input, "input", "", Inputs(),
		fmt.Sprintf(`form of standard input; jsonl: {%q: "...", "id": ...}`, o.Key))
	AddChoice(cmd, &o.Format, "format", "", append(Formats(), further...), "form of the result")
}

// Take takes the arguments as texts. A lone dash means standard input. If that is a terminal, Take returns an error;
// hint says what to do instead.
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

// entries returns a function that returns every argument, or without any, every line of standard input, then io.EOF.
func (o *InputOptions) entries(ctx context.Context) func() (Entry, error) {
	if len(o.Texts) == 0 {
		form := map[string]batch.Form{"lines": "text", "jsonl": "jsonl"}[o.Input]
		lines := batch.NewReader(o.Streams.In, form, o.Key)
		return func() (Entry, error) {
			return Interruptible(ctx, func() (Entry, error) { return o.line(lines) })
		}
	}
	i := -1
	return func() (Entry, error) {
		if i++; i == len(o.Texts) {
			return Entry{}, io.EOF
		}
		o.Texts[i].number = i
		return o.Texts[i], nil
	}
}

// line reads a line, which is a text, or a JSON object that has the text under the key.
func (o *InputOptions) line(lines *batch.Reader) (Entry, error) {
	line, err := lines.Next()
	if err == io.EOF {
		return Entry{}, err
	}
	e := Entry{Line: int(line.Line), Err: line.Err, blank: line.Blank}
	switch {
	case err != nil:
		return e, fmt.Errorf("read standard input: %w", err)
	case errors.Is(e.Err, object.ErrNone):
		e.Err = fmt.Errorf("%w: write {%q: \"...\"}", e.Err, o.Key)
	case e.Err == nil && !e.blank:
		if e.Text, e.Err = line.Object.Text(o.Key); e.Err == nil && o.Input == "jsonl" {
			e.Of, e.ID = line.Object, line.Object.Get("id")
		}
	}
	return e, nil
}

// task is a text that Each works on; wrong and tell are the results.
type task[T any] struct {
	Entry
	value T
	tell  func() error
	wrong error
}

// Each reads every text and works on many at once, so that they share the model's calls. It prints results in the order
// of the texts: work returns the function tell for that, perhaps nil. end is called after the last text. Texts for
// which large is true fill the model's calls by themselves: two are in work at once. A wrong argument ends the command
// before any work. A wrong line of standard input is reported with its number, and the other lines are done. Each skips
// and counts blank lines. It reports an unknown key at its first line.
func Each[T any](ctx context.Context, o *InputOptions, quiet bool, read func(Entry) (T, error), large func(T) bool,
	end func() error, work func(context.Context, Entry, T) (tell func() error, err error)) error {
	arguments := make([]T, len(o.Texts))
	for i, text := range o.Texts {
		if text.Line > 0 {
			continue
		}
		var err error
		if arguments[i], err = read(text); err != nil {
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
	entries, heavy := o.entries(ctx), make(chan struct{}, 2)
	next := func(context.Context) (*task[T], error) {
		e, err := entries()
		t := &task[T]{Entry: e, wrong: e.Err}
		switch {
		case err != nil || t.blank || t.wrong != nil:
		case t.Line == 0:
			t.value = arguments[t.number]
		default:
			t.value, t.wrong = read(t.Entry)
		}
		return t, err
	}
	do := func(_ context.Context, t *task[T]) (*task[T], error) {
		if t.blank || t.wrong != nil {
			return t, nil
		}
		if large(t.value) {
			heavy <- struct{}{}
			defer func() { <-heavy }()
		}
		t.tell, t.wrong = work(ctx, t.Entry, t.value)
		return t, nil
	}
	all := &reporter{input: o, quiet: quiet, unread: map[string]bool{}}
	// After an interrupt, the fills found by then are still printed. So the executor is cancelled from here.
	err := parallel.Each(context.WithoutCancel(ctx), lm.InFlight, next, do, func(t *task[T]) error {
		err := all.tell(t.Entry, t.wrong, t.tell)
		if err != nil {
			cancel() // nobody reads the results of the texts in work
		}
		return err
	})
	if all.blank > 0 {
		Warn(o.Streams, quiet, "%s of standard input passed over, the first is line %d",
			Counted(all.blank, "blank line"), all.firstBlank)
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

// reporter prints results and errors of texts, and counts them.
type reporter struct {
	input             *InputOptions
	quiet             bool
	unread            map[string]bool // the keys that were reported
	any, failed       bool
	blank, firstBlank int
}

// tell prints the results of a text in its turn.
func (r *reporter) tell(e Entry, err error, tell func() error) error {
	if e.blank {
		if r.blank++; r.blank == 1 {
			r.firstBlank = e.Line
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

// Spool copies a stream into a file, so that the program can read it more than once.
func Spool(in io.Reader) (path string, remove func() error, err error) {
	dir, err := os.MkdirTemp("", "infill-")
	if err != nil {
		return "", nil, err
	}
	remove = func() error { return os.RemoveAll(dir) }
	path = filepath.Join(dir, "standard input")
	file, err := os.Create(path)
	if err == nil {
		_, err = io.Copy(file, in)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return path, remove, nil
}
