package tokenize_test

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"infill/internal/check"
	"infill/tokenize"
)

// TestBoundOfReplacements: a replacement has at most 128 bytes, by either kind
// of step.
func TestBoundOfReplacements(t *testing.T) {
	// A trie of one empty node, and a text behind it.
	mapped := func(text string) []byte {
		return append(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 4), 0), text+"\x00"...)
	}
	for _, c := range []struct {
		what   string
		normal map[string]any
		says   string // "" if it is taken
	}{
		{"128 bytes", map[string]any{"type": "Replace", "pattern": map[string]any{"String": "a"},
			"content": strings.Repeat("x", 128)}, ""},
		{"129 bytes", map[string]any{"type": "Replace", "pattern": map[string]any{"String": "a"},
			"content": strings.Repeat("x", 129)}, "content of 129 bytes, at most 128 are taken"},
		{"no pattern", map[string]any{"type": "Replace", "pattern": map[string]any{"String": ""}, "content": "x"},
			"normalizer Replace without a pattern"},
		{"a map of 128 bytes", precompiled(mapped(strings.Repeat("x", 128))), ""},
		{"a map of 129 bytes", precompiled(mapped(strings.Repeat("x", 129))),
			"a replacement of 129 bytes, at most 128"},
		{"a map without texts", precompiled(mapped("")[:8]), ""},
		{"no map", precompiled(nil), ""},
		{"a map of 3 bytes", precompiled(mapped("")[:3]), "cut short"},
		{"half a trie", precompiled(mapped("")[:7]), "cut short"},
		{"a trie of no node", precompiled([]byte("\x00\x00\x00\x00text\x00")), "cut short"},
		{"a trie of 6 bytes", precompiled([]byte("\x06\x00\x00\x00text and text\x00")), "cut short"},
	} {
		_, err := tokenize.Load(spoilt(t, familyFile(t, "xlm-roberta.tokenizer.json"),
			func(f map[string]any) { f["normalizer"] = c.normal }))
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %q", c.what, err, c.says)
		}
	}
}

// TestCharacterMap: a map of one rule, from "a" to a text, applies if its trie
// and texts hold all that the rule names.
func TestCharacterMap(t *testing.T) {
	load := func(data []byte) *tokenize.Tokenizer {
		return check.Must(tokenize.Load(spoilt(t, familyFile(t, "xlm-roberta.tokenizer.json"),
			func(f map[string]any) { f["normalizer"] = precompiled(data) })))(t)
	}
	plain := load(nil)
	// The root's children lie at their bytes. The value of "a" lies at its unit's
	// number with the offset's bits turned.
	const texts = "x\x00"
	mapped := func(units int, offset, start uint32) *tokenize.Tokenizer {
		trie := make([]uint32, 128)
		trie['a'] = 'a' | 1<<8 | offset<<10
		trie['a'^offset] = start
		data := binary.LittleEndian.AppendUint32(nil, uint32(4*units))
		for _, unit := range trie[:units] {
			data = binary.LittleEndian.AppendUint32(data, unit)
		}
		return load(append(data, texts...))
	}
	for _, c := range []struct {
		what          string
		units         int
		offset, start uint32
		want          string // what "bab" becomes
	}{
		{"a rule", 98, 1, 0, "bxb"},
		{"the end of the text", 98, 1, 1, "bb"},
		{"the end of all texts", 98, 1, 2, "bb"},
		{"behind all texts", 98, 1, 3, "bab"},
		{"a trie without the letter", 97, 1, 0, "bab"},
		{"a value behind the trie", 98, 3, 0, "bab"}, // at 98
		{"a value that is the last", 99, 3, 0, "bxb"},
	} {
		got := check.Must(mapped(c.units, c.offset, c.start).Encode("bab"))(t).Tokens
		if want := check.Must(plain.Encode(c.want))(t).Tokens; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", c.what, got, want)
		}
	}
}

func precompiled(data []byte) map[string]any {
	return map[string]any{"type": "Precompiled", "precompiled_charsmap": base64.StdEncoding.EncodeToString(data)}
}

