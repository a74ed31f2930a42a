package tokenize_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"infill/internal/check"
	"infill/tokenize"
)

// unconverted is the name of the layout of testdata/unconverted, which
// generate_reference.py there describes.
const unconverted = "unconverted"

const unconvertedFolder = "testdata/unconverted/roberta"

// unconvertedFiles gives the tokenizer's files, to change some.
func unconvertedFiles(t testing.TB) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for _, name := range []string{"config.json", "vocab.json", "merges.txt"} {
		content := check.Must(os.ReadFile(filepath.Join(unconvertedFolder, name)))(t)
		files[name] = &fstest.MapFile{Data: content}
	}
	return files
}

// hardTexts are the texts of generate_reference.py itself, which follow those
// of ../families there.
var hardTexts = []string{"", " ", "a <mask>", "a<mask>b", "the  <mask> , and\t<mask>.", "a [MASK]", "a[MASK]b",
	"the  [MASK] , and\t[MASK].", "a.b-c (d) £5 - €7",
	"well-known (so it was said) - in 3.5 ways", "14,000 people, 7,45", "9,",
	"<s>NOTUSED a </s>NOTUSED b <unk>NOTUSED c", "[UNK] and <unk>",
	"the <pad> and [PAD]", "THE <MASK> [mask] [Mask]", "<0x0A> <0xE6>", "▁the ▁▁ the", "zażółć gęślą jaźń",
	"\u0415\u0308 e\u0323\u0301 ﬃ",
	"@user replied <url> <USER> said <url>x", "x<special>y <special> z", " leading and trailing ",
	"``quoted'' and ''again``"}

// Ids, offsets, decoded texts, special tokens and the size of the vocabulary
// are those of the tokenizer that transformers converts from the same files.
func TestUnconvertedAgainstReference(t *testing.T) {
	tokenizer := loadFamily(t, unconverted, "")
	content := check.Must(os.ReadFile(filepath.Join(unconvertedFolder, "reference.json")))(t)
	var want struct {
		Step, Tokens int
		Special      []int
		encodings
	}
	check.OK(t, json.Unmarshal(content, &want))
	special := []int{tokenizer.ClassifierID(), tokenizer.SeparatorID(), tokenizer.MaskID(), tokenizer.PaddingID(),
		tokenizer.UnknownID()}
	if !slices.Equal(special, want.Special) || tokenizer.VocabularySize() != want.Tokens {
		t.Errorf("%d tokens, special %v; want %d, %v", tokenizer.VocabularySize(), special, want.Tokens, want.Special)
	}
	var texts []string
	for i, text := range append(familyTexts(t), hardTexts...) {
		if i%want.Step == 0 {
			texts = append(texts, text)
		}
	}
	if located := equalReference(t, tokenizer, texts, want.encodings); located < 15 {
		t.Errorf("offsets of only %d texts were compared", located)
	}
}

// Whatever changes ids changes the sum.
func TestUnconvertedSHA256(t *testing.T) {
	sums := map[string]string{}
	of := func(files fstest.MapFS) string {
		t.Helper()
		tokenizer := check.Must(tokenize.Load(files))(t)
		return tokenizer.SHA256()
	}
	for name, change := range map[string]func(fstest.MapFS){
		"plain": func(fstest.MapFS) {},
		"space": func(f fstest.MapFS) {
			f["tokenizer_config.json"] = &fstest.MapFile{Data: []byte(`{"add_prefix_space": true}`)}
		},
		"other merges": func(f fstest.MapFS) {
			text := string(f["merges.txt"].Data)
			f["merges.txt"] = &fstest.MapFile{Data: []byte(text[:strings.LastIndex(text[:len(text)-1], "\n")+1])}
		},
	} {
		files := unconvertedFiles(t)
		change(files)
		sum := of(files)
		if other, seen := sums[sum]; seen {
			t.Errorf("%s and %s have one SHA-256", name, other)
		}
		sums[sum] = name
	}
	// Defaults written out change nothing, and leave the sum alone.
	files := unconvertedFiles(t)
	files["tokenizer_config.json"] = &fstest.MapFile{Data: []byte(`{"add_prefix_space": false, "model_max_length": 99}`)}
	if sums[of(files)] != "plain" {
		t.Error("the defaults written out have another SHA-256")
	}
	// Where there is a tokenizer.json, it is what is read.
	files["tokenizer.json"] = &fstest.MapFile{Data: familyFile(t, "xlm-roberta.tokenizer.json")}
	delete(files, "tokenizer_config.json")
	if of(files) != loadFamily(t, "xlm-roberta", "").SHA256() {
		t.Error("not tokenizer.json was read")
	}
}

