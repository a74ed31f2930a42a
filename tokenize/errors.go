package tokenize

import (
	"fmt"
	"strings"
)

// Fault is a constant error that names one kind of bad input or bad vocabulary; compare with errors.Is.
type Fault string

// Error returns the name of the fault.
func (f Fault) Error() string { return string(f) }

var _ error = Fault("")

// What can be wrong with a text or a template; found in an [*InputError].
const (
	ErrNoSlot         Fault = "no slot in the template"
	ErrOnlySlots      Fault = "nothing but slots in the template"
	ErrEmpty          Fault = "no text"
	ErrInvalidUTF8    Fault = "text is not valid UTF-8"
	ErrControl        Fault = "control character in the text"
	ErrSpecialToken   Fault = "special token in the text"
	ErrTooLong        Fault = "text too long"
	ErrSlotSyntax     Fault = "malformed slot"
	ErrSlotLength     Fault = "slot of unknown length"
	ErrTooManyLengths Fault = "too many combinations of lengths"
	ErrUnwantedSlot   Fault = "slot in a whole text"
	ErrUnknownWord    Fault = "word outside the vocabulary"
)

// What can be wrong with a vocabulary or a tokenizer file; found in a [*VocabularyError].
const (
	ErrEmptyVocabulary  Fault = "empty vocabulary"
	ErrLargeVocabulary  Fault = "vocabulary too large"
	ErrDuplicateToken   Fault = "duplicate token"
	ErrMissingToken     Fault = "missing special token"
	ErrMalformed        Fault = "malformed tokenizer file"
	ErrUnsupported      Fault = "unsupported tokenizer"
	ErrMissingTokenizer Fault = "no tokenizer files"
)

// InputError says what is wrong with a text, where, and what to do about it. A command maps it to wrong usage.
type InputError struct {
	Fault  Fault  // which error; errors.Is finds it
	Offset int    // byte offset in the text, -1 where the fault has no one place
	Detail string // what is there, and what to do
}

// Error returns one line: the fault, its byte offset and the advice.
func (e *InputError) Error() string {
	var line strings.Builder
	line.WriteString(string(e.Fault))
	if e.Offset >= 0 {
		fmt.Fprintf(&line, " at byte offset %d", e.Offset)
	}
	if e.Detail != "" {
		line.WriteString(": " + e.Detail)
	}
	return line.String()
}

// Unwrap returns the fault.
func (e *InputError) Unwrap() error { return e.Fault }

// VocabularyError says what is wrong with a vocabulary or with the tokenizer files of a bundle.
type VocabularyError struct {
	Fault  Fault  // which error; errors.Is finds it
	File   string // file inside the bundle, "" for a vocabulary given to New
	Line   int    // line of a vocab.txt, from 1; 0 where the fault has no one line
	Detail string // what is there, and what to do
}

// Error returns one line: file, line, the fault and the detail.
func (e *VocabularyError) Error() string {
	var line strings.Builder
	if e.File != "" {
		line.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&line, " line %d", e.Line)
		}
		line.WriteString(": ")
	}
	line.WriteString(string(e.Fault))
	if e.Detail != "" {
		line.WriteString(": " + e.Detail)
	}
	return line.String()
}

// Unwrap returns the fault.
func (e *VocabularyError) Unwrap() error { return e.Fault }

var (
	_ error = (*InputError)(nil)
	_ error = (*VocabularyError)(nil)
)
