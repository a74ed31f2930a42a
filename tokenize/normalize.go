package tokenize

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
	"golang.org/x/text/unicode/norm"
)

// letters is a text during normalising: its characters and, for each character,
// its byte range in the typed text.
type letters struct {
	runes  []rune
	source [][2]int
	first  bool // whether the typed text starts here
}

func (l letters) part(from, to int) letters {
	return letters{l.runes[from:to], l.source[from:to], l.first && from == 0}
}

func (l *letters) add(r rune, source [2]int) {
	l.runes = append(l.runes, r)
	l.source = append(l.source, source)
}

// span returns the byte range in the typed text for which l stands.
func (l letters) span() [2]int { return [2]int{l.source[0][0], l.source[len(l.source)-1][1]} }

// prepend puts a character before l. The character gets the byte range of the
// first character, as in the reference.
func (l letters) prepend(r rune) letters {
	return letters{append([]rune{r}, l.runes...), append([][2]int{l.source[0]}, l.source...), l.first}
}

// normalize rewrites a text by all steps. A damaged file could make a text very
// long. So each step, and all steps together, may multiply the length by
// mostGrowth at most, except for a short text.
func (t *Tokenizer) normalize(l letters) (letters, error) {
	bound := longest(len(l.runes))
	for i, step := range t.normalizers {
		before := len(l.runes)
		l = step(l)
		if len(l.runes) > min(bound, longest(before)) {
			return l, fmt.Errorf("%s: normalizer %d makes %d characters of a text of %d: more than %d times as many "+
				"are not taken", tokenizerFile, i+1, len(l.runes), before, mostGrowth)
		}
	}
	return l, nil
}

const mostGrowth = 16

// longest returns the number of characters to which a text may grow.
func longest(characters int) int { return mostGrowth*characters + 1024 }

type normalizer func(letters) letters

func normalForm(form norm.Form) normalizer {
	return func(l letters) letters {
		text := string(l.runes)
		if form.IsNormalString(text) {
			return l
		}
		var out letters
		var iter norm.Iter
		iter.InitString(form, text)
		var span [2]int
		at := 0 // number of characters of l that are done
		for from := 0; !iter.Done(); {
			segment := string(iter.Next())
			length := len([]rune(text[from:iter.Pos()]))
			if length > 0 { // else the segment comes from the characters of the previous one
				span = l.part(at, at+length).span()
			}
			from = iter.Pos()
			at += length
			for _, r := range segment {
				out.add(r, span)
			}
		}
		return out
	}
}

// stripAccents drops marks of every kind, after a normal form has separated them.
func stripAccents(l letters) letters {
	var out letters
	for i, r := range l.runes {
		if !unicode.Is(unicode.M, r) {
			out.add(r, l.source[i])
		}
	}
	return out
}

func lowerCase(l letters) letters {
	var out letters
	for i, r := range l.runes {
		if r == 'İ' { // the only character whose lower case is two characters
			out.add('i', l.source[i])
			out.add('\u0307', l.source[i])
			continue
		}
		out.add(unicode.ToLower(r), l.source[i])
	}
	return out
}

// replace puts text in place of every match. length returns the length of the
// match at the start of rest, or 0.
func replace(length func(rest []rune) int, text string) normalizer {
	return func(l letters) letters {
		i := 0
		for i < len(l.runes) && length(l.runes[i:]) == 0 {
			i++
		}
		if i == len(l.runes) {
			return l // no match, as in most texts
		}
		out := letters{slices.Clone(l.runes[:i]), slices.Clone(l.source[:i]), l.first}
		for i < len(l.runes) && len(out.runes) <= longest(len(l.runes)) { // normalize refuses a longer text
			n := length(l.runes[i:])
			if n == 0 {
				out.add(l.runes[i], l.source[i])
				i++
				continue
			}
			for _, r := range text {
				out.add(r, l.part(i, i+n).span())
			}
			i += n
		}
		return out
	}
}

// literal returns a function that matches text, which must not be empty.
func literal(text string) func(rest []rune) int {
	runes := []rune(text)
	return func(rest []rune) int {
		if len(rest) < len(runes) || rest[0] != runes[0] || !slices.Equal(rest[:len(runes)], runes) {
			return 0
		}
		return len(runes)
	}
}