// TestBoundOfGrowth: a text of n characters may become one of 16 n + 1024, and
// nothing of a longer one is dropped.
func TestBoundOfGrowth(t *testing.T) {
	tokenizer := check.Must(tokenize.Load(growing(1, strings.Repeat("x", 80))))(t) // an x is unknown, and one token
	for _, c := range []struct {
		text string
		says string
	}{
		{strings.Repeat("a", 16), ""}, // 1280 = 16 × 16 + 1024
		{strings.Repeat("a", 17), "makes 1360 characters of a text of 17"},
		{strings.Repeat("a", 17) + "bbbb", "characters of a text of 21"}, // 1360 = 16 × 21 + 1024, and 4 more
	} {
		_, err := tokenizer.Encode(c.text)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %q", c.text, err, c.says)
		}
	}
	twice := check.Must(tokenize.Load(growing(2, strings.Repeat("a", 16))))(t)
	_, err := twice.Encode("aaaaaaaa") // 8, then 128, then 2048 characters: more than 16 × 8 + 1024
	check.Says(t, err, "normalizer 2 makes 2048 characters of a text of 128")
}

// TestBoundOfTokens: a text of n bytes has at most 2 n + 24 tokens, the one
// before the text among them.
func TestBoundOfTokens(t *testing.T) {
	tokenizer := check.Must(tokenize.Load(growing(1, strings.Repeat("a", 25))))(t)
	encoding := check.Must(tokenizer.Encode("a"))(t)
	if n := len(encoding.IDs); n != 27 {
		t.Errorf("%d tokens, want 25 and two around them", n)
	}
	tokenizer = check.Must(tokenize.Load(growing(1, strings.Repeat("a", 26))))(t)
	_, err := tokenizer.Encode("a")
	check.Says(t, err, "it makes 27 tokens of a text of 1 bytes")
}

// TestBoundOfIDs: ids begin with 0, and end below the largest size of a
// vocabulary.
func TestBoundOfIDs(t *testing.T) {
	for id, taken := range map[int]bool{-1: false, tokenize.MaxVocabulary - 1: true, tokenize.MaxVocabulary: false} {
		_, err := tokenize.Load(spoilt(t, familyFile(t, "roberta.tokenizer.json"), func(f map[string]any) {
			f["model"].(map[string]any)["vocab"].(map[string]any)["Ġthe"] = id
		}))
		says := fmt.Sprintf(`has id %d, not between 0 and %d`, id, tokenize.MaxVocabulary-1)
		if (err == nil) != taken ||
			err != nil && (!errors.Is(err, tokenize.ErrMalformed) || !strings.Contains(err.Error(), says)) {
			t.Errorf("id %d: error %v", id, err)
		}
	}
}

// TestBoundOfVocabulary: a vocabulary has 2^20 tokens at most.
func TestBoundOfVocabulary(t *testing.T) {
	list := vocabulary()
	for i := len(list); i < tokenize.MaxVocabulary; i++ {
		list = append(list, fmt.Sprint("token ", i))
	}
	tokenizer, err := tokenize.New(list, tokenize.Options{})
	if err != nil || tokenizer.VocabularySize() != tokenize.MaxVocabulary {
		t.Errorf("%d tokens: %v", len(list), err)
	}
	_, err = tokenize.New(append(list, "another"), tokenize.Options{})
	if !errors.Is(err, tokenize.ErrLargeVocabulary) {
		t.Errorf("one token more: %v", err)
	}
}

// TestBoundOfBlanks: how long the parts of a blank may be.
func TestBoundOfBlanks(t *testing.T) {
	tokenizer := newTokenizer(t, tokenize.Options{})
	x := func(n int) string { return strings.Repeat("x", n) }
	for blank, says := range map[string]string{
		"[MASK:1]": "", "[MASK:16]": "", "[MASK:0]": "a length that is not a number from 1 to 16",
		"[MASK:17]": "a length that is not a number from 1 to 16", "[MASK:+1]": "a length",
		"[MASK:01]": "a length",
		"[MASK:]":   "a length", "[MASK:1-]": "a length", "[MASK:2-2]": "",
		"[MASK:3-2]":           "a length that runs backwards",
		"[MASK=" + x(32) + "]": "", "[MASK=" + x(33) + "]": "a name that is not 1 to 32 bytes",
		"[MASK=]": "a name that is not", "[MASK=a-b_1]": "", "[MASK=a.b]": "a name that is not",
		"[MASK~" + x(200) + "]": "",
		"[MASK~" + x(201) + "]": "a pattern that is not a regular expression of 1 to 200 bytes",
		"[MASK~]":               "a pattern that is not",
		"[MASK~(]":              "a pattern that is no regular expression (missing closing ))", "[MASK:1=a~b]": "",
		"[MASK~[]x]]": "", "[MASK~[^]x]]": "", `[MASK~\]]`: "", `[MASK~[\]x]]`: "",
		"[MASK~[x]": "the closing ] is missing",
	} {
		_, err := tokenizer.Template("the " + blank + " was")
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v, want %q", blank, err, says)
		}
	}
}

