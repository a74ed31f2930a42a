package tokenize

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"infill/internal/rawjson"
	"infill/internal/regular"
)

// These are the tokenizer files of a bundle, with the names that Hugging Face gives them.
const (
	tokenizerFile     = "tokenizer.json"
	configurationFile = "tokenizer_config.json"
	modelFile         = "config.json"
	specialFile       = "special_tokens_map.json"
	addedFile         = "added_tokens.json"
	vocabularyFile    = "vocab.txt"
	bytePairFile      = "vocab.json"
	mergesFile        = "merges.txt"
)

// maxFile bounds a tokenizer file in bytes: a bundle may come from anywhere.
const maxFile = 64 << 20

// saveIt says how to turn other files into tokenizer.json.
const saveIt = "save it with transformers: " +
	"AutoTokenizer.from_pretrained(DIR, use_fast=True).save_pretrained(DIR)"

// Load reads the tokenizer of a bundle folder, as transformers 5.24 does. The
// vocabulary is in tokenizer.json, whose model may be WordPiece, BPE or
// Unigram, else in RoBERTa's vocab.json with merges.txt, else in WordPiece's
// vocab.txt. The class that tokenizer_config.json or config.json names decides
// the steps; without a class that Load knows, tokenizer.json does. If files
// contradict each other, [Tokenizer.Warning] says so. Load refuses a tokenizer
// whose ids it cannot reproduce. An error is one line that names the file and
// says what is wrong.
func Load(fsys fs.FS) (*Tokenizer, error) {
	return load(fsys, tokenizerFile, bytePairFile, vocabularyFile)
}

// LoadVocabulary does what Load does for a bundle without tokenizer.json, in a
// fifth of the time where both say the same.
func LoadVocabulary(fsys fs.FS) (*Tokenizer, error) { return load(fsys, bytePairFile, vocabularyFile) }

// LoadFile reads tokenizer.json as it is, whatever the files beside it say.
func LoadFile(fsys fs.FS) (*Tokenizer, error) {
	content, err := readFile(fsys, tokenizerFile)
	if err != nil {
		return nil, err
	}
	return (&folder{fsys: fsys, source: tokenizerFile, content: content}).tokenizer()
}

