package tokenize

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// The files of byte-level BPE that was published without tokenizer.json, under the names that Hugging Face gives them.
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

// unconverted is RoBERTa's tokenizer without tokenizer.json on its way to what transformers would write there.
//
// The rules are those of transformers 4.57 (convert_slow_tokenizer.py, tokenization_utils_base.py,
// tokenization_utils_fast.py and tokenization_roberta.py); from version 5 on transformers no longer follows them.
type unconverted struct {
	settings configuration
	file     pipelineFile
	ids      map[string]int // of the vocabulary and the tokens added so far
	places   map[string]int // in file.Added
	next     int            // id of the next token that is not in the vocabulary
}

// maxAdded bounds the tokens that a text is searched for, one by one. The largest lists of published models have about
// a thousand.
const maxAdded = 1 << 13

// loadUnconverted makes a tokenizer of vocab.json and merges.txt. The content of tokenizer_config.json may be empty.
func loadUnconverted(fsys fs.FS, configurationContent []byte) (*Tokenizer, error) {
	u := &unconverted{ids: map[string]int{}, places: map[string]int{}}
	if err := unmarshal(configurationFile, configurationContent, &u.settings); err != nil {
		return nil, err
	}
	if err := u.checkClass(fsys); err != nil {
		return nil, err
	}
	if isSet(u.settings.SplitSpecial) {
		return nil, fileFault(configurationFile, errUnsupported, "split_special_tokens true")
	}
	vocabulary, err := readFile(fsys, bytePairFile)
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
	if err := u.convert(vocabulary, string(merges)); err != nil {
		return nil, err
	}
	listed, err := u.readSpecials(fsys)
	if err != nil {
		return nil, err
	}
	if err := u.addTokens(listed); err != nil {
		return nil, nameFile(err, bytePairFile)
	}
	t, err := u.file.tokenizer(&u.settings.specialTokens, nil)
	if err != nil {
		return nil, nameFile(err, bytePairFile)
	}
	return t, u.digest(t, vocabulary, merges)
}

// isSet is isTrue for settings that are off unless a file says otherwise.
func isSet(value *bool) bool { return value != nil && *value }

// unmarshal reads a JSON file, which may be empty.
func unmarshal(name string, content []byte, value any) error {
	if len(content) == 0 {
		return nil
	}
	if err := json.Unmarshal(content, value); err != nil {
		return fileFault(name, errMalformed, "%v", err)
	}
	return nil
}

// readOptional gives the content of a file, empty if there is none.
func readOptional(fsys fs.FS, name string) ([]byte, error) {
	content, err := readFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// checkClass refuses other classes than RoBERTa's: that which tokenizer_config.json names, else config.json, else that
// of the model's family.
func (u *unconverted) checkClass(fsys fs.FS) error {
	content, err := readOptional(fsys, modelFile)
	if err != nil {
		return err
	}
	var model struct {
		Type     string  `json:"model_type"`
		Exported string  `json:"exported_model_type"` // of a graph that was imported
		Class    *string `json:"tokenizer_class"`
	}
	if err := unmarshal(modelFile, content, &model); err != nil {
		return err
	}
	name, file := u.settings.Class, configurationFile
	if name == "" && model.Class != nil {
		name, file = *model.Class, modelFile
	}
	if name == "" && cmp.Or(model.Exported, model.Type) == "roberta" {
		return nil
	}
	switch strings.TrimSuffix(name, "Fast") {
	case bytePairClass:
		return nil
	case "":
		return fileFault(tokenizerFile, errMissingTokenizer,
			"and neither tokenizer_class nor model_type %.40q tells how to read %s; %s", model.Type, bytePairFile, saveIt)
	}
	return fileFault(file, errUnsupported, "tokenizer_class %.40q without %s; %s", name, tokenizerFile, saveIt)
}

// convert makes the pipeline of vocab.json and merges.txt.
func (u *unconverted) convert(content []byte, merges string) error {
	vocabulary := map[string]int{}
	if err := unmarshal(bytePairFile, content, &vocabulary); err != nil {
		return err
	}
	rules, err := parseMerges(merges)
	if err != nil {
		return err
	}
	for token, id := range vocabulary {
		u.ids[token] = id
	}
	u.next = len(vocabulary)
	prefixSpace := isSet(u.settings.PrefixSpace)
	u.file.Model = pipelineModel{Type: "BPE", ids: vocabulary, Merges: rules}
	u.file.PreTokenizer = &pipelineStep{Type: "ByteLevel", PrefixSpace: &prefixSpace}
	return nil
}

// parseMerges reads merges.txt, a merge on each line. As in the reference, the first line is never one, and what
// follows the last line end is no line; of a merge that comes twice the first counts.
func parseMerges(content string) ([]mergeRule, error) {
	lines := strings.Split(content, "\n")
	merges := make([]mergeRule, 0, len(lines))
	seen := make(map[mergeRule]bool, len(lines))
	for i := 1; i < len(lines)-1; i++ {
		sides := strings.Fields(lines[i])
		if len(sides) != 2 {
			return nil, &vocabularyError{Fault: errMalformed, File: mergesFile, Line: i + 1,
				Detail: fmt.Sprintf("%.40q is not two tokens", lines[i])}
		}
		rule := mergeRule{sides[0], sides[1]}
		if !seen[rule] {
			seen[rule] = true
			merges = append(merges, rule)
		}
	}
	return merges, nil
}

// digest sets the sum over the vocabulary's files and everything else that the tokenizer was made of.
func (u *unconverted) digest(t *Tokenizer, vocabulary, merges []byte) error {
	sum := sha256.New()
	fmt.Fprintf(sum, "unconverted 1 padding %d unknown %d classifier %d separator %d mask %d\n", t.padding, t.unknown,
		t.classifier, t.separator, t.mask)
	for _, token := range u.file.Added {
		fmt.Fprintf(sum, "early %t\n", token.early)
	}
	for _, content := range [][]byte{vocabulary, merges} {
		fmt.Fprintf(sum, "%d\n", len(content))
		sum.Write(content)
	}
	rest := u.file
	rest.Model.Merges = nil // in merges.txt
	if err := json.NewEncoder(sum).Encode(rest); err != nil {
		return err
	}
	t.sum = hex.EncodeToString(sum.Sum(nil))
	return nil
}