// run returns the number of characters at the start of rest for which is returns true.
func run(rest []rune, is func(rune) bool) int {
	n := slices.IndexFunc(rest, func(r rune) bool { return !is(r) })
	if n >= 0 {
		return n
	}
	return len(rest)
}

func blanks(rest []rune) int {
	n := run(rest, func(r rune) bool { return r == ' ' })
	if n > 1 {
		return n
	}
	return 0
}

func gaps(rest []rune) int {
	n := run(rest, unicode.IsSpace)
	if n != 1 || strings.ContainsRune("\n\r\t", rest[0]) {
		return n
	}
	return 0
}

// strip returns a normalizer that drops white space at the left or right end.
func strip(left, right bool) normalizer {
	return func(l letters) letters {
		from := 0
		to := len(l.runes)
		if left {
			from = run(l.runes, unicode.IsSpace)
		}
		for right && from < to && unicode.IsSpace(l.runes[to-1]) {
			to--
		}
		return l.part(from, to)
	}
}

// characterMap is the compiled replacement rules of SentencePiece: a
// double-array trie (Aoe 1989) in the layout of the darts-clone library, and
// the replacement texts. The values of the trie are offsets into texts.
type characterMap struct {
	trie  []uint32
	texts string
}

var errCharacterMap = errors.New("precompiled_charsmap is cut short")

// longestReplacement bounds a replacement, in bytes: a damaged map could make a
// short text very long. NFKC's longest has 33.
const longestReplacement = 128

// parseCharacterMap reads the size of the trie, the trie, and the texts, each
// of which ends in a zero byte.
func parseCharacterMap(data []byte) (*characterMap, error) {
	if len(data) < 4 {
		return nil, errCharacterMap
	}
	size := int(binary.LittleEndian.Uint32(data))
	data = data[4:]
	if size < 4 || size%4 != 0 || size > len(data) {
		return nil, errCharacterMap
	}
	m := &characterMap{trie: make([]uint32, size/4), texts: string(data[size:])}
	for text := range strings.SplitSeq(m.texts, "\x00") {
		if len(text) > longestReplacement {
			return nil, fmt.Errorf("precompiled_charsmap has a replacement of %d bytes, at most %d are taken",
				len(text), longestReplacement)
		}
	}
	for i := range m.trie {
		m.trie[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return m, nil
}

// find returns the replacement for the shortest prefix of key with a rule; ok
// is false if no rule is found.
func (m *characterMap) find(key string) (text string, ok bool) {
	step := func(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }
	at := step(m.trie[0])
	for i := range len(key) {
		at ^= uint32(key[i])
		if key[i] == 0 || at >= uint32(len(m.trie)) {
			return "", false
		}
		unit := m.trie[at]
		if unit&(1<<31|0xff) != uint32(key[i]) {
			return "", false
		}
		at ^= step(unit)
		if unit>>8&1 == 0 {
			continue
		}
		if at >= uint32(len(m.trie)) {
			return "", false
		}
		start := int(m.trie[at] & (1<<31 - 1))
		if start > len(m.texts) {
			return "", false
		}
		text, _, _ = strings.Cut(m.texts[start:], "\x00")
		return text, true
	}
	return "", false
}

// normalize applies the rules as Hugging Face's library does: to a whole
// grapheme cluster if the cluster is short, else to each code point.
func (m *characterMap) normalize(l letters) letters {
	const short = 6 // bytes
	var out letters
	put := func(part letters) bool {
		text, ok := m.find(string(part.runes))
		if ok {
			for _, r := range text {
				out.add(r, part.span())
			}
		}
		return ok
	}
	at := 0
	state := -1
	for rest := string(l.runes); rest != ""; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		part := l.part(at, at+len([]rune(cluster)))
		at += len(part.runes)
		if len(cluster) < short && put(part) {
			continue
		}
		for i := range part.runes {
			single := part.part(i, i+1)
			if !put(single) {
				out.add(single.runes[0], single.source[0])
			}
		}
	}
	return out
}
