package tokenize_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"infill/internal/check"
	"infill/tokenize"
)

// The layouts with byte fallback.
var fallbackNames = []string{"gemma", "gemma-metaspace"}

// Ids, offsets and decoded texts are the reference tokenizer's, also of many
// scripts, of characters without a token, and of bytes in any order.
func TestByteFallback(t *testing.T) {
	var scripts [][]byte
	check.OK(t, json.Unmarshal(familyFile(t, "scripts.json"), &scripts))
	texts := familyTexts(t)
	for _, text := range scripts {
		texts = append(texts, string(text))
	}
	for _, name := range fallbackNames {
		tokenizer := loadFamily(t, name, "")
		var want struct {
			encodings
			Random encodings
		}
		check.OK(t, json.Unmarshal(familyFile(t, name+".json"), &want))
		if located := equalReference(t, tokenizer, texts, want.encodings); located < 40 {
			t.Errorf("offsets of only %d texts were compared", located)
		}
		for i, ids := range want.Random.IDs {
			if decoded := tokenizer.Decode(ids); decoded != want.Random.Decoded[i] {
				t.Errorf("%s: %v decoded is %q, want %q", name, ids, decoded, want.Random.Decoded[i])
			}
		}
	}
}

// Neighbouring characters without a token, of which a byte has none either, are one
// unknown token over all of them.
func TestFusedUnknown(t *testing.T) {
	file := bytes.ReplaceAll(familyFile(t, "gemma.tokenizer.json"), []byte(`"<0xF0>"`), []byte(`"<no byte>"`))
	tokenizer := check.Must(tokenize.Load(fstest.MapFS{"tokenizer.json": {Data: file}}))(t)
	text := "he 🫠🫠🫠 me"
	encoding := check.Must(tokenizer.Encode(text))(t)
	var unknown []string
	for i, id := range encoding.IDs {
		if id == tokenizer.UnknownID() {
			unknown = append(unknown, text[encoding.Offsets[i][0]:encoding.Offsets[i][1]])
		}
	}
	if !slices.Equal(unknown, []string{"🫠🫠🫠"}) {
		t.Errorf("unknown tokens over %q in %q", unknown, encoding.Tokens)
	}
}

// A token that stands for a byte fills no slot.
func TestByteTokens(t *testing.T) {
	for _, name := range fallbackNames {
		tokenizer := loadFamily(t, name, "")
		for _, id := range tokenizer.Fillable() {
			if token := tokenizer.Token(id); strings.HasPrefix(token, "<0x") || !utf8.ValidString(token) {
				t.Errorf("%s: %q is fillable", name, token)
			}
		}
		ids, err := tokenizer.Candidate("🫠")
		if err != nil || len(ids) < 4 {
			t.Errorf("%s: candidate %v, error %v", name, ids, err)
		}
	}
}

