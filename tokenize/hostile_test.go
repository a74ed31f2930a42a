package tokenize_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"infill/internal/check"
	"infill/tokenize"
)

// growing is a Unigram tokenizer.json whose steps double the text so many times.
func growing(steps int, content string) fstest.MapFS {
	var normalizers []string
	for range steps {
		normalizers = append(normalizers,
			fmt.Sprintf(`{"type": "Replace", "pattern": {"String": "a"}, "content": %q}`, content))
	}
	return fstest.MapFS{"tokenizer.json": {Data: fmt.Appendf(nil, `{
		"added_tokens": [{"id": 4, "content": "<mask>", "special": true}],
		"normalizer": {"type": "Sequence", "normalizers": [%s]},
		"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
		"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {}}, {"SpecialToken": {"id": "</s>"}}]},
		"model": {"type": "Unigram", "unk_id": 3, "vocab": [["<s>", 0], ["<pad>", 0], ["</s>", 0], ["<unk>", 0], ["<mask>", 0], ["▁a", -1], ["a", -2]]}}`, strings.Join(normalizers, ","))}}
}

// Steps that make ever more of a text are stopped, not followed until the memory is full.
func TestNormalizersAreBounded(t *testing.T) {
	tokenizer, err := tokenize.Load(growing(2, "aa"))
	check.OK(t, err)
	if _, err := tokenizer.Template("a banana and a [MASK]"); err != nil {
		t.Errorf("a text that grows a little: %v", err)
	}
	tokenizer, err = tokenize.Load(growing(40, "aa"))
	check.OK(t, err)
	_, err = tokenizer.Template("a banana and a [MASK]")
	check.Says(t, err, "tokenizer.json: normalizer ", "characters of a text of")
	_, err = tokenizer.Plain("a banana")
	check.Says(t, err, "tokenizer.json: normalizer ", "characters of a text of")
	_, err = tokenize.Load(growing(1, strings.Repeat("a", 1000)))
	check.Says(t, err, "content of 1000 bytes")

	// The file's own tokens are normalised when it is loaded.
	files := growing(2, strings.Repeat("a", 100))
	const mask = `{"id": 4, "content": "<mask>", "special": true}`
	content := string(files["tokenizer.json"].Data)
	files["tokenizer.json"].Data = []byte(strings.Replace(content, mask,
		mask+`, {"id": 6, "content": "a", "normalized": true}`, 1))
	_, err = tokenize.Load(files)
	check.Says(t, err, "tokenizer.json: normalizer 2 makes ", "characters of a text of 100:")
}
