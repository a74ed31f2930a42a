// Package corpus reads evaluation text in its usual forms, and selects and masks sentences with a seed.
//
// Nothing is changed silently: what is left out is counted with its reason and first line, what is rewritten is
// counted, and both are data beside the result. A file is known by the SHA-256 of its bytes.
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

	"golang.org/x/text/encoding/charmap"
	encodingunicode "golang.org/x/text/encoding/unicode"
)

// Form says what a line of a file is.
type Form string

const (
	// Auto is WikiText for files named wiki.*.tokens or wiki.*.raw and for files with a WikiText heading among their
	// first lines that hold text, and Lines for all others. It never chooses Prose.
	Auto Form = "auto"
	// Lines has one sentence a line: nyu-dl/bert-gen's *.5k.txt and any plain text prepared that way.
	Lines Form = "lines"
	// WikiText is the form of WikiText-2 and WikiText-103 (Merity et al. 2016), with <unk> or raw: a paragraph a line,
	// cut into words, headings between equals signs. Headings are left out, paragraphs are cut into sentences.
	WikiText Form = "wikitext"
	// Prose is running text, wrapped or not, paragraphs separated by blank lines, cut into sentences by Unicode's rules
	// (UAX #29), though never before a small letter. They take the full stop of an abbreviation for an end where a
	// capital follows.
	Prose Form = "prose"
)

// Forms lists the forms, the default first.
func Forms() []Form { return []Form{Auto, Lines, WikiText, Prose} }

// Encoding is that of a file.
type Encoding string

const (
	// Detect takes a byte order mark's word for it, and else UTF-8.
	Detect      Encoding = "detect"
	UTF8        Encoding = "utf-8"
	UTF16       Encoding = "utf-16" // byte order by mark, little-endian without one
	Windows1252 Encoding = "windows-1252"
	Latin1      Encoding = "iso-8859-1"
)

// Encodings lists the encodings, the default first.
func Encodings() []Encoding { return []Encoding{Detect, UTF8, UTF16, Windows1252, Latin1} }

// Markers says what becomes of the corpora's own markers in the text that is shown to a model. [Sentence.Raw] keeps
// them.
type Markers string

const (
	// BertGen, the default: @@UNKNOWN@@ and <unk> become [UNK], @-@ becomes -, `` and '' become ".
	BertGen Markers = "bert-gen"
	// DISCS is the same but leaves `` and '' out, as the data set of google-research/discs does.
	DISCS Markers = "discs"
)

// known refuses what is not in a list.
func known[T ~string](what string, value T, all []T) error {
	if slices.Contains(all, value) {
		return nil
	}
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = string(v)
	}
	return fmt.Errorf("unknown %s %q: choose one of %s", what, value, strings.Join(names, ", "))
}

// Corpus is a text cut into sentences.
type Corpus struct {
	Name      string // chosen by the caller, "tbc"
	SHA256    string // hex, of the file's bytes
	Form      Form   // never Auto
	Encoding  Encoding
	Lines     int // of the file
	Sentences []Sentence
	// Skipped counts what was left out while reading.
	Skipped []Skip
	Path    string
	// Reference says that no sentence is taken of it: it is compared with alone.
	Reference bool
}

// LeftOut says line by line what was left out while reading, headings excepted.
func (c *Corpus) LeftOut() (list []string) {
	for _, skip := range c.Skipped {
		if skip.Reason != SkipHeading {
			list = append(list, "left out: "+List([]Skip{skip}))
		}
	}
	return list
}

// Sentence is one sentence of a corpus.
type Sentence struct {
	Line int    // in the file, from 1, where the sentence begins
	Raw  string // as it stands there, without white space around it; WikiText's words have blanks between them
}

// Skip counts what was left out for one reason.
type Skip struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
	Line   int    `json:"line"` // of the first one met
}

type skips []Skip

func (s skips) index(reason string) int {
	return slices.IndexFunc(s, func(skip Skip) bool { return skip.Reason == reason })
}

func (s *skips) add(reason string, line int) {
	if i := s.index(reason); i >= 0 {
		(*s)[i].Count++
	} else {
		*s = append(*s, Skip{reason, 1, line})
	}
}

func (s skips) count(reason string) int {
	if i := s.index(reason); i >= 0 {
		return s[i].Count
	}
	return 0
}

// Reasons for leaving a line or a sentence out while reading. Blank lines are no loss and are not counted.
const (
	SkipHeading     = "heading"
	SkipEncoding    = "not valid in its encoding"
	SkipControl     = "control character"
	SkipReplacement = "replacement character U+FFFD, left by an earlier wrong conversion"
	SkipSpecial     = "special token of the model in the text"
)

