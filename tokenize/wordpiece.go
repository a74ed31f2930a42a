package tokenize

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/sugarme/tokenizer/model"
	"github.com/sugarme/tokenizer/model/wordpiece"
	"golang.org/x/text/unicode/norm"
)

const unknownToken = "[UNK]"

// bertTokens are the usual special tokens of WordPiece, in the order of roles.
var bertTokens = []string{"[PAD]", unknownToken, "[CLS]", "[SEP]", maskToken}

type options struct {
	Cased        bool // keep capitals
	KeepAccents  bool // whether "é" stays
	KeepControls bool // keep control and format characters in words
	JoinChinese  bool // do not make each Chinese character a word of its own
}

func (s *pipelineStep) options() options {
	strips := isTrue(s.LowerCase)
	if s.StripAccents != nil {
		strips = *s.StripAccents
	}
	return options{Cased: !isTrue(s.LowerCase), KeepAccents: !strips, KeepControls: !isTrue(s.CleanText),
		JoinChinese: !isTrue(s.HandleChinese)}
}

// longest returns the number of characters above which a word becomes [UNK].
func (m *pipelineModel) longest() int { return cmp.Or(m.LongestWord, 100) }

func (t *Tokenizer) loadWordPiece(m *pipelineModel) error {
	switch {
	case m.LongestWord < 0:
		return pipelineFault(errUnsupported, "longest word of %d characters", m.LongestWord)
	case m.Prefix != nil && *m.Prefix != continuation:
		return pipelineFault(errUnsupported, "continuing_subword_prefix %q; %s is needed", *m.Prefix, continuation)
	}
	longest := m.longest()
	// The model gets the map while the map is still empty, so that it does not
	// build a reversed second map.
	words := model.Vocab(t.ids)
	t.model = greedy{words, longest, wordpiece.NewWordPieceBuilder().
		Vocab(&words).
		UnkToken(m.UnknownToken).
		ContinuingSubwordPrefix(continuation).
		MaxInputCharsPerWord(longest).
		Build()}
	if err := t.addVocabulary(m); err != nil {
		return err
	}
	_, blanks := t.ids[""] // several tokens of white space have one id, and leave gaps
	gap := slices.Index(t.vocabulary, "")
	if gap >= 0 && !blanks {
		return pipelineFault(errMalformed, "no token has the id %d, and one has %d", gap, len(t.vocabulary)-1)
	}
	_, ok := t.ids[m.UnknownToken]
	if !ok {
		return pipelineFault(errMissingToken, "no unknown token (%s) in the vocabulary: name another in %s, or "+
			"choose another model", m.UnknownToken, configurationFile)
	}
	return nil
}

// digestWordPiece hashes the vocabulary, the options, and the added tokens other
// than BERT's own. Each token has its length, so that no two inputs collide.
func (t *Tokenizer) digestWordPiece(o options, tokens []added) string {
	content := fmt.Appendf(nil,
		"wordpiece 1 cased %t strip accents %t keep controls %t join chinese %t longest word %d\n",
		o.Cased, !o.KeepAccents, o.KeepControls, o.JoinChinese, t.model.(greedy).longest)
	for _, token := range t.vocabulary {
		content = binary.BigEndian.AppendUint32(content, uint32(len(token)))
		content = append(content, token...)
	}
	for _, token := range tokens {
		usual := added{ID: token.ID, Content: token.Content, Special: true}
		if token != usual || !slices.Contains(bertTokens, token.Content) {
			content = fmt.Appendf(content, "added %q %d %t %t\n", token.Content, *token.ID, token.Special,
				token.Normalized)
			if token.StripLeft {
				content = append(content, "lstrip\n"...)
			}
		}
	}
	for i, id := range t.roles() {
		if t.vocabulary[*id] != bertTokens[i] {
			content = fmt.Appendf(content, "role %d %d\n", i, *id)
		}
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// greedy is the WordPiece model. Again and again, it cuts off the longest token
// with which the rest of a word begins.
type greedy struct {
	words   map[string]int
	longest int
	model   wordpiece.WordPiece
}

var _ cutter = greedy{}

func (m greedy) cut(e *encoder, word letters) {
	text := string(word.runes)
	// Most words are in the vocabulary; the model, too, would try them first.
	id, ok := m.words[text]
	if ok && len(word.runes) <= m.longest {
		e.addPiece(id, word.span())
		return
	}
	pieces, err := m.model.Tokenize(text)
	if err != nil {
		e.fail(fmt.Errorf("cut the word %q into tokens: %w", text, err))
	}
	for _, piece := range pieces { // piece.Offsets are indices of characters in the word
		e.addPiece(piece.Id, word.part(piece.Offsets[0], piece.Offsets[1]).span())
	}
}

// normalize is BertNormalizer: it cleans, puts spaces around Chinese
// characters, strips accents, and lower-cases.
func (o options) normalize(l letters) (out letters) {
	out = letters{make([]rune, 0, len(l.runes)+8), make([][2]int, 0, len(l.runes)+8), l.first}
	var scratch []byte
	for i, r := range l.runes {
		source := l.source[i]
		switch {
		case !o.KeepControls && dropped(r):
			continue
		case !o.KeepControls && unicode.IsSpace(r):
			r = ' '
		}
		alone := !o.JoinChinese && chinese(r)
		if alone {
			out.add(' ', source)
		}
		if r < utf8.RuneSelf || o.KeepAccents {
			out.add(r, source)
		} else {
			// Normalising each character by itself is enough. Full
			// normalisation also reorders marks across characters: marks that
			// are dropped here, and a few spacing marks of musical and
			// Brahmic scripts.
			scratch = norm.NFD.AppendString(scratch[:0], string(r))
			for rest := scratch; len(rest) > 0; {
				part, width := utf8.DecodeRune(rest)
				rest = rest[width:]
				if !unicode.Is(unicode.Mn, part) {
					out.add(part, source)
				}
			}
		}
		if alone {
			out.add(' ', source)
		}
	}
	if o.Cased {
		return out
	}
	return lowerCase(out)
}

// dropped reports whether BERT's cleaning removes a character: NUL, U+FFFD and
// the category "other" (control, format, private use). Tab, newline and
// carriage return are white space and stay.
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

// punctuation reports whether a character is a word of its own: an ASCII
// symbol, or of the category "punctuation".
func punctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return '!' <= r && r <= '/' || ':' <= r && r <= '@' || '[' <= r && r <= '`' || '{' <= r && r <= '~'
	}
	return unicode.IsPunct(r)
}

// chinese reports whether a character is in the blocks that BERT sets apart as
// Chinese. One extension block starts at U+2B920, 256 after its true start, as
// in Hugging Face's tokenizers, because ids must agree.
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

// roles returns pointers to the ids of the special tokens, in the order of bertTokens.
func (t *Tokenizer) roles() []*int {
	return []*int{&t.padding, &t.unknown, &t.classifier, &t.separator, &t.mask}
}
