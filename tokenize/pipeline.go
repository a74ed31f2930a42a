package tokenize

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pipeline is the scheme of a tokenizer.json whose model is BPE or Unigram: normalise, find further added tokens,
// split, and cut each piece by the model. No Go library does this and passes: sugarme/tokenizer drops special tokens
// and misorders merges, the others know no Unigram or give no offsets.
type pipeline struct {
	t           *Tokenizer
	normalizers []normalizer
	normalized  matcher // added tokens that are found after normalising
	splitters   []splitter
	model       cutter
	byteLevel   bool // tokens spell bytes; otherwise words start with metaspace
	characters  bool // BPE over characters: some tokens stand for a byte
	prepends    bool // a text gets a blank before its first word
	dropsBlank  bool // which decoding drops
}

// cutter is a model: it cuts a piece, never empty, and adds its tokens.
type cutter interface {
	cut(e *encoder, piece letters)
}

// letters is a text after normalising: characters, and for each the bytes of the text as typed that it stands for.
type letters struct {
	runes  []rune
	source [][2]int
	first  bool // the text starts here
}

// metaspace stands for a blank in SentencePiece vocabularies.
const metaspace = '▁'

func (l letters) part(from, to int) letters {
	return letters{l.runes[from:to], l.source[from:to], l.first && from == 0}
}

func (l *letters) add(r rune, source [2]int) {
	l.runes = append(l.runes, r)
	l.source = append(l.source, source)
}

// span is the bytes that l stands for.
func (l letters) span() [2]int { return [2]int{l.source[0][0], l.source[len(l.source)-1][1]} }

// prepend puts a character before l, which shares the text of the first, as in the reference.
func (l letters) prepend(r rune) letters {
	return letters{append([]rune{r}, l.runes...), append([][2]int{l.source[0]}, l.source...), l.first}
}

func (p *pipeline) encode(e *encoder, from, to int) {
	var l letters
	for at := from; at < to; {
		r, size := utf8.DecodeRuneInString(e.text[at:to])
		l.add(r, [2]int{at, at + size})
		at += size
	}
	l, err := p.normalize(l)
	if err != nil {
		e.fail(err)
		return
	}
	l.first = from == 0
	p.normalized.split(l, func(part letters) { p.cut(e, part) },
		func(token *addedToken, span [2]int) { e.addWord(token.id, span[0], span[1]) })
	if n := len(e.encoding.IDs); n > 2*len(e.text)+24 {
		e.fail(fmt.Errorf("%s: it makes %d tokens of a text of %d bytes: its steps or its vocabulary are damaged",
			tokenizerFile, n, len(e.text)))
	}
}

// normalize rewrites a text by all steps. A damaged file could make much of little: a step may multiply the text by
// mostGrowth, and all steps together too, except for a short text.
func (p *pipeline) normalize(l letters) (letters, error) {
	bound := longest(len(l.runes))
	for i, step := range p.normalizers {
		before := len(l.runes)
		if l = step(l); len(l.runes) > min(bound, longest(before)) {
			return l, fmt.Errorf("%s: normalizer %d makes %d characters of a text of %d: more than %d times as many "+
				"are not taken", tokenizerFile, i+1, len(l.runes), before, mostGrowth)
		}
	}
	return l, nil
}

const mostGrowth = 16

// longest is how long a text may become.
func longest(characters int) int { return mostGrowth*characters + 1024 }

// cut splits l into pieces, the words, and each into tokens.
func (p *pipeline) cut(e *encoder, l letters) {
	pieces := []letters{l}
	for _, split := range p.splitters {
		var next []letters
		for _, piece := range pieces {
			if len(piece.runes) > 0 {
				next = split(piece, next)
			}
		}
		pieces = next
	}
	for _, piece := range pieces {
		if len(piece.runes) > 0 {
			e.inside = false
			p.model.cut(e, piece)
			e.words++
		}
	}
}

// addPiece adds a token that stands for the given bytes; white space at their ends is not the token's.
func (e *encoder) addPiece(id int, span [2]int) {
	if e.inside && e.t.opensWord(id) {
		e.words++
	}
	e.inside = true
	text := e.text[span[0]:span[1]]
	end := span[0] + len(strings.TrimRightFunc(text, unicode.IsSpace))
	start := span[1] - len(strings.TrimLeftFunc(text, unicode.IsSpace))
	if start > end { // nothing but white space
		start, end = span[1], span[1]
	}
	e.add(id, start, end, e.words)
}

func (p *pipeline) read(token string) (text string, joins bool) {
	if p.byteLevel {
		text = decodeBytes(token)
		word, spaced := strings.CutPrefix(text, " ")
		return word, !spaced
	}
	if p.characters {
		if b := byteOf(token); b >= 0 {
			return string([]byte{byte(b)}), true
		}
	}
	word, spaced := strings.CutPrefix(token, string(metaspace))
	return strings.ReplaceAll(word, string(metaspace), " "), !spaced
}

func (p *pipeline) apart(_, right string) bool {
	_, joins := p.read(right)
	return !joins
}

// bare reports whether the first word of a text has no blank in its token.
func (p *pipeline) bare() bool { return p.byteLevel || p.characters && !p.prepends }

// decodeCharacters joins tokens of a vocabulary of characters. Bytes that are no characters read as one U+FFFD each.
func (p *pipeline) decodeCharacters(tokens []string) string {
	var text strings.Builder
	var spelled []byte
	flush := func() {
		if utf8.Valid(spelled) {
			text.Write(spelled)
		} else {
			text.WriteString(strings.Repeat(string(utf8.RuneError), len(spelled)))
		}
		spelled = spelled[:0]
	}
	for _, token := range tokens {
		if b := byteOf(token); b >= 0 {
			spelled = append(spelled, byte(b))
			continue
		}
		flush()
		text.WriteString(strings.ReplaceAll(token, string(metaspace), " "))
	}
	flush()
	if p.dropsBlank {
		return strings.TrimPrefix(text.String(), " ")
	}
	return text.String()
}

// decode joins tokens into a text.
func (p *pipeline) decode(tokens []string) string {
	switch {
	case p.characters:
		return p.decodeCharacters(tokens)
	case p.byteLevel:
		return strings.ToValidUTF8(decodeBytes(strings.Join(tokens, "")), string(utf8.RuneError))
	case len(tokens) == 0:
		return ""
	}
	first := strings.ReplaceAll(tokens[0], string(metaspace), "") // the reference drops every blank of it
	return first + strings.ReplaceAll(strings.Join(tokens[1:], ""), string(metaspace), " ")
}
