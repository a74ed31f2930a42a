package tokenize

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// pipelineFile is the content of tokenizer.json.
type pipelineFile struct {
	Added         []added       `json:"added_tokens"`
	Normalizer    *pipelineStep `json:"normalizer"`
	PreTokenizer  *pipelineStep `json:"pre_tokenizer"`
	PostProcessor *pipelineStep `json:"post_processor"`
	Decoder       *pipelineStep `json:"decoder"` // read only if the model starts from characters
	Model         pipelineModel `json:"model"`
}

// added is a token that is found in a text before all other steps.
type added struct {
	ID         *int   `json:"id"` // only in tokenizer.json
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	StripLeft  bool   `json:"lstrip"`
	StripRight bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

type pipelineModel struct {
	Type         string          `json:"type"`
	Vocabulary   json.RawMessage `json:"vocab"`
	Merges       []mergeRule     `json:"merges"`
	Unknown      *int            `json:"unk_id"`
	UnknownToken string          `json:"unk_token"`
	LongestWord  int             `json:"max_input_chars_per_word"`
	Dropout      *float64        `json:"dropout"`
	Prefix       *string         `json:"continuing_subword_prefix"`
	Suffix       *string         `json:"end_of_word_suffix"`
	ByteFallback bool            `json:"byte_fallback"`
	FuseUnknown  bool            `json:"fuse_unk"`
	IgnoreMerges bool            `json:"ignore_merges"`

	list []string // the tokens of vocab.txt, in the order of their ids; Vocabulary is empty then
}

// named returns the type of a model. Early tokenizer.json files have no type,
// so named infers it from the other fields.
func (m *pipelineModel) named() string {
	switch {
	case m.Type != "":
		return m.Type
	case m.Merges != nil:
		return "BPE"
	case m.Unknown != nil:
		return "Unigram"
	case m.LongestWord > 0:
		return "WordPiece"
	}
	return ""
}

// mergeRule is the two sides of a merge, written "a b" or ["a", "b"].
type mergeRule [2]string

// UnmarshalJSON reads "a b" or ["a", "b"].
func (m *mergeRule) UnmarshalJSON(content []byte) error {
	if len(content) > 0 && content[0] == '[' {
		return json.Unmarshal(content, (*[2]string)(m))
	}
	var text string
	if err := json.Unmarshal(content, &text); err != nil {
		return err
	}
	left, right, ok := strings.Cut(text, " ")
	if !ok {
		return fmt.Errorf("merge %q has no blank between two tokens", text)
	}
	*m = mergeRule{left, right}
	return nil
}

// scoredToken is a token of a Unigram vocabulary, written ["text", score].
type scoredToken struct {
	text  string
	score float64
}

// UnmarshalJSON reads the pair of text and score.
func (s *scoredToken) UnmarshalJSON(content []byte) error {
	return json.Unmarshal(content, &[2]any{&s.text, &s.score})
}

var (
	_ json.Unmarshaler = (*mergeRule)(nil)
	_ json.Unmarshaler = (*scoredToken)(nil)
)

// pipelineStep is a step of a normalizer, pre-tokenizer, post-processor or
// decoder. It has the fields of all kinds.
type pipelineStep struct {
	Type          string         `json:"type"`
	Normalizers   []pipelineStep `json:"normalizers"`
	PreTokenizers []pipelineStep `json:"pretokenizers"`
	Processors    []pipelineStep `json:"processors"`
	Decoders      []pipelineStep `json:"decoders"`
	Pattern       struct {
		String *string
		Regex  *string
	} `json:"pattern"`
	Content       string `json:"content"`
	CharacterMap  []byte `json:"precompiled_charsmap"`
	StripLeft     *bool  `json:"strip_left"`
	StripRight    *bool  `json:"strip_right"`
	PrefixSpace   *bool  `json:"add_prefix_space"`
	Regex         *bool  `json:"use_regex"`
	Replacement   string `json:"replacement"`
	PrependScheme string `json:"prepend_scheme"`
	Split         *bool  `json:"split"`
	Behavior      string `json:"behavior"`
	Invert        bool   `json:"invert"`
	Start         int    `json:"start"`
	// These fields are of BertNormalizer.
	CleanText     *bool `json:"clean_text"`
	HandleChinese *bool `json:"handle_chinese_chars"`
	StripAccents  *bool `json:"strip_accents"`
	LowerCase     *bool `json:"lowercase"`
	// These fields are of post-processors. They name the tokens around a text.
	Classifier []any          `json:"cls"`
	Separator  []any          `json:"sep"`
	Single     []templateItem `json:"single"`
}

// templateItem is an item of a TemplateProcessing: a token, or the text itself.
type templateItem struct {
	Special *struct {
		ID string `json:"id"`
	} `json:"SpecialToken"`
	Sequence *struct{} `json:"Sequence"`
}

func pipelineFault(fault Fault, format string, arguments ...any) error {
	return fileFault(tokenizerFile, fault, format, arguments...)
}

// loadSteps reads the steps before the model, and the decoder.
func (t *Tokenizer) loadSteps(file *pipelineFile) error {
	if err := t.addNormalizer(file.Normalizer); err != nil {
		return err
	}
	if err := t.addSplitter(file.PreTokenizer); err != nil {
		return err
	}
	if file.PreTokenizer.uses("ByteLevel") != (t.alphabet == alphabetBytes) {
		return file.misfit()
	}
	if t.alphabet == alphabetCharacters {
		return t.loadDecoder(file.Decoder)
	}
	return nil
}

// misfit is the error for a model with a pre-tokenizer that does not suit it.
func (file *pipelineFile) misfit() error {
	return pipelineFault(errUnsupported, "model %q without the pre_tokenizer that goes with it: BPE needs "+
		"ByteLevel or byte_fallback, Unigram Metaspace; choose another model", file.Model.Type)
}

func (s *pipelineStep) is(kind string) bool { return s != nil && s.Type == kind }

// uses reports whether a pre-tokenizer is of a kind, or contains a step of that kind.
func (s *pipelineStep) uses(kind string) bool {
	return s != nil && (s.Type == kind ||
		slices.ContainsFunc(s.PreTokenizers, func(part pipelineStep) bool { return part.uses(kind) }))
}

// loadDecoder checks the decoder of a vocabulary of characters. It returns an
// error if the decoder is not the known one, which turns ▁ into a space, joins
// byte tokens, and may drop a space before the text.
func (t *Tokenizer) loadDecoder(s *pipelineStep) error {
	var kinds []string
	if s != nil && s.Type == "Sequence" {
		for _, part := range s.Decoders {
			kinds = append(kinds, part.Type)
			switch {
			case part.Type == "Replace" && part.Pattern.String != nil && *part.Pattern.String == string(metaspace) &&
				part.Content == " ":
			case part.Type == "Strip" && part.Content == " " && part.Start == 1:
				t.dropsBlank = true
			case part.Type != "ByteFallback" && part.Type != "Fuse":
				return pipelineFault(errUnsupported, "decoder %q", part.Type)
			}
		}
	}
	known := []string{"Replace", "ByteFallback", "Fuse", "Strip"}
	if len(kinds) < 3 ||
		!slices.Equal(kinds, known[:min(len(kinds), 4)]) {
		return pipelineFault(errUnsupported, "byte_fallback true without a decoder of Replace, ByteFallback and Fuse")
	}
	return nil
}

// loadModel reads the vocabulary and makes the model.
func (t *Tokenizer) loadModel(file *pipelineFile) error {
	m := &file.Model
	if m.Type == "WordPiece" {
		return t.loadWordPiece(m)
	}
	switch {
	// loadSteps would say so, too, but newBytePairs would miss the bytes before.
	case m.Type == "BPE" && !m.ByteFallback && file.PreTokenizer.uses("Metaspace"):
		return file.misfit()
	case m.Type != "BPE" && m.Type != "Unigram":
		return pipelineFault(errUnsupported, "model %q; infill knows WordPiece, BPE and Unigram", m.Type)
	case m.Dropout != nil && *m.Dropout != 0:
		return pipelineFault(errUnsupported, "model with dropout %g", *m.Dropout)
	case m.Prefix != nil && *m.Prefix != "":
		return pipelineFault(errUnsupported, "continuing_subword_prefix %q", *m.Prefix)
	case m.Suffix != nil && *m.Suffix != "":
		return pipelineFault(errUnsupported, "end_of_word_suffix %q", *m.Suffix)
	case m.ByteFallback && m.Type != "BPE":
		return pipelineFault(errUnsupported, "byte_fallback true")
	case m.IgnoreMerges:
		return pipelineFault(errUnsupported, "ignore_merges true")
	}
	if m.Type == "Unigram" {
		t.alphabet = alphabetSpaces
		return t.loadUnigram(m)
	}
	t.alphabet = alphabetBytes
	newModel := newBytePairs
	if m.ByteFallback {
		t.alphabet = alphabetCharacters
		newModel = newCharacterPairs
	}
	if err := t.addVocabulary(m); err != nil {
		return err
	}
	pairs, err := newModel(t.ids, m)
	if err != nil {
		return pipelineFault(errMalformed, "%v", err)
	}
	t.model = pairs
	return nil
}

func (t *Tokenizer) loadUnigram(m *pipelineModel) error {
	var list []scoredToken
	if err := json.Unmarshal(m.Vocabulary, &list); err != nil {
		return pipelineFault(errMalformed, "model.vocab: %v", err)
	}
	if err := t.checkSize(len(list)); err != nil {
		return err
	}
	if m.Unknown == nil || *m.Unknown < 0 || *m.Unknown >= len(list) {
		return pipelineFault(errMissingToken, "model.unk_id names no token of the vocabulary")
	}
	tokens := make([]string, len(list))
	scores := make([]float64, len(list))
	for id, token := range list {
		tokens[id] = token.text
		scores[id] = token.score
		if err := t.addToken(token.text, id); err != nil {
			return err
		}
	}
	t.unknown = *m.Unknown
	t.model = newUnigram(tokens, scores, *m.Unknown)
	return nil
}

// checkSize refuses a vocabulary of no tokens, or of over maxVocabulary.
func (t *Tokenizer) checkSize(size int) error {
	switch {
	case size == 0:
		return pipelineFault(errEmptyVocabulary, "the vocabulary has no entry")
	case size > maxVocabulary:
		return pipelineFault(errLargeVocabulary, "%d tokens, at most %d are taken", size, maxVocabulary)
	}
	return nil
}

// addTokens adds the tokens of a list. The index of a token is its id.
func (t *Tokenizer) addTokens(tokens []string) error {
	if err := t.checkSize(len(tokens)); err != nil {
		return err
	}
	for id, token := range tokens {
		if err := t.addToken(token, id); err != nil {
			return err
		}
		if len(t.ids) != id+1 {
			return pipelineFault(errDuplicateToken, "%q has id %d and id %d", token, slices.Index(tokens, token), id)
		}
	}
	return nil
}

// addVocabulary adds the tokens of m.list, or of m.Vocabulary with its ids.
func (t *Tokenizer) addVocabulary(m *pipelineModel) error {
	if m.list != nil {
		return t.addTokens(m.list)
	}
	var vocabulary map[string]int
	if m.Vocabulary != nil {
		if err := json.Unmarshal(m.Vocabulary, &vocabulary); err != nil {
			return pipelineFault(errMalformed, "model.vocab: %v", err)
		}
	}
	if err := t.checkSize(len(vocabulary)); err != nil {
		return err
	}
	for token, id := range vocabulary {
		if err := t.addToken(token, id); err != nil {
			return err
		}
	}
	return nil
}

// addToken gives a token its id. Ids may have gaps.
func (t *Tokenizer) addToken(token string, id int) error {
	// transformers 5 writes a token of white space in vocab.txt as "".
	blank := token == "" && t.alphabet == alphabetPieces
	switch {
	case !validText(token) && !blank:
		return pipelineFault(errMalformed, "token %d is %q, not a piece of text", id, token)
	case id < 0 || id >= maxVocabulary:
		return pipelineFault(errMalformed, "token %q has id %d, not between 0 and %d", token, id, maxVocabulary-1)
	}
	for len(t.vocabulary) <= id {
		t.vocabulary = append(t.vocabulary, "")
	}
	other := t.vocabulary[id]
	if other != "" && other != token {
		return pipelineFault(errMalformed, "tokens %q and %q have the same id %d", min(token, other),
			max(token, other), id)
	}
	t.vocabulary[id] = token
	t.ids[token] = id
	return nil
}

// loadAdded gives the added tokens their ids.
func (t *Tokenizer) loadAdded(tokens []added) error {
	for _, token := range tokens {
		known, ok := t.ids[token.Content]
		switch {
		case ok && known != *token.ID:
			return pipelineFault(errMalformed, "added token %q has id %d, and %d in model.vocab", token.Content,
				*token.ID, known)
		case token.SingleWord || token.StripRight:
			return pipelineFault(errUnsupported, "added token %q with single_word or rstrip", token.Content)
		}
		if err := t.addToken(token.Content, *token.ID); err != nil {
			return err
		}
	}
	return nil
}

// simpleNormalizers are the normalizers without settings, by type.
var simpleNormalizers = map[string]normalizer{"NFC": normalForm(norm.NFC), "NFD": normalForm(norm.NFD),
	"NFKC": normalForm(norm.NFKC), "NFKD": normalForm(norm.NFKD), "StripAccents": stripAccents, "Lowercase": lowerCase}

// gapPattern is the pattern of what DebertaV2Tokenizer makes a space.
const gapPattern = `\s{2,}|[\n\r\t]`

// another is what to do about a step that is not known.
const another = ", a step that infill does not know: choose another model"

// addNormalizer adds a normalizer, or all normalizers of a sequence.
func (t *Tokenizer) addNormalizer(s *pipelineStep) error {
	if s == nil {
		return nil
	}
	n, ok := simpleNormalizers[s.Type]
	if ok {
		t.cased = t.cased && s.Type != "Lowercase"
		t.normalizers = append(t.normalizers, n)
		return nil
	}
	add := func(n normalizer) error {
		t.normalizers = append(t.normalizers, n)
		return nil
	}
	switch s.Type {
	case "BertNormalizer":
		o := s.options()
		t.cased = t.cased && o.Cased
		return add(o.normalize)
	case "Sequence":
		for i := range s.Normalizers {
			if err := t.addNormalizer(&s.Normalizers[i]); err != nil {
				return err
			}
		}
		return nil
	case "Strip":
		return add(strip(isTrue(s.StripLeft), isTrue(s.StripRight)))
	case "Replace":
		switch {
		case len(s.Content) > longestReplacement:
			return pipelineFault(errMalformed, "normalizer Replace with a content of %d bytes, at most %d are taken",
				len(s.Content), longestReplacement)
		case s.Pattern.String != nil && *s.Pattern.String != "":
			return add(replace(literal(*s.Pattern.String), s.Content))
		case s.Pattern.Regex != nil && *s.Pattern.Regex == " {2,}":
			return add(replace(blanks, s.Content))
		case s.Pattern.Regex != nil && *s.Pattern.Regex == gapPattern:
			return add(replace(gaps, s.Content))
		case s.Pattern.Regex != nil:
			return pipelineFault(errUnsupported, "normalizer Replace with the pattern %.40q%s", *s.Pattern.Regex,
				another)
		}
		return pipelineFault(errMalformed, "normalizer Replace without a pattern")
	case "Precompiled":
		if len(s.CharacterMap) == 0 {
			return nil
		}
		m, err := parseCharacterMap(s.CharacterMap)
		if err != nil {
			return pipelineFault(errMalformed, "normalizer Precompiled: %v", err)
		}
		return add(m.normalize)
	}
	return pipelineFault(errUnsupported, "normalizer %q%s", s.Type, another)
}

// addSplitter adds a pre-tokenizer, or all those of a sequence.
func (t *Tokenizer) addSplitter(s *pipelineStep) error {
	if s == nil && t.alphabet == alphabetCharacters {
		return nil
	}
	if s == nil {
		return pipelineFault(errUnsupported, "no pre_tokenizer")
	}
	add := func(part splitter) error {
		t.splitters = append(t.splitters, part)
		return nil
	}
	switch s.Type {
	case "Split":
		if s.Pattern.String == nil || *s.Pattern.String == "" || s.Behavior != mergedWithPrevious || s.Invert {
			return pipelineFault(errUnsupported,
				`pre_tokenizer "Split" other than behind a text (behavior %q, invert %t)`, s.Behavior, s.Invert)
		}
		return add(splitAt(literal(*s.Pattern.String), mergedWithPrevious))
	case "Sequence":
		for i := range s.PreTokenizers {
			if err := t.addSplitter(&s.PreTokenizers[i]); err != nil {
				return err
			}
		}
		return nil
	case "ByteLevel":
		if !isTrue(s.Regex) {
			return pipelineFault(errUnsupported, "pre_tokenizer ByteLevel with use_regex false")
		}
		return add(splitGPT2(isTrue(s.PrefixSpace)))
	case "BertPreTokenizer":
		t.splitters = append(t.splitters, splitAt(one(unicode.IsSpace), removed))
		return add(splitAt(one(punctuation), isolated))
	case "WhitespaceSplit":
		return add(splitAt(one(unicode.IsSpace), removed))
	case "Punctuation":
		if s.Behavior != "" && !strings.EqualFold(s.Behavior, isolated) {
			return pipelineFault(errUnsupported, "pre_tokenizer Punctuation with the behavior %q", s.Behavior)
		}
		return add(splitAt(one(punctuation), isolated))
	case "Metaspace":
		if s.Replacement != "" && s.Replacement != string(metaspace) {
			return pipelineFault(errUnsupported, "pre_tokenizer Metaspace with the replacement %q", s.Replacement)
		}
		prepend := s.scheme()
		if prepend != prependAlways && prepend != prependFirst && prepend != prependNever {
			return pipelineFault(errUnsupported, "pre_tokenizer Metaspace with the prepend_scheme %q", prepend)
		}
		t.prepends = t.prepends || prepend != prependNever
		return add(splitMetaspace(prepend, isTrue(s.Split)))
	}
	return pipelineFault(errUnsupported, "pre_tokenizer %q%s", s.Type, another)
}

// scheme returns a Metaspace's prepend_scheme, which older files lack.
func (s *pipelineStep) scheme() string {
	switch {
	case s.PrependScheme != "":
		return s.PrependScheme
	case isTrue(s.PrefixSpace):
		return prependAlways
	}
	return prependNever
}

// loadSpecials finds the ids of the five special tokens. The post-processor
// names two of them. The others have the names in names or, if the class is not
// known, perhaps a usual name.
func (t *Tokenizer) loadSpecials(file *pipelineFile, names [7]string, c *class) error {
	first, last, err := surroundings(file.PostProcessor)
	if err != nil {
		return err
	}
	for _, special := range []struct {
		role         string
		name         string
		usual, other string
		id           *int
	}{
		{"first", first, "", "", &t.classifier},
		{"last", last, "", "", &t.separator},
		{"mask", names[roleMask], "<mask>", maskToken, &t.mask},
		{"padding", names[rolePadding], "<pad>", "[PAD]", &t.padding},
		{"unknown", cmp.Or(file.Model.UnknownToken, names[roleUnknown]), "<unk>", unknownToken, &t.unknown},
	} {
		if special.role == "unknown" && file.Model.Unknown != nil {
			continue // the model names its unknown token
		}
		candidates := []string{special.name}
		if c == nil || special.role == "padding" { // no text has it
			candidates = append(candidates, special.usual, special.other)
		}
		candidates = slices.DeleteFunc(candidates, func(s string) bool { return s == "" })
		at := slices.IndexFunc(candidates, func(name string) bool { _, ok := t.ids[name]; return ok })
		if at < 0 {
			return pipelineFault(errMissingToken, "no %s token (%s); is this the tokenizer of a masked language model?",
				special.role, strings.Join(candidates, ", "))
		}
		*special.id = t.ids[candidates[at]]
	}
	if !slices.ContainsFunc(file.Added, func(a added) bool { return *a.ID == t.mask }) {
		return pipelineFault(errMissingToken, "the mask token %q is not among added_tokens", t.vocabulary[t.mask])
	}
	return nil
}

// surroundings returns the names of the tokens before and after a text.
func surroundings(s *pipelineStep) (first, last string, err error) {
	if s == nil {
		return "", "", pipelineFault(errUnsupported, "no post_processor: nothing says which tokens stand around a "+
			"text; choose another model")
	}
	switch s.Type {
	case "Sequence":
		for i := range s.Processors {
			if s.Processors[i].Type != "ByteLevel" { // ByteLevel only trims offsets
				return surroundings(&s.Processors[i])
			}
		}
	case "RobertaProcessing", "BertProcessing":
		if len(s.Classifier) == 2 && len(s.Separator) == 2 {
			first, firstOK := s.Classifier[0].(string)
			last, lastOK := s.Separator[0].(string)
			if firstOK && lastOK {
				return first, last, nil
			}
		}
	case "TemplateProcessing":
		if len(s.Single) == 3 && s.Single[0].Special != nil && s.Single[1].Sequence != nil &&
			s.Single[2].Special != nil {
			return s.Single[0].Special.ID, s.Single[2].Special.ID, nil
		}
	}
	return "", "", pipelineFault(errUnsupported,
		"post_processor %q that does not put one token before and one after a text; choose another model", s.Type)
}

// validText returns false for invalid UTF-8: its U+FFFD would match damaged text.
func validText(s string) bool { return s != "" && utf8.ValidString(s) }