// load reads the first of vocabularies that is there, and the files beside it.
func load(fsys fs.FS, vocabularies ...string) (*Tokenizer, error) {
	f := &folder{fsys: fsys}
	for _, settings := range []struct {
		file string
		into any
	}{{modelFile, &f.model}, {configurationFile, &f.configured}, {specialFile, &f.special}, {addedFile, &f.added}} {
		found, err := f.read(settings.file, settings.into)
		if err != nil {
			return nil, err
		}
		f.unconfigured = f.unconfigured || settings.file == configurationFile && !found
	}
	for _, name := range vocabularies {
		content, err := readFile(fsys, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f.source = name
		f.content = content
		t, err := f.tokenizer()
		return t, nameFile(err, name)
	}
	return nil, fileFault("", errMissingTokenizer, "a bundle needs tokenizer.json, or WordPiece's vocab.txt, or "+
		"RoBERTa's vocab.json and merges.txt; for others, %s", saveIt)
}

// folder is what the files of a bundle say of its tokenizer.
type folder struct {
	fsys         fs.FS
	model        modelConfiguration // config.json
	configured   configuration      // tokenizer_config.json
	unconfigured bool               // whether there is no tokenizer_config.json
	special      specialTokens      // special_tokens_map.json
	added        map[string]int     // added_tokens.json
	source       string             // the file of the vocabulary
	content      []byte             // that file, and merges.txt if it belongs to it
	notes        []string           // the parts of [Tokenizer.Warning]
}

// read reads a JSON file of the bundle to into, if there is one.
func (f *folder) read(name string, into any) (found bool, err error) {
	content, err := readFile(f.fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(content, into); err != nil {
		return false, fileFault(name, errMalformed, "%v", err)
	}
	return true, nil
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

// modelConfiguration is the part of config.json that says how to read other
// files.
type modelConfiguration struct {
	Type     string `json:"model_type"`
	Exported string `json:"exported_model_type"` // type of the model from which a graph was exported
	Class    string `json:"tokenizer_class"`
	Size     int    `json:"vocab_size"`
}

// configuration is the part of tokenizer_config.json that changes ids. A
// missing field has the default of the class.
type configuration struct {
	specialTokens
	Class            string   `json:"tokenizer_class"`
	LowerCase        *bool    `json:"do_lower_case"`
	KeepAccents      *bool    `json:"keep_accents"`
	BasicTokenize    *bool    `json:"do_basic_tokenize"`
	NeverSplit       []string `json:"never_split"`
	TokenizeChinese  *bool    `json:"tokenize_chinese_chars"`
	StripAccents     *bool    `json:"strip_accents"`
	SplitPunctuation *bool    `json:"split_by_punct"`
	PrefixSpace      *bool    `json:"add_prefix_space"`
	SplitSpecial     *bool    `json:"split_special_tokens"`
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

func (s *specialTokens) roles() [7]specialValue {
	return [7]specialValue{s.Beginning, s.End, s.Unknown, s.Separator, s.Padding, s.Classifier, s.Mask}
}

// extraTokens is a list of tokens. In JSON it is a list, or an object of tokens by role.
type extraTokens []specialValue

// UnmarshalJSON reads a list, or an object of tokens by role.
func (e *extraTokens) UnmarshalJSON(content []byte) error {
	if len(content) == 0 || content[0] != '{' {
		return json.Unmarshal(content, (*[]specialValue)(e))
	}
	for _, field := range rawjson.Value(content).Object() {
		var value specialValue
		if err := json.Unmarshal(field.Value, &value); err != nil {
			return err
		}
		*e = append(*e, value)
	}
	return nil
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

func isTrue(value *bool) bool { return value == nil || *value }

// isSet returns the value of a setting whose default is false. isTrue does so
// for settings whose default is true.
func isSet(value *bool) bool { return value != nil && *value }

// pipeline returns the content of tokenizer.json, or of an older file, which
// has a vocabulary and no steps.
func (f *folder) pipeline() (file pipelineFile, err error) {
	switch f.source {
	case vocabularyFile:
		return f.wordPiece()
	case bytePairFile:
		return f.bytePairs()
	}
	if err := json.Unmarshal(f.content, &file); err != nil {
		return file, pipelineFault(errMalformed, "%v", err)
	}
	file.Model.Type = file.Model.named()
	for _, token := range file.Added {
		if token.ID == nil {
			return file, pipelineFault(errMalformed, "added token %q has no id", token.Content)
		}
	}
	return file, nil
}

func (f *folder) tokenizer() (*Tokenizer, error) {
	if isSet(f.configured.SplitSpecial) {
		return nil, fileFault(configurationFile, errUnsupported, "split_special_tokens true")
	}
	file, err := f.pipeline()
	if err != nil {
		return nil, err
	}
	c, err := f.class(&file)
	if err != nil {
		return nil, err
	}
	taken := file
	if c != nil {
		names, _ := f.named(c)
		c.steps(&f.configured, names, &taken)
	}
	return f.build(c, &file, &taken)
}

// build makes a tokenizer of a vocabulary and the steps that are taken, which
// the class c made of those in file, or which are the same if c is nil.
func (f *folder) build(c *class, file, taken *pipelineFile) (*Tokenizer, error) {
	names, _ := f.named(c)
	t := &Tokenizer{ids: make(map[string]int, len(taken.Model.list)), cased: true}
	if err := t.loadModel(taken); err != nil {
		return nil, err
	}
	taken.Added = f.addedTokens(c, file, t.ids)
	changed := f.noteContradictions(c, file, taken)
	all := len(taken.Added)
	taken.Added = f.embedded(taken.Added, names)
	changed = changed || len(taken.Added) < all
	isNew := func(a added) bool { _, known := t.ids[a.Content]; return !known }
	_, shared := t.model.(greedy)
	if shared && slices.ContainsFunc(taken.Added, isNew) {
		t.ids = maps.Clone(t.ids) // the model keeps the words without the added tokens
	}
	if err := t.loadAdded(taken.Added); err != nil {
		return nil, err
	}
	if err := t.loadSteps(taken); err != nil {
		return nil, err
	}
	if err := t.loadSpecials(taken, names, c); err != nil {
		return nil, err
	}
	if err := t.findAdded(taken.Added); err != nil {
		return nil, err
	}
	if t.alphabet == alphabetCharacters {
		t.maskStripsLeft = t.bare() // the space before a word is part of its token
		for id, token := range t.vocabulary {
			t.notWords[id] = t.notWords[id] || byteOf(token) >= 0
		}
	}
	sum, err := t.digest(f.content, taken, changed)
	if err != nil {
		return nil, err
	}
	t.sum = sum
	t.warning = strings.Join(f.notes, "; ")
	return t, nil
}

// digest hashes the vocabulary and every option that changes ids. content has
// the vocabulary and, unless they are changed, the steps.
func (t *Tokenizer) digest(content []byte, taken *pipelineFile, changed bool) (string, error) {
	if taken.Model.Type == "WordPiece" && taken.Normalizer.is("BertNormalizer") &&
		taken.PreTokenizer.is("BertPreTokenizer") {
		return t.digestWordPiece(taken.Normalizer.options(), taken.Added), nil
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "tokenizer.json 1 padding %d unknown %d classifier %d separator %d mask %d\n", t.padding,
		t.unknown, t.classifier, t.separator, t.mask)
	sum.Write(content)
	if changed {
		steps := *taken
		steps.Model.Vocabulary = nil
		steps.Model.Merges = nil
		if err := json.NewEncoder(sum).Encode(steps); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
