package tokenize

import (
	"errors"
	"fmt"
	"iter"
	"regexp"
	"regexp/syntax"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
)

// These are bounds of the blank notation. A word of sixteen pieces is longer
// than any word in the evaluation texts.
const (
	// MaxPieces is the largest number of tokens of one blank.
	MaxPieces       = 16
	maxName         = 32
	maxPattern      = 200
	maxAlternatives = 64
	// longestBlank is more bytes than any blank has behind "[MASK". A ] beyond
	// them is not looked for, so that reading takes time in proportion to the text.
	longestBlank = maxPattern + maxName + 32
	// MaxSpelling is the largest size, in bytes, of a further spelling of a blank.
	MaxSpelling = 64
)

// notation is one blank as typed.
type notation struct {
	start, end       int // byte range in the text
	name             string
	minimum, maximum int // numbers of tokens
	low, high        int // minimum and maximum if the user typed a length, else 0
	pattern          string
}

const blankHelp = "write [MASK], [MASK:3], [MASK:1-3], [MASK=name] or [MASK~st..d]"

const opening = "[MASK"

// backslash turns a blank after it into text.
const backslash = '\\'

// shortestLine is the smallest number of underscores that make a blank.
const shortestLine = 3

// A spelling lists the texts that, apart from [MASK], are read as a blank.
type spelling struct {
	literal []string // the texts, the longest first
	line    int      // smallest number of underscores that make a blank; 0 if underscores are text
	special []string // tokens that are text after a backslash, and no blanks
}

// spelled returns the spellings that every template allows, and those in
// further; "" in further adds no spelling.
func spelled(further ...string) spelling {
	s := spelling{literal: []string{"<mask>"}, line: shortestLine}
	for _, text := range further {
		if text != "" && strings.Trim(text, "_") == "" {
			s.line = min(s.line, len(text))
		} else if text != "" && text != maskToken {
			s.literal = append(s.literal, text)
		}
	}
	slices.SortStableFunc(s.literal, func(a, b string) int { return len(b) - len(a) })
	return s
}

// mark is a blank or a special token in a text, with the backslashes before it.
type mark struct {
	start, end  int // byte range; end is -1 if the closing ] is missing
	backslashes int
	notation    bool // whether it begins with [MASK
	special     bool // whether it is no blank
}

func (m mark) escaped() bool { return m.backslashes%2 == 1 }

// escape is what backslashes before a mark do: the first of each two is
// dropped, and an odd one makes the mark text.
type escape struct {
	dropped    int // byte offset of the dropped backslashes, which end at start
	start, end int // byte range of the text; empty for a blank, which stays one
}

func within(escapes []escape, from, to int) []escape {
	first := sort.Search(len(escapes), func(i int) bool { return escapes[i].dropped >= from })
	escapes = escapes[first:]
	return escapes[:sort.Search(len(escapes), func(i int) bool { return escapes[i].end > to })]
}

// scanner finds the marks of a text. Its place only moves forward.
type scanner struct {
	spelling
	text        string
	at          int // all before it has been read
	backslashes int // which end at at
}

// next returns the next mark; ok is false at the end of the text. Of a mark that
// begins with [MASK, only that is read: see close.
func (s *scanner) next() (m mark, ok bool) {
	for s.at < len(s.text) {
		m, found := s.begins(s.text[s.at:])
		if found {
			m.start = s.at
			m.end += s.at
			m.backslashes = s.backslashes
			s.backslashes = 0
			s.at = m.end
			return m, true
		}
		s.backslashes++
		if s.text[s.at] != backslash {
			s.backslashes = 0
		}
		s.at++
	}
	return mark{}, false
}

// close reads a mark that begins with [MASK up to its ].
func (s *scanner) close(m *mark) {
	n := closing(s.text[s.at:min(len(s.text), s.at+longestBlank)])
	m.end = -1
	if n >= 0 {
		s.at += n + 1
		m.end = s.at
	}
}

