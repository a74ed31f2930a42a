package tokenize_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"infill/internal/check"
	"infill/tokenize"
)

const smallVocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nThe\nca\n##fe\n##fé\ncafé\n日\n日本\n"

// bundle is a folder of vocab.txt and tokenizer_config.json.
func bundle(vocabulary, configuration string) fstest.MapFS {
	return fstest.MapFS{"vocab.txt": {Data: []byte(vocabulary)}, "tokenizer_config.json": {Data: []byte(configuration)}}
}

// beside is a bundle with one more file.
func beside(name, content string) fstest.MapFS {
	folder := bundle(smallVocabulary, "{}")
	folder[name] = &fstest.MapFile{Data: []byte(content)}
	return folder
}

// The ids are those of transformers 5.24, from the same files.
func TestLoadAdded(t *testing.T) {
	const text = "a NÉW then newt Raw raw,<user>the日Newb"
	for _, test := range []struct {
		file  string
		class string // of a vocab.txt and a tokenizer_config.json beside it
		want  []int
	}{
		{"cased", "",
			[]int{4, 49, 88, 192, 177, 211, 142, 253, 148, 299, 66, 129, 151, 18, 300, 211, 124, 254, 130, 5}},
		{"uncased-accents", "",
			[]int{4, 49, 298, 211, 142, 253, 148, 299, 66, 129, 151, 18, 300, 211, 124, 253, 130, 5}},
		{"uncased-accents", "BertTokenizer",
			[]int{4, 49, 298, 211, 142, 298, 68, 299, 66, 129, 151, 18, 300, 211, 124, 298, 50, 5}},
	} {
		content := check.Must(os.ReadFile("testdata/reference/" + test.file + ".tokenizer.json"))(t)
		more := `"added_tokens": [{"id": 298, "content": "Néw", "normalized": true}, {"id": 299, "content": "Raw"},
			{"id": 300, "content": "<user>", "special": true}, `
		folder := fstest.MapFS{"tokenizer.json": {
			Data: []byte(strings.Replace(string(content), `"added_tokens":[`, more, 1))}}
		if test.class != "" {
			folder["vocab.txt"] = &fstest.MapFile{Data: []byte(smallVocabulary)}
			folder["tokenizer_config.json"] = &fstest.MapFile{Data: fmt.Appendf(nil,
				`{"tokenizer_class": %q, "additional_special_tokens": ["<user>"]}`, test.class)}
		}
		tokenizer := check.Must(tokenize.Load(folder))(t)
		encoding, err := tokenizer.Encode(text)
		if err != nil || !slices.Equal(encoding.IDs, test.want) {
			t.Errorf("%s %s: ids %v, want %v, error %v", test.file, test.class, encoding.IDs, test.want, err)
		}
		// A special token of the model's own is text that a user may write,
		// and one with a role is not.
		template, err := tokenizer.Template("a <user> [MASK]")
		if err != nil || !slices.Contains(template.IDs, 300) {
			t.Errorf("%s %s: <user> in a text: %v", test.file, test.class, err)
		}
		plain, err := tokenizer.Plain("a <user>")
		if err != nil || !slices.Contains(plain.IDs, 300) {
			t.Errorf("%s %s: <user> in a text to score: %v", test.file, test.class, err)
		}
		for _, role := range []string{"[CLS]", "[SEP]", "[PAD]"} {
			_, err := tokenizer.Template("a " + role + " [MASK]")
			if err == nil || !strings.Contains(err.Error(), role+" is added by the program") {
				t.Errorf("%s %s: %s in a text: %v", test.file, test.class, role, err)
			}
		}
		if slices.Contains(tokenizer.Fillable(), 298) || slices.Contains(tokenizer.Fillable(), 300) {
			t.Error("a slot takes an added token")
		}
	}
	// Where the class says nothing, tokenizer.json decides.
	content := check.Must(os.ReadFile("testdata/reference/cased.tokenizer.json"))(t)
	for _, class := range []string{"PreTrainedTokenizerFast", "TokenizersBackend"} {
		folder := bundle(smallVocabulary, `{"tokenizer_class": "`+class+`"}`)
		folder["tokenizer.json"] = &fstest.MapFile{Data: content}
		if tokenizer, err := tokenize.Load(folder); err != nil || tokenizer.VocabularySize() != 298 {
			t.Errorf("%s: %v", class, err)
		}
	}
}

