package tokenize_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"infill/internal/check"
	"infill/tokenize"
)

// familyFile reads a file of testdata/families, which generate_reference.py
// there describes.
func familyFile(t testing.TB, name string) []byte {
	t.Helper()
	content := check.Must(os.ReadFile(filepath.Join("testdata", "families", name)))(t)
	return content
}

// loadFamily loads a tokenizer.json of testdata/families, or the files of
// testdata/unconverted, beside a tokenizer_config.json unless that is empty.
func loadFamily(t testing.TB, name, configuration string) *tokenize.Tokenizer {
	t.Helper()
	var files fstest.MapFS
	if name == unconverted {
		files = unconvertedFiles(t)
	} else {
		files = fstest.MapFS{"tokenizer.json": {Data: familyFile(t, name+".tokenizer.json")}}
	}
	if configuration != "" {
		files["tokenizer_config.json"] = &fstest.MapFile{Data: []byte(configuration)}
	}
	tokenizer := check.Must(tokenize.Load(files))(t)
	return tokenizer
}

// familyNames are the layouts with stored values, but for those of testdata/unconverted.
var familyNames = []string{"roberta", "modernbert", "xlm-roberta", "xlm-roberta-5", "first", "albert", "deberta-v2"}

var allNames = append(familyNames, unconverted)

func familyTexts(t testing.TB) []string {
	t.Helper()
	var texts [][]byte
	check.OK(t, json.Unmarshal(familyFile(t, "texts.json"), &texts))
	if len(texts) < 500 {
		t.Fatalf("only %d texts", len(texts))
	}
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i] = string(text)
	}
	return list
}

// encodings are a reference tokenizer's encodings of texts; the offsets of some
// are not comparable, and nil.
type encodings struct {
	IDs     [][]int
	Offsets [][][2]int
	Decoded []string
}

// equalReference holds ids, offsets and decoded texts against a reference's,
// and counts the texts whose offsets were compared.
func equalReference(t *testing.T, tokenizer *tokenize.Tokenizer, texts []string, want encodings) (located int) {
	t.Helper()
	if len(want.IDs) != len(texts) {
		t.Fatalf("%d values for %d texts", len(want.IDs), len(texts))
	}
	for i, text := range texts {
		got := check.Must(tokenizer.Encode(text))(t)
		if diff := cmp.Diff(want.IDs[i], got.IDs); diff != "" {
			t.Errorf("%q: tokens %q (-want +got):\n%s", text, got.Tokens, diff)
		}
		if want.Offsets[i] != nil {
			located++
			if diff := cmp.Diff(want.Offsets[i], got.Offsets); diff != "" {
				t.Errorf("%q: offsets of %q (-want +got):\n%s", text, got.Tokens, diff)
			}
		}
		if decoded := tokenizer.Decode(want.IDs[i]); decoded != want.Decoded[i] {
			t.Errorf("%v decoded is %q, want %q", want.IDs[i], decoded, want.Decoded[i])
		}
	}
	return located
}

// Ids, offsets and decoded texts are the reference tokenizer's.
func TestFamiliesAgainstReference(t *testing.T) {
	texts := familyTexts(t)
	for _, name := range familyNames {
		t.Run(name, func(t *testing.T) {
			tokenizer := loadFamily(t, name, "")
			var want encodings
			check.OK(t, json.Unmarshal(familyFile(t, name+".json"), &want))
			if located := equalReference(t, tokenizer, texts, want); located < 40 {
				t.Errorf("offsets of only %d texts were compared", located)
			}
		})
	}
}

// The first tokenizer.json did not name their model, as those of
// bert-base-uncased and roberta-base.
func TestModelWithoutType(t *testing.T) {
	files := map[string][]byte{"WordPiece": check.Must(os.ReadFile(mini + "/tokenizer.json"))(t)}
	for _, name := range familyNames {
		files[name] = familyFile(t, name+".tokenizer.json")
	}
	for name, content := range files {
		var file map[string]any
		check.OK(t, json.Unmarshal(content, &file))
		delete(file["model"].(map[string]any), "type")
		older := check.Must(json.Marshal(file))(t)
		var got [2][]int
		for i, content := range [][]byte{content, older} {
			tokenizer, err := tokenize.Load(fstest.MapFS{"tokenizer.json": {Data: content}})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got[i] = check.Must(tokenizer.Encode("He said: “Un café, 東京, unbelievably!”"))(t).IDs
		}
		if diff := cmp.Diff(got[0], got[1]); diff != "" {
			t.Errorf("%s (-with its type +without):\n%s", name, diff)
		}
	}
}

