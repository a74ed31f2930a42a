package infill

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"

	"infill/tokenize"
)

// Request says what to fill, and how. The zero value of every field but Template
// is its default.
type Request struct {
	Template string
	// Blank is a further spelling of a blank, beside [MASK], ___, <mask> and the
	// model's own mask; "" adds no spelling.
	Blank string `option:"blank" word:"TEXT" help:"a further spelling of a blank, beside [MASK], ___ and <mask>"`
	// Context is a text that the model reads before the template, as
	// [CLS] context [SEP] text [SEP]; "" for no context. It changes P.
	Context string `option:"context" word:"TEXT" help:"a text that the model reads before each template: the sentence before, a definition, the original"`
	// Fit says which fills are seen; it changes no probability.
	Fit Fit
	// Top is the number of fills to keep.
	Top int `option:"top" default:"5" minimum:"1" maximum:"65536" word:"N" help:"fills to print"`
	// Method finds the fills; nil is Search{}.
	Method Method
	// Seed starts all random numbers. 0 is a seed like any other: [NewSeed] returns a
	// random one.
	Seed uint64 `option:"seed" word:"N" help:"start of all random numbers; drawn and printed when not given"`
	// Originals are the words that the blanks replaced, if known: a fill takes
	// the capitals of its original.
	Originals []string
}

// NewSeed returns a random seed from the operating system. The seed has only 32
// bits, so that a user can retype it.
func NewSeed() uint64 {
	var b [4]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails, see package crypto/rand
	return uint64(binary.LittleEndian.Uint32(b[:]))
}

// Settled returns the request with the defaults of all fields written out.
func (r Request) Settled() Request {
	declared.Settle(&r.Fit)
	declared.Settle(&r)
	if r.Method == nil {
		r.Method = Search{}
	}
	r.Method = r.Method.settled()
	return r
}

// check returns an *OptionError for a value of a settled request that cannot be
// used with any template. m is the model, or the zero value for any model.
func (r *Request) check(m Model) error {
	if len(r.Blank) > tokenize.MaxSpelling {
		return wrong("blank", "%d bytes, and a spelling of a blank has %d at most", len(r.Blank), tokenize.MaxSpelling)
	}
	return cmp.Or(checkValues(declared, r.Fit), checkValues(declared, *r),
		checkValues(declared, r.Method), r.Method.check(r, m))
}

// Check returns an *OptionError for a value that cannot be used with any template.
func (r Request) Check() error {
	r = r.Settled()
	return r.check(Model{})
}

// Check does what [Request.Check] does, for templates of the filler's model.
func (f *Filler) Check(r Request) error {
	r = r.Settled()
	return r.check(f.Model())
}