func TestLoadOptions(t *testing.T) {
	tests := []struct {
		configuration string
		want          string // tokens of "The café 日本"
	}{
		{`{}`, "the ca ##fe 日 [UNK]"},
		{`{"do_lower_case": true}`, "the ca ##fe 日 [UNK]"},
		{`{"do_lower_case": false}`, "The café 日 [UNK]"},
		{`{"do_lower_case": true, "strip_accents": false}`, "the café 日 [UNK]"},
		{`{"do_lower_case": false, "strip_accents": true}`, "The ca ##fe 日 [UNK]"},
		{`{"do_lower_case": true, "strip_accents": null, "tokenize_chinese_chars": false}`, "the ca ##fe 日本"},
		{`{"tokenizer_class": "DistilBertTokenizerFast", "never_split": ["[MASK]"], "pad_token": null, "mask_token": {"content": "[MASK]"}, "added_tokens_decoder": {"4": {"content": "[MASK]", "special": true}}}`, "the ca ##fe 日 [UNK]"},
	}
	for _, test := range tests {
		t.Run(test.configuration, func(t *testing.T) {
			for _, vocabulary := range []string{smallVocabulary, strings.ReplaceAll(smallVocabulary, "\n", "\r\n"),
				strings.TrimSuffix(smallVocabulary, "\n")} {
				tokenizer := check.Must(tokenize.Load(bundle(vocabulary, test.configuration)))(t)
				encoding := check.Must(tokenizer.Encode("The café 日本"))(t)
				if got := strings.Join(encoding.Tokens[1:len(encoding.Tokens)-1], " "); got != test.want {
					t.Errorf("tokens %s, want %s", got, test.want)
				}
			}
		})
	}
}

