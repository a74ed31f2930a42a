package tokenize

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Encoding is a text as the model reads it, [CLS] first and [SEP] last. All
// four slices have one entry per token.
type Encoding struct {
	IDs     []int
	Tokens  []string
	Offsets [][2]int // byte range in the text of each token; {0, 0} for [CLS] and [SEP]

	// Words holds, per token, the number of its word, from 0, or -1 for [CLS]
	// and [SEP]. White space and punctuation separate words. A punctuation
	// mark, a Chinese character and a special token are words of their own.
	Words []int
}

// Encode returns the tokens of any text, exactly those of Hugging Face's
// tokenizers library. It accepts special tokens: "[MASK]" is the token, but
// "[MASK:3]" is plain text. It drops invalid UTF-8 and control characters. (For
// about 600 characters that are newer than that library's tables, Go's tables
// decide.) Use Encode for corpora and for comparison. Tokenizer.Template and
// Tokenizer.Plain return errors for bad texts instead.
func (t *Tokenizer) Encode(text string) (*Encoding, error) {
	e := t.newEncoder(text)
	e.addPlain(0, len(text))
	return e.finish()
}

// encoder builds one Encoding, one part of the text after the other.
type encoder struct {
	t        *Tokenizer
	text     string
	encoding *Encoding
	words    int
	inside   bool  // whether the present word has tokens already
	err      error // the first error
}

func (t *Tokenizer) newEncoder(text string) *encoder {
	tokens := len(text)/4 + 3 // an English token has four to five bytes on average
	e := &encoder{t: t, text: text, encoding: &Encoding{
		IDs:     make([]int, 0, tokens),
		Tokens:  make([]string, 0, tokens),
		Offsets: make([][2]int, 0, tokens),
		Words:   make([]int, 0, tokens),
	}}
	e.add(t.classifier, 0, 0, -1)
	return e
}

func (e *encoder) finish() (*Encoding, error) {
	if e.err != nil {
		return nil, e.err
	}
	e.add(e.t.separator, 0, 0, -1)
	return e.encoding, nil
}

func (e *encoder) fail(err error) { e.err = cmp.Or(e.err, err) }

func (e *encoder) add(id, start, end, word int) {
	e.encoding.IDs = append(e.encoding.IDs, id)
	e.encoding.Tokens = append(e.encoding.Tokens, e.t.vocabulary[id])
	e.encoding.Offsets = append(e.encoding.Offsets, [2]int{start, end})
	e.encoding.Words = append(e.encoding.Words, word)
}

func (e *encoder) addWord(id, start, end int) {
	e.add(id, start, end, e.words)
	e.words++
}

// addOwn adds text[from:to] of a user. In text after a backslash it looks for
// no added tokens, as it would find the model's mask.
func (e *encoder) addOwn(from, to int, escapes []escape) {
	for _, x := range within(escapes, from, to) {
		e.addPlain(from, x.dropped)
		e.encode(x.start, x.end, matcher{})
		from = x.end
	}
	e.addPlain(from, to)
}

// addPlain adds text[from:to] and the added tokens in it. Template and Plain
// refuse texts with most of these tokens.
func (e *encoder) addPlain(from, to int) {
	for from < to {
		token, before, start, end := e.t.added.next(e.text, from, to)
		if before > from {
			e.encode(from, before, e.t.normalized)
		}
		if token == nil {
			return
		}
		e.addWord(token.id, start, end)
		from = end
	}
}

// encode adds the tokens of text[from:to], which holds no token of
// Tokenizer.added. It normalises the text, finds the tokens of added, splits
// the text into words, and cuts each word by the model.
func (e *encoder) encode(from, to int, added matcher) {
	var l letters
	for at := from; at < to; {
		r, size := utf8.DecodeRuneInString(e.text[at:to]) // an invalid byte gives U+FFFD, as in the reference
		l.add(r, [2]int{at, at + size})
		at += size
	}
	l, err := e.t.normalize(l)
	if err != nil {
		e.fail(err)
		return
	}
	l.first = from == 0
	added.split(l, e.split, func(token *addedToken, span [2]int) { e.addWord(token.id, span[0], span[1]) })
	n := len(e.encoding.IDs)
	if n > 2*len(e.text)+24 {
		e.fail(fmt.Errorf("%s: it makes %d tokens of a text of %d bytes: its steps or its vocabulary are damaged",
			tokenizerFile, n, len(e.text)))
	}
}

// split adds the tokens of l, word by word.
func (e *encoder) split(l letters) {
	words := []letters{l}
	for _, split := range e.t.splitters {
		var next []letters
		for _, word := range words {
			if len(word.runes) > 0 {
				next = split(word, next)
			}
		}
		words = next
	}
	for _, word := range words {
		if len(word.runes) > 0 {
			e.inside = false
			e.t.model.cut(e, word)
			e.words++
		}
	}
}