// TestLongestBlank: the longest blank that there can be is read, and a ] is not looked
// for behind it.
func TestLongestBlank(t *testing.T) {
	tokenizer := newTokenizer(t, tokenize.Options{})
	longest := "[MASK:16-16=" + strings.Repeat("n", 32) + "~" + strings.Repeat("p", 200) + "]"
	_, err := tokenizer.Shortest("the "+longest+" was", "")
	if err != nil {
		t.Errorf("the longest blank: %v", err)
	}
	_, err = tokenizer.Shortest("the [MASK~"+strings.Repeat("p", 201)+"] was", "")
	if err == nil || !strings.Contains(err.Error(), "a regular expression of 1 to 200 bytes") {
		t.Errorf("a pattern of 201 bytes: %v", err)
	}
	_, err = tokenizer.Shortest("the [MASK~"+strings.Repeat("p", 300)+"] was", "")
	if err == nil || !strings.Contains(err.Error(), "the closing ] is missing within 264 bytes") {
		t.Errorf("a pattern of 300 bytes: %v", err)
	}
	spans := tokenize.BlankSpans("[MASK~"+strings.Repeat("p", 300)+"] [MASK]", "")
	if len(spans) != 1 || spans[0][0] != 308 {
		t.Errorf("blanks at %v", spans)
	}
}