func TestLoadUnconvertedRefuses(t *testing.T) {
	set := func(name, content string) func(fstest.MapFS) {
		return func(f fstest.MapFS) { f[name] = &fstest.MapFile{Data: []byte(content)} }
	}
	remove := func(name string) func(fstest.MapFS) { return func(f fstest.MapFS) { delete(f, name) } }
	for _, c := range []struct {
		name   string
		change func(fstest.MapFS)
		fault  tokenize.Fault
		says   string
	}{
		{"class", set("tokenizer_config.json", `{"tokenizer_class": "GPT2Tokenizer"}`),
			tokenize.ErrUnsupported, `unsupported tokenizer: tokenizer_class "GPT2Tokenizer" of model_type "roberta" ` +
				"without tokenizer.json; save it with transformers: AutoTokenizer.from_pretrained(DIR, use_fast=True)"},
		{"class of the model", set("config.json", `{"tokenizer_class": "LEDTokenizerFast"}`),
			tokenize.ErrUnsupported, `tokenizer_class "LEDTokenizerFast"`},
		{"no class", remove("config.json"), tokenize.ErrUnsupported, "save it with transformers"},
		{"family without a class", set("config.json", `{"model_type": "bert"}`),
			tokenize.ErrUnsupported, `model_type "bert"`},
		{"SentencePiece", func(f fstest.MapFS) {
			delete(f, "vocab.json")
			set("spiece.model", "\x0a\x00")(f)
		}, tokenize.ErrMissingTokenizer, "no tokenizer files: a bundle needs tokenizer.json, or WordPiece's " +
			"vocab.txt, or RoBERTa's vocab.json and merges.txt; for others, save it with transformers: " +
			"AutoTokenizer.from_pretrained(DIR, use_fast=True).save_pretrained(DIR)"},
		{"no merges", remove("merges.txt"), tokenize.ErrMissingTokenizer,
			"merges.txt: no tokenizer files: it belongs to vocab.json"},
		{"configuration", set("tokenizer_config.json", `{"mask_token": 3}`), tokenize.ErrMalformed,
			"tokenizer_config.json"},
		{"an empty file, which is not the same as none", set("tokenizer_config.json", ""), tokenize.ErrMalformed,
			"tokenizer_config.json: malformed tokenizer file: the file is empty"},
		{"model configuration", set("config.json", `{`), tokenize.ErrMalformed, "config.json"},
		{"special tokens", set("special_tokens_map.json", `[]`), tokenize.ErrMalformed,
			"special_tokens_map.json"},
		{"added tokens", set("added_tokens.json", `{"a": "b"}`), tokenize.ErrMalformed, "added_tokens.json"},
		{"another mask", set("tokenizer_config.json", `{"mask_token": "[MASK]"}`), tokenize.ErrMissingToken,
			"vocab.json: missing special token: no mask token ([MASK])"},
		{"token of a single word",
			set("special_tokens_map.json", `{"mask_token": {"content": "<mask>", "lstrip": true, "single_word": true}}`),
			tokenize.ErrUnsupported, `added token "<mask>" with single_word or rstrip`},
		{"special tokens as text", set("tokenizer_config.json", `{"split_special_tokens": true}`),
			tokenize.ErrUnsupported, "split_special_tokens"},
		{"vocabulary", set("vocab.json", `["a"]`), tokenize.ErrMalformed, "vocab.json"},
		{"tokens missing", func(f fstest.MapFS) {
			f["vocab.json"].Data = bytes.Replace(f["vocab.json"].Data, []byte(`"</s>"`), []byte(`"</S>"`), 1)
		}, tokenize.ErrMissingToken, "vocab.json: missing special token: no last token (</s>)"},
		{"bytes missing", set("vocab.json",
			`{"<s>": 0, "</s>": 1, "<pad>": 2, "<unk>": 3, "<mask>": 4}`), tokenize.ErrMalformed,
			"vocab.json: malformed tokenizer file: the vocabulary has no token for the byte 0x00"},
		{"merges", set("merges.txt", "#version: 0.2\nt h\nt h e\n"), tokenize.ErrMalformed,
			`merges.txt line 3: malformed tokenizer file: "t h e" is not two tokens`},
		{"merges of nothing", set("merges.txt", "#version: 0.2\nzz qq\n"), tokenize.ErrMalformed,
			`"zz" and "qq"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := unconvertedFiles(t)
			c.change(files)
			tokenizer, err := tokenize.Load(files)
			if tokenizer != nil {
				t.Error("a tokenizer beside the error")
			}
			checkVocabularyError(t, err, c.fault, c.says)
		})
	}
}