// The user writes [MASK] for every model; the ids hold the model's own token,
// and the white space before a slot is the slot's where the model has it so.
func TestFamilyTemplates(t *testing.T) {
	for _, name := range allNames {
		tokenizer := loadFamily(t, name, "")
		mask := tokenizer.Token(tokenizer.MaskID())
		text := "He had [MASK] me that [MASK:2], and [MASK]."
		template, err := tokenizer.Template(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		same, err := tokenizer.Encode(strings.NewReplacer("[MASK:2]", mask+mask, "[MASK]", mask).Replace(text))
		check.OK(t, err)
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
			if at := template.Offsets[s]; !strings.HasPrefix(text[at[0]:], "[MASK") || text[at[1]-1] != ']' {
				t.Errorf("%s: the slot's offsets are those of %q", name, text[at[0]:at[1]])
			}
		}
		// Outside the slots the user's text comes back byte for byte.
		id := func(token string) int {
			id, ok := tokenizer.ID(token)
			if !ok {
				t.Fatalf("%s: no token %q", name, token)
			}
			return id
		}
		space := "▁"
		if name == "roberta" || name == "modernbert" || name == unconverted {
			space = "Ġ"
		}
		he := id(space + "the")
		want := "He had the me that the the, and the."
		if got := template.Fill([]int{he, he, he, he}); got.Text != want {
			t.Errorf("%s: filled %q, want %q", name, got.Text, want)
		}
	}
}

// The rules of Fill for vocabularies that write the blank before a word.
func TestFamilyFill(t *testing.T) {
	for _, c := range []struct {
		name, text string
		tokens     []string
		want       string
		fills      []string
	}{
		{"roberta", "they [MASK] it", []string{"Ġall"}, "they all it", []string{"all"}},
		{"roberta", "they [MASK] it", []string{"ing"}, "theying it", []string{"ing"}},
		{"roberta", "they said it [MASK]", []string{"."}, "they said it.", []string{"."}},
		{"roberta", "[MASK] said it", []string{"ing"}, "ing said it", []string{"ing"}},
		{"roberta", "  [MASK] said it", []string{"Ġthe"}, "  the said it", []string{"the"}},
		{"roberta", "say ([MASK])", []string{"Ġthe"}, "say (the)", []string{"the"}},
		{"roberta", "go[MASK:2] on", []string{"ing", "Ġthe"}, "going the on", []string{"ing the"}},
		{"roberta", "a [MASK:2] b", []string{"Ã", "©"}, "aé b", []string{"é"}},
		{"roberta", "a [MASK] b", []string{"Ã"}, "a\ufffd b", []string{"\ufffd"}},
		{"roberta", "a [MASK][MASK] b", []string{"Ġthe", "Ġall"}, "a the all b", []string{"the", "all"}},
		{"roberta", "a [MASK][MASK] b", []string{"Ġw", "as"}, "a was b", []string{"w", "as"}},
		{unconverted, "the bak[MASK] was", []string{"ing"}, "the baking was", []string{"ing"}},
		{unconverted, "the bak [MASK] was", []string{"ing"}, "the baking was", []string{"ing"}},
		{"modernbert", "a[MASK] b", []string{"Ġthe"}, "athe b", []string{"the"}},
		{"xlm-roberta", "they [MASK] it", []string{"▁all"}, "they all it", []string{"all"}},
		{"xlm-roberta", "they [MASK] it", []string{"ing"}, "theying it", []string{"ing"}},
		{"xlm-roberta", "a [MASK:2] b", []string{"▁the", "ed"}, "a theed b", []string{"theed"}},
		{"albert", "They left. [MASK] was it", []string{"▁the"}, "They left. The was it", []string{"The"}},
		{"albert", "they left. [MASK] was it", []string{"▁the"}, "they left. the was it", []string{"the"}},
	} {
		tokenizer := loadFamily(t, c.name, "")
		template, err := tokenizer.Template(c.text)
		if err != nil {
			t.Fatalf("%s, %q: %v", c.name, c.text, err)
		}
		ids := make([]int, len(c.tokens))
		for i, token := range c.tokens {
			var ok bool
			if ids[i], ok = tokenizer.ID(token); !ok {
				t.Fatalf("%s has no token %q", c.name, token)
			}
		}
		got := template.Fill(ids)
		if got.Text != c.want || !slices.Equal(got.Fills, c.fills) {
			t.Errorf("%s: %q with %q reads %q, fills %q; want %q, %q", c.name, c.text, c.tokens, got.Text, got.Fills,
				c.want, c.fills)
		}
		for i, span := range got.Spans {
			if got.Text[span[0]:span[1]] != got.Fills[i] {
				t.Errorf("%s: span %v of %q is not %q", c.name, span, got.Text, got.Fills[i])
			}
		}
	}
}

