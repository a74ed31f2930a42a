package tokenize_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"infill/internal/check"
	"infill/tokenize"
)

// classCase is a folder and what transformers makes of it; see
// testdata/classes/generate_reference.py.
type classCase struct {
	Base    string
	Set     []change
	Files   map[string]json.RawMessage
	IDs     [][]int
	Differs bool // whether tokenizer.json alone gives other ids
}

// A change sets a value in a JSON file.
type change struct {
	path  []any
	value any
}

func (c *change) UnmarshalJSON(content []byte) error {
	return json.Unmarshal(content, &[2]any{&c.path, &c.value})
}

// apply sets the value in file.
func (c change) apply(file any) {
	for _, key := range c.path[:len(c.path)-1] {
		file = within(file, key)
	}
	file.(map[string]any)[c.path[len(c.path)-1].(string)] = c.value
}

func within(file, key any) any {
	list, ok := file.([]any)
	if ok {
		return list[int(key.(float64))]
	}
	return file.(map[string]any)[key.(string)]
}

// folder returns the files of a case.
func (c classCase) folder(t testing.TB) fstest.MapFS {
	t.Helper()
	var folder fstest.MapFS
	switch c.Base {
	case "vocab.txt":
		folder = fstest.MapFS{c.Base: {Data: check.Must(os.ReadFile("testdata/reference/vocab.txt"))(t)}}
	case "vocab.json":
		folder = unconvertedFiles(t)
	default:
		path := "testdata/families/" + c.Base
		if c.Base == "wordpiece" {
			path = "testdata/reference/cased"
		}
		folder = spoilt(t, check.Must(os.ReadFile(path+".tokenizer.json"))(t), func(file map[string]any) {
			for _, s := range c.Set {
				s.apply(file)
			}
		})
	}
	for name, content := range c.Files {
		folder[name+".json"] = &fstest.MapFile{Data: content}
	}
	return folder
}

// TestClasses: whatever the files of a folder say, ids are those of
// transformers, and a warning names the files if they contradict each other.
func TestClasses(t *testing.T) {
	var reference struct {
		Texts []string
		Cases []classCase
	}
	check.OK(t, json.Unmarshal(check.Must(os.ReadFile("testdata/classes/cases.json"))(t), &reference))
	if len(reference.Cases) < 600 {
		t.Fatalf("only %d cases", len(reference.Cases))
	}
	for _, c := range reference.Cases {
		what := c.Base
		for _, s := range c.Set {
			what += " " + string(check.Must(json.Marshal([]any{s.path, s.value}))(t))
		}
		for _, name := range []string{"config", "tokenizer_config", "special_tokens_map", "added_tokens"} {
			what += " " + name + string(c.Files[name])
		}
		tokenizer, err := tokenize.Load(c.folder(t))
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		for i, want := range c.IDs {
			got := check.Must(tokenizer.Encode(reference.Texts[i]))(t)
			if !slices.Equal(got.IDs, want) {
				t.Errorf("%s: %q is %v, want %v (%q)", what, reference.Texts[i], got.IDs, want, got.Tokens)
			}
		}
		warning := tokenizer.Warning()
		names := strings.Contains(warning, "tokenizer.json says ") && strings.Contains(warning, "config.json")
		if c.Differs && !names {
			t.Errorf("%s: the warning is %q", what, warning)
		}
	}
}

