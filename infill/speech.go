package infill

import (
	"bytes"
	_ "embed"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"

	"infill/tokenize"
)

// partsOfSpeech are the values of the option pos.
var partsOfSpeech = []string{"noun", "verb", "adjective", "adverb"}

//go:embed speech.txt.gz
var speechFile []byte

// speech maps English words in lower case to their parts of speech, one letter for each. speech.py writes speechFile.
var speech = sync.OnceValue(func() map[string]string {
	reader, err := gzip.NewReader(bytes.NewReader(speechFile))
	if err != nil {
		panic(err) // only a broken build has another file
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		panic(err)
	}
	words := make(map[string]string, bytes.Count(text, []byte{'\n'}))
	for line := range strings.Lines(string(text)) {
		word, parts, _ := strings.Cut(strings.TrimSpace(line), " ")
		words[word] = parts
	}
	return words
})

// A spoken holds the parts of speech that a blank may take, and the letters that touch the blank in the template.
type spoken struct {
	parts       string // one letter for each part of speech, as in speech
	left, right string
}

// newSpoken returns the spoken for a blank. parts are the values of the option pos for the blank.
func newSpoken(t *tokenize.Template, b tokenize.Blank, parts []string) *spoken {
	s := &spoken{}
	for _, part := range parts {
		s.parts += string("nvar"[slices.Index(partsOfSpeech, part)])
	}
	other := func(r rune) bool { return !unicode.IsLetter(r) }
	if b.TouchesLeft {
		before := t.Text[:b.Start]
		at := strings.LastIndexFunc(before, other)
		if at >= 0 {
			_, size := utf8.DecodeRuneInString(before[at:])
			before = before[at+size:]
		}
		s.left = before
	}
	if b.TouchesRight {
		after := t.Text[b.End:]
		if at := strings.IndexFunc(after, other); at >= 0 {
			after = after[:at]
		}
		s.right = after
	}
	return s
}

// takes reports whether a word, with the letters left and right of the blank, can be one of the parts of speech.
func (s *spoken) takes(word string) bool {
	return strings.ContainsAny(speech()[strings.ToLower(s.left+word+s.right)], s.parts)
}