// Every token that a slot may take reads as something, in valid UTF-8, and is
// no token of the program's own.
func TestFamilyFillable(t *testing.T) {
	for _, name := range allNames {
		tokenizer := loadFamily(t, name, "")
		template := check.Must(tokenizer.Template("one [MASK] two"))(t)
		fillable := tokenizer.Fillable()
		if !slices.IsSorted(fillable) || len(fillable) < tokenizer.VocabularySize()/2 {
			t.Errorf("%s: %d of %d tokens are fillable", name, len(fillable), tokenizer.VocabularySize())
		}
		for _, id := range fillable {
			filled := template.Fill([]int{id})
			if strings.TrimSpace(filled.Fills[0]) == "" || !utf8.ValidString(filled.Text) ||
				strings.ContainsRune(filled.Text, utf8.RuneError) {
				t.Errorf("%s: token %q reads %q", name, tokenizer.Token(id), filled.Text)
			}
		}
		for _, id := range []int{tokenizer.MaskID(), tokenizer.ClassifierID(), tokenizer.SeparatorID(),
			tokenizer.PaddingID(), tokenizer.UnknownID()} {
			if slices.Contains(fillable, id) {
				t.Errorf("%s: %q is fillable", name, tokenizer.Token(id))
			}
		}
		for _, token := range []string{"  ", "|||PHONE|||", "Ġ", "▁", "[MASK]"} {
			if id, ok := tokenizer.ID(token); ok && slices.Contains(fillable, id) {
				t.Errorf("%s: %q is fillable", name, token)
			}
		}
	}
}

func TestFamilyContinues(t *testing.T) {
	for name, tokens := range map[string]map[string]bool{
		"roberta":     {"ing": true, "Ġthe": false, ".": false, "Ġ": false, "a": true},
		"xlm-roberta": {"ing": true, "▁the": false, ".": false},
	} {
		tokenizer := loadFamily(t, name, "")
		for token, want := range tokens {
			if id, ok := tokenizer.ID(token); !ok || tokenizer.Continues(id) != want {
				t.Errorf("%s: %q (there: %t) continues a word: %t, want %t", name, token, ok, !want, want)
			}
		}
	}
}

// What a user's text may not hold is reported in the model's own words.
func TestFamilyInputErrors(t *testing.T) {
	for _, c := range []struct {
		name, text string
		fault      tokenize.Fault
		says       string
		offset     int
	}{
		{"roberta", "a </s> [MASK] <s>", tokenize.ErrSpecialToken, "</s> is added by the program", 2},
		{"roberta", "<pad>[MASK] <s>", tokenize.ErrSpecialToken, "<pad> is added by the program", 0},
		{"roberta", "a b", tokenize.ErrNoBlank, "write [MASK]", -1},
		{"roberta", " [MASK] ", tokenize.ErrOnlyBlanks, "", -1},
		{unconverted, "a </s> [MASK]", tokenize.ErrSpecialToken, "</s> is added by the program", 2},
		{"modernbert", "[CLS] [MASK]", tokenize.ErrSpecialToken, "[CLS]", 0},
		{"albert", "a [SEP] [MASK]", tokenize.ErrSpecialToken, "[SEP]", 2},
	} {
		_, err := loadFamily(t, c.name, "").Template(c.text)
		var input *tokenize.InputError
		if !errors.As(err, &input) || input.Fault != c.fault || input.Offset != c.offset ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, %q: error %v, want %q at %d with %q", c.name, c.text, err, c.fault, c.offset, c.says)
		}
	}
	// Brackets that are another family's tokens are text.
	if _, err := loadFamily(t, "roberta", "").Template("the [SEP] token [MASK]"); err != nil {
		t.Error(err)
	}
}