// begins returns the mark with which a text begins, if there is one. Text that only
// looks like a blank ("[mask]", "[MASKED]") is text. Text that begins with "[MASK:",
// "[MASK=" or "[MASK~" must be a blank.
func (s spelling) begins(text string) (m mark, ok bool) {
	inside, found := strings.CutPrefix(text, opening)
	if found {
		return mark{end: len(opening), notation: true}, inside != "" && strings.Contains("]:=~", inside[:1])
	}
	for _, literal := range s.literal {
		if strings.HasPrefix(text, literal) {
			return mark{end: len(literal)}, true
		}
	}
	for _, token := range s.special {
		if strings.HasPrefix(text, token) {
			return mark{end: len(token), special: true}, true
		}
	}
	if s.line == 0 || text[0] != '_' {
		return mark{}, false
	}
	line := len(text) - len(strings.TrimLeft(text, "_"))
	return mark{end: line}, line >= s.line
}

func (s spelling) marks(text string) iter.Seq[mark] {
	return func(yield func(mark) bool) {
		marks := scanner{spelling: s, text: text}
		for {
			m, ok := marks.next()
			if !ok {
				return
			}
			if m.notation && !m.escaped() {
				marks.close(&m)
			}
			if !yield(m) {
				return
			}
		}
	}
}

// findBlanks returns the blanks of a text, leftmost first, and what backslashes
// do. Special tokens without a backslash are left to refuseSpecial.
func (s spelling) findBlanks(text string) (blanks []notation, escapes []escape, err error) {
	for m := range s.marks(text) {
		if m.backslashes > 0 && !(m.special && !m.escaped()) {
			e := escape{dropped: m.start - (m.backslashes+1)/2, start: m.start, end: m.start}
			if m.escaped() {
				e.end = m.end
			}
			escapes = append(escapes, e)
		}
		switch {
		case m.escaped() || m.special:
			continue
		case m.end < 0:
			return nil, nil, inputFault(errBlankSyntax, m.start, "the closing ] is missing within %d bytes; %s",
				longestBlank, blankHelp)
		}
		blank := notation{minimum: 1, maximum: 1}
		if m.notation {
			var problem string
			blank, problem = parseBlank(text[m.start+len(opening) : m.end-1])
			if problem != "" {
				return nil, nil, inputFault(errBlankSyntax, m.start, "%s in %q; %s",
					problem, text[m.start:m.end], blankHelp)
			}
		}
		blank.start = m.start
		blank.end = m.end
		blanks = append(blanks, blank)
	}
	return blanks, escapes, nil
}

// BlankSpans returns the byte range of each blank in a text that the user
// is still typing, leftmost first. It ignores errors in a blank, and leaves
// out a blank without its closing ]. further is another spelling of a
// blank; "" for none.
func BlankSpans(text, further string) (spans [][2]int) {
	for m := range spelled(further).marks(text) {
		if !m.escaped() && m.end >= 0 {
			spans = append(spans, [2]int{m.start, m.end})
		}
	}
	return spans
}

// parseBlank reads the text between "[MASK" and "]": ":N", ":N-M", "=name",
// ":N=name" or ":N-M=name", each perhaps with "~" and a pattern after it, or
// "~" and a pattern alone. If the text is wrong, problem says why.
func parseBlank(inside string) (blank notation, problem string) {
	blank.minimum = 1
	blank.maximum = 1
	inside, pattern, patterned := strings.Cut(inside, "~")
	if patterned {
		if pattern == "" || len(pattern) > maxPattern {
			return blank, fmt.Sprintf("a pattern that is not a regular expression of 1 to %d bytes", maxPattern)
		}
		_, err := syntax.Parse(pattern, syntax.Perl)
		var wrong *syntax.Error
		if errors.As(err, &wrong) {
			return blank, fmt.Sprintf("a pattern that is no regular expression (%s)", wrong.Code)
		}
		blank.pattern = pattern
	}
	length, name, named := strings.Cut(inside, "=")
	if length != "" {
		low, high, ranged := strings.Cut(length[1:], "-")
		if !ranged {
			high = low
		}
		var lowOK, highOK bool
		blank.minimum, lowOK = parsePieces(low)
		blank.maximum, highOK = parsePieces(high)
		switch {
		case !lowOK || !highOK:
			return blank, fmt.Sprintf("a length that is not a number from 1 to %d", MaxPieces)
		case blank.minimum > blank.maximum:
			return blank, "a length that runs backwards"
		}
		blank.low = blank.minimum
		blank.high = blank.maximum
	}
	if named {
		nameRune := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-' }
		if name == "" || len(name) > maxName ||
			strings.IndexFunc(name, func(r rune) bool { return !nameRune(r) }) >= 0 {
			return blank, fmt.Sprintf("a name that is not 1 to %d bytes of letters, digits, _ and -", maxName)
		}
		blank.name = name
	}
	return blank, ""
}

