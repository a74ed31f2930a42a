package tokenize_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"infill/tokenize"
)

// unconvertedNames are the folders of testdata/unconverted, which generate_reference.py there describes.
var unconvertedNames = []string{"roberta"}

func unconvertedFolder(name string) string { return filepath.Join("testdata", "unconverted", name) }

// unconvertedFiles gives the files of a folder, to change some.
func unconvertedFiles(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	entries, err := os.ReadDir(unconvertedFolder(name))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(unconvertedFolder(name), entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if entry.Name() != "reference.json" {
			files[entry.Name()] = &fstest.MapFile{Data: content}
		}
	}
	return files
}

func loadUnconverted(t testing.TB, name string) *tokenize.Tokenizer {
	t.Helper()
	tokenizer, err := tokenize.Load(os.DirFS(unconvertedFolder(name)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return tokenizer
}

// hardTexts are the texts of generate_reference.py itself, which follow those of ../families there.
var hardTexts = []string{"", " ", "a <mask>", "a<mask>b", "the  <mask> , and\t<mask>.", "a [MASK]", "a[MASK]b",
	"the  [MASK] , and\t[MASK].", "a.b-c (d) £5 - €7",
	"well-known (so it was said) - in 3.5 ways", "14,000 people, 7,45", "9,",
	"<s>NOTUSED a </s>NOTUSED b <unk>NOTUSED c", "[UNK] and <unk>",
	"the <pad> and [PAD]", "THE <MASK> [mask] [Mask]", "<0x0A> <0xE6>", "▁the ▁▁ the", "zażółć gęślą jaźń",
	"\u0415\u0308 e\u0323\u0301 ﬃ",
	"@user replied <url> <USER> said <url>x", "x<special>y <special> z", " leading and trailing ",
	"``quoted'' and ''again``"}

// Ids, offsets, decoded texts, special tokens and the size of the vocabulary are those of the tokenizer that
// transformers converts from the same files.
func TestUnconvertedAgainstReference(t *testing.T) {
	all := append(familyTexts(t), hardTexts...)
	for _, name := range unconvertedNames {
		t.Run(name, func(t *testing.T) {
			tokenizer := loadUnconverted(t, name)
			content, err := os.ReadFile(filepath.Join(unconvertedFolder(name), "reference.json"))
			if err != nil {
				t.Fatal(err)
			}
			var want struct {
				Step    int
				Tokens  int
				Special []int
				encodings
			}
			if err := json.Unmarshal(content, &want); err != nil {
				t.Fatal(err)
			}
			special := []int{tokenizer.ClassifierID(), tokenizer.SeparatorID(), tokenizer.MaskID(),
				tokenizer.PaddingID(), tokenizer.UnknownID()}
			if diff := cmp.Diff(want.Special, special); diff != "" || tokenizer.VocabularySize() != want.Tokens {
				t.Errorf("%d tokens, want %d; special tokens (-want +got):\n%s", tokenizer.VocabularySize(),
					want.Tokens, diff)
			}
			var texts []string
			for i := 0; i < len(all); i += want.Step {
				texts = append(texts, all[i])
			}
			located := equalReference(t, tokenizer, texts, want.encodings, func([][2]int) {})
			if located < 15 {
				t.Errorf("offsets of only %d texts were compared", located)
			}
		})
	}
}

// Slots are what the model's own mask token is, and outside them the user's text comes back byte for byte.
func TestUnconvertedTemplates(t *testing.T) {
	for _, name := range unconvertedNames {
		tokenizer := loadUnconverted(t, name)
		mask := tokenizer.Token(tokenizer.MaskID())
		text := "he had [MASK] me that [MASK:2], and [MASK]."
		template, err := tokenizer.Template(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		same, err := tokenizer.Encode(strings.NewReplacer("[MASK:2]", mask+mask, "[MASK]", mask).Replace(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(same.IDs, template.IDs); diff != "" {
			t.Errorf("%s: ids (-of the same text in the model's notation +got):\n%s", name, diff)
		}
		if len(template.Slots) != 4 {
			t.Fatalf("%s: slots %v", name, template.Slots)
		}
		for _, s := range template.Slots {
			if template.IDs[s] != tokenizer.MaskID() {
				t.Errorf("%s: slot at %d holds %q", name, s, tokenizer.Token(template.IDs[s]))
			}
		}
		the, ok := tokenizer.ID("Ġthe")
		if !ok {
			t.Fatalf("%s has no token Ġthe", name)
		}
		want := "he had the me that the the, and the."
		if got := template.Fill([]int{the, the, the, the}); got.Text != want {
			t.Errorf("%s: filled %q, want %q", name, got.Text, want)
		}
		// A token without a blank joins the word on its left, whether or not the slot touches it.
		ing, ok := tokenizer.ID("ing")
		if !ok {
			t.Fatalf("%s has no token ing", name)
		}
		for _, text := range []string{"the bak[MASK] was", "the bak [MASK] was"} {
			template, err := tokenizer.Template(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := template.Fill([]int{ing}); got.Text != "the baking was" || got.Fills[0] != "ing" {
				t.Errorf("%s: %q filled reads %q, fill %q", name, text, got.Text, got.Fills[0])
			}
		}
	}
}

// Every token that a slot may take is text: no special token, no byte, nothing that the conversion put in.
func TestUnconvertedFillable(t *testing.T) {
	for _, name := range unconvertedNames {
		tokenizer := loadUnconverted(t, name)
		template, err := tokenizer.Template("one [MASK] two")
		if err != nil {
			t.Fatal(err)
		}
		fillable := tokenizer.Fillable()
		if len(fillable) < 180 {
			t.Errorf("%s: only %d tokens are fillable", name, len(fillable))
		}
		for _, id := range fillable {
			filled := template.Fill([]int{id})
			if strings.TrimSpace(filled.Fills[0]) == "" || !utf8.ValidString(filled.Text) ||
				strings.ContainsRune(filled.Text, utf8.RuneError) {
				t.Errorf("%s: token %q reads %q", name, tokenizer.Token(id), filled.Text)
			}
			if token := tokenizer.Token(id); len(token) > 2 && strings.ContainsAny(token, "<[") {
				t.Errorf("%s: %q is fillable", name, token)
			}
		}
	}
}

// What the user may not type is reported in the model's own words.
func TestUnconvertedInputErrors(t *testing.T) {
	for _, c := range []struct {
		name, text string
		says       string
		offset     int
	}{
		{"roberta", "a </s> [MASK]", "</s> is added by the program", 2},
	} {
		_, err := loadUnconverted(t, c.name).Template(c.text)
		var input *tokenize.InputError
		if !errors.As(err, &input) || input.Fault != tokenize.ErrSpecialToken || input.Offset != c.offset ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, %q: error %v, want a special token at %d with %q", c.name, c.text, err, c.offset, c.says)
		}
	}
}

func TestUnconvertedCandidate(t *testing.T) {
	for _, name := range unconvertedNames {
		tokenizer := loadUnconverted(t, name)
		ids, err := tokenizer.Candidate("the")
		if err != nil || len(ids) != 1 || tokenizer.Token(ids[0]) != "Ġthe" {
			t.Errorf("%s: candidate %v, %v", name, ids, err)
		}
	}
}

// tokenizer.json, where there is one, is what is read.
func TestUnconvertedGivesWay(t *testing.T) {
	files := unconvertedFiles(t, "roberta")
	files["tokenizer.json"] = &fstest.MapFile{Data: familyFile(t, "xlm-roberta.tokenizer.json")}
	tokenizer, err := tokenize.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	if got := tokenizer.Token(tokenizer.MaskID()); got != "<mask>" {
		t.Errorf("mask token %q, want that of tokenizer.json", got)
	}
}

// Whatever changes ids changes the sum.
func TestUnconvertedSHA256(t *testing.T) {
	sums := map[string]string{}
	add := func(name string, files fstest.MapFS) string {
		t.Helper()
		tokenizer, err := tokenize.Load(files)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
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
		files := unconvertedFiles(t, "roberta")
		change(files)
		sum := add(name, files)
		if other, seen := sums[sum]; seen {
			t.Errorf("%s and %s have one SHA-256", name, other)
		}
		sums[sum] = name
	}
	// What changes nothing does not.
	files := unconvertedFiles(t, "roberta")
	files["tokenizer_config.json"] = &fstest.MapFile{Data: []byte(`{"add_prefix_space": false, "model_max_length": 99}`)}
	if sums[add("defaults", files)] != "plain" {
		t.Error("the defaults written out have another SHA-256")
	}
}

func TestLoadUnconvertedRefuses(t *testing.T) {
	set := func(name, content string) func(fstest.MapFS) {
		return func(f fstest.MapFS) { f[name] = &fstest.MapFile{Data: []byte(content)} }
	}
	remove := func(name string) func(fstest.MapFS) { return func(f fstest.MapFS) { delete(f, name) } }
	for _, c := range []struct {
		name, folder string
		change       func(fstest.MapFS)
		fault        tokenize.Fault
		says         string
	}{
		{"class", "roberta", set("tokenizer_config.json", `{"tokenizer_class": "GPT2Tokenizer"}`),
			tokenize.ErrUnsupported, `unsupported tokenizer: tokenizer_class "GPT2Tokenizer" of model_type "roberta" ` +
				"without tokenizer.json; save it with transformers: AutoTokenizer.from_pretrained(DIR, use_fast=True)"},
		{"class of the model", "roberta", set("config.json", `{"tokenizer_class": "LEDTokenizerFast"}`),
			tokenize.ErrUnsupported, `tokenizer_class "LEDTokenizerFast"`},
		{"no class", "roberta", remove("config.json"), tokenize.ErrUnsupported, "save it with transformers"},
		{"family without a class", "roberta", set("config.json", `{"model_type": "bert"}`),
			tokenize.ErrUnsupported, `model_type "bert"`},
		{"SentencePiece", "roberta", func(f fstest.MapFS) {
			delete(f, "vocab.json")
			set("spiece.model", "\x0a\x00")(f)
		}, tokenize.ErrMissingTokenizer, "no tokenizer files: a bundle needs tokenizer.json, or WordPiece's " +
			"vocab.txt, or RoBERTa's vocab.json and merges.txt; for others, save it with transformers: " +
			"AutoTokenizer.from_pretrained(DIR, use_fast=True).save_pretrained(DIR)"},
		{"no merges", "roberta", remove("merges.txt"), tokenize.ErrMissingTokenizer,
			"merges.txt: no tokenizer files: it belongs to vocab.json"},
		{"configuration", "roberta", set("tokenizer_config.json", `{"mask_token": 3}`), tokenize.ErrMalformed,
			"tokenizer_config.json"},
		{"model configuration", "roberta", set("config.json", `{`), tokenize.ErrMalformed, "config.json"},
		{"special tokens", "roberta", set("special_tokens_map.json", `[]`), tokenize.ErrMalformed,
			"special_tokens_map.json"},
		{"added tokens", "roberta", set("added_tokens.json", `{"a": "b"}`), tokenize.ErrMalformed, "added_tokens.json"},
		{"added token", "roberta", set("added_tokens.json", `{"<url>": 481}`), tokenize.ErrUnsupported,
			`special or added token "<url>", which RoBERTa has not; save it with transformers`},
		{"listed token", "roberta",
			set("tokenizer_config.json", `{"added_tokens_decoder": {"481": {"content": "<url>"}}}`),
			tokenize.ErrUnsupported, `token "<url>"`},
		{"additional token", "roberta", set("special_tokens_map.json", `{"additional_special_tokens": ["<url>"]}`),
			tokenize.ErrUnsupported, `token "<url>"`},
		{"another mask", "roberta", set("tokenizer_config.json", `{"mask_token": "[MASK]"}`), tokenize.ErrUnsupported,
			`token "[MASK]"`},
		{"token of a single word", "roberta",
			set("special_tokens_map.json", `{"mask_token": {"content": "<mask>", "lstrip": true, "single_word": true}}`),
			tokenize.ErrUnsupported, "<mask> with other flags than RoBERTa's"},
		{"special tokens as text", "roberta", set("tokenizer_config.json", `{"split_special_tokens": true}`),
			tokenize.ErrUnsupported, "split_special_tokens"},
		{"vocabulary", "roberta", set("vocab.json", `["a"]`), tokenize.ErrMalformed, "vocab.json"},
		{"tokens missing", "roberta", set("vocab.json", `{"a": 0}`), tokenize.ErrMissingToken,
			"vocab.json: missing special token: </s> is not in the vocabulary"},
		{"bytes missing", "roberta", set("vocab.json",
			`{"<s>": 0, "</s>": 1, "<pad>": 2, "<unk>": 3, "<mask>": 4}`), tokenize.ErrMalformed,
			"vocab.json: malformed tokenizer file: the vocabulary has no token for the byte 0x00"},
		{"merges", "roberta", set("merges.txt", "#version: 0.2\nt h\nt h e\n"), tokenize.ErrMalformed,
			`merges.txt line 3: malformed tokenizer file: "t h e" is not two tokens`},
		{"merges of nothing", "roberta", set("merges.txt", "#version: 0.2\nzz qq\n"), tokenize.ErrMalformed,
			`"zz" and "qq"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := unconvertedFiles(t, c.folder)
			c.change(files)
			tokenizer, err := tokenize.Load(files)
			if tokenizer != nil {
				t.Error("a tokenizer beside the error")
			}
			checkVocabularyError(t, err, c.fault, c.says)
		})
	}
}