// Raw returns the sentences as they stand in the file, for use as references.
func (c *Corpus) Raw() []string {
	raw := make([]string, len(c.Sentences))
	for i, s := range c.Sentences {
		raw[i] = s.Raw
	}
	return raw
}

// Read reads a corpus: what r gives, or where that is nil the file at path, which names the text in errors and tells
// its form. A file of which more than a tenth of the lines are not valid in its encoding is refused; less is left out
// and counted.
func Read(name, path string, r io.Reader, form Form, encoding Encoding) (*Corpus, error) {
	if r == nil {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("corpus %s: %w", name, err)
		}
		defer file.Close()
		r = file
	}
	form, encoding = cmp.Or(form, Auto), cmp.Or(encoding, Detect)
	if err := errors.Join(known("form", form, Forms()), known("encoding", encoding, Encodings())); err != nil {
		return nil, err
	}
	fail := func(err error) (*Corpus, error) { return nil, fmt.Errorf("corpus %s (%s): %w", name, path, err) }
	var content strings.Builder // which gives its text without a copy
	hash := sha256.New()
	if _, err := io.Copy(io.MultiWriter(&content, hash), r); err != nil {
		return fail(err)
	}
	text, encoding, err := decode(content.String(), encoding)
	if err != nil {
		return fail(err)
	}
	c := &Corpus{Name: name, Path: path, SHA256: fmt.Sprintf("%x", hash.Sum(nil)), Encoding: encoding}
	var skipped skips
	if c.Form = form; form == Auto {
		c.Form = detect(path, text)
	}
	texts, split := 0, splitter{form: c.Form}
	emit := func(line int, raw string) {
		if reason := unusable(raw); reason != "" {
			skipped.add(reason, line)
		} else {
			c.Sentences = append(c.Sentences, Sentence{line, raw})
		}
	}
	for line := range strings.Lines(text) {
		c.Lines++
		if !utf8.ValidString(line) {
			skipped.add(SkipEncoding, c.Lines)
			texts, line = texts+1, ""
		} else if strings.TrimSpace(line) != "" {
			texts++
		}
		split.line(c.Lines, line, &skipped, emit)
	}
	split.paragraph(emit)
	if c.Skipped = skipped; texts == 0 {
		return fail(errors.New("the file is empty"))
	}
	if bad := skipped.count(SkipEncoding); bad*10 > texts {
		return fail(fmt.Errorf("%d of %d lines are not valid %s: name the encoding (%s, %s)", bad, texts, encoding,
			Windows1252, UTF16))
	}
	if len(c.Sentences) == 0 {
		hint := ""
		if skipped.count(SkipControl) > 0 && encoding == UTF8 {
			hint = "; text in UTF-16 without a byte order mark looks so: name the encoding (" + string(UTF16) + ")"
		}
		return fail(fmt.Errorf("no sentence left: %s%s", List(c.Skipped), hint))
	}
	return c, nil
}

// decode returns the text as UTF-8 without a byte order mark.
func decode(text string, encoding Encoding) (string, Encoding, error) {
	if encoding == Detect {
		encoding = UTF8
		if strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
			encoding = UTF16
		}
	}
	var err error
	switch encoding {
	case UTF8:
		text = strings.TrimPrefix(text, "\ufeff")
	case UTF16:
		text, err = encodingunicode.UTF16(encodingunicode.LittleEndian,
			encodingunicode.UseBOM).NewDecoder().String(text)
	case Windows1252:
		text, err = charmap.Windows1252.NewDecoder().String(text)
	case Latin1:
		text, err = charmap.ISO8859_1.NewDecoder().String(text)
	}
	return text, encoding, err
}

// unusable says why a sentence can be no template, or nothing.
func unusable(raw string) string {
	switch {
	case strings.ContainsFunc(raw, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }):
		return SkipControl
	case strings.ContainsRune(raw, utf8.RuneError):
		return SkipReplacement
	}
	for _, token := range []string{"[MASK", "[CLS]", "[SEP]", "[PAD]"} {
		if strings.Contains(raw, token) {
			return SkipSpecial
		}
	}
	return ""
}

// List names the counts in one line.
func List(skipped []Skip) string {
	parts := make([]string, len(skipped))
	for i, s := range skipped {
		parts[i] = fmt.Sprintf("%d × %s (such as line %d)", s.Count, s.Reason, s.Line)
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing was left out")
}