func TestLoadErrors(t *testing.T) {
	tests := []struct {
		name   string
		bundle fs.FS
		fault  tokenize.Fault
		says   string
	}{
		{"nothing there", fstest.MapFS{}, tokenize.ErrMissingTokenizer,
			"for others, save it with transformers"},
		{"no configuration", fstest.MapFS{"vocab.txt": {Data: []byte(smallVocabulary)}}, tokenize.ErrMissingTokenizer,
			"give --cased or --uncased"},
		{"empty vocabulary", bundle("", "{}"), tokenize.ErrEmptyVocabulary, "vocab.txt"},
		{"one line end", bundle("\n", "{}"), tokenize.ErrEmptyVocabulary, "vocab.txt"},
		{"empty line", bundle("[PAD]\n\n[UNK]\n", "{}"), tokenize.ErrMalformed, "vocab.txt line 2"},
		{"not UTF-8", bundle("[PAD]\n[UNK]\n\xff\n", "{}"), tokenize.ErrMalformed, "vocab.txt line 3"},
		{"duplicate", bundle(smallVocabulary+"the\n", "{}"), tokenize.ErrDuplicateToken,
			`vocab.txt: duplicate token: "the" has id 5 and id 13`},
		{"no [MASK]", bundle(strings.Replace(smallVocabulary, "[MASK]", "<mask>", 1), "{}"), tokenize.ErrMissingToken,
			"[MASK]"},
		{"no [CLS]", bundle(strings.Replace(smallVocabulary, "[CLS]", "<s>", 1), "{}"), tokenize.ErrMissingToken,
			"[CLS]"},
		{"too many", bundle(manyTokens(tokenize.MaxVocabulary+1), "{}"), tokenize.ErrLargeVocabulary,
			fmt.Sprint(tokenize.MaxVocabulary)},
		{"too many bytes", bundle(strings.Repeat("x", 64<<20+1), "{}"), tokenize.ErrLargeVocabulary, "vocab.txt"},
		{"configuration is not JSON", bundle(smallVocabulary, "{"), tokenize.ErrMalformed, "tokenizer_config.json"},
		{"other class", bundle(smallVocabulary, `{"tokenizer_class": "RobertaTokenizer"}`), tokenize.ErrUnsupported,
			"RobertaTokenizer"},
		{"white space only", bundle(smallVocabulary, `{"do_basic_tokenize": false}`), tokenize.ErrUnsupported,
			"do_basic_tokenize"},
		{"other mask", bundle(smallVocabulary, `{"mask_token": "<mask>"}`), tokenize.ErrMissingToken,
			"no mask token (<mask>)"},
		{"other mask, object", bundle(smallVocabulary, `{"mask_token": {"content": "<mask>"}}`),
			tokenize.ErrMissingToken, "no mask token (<mask>)"},
		{"never split", bundle(smallVocabulary, `{"never_split": ["and/or"]}`), tokenize.ErrUnsupported, "and/or"},
		{"token of a single word", bundle(smallVocabulary,
			`{"added_tokens_decoder": {"13": {"content": "[USER]", "single_word": true}}}`), tokenize.ErrUnsupported,
			"[USER]"},
		{"class written in Python", beside("config.json", `{"tokenizer_class": "PhobertTokenizer"}`),
			tokenize.ErrUnsupported, `config.json: unsupported tokenizer: tokenizer_class "PhobertTokenizer", of ` +
				"which transformers makes no tokenizer.json: choose another model"},
		{"no mask token that the vocabulary has", bundle(strings.ReplaceAll(smallVocabulary, "[MASK]", "[mask]"), "{}"),
			tokenize.ErrMissingToken, "no mask token ([MASK])"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tokenizer, err := tokenize.Load(test.bundle)
			if tokenizer != nil {
				t.Error("a tokenizer beside the error")
			}
			checkVocabularyError(t, err, test.fault, test.says)
		})
	}
}

func checkVocabularyError(t *testing.T, err error, fault tokenize.Fault, says string) {
	t.Helper()
	var vocabularyErr *tokenize.VocabularyError
	if !errors.Is(err, fault) || !errors.As(err, &vocabularyErr) {
		t.Fatalf("error %v (%T), want %q", err, err, fault)
	}
	if message := err.Error(); !strings.Contains(message, says) || strings.ContainsAny(message, "\n\r") ||
		len(message) > 300 {
		t.Errorf("message %q, want one line that holds %q", message, says)
	}
}

func manyTokens(n int) string {
	var text strings.Builder
	text.WriteString(smallVocabulary)
	for i := range n - strings.Count(smallVocabulary, "\n") {
		fmt.Fprintf(&text, "%x\n", i)
	}
	return text.String()
}

// spoilt is a tokenizer.json after a change.
func spoilt(t testing.TB, content []byte, change func(file map[string]any)) fstest.MapFS {
	t.Helper()
	var file map[string]any
	check.OK(t, json.Unmarshal(content, &file))
	change(file)
	content, err := json.Marshal(file)
	check.OK(t, err)
	return fstest.MapFS{"tokenizer.json": {Data: content}}
}

