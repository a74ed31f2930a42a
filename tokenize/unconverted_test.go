package tokenize_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"infill/tokenize"
)

// unconvertedNames are the folders of testdata/unconverted, which generate_reference.py there describes.
var unconvertedNames = []string{"roberta", "roberta-saved", "xlm-roberta", "xlm-roberta-listed", "camembert", "albert",
	"albert-accents", "deberta-v2", "deberta-v2-lower"}

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
			spans := func([][2]int) {}
			if name == "roberta-saved" {
				// With add_prefix_space, the reference sets a token of a blank alone before or after the blank.
				spans = collapse
			}
			located := equalReference(t, tokenizer, texts, want.encodings, spans)
			if located < 15 {
				t.Errorf("offsets of only %d texts were compared", located)
			}
		})
	}
}

// collapse makes all empty spans one.
func collapse(spans [][2]int) {
	for i := range spans {
		if spans[i][0] == spans[i][1] {
			spans[i] = [2]int{}
		}
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
		space := "▁"
		if strings.HasPrefix(name, "roberta") {
			space = "Ġ"
		}
		the, ok := tokenizer.ID(space + "the")
		if !ok {
			t.Fatalf("%s has no token %sthe", name, space)
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

// Every token that a slot may take is text: no special token, no byte, nothing that the conversion put in. What
// SentencePiece calls user defined is text.
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
		if strings.HasPrefix(name, "albert") {
			for _, token := range []string{"(", ".", "€"} {
				if id, ok := tokenizer.ID(token); !ok || !slices.Contains(fillable, id) {
					t.Errorf("%s: the piece %q (there: %t) is not fillable", name, token, ok)
				}
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
		{"roberta", "a <mask> b", "<mask> is the model's own; write [MASK]", 2},
		{"roberta", "a </s> [MASK]", "</s> is added by the program", 2},
		{"roberta-saved", "a <special> [MASK]", "<special> is added by the program", 2},
		{"xlm-roberta", "<s> [MASK]", "<s> is added by the program", 0},
		{"camembert", "a <s>NOTUSED [MASK]", "<s>NOTUSED", 2},
		{"albert", "a [SEP] [MASK]", "[SEP]", 2},
		{"deberta-v2", "a [CLS] [MASK]", "[CLS]", 2},
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
	for name, want := range map[string]string{"roberta": "Ġthe", "roberta-saved": "Ġthe", "xlm-roberta": "▁the",
		"camembert": "▁the", "albert": "▁the", "deberta-v2": "▁the"} {
		tokenizer := loadUnconverted(t, name)
		ids, err := tokenizer.Candidate("the")
		if err != nil || len(ids) != 1 || tokenizer.Token(ids[0]) != want {
			t.Errorf("%s: candidate %v, %v; want %q", name, ids, err, want)
		}
	}
}

// tokenizer.json, where there is one, is what is read.
func TestUnconvertedGivesWay(t *testing.T) {
	files := unconvertedFiles(t, "albert")
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
		"cased": func(f fstest.MapFS) {
			f["tokenizer_config.json"] = &fstest.MapFile{Data: []byte(`{"do_lower_case": false}`)}
		},
		"accents": func(f fstest.MapFS) {
			f["tokenizer_config.json"] = &fstest.MapFile{Data: []byte(`{"keep_accents": true}`)}
		},
		"added": func(f fstest.MapFS) { f["added_tokens.json"] = &fstest.MapFile{Data: []byte(`{"<url>": 221}`)} },
		"mask": func(f fstest.MapFS) {
			f["special_tokens_map.json"] = &fstest.MapFile{Data: []byte(
				`{"mask_token": {"content": "[MASK]", "lstrip": false}}`)}
		},
		"other file": func(f fstest.MapFS) {
			f["spiece.model"] = &fstest.MapFile{Data: append(slices.Clone(f["spiece.model"].Data),
				piece("zz", -3, 1)...)}
		},
	} {
		files := unconvertedFiles(t, "albert")
		change(files)
		sum := add(name, files)
		if other, seen := sums[sum]; seen {
			t.Errorf("%s and %s have one SHA-256", name, other)
		}
		sums[sum] = name
	}
	// What changes nothing does not.
	files := unconvertedFiles(t, "albert")
	files["tokenizer_config.json"] = &fstest.MapFile{Data: []byte(`{"do_lower_case": true, "model_max_length": 99}`)}
	if sums[add("defaults", files)] != "plain" {
		t.Error("the defaults written out have another SHA-256")
	}
}

// piece is a serialized piece, as a field of a ModelProto.
func piece(text string, score float32, kind uint64) []byte {
	var p []byte
	p = protowire.AppendTag(p, 1, protowire.BytesType)
	p = protowire.AppendString(p, text)
	p = protowire.AppendTag(p, 2, protowire.Fixed32Type)
	p = protowire.AppendFixed32(p, math.Float32bits(score))
	p = protowire.AppendTag(p, 3, protowire.VarintType)
	p = protowire.AppendVarint(p, kind)
	return message(1, p)
}

func message(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

func number(field protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), value)
}

func TestLoadUnconvertedRefuses(t *testing.T) {
	set := func(name, content string) func(fstest.MapFS) {
		return func(f fstest.MapFS) { f[name] = &fstest.MapFile{Data: []byte(content)} }
	}
	add := func(name string, content ...[]byte) func(fstest.MapFS) {
		return func(f fstest.MapFS) {
			f[name] = &fstest.MapFile{Data: slices.Concat(append([][]byte{f[name].Data}, content...)...)}
		}
	}
	remove := func(name string) func(fstest.MapFS) { return func(f fstest.MapFS) { delete(f, name) } }
	for _, c := range []struct {
		name, folder string
		change       func(fstest.MapFS)
		fault        tokenize.Fault
		says         string
	}{
		{"class", "albert", set("tokenizer_config.json", `{"tokenizer_class": "T5Tokenizer"}`), tokenize.ErrUnsupported,
			`tokenizer_config.json: unsupported tokenizer: tokenizer_class "T5Tokenizer"`},
		{"class of the model", "albert", set("config.json", `{"tokenizer_class": "XLNetTokenizerFast"}`),
			tokenize.ErrUnsupported, `config.json: unsupported tokenizer: tokenizer_class "XLNetTokenizerFast"`},
		{"no class", "albert", remove("config.json"), tokenize.ErrMissingTokenizer, "name the tokenizer_class"},
		{"family without a class", "albert", set("config.json", `{"model_type": "bert"}`), tokenize.ErrMissingTokenizer,
			`model_type "bert"`},
		{"file of another class", "albert", set("config.json", `{"model_type": "deberta-v2"}`),
			tokenize.ErrMissingTokenizer, "DebertaV2Tokenizer needs spm.model; found spiece.model"},
		{"no merges", "roberta", remove("merges.txt"), tokenize.ErrMissingTokenizer,
			"needs vocab.json and merges.txt; found vocab.json"},
		{"configuration", "roberta-saved", set("tokenizer_config.json", `{"mask_token": 3}`), tokenize.ErrMalformed,
			"tokenizer_config.json"},
		{"model configuration", "roberta", set("config.json", `{`), tokenize.ErrMalformed, "config.json"},
		{"special tokens", "roberta", set("special_tokens_map.json", `[]`), tokenize.ErrMalformed,
			"special_tokens_map.json"},
		{"added tokens", "roberta", set("added_tokens.json", `{"a": "b"}`), tokenize.ErrMalformed, "added_tokens.json"},
		{"added token out of place", "roberta", set("added_tokens.json", `{"<url>": 500}`), tokenize.ErrMalformed,
			`added token "<url>" has id 500, but 481 by its place`},
		{"listed token out of place", "xlm-roberta",
			set("tokenizer_config.json", `{"added_tokens_decoder": {"7": {"content": "<mask>", "lstrip": true}}}`),
			tokenize.ErrMalformed, `tokenizer_config.json: malformed tokenizer file: added token "<mask>" has id 7`},
		{"added tokens of one id", "roberta", set("added_tokens.json", `{"<a>": 481, "<b>": 481}`),
			tokenize.ErrMalformed, `tokens "<a>" and "<b>" have the same id 481`},
		{"token of a single word", "roberta",
			set("special_tokens_map.json", `{"mask_token": {"content": "<mask>", "single_word": true}}`),
			tokenize.ErrUnsupported, "single_word"},
		{"special tokens as text", "roberta", set("tokenizer_config.json", `{"split_special_tokens": true}`),
			tokenize.ErrUnsupported, "split_special_tokens"},
		{"padding", "camembert", set("tokenizer_config.json", `{"pad_token": "</s>"}`), tokenize.ErrUnsupported,
			`pad_token "</s>"`},
		{"vocabulary", "roberta", set("vocab.json", `["a"]`), tokenize.ErrMalformed, "vocab.json"},
		{"bytes missing", "roberta", set("vocab.json", `{"a": 0}`), tokenize.ErrMalformed,
			"vocab.json: malformed tokenizer file: the vocabulary has no token for the byte 0x00"},
		{"merges", "roberta", set("merges.txt", "#version: 0.2\nt h\nt h e\n"), tokenize.ErrMalformed,
			`merges.txt line 3: malformed tokenizer file: "t h e" is not two tokens`},
		{"merges of nothing", "roberta", set("merges.txt", "#version: 0.2\nzz qq\n"), tokenize.ErrMalformed,
			`"zz" and "qq"`},
		{"empty file", "albert", set("spiece.model", ""), tokenize.ErrMalformed,
			"spiece.model: malformed tokenizer file: not a SentencePiece model: it has no pieces"},
		{"text", "albert", set("spiece.model", "version https://git-lfs.github.com/spec/v1\n"), tokenize.ErrMalformed,
			"not a SentencePiece model"},
		{"cut short", "albert",
			func(f fstest.MapFS) { f["spiece.model"].Data = f["spiece.model"].Data[:len(f["spiece.model"].Data)/2] },
			tokenize.ErrMalformed, "not a SentencePiece model"},
		{"length past the end", "albert", add("spiece.model", []byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f}),
			tokenize.ErrMalformed, "not a SentencePiece model"},
		{"BPE", "albert", add("spiece.model", message(2, number(3, 2))), tokenize.ErrUnsupported,
			"spiece.model: unsupported tokenizer: model_type BPE; UNIGRAM is needed"},
		{"words", "xlm-roberta", add("sentencepiece.bpe.model", message(2, number(3, 3))), tokenize.ErrUnsupported,
			"model_type WORD"},
		{"characters", "deberta-v2", add("spm.model", message(2, number(3, 4))), tokenize.ErrUnsupported,
			"model_type CHAR"},
		{"another model", "deberta-v2", add("spm.model", message(2, number(3, 77))), tokenize.ErrUnsupported,
			"model_type 77"},
		{"blanks as they are", "deberta-v2", add("spm.model", message(3, number(5, 0))), tokenize.ErrUnsupported,
			"escape_whitespaces false"},
		{"blanks after words", "deberta-v2", add("spm.model", message(2, number(24, 1))), tokenize.ErrUnsupported,
			"treat_whitespace_as_suffix true"},
		{"unknown piece outside", "albert", add("spiece.model", message(2, number(40, 99999))),
			tokenize.ErrMissingToken, "unk_id"},
		{"unknown piece negative", "albert", add("spiece.model", message(2, number(40, math.MaxUint64))),
			tokenize.ErrMissingToken, "unk_id"},
		{"empty piece", "albert", add("spiece.model", piece("", 0, 1)), tokenize.ErrMalformed,
			`piece 221: "" is not a piece of text`},
		{"piece that is no text", "albert", add("spiece.model", piece("\xff", 0, 1)), tokenize.ErrMalformed,
			`"\xff" is not a piece of text`},
		{"long piece", "albert", add("spiece.model", piece(strings.Repeat("x", 2000), 0, 1)), tokenize.ErrMalformed,
			"2000 bytes long, at most 1024"},
		{"score", "albert", add("spiece.model", piece("zz", float32(math.NaN()), 1)), tokenize.ErrMalformed,
			`"zz" has the score NaN`},
		{"type", "albert", add("spiece.model", piece("zz", 0, 7)), tokenize.ErrMalformed, `"zz" has the type 7`},
		{"wire type", "albert", add("spiece.model", number(1, 3)), tokenize.ErrMalformed, "wire type"},
		{"too many control pieces", "albert", func(f fstest.MapFS) {
			for i := range 9000 {
				f["spiece.model"].Data = append(f["spiece.model"].Data, piece("<"+strconv.Itoa(i)+">", 0, 3)...)
			}
		}, tokenize.ErrLargeVocabulary, "added tokens, at most 8192"},
		{"too many", "albert",
			add("spiece.model", []byte(strings.Repeat(string(piece("zz", 0, 1)), tokenize.MaxVocabulary))),
			tokenize.ErrMalformed, "more than"},
		{"character map", "xlm-roberta", add("sentencepiece.bpe.model", message(3, message(2, []byte{1, 2, 3}))),
			tokenize.ErrMalformed, "sentencepiece.bpe.model: malformed tokenizer file: normalizer Precompiled: " +
				"precompiled_charsmap is cut short"},
		{"long replacement", "xlm-roberta",
			add("sentencepiece.bpe.model",
				message(3, message(2, append([]byte{4, 0, 0, 0, 0, 0, 0, 0}, strings.Repeat("x", 200)...)))),
			tokenize.ErrMalformed, "replacement of 200 bytes"},
		{"other first pieces", "xlm-roberta",
			set("sentencepiece.bpe.model", string(piece("<unk>", 0, 2))+string(piece("a", 0, 1))),
			tokenize.ErrUnsupported, `piece 1 is "a"`},
		{"other ends", "deberta-v2", func(f fstest.MapFS) {
			set("spm.model", string(piece("[UNK]", 0, 2))+string(piece("▁a", -1, 1)))(f)
			set("tokenizer_config.json",
				`{"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>"}`)(f)
		}, tokenize.ErrMissingToken, "no first token ([CLS])"},
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

// Any bytes as a SentencePiece file: a tokenizer that encodes, or an error in one line, and no allocation out of
// proportion.
func FuzzSentencePiece(f *testing.F) {
	for _, name := range []string{"xlm-roberta/sentencepiece.bpe.model", "albert/spiece.model",
		"deberta-v2/spm.model"} {
		content, err := os.ReadFile(filepath.Join("testdata", "unconverted", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	small := slices.Concat(piece("<unk>", 0, 2), piece("<s>", 0, 3), piece("</s>", 0, 3), piece("▁the", -1, 1),
		piece("[CLS]", 0, 4), piece("<0x0A>", 0, 6), piece("é", -9, 5),
		message(2, slices.Concat(number(3, 1), number(40, 0))),
		message(3, slices.Concat(number(3, 0), number(4, 0), number(5, 1))))
	f.Add(small)
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, content []byte) {
		for class, name := range map[string]string{"XLMRobertaTokenizer": "sentencepiece.bpe.model",
			"CamembertTokenizer": "sentencepiece.bpe.model",
			"AlbertTokenizer":    "spiece.model", "DebertaV2Tokenizer": "spm.model"} {
			tokenizer, err := tokenize.Load(
				fstest.MapFS{name: {Data: content},
					"tokenizer_config.json": {Data: []byte(`{"tokenizer_class": "` + class + `"}`)}})
			if err != nil {
				var vocabularyErr *tokenize.VocabularyError
				if !errors.As(err, &vocabularyErr) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("%s: error %q (%T)", class, err, err)
				}
				continue
			}
			text := "the  é <0x0A>\t[CLS] ▁ Ａﬁ か\u3099, 9, said"
			e, err := tokenizer.Encode(text)
			if err != nil {
				t.Fatal(err)
			}
			for k, at := range e.Offsets {
				if at[0] < 0 || at[0] > at[1] || at[1] > len(text) {
					t.Fatalf("%s: token %d has offsets %v", class, k, at)
				}
			}
			tokenizer.Decode(e.IDs)
			tokenizer.Fillable()
		}
	})
}
