package tokenize

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sugarme/tokenizer/decoder"
	"github.com/sugarme/tokenizer/model"
	"github.com/sugarme/tokenizer/model/wordpiece"
)

// maskToken is what blanks begin with, and BERT's mask.
const (
	unknownToken = "[UNK]"
	maskToken    = "[MASK]"
)

// bertTokens are the special tokens of a BERT vocabulary, in the order of roles. Text equal to one of them, in exactly
// these capitals, is that token.
var bertTokens = []string{"[PAD]", unknownToken, "[CLS]", "[SEP]", maskToken}

// roles are the ids of the special tokens.
func (t *Tokenizer) roles() []*int {
	return []*int{&t.padding, &t.unknown, &t.classifier, &t.separator, &t.mask}
}

// continuation starts a piece that continues the word on its left.
const continuation = "##"

// maxVocabulary is the largest number of tokens that is taken. The largest published BERT vocabulary has half a
// million.
const maxVocabulary = 1 << 20

// Options are the settings of BERT's normaliser and WordPiece model. The zero value is that of bert-base-uncased.
type Options struct {
	Cased        bool  // keep capitals (do_lower_case false)
	StripAccents *bool // whether "é" becomes "e" (strip_accents); nil: when the model is uncased
	KeepControls bool  // keep control and format characters in words (clean_text false)
	JoinChinese  bool  // do not make each Chinese character a word of its own (tokenize_chinese_chars false)
	LongestWord  int   // characters above which a word becomes [UNK]; 0 for the usual 100
}

// stripAccents resolves the default.
func (o Options) stripAccents() bool {
	if o.StripAccents != nil {
		return *o.StripAccents
	}
	return !o.Cased
}

// longestWord resolves the default.
func (o Options) longestWord() int { return cmp.Or(o.LongestWord, 100) }

// Tokenizer is a WordPiece vocabulary with the rules that turn text into its tokens and back.
// It does not change once made and serves any number of goroutines.
type Tokenizer struct {
	vocabulary []string // token of each id
	ids        map[string]int
	words      map[string]int // of WordPiece, without tokens that are added to its vocabulary; shared with model
	model      wordpiece.WordPiece
	decoder    *decoder.WordPieceDecoder
	options    Options
	sum        string

	padding, unknown, classifier, separator, mask int

	scheme         scheme
	cased          bool
	added          matcher  // found in a text as it is
	notWords       []bool   // per id: added tokens and others that no slot takes
	silent         []bool   // per id: special tokens, which decoding leaves out
	forbidden      []string // special tokens that a user's text may not hold
	maskStripsLeft bool     // the white space before a slot belongs to it
}

// New makes a tokenizer from a vocabulary, whose tokens are in the order of their ids. It must have [PAD],
// [UNK], [CLS], [SEP] and [MASK], and no token twice or empty.
func New(vocabulary []string, o Options) (*Tokenizer, error) {
	t, err := newWordPiece(vocabulary, o)
	return t, nameFile(err, "")
}

// newWordPiece is New with errors about tokenizer.json, and with further added tokens.
func newWordPiece(vocabulary []string, o Options, further ...pipelineAdded) (*Tokenizer, error) {
	if o.LongestWord < 0 {
		return nil, pipelineFault(errUnsupported, "longest word of %d characters", o.LongestWord)
	}
	t := &Tokenizer{
		vocabulary: make([]string, 0, len(vocabulary)),
		ids:        make(map[string]int, len(vocabulary)),
		decoder:    decoder.NewWordPieceDecoder(continuation, true),
		options:    o,
	}
	// Built over the still empty map, which it shares, so that it does not build a second, reversed one: half of the
	// loading time.
	shared := model.Vocab(t.ids)
	t.model = wordpiece.NewWordPieceBuilder().
		Vocab(&shared).
		UnkToken(unknownToken).
		ContinuingSubwordPrefix(continuation).
		MaxInputCharsPerWord(o.longestWord()).
		Build()
	if err := t.addTokens(vocabulary); err != nil {
		return nil, err
	}
	if t.words = t.ids; len(further) > 0 {
		t.ids = maps.Clone(t.ids)
	}
	for _, token := range further {
		if err := t.addToken(token.Content, *token.ID); err != nil {
			return nil, err
		}
	}
	t.cased = o.Cased
	t.notWords, t.silent = make([]bool, len(t.vocabulary)), make([]bool, len(t.vocabulary))
	var specials []addedToken
	for i, token := range bertTokens {
		id, ok := t.ids[token]
		if !ok {
			return nil, pipelineFault(errMissingToken, "%s is not in the vocabulary; is this a BERT vocabulary?", token)
		}
		*t.roles()[i], t.notWords[id], t.silent[id] = id, true, true
		specials = append(specials, addedToken{text: token, id: id, special: true})
	}
	raw, normalized, err := t.sortAdded(further, func(text string) (string, error) {
		return string((&encoder{t: t, text: text}).letters(0, len(text)).runes), nil
	})
	if err != nil {
		return nil, err
	}
	t.scheme = wordPiece{t, newMatcher(normalized)}
	t.setSpecials(append(specials, raw...))
	t.sum = t.digest(further)
	return t, nil
}

