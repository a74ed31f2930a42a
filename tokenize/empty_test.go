package tokenize

import (
	"strings"
	"testing"
	"testing/fstest"
)

// An empty JSON file is damaged, and not the same as none.
func TestEmptySettings(t *testing.T) {
	_, err := Load(fstest.MapFS{"vocab.json": {Data: []byte("{}")}, "merges.txt": {}, "tokenizer_config.json": {}})
	if err == nil || !strings.Contains(err.Error(), "tokenizer_config.json") ||
		!strings.Contains(err.Error(), "the file is empty") {
		t.Errorf("error %v", err)
	}
}
