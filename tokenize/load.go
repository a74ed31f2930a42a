package tokenize

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"infill/internal/regular"
)

// These are the tokenizer files of a bundle, with the names that Hugging Face gives them.
const (
	vocabularyFile    = "vocab.txt"
	configurationFile = "tokenizer_config.json"
	tokenizerFile     = "tokenizer.json"
)

// maxFile is the largest size of a tokenizer file in bytes, because a bundle
// may come from anywhere.
const maxFile = 64 << 20

// Load reads the tokenizer of a bundle folder. It takes tokenizer.json, whose
// model may be WordPiece, BPE or Unigram, else RoBERTa's vocab.json with
// merges.txt, else WordPiece's vocab.txt with tokenizer_config.json. Load
// refuses a tokenizer whose ids it cannot reproduce: an unknown model or step,
// or a WordPiece with other special tokens or with tokens that another file
// adds. An error is one line that names the file and says what is wrong.
func Load(fsys fs.FS) (*Tokenizer, error) {
	pipeline, err := readFile(fsys, tokenizerFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if pipeline == nil {
		return LoadVocabulary(fsys)
	}
	configured, err := readFile(fsys, configurationFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return loadTokenizer(fsys, pipeline, configured)
}

// LoadVocabulary does what Load does for a bundle without tokenizer.json. Where
// tokenizer.json says the same as the other files, LoadVocabulary takes a fifth
// of the time.
func LoadVocabulary(fsys fs.FS) (*Tokenizer, error) {
	content := map[string][]byte{}
	for _, name := range []string{configurationFile, vocabularyFile} {
		read, err := readFile(fsys, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		content[name] = read
	}
	_, err := fs.Lstat(fsys, bytePairFile)
	switch {
	case err == nil:
		return loadBytePairs(fsys, content[configurationFile])
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case content[vocabularyFile] == nil:
		return nil, fileFault("", errMissingTokenizer, "a bundle needs tokenizer.json, or WordPiece's vocab.txt, or "+
			"RoBERTa's vocab.json and merges.txt; for others, %s", saveIt)
	case content[configurationFile] == nil:
		return nil, fileFault(configurationFile, errMissingTokenizer, "%s alone does not say whether the model keeps "+
			"capitals: give --cased or --uncased to infill models import or pull", vocabularyFile)
	}
	t, err := loadVocabulary(string(content[vocabularyFile]), content[configurationFile])
	return t.checked(fsys, err)
}

// checked returns an error if a WordPiece tokenizer lacks a token that another
// file adds, or err if it is not nil.
func (t *Tokenizer) checked(fsys fs.FS, err error) (*Tokenizer, error) {
	if err != nil {
		return nil, err
	}
	var configured, special specialTokens
	var added map[string]int
	for file, into := range map[string]any{configurationFile: &configured, specialFile: &special, addedFile: &added} {
		if err := readSettings(fsys, file, into); err != nil {
			return nil, err
		}
	}
	names := map[string]string{} // names of added tokens, with the files that add them
	for name := range added {
		names[name] = addedFile
	}
	for _, value := range special.further() {
		names[value.name] = specialFile
	}
	for _, value := range configured.further() {
		names[value.name] = configurationFile
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		id, ok := t.ids[name]
		if !ok || !t.notWords[id] {
			return nil, fileFault(names[name], errUnsupported,
				"added token %.40q; only those of %s are taken: save it with transformers", name, tokenizerFile)
		}
	}
	return t, nil
}

// readFile reads a file of the bundle, up to maxFile bytes.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	content, err := regular.ReadFS(fsys, name, maxFile)
	switch {
	case errors.Is(err, regular.ErrLarge):
		return nil, fileFault(name, errLargeVocabulary, "%v", err)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: %w", name, err)
	case err == nil && len(content) == 0 && strings.HasSuffix(name, ".json"): // empty is not the same as absent
		return nil, fileFault(name, errMalformed, "the file is empty")
	}
	return content, err
}

// configuration is the part of tokenizer_config.json that changes ids. A
// missing field has Hugging Face's default.
type configuration struct {
	specialTokens
	Class           string   `json:"tokenizer_class"`
	LowerCase       *bool    `json:"do_lower_case"`
	BasicTokenize   *bool    `json:"do_basic_tokenize"`
	NeverSplit      []string `json:"never_split"`
	TokenizeChinese *bool    `json:"tokenize_chinese_chars"`
	StripAccents    *bool    `json:"strip_accents"`
	PrefixSpace     *bool    `json:"add_prefix_space"`
	SplitSpecial    *bool    `json:"split_special_tokens"`
}

// added is a token that is found in a text before all other steps.
type added struct {
	ID         *int   `json:"id"` // only in tokenizer.json
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	StripLeft  bool   `json:"lstrip"`
	StripRight bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
}

// loadVocabulary makes a tokenizer from the contents of vocab.txt and
// tokenizer_config.json.
func loadVocabulary(vocabulary string, configurationContent []byte) (*Tokenizer, error) {
	unsupported := func(format string, arguments ...any) error {
		return fileFault(configurationFile, errUnsupported, format, arguments...)
	}
	var c configuration
	if err := unmarshal(configurationFile, configurationContent, &c); err != nil {
		return nil, err
	}
	switch strings.TrimSuffix(c.Class, "Fast") {
	case "", "BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "MobileBertTokenizer":
	default:
		return nil, unsupported("tokenizer_class %q; BertTokenizer and its like are", c.Class)
	}
	if !isTrue(c.BasicTokenize) {
		return nil, unsupported("do_basic_tokenize false")
	}
	for i, special := range []specialValue{c.Padding, c.Unknown, c.Classifier, c.Separator, c.Mask} {
		if special.name != "" && special.name != bertTokens[i] {
			return nil, unsupported("special token %q where BERT has %s", special.name, bertTokens[i])
		}
	}
	for _, word := range c.NeverSplit {
		if !slices.Contains(bertTokens, word) {
			return nil, unsupported("never_split word %q", word)
		}
	}
	for _, token := range c.Listed {
		if err := token.check(configurationFile); err != nil {
			return nil, err
		}
	}
	o := options{Cased: !isTrue(c.LowerCase), JoinChinese: !isTrue(c.TokenizeChinese), StripAccents: c.StripAccents}
	tokens, err := parseVocabulary(vocabulary)
	if err != nil {
		return nil, err
	}
	return newFromList(tokens, o, vocabularyFile)
}

// check returns an error for an added token that would change ids. It allows
// only the five special tokens, matched exactly.
func (a added) check(file string) error {
	switch {
	case !slices.Contains(bertTokens, a.Content):
		return fileFault(file, errUnsupported, "added token %q; only BERT's special tokens are taken", a.Content)
	case a.SingleWord || a.StripLeft || a.StripRight || a.Normalized:
		return fileFault(file, errUnsupported,
			"added token %s with single_word, lstrip, rstrip or normalized", a.Content)
	}
	return nil
}

// parseVocabulary returns the tokens of vocab.txt, which has one token on each
// line. The first token has id 0.
func parseVocabulary(content string) ([]string, error) {
	fault := func(fault Fault, line int, format string, arguments ...any) error {
		return fileFault(fmt.Sprintf("%s line %d", vocabularyFile, line), fault, format, arguments...)
	}
	content = strings.TrimSuffix(content, "\n")
	content = strings.TrimSuffix(content, "\r")
	if content == "" {
		return nil, fileFault(vocabularyFile, errEmptyVocabulary, "")
	}
	valid := utf8.ValidString(content) // checked at once, because most files are valid and this is much faster
	tokens := make([]string, 0, min(strings.Count(content, "\n")+1, maxVocabulary))
	for token := range strings.SplitSeq(content, "\n") {
		token = strings.TrimSuffix(token, "\r")
		line := len(tokens) + 1
		switch {
		case token == "":
			return nil, fault(errMalformed, line, "the line is empty")
		case !valid && !utf8.ValidString(token):
			return nil, fault(errMalformed, line, "%q is not valid UTF-8", token)
		case line > maxVocabulary:
			return nil, fault(errLargeVocabulary, line, "at most %d tokens are taken", maxVocabulary)
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}

// loadTokenizer makes a tokenizer from the contents of tokenizer.json and of
// tokenizer_config.json, which may be empty.
func loadTokenizer(fsys fs.FS, content, configurationContent []byte) (*Tokenizer, error) {
	var file pipelineFile
	if err := json.Unmarshal(content, &file); err != nil {
		return nil, pipelineFault(errMalformed, "%v", err)
	}
	var c configuration
	if err := unmarshal(configurationFile, configurationContent, &c); err != nil {
		return nil, err
	}
	file.Model.Type = file.Model.named()
	if file.Model.Type == "BPE" || file.Model.Type == "Unigram" {
		return file.load(content, &c)
	}
	t, err := file.wordPiece(&c)
	return t.checked(fsys, err)
}

// wordPiece makes a tokenizer from a file whose model is WordPiece. As in
// transformers, the normalising options in the configuration of a BERT class
// override those in the file.
func (file *pipelineFile) wordPiece(c *configuration) (*Tokenizer, error) {
	kind := func(s *pipelineStep) string {
		if s == nil {
			return ""
		}
		return s.Type
	}
	prefix := file.Model.Prefix
	if prefix == nil {
		prefix = new(string)
	}
	for _, part := range []struct {
		name, kind string
		want       []string
	}{
		{"model", file.Model.Type, []string{"WordPiece"}},
		{"normalizer", kind(file.Normalizer), []string{"BertNormalizer"}},
		{"pre_tokenizer", kind(file.PreTokenizer), []string{"BertPreTokenizer"}},
		{"post_processor", kind(file.PostProcessor), []string{"TemplateProcessing", "BertProcessing"}},
		{"unk_token", file.Model.UnknownToken, []string{unknownToken}},
		{"continuing_subword_prefix", *prefix, []string{continuation}},
	} {
		if !slices.Contains(part.want, part.kind) {
			return nil, pipelineFault(errUnsupported, "%s %q; %s is needed", part.name, part.kind,
				strings.Join(part.want, " or "))
		}
	}
	n := file.Normalizer
	class := strings.TrimSuffix(c.Class, "Fast")
	if class != "PreTrainedTokenizer" && class != "TokenizersBackend" {
		n.LowerCase = cmp.Or(c.LowerCase, n.LowerCase)
		n.HandleChinese = cmp.Or(c.TokenizeChinese, n.HandleChinese)
		n.StripAccents = cmp.Or(c.StripAccents, n.StripAccents)
	}
	return newWordPiece(options{
		Cased: !isTrue(n.LowerCase), KeepControls: !isTrue(n.CleanText), JoinChinese: !isTrue(n.HandleChinese),
		StripAccents: n.StripAccents,
		LongestWord:  file.Model.LongestWord,
	}, 0, file.Added, func(t *Tokenizer) error { return t.addVocabulary(&file.Model) })
}

// specialTokens holds the special tokens that tokenizer_config.json or
// special_tokens_map.json names.
type specialTokens struct {
	Beginning  specialValue   `json:"bos_token"`
	End        specialValue   `json:"eos_token"`
	Unknown    specialValue   `json:"unk_token"`
	Separator  specialValue   `json:"sep_token"`
	Padding    specialValue   `json:"pad_token"`
	Classifier specialValue   `json:"cls_token"`
	Mask       specialValue   `json:"mask_token"`
	Additional []specialValue `json:"additional_special_tokens"`
	Extra      extraTokens    `json:"extra_special_tokens"`
	Listed     map[int]added  `json:"added_tokens_decoder"` // by id
}

// further returns the special tokens without a role.
func (s *specialTokens) further() []specialValue { return slices.Concat(s.Additional, s.Extra) }

// extraTokens is a list of tokens. In JSON it is a list, or an object of tokens by role.
type extraTokens []specialValue

// UnmarshalJSON reads a list, or an object of tokens by role.
func (e *extraTokens) UnmarshalJSON(content []byte) error {
	if len(content) == 0 || content[0] != '{' {
		return json.Unmarshal(content, (*[]specialValue)(e))
	}
	var byRole map[string]specialValue
	err := json.Unmarshal(content, &byRole)
	*e = slices.Collect(maps.Values(byRole))
	return err
}

// specialValue is a special token, written as a string, as an object, or as null.
type specialValue struct {
	name  string
	token *added // nil unless the token is written as an object
}

// UnmarshalJSON reads a string, an object, or null.
func (v *specialValue) UnmarshalJSON(content []byte) error {
	*v = specialValue{}
	if len(content) > 0 && content[0] == '{' {
		v.token = &added{}
		err := json.Unmarshal(content, v.token)
		v.name = v.token.Content
		return err
	}
	return json.Unmarshal(content, &v.name)
}

var (
	_ json.Unmarshaler = (*extraTokens)(nil)
	_ json.Unmarshaler = (*specialValue)(nil)
)

// unmarshal reads the content of a JSON file. If the content is empty,
// value stays as it is.
func unmarshal(name string, content []byte, value any) error {
	if len(content) == 0 {
		return nil
	}
	if err := json.Unmarshal(content, value); err != nil {
		return fileFault(name, errMalformed, "%v", err)
	}
	return nil
}

// readSettings reads a JSON file of the bundle. If there is no such file,
// value stays as it is.
func readSettings(fsys fs.FS, name string, value any) error {
	content, err := readFile(fsys, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return unmarshal(name, content, value)
}

func isTrue(value *bool) bool { return value == nil || *value }