func TestFamilyPlainAndCandidate(t *testing.T) {
	tokenizer := loadFamily(t, "roberta", "")
	plain := check.Must(tokenizer.Plain("the train wasn't late"))(t)
	// The pattern's pieces are the words: "the", "train", "wasn", "'t", "late".
	if last := slices.Max(plain.Words); last != 4 || plain.Words[0] != -1 || plain.Words[len(plain.Words)-1] != -1 {
		t.Errorf("words %v of %q", plain.Words, plain.Tokens)
	}
	for name, want := range map[string]string{"roberta": "Ġall", "modernbert": "Ġall", "xlm-roberta": "▁all",
		"albert": "▁all", unconverted: "Ġall"} {
		tokenizer := loadFamily(t, name, "")
		ids, err := tokenizer.Candidate("all")
		if err != nil || len(ids) != 1 || tokenizer.Token(ids[0]) != want {
			t.Errorf("%s: candidate %v, %v; want %q", name, ids, err, want)
		}
	}
	if _, err := loadFamily(t, "albert", "").Candidate("漢"); !errors.Is(err, tokenize.ErrUnknownWord) {
		t.Errorf("error %v for a word outside the vocabulary", err)
	}
}

// A tokenizer.json with a step that is not known is refused by name.
func TestLoadFamilyRefuses(t *testing.T) {
	type object = map[string]any
	in := func(f object, path ...string) object {
		for _, key := range path {
			f = f[key].(object)
		}
		return f
	}
	for _, c := range []struct {
		name, family string
		change       func(object)
		fault        tokenize.Fault
		says         string
	}{
		{"normalizer", "roberta", func(f object) { f["normalizer"] = object{"type": "Nmt"} }, tokenize.ErrUnsupported,
			`normalizer "Nmt"`},
		{"pattern", "albert", func(f object) {
			f["normalizer"] = object{"type": "Replace", "pattern": object{"Regex": "a+"}, "content": "b"}
		}, tokenize.ErrUnsupported, `pattern "a+"`},
		{"pre-tokenizer", "roberta", func(f object) { f["pre_tokenizer"] = object{"type": "Split"} },
			tokenize.ErrUnsupported, `pre_tokenizer "Split"`},
		{"no pre-tokenizer", "roberta", func(f object) { f["pre_tokenizer"] = nil }, tokenize.ErrUnsupported,
			"no pre_tokenizer"},
		{"pre-tokenizer of another model", "roberta",
			func(f object) { f["pre_tokenizer"] = object{"type": "Metaspace"} }, tokenize.ErrUnsupported,
			"BPE needs ByteLevel"},
		{"other sign for a blank", "albert",
			func(f object) { f["pre_tokenizer"] = object{"type": "Metaspace", "replacement": "_"} },
			tokenize.ErrUnsupported, `replacement "_"`},
		{"no pattern", "roberta", func(f object) { in(f, "pre_tokenizer")["use_regex"] = false },
			tokenize.ErrUnsupported, "use_regex"},
		{"no post-processor", "roberta", func(f object) { f["post_processor"] = nil }, tokenize.ErrUnsupported,
			"post_processor"},
		{"template of two ends", "albert", func(f object) { in(f, "post_processor")["single"] = []any{} },
			tokenize.ErrUnsupported, `post_processor "TemplateProcessing"`},
		{"dropout", "roberta", func(f object) { in(f, "model")["dropout"] = 0.1 }, tokenize.ErrUnsupported, "dropout"},
		{"suffix", "roberta", func(f object) { in(f, "model")["end_of_word_suffix"] = "</w>" }, tokenize.ErrUnsupported,
			"</w>"},
		{"punctuation kept with words", "deberta-v2", func(f object) {
			in(f, "pre_tokenizer")["pretokenizers"].([]any)[0].(object)["behavior"] = "MergedWithNext"
		}, tokenize.ErrUnsupported, "MergedWithNext"},
		{"byte fallback", "xlm-roberta", func(f object) { in(f, "model")["byte_fallback"] = true },
			tokenize.ErrUnsupported, "byte_fallback"},
		{"byte missing", "roberta", func(f object) { delete(in(f, "model", "vocab"), "Ā") }, tokenize.ErrMalformed,
			"byte 0x00"},
		{"merge of nothing", "roberta", func(f object) { in(f, "model")["merges"] = []any{"zz qq"} },
			tokenize.ErrMalformed, `"zz" and "qq"`},
		{"merge without blank", "roberta", func(f object) { in(f, "model")["merges"] = []any{"zz"} },
			tokenize.ErrMalformed, `merge "zz"`},
		{"id twice", "roberta", func(f object) { in(f, "model", "vocab")["Ġthe"] = 9 }, tokenize.ErrMalformed,
			"same id 9"},
		{"id too large", "roberta", func(f object) { in(f, "model", "vocab")["Ġthe"] = 1 << 40 }, tokenize.ErrMalformed,
			"1099511627776"},
		{"no vocabulary", "roberta", func(f object) { delete(in(f, "model"), "vocab") }, tokenize.ErrEmptyVocabulary,
			"no entry"},
		{"empty vocabulary", "roberta", func(f object) { in(f, "model")["vocab"] = object{} },
			tokenize.ErrEmptyVocabulary, ""},
		{"no unknown token", "xlm-roberta", func(f object) { in(f, "model")["unk_id"] = nil }, tokenize.ErrMissingToken,
			"unk_id"},
		{"unknown token outside", "xlm-roberta", func(f object) { in(f, "model")["unk_id"] = 1 << 30 },
			tokenize.ErrMissingToken, "unk_id"},
		{"score that is text", "xlm-roberta", func(f object) { in(f, "model")["vocab"] = []any{[]any{"a", "b"}} },
			tokenize.ErrMalformed, "model.vocab"},
		{"no mask", "roberta", func(f object) {
			f["added_tokens"] = slices.DeleteFunc(f["added_tokens"].([]any),
				func(a any) bool { return a.(object)["content"] == "<mask>" })
			delete(in(f, "model", "vocab"), "<mask>")
		}, tokenize.ErrMissingToken, "no mask token (<mask>, [MASK])"},
		{"added token of a single word", "roberta",
			func(f object) { f["added_tokens"].([]any)[0].(object)["single_word"] = true }, tokenize.ErrUnsupported,
			"single_word"},
		{"added token with another id", "roberta", func(f object) { f["added_tokens"].([]any)[0].(object)["id"] = 77 },
			tokenize.ErrMalformed, "has id 77"},
		{"no decoder of bytes", "gemma", func(f object) { f["decoder"] = nil }, tokenize.ErrUnsupported,
			"byte_fallback true without a decoder of Replace, ByteFallback and Fuse"},
		{"other decoder", "gemma",
			func(f object) { f["decoder"] = object{"type": "Sequence", "decoders": []any{object{"type": "CTC"}}} },
			tokenize.ErrUnsupported, `decoder "CTC"`},
		{"other split", "gemma", func(f object) { in(f, "pre_tokenizer")["behavior"] = "Isolated" },
			tokenize.ErrUnsupported, `pre_tokenizer "Split" other than behind a text (behavior "Isolated"`},
		{"no such unknown token", "gemma", func(f object) { in(f, "model")["unk_token"] = "<?>" },
			tokenize.ErrMalformed, `unk_token "<?>" is not in the vocabulary`},
		{"merges ignored", "gemma", func(f object) { in(f, "model")["ignore_merges"] = true }, tokenize.ErrUnsupported,
			"ignore_merges true"},
		{"character map cut", "xlm-roberta", func(f object) { in(f, "normalizer")["precompiled_charsmap"] = "AAAA" },
			tokenize.ErrMalformed, "cut short"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := tokenize.Load(spoilt(t, familyFile(t, c.family+".tokenizer.json"), c.change))
			if !errors.Is(err, c.fault) || !strings.Contains(err.Error(), c.says) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %q with %q in one line", err, c.fault, c.says)
			}
		})
	}
}

