package tokenize

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"golang.org/x/text/unicode/norm"
)

// wordSyntax matches the words of a text. A match of the group kept is a word with
// [Part.Kept], and one with a group before ends where that begins. Unicode's word
// boundaries (UAX 29) have no hyphens in words, and break Thai at each letter;
// TestUnicodeWords holds all else to them.
const wordSyntax = `(?P<kept>` +
	`(?:[A-Za-z][A-Za-z0-9+.-]{0,20}://|www\.|(?:mailto|tel|doi|urn|data):)` + address +
	`|` + entity +
	`|</?[A-Za-z][A-Za-z0-9:-]*(?:` + space + `[^<>]*)?/?>|<![^<>]*>` +
	`|[~.]{0,2}[/\\]+\.?` + dotted + tying + `*[/\\]*|` + dotted + tying + `+[/\\]*|[A-Za-z]:?[/\\]+` +
	`|[+−±-]?\p{Sc}?[+−-]?\.?\p{N}` + more + `*(?:\p{Cf}*['’.:/×·_-]\p{Cf}*` + more + `+|,\p{N}+)*` +
	`(?:[%‰°′″]\p{L}?|\p{Sc})?` +
	`|[@#＃]` + handle + `(?:[.@/:-]` + handle + `)*|\$` + dotted + tying + `*|°\p{L}|:[\p{L}\p{N}_+-]+:` +
	`|` + letter + `[<>≤≥]\.?\p{N}` + more + `*(?:[.,]\p{N}+)*|[:;=]-?[DPpOoSXx](?P<before1>[^\p{L}\p{N}]|$)` +
	`|` + stops + `(?:/` + stops + `)*(?:[-'’]?` + tied + `)?` +
	`|` + tied + `(?:(?:\.` + tied + `)+|\+\+|#)` +
	`|(?:` + abbreviations + `|[^\P{Lu}I]\p{M}*)\.(?:[-'’]` + tied + `)?` +
	`|I\.(?P<before2>` + space + `\p{Lu}\.)|[Vv]\.(?P<before4>` + space + `\p{Lu})|[Nn]°` +
	`|(?:` + numbered + `)\.(?P<before3>` + space + `?\p{N})` +
	`)|[\p{Han}\p{Hiragana}]\p{M}*|` + tied

// words compiles wordSyntax when a text is first cut into words: it takes longer than
// all else that a program begins with.
var words = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(wordSyntax) })

// WordSyntax returns the expression of words as JavaScript reads it.
func WordSyntax() string {
	return strings.NewReplacer("(?P<before1>", "(?=", "(?P<before2>", "(?=", "(?P<before3>", "(?=",
		"(?P<before4>", "(?=", "(?P<", "(?<",
		`\p{Han}`, `\p{Script=Han}`, `\p{Hiragana}`, `\p{Script=Hiragana}`, `\p{Hebrew}`, `\p{Script=Hebrew}`).
		Replace(wordSyntax)
}

const (
	// A word is letters and digits with their marks, as in हिन्दी. An apostrophe, a
	// hyphen or what nobody sees (a joiner, a soft hyphen, a space of no width) ties
	// two parts of a word, and a comma two of a number. Chinese characters and
	// hiragana are words by themselves.
	letter = `(?:` + initial + `|\p{N})`
	more   = `(?:` + letter + `|\p{M})`
	tied   = letter + more + `*(?:(?:\p{Cf}+|\p{Cf}*['’·׳״-]\p{Cf}*)` + more + `+|"\p{Hebrew}` + more + `*|,\p{N}+)*`
	// dotted is example.com, a part of bob@example.com, which signs tie.
	dotted = tied + `(?:\.` + tied + `)*`
	tying  = `(?:` + entity + `(?:` + dotted + `)?|[&@_/\\=+|:*$^#~]+\.?` + dotted + `)`
	entity = `&(?:#\p{N}+|#[xX][0-9A-Fa-f]+|[A-Za-z][A-Za-z0-9]*);`
	handle = `[\p{L}\p{N}_][\p{L}\p{N}\p{M}_]*`
	space  = `[\p{Z}\t\n\r]`

	address   = `(?:` + inAddress + `|\(` + inAddress + `*\))*(?:[\p{L}\p{N}\p{M}/=&#%+$~_-]|\(` + inAddress + `*\))`
	inAddress = "[\\p{L}\\p{N}\\p{M}!#$%&'*+,./:;=?@\\\\_`|~-]"

	initial = `[^\P{L}\p{Han}\p{Hiragana}]`
	stops   = `(?:` + initial + `{1,2}\.-?){2,}`
	// Of the abbreviations that end no English sentence in Unicode's CLDR, these are
	// no words themselves; units, states and some of German are added.
	abbreviations = `[Mm]rs?|M[sx]|[Dd]rs?|Prof|Rev|Hon|[SJ]r|Sra|Srta|Ste?|Gen|Col|Lt|Ca?pt|Cdr|Cmdr|Adm|Maj|Sgt|` +
		`Cpl|Pvt|Gov|Sen|Rep|Pres|Supt|Esq|Messrs|Mme|Mlle|[Ii]nc|Ltd|Co|Corp|Bros|[Dd]ept|[Gg]ovt|Univ|Assn|` +
		`[Ee]tc|[Vv]s|[Cc]f|al|[Cc]a|[Aa]pprox|[Ee]st|[Vv]iz|[Ii]bid|[Bb]zw|usw|Feb|Apr|Aug|Sept?|Oct|Nov|Dec|Mon|` +
		`Tues?|Wed|Thu(?:rs?)?|Fri|Ave|Blvd|Rd|Hwy|Mt|Ft|Figs?|[Vv]ols?|[Cc]h|pp|eds?|oz|lbs?|tsp|tbsp|hrs?|mins?|max|` +
		`[Ii]ncl|[Ee]xcl|[Ee]sp|[Rr]esp|` +
		`Ala|Ariz|Calif|Colo|Conn|Fla|Ga|Kan|Ky|Md|Mich|Minn|Mo|Mont|Neb|Nev|Okla|Penn|Tenn|Tex|Va|Vt|Wis|Wyo`
	// These are abbreviations where a number follows.
	numbered = `[Nn]os?|Nr|figs?|Rm|Apt|Bldg|[Tt]el|[Ee]xt|[bcd]|[Aa]rt|[Ss]ec|[Ee]q|[Pp]|[Oo]p|[Rr]ef|Jan|Mar|Jun|Jul|Sat|Sun`
)

