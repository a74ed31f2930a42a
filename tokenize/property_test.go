package tokenize_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"infill/internal/check"
	"infill/tokenize"
)

func init() { check.SameDraws() }

// sentences are of the kinds that users type; about 80 bytes each.
func sentences() []string {
	return []string{
		"The ferry left before dawn, and nobody on the quay had thought to wave.",
		"after supper he read the letter twice , folded it , and said nothing at all .",
		"\"You could have told me,\" she said; \"I'd have brought the other umbrella.\"",
		"The café's façade was naïvely repainted in 1997 by two unpaid schoolboys.",
		"Photosynthesis, counterintuitively, wastes most of the sunlight that falls on a leaf.",
	}
}

// checkEncoding checks what holds for the encoding of every text.
func checkEncoding(t rapid.TB, tokenizer *tokenize.Tokenizer, text string, e *tokenize.Encoding) {
	t.Helper()
	n := len(e.IDs)
	if n < 2 || len(e.Tokens) != n || len(e.Offsets) != n || len(e.Words) != n {
		t.Fatalf("%q: %d ids, %d tokens, %d offsets, %d words", text, n, len(e.Tokens), len(e.Offsets), len(e.Words))
	}
	if e.IDs[0] != tokenizer.ClassifierID() || e.IDs[n-1] != tokenizer.SeparatorID() || e.Words[0] != -1 ||
		e.Words[n-1] != -1 {
		t.Fatalf("%q: ends are %v and %v", text, e.Tokens[0], e.Tokens[n-1])
	}
	last, word := [2]int{}, -1
	for i := 1; i < n-1; i++ {
		if got := tokenizer.Token(e.IDs[i]); got != e.Tokens[i] || got == "" {
			t.Fatalf("%q: token %d is %q, its id is that of %q", text, i, e.Tokens[i], got)
		}
		offset := e.Offsets[i]
		if offset[0] < last[0] || offset[1] < last[1] || offset[0] >= offset[1] || offset[1] > len(text) {
			t.Fatalf("%q: offset %v after %v", text, offset, last)
		}
		if e.Words[i] != word && offset[0] < last[1] {
			t.Fatalf("%q: word at %v overlaps the one before, %v", text, offset, last)
		}
		if e.Words[i] != word && e.Words[i] != word+1 {
			t.Fatalf("%q: word %d after %d", text, e.Words[i], word)
		}
		if tokenizer.Continues(e.IDs[i]) && e.Words[i] != word {
			t.Fatalf("%q: %s starts word %d", text, e.Tokens[i], e.Words[i])
		}
		last, word = offset, e.Words[i]
	}
}

// checkFilled checks the text outside the spans against the template: the
// user's, byte for byte, but for the white space that a "##" piece drops and
// the blank between touching blanks.
func checkFilled(t rapid.TB, tokenizer *tokenize.Tokenizer, template *tokenize.Template, ids []int) {
	t.Helper()
	filled := template.Fill(ids)
	if len(filled.Fills) != len(template.Blanks) || len(filled.Spans) != len(template.Blanks) {
		t.Fatalf("%d fills, %d spans for %d blanks", len(filled.Fills), len(filled.Spans), len(template.Blanks))
	}
	typed, got := 0, 0
	for i, blank := range template.Blanks {
		span := filled.Spans[i]
		if span[0] < got || span[1] < span[0] || span[1] > len(filled.Text) {
			t.Fatalf("%q: span %v after %d", filled.Text, span, got)
		}
		if filled.Text[span[0]:span[1]] != filled.Fills[i] {
			t.Fatalf("%q: span %v holds not the fill %q", filled.Text, span, filled.Fills[i])
		}
		want, outside := template.Text[typed:blank.Start], filled.Text[got:span[0]]
		piece := blank.First+blank.Slots <= len(ids) && tokenizer.Continues(ids[blank.First])
		switch {
		case outside == want &&
			(!piece || want == strings.TrimRightFunc(want, unicode.IsSpace) || i == 0 && strings.TrimSpace(want) == ""):
		case piece && outside == strings.TrimRightFunc(want, unicode.IsSpace):
		case !piece && i > 0 && want == "" && outside == " ":
		default:
			t.Fatalf("template %q, filled %q: before blank %d stands %q, want %q", template.Text, filled.Text, i,
				outside, want)
		}
		typed, got = blank.End, span[1]
	}
	if filled.Text[got:] != template.Text[typed:] {
		t.Fatalf("template %q, filled %q: after the last blank stands %q", template.Text, filled.Text,
			filled.Text[got:])
	}
}