// What transformers 5 saves for DeBERTa-v2; the ids are those of the Python
// package tokenizers 0.23.3.
func TestFamilyWhiteSpace(t *testing.T) {
	tokenizer, err := tokenize.Load(spoilt(t, familyFile(t, "deberta-v2.tokenizer.json"), func(f map[string]any) {
		f["normalizer"] = map[string]any{"type": "Replace", "content": " ",
			"pattern": map[string]any{"Regex": `\s{2,}|[\n\r\t]`}}
	}))
	check.OK(t, err)
	encoding := check.Must(tokenizer.Encode("the\tman\u00a0\u2003 saw\n\nit\u00a0a\u3000b\r"))(t)
	if want := []int{1, 11, 4, 133, 28, 24, 77, 25, 3, 24, 3, 149, 4, 2}; !slices.Equal(encoding.IDs, want) {
		t.Errorf("ids %v, want %v", encoding.IDs, want)
	}
}

// The configuration may name the special tokens.
func TestFamilyConfiguration(t *testing.T) {
	tokenizer := loadFamily(t, "roberta",
		`{"tokenizer_class": "RobertaTokenizer", "mask_token": {"content": "<mask>", "lstrip": true}, "pad_token": "</s>", "add_prefix_space": false}`)
	if got := tokenizer.Token(tokenizer.PaddingID()); got != "</s>" {
		t.Errorf("padding is %q", got)
	}
	if plain := loadFamily(t, "roberta", ""); plain.SHA256() == tokenizer.SHA256() {
		t.Error("another padding token, and the same sum")
	}
	if albert := loadFamily(t, "albert", ""); albert.Cased() || !tokenizer.Cased() {
		t.Error("ALBERT's tokenizer lower-cases, RoBERTa's does not")
	}
}