// addPiece adds a token for the bytes of span without white space at its ends.
func (e *encoder) addPiece(id int, span [2]int) {
	if e.inside && e.t.opensWord(id) {
		e.words++
	}
	e.inside = true
	text := e.text[span[0]:span[1]]
	end := span[0] + len(strings.TrimRightFunc(text, unicode.IsSpace))
	start := span[1] - len(strings.TrimLeftFunc(text, unicode.IsSpace))
	if start > end { // only white space
		start = span[1]
		end = span[1]
	}
	e.add(id, start, end, e.words)
}

// addedToken is a token that the tokenizer looks for in a text before it splits
// the other text into words.
type addedToken struct {
	text      string
	id        int
	stripLeft bool // whether the token includes the white space on its left
}

// matcher finds the leftmost added token, and the longest that starts there.
type matcher struct {
	tokens []addedToken // the longest first
	starts string       // first characters of tokens
}

func newMatcher(tokens []addedToken) matcher {
	m := matcher{tokens: slices.Clone(tokens)}
	slices.SortFunc(m.tokens, func(a, b addedToken) int {
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), strings.Compare(a.text, b.text))
	})
	for _, token := range m.tokens {
		first, _ := utf8.DecodeRuneInString(token.text)
		if !strings.ContainsRune(m.starts, first) {
			m.starts += string(first)
		}
	}
	return m
}

// next finds the first token in text[from:to] and returns its start and end.
// before is the end of the text before the token; white space that the token
// strips is between before and start. Without a token, all three are to.
func (m *matcher) next(text string, from, to int) (token *addedToken, before, start, end int) {
	for at := from; at < to; {
		skipped := strings.IndexAny(text[at:to], m.starts)
		if skipped < 0 {
			break
		}
		at += skipped
		for i := range m.tokens {
			token := &m.tokens[i]
			if !strings.HasPrefix(text[at:to], token.text) {
				continue
			}
			before = at
			if token.stripLeft {
				before = from + len(strings.TrimRightFunc(text[from:at], unicode.IsSpace))
			}
			return token, before, at, at + len(token.text)
		}
		at++
	}
	return nil, to, to, to
}

// split calls part for each text between the tokens of a normalised text, and
// found for each token, with its byte range as typed.
func (m *matcher) split(l letters, part func(letters), found func(token *addedToken, span [2]int)) {
	text := string(l.runes)
	position := 0 // index of the character that begins at byte at
	for at := 0; at < len(text); {
		token, before, start, end := m.next(text, at, len(text))
		part(l.part(position, position+utf8.RuneCountInString(text[at:before])))
		if token == nil {
			return
		}
		position += utf8.RuneCountInString(text[at:start])
		length := utf8.RuneCountInString(text[start:end])
		found(token, l.part(position, position+length).span())
		at = end
		position += length
	}
}

// findAdded makes the two matchers for added tokens: t.added for a text as
// typed, and t.normalized for its normalised form, with the tokens normalised
// as well. It also records that no slot takes an added or special token.
func (t *Tokenizer) findAdded(tokens []added) error {
	t.notWords = make([]bool, len(t.vocabulary))
	t.silent = make([]bool, len(t.vocabulary))
	role := map[int]bool{}
	for _, id := range t.roles() {
		t.notWords[*id] = true
		role[*id] = true
	}
	var raw, normalized []addedToken
	for _, token := range tokens {
		a := addedToken{text: token.Content, id: *token.ID, stripLeft: token.StripLeft}
		t.notWords[a.id] = true
		t.silent[a.id] = token.Special
		if token.Special && role[a.id] && a.id != t.unknown && a.text != maskToken {
			t.forbidden = append(t.forbidden, a.text)
		}
		if a.id == t.mask {
			t.maskStripsLeft = a.stripLeft
		}
		if !token.Normalized {
			raw = append(raw, a)
			continue
		}
		var l letters
		for _, r := range a.text {
			l.add(r, [2]int{})
		}
		l, err := t.normalize(l)
		if err != nil {
			return err
		}
		a.text = string(l.runes)
		if a.text == "" {
			return pipelineFault(errUnsupported, "added token %q, of which normalising leaves nothing", token.Content)
		}
		normalized = append(normalized, a)
	}
	t.added = newMatcher(raw)
	t.normalized = newMatcher(normalized)
	return nil
}

// refuseSpecial refuses the first special token that only the program may write.
func (t *Tokenizer) refuseSpecial(text string) error {
	first := len(text)
	found := ""
	for _, special := range t.forbidden {
		at := strings.Index(text, special)
		if at >= 0 && (at < first || at == first && len(special) > len(found)) {
			first = at
			found = special
		}
	}
	switch found {
	case "":
		return nil
	case t.vocabulary[t.mask]:
		return inputFault(errSpecialToken, first, "%s is the model's own; write %s where a word is wanted",
			found, maskToken)
	}
	return inputFault(errSpecialToken, first, "%s is added by the program where the model needs it; "+
		`take it out, or write \%[1]s for the text`, found)
}