// checkTemplate checks what holds for every template.
func checkTemplate(t rapid.TB, tokenizer *tokenize.Tokenizer, template *tokenize.Template) {
	t.Helper()
	if len(template.Offsets) != len(template.IDs) {
		t.Fatalf("%d offsets for %d ids", len(template.Offsets), len(template.IDs))
	}
	var masked []int
	for i, id := range template.IDs {
		if id == tokenizer.MaskID() {
			masked = append(masked, i)
		}
	}
	if !reflect.DeepEqual(masked, template.Slots) {
		t.Fatalf("%q: [MASK] at %v, slots %v", template.Text, masked, template.Slots)
	}
	slots := 0
	for _, blank := range template.Blanks {
		if blank.First != slots || blank.Slots < 1 {
			t.Fatalf("%q: blank %+v, want its first slot to be %d", template.Text, blank, slots)
		}
		slots += blank.Slots
	}
	if slots != len(template.Slots) {
		t.Fatalf("%q: blanks have %d slots of %d", template.Text, slots, len(template.Slots))
	}
}

// hardPieces are the pieces that random texts consist of: everything that a
// rule of the package names.
func hardPieces() []string {
	return []string{
		" ", "  ", "\t", "\n", "\u00a0", "\u3000", "\u2028", "\u200b", "\ufeff", "\u00ad",
		"the", "The", "FERRY", "unbelievable", "he", "é", "e\u0301", "\u0301", "É", "İ", "ß", "ẞ", "Σ", "ǅ", "日", "한국",
		"か\u3099", "\U00020000", "👍\u200d",
		".", ",", "!", "?", "...", "a.m.", "\"", "'", "“", "”", "(", ")", "[", "]", "#", "##", "##s", "-", "—", "$",
		"¿", "。",
		"[MASK]", "[MASK]", "[MASK]", "[UNK]", "[mask]", "[MASK", "MASK]", "[unused0]", strings.Repeat("x", 100),
		strings.Repeat("é", 101),
	}
}

func textOf(extra ...string) *rapid.Generator[string] {
	pieces := rapid.SampledFrom(append(hardPieces(), extra...))
	return rapid.Custom(
		func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(pieces, 0, 12).Draw(t, "pieces"), "") })
}

func TestEncodeProperties(t *testing.T) { rapid.Check(t, encodes(t)) }

func FuzzEncode(f *testing.F) { fuzz(f, encodes(f)) }

// encodes checks the encodings of any text.
func encodes(t testing.TB) func(*rapid.T) {
	tokenizers := []*tokenize.Tokenizer{loadBuiltin(t), loadCased(t), newTokenizer(t, tokenize.Options{}),
		newTokenizer(t, tokenize.Options{Cased: true, KeepControls: true, JoinChinese: true})}
	texts := rapid.OneOf(textOf("[SEP]", "[CLS]", "[PAD]", "\x00", "\x1b", "\xff", "\xe4\xb8", "\ufffd"),
		rapid.String())
	return func(t *rapid.T) {
		text := texts.Draw(t, "text")
		for _, tokenizer := range tokenizers {
			encoding, err := tokenizer.Encode(text)
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			checkEncoding(t, tokenizer, text, encoding)
			tokenizer.Decode(encoding.IDs)
			if plain, err := tokenizer.Plain(text); err == nil && !reflect.DeepEqual(plain, encoding) {
				t.Fatalf("%q: Plain gives %v, Encode %v", text, plain, encoding)
			}
		}
	}
}

func TestTemplateProperties(t *testing.T) {
	accepted := 0
	rapid.Check(t, templates(t, &accepted))
	if accepted == 0 {
		t.Error("no text drawn was a template")
	}
}

func FuzzTemplate(f *testing.F) { fuzz(f, templates(f, new(int))) }

// fuzz begins with bytes enough for every draw of a property.
func fuzz(f *testing.F, property func(*rapid.T)) {
	for i := range byte(20) {
		seed := make([]byte, 4096)
		rand.NewChaCha8([32]byte{i}).Read(seed)
		f.Add(seed)
	}
	f.Fuzz(rapid.MakeFuzz(property))
}

