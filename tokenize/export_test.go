package tokenize

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

type Options = options

func New(vocabulary []string, o Options) (*Tokenizer, error) { return newFromList(vocabulary, o, "") }

func (t *Tokenizer) ClassifierID() int { return t.classifier }

func (t *Tokenizer) PaddingID() int { return t.padding }

var GPT2Length = gpt2Length
