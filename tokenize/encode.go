package tokenize

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Encoding is a text as the model reads it, [CLS] first and [SEP] last. All four slices have one entry per token.
type Encoding struct {
	IDs     []int
	Tokens  []string
	Offsets [][2]int // bytes of the text that the token stands for; {0, 0} for [CLS] and [SEP]

	// Words holds, per token, the number of its word, from 0, and -1 for [CLS] and [SEP]. White space and
	// punctuation separate words; a punctuation mark, a Chinese character and a special token are words of their
	// own.
	Words []int
}

// Encode gives the tokens of any text, exactly those of Hugging Face's tokenizers library, special tokens in the text
// included: "[MASK]" is the token, "[MASK:3]" is plain text. Invalid UTF-8 and control characters are dropped.
// (For about 600 characters that are newer than that library's tables, Go's tables decide.) Use it for corpora
// and for comparison: Tokenizer.Template and Tokenizer.Plain return errors for bad texts instead.
func (t *Tokenizer) Encode(text string) (*Encoding, error) {
	e := t.newEncoder(text)
	e.addPlain(0, len(text))
	return e.finish()
}

// encoder builds one Encoding, piece of text by piece of text.
type encoder struct {
	t        *Tokenizer
	text     string
	encoding *Encoding
	words    int
	inside   bool // a piece of the text that is being cut has tokens

	word    []byte   // the normalised word being read
	sources [][2]int // the bytes of text that each character of word came from
	scratch []byte
	err     error // the first
}