// Beside a script that writes no blanks a blank is a word of its own, and takes
// tokens without one; beside others it is not.
func TestUnspaced(t *testing.T) {
	tokenizer := loadFamily(t, "gemma", "")
	id := func(token string) int {
		id, ok := tokenizer.ID(token)
		if !ok {
			t.Fatalf("no token %q", token)
		}
		return id
	}
	for _, c := range []struct {
		text, fill, want string
		touches, opens   bool
	}{
		{"我[MASK]苹果", "喜欢", "我喜欢苹果", false, true},
		{"我喜欢[MASK]。", "我们", "我喜欢我们。", false, true},
		{"[MASK]喜欢苹果", "我", "我喜欢苹果", false, true},
		{"今日は[MASK]です", "天気", "今日は天気です", false, true},
		{"อากาศ[MASK]มาก", "ดี", "อากาศดีมาก", false, true},
		{"he had [MASK] me", "▁told", "he had told me", false, false},
		{"he tell[MASK] me", "ing", "he telling me", true, false},
	} {
		template := check.Must(tokenizer.Template(c.text))(t)
		b := template.Blanks[0]
		if b.TouchesLeft != c.touches || b.Opens != c.opens {
			t.Errorf("%q: touches %t, opens %t", c.text, b.TouchesLeft, b.Opens)
		}
		if got := template.Fill([]int{id(c.fill)}).Text; got != c.want {
			t.Errorf("%q with %q is %q, want %q", c.text, c.fill, got, c.want)
		}
	}
	// The blank before a word is part of its token, and no token of its own.
	template := check.Must(tokenizer.Template("he had [MASK] me"))(t)
	if at := slices.Index(template.IDs, tokenizer.MaskID()); tokenizer.Token(template.IDs[at-1]) == "▁" {
		t.Errorf("a lone blank stands before the slot: %v", template.IDs)
	}
	for token, want := range map[string][2]bool{"喜欢": {true, true}, "▁told": {false, false}, "ing": {true, false},
		"天気": {true, true}} {
		if got := [2]bool{tokenizer.Continues(id(token)), tokenizer.Unspaced(id(token))}; got != want {
			t.Errorf("%q continues, is unspaced: %v, want %v", token, got, want)
		}
	}
	plain := check.Must(tokenizer.Plain("the train 我喜欢苹果"))(t)
	if words := plain.Words[len(plain.Words)-2]; words < 3 {
		t.Errorf("words %v of %q", plain.Words, plain.Tokens)
	}
	for candidate, want := range map[string]string{"told": "▁told", "喜欢": "喜欢"} {
		ids, err := tokenizer.Candidate(candidate)
		if err != nil || len(ids) != 1 || tokenizer.Token(ids[0]) != want {
			t.Errorf("candidate %q is %v, error %v", candidate, ids, err)
		}
	}
	// In WordPiece too, what touches a Chinese character is no rest of a word.
	chinese, err := tokenize.New([]string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "我", "爱", "你", "##爱"},
		tokenize.Options{})
	check.OK(t, err)
	template, err = chinese.Template("我[MASK]你")
	if err != nil || template.Blanks[0].TouchesLeft || template.Blanks[0].TouchesRight ||
		template.Fill([]int{6}).Text != "我爱你" {
		t.Errorf("%+v, error %v", template, err)
	}
}

// If the mask does not include the white space before it, the model reads that
// as a token, and the text shows what was read.
func TestMaskWithoutStripping(t *testing.T) {
	file := bytes.ReplaceAll(familyFile(t, "roberta.tokenizer.json"), []byte(`"lstrip":true`), []byte(`"lstrip":false`))
	tokenizer := check.Must(tokenize.Load(fstest.MapFS{"tokenizer.json": {Data: file}}))(t)
	id := func(token string) int {
		id, ok := tokenizer.ID(token)
		if !ok {
			t.Fatalf("no token %q", token)
		}
		return id
	}
	for _, c := range []struct {
		text, want string
		fills      []string
	}{
		{"he had [MASK] me", "he had = me", []string{"="}},
		{"he had [MASK] me", "he had  be me", []string{"Ġbe"}},
		{"he had\n[MASK] me", "he had\n= me", []string{"="}},
		{"he had\n[MASK] me", "he had\n be me", []string{"Ġbe"}},
		{"he had  [MASK] me", "he had  = me", []string{"="}},
		{" [MASK] me", " = me", []string{"="}},
		{"[MASK] me", "be me", []string{"Ġbe"}},
		{"he ([MASK]) me", "he (be) me", []string{"Ġbe"}},
		{"he had[MASK] me", "he had= me", []string{"="}},
		{"[MASK] [MASK] me", "be = me", []string{"Ġbe", "="}},
		{"[MASK][MASK] me", "be= me", []string{"Ġbe", "="}},
		{"he had [MASK:2] me", "he had = be me", []string{"=", "Ġbe"}},
	} {
		template := check.Must(tokenizer.Template(c.text))(t)
		var ids []int
		for _, token := range c.fills {
			ids = append(ids, id(token))
		}
		filled := template.Fill(ids)
		if filled.Text != c.want {
			t.Errorf("%q with %q is %q, want %q", c.text, c.fills, filled.Text, c.want)
		}
		// The model reads the same text, up to a space at the start and before brackets.
		for j, slot := range template.Slots {
			template.IDs[slot] = ids[j]
		}
		read := tokenizer.Decode(template.IDs[1 : len(template.IDs)-1])
		want := strings.TrimSpace(strings.ReplaceAll(c.want, "(", "( "))
		if strings.TrimSpace(read) != want && c.text != "[MASK][MASK] me" {
			t.Errorf("%q with %q: the model reads %q", c.text, c.fills, read)
		}
	}
}