// templates checks what any text is as a template, and counts those that are.
func templates(t testing.TB, accepted *int) func(*rapid.T) {
	tokenizers := []*tokenize.Tokenizer{newTokenizer(t, tokenize.Options{}),
		newTokenizer(t, tokenize.Options{Cased: true})}
	texts := rapid.OneOf(textOf("\x1b", "\xff", "___"),
		textOf("[MASK:2]", "[MASK:1-3]", "[MASK=x]", "[MASK=x]", "[MASK:1-2=y]", "[MASK:", "[MASK="), rapid.String())
	return func(t *rapid.T) {
		text := texts.Draw(t, "text")
		tokenizer := rapid.SampledFrom(tokenizers).Draw(t, "tokenizer")
		templates, err := expand(tokenizer, text)
		var input *tokenize.InputError
		if err != nil && (!errors.As(err, &input) || input.Offset >= max(len(text), 1) ||
			strings.ContainsAny(err.Error(), "\n\r") || !utf8.ValidString(err.Error())) {
			t.Fatalf("%q: error %q is a %T", text, err, err)
		}
		for _, template := range templates {
			*accepted++
			checkTemplate(t, tokenizer, template)
			for _, n := range []int{rapid.IntRange(0, len(template.Slots)+1).Draw(t, "n"), len(template.Slots)} {
				ids := rapid.SliceOfN(rapid.IntRange(-1, tokenizer.VocabularySize()), n, n).Draw(t, "ids")
				checkFilled(t, tokenizer, template, ids)
			}
		}
		template, err := tokenizer.Template(text)
		switch {
		case err == nil && len(templates) != 1 || err != nil && len(templates) == 1:
			t.Fatalf("%q: Template gives %v, Expand %d templates", text, err, len(templates))
		case err == nil && !strings.Contains(text, "[MASK:") && !strings.Contains(text, "[MASK=") &&
			!strings.Contains(text, "__"):
			// The model reads a template as the reference tokenizer would.
			encoding, err := tokenizer.Encode(text)
			if err != nil || !reflect.DeepEqual(encoding.IDs, template.IDs) ||
				!reflect.DeepEqual(encoding.Offsets, template.Offsets) {
				t.Fatalf("%q: Template gives %v, Encode %v, %v", text, template.IDs, encoding, err)
			}
		}
	}
}

// A fill read again gives the same text: filling with the tokens of a whole
// text restores it up to case.
func TestFillRestoresText(t *testing.T) {
	tokenizer := loadBuiltin(t)
	for _, sentence := range sentences() {
		encoding := check.Must(tokenizer.Plain(sentence))(t)
		for i := 1; i < len(encoding.IDs)-1; i++ {
			start, end := encoding.Offsets[i][0], encoding.Offsets[i][1]
			if encoding.Words[i+1] == encoding.Words[i] {
				continue // text to the right of a slot starts a word
			}
			template := check.Must(tokenizer.Template(sentence[:start] + "[MASK]" + sentence[end:]))(t)
			piece := strings.TrimPrefix(encoding.Tokens[i], "##")
			got := template.Fill([]int{encoding.IDs[i]}).Text
			if want := sentence[:start] + piece + sentence[end:]; !strings.EqualFold(got, want) {
				t.Errorf("token %d: %q, want %q up to case", i, got, want)
			}
		}
	}
}

// A million bytes are a result in Encode, and more than MaxText an error in Template.
func TestLongLine(t *testing.T) {
	tokenizer := loadBuiltin(t)
	for name, text := range map[string]string{
		"words":     strings.Repeat("The ferry left. ", 1<<16),
		"one word":  strings.Repeat("x", 1<<20),
		"brackets":  strings.Repeat("[", 1<<20),
		"slots":     strings.Repeat("[MASK]", 1<<20/6),
		"accents":   strings.Repeat("\u0301", 1<<19),
		"bad bytes": strings.Repeat("\xff", 1<<20),
		"blanks":    strings.Repeat(" ", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			encoding := check.Must(tokenizer.Encode(text))(t)
			checkEncoding(t, tokenizer, text, encoding)
			if _, err := tokenizer.Template(text + strings.Repeat(" ", 17)); !errors.Is(err, tokenize.ErrTooLong) {
				t.Errorf("Template: %v", err)
			}
		})
	}
}

// One tokenizer and one template serve many goroutines, and each sees what a
// lone caller sees. For go test -race.
func TestGoroutines(t *testing.T) {
	for _, tokenizer := range []*tokenize.Tokenizer{loadBuiltin(t), loadFamily(t, "roberta", ""),
		loadFamily(t, "albert", "")} {
		goroutines(t, tokenizer)
	}
}

func goroutines(t *testing.T, tokenizer *tokenize.Tokenizer) {
	template := check.Must(tokenizer.Template("The ferry left before [MASK:2], and [MASK] waved."))(t)
	work := func() []any {
		var results []any
		for i, sentence := range sentences() {
			encoding, err := tokenizer.Encode(sentence)
			other, otherErr := tokenizer.Template(sentence + " [MASK]")
			results = append(results, *encoding, err, other.IDs, otherErr, tokenizer.Decode(encoding.IDs),
				template.Fill([]int{20 + i, 30 + i, 40 + i}))
		}
		return append(results, len(tokenizer.Fillable()), tokenizer.SHA256())
	}
	want := work()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				if got := work(); !reflect.DeepEqual(got, want) {
					t.Errorf("got %v, want %v", got, want)
					return
				}
			}
		})
	}
	group.Wait()
}

