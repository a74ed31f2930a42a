package tokenize

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/sugarme/tokenizer/model"
	"github.com/sugarme/tokenizer/model/wordpiece"
	"golang.org/x/text/unicode/norm"
)

const unknownToken = "[UNK]"

// bertTokens are the special tokens of a BERT vocabulary, in the
// order of roles. Text that equals one of them, in exactly these
// capitals, is that token.
var bertTokens = []string{"[PAD]", unknownToken, "[CLS]", "[SEP]", maskToken}

// options are the settings of BERT's normaliser and WordPiece model. The zero
// value suits bert-base-uncased.
type options struct {
	Cased        bool  // keep capitals (do_lower_case false)
	StripAccents *bool // whether "é" becomes "e" (strip_accents); nil: if the model is uncased
	KeepControls bool  // keep control and format characters in words (clean_text false)
	JoinChinese  bool  // do not make each Chinese character a word of its own (tokenize_chinese_chars false)
	LongestWord  int   // a word with more characters becomes [UNK]; 0 means the usual 100
}

// stripAccents returns StripAccents, or its default if it is nil.
func (o options) stripAccents() bool {
	if o.StripAccents != nil {
		return *o.StripAccents
	}
	return !o.Cased
}

// longestWord returns LongestWord, or its default if it is 0.
func (o options) longestWord() int { return cmp.Or(o.LongestWord, 100) }

// newFromList makes a tokenizer from a vocabulary, whose tokens are in the order
// of their ids. The vocabulary must have [PAD], [UNK], [CLS], [SEP] and [MASK].
// No token may be empty or occur twice. Errors name file.
func newFromList(vocabulary []string, o options, file string) (*Tokenizer, error) {
	t, err := newWordPiece(o, len(vocabulary), nil, func(t *Tokenizer) error { return t.addTokens(vocabulary) })
	return t, nameFile(err, file)
}

// newWordPiece makes a tokenizer with the rules of BERT. fill adds the
// vocabulary, of about size tokens. addedTokens are further tokens. Errors are
// about tokenizer.json.
func newWordPiece(o options, size int, addedTokens []pipelineAdded, fill func(*Tokenizer) error) (*Tokenizer, error) {
	if o.LongestWord < 0 {
		return nil, pipelineFault(errUnsupported, "longest word of %d characters", o.LongestWord)
	}
	t := &Tokenizer{ids: make(map[string]int, size)}
	// The model gets the map while the map is still empty, so that it does not
	// build a reversed second map.
	words := model.Vocab(t.ids)
	t.model = greedy{words, o.longestWord(), wordpiece.NewWordPieceBuilder().
		Vocab(&words).
		UnkToken(unknownToken).
		ContinuingSubwordPrefix(continuation).
		MaxInputCharsPerWord(o.longestWord()).
		Build()}
	if err := fill(t); err != nil {
		return nil, err
	}
	t.cased = o.Cased
	t.normalizers = []normalizer{o.normalize}
	t.splitters = []splitter{splitAt(one(unicode.IsSpace), removed), splitAt(one(punctuation), isolated)}
	var specials, further []pipelineAdded
	for i, token := range bertTokens {
		id, ok := t.ids[token]
		if !ok {
			return nil, pipelineFault(errMissingToken, "%s is not in the vocabulary; is this a BERT vocabulary?", token)
		}
		*t.roles()[i] = id
		specials = append(specials, pipelineAdded{added: added{ID: &id, Content: token}, Special: true})
	}
	for _, token := range addedTokens {
		switch {
		case slices.Contains(bertTokens, token.Content):
			if err := token.check(tokenizerFile); err != nil {
				return nil, err
			}
		case token.SingleWord || token.StripLeft || token.StripRight || token.Special && token.Normalized:
			return nil, pipelineFault(errUnsupported,
				"added token %.40q with single_word, lstrip or rstrip, or with special and normalized", token.Content)
		default:
			further = append(further, token)
		}
	}
	if len(further) > 0 {
		t.ids = maps.Clone(t.ids) // the model keeps the words without the added tokens
	}
	if err := t.loadAdded(addedTokens); err != nil {
		return nil, err
	}
	gap := slices.Index(t.vocabulary, "")
	if gap >= 0 {
		return nil, pipelineFault(errMalformed, "no token has the id %d, and one has %d", gap, len(t.vocabulary)-1)
	}
	t.sum = o.digest(t.vocabulary, further)
	if err := t.findAdded(append(specials, further...)); err != nil {
		return nil, err
	}
	return t, nil
}

// digest hashes the vocabulary and the options in effect. Each token has its
// length, so that no two inputs collide.
func (o options) digest(vocabulary []string, further []pipelineAdded) string {
	content := fmt.Appendf(nil,
		"wordpiece 1 cased %t strip accents %t keep controls %t join chinese %t longest word %d\n",
		o.Cased, o.stripAccents(), o.KeepControls, o.JoinChinese, o.longestWord())
	for _, token := range vocabulary {
		content = binary.BigEndian.AppendUint32(content, uint32(len(token)))
		content = append(content, token...)
	}
	for _, token := range further {
		content = fmt.Appendf(content, "added %q %d %t %t\n", token.Content, *token.ID, token.Special, token.Normalized)
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
	// Most words are in the vocabulary as they are. The model, too, would first
	// try the whole word.
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
		if r < utf8.RuneSelf || !o.stripAccents() {
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

// nameFile replaces tokenizer.json in an error by name, the name of the file
// that was really read.
func nameFile(err error, name string) error {
	var vocabularyErr *vocabularyError
	if errors.As(err, &vocabularyErr) && vocabularyErr.File == tokenizerFile {
		vocabularyErr.File = name
	}
	return err
}

// roles returns pointers to the ids of the special tokens, in the order of bertTokens.
func (t *Tokenizer) roles() []*int {
	return []*int{&t.padding, &t.unknown, &t.classifier, &t.separator, &t.mask}
}
