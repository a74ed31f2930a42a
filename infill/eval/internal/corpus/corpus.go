// Package corpus reads evaluation text in its usual forms, and selects and masks sentences with a seed.
//
// Nothing is changed silently: what is left out is counted with its reason and first line, what is rewritten is counted, and both are data
// beside the result. A file is known by the SHA-256 of its bytes.
package corpus

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	encodingunicode "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Form says what a line of a file is.
type Form string

const (
	// Auto is WikiText for files named wiki.*.tokens or wiki.*.raw and for files with a WikiText heading among their first lines that
	// hold text, and Lines for all others. It never chooses Prose.
	Auto Form = "auto"
	// Lines has one sentence a line: nyu-dl/bert-gen's *.5k.txt and any plain text prepared that way.
	Lines Form = "lines"
	// WikiText is the form of WikiText-2 and WikiText-103 (Merity et al. 2016), with <unk> or raw: a paragraph a line, cut into words,
	// headings between equals signs. Headings are left out, paragraphs are cut into sentences.
	WikiText Form = "wikitext"
	// Prose is running text, wrapped or not, paragraphs separated by blank lines, cut into sentences by Unicode's rules (UAX #29), though
	// never before a small letter. They take the full stop of an abbreviation for an end where a capital follows.
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

// Markers says what becomes of the corpora's own markers in the text that is shown to a model. [Sentence.Raw] keeps them.
type Markers string

const (
	// BertGen, the default: @@UNKNOWN@@ and <unk> become [UNK], @-@ becomes -, `` and '' become ".
	BertGen Markers = "bert-gen"
	// DISCS is the same but leaves `` and '' out, as the data set of google-research/discs does.
	DISCS Markers = "discs"
)

// settled gives form and encoding their defaults, and refuses others than there are.
func settled(form Form, encoding Encoding) (Form, Encoding, error) {
	form, encoding = cmp.Or(form, Auto), cmp.Or(encoding, Detect)
	return form, encoding, errors.Join(known("form", form, Forms()), known("encoding", encoding, Encodings()))
}

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
}

// Sentence is one sentence of a corpus.
type Sentence struct {
	Line int    // in the file, from 1, where the sentence begins
	Raw  string // as it stands there, without white space around it
}

// Skip counts what was left out for one reason.
type Skip struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
	Line   int    `json:"line"` // of the first one met
}

type skips struct{ list []Skip }

func (s *skips) add(reason string, line int) {
	for i := range s.list {
		if s.list[i].Reason == reason {
			s.list[i].Count++
			return
		}
	}
	s.list = append(s.list, Skip{reason, 1, line})
}

func (s *skips) count(reason string) int {
	for _, skip := range s.list {
		if skip.Reason == reason {
			return skip.Count
		}
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

// Open reads the file at path.
func Open(name, path string, form Form, encoding Encoding) (*Corpus, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("corpus %s: %w", name, err)
	}
	defer file.Close()
	return Read(name, path, file, form, encoding)
}

// Read reads a corpus; path only serves to detect the form and to name the file in errors. A file of which more than a tenth of the lines
// are not valid in its encoding is refused; less is left out and counted.
func Read(name, path string, r io.Reader, form Form, encoding Encoding) (*Corpus, error) {
	form, encoding, err := settled(form, encoding)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*Corpus, error) { return nil, fmt.Errorf("corpus %s (%s): %w", name, path, err) }
	hash := sha256.New()
	buffered := bufio.NewReaderSize(io.TeeReader(r, hash), 1<<16)
	decoded, encoding, err := decode(buffered, encoding)
	if err != nil {
		return fail(err)
	}
	c := &Corpus{Name: name, Form: form, Encoding: encoding}
	var skipped skips
	lines, texts := bufio.NewReaderSize(decoded, 1<<16), 0
	split := splitter{form: form}
	if split.form == Auto {
		split.form = formByName(path)
	}
	emit := func(line int, raw string) {
		if reason := unusable(raw); reason != "" {
			skipped.add(reason, line)
		} else {
			c.Sentences = append(c.Sentences, Sentence{line, raw})
		}
	}
	for {
		text, err := lines.ReadString('\n')
		if err != nil && err != io.EOF {
			return fail(fmt.Errorf("line %d: %w", c.Lines+1, err))
		}
		end := err == io.EOF
		if end && text == "" {
			break
		}
		c.Lines++
		switch {
		case !utf8.ValidString(text):
			texts++
			skipped.add(SkipEncoding, c.Lines)
			split.line(c.Lines, "", &skipped, emit)
		default:
			texts += indicator(strings.TrimSpace(text) != "")
			split.line(c.Lines, text, &skipped, emit)
		}
		if end {
			break
		}
	}
	split.flush(emit)
	if _, err := io.Copy(io.Discard, buffered); err != nil {
		return fail(err)
	}
	c.Form, c.Skipped, c.SHA256 = split.form, skipped.list, hex.EncodeToString(hash.Sum(nil))
	if c.Form == Auto {
		c.Form = Lines
	}
	if texts == 0 {
		return fail(errors.New("the file is empty"))
	}
	if bad := skipped.count(SkipEncoding); bad*10 > texts {
		return fail(fmt.Errorf("%d of %d lines are not valid %s: name the encoding (%s, %s)", bad, texts, encoding, Windows1252, UTF16))
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
func decode(r *bufio.Reader, encoding Encoding) (io.Reader, Encoding, error) {
	start, err := r.Peek(3)
	if err != nil && err != io.EOF {
		return nil, "", err
	}
	if encoding == Detect {
		encoding = UTF8
		if bytes.HasPrefix(start, []byte{0xff, 0xfe}) || bytes.HasPrefix(start, []byte{0xfe, 0xff}) {
			encoding = UTF16
		}
	}
	switch encoding {
	case UTF16:
		return transform.NewReader(r, encodingunicode.UTF16(encodingunicode.LittleEndian, encodingunicode.UseBOM).NewDecoder()), encoding, nil
	case Windows1252:
		return transform.NewReader(r, charmap.Windows1252.NewDecoder()), encoding, nil
	case Latin1:
		return transform.NewReader(r, charmap.ISO8859_1.NewDecoder()), encoding, nil
	}
	if bytes.HasPrefix(start, []byte("\ufeff")) {
		if _, err := r.Discard(3); err != nil {
			return nil, "", err
		}
	}
	return r, encoding, nil
}

var wikiName = regexp.MustCompile(`^wiki\..*(tokens|raw)$`)

func formByName(path string) Form {
	if wikiName.MatchString(filepath.Base(path)) {
		return WikiText
	}
	return Auto
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

func indicator(b bool) int {
	if b {
		return 1
	}
	return 0
}
