package tokenize

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// These are the files of RoBERTa's byte-level BPE without tokenizer.json, with
// the names that Hugging Face gives them.
const (
	modelFile    = "config.json"
	specialFile  = "special_tokens_map.json"
	addedFile    = "added_tokens.json"
	bytePairFile = "vocab.json"
	mergesFile   = "merges.txt"
)

// bytePairClass is the class of transformers that reads these files.
const bytePairClass = "RobertaTokenizer"

// saveIt says how to turn other files into tokenizer.json.
const saveIt = "save it with transformers: " +
	"AutoTokenizer.from_pretrained(DIR, use_fast=True).save_pretrained(DIR)"

// robertaTokens are RoBERTa's special tokens by their roles: bos, eos, unk,
// sep, pad, cls, mask.
var robertaTokens = []string{"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"}

// loadBytePairs makes a tokenizer from vocab.json and merges.txt. It does
// what transformers 4.57 does to turn RoBERTa's files into tokenizer.json
// (convert_slow_tokenizer.py, tokenization_roberta.py).
// tokenizer_config.json may be empty.
func loadBytePairs(fsys fs.FS, configurationContent []byte) (*Tokenizer, error) {
	var c configuration
	if err := unmarshal(configurationFile, configurationContent, &c); err != nil {
		return nil, err
	}
	if err := checkBytePairs(fsys, &c); err != nil {
		return nil, err
	}
	content, err := readFile(fsys, bytePairFile)
	if err != nil {
		return nil, err
	}
	merges, err := readFile(fsys, mergesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fileFault(mergesFile, errMissingTokenizer, "it belongs to %s", bytePairFile)
	}
	if err != nil {
		return nil, err
	}
	rules, err := parseMerges(string(merges))
	if err != nil {
		return nil, err
	}
	prefixSpace := isSet(c.PrefixSpace)
	file := pipelineFile{
		Model:        pipelineModel{Type: "BPE", Vocabulary: content, Merges: rules},
		PreTokenizer: &pipelineStep{Type: "ByteLevel", PrefixSpace: &prefixSpace},
		PostProcessor: &pipelineStep{Type: "RobertaProcessing", Classifier: []any{robertaTokens[0], 0},
			Separator: []any{robertaTokens[1], 0}},
	}
	var ids map[string]int
	if err := unmarshal(bytePairFile, content, &ids); err != nil {
		return nil, err
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(robertaTokens))) {
		id, ok := ids[name]
		if !ok {
			return nil, fileFault(bytePairFile, errMissingToken, "%s is not in the vocabulary; %s", name, saveIt)
		}
		mask := name == "<mask>"
		file.Added = append(file.Added, pipelineAdded{Special: true,
			added: added{ID: &id, Content: name, StripLeft: mask, Normalized: !mask}})
	}
	t, err := file.tokenizer(&specialTokens{}, nil)
	if err != nil {
		return nil, nameFile(err, bytePairFile)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "roberta 1 prefix space %t vocabulary %d\n", prefixSpace, len(content))
	sum.Write(content)
	sum.Write(merges)
	t.sum = hex.EncodeToString(sum.Sum(nil))
	return t, nil
}

// isSet returns the value of a setting whose default is false. isTrue does so
// for settings whose default is true.
func isSet(value *bool) bool { return value != nil && *value }

// checkBytePairs returns an error for files of another class than RoBERTa's, or
// with other special or added tokens.
func checkBytePairs(fsys fs.FS, c *configuration) error {
	var model struct {
		Type     string `json:"model_type"`
		Exported string `json:"exported_model_type"` // type of the model from which a graph was exported
		Class    string `json:"tokenizer_class"`
	}
	var special specialTokens
	var extra map[string]int
	for name, into := range map[string]any{modelFile: &model, specialFile: &special, addedFile: &extra} {
		if err := readSettings(fsys, name, into); err != nil {
			return err
		}
	}
	class := cmp.Or(c.Class, model.Class)
	if class == "" && cmp.Or(model.Exported, model.Type) == "roberta" {
		class = bytePairClass
	}
	if strings.TrimSuffix(class, "Fast") != bytePairClass {
		return fileFault(bytePairFile, errUnsupported, "tokenizer_class %.40q of model_type %.40q without %s; %s",
			class, model.Type, tokenizerFile, saveIt)
	}
	if isSet(c.SplitSpecial) {
		return fileFault(configurationFile, errUnsupported, "split_special_tokens true")
	}
	names := slices.Sorted(maps.Keys(extra))
	for _, s := range []*specialTokens{&c.specialTokens, &special} {
		for i, value := range []specialValue{s.Beginning, s.End, s.Unknown, s.Separator, s.Padding, s.Classifier,
			s.Mask} {
			if value.name != "" && value.name != robertaTokens[i] {
				names = append(names, value.name)
			}
			t := value.token
			if t != nil && (t.SingleWord || t.StripRight || t.StripLeft != (value.name == "<mask>")) {
				return fileFault(specialFile, errUnsupported, "%s with other flags than RoBERTa's; %s", value.name,
					saveIt)
			}
		}
		for _, value := range s.further() {
			names = append(names, value.name)
		}
		for _, token := range s.Listed {
			names = append(names, token.Content)
		}
	}
	for _, name := range names {
		if !slices.Contains(robertaTokens, name) {
			return fileFault(bytePairFile, errUnsupported, "special or added token %.40q, which RoBERTa has not; %s",
				name, saveIt)
		}
	}
	return nil
}

// parseMerges reads merges.txt, which has a merge on each line. As in the
// reference, the first line is not a merge, and text after the last line break
// is ignored. Of equal merges, only the first counts.
func parseMerges(content string) ([]mergeRule, error) {
	lines := strings.Split(content, "\n")
	merges := make([]mergeRule, 0, len(lines))
	seen := make(map[mergeRule]bool, len(lines))
	for i := 1; i < len(lines)-1; i++ {
		sides := strings.Fields(lines[i])
		if len(sides) != 2 {
			return nil, fileFault(fmt.Sprintf("%s line %d", mergesFile, i+1), errMalformed, "%.40q is not two tokens",
				lines[i])
		}
		rule := mergeRule{sides[0], sides[1]}
		if !seen[rule] {
			seen[rule] = true
			merges = append(merges, rule)
		}
	}
	return merges, nil
}