// Part is a word of a text, or one of the signs between words.
type Part struct {
	Start, End int  // byte range
	Word       bool // false for a sign
	// Kept reports whether the word is better left as it is: an address, a path, a
	// handle, a hashtag, an entity or a tag of HTML, a number with its signs, or an
	// abbreviation with its stops.
	Kept bool
}

const latinLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// Parts cuts a text into words and the signs between them, no white space.
func Parts(text string) (list []Part) {
	from := 0
	between := func(to int) {
		for from < to {
			r, size := utf8.DecodeRuneInString(text[from:])
			if !unicode.IsSpace(r) {
				sign, _, _, _ := uniseg.FirstGraphemeClusterInString(text[from:to], -1)
				size = len(sign)
				list = append(list, Part{Start: from, End: from + size})
			}
			from += size
		}
	}
	for {
		rest := strings.TrimLeft(text[from:], " ")
		from = len(text) - len(rest)
		latin := len(rest) - len(strings.TrimLeft(rest, latinLetters))
		if latin > 0 && (latin == len(rest) || rest[latin] == ' ') { // a word, in a tenth of the time
			list = append(list, Part{Start: from, End: from + latin, Word: true})
			from += latin
			continue
		}
		at := words().FindStringSubmatchIndex(rest)
		if at == nil {
			between(len(text))
			return list
		}
		word := Part{Start: from + at[0], End: from + at[1], Word: true, Kept: at[2] >= 0}
		for group := 4; group < len(at); group += 2 {
			if at[group] >= 0 {
				word.End = from + at[group]
			}
		}
		between(word.Start)
		list = append(list, word)
		from = word.End
	}
}

// shortForms stand behind an apostrophe.
var shortForms = []string{"s", "t", "d", "m", "n", "re", "ve", "ll", "em"}

// Maskable returns the words of a text that a blank may take the place of: they have
// letters and no digits, are not kept, are no short forms after an apostrophe ('s),
// and have no byte in one of the ranges that are protected.
func Maskable(text string, protected ...[2]int) (list []Part) {
	protected = slices.SortedFunc(slices.Values(protected), func(a, b [2]int) int { return a[0] - b[0] })
	safe := 0 // end of what is protected
	for _, p := range Parts(text) {
		word := text[p.Start:p.End]
		before, _ := utf8.DecodeLastRuneInString(text[:p.Start])
		short := strings.ContainsRune("'’", before) && slices.Contains(shortForms, strings.ToLower(word))
		for len(protected) > 0 && protected[0][0] < p.End {
			safe = max(safe, protected[0][1])
			protected = protected[1:]
		}
		if p.Word && !short && !p.Kept && p.Start >= safe && !strings.ContainsFunc(word, unicode.IsNumber) {
			list = append(list, p)
		}
	}
	return list
}

// Find returns the byte ranges of a text where another stands, in any capitals and
// not within a word. Behind ~, the other is a regular expression, which is found
// wherever it matches. It returns an error if the other is empty, no UTF-8, or no
// regular expression.
func Find(text, other string) (spans [][2]int, err error) {
	pattern, patterned := strings.CutPrefix(other, "~")
	if pattern == "" || !utf8.ValidString(pattern) {
		return nil, errors.New("one of the texts is empty, or no UTF-8")
	}
	if patterned {
		expression, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fmt.Errorf("%q is no regular expression behind ~", pattern)
		}
		for _, s := range expression.FindAllStringIndex(text, -1) {
			if s[0] < s[1] {
				spans = append(spans, [2]int(s))
			}
		}
		return spans, nil
	}
	// A text that looks equal is found, whichever way its accents are written.
	ways := regexp.QuoteMeta(norm.NFC.String(other)) + "|" + regexp.QuoteMeta(norm.NFD.String(other))
	inWord := func(r rune) bool { return wordRune(r) || unicode.IsMark(r) }
	first, _ := utf8.DecodeRuneInString(other)
	last, _ := utf8.DecodeLastRuneInString(other)
	for _, s := range regexp.MustCompile("(?i)"+ways).FindAllStringIndex(text, -1) {
		before, _ := utf8.DecodeLastRuneInString(text[:s[0]])
		after, _ := utf8.DecodeRuneInString(text[s[1]:])
		if !(inWord(before) && inWord(first)) && !(inWord(last) && inWord(after)) {
			spans = append(spans, [2]int(s))
		}
	}
	return spans, nil
}

// WordSpans returns the byte ranges of the words of a text, those inside blanks
// left out. further is a further spelling of a blank, or "".
func WordSpans(text, further string) (spans [][2]int) {
	from := 0
	add := func(to int) {
		for _, p := range Parts(text[from:to]) {
			if p.Word {
				spans = append(spans, [2]int{from + p.Start, from + p.End})
			}
		}
	}
	for m := range spelled(further).marks(text) {
		if m.end >= 0 {
			add(m.start)
			from = m.end
		}
	}
	add(len(text))
	return spans
}
