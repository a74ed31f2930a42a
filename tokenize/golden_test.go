package tokenize_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"infill/internal/check"
	"infill/tokenize"
)

// mini is the folder of a small model with a vocabulary of its own.
const mini = "../testdata/mini-uncased"

// reference is one stored case of the reference tokenizer.
type reference struct {
	Name    string   `json:"name"`
	Text    []byte   `json:"text_base64"`
	IDs     []int    `json:"ids"`
	Tokens  []string `json:"tokens"`
	Offsets [][2]int `json:"offsets"` // code points
	Words   []int    `json:"words"`   // absent in golden/tokenizer.jsonl
	Decoded string   `json:"decoded"`
}

// readReferences reads stored cases, at least atLeast of them.
func readReferences(t *testing.T, path string, atLeast int) []reference {
	t.Helper()
	file := check.Must(os.Open(path))(t)
	defer file.Close()
	var references []reference
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r reference
		check.OK(t, json.Unmarshal(lines.Bytes(), &r))
		references = append(references, r)
	}
	check.OK(t, lines.Err())
	if len(references) < atLeast {
		t.Fatalf("%s holds %d cases, want at least %d", path, len(references), atLeast)
	}
	return references
}

// codePoints turns byte offsets into code points; an invalid byte counts as the
// one U+FFFD that the reference read.
func codePoints(text string, offsets [][2]int) [][2]int {
	points := make([][2]int, len(offsets))
	for i, offset := range offsets {
		for side, at := range offset {
			points[i][side] = utf8.RuneCountInString(text[:at])
		}
	}
	return points
}

// checkReferences compares a tokenizer with stored cases.
func checkReferences(t *testing.T, tokenizer *tokenize.Tokenizer, references []reference) {
	t.Helper()
	for _, r := range references {
		t.Run(r.Name, func(t *testing.T) {
			text := string(r.Text)
			encoding, err := tokenizer.Encode(text)
			if err != nil {
				t.Fatalf("Encode(%q): %v", text, err)
			}
			got := reference{Name: r.Name, Text: r.Text, IDs: encoding.IDs, Tokens: encoding.Tokens,
				Offsets: codePoints(text, encoding.Offsets), Words: encoding.Words, Decoded: tokenizer.Decode(r.IDs)}
			if r.Words == nil {
				got.Words = nil
			}
			if diff := cmp.Diff(r, got); diff != "" {
				t.Errorf("%q, reference (-), here (+):\n%s", text, diff)
			}
		})
	}
}

func loadBuiltin(t testing.TB) *tokenize.Tokenizer {
	t.Helper()
	tokenizer := check.Must(tokenize.Load(os.DirFS(mini)))(t)
	return tokenizer
}

// variantFS holds one tokenizer of testdata/reference under the name it has in a bundle.
func variantFS(t testing.TB, name string) fs.FS {
	t.Helper()
	content := check.Must(os.ReadFile("testdata/reference/" + name + ".tokenizer.json"))(t)
	return fstest.MapFS{"tokenizer.json": {Data: content}}
}

// loadCased is the small cased tokenizer.
func loadCased(t testing.TB) *tokenize.Tokenizer {
	t.Helper()
	tokenizer, err := tokenize.Load(os.DirFS("testdata/reference")) // vocab.txt and tokenizer_config.json
	check.OK(t, err)
	return tokenizer
}

func TestGolden(t *testing.T) {
	checkReferences(t, loadBuiltin(t), readReferences(t, "testdata/golden/tokenizer.jsonl", 216))
}

func TestReferenceVariants(t *testing.T) {
	for _, name := range []string{"cased", "cased-stripped", "uncased-accents", "uncased-raw"} {
		t.Run(name, func(t *testing.T) {
			tokenizer := check.Must(tokenize.Load(variantFS(t, name)))(t)
			checkReferences(t, tokenizer, readReferences(t, "testdata/reference/"+name+".jsonl", 77))
		})
	}
}

// The two forms of a bundle give one tokenizer.
func TestLoadFormsAgree(t *testing.T) {
	fromJSON := check.Must(tokenize.Load(variantFS(t, "cased")))(t)
	if got, want := loadCased(t).SHA256(), fromJSON.SHA256(); got != want {
		t.Errorf("vocab.txt gives SHA-256 %s, tokenizer.json %s", got, want)
	}
	folder := fstest.MapFS{}
	for _, name := range []string{"vocab.txt", "tokenizer_config.json"} {
		content := check.Must(os.ReadFile(mini + "/" + name))(t)
		folder[name] = &fstest.MapFile{Data: content}
	}
	fromList := check.Must(tokenize.Load(folder))(t)
	if got, want := fromList.SHA256(), loadBuiltin(t).SHA256(); got != want {
		t.Errorf("built-in model: vocab.txt gives SHA-256 %s, tokenizer.json %s", got, want)
	}
}

// A configuration of BERT's counts more than tokenizer.json, as in
// transformers; of another class, or of none, it does not.
func TestConfigurationCounts(t *testing.T) {
	for class, cased := range map[string]bool{"BertTokenizer": false, "": true, "PreTrainedTokenizerFast": true} {
		folder := variantFS(t, "cased").(fstest.MapFS)
		folder["tokenizer_config.json"] = &fstest.MapFile{
			Data: fmt.Appendf(nil, `{"tokenizer_class": %q, "do_lower_case": true, "strip_accents": true}`, class)}
		tokenizer := check.Must(tokenize.Load(folder))(t)
		encoding, err := tokenizer.Encode("É")
		if err != nil || tokenizer.Cased() != cased {
			t.Fatalf("class %q: cased %t, %v", class, tokenizer.Cased(), err)
		}
		if got := tokenizer.Token(encoding.IDs[1]); (got == "e") == cased {
			t.Errorf("class %q: É is %q", class, got)
		}
	}
}

// The first and last character of each block that is set apart, and their
// neighbours, are words of their own or not.
func TestChineseBlocks(t *testing.T) {
	tokenizer := newTokenizer(t, tokenize.Options{})
	for _, block := range [][2]rune{
		{0x3400, 0x4DBF}, {0x4E00, 0x9FFF}, {0xF900, 0xFAFF},
		{0x20000, 0x2A6DF}, {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F},
	} {
		for r, apart := range map[rune]bool{block[0] - 1: false, block[0]: true, block[1]: true, block[1] + 1: false} {
			if r == 0x2B73F || r == 0x2B740 { // two blocks meet
				apart = true
			}
			encoding := check.Must(tokenizer.Encode("a" + string(r) + "b"))(t)
			words := encoding.Words[len(encoding.Words)-2] + 1
			if got := words == 3; got != apart {
				t.Errorf("%U: set apart is %t, want %t", r, got, apart)
			}
		}
	}
}

// The bound on the length of a word counts characters, and holds for words of
// the vocabulary too.
func TestLongestWord(t *testing.T) {
	tokenizer := newTokenizer(t, tokenize.Options{LongestWord: 4, StripAccents: new(bool)})
	for text, want := range map[string]string{"left": "left", "ferry": "[UNK]", "ways": "way ##s", "wayss": "[UNK]",
		"é": "é", "éééé": "[UNK]"} {
		encoding := check.Must(tokenizer.Encode(text))(t)
		if got := tokensOf(tokenizer, encoding.IDs); got != "[CLS] "+want+" [SEP]" {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