// A long text is cut in reasonable time whatever it holds: one word of 64 KB.
func TestFamilyLongPiece(t *testing.T) {
	for _, name := range allNames {
		tokenizer := loadFamily(t, name, "")
		for _, piece := range []string{"a", "é", "漢", " ", "'", "\u0301"} {
			text := strings.Repeat(piece, 64<<10/len(piece))
			if _, err := tokenizer.Encode(text); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Any text: no panic, offsets inside the text, and the same ids again.
func FuzzFamilies(f *testing.F) {
	for _, text := range familyTexts(f)[:40] {
		f.Add(text)
	}
	f.Add("\xff\xc3(")
	var tokenizers []*tokenize.Tokenizer
	for _, name := range allNames {
		tokenizers = append(tokenizers, loadFamily(f, name, ""))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for i, tokenizer := range tokenizers {
			e := check.Must(tokenizer.Encode(text))(t)
			for k, at := range e.Offsets {
				if at[0] < 0 || at[0] > at[1] || at[1] > len(text) {
					t.Fatalf("%s: token %d of %q has offsets %v", allNames[i], k, text, at)
				}
			}
			if template, err := tokenizer.Template(text); err == nil {
				ids := make([]int, len(template.Slots))
				for k := range ids {
					ids[k] = tokenizer.UnknownID()
				}
				template.Fill(ids)
			}
		}
	})
}

// A damaged character map finds nothing or something, and never reads outside.
func FuzzCharacterMap(f *testing.F) {
	var file map[string]any
	content := familyFile(f, "xlm-roberta.tokenizer.json")
	check.OK(f, json.Unmarshal(content, &file))
	good, err := base64.StdEncoding.DecodeString(file["normalizer"].(map[string]any)["precompiled_charsmap"].(string))
	check.OK(f, err)
	f.Add(good, uint64(1))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		for range min(len(data), 8) {
			data[rng.IntN(len(data))] ^= byte(rng.Uint32())
		}
		file["normalizer"].(map[string]any)["precompiled_charsmap"] = base64.StdEncoding.EncodeToString(data)
		content := check.Must(json.Marshal(file))(t)
		tokenizer, err := tokenize.Load(fstest.MapFS{"tokenizer.json": {Data: content}})
		if err != nil {
			return
		}
		if _, err := tokenizer.Encode("Ａ ﬁ é か\u3099 plain \u200b text"); err != nil {
			t.Error(err)
		}
	})
}

// TestFamilyContext: a context stands before the text as the families write
// pairs: one separator, or two where it is </s>.
func TestFamilyContext(t *testing.T) {
	for _, name := range allNames {
		tokenizer := loadFamily(t, name, "")
		template, err := tokenizer.Template("the [MASK] sat")
		if err != nil {
			t.Fatal(name, err)
		}
		context, err := tokenizer.Context("a dog")
		if err != nil {
			t.Fatal(name, err)
		}
		first, second := tokenizer.Token(template.IDs[0]), tokenizer.Token(template.IDs[len(template.IDs)-1])
		separators := 1
		if second == "</s>" {
			separators = 2
		}
		if tokenizer.Token(context[len(context)-1]) != second || tokenizer.Token(context[0]) == first {
			t.Errorf("%s: context %v", name, context)
		}
		if got := strings.Count(tokensOf(tokenizer, context), second); got != separators {
			t.Errorf("%s: %d separators behind the context, want %d", name, got, separators)
		}
		if _, err := tokenizer.Context("a [MASK]"); !errors.Is(err, tokenize.ErrUnwantedBlank) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
