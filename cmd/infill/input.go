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
	"golang.org/x/sync/errgroup"

	"infill/cmd/infill/internal/terminal"
	"infill/infill/batch"
	"infill/lm"
)

// entry is one template or text of the user.
type entry struct {
	text string
	id   json.RawMessage // the user's own, nil without one
	more []string        // keys of its object that are not read
	line int             // of standard input, from 1; 0 for an argument
	err  error           // why the line holds no text
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
	// flag is what a key of an object may have been meant for, "" for nothing.
	flag func(key string) string
}

func (o *inputOptions) register(cmd *cobra.Command) {
	o.input, o.format = inputs()[0], formats()[0]
	addChoice(cmd, &o.input, "input", "", inputs(), fmt.Sprintf(`form of standard input; jsonl: {%q: "...", "id": ...}`, o.key))
	addChoice(cmd, &o.format, "format", "", formats(), "form of the result")
	o.flag = func(key string) string { return nearFlag(cmd, strings.ReplaceAll(key, "_", "-")) }
}

// validate refuses to wait for texts that are typed on a terminal.
func (o *inputOptions) validate(hint string) error {
	if len(o.texts) == 0 && o.streams.InTerminal {
		return &usageError{fmt.Errorf("no %s: give one, or pipe %[1]ss to standard input", o.key), hint}
	}
	return nil
}

// task is a text on its way; tell and wrong are what its work returned when done is closed.
type task struct {
	entry
	done  chan struct{}
	tell  func() error
	wrong error
}

// each works at every text, many at once, so that they share the model's calls, and
// tells of them one after the other, as they came; end comes after the last. tell, which
// may be nil, returns an error of work as well.
// A wrong text among the arguments ends the command before anything is done; one on
// standard input, where the lines before it may be answered already, is reported with its
// line, and the others are done. Blank lines are passed over and counted. A key that is
// not read is told of where it comes first.
func (o *inputOptions) each(ctx context.Context, quiet bool, check func(text string) *usageError, end func() error,
	work func(context.Context, entry) (tell func() error, err error)) error {
	for i, text := range o.texts {
		if wrong := check(text); wrong != nil {
			if len(o.texts) > 1 {
				wrong.err = fmt.Errorf("%s %d: %w", o.key, i+1, wrong.err)
			}
			return wrong
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	// A slow text lets this many be done behind it.
	tasks := make(chan *task, 4*lm.InFlight)
	var group errgroup.Group
	group.SetLimit(1 + lm.InFlight) // one reads
	defer group.Wait()
	defer cancel()
	group.Go(func() error {
		defer close(tasks)
		alone := true
		before := make(chan struct{})
		close(before)
		return o.entries(ctx, func(e entry) error {
			e.turn, e.next = make(chan struct{}), before
			t := &task{entry: e, wrong: e.err, done: make(chan struct{})}
			select {
			case tasks <- t:
			case <-ctx.Done():
				return ctx.Err()
			}
			if e.blank || e.err != nil {
				close(t.done)
				return nil
			}
			before = e.turn
			group.Go(func() error {
				defer close(t.done)
				t.tell, t.wrong = work(ctx, t.entry)
				return nil
			})
			if alone {
				// The first loads the model, and tells of it.
				<-t.done
				alone = t.wrong != nil
			}
			return nil
		})
	})
	seen, failed := false, false
	blank, firstBlank := 0, 0
	tellBlank := func() {
		if blank > 0 {
			warn(o.streams, quiet, "%s of standard input passed over, the first is line %d", counted(blank, "blank line"), firstBlank)
		}
	}
	told := map[string]bool{}
	for t := range tasks {
		if t.blank {
			if blank++; blank == 1 {
				firstBlank = t.line
			}
			continue
		}
		seen = true
		for _, key := range t.more {
			if !told[key] {
				told[key] = true
				warn(o.streams, quiet, "line %d: %s", t.line, o.unread(key))
			}
		}
		close(t.turn)
		<-t.done
		err := t.wrong
		if t.tell != nil {
			err = t.tell()
		}
		switch {
		case err == nil:
		case t.line == 0 || errors.Is(err, context.Canceled) || t.err == nil && !isInput(err):
			tellBlank()
			return err
		default:
			failed = true
			printError(o.streams.Err, fmt.Errorf("line %d: %w", t.line, err), "")
		}
	}
	tellBlank()
	switch err := group.Wait(); {
	case err != nil:
		return err
	case !seen:
		return &usageError{fmt.Errorf("no %s on standard input", o.key), "give one as an argument, or one a line"}
	case failed:
		return errors.Join(end(), errReported)
	}
	return end()
}

// entries calls do for every argument, or, without one, for every line of standard input.
func (o *inputOptions) entries(ctx context.Context, do func(entry) error) error {
	if len(o.texts) == 0 {
		return each(ctx, o.streams.In, o.input, o.key, do)
	}
	for _, text := range o.texts {
		if err := do(entry{text: text}); err != nil {
			return err
		}
	}
	return nil
}

// each calls do for every line of a reader, see readEntries, until one fails.
func each(ctx context.Context, in io.Reader, format, key string, do func(entry) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	entries := make(chan entry)
	go readEntries(ctx, in, format, key, entries)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, open := <-entries:
			if !open {
				return nil
			}
			if err := do(e); err != nil {
				return err
			}
		}
	}
}

// unread says that a key of an object has no effect.
func (o *inputOptions) unread(key string) string {
	text := fmt.Sprintf("the key %q is not read", key)
	switch distance := distance(strings.ToLower(key), o.key); {
	case distance <= 2:
		return text + fmt.Sprintf("; did you mean %q?", o.key)
	case o.flag != nil && o.flag(key) != "":
		return text + "; for all lines there is " + o.flag(key)
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
				e.text, e.id, e.more, e.err = parseObject(line, key)
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

// parseObject reads one line of JSONL. more are the keys other than the two, sorted.
func parseObject(line []byte, key string) (text string, id json.RawMessage, more []string, err error) {
	help := fmt.Sprintf(`: write {%q: "..."}`, key)
	object, err := batch.ParseObject(line)
	if errors.Is(err, batch.ErrNoObject) {
		return "", nil, nil, fmt.Errorf("%w%s", err, help)
	} else if err != nil {
		return "", nil, nil, err
	}
	value := object.Get(key)
	if value == nil {
		return "", nil, nil, fmt.Errorf("the object has no %q%s", key, help)
	}
	var pointer *string
	if err := json.Unmarshal(value, &pointer); err != nil || pointer == nil {
		return "", nil, nil, fmt.Errorf("%q is not a string%s", key, help)
	}
	for _, f := range object {
		if f.Key != key && f.Key != "id" {
			more = append(more, f.Key)
		}
	}
	slices.Sort(more)
	return *pointer, object.Get("id"), more, nil
}
