// Package cli is what commands share: errors, flags, input, output, progress.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"infill/cmd/infill/internal/terminal"
	"infill/internal/ask"
	"infill/internal/lines"
	"infill/internal/rawjson"
	"infill/metrics"
	"infill/tokenize"
)

// These are the exit codes. The help topic exit-codes explains them to users.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	exitRejects     = 3
	ExitInterrupted = 130
)

// UsageError is the error of a wrong command line. The exit code is 2.
type UsageError struct {
	Err  error
	Hint string
}

func Usagef(format string, args ...any) error { return &UsageError{Err: fmt.Errorf(format, args...)} }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Failure is an error with advice on what to do. The exit code is 1.
type Failure struct {
	Err  error
	Hint string
}

func (e *Failure) Error() string { return e.Err.Error() }
func (e *Failure) Unwrap() error { return e.Err }

// ErrReported ends a command that has already printed its errors. The exit code is 1.
var ErrReported = errors.New("errors were reported")

func Report(w io.Writer, err error) int {
	code := ExitFailed
	hint := ""
	var usage *UsageError
	var misfit *MisfitError
	var failed *Failure
	var written *OutputError
	switch {
	case err == nil:
		return ExitDone
	case errors.Is(err, ErrReported):
		return ExitFailed
	case errors.Is(err, ErrRejects):
		return exitRejects
	case errors.As(err, &written) && errors.Is(err, syscall.EPIPE):
		// The reader of the result has closed the pipe, as in `infill ... | head -1`.
		return ExitDone
	case errors.Is(err, context.Canceled):
		PrintError(w, errors.New("interrupted"), "")
		return ExitInterrupted
	case errors.As(err, &usage):
		code = ExitUsage
		hint = usage.Hint
	case errors.As(err, &misfit):
		code = ExitUsage
	case errors.As(err, &failed):
		hint = failed.Hint
	}
	PrintError(w, err, hint)
	return code
}

// PrintError prints a line with the error, and one with a hint if there is one.
// It escapes what could break lines or control the terminal.
func PrintError(w io.Writer, err error, hint string) {
	fmt.Fprintf(w, "infill: %s\n", lines.Short(OneLine(err.Error())))
	if hint != "" {
		fmt.Fprintf(w, "hint: %s\n", OneLine(hint))
	}
}

func Warn(s *terminal.Streams, quiet bool, format string, args ...any) {
	if !quiet {
		fmt.Fprintf(s.Err, "infill: warning: %s\n", lines.Short(OneLine(fmt.Sprintf(format, args...))))
	}
}

// Describe turns an error about a text or an option into one with the names of
// flags, and with the exit code of wrong usage. It returns other errors unchanged.
func Describe(err error) error {
	var metric *metrics.OptionError
	if errors.As(err, &metric) {
		return Usagef("--%s", metric.Error())
	}
	blame, line := ask.Describe(err, ask.Flags)
	var input *tokenize.InputError
	switch {
	case blame == ask.BlameOptions:
		return &UsageError{line, ""}
	case blame == ask.BlameText && !errors.As(err, &input):
		return &MisfitError{line}
	}
	return line
}

// DescribeLine is Describe for a line of JSON, whose other lines are still done.
// The error names the options of the line by the keys there.
func DescribeLine(line rawjson.Object, err error) error {
	blame, told := ask.Describe(err, func(option string) string {
		for _, f := range line {
			known, ok := ask.Find(f.Key)
			if ok && known.Name == option {
				return f.Key
			}
		}
		return ask.Flags(option)
	})
	var input *tokenize.InputError
	if blame == ask.BlameProgram || errors.As(err, &input) {
		return told
	}
	return &MisfitError{told}
}

// MisfitError is the error of an option that does not fit one template.
type MisfitError struct{ Err error }

func (e *MisfitError) Error() string { return e.Err.Error() }
func (e *MisfitError) Unwrap() error { return e.Err }

// isInput reports whether one text is to blame, and others can still be done.
func isInput(err error) bool {
	var input *tokenize.InputError
	var misfit *MisfitError
	return errors.As(err, &input) || errors.As(err, &misfit)
}

// ErrRejects ends a command that has left lines out of its result and has printed why.
var ErrRejects = errors.New("lines were left out")