func (t *Tokenizer) newEncoder(text string) *encoder {
	tokens := len(text)/4 + 3 // English has four to five bytes a token
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

func (e *encoder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

func (e *encoder) add(id, start, end, word int) {
	e.encoding.IDs = append(e.encoding.IDs, id)
	e.encoding.Tokens = append(e.encoding.Tokens, e.t.vocabulary[id])
	e.encoding.Offsets = append(e.encoding.Offsets, [2]int{start, end})
	e.encoding.Words = append(e.encoding.Words, word)
}

// addWord adds a token that is a word of its own.
func (e *encoder) addWord(id, start, end int) {
	e.add(id, start, end, e.words)
	e.words++
}

// addOwn adds text[from:to] of a user, in which a backslash makes text of what would be a blank.
func (e *encoder) addOwn(from, to int, escapes []mark) {
	for _, m := range escapes {
		if m.start-1 >= from && m.end <= to {
			e.addPlain(from, m.start-1)
			e.t.scheme.encode(e, m.start, m.end) // past the search for added tokens, which would find the model's mask
			from = m.end
		}
	}
	e.addPlain(from, to)
}

// addPlain adds text[from:to], added tokens included. The strict readers have refused most of these before.
func (e *encoder) addPlain(from, to int) {
	for from < to {
		token, before, start, end := e.t.added.next(e.text, from, to)
		if before > from {
			e.t.scheme.encode(e, from, before)
		}
		if token == nil {
			return
		}
		e.addWord(token.id, start, end)
		from = end
	}
}

// addText adds the WordPiece tokens of text[from:to], which holds no added token: BertPreTokenizer's split on white
// space and punctuation follows BertNormalizer.
func (e *encoder) addText(from, to int) {
	e.normalize(from, to, e.addRune)
	e.endWord()
}

// normalize puts out the characters of text[from:to], each with the bytes that it came from. The order of the steps is
// BertNormalizer's: clean, set Chinese characters apart by blanks, strip accents, lower-case.
func (e *encoder) normalize(from, to int, put func(r rune, source [2]int)) {
	o := &e.t.options
	strip := o.stripAccents()
	lower := func(r rune, source [2]int) {
		switch {
		case o.Cased:
			put(r, source)
		case r == 'İ': // the one character whose lower case is two
			put('i', source)
			put('\u0307', source)
		default:
			put(unicode.ToLower(r), source)
		}
	}
	for at := from; at < to; {
		r, size := utf8.DecodeRuneInString(e.text[at:to]) // an invalid byte reads as U+FFFD, as in the reference
		source := [2]int{at, at + size}
		at += size
		switch {
		case !o.KeepControls && dropped(r):
			continue
		case !o.KeepControls && unicode.IsSpace(r):
			r = ' '
		}
		alone := !o.JoinChinese && chinese(r)
		if alone {
			put(' ', source)
		}
		if r < utf8.RuneSelf || !strip {
			lower(r, source)
		} else {
			// Character by character is enough: the reordering across characters that full normalisation adds concerns
			// marks that are dropped here, and a few spacing marks of musical and Brahmic scripts.
			e.scratch = norm.NFD.AppendString(e.scratch[:0], e.text[source[0]:source[1]])
			for rest := e.scratch; len(rest) > 0; {
				part, width := utf8.DecodeRune(rest)
				if rest = rest[width:]; !unicode.Is(unicode.Mn, part) {
					lower(part, source)
				}
			}
		}
		if alone {
			put(' ', source)
		}
	}
}

// letters is text[from:to] after normalising.
func (e *encoder) letters(from, to int) (l letters) {
	e.normalize(from, to, l.add)
	return l
}

// addRune adds one normalised character to the word being read; punctuation is a word of its own.
func (e *encoder) addRune(r rune, source [2]int) {
	apart := punctuation(r)
	if apart || unicode.IsSpace(r) {
		e.endWord()
	}
	if apart || !unicode.IsSpace(r) {
		e.word = utf8.AppendRune(e.word, r)
		e.sources = append(e.sources, source)
	}
	if apart {
		e.endWord()
	}
}

// endWord cuts the word being read into pieces.
func (e *encoder) endWord() {
	if len(e.word) == 0 {
		return
	}
	// Most words are in the vocabulary as they are, which is also what the model tries first.
	if id, ok := e.t.words[string(e.word)]; ok && len(e.sources) <= e.t.options.longestWord() {
		e.add(id, e.sources[0][0], e.sources[len(e.sources)-1][1], e.words)
	} else {
		pieces, err := e.t.model.Tokenize(string(e.word))
		if err != nil {
			e.fail(fmt.Errorf("cut the word %q into pieces: %w", e.word, err))
		}
		for _, piece := range pieces { // piece.Offsets count characters of the word
			e.add(piece.Id, e.sources[piece.Offsets[0]][0], e.sources[piece.Offsets[1]-1][1], e.words)
		}
	}
	e.words++
	e.word, e.sources = e.word[:0], e.sources[:0]
}

// dropped reports whether BERT's cleaning removes a character: NUL, U+FFFD and the category "other" (control, format,
// private use), where tab, newline and carriage return are white space instead.
func dropped(r rune) bool {
	switch r {
	case '\t', '\n', '\r':
		return false
	case 0, utf8.RuneError:
		return true
	}
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co)
}

// punctuation reports whether a character is a word of its own: every ASCII symbol, and the category "punctuation".
func punctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return '!' <= r && r <= '/' || ':' <= r && r <= '@' || '[' <= r && r <= '`' || '{' <= r && r <= '~'
	}
	return unicode.IsPunct(r)
}

// chinese reports whether a character is in the blocks that are set apart as Chinese. One extension block starts at
// U+2B920, 256 after its true start: that is where Hugging Face's tokenizers starts it, and ids must agree.
func chinese(r rune) bool {
	return r >= 0x3400 && (r <= 0x4DBF ||
		0x4E00 <= r && r <= 0x9FFF ||
		0xF900 <= r && r <= 0xFAFF ||
		0x20000 <= r && r <= 0x2A6DF ||
		0x2A700 <= r && r <= 0x2B73F ||
		0x2B740 <= r && r <= 0x2B81F ||
		0x2B920 <= r && r <= 0x2CEAF ||
		0x2F800 <= r && r <= 0x2FA1F)
}