// TestParts: a text is cut into its words and signs, each at its place.
func TestParts(t *testing.T) {
	for text, want := range map[string][]string{
		"":                      nil,
		"the cat.":              {"the", "cat", "-."},
		" the  (cat)!? ":        {"the", "-(", "cat", "-)", "-!", "-?"},
		"it's a well-known 3.5": {"it's", "a", "well-known", "3.5"},
		"\u0301 a":              {"-\u0301", "a"},
		"a *\u0301\u0302 b":     {"a", "-*\u0301\u0302", "b"},
		"a \u0301":              {"a", "-\u0301"},
		"日本 語":                  {"日", "本", "語"},
		"caf\u00e9 cafe\u0301 हिन्दी": {"caf\u00e9", "cafe\u0301", "हिन्दी"},
	} {
		var got []string
		for _, part := range tokenize.Parts(text) {
			sign := map[bool]string{true: "", false: "-"}[part.Word]
			got = append(got, sign+text[part.Start:part.End])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestCharacterKinds: which characters the cleaning of BERT drops, and which are
// words of their own, at the edges of their ranges. The ranges are those of
// BERT's tokenization.py, up to U+2B920, see chinese.
func TestCharacterKinds(t *testing.T) {
	words := []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "ab"}
	tokenizer := check.Must(tokenize.New(words, tokenize.Options{Cased: true}))(t)
	kept := check.Must(tokenize.New(words, tokenize.Options{Cased: true, KeepControls: true, JoinChinese: true}))(t)
	kinds := map[string][]rune{}
	for _, r := range "\u0000\u0001\u0008\u000b\u001f\u007f\u0080\u009f\u00ad\u200b\ufffd\ue000\uf8ff" {
		kinds["ab"] = append(kinds["ab"], r)
	}
	kinds["a b"] = []rune("\t\n\r \u00a0\u2003\u3000")
	// Signs and Chinese characters are unknown here.
	kinds["a [UNK] b"] = append([]rune("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~¡§¿‘…、。"),
		0x3400, 0x4dbf, 0x4e00, 0x9fff, 0xf900, 0xfaff, 0x20000, 0x2a6df, 0x2a700, 0x2b73f, 0x2b740, 0x2b81f, 0x2b920,
		0x2ceaf, 0x2f800, 0x2fa1f)
	kinds["[UNK]"] = append([]rune("09AZazé²ª°€"),
		0x33ff, 0x4dc0, 0x4dff, 0xa000, 0xf8ff+0x2000, 0x1ffff, 0x2a6e0, 0x2a6ff, 0x2b820, 0x2b91f, 0x2ceb0, 0x2f7ff,
		0x2fa20)
	for want, list := range kinds {
		for _, r := range list {
			got := strings.Join(check.Must(tokenizer.Encode("a"+string(r)+"b"))(t).Tokens, " ")
			if got != "[CLS] "+want+" [SEP]" {
				t.Errorf("%U: %s, want %s", r, got, want)
			}
		}
	}
	for _, r := range []rune{0x1f, 0x7f, 0x200b, 0x4e00} {
		got := strings.Join(check.Must(kept.Encode("a"+string(r)+"b"))(t).Tokens, " ")
		if got != "[CLS] [UNK] [SEP]" {
			t.Errorf("%U, kept: %s", r, got)
		}
	}
}

// TestUnspacedSlots: slots side by side have no space between them if both hold
// a letter of a script without spaces.
func TestUnspacedSlots(t *testing.T) {
	tokenizer := newTokenizer(t, tokenize.Options{})
	template := check.Must(tokenizer.Template("the [MASK:2] was"))(t)
	for want, tokens := range map[string][]string{"the 日日 was": {"日", "日"}, "the 日 red was": {"日", "red"},
		"the red 日 was": {"red", "日"}, "the red blue was": {"red", "blue"}} {
		if got := template.Fill(lookUp(t, tokenizer, tokens...)).Text; got != want {
			t.Errorf("%q: %q, want %q", tokens, got, want)
		}
	}
}

// TestDecodeOutside: ids outside the vocabulary have no text.
func TestDecodeOutside(t *testing.T) {
	tokenizer := newTokenizer(t, tokenize.Options{})
	size := tokenizer.VocabularySize()
	red := lookUp(t, tokenizer, "red")[0]
	if got := tokenizer.Decode([]int{-1, red, size, size + 1, 0}); got != "red" {
		t.Errorf("%q", got)
	}
}

// TestOutside: an id outside the vocabulary is no token, and has no properties.
func TestOutside(t *testing.T) {
	for _, tokenizer := range []*tokenize.Tokenizer{newTokenizer(t, tokenize.Options{}), loadFamily(t, "roberta", ""),
		loadFamily(t, "gemma", "")} {
		size := tokenizer.VocabularySize()
		for _, id := range []int{-1, size, size + 1} {
			if tokenizer.Token(id) != "" || tokenizer.Piece(id) != "" || tokenizer.Word(id) || tokenizer.Unspaced(id) ||
				tokenizer.Continues(id) {
				t.Errorf("%d of %d: %q", id, size, tokenizer.Token(id))
			}
		}
		if tokenizer.Token(0) == "" || tokenizer.Token(size-1) == "" {
			t.Errorf("the first and last tokens are %q and %q", tokenizer.Token(0), tokenizer.Token(size-1))
		}
	}
}

// TestByteOfZero: a token that stands for the byte 0 is no word, and decodes to
// it.
func TestByteOfZero(t *testing.T) {
	for _, name := range fallbackNames {
		tokenizer := loadFamily(t, name, "")
		ids := lookUp(t, tokenizer, "<0x00>", "<0x41>")
		if got := tokenizer.Decode(ids); got != "\x00A" {
			t.Errorf("%s: %q", name, got)
		}
		if tokenizer.Word(ids[0]) || !tokenizer.Word(ids[1]) {
			t.Errorf("%s: byte 0 is a word: %v, byte 0x41: %v", name, tokenizer.Word(ids[0]), tokenizer.Word(ids[1]))
		}
	}
}

// TestEqualScores: of pieces with equal scores, a unigram model takes the longer
// one, as the reference does.
func TestEqualScores(t *testing.T) {
	tokenizer := check.Must(tokenize.Load(spoilt(t, growing(0, "")["tokenizer.json"].Data, func(f map[string]any) {
		model := f["model"].(map[string]any)
		model["vocab"] = append(model["vocab"].([]any), []any{"b", -2}, []any{"ab", -4}, []any{"▁", -1})
	})))(t)
	want := []string{"<s>", "▁", "b", "ab", "</s>"}
	got := check.Must(tokenizer.Encode("bab"))(t).Tokens
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
