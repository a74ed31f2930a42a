package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"infill/internal/object"
	"infill/internal/regular"
)

// Case says whether a model keeps capitals, which a vocab.txt alone does not; "" leaves it to the model's files.
type Case string

// The cases.
const (
	Cased   Case = "cased"
	Uncased Case = "uncased"
)

const tokenizerConfigName = "tokenizer_config.json"

// configure gives the tokenizer_config.json that says so in a model's folder; nil: it needs no change.
func (c Case) configure(files fs.FS) ([]byte, error) {
	if c == "" {
		return nil, nil
	}
	_, vocabularyErr := regular.Stat(files, vocabulary)
	if _, err := regular.Stat(files, "tokenizer.json"); err == nil || vocabularyErr != nil {
		return nil, fmt.Errorf("the tokenizer's files say whether the model keeps capitals: leave --%s out", c)
	}
	settings := map[string]any{}
	content, err := regular.ReadFS(files, tokenizerConfigName, maxConfigBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		settings["tokenizer_class"] = "BertTokenizer"
	case err != nil:
		return nil, fmt.Errorf("%s: %w", tokenizerConfigName, err)
	default:
		if err := json.Unmarshal(content, &settings); err != nil {
			return nil, fmt.Errorf("%s: %w", tokenizerConfigName, err)
		}
	}
	const key = "do_lower_case"
	switch said, ok := settings[key]; {
	case ok && said == (c == Uncased):
		return nil, nil
	case ok:
		return nil, fmt.Errorf("%s has %s %v, which --%s contradicts", tokenizerConfigName, key, said, c)
	}
	settings[key] = c == Uncased
	encoded, err := object.EncodeIndent(settings, "", "  ")
	return append(encoded, '\n'), err
}
