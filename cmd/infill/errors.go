package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/object"
	"infill/tokenize"
)

// The exit codes. helpExitCodes tells the user of them.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitRejects     = 3
	exitInterrupted = 130
)

// usageError is a wrong call: exit code 2.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// failure is an error with advice on how to go on: exit code 1.
type failure struct {
	err  error
	hint string
}

func (e *failure) Error() string { return e.err.Error() }
func (e *failure) Unwrap() error { return e.err }

// errReported ends a command that has told its errors already: exit code 1.
var errReported = errors.New("errors were reported")

// outputError is a failed write to standard output.
type outputError struct{ err error }

func (e *outputError) Error() string { return "write the result: " + e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// output marks the errors of a writer, and keeps the first: some of those who
// write (cobra's help) drop theirs.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil {
		err = &outputError{err}
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// report prints an error, the only place that does, and returns the exit code.
func report(w io.Writer, err error) int {
	code, hint := exitFailed, ""
	var usage *usageError
	var misfit *misfitError
	var failed *failure
	var written *outputError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errReported):
		return exitFailed
	case errors.Is(err, errRejects):
		return exitRejects
	case errors.As(err, &written) && errors.Is(err, syscall.EPIPE):
		// Who reads the result has seen enough, as `infill ... | head -1`.
		return exitDone
	case errors.Is(err, context.Canceled):
		printError(w, errors.New("interrupted"), "")
		return exitInterrupted
	case errors.As(err, &usage):
		code, hint = exitUsage, usage.hint
	case errors.As(err, &misfit):
		code = exitUsage
	case errors.As(err, &failed):
		hint = failed.hint
	}
	printError(w, err, hint)
	return code
}

// printError prints one line for the error and one for the hint. Whatever an
// error holds, a file's name or a library's message, cannot break the lines or
// write control sequences to the terminal.
func printError(w io.Writer, err error, hint string) {
	fmt.Fprintf(w, "infill: %s\n", shortened(oneLine(err.Error())))
	if hint != "" {
		fmt.Fprintf(w, "hint: %s\n", oneLine(hint))
	}
}

// warn prints a line for those who did not ask for silence.
func warn(s *terminal.Streams, quiet bool, format string, args ...any) {
	if !quiet {
		fmt.Fprintf(s.Err, "infill: warning: %s\n", oneLine(fmt.Sprintf(format, args...)))
	}
}

func oneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	return inOrder(strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, text))
}

// inOrder shows the characters that would have a terminal write what follows in another order (UAX #9: embeddings, overrides,
// isolates) as their escapes.
func inOrder(text string) string { return reordering.Replace(text) }

var reordering = func() *strings.Replacer {
	var pairs []string
	for _, r := range "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069" {
		pairs = append(pairs, string(r), fmt.Sprintf(`\u%04x`, r))
	}
	return strings.NewReplacer(pairs...)
}()

// flagError gives an error of the flag parser the form of all others.
func flagError(command string, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		err = fmt.Errorf("--%s: %q is not %w", invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap())
	}
	return &usageError{err, "see " + command + " --help"}
}

// meantFlag names the flag that an unknown one may stand for.
func meantFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || len(unknown.GetSpecifiedName()) < 2 {
		return err
	}
	if meant := nearFlag(cmd, unknown.GetSpecifiedName()); meant != "" {
		return fmt.Errorf("%w; did you mean %s?", err, meant)
	}
	return err
}

// nearFlag spells the flag that a name may stand for, "" for none.
func nearFlag(cmd *cobra.Command, name string) string {
	// What other tools call them.
	meant := map[string]string{"top-k": "top", "topk": "top", "num-samples": "samples", "n-samples": "samples", "model-name": "model", "k": "top", "whole-words": "fill"}[name]
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if meant == "" && !flag.Hidden && distance(flag.Name, name) <= 1+len(name)/5 {
			meant = flag.Name
		}
	})
	flag := cmd.Flags().Lookup(meant)
	switch {
	case flag == nil:
		return ""
	case flag.Shorthand != "":
		return "-" + flag.Shorthand + ", --" + flag.Name
	}
	return "--" + flag.Name
}

// distance is how many letters two words differ by (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// optionError gives a refused option the form of a flag's error; other errors
// pass.
func optionError(err error) error {
	var option *infill.OptionError
	switch {
	case !errors.As(err, &option):
	case option.Misfit:
		return &misfitError{flagged(err)}
	default:
		return &usageError{flagged(err), ""}
	}
	return err
}

// flagged spells an option as the flag it is.
func flagged(err error) error {
	var option *infill.OptionError
	if errors.As(err, &option) {
		return fmt.Errorf("--%s", option.Error())
	}
	return err
}

// lineError marks what is wrong with the options of a line of JSON, so that other lines may do,
// and calls an option as the line does.
func lineError(line object.Object, err error) error {
	var option *infill.OptionError
	if !errors.As(err, &option) {
		return err
	}
	for _, f := range line {
		if infill.Find(f.Key).Name == option.Option {
			return &misfitError{fmt.Errorf("%s: %s", f.Key, option.Reason)}
		}
	}
	return &misfitError{flagged(err)}
}

// misfitError is an option that one template cannot be filled with.
type misfitError struct{ error }

// isInput tells whether an error lies in a text that the user gave, so that
// other texts may do.
func isInput(err error) bool {
	var input *tokenize.InputError
	var misfit *misfitError
	return errors.As(err, &input) || errors.As(err, &misfit)
}

// shortened leaves out the middle of a text that nobody would read: what an error quotes of
// a file may have any length.
func shortened(text string) string {
	const most = 1500 // bytes
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most/2], "") + " … " + strings.ToValidUTF8(text[len(text)-most/2:], "")
}