// tokenizer.json, spoilt in one place each.
func TestLoadTokenizerErrors(t *testing.T) {
	content, err := os.ReadFile("testdata/reference/cased.tokenizer.json")
	check.OK(t, err)
	type object = map[string]any
	part := func(file object, name string) object { return file[name].(object) }
	tests := []struct {
		name  string
		spoil func(file object)
		fault tokenize.Fault
		says  string
	}{
		{"model", func(f object) { part(f, "model")["type"] = "WordLevel" }, tokenize.ErrUnsupported,
			`model "WordLevel"`},
		{"no model", func(f object) { delete(f, "model") }, tokenize.ErrUnsupported, `model ""`},
		{"normalizer", func(f object) { part(f, "normalizer")["type"] = "Prepend" }, tokenize.ErrUnsupported,
			`normalizer "Prepend", a step that infill does not know: choose another model`},
		{"pre-tokenizer", func(f object) { part(f, "pre_tokenizer")["type"] = "Whitespace" }, tokenize.ErrUnsupported,
			`pre_tokenizer "Whitespace", a step that infill does not know: choose another model`},
		{"no pre-tokenizer", func(f object) { f["pre_tokenizer"] = nil }, tokenize.ErrUnsupported, "no pre_tokenizer"},
		{"post-processor", func(f object) { part(f, "post_processor")["type"] = "ByteLevel" },
			tokenize.ErrUnsupported, "that does not put one token before and one after a text; choose another model"},
		{"unknown token", func(f object) { part(f, "model")["unk_token"] = "<unk>" }, tokenize.ErrMissingToken,
			"no unknown token (<unk>)"},
		{"prefix", func(f object) { part(f, "model")["continuing_subword_prefix"] = "@@" }, tokenize.ErrUnsupported,
			"@@"},
		{"longest word", func(f object) { part(f, "model")["max_input_chars_per_word"] = -1 }, tokenize.ErrUnsupported,
			"-1"},
		{"no vocabulary", func(f object) { delete(part(f, "model"), "vocab") }, tokenize.ErrEmptyVocabulary, ""},
		{"gap in the ids", func(f object) { part(part(f, "model"), "vocab")["the"] = 9999 }, tokenize.ErrMalformed,
			"9999"},
		{"negative id", func(f object) { part(part(f, "model"), "vocab")["the"] = -1 }, tokenize.ErrMalformed, "-1"},
		{"id twice", func(f object) { part(part(f, "model"), "vocab")["the"] = 3 }, tokenize.ErrMalformed,
			`"[UNK]" and "the" have the same id 3`},
		{"added token of another's id", func(f object) { f["added_tokens"].([]any)[0].(object)["content"] = "[USER]" },
			tokenize.ErrMalformed, "[USER]"},
		{"added whole word", func(f object) {
			f["added_tokens"] = append(f["added_tokens"].([]any),
				object{"id": 298, "content": "xyz", "single_word": true})
		}, tokenize.ErrUnsupported, "single_word"},
		{"added token without an id", func(f object) { delete(f["added_tokens"].([]any)[4].(object), "id") },
			tokenize.ErrMalformed, "[MASK]"},
		{"added token of which nothing is left", func(f object) {
			f["added_tokens"] = append(f["added_tokens"].([]any),
				object{"id": 298, "content": "\u0001", "normalized": true})
		}, tokenize.ErrUnsupported, "leaves nothing"},
		{"other id", func(f object) { f["added_tokens"].([]any)[4].(object)["id"] = 1 }, tokenize.ErrMalformed,
			"[MASK]"},
		{"wrong type", func(f object) { part(f, "model")["vocab"] = "none" }, tokenize.ErrMalformed, "tokenizer.json"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err = tokenize.Load(spoilt(t, content, test.spoil))
			checkVocabularyError(t, err, test.fault, test.says)
		})
	}
}

