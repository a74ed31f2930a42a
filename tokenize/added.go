package tokenize

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// addedToken is a token that the tokenizer looks for in a text before it splits
// the other text into words.
type addedToken struct {
	text      string
	id        int
	stripLeft bool // whether the token includes the white space on its left
}

// matcher finds the leftmost added token in a text and, of several tokens that
// start there, the longest.
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

// split finds the tokens in a normalised text. It calls part for each text
// between them, and found for each token, with the byte range in the typed text
// that the token covers.
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
func (t *Tokenizer) findAdded(tokens []pipelineAdded) error {
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

// refuseSpecial returns an error for the first special token in a text that
// only the program may write.
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
