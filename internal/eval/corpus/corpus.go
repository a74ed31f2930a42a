// Package corpus reads evaluation text in its usual forms, and selects and
// masks sentences with a seed.
//
// Every change to a text is reported. The package counts the sentences that it
// leaves out, with the reason and the first line, and the markers that it
// replaces. It identifies a file by the SHA-256 of its bytes.
package corpus

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"infill/internal/lines"
)

// Kind is how a corpus file is written.
type Kind string

const (
	// Lines has one sentence on each line, as in nyu-dl/bert-gen's *.5k.txt or
	// in any plain text prepared so.
	Lines Kind = "lines"
	// WikiText is the kind of WikiText-2 and WikiText-103 (Merity et al. 2016),
	// with <unk> or raw. A line is a heading between equals signs, which Read
	// leaves out, or a paragraph of words, which Read cuts into sentences. A
	// file has this form if its name is wiki.*.tokens or wiki.*.raw, or if a
	// heading is among its first lines of text.
	WikiText Kind = "wikitext"
)

// Markers says how to replace a corpus's own markers in the text for a model.
// [Sentence.Raw] keeps the markers.
type Markers string

const (
	// BertGen, the default, replaces @@UNKNOWN@@ and <unk> by [UNK], @-@ by -,
	// and `` and '' by ".
	BertGen Markers = "bert-gen"
	// DISCS is BertGen, but drops `` and '', as in the data set of google-research/discs.
	DISCS Markers = "discs"
)

type Corpus struct {
	Name      string // as the caller names it, such as "tbc"
	SHA256    string // of the file's bytes, in hexadecimal
	Form      Kind
	Lines     int // number of lines in the file
	Blank     int // those without text
	Sentences []Sentence
	Skipped   []Skip
	Path      string
	// Reference reports whether the corpus is only a reference for scores, so
	// that none of its sentences is masked.
	Reference bool
}

// LeftOut returns a line for each reason why Read left out text, with its
// count. It does not list headings.
func (c *Corpus) LeftOut() (list []string) {
	for _, skip := range c.Skipped {
		if skip.Reason != SkipHeading {
			list = append(list, "left out: "+List([]Skip{skip}))
		}
	}
	return list
}

type Sentence struct {
	Line int    // line of the file, from 1, on which the sentence begins
	Raw  string // text of the file without surrounding white space; for WikiText, words with single spaces between them
}

// Skip counts the lines or sentences that were left out for one reason.
type Skip struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
	Line   int    `json:"line"` // first line left out for this reason
}

type skips []Skip

func (s skips) index(reason string) int {
	return slices.IndexFunc(s, func(skip Skip) bool { return skip.Reason == reason })
}

func (s *skips) add(reason string, line int) {
	i := s.index(reason)
	if i >= 0 {
		(*s)[i].Count++
	} else {
		*s = append(*s, Skip{reason, 1, line})
	}
}

func (s skips) count(reason string) int {
	i := s.index(reason)
	if i >= 0 {
		return s[i].Count
	}
	return 0
}

// These are the reasons why Read leaves out a line that is not empty.
const (
	SkipHeading     = "heading"
	SkipEncoding    = "not valid UTF-8"
	SkipControl     = "control character"
	SkipReplacement = "replacement character U+FFFD, left by an earlier wrong conversion"
	SkipSpecial     = "special token of the model in the text"
)

// Raw returns all sentences with the text of the file, for use as references.
func (c *Corpus) Raw() []string {
	raw := make([]string, len(c.Sentences))
	for i, s := range c.Sentences {
		raw[i] = s.Raw
	}
	return raw
}

// largest is the largest size of a corpus in bytes, a few times the size of WikiText-103.
var largest int64 = 2 << 30

// Read reads a corpus in UTF-8 from r or, if r is nil, from the file at path,
// which may be compressed. The corpus's SHA-256 is that of the text.
// form "" is found by the name and the first lines. Errors contain path. If more
// than a tenth of the lines is not valid UTF-8, Read returns an error; otherwise it
// leaves these lines out and counts them.
func Read(name, path string, r io.Reader, form Kind) (*Corpus, error) {
	if r == nil {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("corpus %s: %w", name, err)
		}
		defer file.Close()
		r, err = lines.Unpack(path, file)
		if err != nil {
			return nil, fmt.Errorf("corpus %s (%s): %w", name, path, err)
		}
	}
	fail := func(err error) (*Corpus, error) { return nil, fmt.Errorf("corpus %s (%s): %w", name, path, err) }
	var content strings.Builder // String returns the text without a copy
	hash := sha256.New()
	switch n, err := io.Copy(io.MultiWriter(&content, hash), io.LimitReader(r, largest+1)); {
	case err != nil:
		return fail(err)
	case n > largest:
		return fail(fmt.Errorf("more than %d bytes: take a part of it", largest))
	}
	text := strings.TrimPrefix(content.String(), lines.ByteOrderMark)
	c := &Corpus{Name: name, Path: path, SHA256: fmt.Sprintf("%x", hash.Sum(nil)), Form: form}
	if form == "" {
		c.Form = detect(path, text)
	}
	var skipped skips
	emit := func(line int, raw string) {
		reason := unusable(raw)
		if reason != "" {
			skipped.add(reason, line)
		} else {
			c.Sentences = append(c.Sentences, Sentence{line, raw})
		}
	}
	texts := 0 // number of lines with text
	for line := range strings.Lines(text) {
		c.Lines++
		line = strings.TrimSpace(line)
		texts += min(len(line), 1)
		if strings.Contains(line, "\r") {
			return fail(fmt.Errorf("line %d: %w", c.Lines, lines.ErrCarriageReturn))
		}
		switch {
		case line == "":
			c.Blank++
		case !utf8.ValidString(line):
			skipped.add(SkipEncoding, c.Lines)
		case c.Form == WikiText && isHeading(line):
			skipped.add(SkipHeading, c.Lines)
		case c.Form == WikiText:
			splitTokens(line, func(raw string) { emit(c.Lines, raw) })
		default:
			emit(c.Lines, line)
		}
	}
	c.Skipped = skipped
	const remedy = "write the file in UTF-8: iconv -f NAME-OF-ITS-ENCODING -t utf-8"
	switch bad := skipped.count(SkipEncoding); {
	case texts == 0:
		return fail(errors.New("the file is empty"))
	case bad*10 > texts:
		return fail(fmt.Errorf("%d of %d lines are not valid UTF-8: %s", bad, texts, remedy))
	case len(c.Sentences) == 0 && skipped.count(SkipControl) > 0:
		return fail(fmt.Errorf("no sentence left: %s; text in UTF-16 looks so: %s", List(c.Skipped), remedy))
	case len(c.Sentences) == 0:
		return fail(fmt.Errorf("no sentence left: %s", List(c.Skipped)))
	}
	return c, nil
}

// unusable returns why a sentence is no text, or "" if it is.
func unusable(raw string) string {
	switch {
	case strings.ContainsFunc(raw, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }):
		return SkipControl
	case strings.ContainsRune(raw, utf8.RuneError):
		return SkipReplacement
	}
	return ""
}

// List returns the counts of skipped lines and sentences as one line of text.
func List(skipped []Skip) string {
	parts := make([]string, len(skipped))
	for i, s := range skipped {
		parts[i] = fmt.Sprintf("%d × %s (such as line %d)", s.Count, s.Reason, s.Line)
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing was left out")
}