// TestLoadWordPieceSteps: WordPiece goes with other steps than BERT's, and has a
// token of white space, which transformers 5 writes as "". The ids are those of
// the Python package tokenizers 0.23.3.
func TestLoadWordPieceSteps(t *testing.T) {
	content := check.Must(os.ReadFile("testdata/reference/cased.tokenizer.json"))(t)
	type object = map[string]any
	for name, c := range map[string]struct {
		change func(file object)
		want   []int
	}{
		"no normalizer": {func(f object) { f["normalizer"] = nil },
			[]int{4, 212, 77, 155, 160, 192, 18, 49, 124, 205, 211, 6, 7, 5}},
		"RoBERTa's ends": {func(f object) { f["post_processor"].(object)["type"] = "RobertaProcessing" },
			[]int{4, 212, 77, 155, 160, 192, 18, 49, 124, 125, 211, 6, 7, 5}},
		"a normalized mask": {func(f object) { f["added_tokens"].([]any)[4].(object)["normalized"] = true },
			[]int{4, 212, 77, 155, 160, 192, 18, 49, 124, 125, 211, 6, 7, 5}},
		"a token of white space": {func(f object) {
			vocabulary := f["model"].(object)["vocab"].(object)
			vocabulary[""] = vocabulary["the"]
			delete(vocabulary, "the")
		}, []int{4, 212, 77, 155, 160, 192, 18, 49, 124, 125, 68, 136, 133, 6, 7, 5}},
	} {
		tokenizer := check.Must(tokenize.Load(spoilt(t, content, c.change)))(t)
		got := check.Must(tokenizer.Encode("The\tCAFÉ, a 日本 the [MASK]!"))(t)
		if !slices.Equal(got.IDs, c.want) {
			t.Errorf("%s: %v, want %v", name, got.IDs, c.want)
		}
		if slices.Contains(tokenizer.Fillable(), 211) && name == "a token of white space" {
			t.Error("a slot takes white space")
		}
	}
	// White space behind a token of vocab.txt is no part of it; a token of white
	// space stays.
	tokenizer := check.Must(tokenize.Load(bundle(smallVocabulary+"cat \t\n\u2028\ndog\n", "{}")))(t)
	got := check.Must(tokenizer.Encode("cat\u2028dog"))(t)
	if want := []int{2, 13, 15, 3}; !slices.Equal(got.IDs, want) {
		t.Errorf("%v, want %v", got.IDs, want)
	}
}

// A failing file system is reported as itself, not as a missing file.
func TestLoadFileSystemError(t *testing.T) {
	folder := fstest.MapFS{"vocab.txt": {Mode: fs.ModeDir}, "tokenizer_config.json": {Data: []byte("{}")}}
	_, err := tokenize.Load(folder)
	if err == nil || errors.Is(err, fs.ErrNotExist) || err.Error() != "vocab.txt: not a regular file: a folder" {
		t.Errorf("error %v", err)
	}
}

func TestSHA256(t *testing.T) {
	// Written into signatures of stored results: a change of this value is a
	// change of what they mean.
	const want = "5c62970ad775af536cbcee3e2048e2e17e2c8e285d3563af4e384f2b4c0af8f6"
	if got := loadBuiltin(t).SHA256(); got != want {
		t.Errorf("built-in tokenizer has SHA-256 %s, want %s", got, want)
	}
	sums := map[string]string{}
	small := strings.Fields(smallVocabulary)
	with := func(more ...string) []string { return slices.Concat(small, more) }
	for name, of := range map[string]struct {
		vocabulary []string
		options    tokenize.Options
	}{
		"uncased":       {small, tokenize.Options{}},
		"cased":         {small, tokenize.Options{Cased: true}},
		"accents kept":  {small, tokenize.Options{StripAccents: new(bool)}},
		"controls kept": {small, tokenize.Options{KeepControls: true}},
		"joined":        {small, tokenize.Options{JoinChinese: true}},
		"longest word":  {small, tokenize.Options{LongestWord: 99}},
		"more tokens":   {with("x"), tokenize.Options{}},
		"split tokens":  {with("x", "y"), tokenize.Options{}},
		"joined tokens": {with("xy"), tokenize.Options{}},
	} {
		tokenizer := check.Must(tokenize.New(of.vocabulary, of.options))(t)
		if other, seen := sums[tokenizer.SHA256()]; seen {
			t.Errorf("%s and %s have one SHA-256", name, other)
		}
		sums[tokenizer.SHA256()] = name
	}
	// Settings that come to the same have the same sum.
	strip := true
	same := check.Must(tokenize.New(small, tokenize.Options{StripAccents: &strip, LongestWord: 100}))(t)
	if sums[same.SHA256()] != "uncased" {
		t.Error("the defaults written out have another SHA-256")
	}
}