// TestWarning: where files contradict each other, one line names both, what each
// says, what is taken, and the option that takes the other.
func TestWarning(t *testing.T) {
	const option = "; --tokenizer-json of infill models import and pull takes the first"
	for _, c := range []struct {
		base                 string
		set                  []change
		model, configuration string
		want                 string
	}{
		{"wordpiece", nil, "bert", `{"do_lower_case": false}`, ""},
		{"wordpiece", nil, "bert", `{"tokenizer_class": "PreTrainedTokenizerFast"}`, ""},
		{"roberta", nil, "roberta", `{}`, ""},
		{"xlm-roberta", nil, "xlm-roberta", `{}`, ""},
		{"albert", nil, "albert", `{}`, ""},
		{"wordpiece", nil, "bert", `{}`, "tokenizer.json says lowercase false, strip_accents false, and " +
			"tokenizer_config.json, read as BertTokenizer, lowercase true by default, strip_accents true by default: " +
			"the second is taken, as by transformers 5.24; --cased of infill models import and pull takes lowercase " +
			"false, --tokenizer-json all of the first"},
		{"wordpiece", nil, "bert", `{"do_lower_case": false, "tokenize_chinese_chars": false}`,
			"tokenizer.json says handle_chinese_chars true, and tokenizer_config.json, read as BertTokenizer, " +
				"handle_chinese_chars false: the second is taken, as by transformers 5.24" + option},
		{"wordpiece", nil, "bert", `{"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": true}`,
			"tokenizer_config.json says lowercase true, and tokenizer.json lowercase false: the second is taken, as " +
				"by transformers 5.24"},
		{"wordpiece", nil, "roberta", `{}`, "the class RobertaTokenizer (by config.json) has the model BPE, and " +
			"tokenizer.json has WordPiece: tokenizer.json is taken as it is"},
		{"wordpiece", nil, "bert", `{"tokenizer_class": "SomeTokenizer"}`, "tokenizer_config.json names the class " +
			`"SomeTokenizer", whose steps infill does not know; tokenizer.json is taken as it is`},
		{"roberta", nil, "roberta", `{"add_prefix_space": true}`, "tokenizer.json says add_prefix_space false, and " +
			"tokenizer_config.json, read as RobertaTokenizer, add_prefix_space true: the second is taken, as by " +
			"transformers 5.24" + option},
		{"roberta", []change{{[]any{"added_tokens", 4.0, "lstrip"}, false}}, "roberta",
			`{"mask_token": {"content": "<mask>", "lstrip": true}}`, "tokenizer_config.json says the token " +
				`"<mask>" with lstrip, and tokenizer.json the token "<mask>": the second is taken, as by ` +
				"transformers 5.24"},
		{"roberta", nil, "roberta", `{"additional_special_tokens": ["<url>"]}`, "tokenizer.json says nothing of it, " +
			`and tokenizer_config.json, read as RobertaTokenizer, the token "<url>": the second is taken, as by ` +
			"transformers 5.24" + option},
		{"deberta-v2", nil, "deberta-v2", `{}`, "tokenizer.json says normalizer Strip true true + Precompiled + " +
			`Replace " {2,}", pre_tokenizer Punctuation + Metaspace always, and tokenizer_config.json, read as ` +
			`DebertaV2Tokenizer, normalizer Replace "\\s{2,}|[\\n\\r\\t]" + NFC + Strip false true, pre_tokenizer ` +
			"Metaspace always: the second is taken, as by transformers 5.24" + option},
	} {
		folder := classCase{Base: c.base, Set: c.set, Files: map[string]json.RawMessage{
			"config":           json.RawMessage(`{"model_type": "` + c.model + `"}`),
			"tokenizer_config": json.RawMessage(c.configuration)}}.folder(t)
		tokenizer := check.Must(tokenize.Load(folder))(t)
		if got := tokenizer.Warning(); got != c.want {
			t.Errorf("%s %s:\n%s\nwant\n%s", c.base, c.configuration, got, c.want)
		}
	}
}

// TestBytesOfNoText: a byte-level vocabulary may lack the bytes that text in
// UTF-8 never has, as ModernBERT's does.
func TestBytesOfNoText(t *testing.T) {
	never := append([]byte{0xc0, 0xc1}, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff)
	tokenizer, err := tokenize.Load(spoilt(t, familyFile(t, "modernbert.tokenizer.json"), func(f map[string]any) {
		for _, b := range never {
			delete(f["model"].(map[string]any)["vocab"].(map[string]any), string(rune(b)))
		}
	}))
	check.OK(t, err)
	var want encodings
	check.OK(t, json.Unmarshal(familyFile(t, "modernbert.json"), &want))
	equalReference(t, tokenizer, familyTexts(t), want)
	_, err = tokenize.Load(spoilt(t, familyFile(t, "modernbert.tokenizer.json"), func(f map[string]any) {
		delete(f["model"].(map[string]any)["vocab"].(map[string]any), "ô")
	}))
	check.Says(t, err, "the vocabulary has no token for the byte 0xf4, which a text can have")
}