// posix is a named class inside a class of characters, as in [[:alpha:]_].
var posix = regexp.MustCompile(`^\[:\^?[a-z]+:\]`)

// closing returns the index of the ] that ends a blank, or -1. In a pattern it
// skips a ] that ends a class of characters, or that has a backslash before it.
func closing(rest string) int {
	pattern := false
	class := false
	for at := 0; at < len(rest); at++ {
		c := rest[at]
		switch {
		case c == '~':
			pattern = true
		case pattern && c == backslash:
			at++
		case pattern && c == '[' && !class:
			class = true
			// A ] at the start of a class is a character of the class.
			if strings.HasPrefix(rest[at+1:], "^") {
				at++
			}
			if strings.HasPrefix(rest[at+1:], "]") {
				at++
			}
		case c == '[' && class:
			at += max(0, len(posix.FindString(rest[at:]))-1)
		case c == ']' && class:
			class = false
		case c == ']':
			return at
		}
	}
	return -1
}

// parsePieces reads a number of tokens, written without sign or leading zero.
func parsePieces(text string) (pieces int, ok bool) {
	pieces, err := strconv.Atoi(text)
	return pieces, err == nil && 1 <= pieces && pieces <= MaxPieces && text[0] != '+' && text[0] != '0'
}

// likeBlank matches texts that people may mean as a blank: [mask], [MSAK],
// [BLANK], <mask>, {}, a line of underscores.
var likeBlank = regexp.MustCompile(`(?i)\[mask[:=]|\[[a-z_ ]{1,20}\]|<[a-z_]{1,20}>|__+|\{[a-z_]*\}`)

// MeantBlank looks in a text without blanks for the first part that the user
// may have meant as a blank. It returns this part and its byte offset, or ""
// and -1 if no part looks like a blank.
func MeantBlank(text string) (meant string, offset int) {
	span := likeBlank.FindStringIndex(text)
	if span == nil {
		return "", -1
	}
	return text[span[0]:span[1]], span[0]
}

// OnlyMask returns the template that reads text as a fill-mask pipeline does:
// the model's own mask is a blank, and all else is text as typed, backslashes
// and other spellings of a blank included, but for tokens of control, such as
// [SEP], which [Tokenizer.Template] refuses. Without such a blank, the error is an
// [*InputError] that names the mask.
func (t *Tokenizer) OnlyMask(text string) (string, error) {
	if err := CheckText(text); err != nil {
		return "", err
	}
	mask := t.vocabulary[t.mask]
	blanks := 0
	marks := scanner{spelling: spelled(mask), text: text}
	marks.special = t.forbidden // Template refuses them, also behind a backslash
	var template strings.Builder
	for from := 0; ; from = marks.at {
		m, ok := marks.next()
		if !ok {
			template.WriteString(text[from:])
			break
		}
		template.WriteString(text[from:m.start])
		// Of each two backslashes before a mark, Template drops one.
		template.WriteString(strings.Repeat(string(backslash), m.backslashes))
		own := text[m.start:m.end] == mask || m.notation && strings.HasPrefix(text[m.start:], mask)
		if own {
			blanks++
			marks.at = m.start + len(mask)
		} else if !m.special {
			template.WriteByte(backslash)
		}
		template.WriteString(text[m.start:marks.at])
	}
	if blanks == 0 {
		meant, at := MeantBlank(text)
		return "", noBlank(meant, at, mask)
	}
	return template.String(), nil
}

// noBlank is the error for a text without a blank. meant is the part, at byte at,
// that may be meant as one, or "". help says how to write it.
func noBlank(meant string, at int, help string) error {
	detail := "write " + help + " where a word is wanted"
	if meant != "" {
		detail = fmt.Sprintf("%q at byte offset %d is not one; %s", meant, at, detail)
	}
	return inputFault(ErrNoBlank, -1, "%s", detail)
}

// BeforeBlank returns a text as it is written before a blank: of backslashes there each
// two are one.
func BeforeBlank(text string) string { return text + text[len(strings.TrimRight(text, `\`)):] }
