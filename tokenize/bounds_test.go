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
		{"a map of 129 bytes", precompiled(mapped(strings.Repeat("x", 129))), "a replacement of 129 bytes, at most 128"},
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
		if (err == nil) != taken || err != nil && (!errors.Is(err, tokenize.ErrMalformed) ||
			!strings.Contains(err.Error(), fmt.Sprintf(`has id %d, not between 0 and %d`, id, tokenize.MaxVocabulary-1))) {
			t.Errorf("id %d: error %v", id, err)
		}
	}
}

// TestBoundOfBlanks: how long the parts of a blank may be.
func TestBoundOfBlanks(t *testing.T) {
	tokenizer := newTokenizer(t, tokenize.Options{})
	x := func(n int) string { return strings.Repeat("x", n) }
	for blank, says := range map[string]string{
		"[MASK:1]": "", "[MASK:16]": "", "[MASK:0]": "a length that is not a number from 1 to 16",
		"[MASK:17]": "a length that is not a number from 1 to 16", "[MASK:+1]": "a length that is not", "[MASK:01]": "a length",
		"[MASK:]": "a length", "[MASK:1-]": "a length", "[MASK:2-2]": "", "[MASK:3-2]": "a length that runs backwards",
		"[MASK=" + x(32) + "]": "", "[MASK=" + x(33) + "]": "a name that is not 1 to 32 bytes",
		"[MASK=]": "a name that is not", "[MASK=a-b_1]": "", "[MASK=a.b]": "a name that is not",
		"[MASK~" + x(200) + "]": "", "[MASK~" + x(201) + "]": "a pattern that is not a regular expression of 1 to 200 bytes",
		"[MASK~]": "a pattern that is not", "[MASK~(]": "a pattern that is not", "[MASK:1=a~b]": "",
		"[MASK~[]x]]": "", "[MASK~[^]x]]": "", `[MASK~\]]`: "", `[MASK~[\]x]]`: "", "[MASK~[x]": "the closing ] is missing",
	} {
		_, err := tokenizer.Template("the " + blank + " was")
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v, want %q", blank, err, says)
		}
	}
}

// TestLongExcerpt: an error quotes at most 40 bytes of a text, cut between
// characters.
func TestLongExcerpt(t *testing.T) {
	tokenizer := newTokenizer(t, tokenize.Options{})
	for _, c := range []struct{ inside, quoted string }{
		{strings.Repeat(".", 33), `"[MASK=` + strings.Repeat(".", 33) + `]"`},
		{strings.Repeat(".", 34), `"[MASK=` + strings.Repeat(".", 34) + `..."`},
		{strings.Repeat(".", 32) + "é.", `"[MASK=` + strings.Repeat(".", 32) + `é..."`},
		{strings.Repeat(".", 33) + "é.", `"[MASK=` + strings.Repeat(".", 33) + `..."`},
	} {
		_, err := tokenizer.Template("the [MASK=" + c.inside + "] was")
		if err == nil || !strings.Contains(err.Error(), " in "+c.quoted+"; ") {
			t.Errorf("%v, want %s", err, c.quoted)
		}
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
