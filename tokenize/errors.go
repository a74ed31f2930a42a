package tokenize

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Fault is a constant error for one kind of bad input; compare with errors.Is.
type Fault string

// Error returns the name of the fault.
func (f Fault) Error() string { return string(f) }

// These are the faults of texts and templates. An *InputError wraps one of them.
const (
	ErrNoBlank        Fault = "no blank in the template"
	ErrOnlyBlanks     Fault = "nothing but blanks in the template"
	ErrEmpty          Fault = "no text"
	errInvalidUTF8    Fault = "text is not valid UTF-8"
	errControl        Fault = "control character in the text"
	errSpecialToken   Fault = "special token in the text"
	ErrTooLong        Fault = "text too long"
	errBlankSyntax    Fault = "malformed blank"
	ErrBlankLength    Fault = "blank of unknown length"
	errTooManyLengths Fault = "too many combinations of lengths"
	ErrUnwantedBlank  Fault = "blank in a whole text"
	errUnknownWord    Fault = "word outside the vocabulary"
)

// These are the faults of a vocabulary or a tokenizer file. A *vocabularyError
// wraps one of them.
const (
	errEmptyVocabulary  Fault = "empty vocabulary"
	errLargeVocabulary  Fault = "vocabulary too large"
	errDuplicateToken   Fault = "duplicate token"
	errMissingToken     Fault = "missing special token"
	errMalformed        Fault = "malformed tokenizer file"
	errUnsupported      Fault = "unsupported tokenizer"
	errMissingTokenizer Fault = "no tokenizer files"
)

// InputError says what is wrong with a text, where, and what to do about it.
// Commands report it as wrong usage.
type InputError struct {
	Fault  Fault  // the kind of error, for errors.Is
	Offset int    // byte offset in the text, or -1 if the fault has no single place
	Detail string // what is wrong, and what to do about it
}

func inputFault(fault Fault, offset int, format string, arguments ...any) error {
	return &InputError{Fault: fault, Offset: offset, Detail: fmt.Sprintf(format, arguments...)}
}

// Error returns one line: the fault, its byte offset and the advice.
func (e *InputError) Error() string {
	if e.Offset < 0 {
		return joined(string(e.Fault), e.Detail)
	}
	return joined(fmt.Sprintf("%s at byte offset %d", e.Fault, e.Offset), e.Detail)
}

func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": ")
}

// Unwrap returns the fault.
func (e *InputError) Unwrap() error { return e.Fault }

// vocabularyError says what is wrong with the tokenizer files of a bundle.
type vocabularyError struct {
	Fault  Fault  // the kind of error, for errors.Is
	File   string // file in the bundle, perhaps with a line; "" for a vocabulary given to New
	Detail string // what is wrong, and what to do about it
}

// fileFault returns an error about a file of a bundle.
func fileFault(file string, fault Fault, format string, arguments ...any) error {
	return &vocabularyError{Fault: fault, File: file, Detail: fmt.Sprintf(format, arguments...)}
}

// nameFile writes the file that was really read for tokenizer.json in an error.
func nameFile(err error, name string) error {
	var vocabularyErr *vocabularyError
	if errors.As(err, &vocabularyErr) && vocabularyErr.File == tokenizerFile {
		vocabularyErr.File = name
	}
	return err
}

// Error returns one line: the file, the fault and the detail.
func (e *vocabularyError) Error() string {
	return joined(e.File, string(e.Fault), e.Detail)
}

// Unwrap returns the fault.
func (e *vocabularyError) Unwrap() error { return e.Fault }

var _, _, _ error = Fault(""), (*InputError)(nil), (*vocabularyError)(nil)