// The vocabulary is the tokenizer's own: a caller who changes the slice changes nothing.
func TestNewCopies(t *testing.T) {
	small := strings.Fields(smallVocabulary)
	tokenizer := check.Must(tokenize.New(small, tokenize.Options{}))(t)
	small[5] = "changed"
	if tokenizer.Token(5) != "the" || tokenizer.Token(-1)+tokenizer.Token(len(small)) != "" ||
		tokenizer.Decode([]int{-1, 5, 1 << 40}) != "the" {
		t.Errorf("token 5 is %q", tokenizer.Token(5))
	}
}

// TestLoadMalformed: what is wrong in a part of a file is an error of that file,
// for every model.
func TestLoadMalformed(t *testing.T) {
	type object = map[string]any
	model := func(f object) object { return f["model"].(object) }
	tests := []struct {
		family, configuration string
		spoil                 func(f object)
		fault                 tokenize.Fault
		says                  string
	}{
		{"albert", `{"do_basic_tokenize": "x"}`, nil, tokenize.ErrMalformed, "tokenizer_config.json"},
		{"roberta", `{`, nil, tokenize.ErrMalformed, "tokenizer_config.json"},
		{"roberta", "", func(f object) { model(f)["merges"] = []any{5} }, tokenize.ErrMalformed, "number"},
		{"roberta", "", func(f object) { model(f)["merges"] = []any{"ab"} }, tokenize.ErrMalformed, `"ab"`},
		{"roberta", "", func(f object) { model(f)["vocab"] = object{} }, tokenize.ErrEmptyVocabulary, ""},
		{"roberta", "", func(f object) { model(f)["vocab"].(object)[""] = 400 }, tokenize.ErrMalformed, "token 400"},
		{"albert", "", func(f object) { model(f)["vocab"] = []any{} }, tokenize.ErrEmptyVocabulary, ""},
		{"albert", "", func(f object) { model(f)["vocab"] = object{} }, tokenize.ErrMalformed, "model.vocab"},
		{"albert", "", func(f object) {
			model(f)["vocab"] = append(model(f)["vocab"].([]any), []any{"", -1})
		}, tokenize.ErrMalformed, "not a piece of text"},
	}
	for _, test := range tests {
		t.Run(test.family+" "+test.says, func(t *testing.T) {
			files := fstest.MapFS{"tokenizer.json": {Data: familyFile(t, test.family+".tokenizer.json")}}
			if test.spoil != nil {
				files = spoilt(t, files["tokenizer.json"].Data, test.spoil)
			}
			if test.configuration != "" {
				files["tokenizer_config.json"] = &fstest.MapFile{Data: []byte(test.configuration)}
			}
			_, err := tokenize.Load(files)
			checkVocabularyError(t, err, test.fault, test.says)
		})
	}
	files := fstest.MapFS{"vocab.txt": {Data: []byte(smallVocabulary)},
		"tokenizer_config.json": {Data: []byte(`{"do_basic_tokenize": "x"}`)}}
	_, err := tokenize.Load(files)
	checkVocabularyError(t, err, tokenize.ErrMalformed, "tokenizer_config.json")
	_, err = tokenize.New(nil, tokenize.Options{})
	checkVocabularyError(t, err, tokenize.ErrEmptyVocabulary, "no entry")
	_, err = tokenize.New(append(strings.Fields(smallVocabulary), "\xff"), tokenize.Options{})
	checkVocabularyError(t, err, tokenize.ErrMalformed, "not a piece of text")
}