// digest hashes the vocabulary and the options as they take effect, each with its length so that no two inputs collide.
func (t *Tokenizer) digest(further []pipelineAdded) string {
	size := 0
	for _, token := range t.vocabulary {
		size += len(token) + 4
	}
	content := make([]byte, 0, size+128)
	content = fmt.Appendf(content,
		"wordpiece 1 cased %t strip accents %t keep controls %t join chinese %t longest word %d\n",
		t.options.Cased, t.options.stripAccents(), t.options.KeepControls, t.options.JoinChinese,
		t.options.longestWord())
	for _, token := range t.vocabulary {
		content = binary.BigEndian.AppendUint32(content, uint32(len(token)))
		content = append(content, token...)
	}
	for _, token := range further {
		content = fmt.Appendf(content, "added %q %d %t %t\n", token.Content, *token.ID, token.Special, token.Normalized)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// VocabularySize returns the number of tokens.
func (t *Tokenizer) VocabularySize() int { return len(t.vocabulary) }

// Token returns the token of an id, with "##" where it continues a word, and "" for an id outside the vocabulary.
func (t *Tokenizer) Token(id int) string {
	if id < 0 || id >= len(t.vocabulary) {
		return ""
	}
	return t.vocabulary[id]
}

// ID returns the id of a token.
func (t *Tokenizer) ID(token string) (id int, ok bool) {
	id, ok = t.ids[token]
	return id, ok
}

// MaskID returns the id of [MASK].
func (t *Tokenizer) MaskID() int { return t.mask }

// SeparatorID returns the id of [SEP].
func (t *Tokenizer) SeparatorID() int { return t.separator }

// UnknownID returns the id of [UNK].
func (t *Tokenizer) UnknownID() int { return t.unknown }

// Cased reports whether the tokenizer keeps capitals.
func (t *Tokenizer) Cased() bool { return t.cased }

// SHA256 returns, in hexadecimal, a hash of the vocabulary and every option that changes ids.
func (t *Tokenizer) SHA256() string { return t.sum }

// Continues reports whether a token continues the word on its left: a "##" piece, or letters and digits without
// a space of their own if the vocabulary marks spaces (Ġ, ▁).
func (t *Tokenizer) Continues(id int) bool {
	text, joins := t.scheme.read(t.Token(id))
	first, _ := utf8.DecodeRuneInString(text)
	_, pieces := t.scheme.(wordPiece)
	return joins && (pieces || wordRune(first))
}

// Unspaced reports whether the token of an id begins with a letter of a script that writes no blanks between words, and
// is no "##" piece.
func (t *Tokenizer) Unspaced(id int) bool {
	text, joins := t.scheme.read(t.Token(id))
	first, _ := utf8.DecodeRuneInString(text)
	_, pieces := t.scheme.(wordPiece)
	return unspaced(first) && joins != pieces
}

// opensWord reports whether a token that follows another begins a word.
func (t *Tokenizer) opensWord(id int) bool {
	_, joins := t.scheme.read(t.Token(id))
	return !joins || t.Unspaced(id)
}

// Word reports whether the token of an id is a word or a piece of one: letters, digits and the marks on them alone.
func (t *Tokenizer) Word(id int) bool {
	text, _ := t.scheme.read(t.Token(id))
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !wordRune(r) && !unicode.IsMark(r) })
}

// continues is false for a bare "##", which is text.
func continues(token string) bool {
	return len(token) > len(continuation) && strings.HasPrefix(token, continuation)
}

// Fillable returns the ids that a slot may take, ascending: all tokens except special and added ones, [unused0],
// [unused1], ..., and tokens that are empty text or a part of a character. The caller owns the slice.
func (t *Tokenizer) Fillable() []int {
	fillable := make([]int, 0, len(t.vocabulary))
	for id, token := range t.vocabulary {
		text, _ := t.scheme.read(token)
		if !t.notWords[id] && !unused(token) && utf8.ValidString(text) && strings.TrimSpace(text) != "" {
			fillable = append(fillable, id)
		}
	}
	return fillable
}

// unused reports whether a token is a reserved place of the vocabulary, [unusedN].
func unused(token string) bool {
	number, found := strings.CutPrefix(token, "[unused")
	number, closed := strings.CutSuffix(number, "]")
	return found && closed && number != "" && strings.Trim(number, "0123456789") == ""
}

// Decode returns the text of ids as Hugging Face's decoder does: without special tokens, pieces joined, and for
// WordPiece without the space before . , ? !. Ids outside the vocabulary are left out.
func (t *Tokenizer) Decode(ids []int) string {
	tokens := make([]string, 0, len(ids))
	for _, id := range ids {
		if id >= 0 && id < len(t.vocabulary) && !t.silent[id] {
			tokens = append(tokens, t.vocabulary[id])
		}
	}
	if p, ok := t.scheme.(*pipeline); ok {
		return p.decode(tokens)
	}
	return strings.Join(t.decoder.DecodeChain(tokens), "")
}
