package tokenize

import "slices"

// What the tests see besides.

const (
	MaxVocabulary = maxVocabulary

	ErrEmptyVocabulary  = errEmptyVocabulary
	ErrLargeVocabulary  = errLargeVocabulary
	ErrDuplicateToken   = errDuplicateToken
	ErrMissingToken     = errMissingToken
	ErrMalformed        = errMalformed
	ErrUnsupported      = errUnsupported
	ErrMissingTokenizer = errMissingTokenizer
	ErrInvalidUTF8      = errInvalidUTF8
	ErrControl          = errControl
	ErrSpecialToken     = errSpecialToken
	ErrBlankSyntax      = errBlankSyntax
	ErrTooManyLengths   = errTooManyLengths
	ErrUnknownWord      = errUnknownWord
)

type VocabularyError = vocabularyError

// Options are settings of BERT's steps. The zero value suits bert-base-uncased.
type Options struct {
	Cased, KeepControls, JoinChinese bool
	StripAccents                     *bool
	LongestWord                      int
}

// New makes a WordPiece tokenizer of a vocabulary in the order of the ids.
func New(vocabulary []string, o Options) (*Tokenizer, error) {
	yes := func(b bool) *bool { return &b }
	file := pipelineFile{
		Model: pipelineModel{Type: "WordPiece", UnknownToken: unknownToken, LongestWord: o.LongestWord,
			list: vocabulary},
		Normalizer: &pipelineStep{Type: "BertNormalizer", LowerCase: yes(!o.Cased), StripAccents: o.StripAccents,
			CleanText: yes(!o.KeepControls), HandleChinese: yes(!o.JoinChinese)},
		PreTokenizer:  &pipelineStep{Type: "BertPreTokenizer"},
		PostProcessor: around("[CLS]", "[SEP]"),
	}
	for id, token := range vocabulary {
		if slices.Contains(bertTokens, token) {
			file.Added = append(file.Added, added{ID: &id, Content: token, Special: true})
		}
	}
	return (&folder{source: vocabularyFile}).build(nil, &file, &file)
}

func (t *Tokenizer) ClassifierID() int { return t.classifier }

func (t *Tokenizer) PaddingID() int { return t.padding }

var GPT2Length = gpt2Length

// Unspaced reports whether the nearest letter of a blank, or the first of a token,
// is of a script that writes no spaces.
func (t *Tokenizer) Unspaced(token int) bool { return t.unspaced(token) }
