package tokenize

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of the blank notation. A word of sixteen pieces is longer than any in the evaluation texts.
const (
	maxPieces       = 16
	maxName         = 32
	maxPattern      = 200
	maxAlternatives = 64
)

// notation is one blank as typed.
type notation struct {
	start, end       int // bytes of the text
	name             string
	minimum, maximum int // tokens
	low, high        int // the same where a length is typed, else 0
	pattern          string
}

const blankHelp = "write [MASK], [MASK:3], [MASK:1-3], [MASK=name] or [MASK~st..d]"

// findBlanks reads every blank of a text, leftmost first. Text that only looks like a blank ("[mask]", "[MASKED]") is
// text; what starts with "[MASK:", "[MASK=" or "[MASK~" must be one. A backslash before any of them makes it text.
func findBlanks(text string) ([]notation, error) {
	var blanks []notation
	for _, span := range blankSpans(text) {
		start, end := span[0], span[1]
		if end < 0 {
			return nil, &InputError{Fault: errBlankSyntax, Offset: start,
				Detail: "the closing ] is missing; " + blankHelp}
		}
		blank, problem := parseBlank(text[start+len(opening) : end-1])
		if problem != "" {
			return nil, &InputError{Fault: errBlankSyntax, Offset: start,
				Detail: fmt.Sprintf("%s in %s; %s", problem, excerpt(text[start:end]), blankHelp)}
		}
		blank.start, blank.end = start, end
		blanks = append(blanks, blank)
	}
	return blanks, nil
}

// BlankSpans are the bytes of each blank of a text that is being written, leftmost first: what is
// errors in one are ignored, and one without its end does not count yet.
func BlankSpans(text string) [][2]int {
	return slices.DeleteFunc(blankSpans(text), func(span [2]int) bool { return span[1] < 0 })
}

const opening = "[MASK"

// blankSpans are the bytes of what has to be a blank. The end is -1 where it is missing.
func blankSpans(text string) (spans [][2]int) {
	for at := 0; ; {
		next := strings.Index(text[at:], opening)
		if next < 0 {
			return spans
		}
		start := at + next
		at = start + len(opening)
		if rest := text[at:]; start > 0 && text[start-1] == escape || rest == "" ||
			!strings.Contains("]:=~", rest[:1]) {
			continue
		} else if n := closing(rest); n < 0 {
			spans = append(spans, [2]int{start, -1})
		} else {
			at += n + 1
			spans = append(spans, [2]int{start, at})
		}
	}
}

// parseBlank reads what stands between "[MASK" and "]": ":N", ":N-M", "=name", ":N=name" or ":N-M=name", "~"
// and a pattern behind it or alone.
func parseBlank(inside string) (blank notation, problem string) {
	blank.minimum, blank.maximum = 1, 1
	inside, pattern, patterned := strings.Cut(inside, "~")
	if patterned {
		if _, err := syntax.Parse(pattern, syntax.Perl); err != nil || pattern == "" || len(pattern) > maxPattern {
			return blank, fmt.Sprintf("a pattern that is not a regular expression of 1 to %d bytes", maxPattern)
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
			return blank, fmt.Sprintf("a length that is not a number from 1 to %d", maxPieces)
		case blank.minimum > blank.maximum:
			return blank, "a length that runs backwards"
		}
		blank.low, blank.high = blank.minimum, blank.maximum
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

// closing finds the ] that ends a blank: within a pattern, one that neither ends a class of characters nor has a
// backslash before it.
func closing(rest string) int {
	pattern, class := false, false
	for at := 0; at < len(rest); at++ {
		switch c := rest[at]; {
		case c == '~':
			pattern = true
		case pattern && c == escape:
			at++
		case pattern && c == '[' && !class:
			class = true
			// A ] that comes first is one of the class.
			if strings.HasPrefix(rest[at+1:], "^") {
				at++
			}
			if strings.HasPrefix(rest[at+1:], "]") {
				at++
			}
		case c == ']' && class:
			class = false
		case c == ']':
			return at
		}
	}
	return -1
}

// escape before what looks like a blank makes it text.
const escape = '\\'

// unescape gives the text that a template's own text stands for.
func unescape(text string) string { return strings.ReplaceAll(text, string(escape)+"[MASK", "[MASK") }

// Unescape removes the backslashes that KeepEscapes left in a filled template, and moves the spans of its fills,
// ascending.
func Unescape(text string, spans [][2]int) string {
	var whole strings.Builder
	from := 0
	for i, span := range spans {
		whole.WriteString(unescape(text[from:span[0]]))
		spans[i][0] = whole.Len()
		whole.WriteString(text[span[0]:span[1]])
		spans[i][1] = whole.Len()
		from = span[1]
	}
	whole.WriteString(unescape(text[from:]))
	return whole.String()
}

// parsePieces reads a number of tokens, written without sign or leading zero.
func parsePieces(text string) (pieces int, ok bool) {
	pieces, err := strconv.Atoi(text)
	return pieces, err == nil && 1 <= pieces && pieces <= maxPieces && text[0] != '+' && text[0] != '0'
}

// likeBlank finds what people write for a blank: [mask], [MSAK], [BLANK], <mask>, {}, a line of underscores.
var likeBlank = regexp.MustCompile(`(?i)\[mask[:=]|\[[a-z_ ]{1,20}\]|<[a-z_]{1,20}>|__+|\{[a-z_]*\}`)

// MeantBlank returns what the user may have meant as a blank in a text without one, and its byte offset; "" if
// nothing looks like one.
func MeantBlank(text string) (meant string, offset int) {
	span := likeBlank.FindStringIndex(text)
	if span == nil {
		return "", -1
	}
	return text[span[0]:span[1]], span[0]
}

// underscores are a blank that is drawn as a line.
var underscores = regexp.MustCompile(`__+`)

// ReadBlanks writes [MASK] for each spelling of a blank; a line of underscores is one at any length from its own on.
func ReadBlanks(text, spelling string) string {
	switch {
	case spelling == "":
		return text
	case underscores.FindString(spelling) == spelling:
		return underscores.ReplaceAllStringFunc(text, func(line string) string {
			if len(line) < len(spelling) {
				return line
			}
			return maskToken
		})
	}
	return strings.ReplaceAll(text, spelling, maskToken)
}

// excerpt quotes a piece of the user's text, shortened to fit on a line.
func excerpt(text string) string {
	const most = 40
	if len(text) > most {
		cut := most
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "..."
	}
	return strconv.Quote(text)
}