func FuzzLoad(f *testing.F) {
	content := check.Must(os.ReadFile("testdata/reference/cased.tokenizer.json"))(f)
	f.Add("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n##s\n",
		`{"do_lower_case": false, "strip_accents": true, "mask_token": {"content": "[MASK]"}}`, string(content))
	f.Add("[PAD]\r\n[UNK]\r\n[CLS]\r\n\r\n", `{"added_tokens_decoder": {"0": {"content": "[PAD]"}}}`,
		`{"model": {"type": "WordPiece", "vocab": {"a": 7}}}`)
	f.Fuzz(func(t *testing.T, vocabulary, configuration, tokenizer string) {
		for _, bundle := range []fstest.MapFS{
			{"vocab.txt": {Data: []byte(vocabulary)}, "tokenizer_config.json": {Data: []byte(configuration)}},
			{"tokenizer.json": {Data: []byte(tokenizer)}},
		} {
			loaded, err := tokenize.Load(bundle)
			if err != nil {
				var vocabularyErr *tokenize.VocabularyError
				if !errors.As(err, &vocabularyErr) || strings.ContainsAny(err.Error(), "\n\r") {
					t.Fatalf("error %q", err)
				}
				continue
			}
			encoding := check.Must(loaded.Encode("The naïve [MASK] 日本, unbelievable"))(t)
			checkEncoding(t, loaded, "The naïve [MASK] 日本, unbelievable", encoding)
		}
	})
}

// TestOnlyMask: in a template of OnlyMask, the blanks are the model's own masks,
// and all else comes back as typed.
func TestOnlyMask(t *testing.T) {
	for family, mask := range map[string]string{"": "[MASK]", "roberta": "<mask>"} {
		tokenizer := loadBuiltin(t)
		if family != "" {
			tokenizer = loadFamily(t, family, "")
		}
		parts := []string{`\`, `\`, "[MASK]", "[MASK:2]", "[MASK=x]", "[MASK~", "[MASK", "<mask>", "___", "_", " ", "a", "cat"}
		rapid.Check(t, func(t *rapid.T) {
			text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 9).Draw(t, "text"), "") + " is " + mask
			only, err := tokenizer.OnlyMask(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			template, err := tokenizer.Template(only)
			if err != nil {
				t.Fatalf("%s as %s: %v", text, only, err)
			}
			if len(template.Blanks) != strings.Count(text, mask) {
				t.Errorf("%s as %s: blanks %v", text, template.Text, template.Blanks)
			}
			ids := make([]int, len(template.Slots))
			for i := range ids {
				ids[i] = tokenizer.MaskID()
			}
			template.KeepCase = true
			close := func(text string) string { return strings.ReplaceAll(text, " ", "") } // fills may get a space
			filled := template.Fill(ids).Text
			if close(filled) != close(text) {
				t.Errorf("%s as %s: filled %s", text, template.Text, filled)
			}
		})
	}
	only := check.Must(loadBuiltin(t).OnlyMask(`a \[SEP] [MASK]`))(t)
	if _, err := loadBuiltin(t).Template(only); err == nil {
		t.Error("a special token after a backslash, which is text in a pipeline, is taken")
	}
	for _, c := range []struct{ family, text, want string }{
		{"roberta", "a [MASK] b", `no blank in the template: "[MASK]" at byte offset 2 is not one; write <mask> ` +
			"where a word is wanted"},
		{"roberta", "a ___ b", `"___" at byte offset 2 is not one; write <mask> where`},
		{"roberta", "a b", "no blank in the template: write <mask> where"},
		{"roberta", "", "the text is empty"},
		{"", "a <mask> b", `"<mask>" at byte offset 2 is not one; write [MASK] where`},
		{"", "a [mask] b", `"[mask]" at byte offset 2 is not one; write [MASK] where`},
		{"", "a [MASK:2] b", `"[MASK:" at byte offset 2 is not one; write [MASK] where`},
		{"", "a \x00 [MASK]", "U+0000"},
	} {
		tokenizer := loadBuiltin(t)
		if c.family != "" {
			tokenizer = loadFamily(t, c.family, "")
		}
		_, err := tokenizer.OnlyMask(c.text)
		check.Says(t, err, c.want)
	}
}
