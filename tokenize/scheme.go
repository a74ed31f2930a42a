package tokenize

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// scheme is what the kinds of vocabulary differ in: how a text is cut into tokens, and how tokens spell a text.
type scheme interface {
	// encode adds the tokens of e.text[from:to], which holds no token of Tokenizer.added.
	encode(e *encoder, from, to int)
	// read gives what a token reads as, and whether it joins the text on its left without a blank. The text of a
	// byte-level token may be a part of a character.
	read(token string) (text string, joins bool)
	// apart reports whether two tokens with no text between them are set apart by a blank.
	apart(left, right string) bool
}

// wordPiece is BERT's own scheme; its cutting is in encode.go.
type wordPiece struct {
	t          *Tokenizer
	normalized matcher // added tokens that are found after normalising
}

func (w wordPiece) encode(e *encoder, from, to int) {
	if len(w.normalized.tokens) > 0 {
		w.normalized.split(e.letters(from, to), func(letters) {}, func(token *addedToken, span [2]int) {
			e.addText(from, span[0])
			e.addWord(token.id, span[0], span[1])
			from = span[1]
		})
	}
	e.addText(from, to)
}

func (w wordPiece) read(token string) (text string, joins bool) {
	if continues(token) {
		return token[len(continuation):], true
	}
	return token, false
}

// apart asks the decoder, which sets no blank before a full stop; where a script writes no blanks, there is none.
func (w wordPiece) apart(left, right string) bool {
	last, _ := utf8.DecodeLastRuneInString(left)
	if first, _ := utf8.DecodeRuneInString(right); unspaced(last) && unspaced(first) {
		return false
	}
	return strings.HasPrefix(w.t.decoder.DecodeChain([]string{left, right})[1], " ")
}

var (
	_ scheme = wordPiece{}
	_ scheme = (*pipeline)(nil)
)

// addedToken is a token that is found in a text before everything else.
type addedToken struct {
	text      string
	id        int
	special   bool // it stands for no text
	stripLeft bool // the white space on its left belongs to it
}

// matcher finds added tokens: the leftmost, and of those that start there the longest.
type matcher struct {
	tokens []addedToken // longest first
	starts string       // the characters that they start with
}

func newMatcher(tokens []addedToken) matcher {
	m := matcher{tokens: slices.Clone(tokens)}
	slices.SortFunc(m.tokens, func(a, b addedToken) int {
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), strings.Compare(a.text, b.text))
	})
	for _, token := range m.tokens {
		if first, _ := utf8.DecodeRuneInString(token.text); !strings.ContainsRune(m.starts, first) {
			m.starts += string(first)
		}
	}
	return m
}

// next finds the first token in text[from:to], where it starts and ends, and where the text before it does: the white
// space that the token strips lies between. Without a token all three are to.
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

// split finds the tokens in a normalised text: it visits the parts around them and, with the bytes that they stand for,
// the tokens.
func (m *matcher) split(l letters, part func(letters), found func(token *addedToken, span [2]int)) {
	text := string(l.runes)
	position := 0 // in characters, of the byte at
	for at := 0; at < len(text); {
		token, before, start, end := m.next(text, at, len(text))
		part(l.part(position, position+utf8.RuneCountInString(text[at:before])))
		if token == nil {
			return
		}
		position += utf8.RuneCountInString(text[at:start])
		length := utf8.RuneCountInString(text[start:end])
		found(token, l.part(position, position+length).span())
		at, position = end, position+length
	}
}

// setSpecials fills in what follows from the added tokens.
func (t *Tokenizer) setSpecials(raw []addedToken) {
	t.added = newMatcher(raw)
	for _, token := range raw {
		if token.special && token.id != t.unknown && token.text != maskToken {
			t.forbidden = append(t.forbidden, token.text)
		}
		if token.id == t.mask {
			t.maskStripsLeft = token.stripLeft
		}
	}
}

// refuseSpecial names the first token in a text that only the program may write.
func (t *Tokenizer) refuseSpecial(text string) error {
	first, found := len(text), ""
	for _, special := range t.forbidden {
		if at := strings.Index(text, special); at >= 0 && (at < first || at == first && len(special) > len(found)) {
			first, found = at, special
		}
	}
	switch found {
	case "":
		return nil
	case t.vocabulary[t.mask]:
		return inputFault(errSpecialToken, first, "%s is the model's own; write %s where a word is wanted",
			found, maskToken)
	}
	return inputFault(errSpecialToken, first, "%s is added by the program where the model needs it; take it out", found)
}
