package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/terminal"
	"infill/infill/batch"
	"infill/internal/object"
	"infill/internal/parallel"
	"infill/lm"
)

// entry is one template or text of the user.
type entry struct {
	text string
	id   json.RawMessage // the user's own, nil without one
	more []string        // keys of its object that are not read
	of   object.Object   // of a line of JSON; nil else
	line int             // of standard input, from 1; 0 for an argument
	// number is that of an argument, from 0.
	number int
	err    error // why the line holds no text
	// blank: the line holds nothing but white space.
	blank bool
	// turn is closed when all is told of the texts before: what is told of a text while
	// it is worked at waits for it. next is closed when all is told of those before but
	// the last: a text that fills the model's calls by itself waits for it.
	turn, next chan struct{}
}

// await waits for turn or next. It is an error where they will not come.
func await(ctx context.Context, turn <-chan struct{}) error {
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// place is "line 3: " for a line of standard input, "" for an argument.
func (e entry) place() string {
	if e.line == 0 {
		return ""
	}
	return fmt.Sprintf("line %d: ", e.line)
}

// inputOptions are the texts of a command and the form of its result.
type inputOptions struct {
	streams *terminal.Streams
	key     string   // of a text in JSONL, and the word for one
	texts   []string // the arguments
	input   string
	format  string
	// answerErrors has wrong lines answered in their place, as JSON, for programs that ask
	// line by line.
	answerErrors bool
	// reads tells whether a key of an object is read beside the text and "id"; nil: none is.
	reads func(key string) bool
	// flag is what a key of an object may have been meant for, "" for nothing.
	flag func(key string) string
}

func (o *inputOptions) register(cmd *cobra.Command) {
	o.input, o.format = inputs()[0], formats()[0]
	addChoice(cmd, &o.input, "input", "", inputs(), fmt.Sprintf(`form of standard input; jsonl: {%q: "...", "id": ...}`, o.key))
	addChoice(cmd, &o.format, "format", "", formats(), "form of the result")
	cmd.Flags().BoolVar(&o.answerErrors, "answer-errors", false, `answer a wrong line with {"id": ..., "line": ..., "error": ...}, for a program that sends JSON lines and reads an answer to each`)
	o.flag = func(key string) string { return nearFlag(cmd, strings.ReplaceAll(key, "_", "-")) }
}

// validate refuses to wait for texts that are typed on a terminal.
func (o *inputOptions) validate(hint string) error {
	if len(o.texts) == 0 && o.streams.InTerminal {
		return &usageError{fmt.Errorf("no %s: give one, or pipe %[1]ss to standard input", o.key), hint}
	}
	if o.answerErrors && (len(o.texts) > 0 || o.input != "jsonl" || o.format != "jsonl") {
		return &usageError{errors.New("--answer-errors: lines are answered where they are JSON and the answers too: take --input jsonl --format jsonl"), ""}
	}
	return nil
}

// task is a text on its way.
type task struct {
	entry
	ended chan struct{} // closed when its work is: tell and wrong are what that returned
	told  chan struct{} // closed when all is told of it
	tell  func() error
	wrong error
}

// each reads every text and works at it, many at once, so that they share the model's calls,
// and tells of them one after the other, as they came; end comes after the last. tell, which
// may be nil, returns an error of work as well.
// A wrong text among the arguments ends the command before anything is done; one on
// standard input, where the lines before it may be answered already, is reported with its
// line, and the others are done. Blank lines are passed over and counted. A key that is
// not read is told of where it comes first.
func each[T any](ctx context.Context, o *inputOptions, quiet bool, read func(entry) (T, error), end func() error,
	work func(context.Context, entry, T) (tell func() error, err error)) error {
	arguments := make([]T, len(o.texts))
	for i, text := range o.texts {
		var err error
		if arguments[i], err = read(entry{text: text}); err != nil {
			var wrong *usageError
			if !errors.As(err, &wrong) {
				wrong = &usageError{err, ""}
			}
			if len(o.texts) > 1 {
				wrong = &usageError{fmt.Errorf("%s %d: %w", o.key, i+1, wrong.err), wrong.hint}
			}
			return wrong
		}
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	entries := o.entries(reading)
	last := &task{told: make(chan struct{})} // of all
	close(last.told)
	next, first, alone := last.told, true, (*task)(nil)
	take := func(context.Context) (*task, error) {
		if alone != nil {
			// The first loads the model, and tells of it.
			<-alone.ended
			first, alone = alone.wrong != nil, nil
		}
		e, err := entries()
		if err != nil {
			return nil, err
		}
		t := &task{entry: e, wrong: e.err, ended: make(chan struct{}), told: make(chan struct{})}
		if t.turn, t.next = last.told, next; !e.blank && e.err == nil {
			if next = t.turn; first {
				alone = t
			}
		}
		last = t
		return t, nil
	}
	do := func(inner context.Context, t *task) (*task, error) {
		defer close(t.ended)
		if t.blank || t.err != nil {
			return t, nil
		}
		inner, stop := context.WithCancel(inner)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		var value T
		if t.line == 0 {
			value = arguments[t.number]
		} else if value, t.wrong = read(t.entry); t.wrong != nil {
			return t, nil
		}
		t.tell, t.wrong = work(inner, t.entry, value)
		return t, nil
	}
	seen, failed := false, false
	blank, firstBlank := 0, 0
	tellBlank := func() {
		if blank > 0 {
			warn(o.streams, quiet, "%s of standard input passed over, the first is line %d", counted(blank, "blank line"), firstBlank)
		}
	}
	told := map[string]bool{}
	emit := func(t *task) error {
		defer close(t.told)
		if t.blank {
			if blank++; blank == 1 {
				firstBlank = t.line
			}
			return nil
		}
		seen = true
		for _, key := range t.more {
			if !told[key] && (o.reads == nil || !o.reads(key)) {
				told[key] = true
				warn(o.streams, quiet, "line %d: %s", t.line, o.unread(key))
			}
		}
		err := t.wrong
		if t.tell != nil {
			err = t.tell()
		}
		switch {
		case err == nil:
		case t.line == 0 || errors.Is(err, context.Canceled) || t.err == nil && !isInput(err):
			return err
		case o.answerErrors:
			if err := writeLine(o.streams.Out, wrongLine{t.id, t.line, oneLine(err.Error())}); err != nil {
				return err
			}
		default:
			failed = true
			printError(o.streams.Err, fmt.Errorf("line %d: %w", t.line, err), "")
		}
		return nil
	}
	// Who interrupts it is told what was found by then: only reading and working end with ctx.
	err := parallel.Each(context.WithoutCancel(ctx), lm.InFlight, take, do, emit)
	tellBlank()
	switch {
	case err != nil:
		return err
	case !seen:
		return &usageError{fmt.Errorf("no %s on standard input", o.key), "give one as an argument, or one a line"}
	case failed:
		return errors.Join(end(), errReported)
	}
	return end()
}

// entries gives every argument, or, without one, every line of standard input, and then io.EOF.
func (o *inputOptions) entries(ctx context.Context) func() (entry, error) {
	if len(o.texts) == 0 {
		return eachLine(ctx, o.streams.In, o.input, o.key)
	}
	number := -1
	return func() (entry, error) {
		if number++; number == len(o.texts) {
			return entry{}, io.EOF
		}
		return entry{text: o.texts[number], number: number}, ctx.Err()
	}
}

// wrongLine is the answer to a line that is wrong.
type wrongLine struct {
	ID    json.RawMessage `json:"id"` // null where the line has none
	Line  int             `json:"line"`
	Error string          `json:"error"`
}

// eachLine gives every line of a reader, see readEntries, and then io.EOF.
func eachLine(ctx context.Context, in io.Reader, format, key string) func() (entry, error) {
	entries := make(chan entry)
	go readEntries(ctx, in, format, key, entries)
	return func() (entry, error) {
		select {
		case <-ctx.Done():
			return entry{}, ctx.Err()
		case e, open := <-entries:
			if !open {
				return entry{}, io.EOF
			}
			return e, nil
		}
	}
}

// unread says that a key of an object has no effect.
func (o *inputOptions) unread(key string) string {
	text, flag := fmt.Sprintf("the key %q is not read", key), ""
	if o.flag != nil {
		flag = o.flag(key)
	}
	_, name, _ := strings.Cut(flag, "--")
	switch {
	case distance(strings.ToLower(key), o.key) <= 2:
		return text + fmt.Sprintf("; did you mean %q?", o.key)
	case flag != "" && o.reads != nil && o.reads(name):
		return text + fmt.Sprintf("; did you mean %q?", strings.ReplaceAll(name, "-", "_"))
	case flag != "":
		return text + "; for all lines there is " + flag
	}
	return text + fmt.Sprintf("; %q and \"id\" are", o.key)
}

// maxLine is the longest line that is read, in bytes, far above what a model
// takes in. Longer ones are skipped without holding them in memory.
const maxLine = 1 << 20

// inputs lists the ways to read standard input.
func inputs() []string { return []string{"lines", "jsonl"} }

// readEntries sends the lines of r, which are texts or JSON objects whose text
// stands under key, and closes the channel. It stops when ctx ends, but cannot
// leave a read that waits: run it in a goroutine of its own.
func readEntries(ctx context.Context, r io.Reader, format, key string, entries chan<- entry) {
	defer close(entries)
	lines := bufio.NewReader(r)
	for number := 1; ; number++ {
		line, err := readLine(lines)
		if err == io.EOF {
			return
		}
		e := entry{line: number, err: err}
		if err == nil {
			if number == 1 {
				line = bytes.TrimPrefix(line, []byte("\ufeff"))
			}
			if e.blank = utf8.Valid(line) && len(bytes.TrimSpace(line)) == 0; e.blank {
				e.text = string(line)
			} else if format == "jsonl" {
				e.err = e.parse(line, key)
			} else if e.text = string(line); bytes.ContainsRune(bytes.TrimRight(line, "\r"), '\r') {
				e.err = batch.ErrReturn
			}
		}
		select {
		case entries <- e:
		case <-ctx.Done():
			return
		}
		if err != nil && !errors.Is(err, errLongLine) {
			return
		}
	}
}

var errLongLine = fmt.Errorf("the line is longer than %d bytes: split it", maxLine)

// readLine returns a line without its end, or io.EOF after the last.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if !long {
			line = append(line, part...)
			long = len(bytes.TrimRight(line, "\r\n")) > maxLine
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && len(line) == 0:
			return nil, io.EOF
		case err != nil && err != io.EOF:
			return nil, fmt.Errorf("read standard input: %w", err)
		case long:
			return nil, errLongLine
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		return bytes.TrimSuffix(line, []byte("\r")), nil
	}
}

// parse reads one line of JSONL.
func (e *entry) parse(line []byte, key string) (err error) {
	if e.of, err = object.Parse(line); errors.Is(err, object.ErrNone) {
		return fmt.Errorf("%w: write {%q: \"...\"}", err, key)
	} else if err != nil {
		return err
	}
	e.id = e.of.Get("id")
	if e.text, err = e.of.Text(key); err != nil {
		return err
	}
	for _, f := range e.of {
		if f.Key != key && f.Key != "id" {
			e.more = append(e.more, f.Key)
		}
	}
	slices.Sort(e.more)
	return nil
}
