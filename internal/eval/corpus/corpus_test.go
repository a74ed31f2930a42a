package corpus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"infill/internal/check"
)

func init() { check.SameDraws() }

func read(t *testing.T, path, text string) *Corpus {
	t.Helper()
	c, err := Read("own", path, strings.NewReader(text), "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestReadForms(t *testing.T) {
	for name, c := range map[string]struct {
		path, text string
		form       Kind
		lines      int
		want       []Sentence
		skipped    []Skip
	}{
		"lines": {path: "a.txt", text: " a b . \n\n\tc d .\r\ne", form: Lines, lines: 4,
			want: []Sentence{{1, "a b ."}, {3, "c d ."}, {4, "e"}}},
		"a line with several sentences is one": {path: "a.txt", text: "It rained. It snowed.\n", form: Lines, lines: 1,
			want: []Sentence{{1, "It rained. It snowed."}}},
		"equals signs are no heading": {path: "a.txt", text: "a = b\n= b\n== c ==\n=\n= = =\n", form: Lines, lines: 5,
			want: []Sentence{{1, "a = b"}, {2, "= b"}, {3, "== c =="}, {4, "="}, {5, "= = ="}}},
		"wikitext by heading": {path: "a.txt", text: " \n = A = \n \n b c . D e . \n", form: WikiText, lines: 4,
			want: []Sentence{{4, "b c ."}, {4, "D e ."}}, skipped: []Skip{{SkipHeading, 1, 2}}},
		"heading after some lines": {path: "a.txt", text: "b c . D e .\n = A = \n", form: WikiText, lines: 2,
			want: []Sentence{{1, "b c ."}, {1, "D e ."}}, skipped: []Skip{{SkipHeading, 1, 2}}},
		"heading after many lines": {path: "a.txt", text: strings.Repeat("x\n", headingLines) + " = A = \n",
			form: Lines, lines: headingLines + 1,
			want: append(repeated("x", headingLines), Sentence{headingLines + 1, "= A ="})},
		"wikitext by name": {path: "dir/wiki.valid.tokens", text: "b . C .\n", form: WikiText, lines: 1,
			want: []Sentence{{1, "b ."}, {1, "C ."}}},
		"raw by name": {path: "dir/wiki.test.raw", text: "b . C .\n", form: WikiText, lines: 1,
			want: []Sentence{{1, "b ."}, {1, "C ."}}},
		"unusable": {path: "a.txt", text: "a\x00b\ngood one\nthe [MASK] of it\n[SEP]\ngone \ufffd bad\nan [UNK] is " +
			"fine\nesc\x1b[1m\n", form: Lines, lines: 7,
			want:    []Sentence{{2, "good one"}, {3, "the [MASK] of it"}, {4, "[SEP]"}, {6, "an [UNK] is fine"}},
			skipped: []Skip{{SkipControl, 2, 1}, {SkipReplacement, 1, 5}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := read(t, c.path, c.text)
			if got.Form != c.form || got.Lines != c.lines {
				t.Errorf("form %s, %d lines; want %s, %d", got.Form, got.Lines, c.form, c.lines)
			}
			if diff := cmp.Diff(c.want, got.Sentences); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.skipped, got.Skipped); diff != "" {
				t.Errorf("skipped (-want +got):\n%s", diff)
			}
		})
	}
}

func repeated(text string, count int) (sentences []Sentence) {
	for i := range count {
		sentences = append(sentences, Sentence{i + 1, text})
	}
	return sentences
}

func TestOpenWikiText(t *testing.T) {
	c, err := Read("wiki", "testdata/wiki.tiny.tokens", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"The keeper of the northern light was called Ansgar P. Holm .",
		"He kept a goat , two hens and a well @-@ used <unk> .",
		"He climbed the 112 steps each evening at 6 @.@ 30 .",
		`" Is the lamp lit ? " his wife would ask .`,
		`" It is lit ! "`,
		"Nobody knows how much oil the lamp burned ( some say 1 @,@ 200 litres a year . )",
		"In storms it burned all day",
		"The light went out for good in 1968 .",
	}
	if diff := cmp.Diff(want, c.Raw()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Skip{{SkipHeading, 3, 2}}, c.Skipped); diff != "" {
		t.Error(diff)
	}
	const wikiSum = "b5627c571ddb7de28daf54982d70c7c50e7aab60f241daf84d67f7260f0bfb7c" // by sha256sum
	if c.SHA256 != wikiSum {
		t.Errorf("SHA-256 %s, want %s", c.SHA256, wikiSum)
	}
}

// No word is lost or changed by cutting into sentences.
func TestSplittingLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "B", ".", "?", "!", `"`, "''", ")", "=", "é"}), 1,
			30).Draw(t, "words")
		text := strings.Join(words, " ")
		var cut []string
		splitTokens(text, func(raw string) {
			if raw == "" || raw != strings.TrimSpace(raw) {
				t.Fatalf("sentence %q", raw)
			}
			cut = append(cut, raw)
		})
		if got := strings.Join(cut, " "); got != text {
			t.Fatalf("%q became %q", text, cut)
		}
	})
}

func TestEncodings(t *testing.T) {
	if got := read(t, "a.txt", "\ufeffcafé\n"); got.Raw()[0] != "café" {
		t.Errorf("with a byte order mark: %q", got.Raw())
	}
	// A few lines of another encoding are left out and counted.
	mixed := read(t, "a.txt", strings.Repeat("good\n", 15)+"caf\xe9\n")
	if diff := cmp.Diff([]Skip{{SkipEncoding, 1, 16}}, mixed.Skipped); diff != "" || len(mixed.Sentences) != 15 {
		t.Errorf("%d sentences\n%s", len(mixed.Sentences), diff)
	}
}

func TestReadRefusesBadInput(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
	}{
		"empty":         {text: "", want: "corpus own (a.txt): the file is empty"},
		"blank":         {text: "\n \n\t\n", want: "the file is empty"},
		"only headings": {text: " = A = \n", want: "no sentence left: 1 × heading (such as line 1)"},
		"UTF-16": {text: "\xff\xfen\x00o\x00 \x00m\x00\n\x00",
			want: "1 of 2 lines are not valid UTF-8: write the file in UTF-8"},
		"UTF-16 without a mark": {text: "n\x00o\x00 \x00m\x00\n\x00",
			want: "text in UTF-16 looks so: write the file in UTF-8: iconv"},
		"mixed": {text: "a\nb\xe9\nc\nd\n", want: "1 of 4 lines are not valid UTF-8"},
	} {
		if _, err := Read("own", "a.txt", strings.NewReader(c.text), ""); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	torn := io.MultiReader(strings.NewReader("a line\n"), iotest.ErrReader(errors.New("torn")))
	if _, err := Read("own", "a.txt", torn, ""); err == nil || !strings.Contains(err.Error(), "torn") {
		t.Errorf("failing reader: %v", err)
	}
	long := strings.Repeat("word ", 1<<18)
	if c := read(t, "a.txt", long); len(c.Sentences) != 1 || len(c.Sentences[0].Raw) != len(long)-1 {
		t.Error("a line of a megabyte")
	}
}

func TestReadIsBounded(t *testing.T) {
	defer func(before int64) { largest = before }(largest)
	largest = 10
	if _, err := Read("a", "b", strings.NewReader("ten bytes."), ""); err != nil {
		t.Error(err)
	}
	if _, err := Read("a", "b", strings.NewReader("more bytes."), ""); err == nil ||
		!strings.Contains(err.Error(), "corpus a (b): more than 10 bytes") {
		t.Errorf("error %v", err)
	}
}

func TestMarkers(t *testing.T) {
	const raw = "``  he 's  @@UNKNOWN@@ , a well @-@ known <unk> '' @,@"
	for markers, want := range map[Markers]string{BertGen: `" he 's [UNK] , a well - known [UNK] " @,@`,
		DISCS: `he 's [UNK] , a well - known [UNK] @,@`} {
		tokens, replaced := markers.apply(raw)
		if got := strings.Join(tokens, " "); got != want {
			t.Errorf("%s: %q, want %q", markers, got, want)
		}
		all := map[string]int{"``": 1, "''": 1, "@@UNKNOWN@@": 1, "@-@": 1, "<unk>": 1}
		if diff := cmp.Diff(all, replaced); diff != "" {
			t.Errorf("%s: %s", markers, diff)
		}
	}
}

// The selection of a small file, written out: a change here changes every
// evaluation that users have run.
func TestSelectionIsStable(t *testing.T) {
	c, err := Read("novel", "testdata/novel.5k.txt", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Select(
		SelectOptions{Sentences: 4, MinimumTokens: 3, MaximumTokens: 13, Mask: Mask{Fraction: 0.25}, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	golden, err := os.ReadFile("testdata/selection.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(golden), string(text)+"\n"); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSelectCountsWhatItLeavesOut(t *testing.T) {
	c := read(t, "a.txt", "one\ntwo words\nthe same thing here\nthe same thing here\na . . .\n[UNK] is here\nfour "+
		"words are enough\none two three four five six\n")
	want := map[string]int{SkipShort: 1, SkipLong: 1, SkipDuplicate: 1, SkipFewWords: 1, "refused": 1}
	s, err := c.Select(
		SelectOptions{Sentences: 3, MinimumTokens: 2, MaximumTokens: 5, Mask: Mask{Count: 2}, Seed: 3,
			Check: func(template string) string {
				if strings.Contains(template, "[UNK]") {
					return "refused"
				}
				return ""
			}})
	// "two words" would be nothing but slots, so two sentences remain and the
	// error names every reason.
	want[SkipOnlySlots] = 1
	if err == nil {
		t.Fatalf("%+v", s)
	}
	for reason := range want {
		if !strings.Contains(err.Error(), "1 × "+reason) {
			t.Errorf("error lacks 1 × %s: %v", reason, err)
		}
	}
	if !strings.Contains(err.Error(), "corpus own: 2 of the 3 sentences wanted are there (of 8:") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	s, err = c.Select(
		SelectOptions{Sentences: 8 - 2, Mask: Mask{Fraction: 0.01}, Seed: 3, Check: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	total := len(s.Prompts)
	for _, skip := range s.Skipped {
		total += skip.Count
	}
	if total != s.Considered || len(s.Prompts) != 6 {
		t.Errorf("%d prompts and %+v are not the %d considered", len(s.Prompts), s.Skipped, s.Considered)
	}
}

// What Select promises of every prompt, on random texts and options.
func TestPromptsKeepTheirText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom(
			[]string{"word", "sat.", "(so", "it", "'s", ",", ".", "``", "@-@", "@@UNKNOWN@@", "“Élan”", "3rd", "—",
				"dogs'"})
		texts := rapid.SliceOfN(rapid.SliceOfN(word, 1, 12), 1, 12).Draw(t, "texts")
		c := &Corpus{Name: "own"}
		markers := rapid.SampledFrom([]Markers{BertGen, DISCS}).Draw(t, "markers")
		for i, words := range texts {
			c.Sentences = append(c.Sentences, Sentence{i + 1, strings.Join(words, " ")})
		}
		o := SelectOptions{Sentences: 1, Markers: markers, Seed: rapid.Uint64().Draw(t, "seed")}
		if rapid.Bool().Draw(t, "by fraction") {
			o.Mask.Fraction = rapid.Float64Range(0.01, 1).Draw(t, "fraction")
		} else {
			o.Mask.Count = rapid.IntRange(1, 5).Draw(t, "count")
		}
		o.Mask.Interior, o.Mask.Punctuation, o.Mask.Whole = rapid.Bool().Draw(t, "interior"),
			rapid.Bool().Draw(t, "punctuation"), rapid.Bool().Draw(t, "whole")
		if rapid.Bool().Draw(t, "short words") {
			o.Word = func(word string) bool { return len(word) <= 3 }
		}
		s, err := c.Select(o)
		if err != nil {
			t.Skip("no sentence fits")
		}
		p := s.Prompts[0]
		tokens, slots := strings.Fields(p.Text), strings.Fields(p.Template)
		if len(tokens) != len(slots) || strings.Count(p.Template, Slot) != len(p.Words) ||
			len(p.Words) != len(p.Tokens) || !slices.IsSorted(p.Tokens) {
			t.Fatalf("%+v", p)
		}
		back := p.Template
		for k, word := range p.Words {
			at := p.Tokens[k]
			if !strings.Contains(slots[at], Slot) || word == "" || strings.Contains(word, " ") {
				t.Fatalf("%+v", p)
			}
			if o.Mask.Interior && (at == 0 || at == len(tokens)-1) {
				t.Fatalf("first or last token masked: %+v", p)
			}
			if !o.Mask.Punctuation && (!strings.ContainsFunc(word, isWord) || word == "[UNK]") {
				t.Fatalf("%q masked: %+v", word, p)
			}
			if o.Word != nil && !o.Word(word) {
				t.Fatalf("%q masked, and only short words may be: %+v", word, p)
			}
			if o.Mask.Whole && slots[at] != Slot {
				t.Fatalf("part of a token masked: %+v", p)
			}
			back = strings.Replace(back, Slot, word, 1)
		}
		if back != p.Text {
			t.Fatalf("with the words put back %q, not %q", back, p.Text)
		}
		if o.Mask.Count > 0 && len(p.Words) != o.Mask.Count {
			t.Fatalf("%d slots", len(p.Words))
		}
		again, err := c.Select(o)
		if err != nil || !cmp.Equal(s, again) {
			t.Fatalf("the same again: %v\n%s", err, cmp.Diff(s, again))
		}
	})
}

func TestMaskedShare(t *testing.T) {
	for words, want := range map[int]int{2: 1, 4: 1, 5: 1, 6: 2, 8: 2, 9: 2, 10: 3, 13: 3, 14: 4, 20: 5} {
		text := strings.TrimSpace(strings.Repeat("w ", words)) + " ."
		p, reason := DLP(1, 1).prompt(text, strings.Fields(text))
		if reason != "" || len(p.Words) != want {
			t.Errorf("%d words: %d slots, want %d (%s)", words, len(p.Words), want, reason)
		}
	}
	for token, want := range map[string]string{"sat.": "sat", "(so": "so", "'s": "'s", "dogs'": "dogs'",
		"“Élan,”": "Élan", "—": "—", "...": "...", "3.5": "3.5", "e.g.": "e.g", "\"\"a": "a"} {
		if from, to := core(token); token[from:to] != want {
			t.Errorf("core of %q is %q, want %q", token, token[from:to], want)
		}
	}
}

// Every word is masked equally often, sentences are taken equally often, and
// both depend on the seed.
func TestSelectionIsUniform(t *testing.T) {
	var text strings.Builder
	for i := range 10 {
		fmt.Fprintf(&text, "s%d b c d e f g h\n", i)
	}
	c := read(t, "a.txt", text.String())
	const seeds = 4000
	var positions [8]int
	sentences := make(map[int]int)
	for seed := range uint64(seeds) {
		s, err := c.Select(SelectOptions{Sentences: 1, Mask: Mask{Fraction: 0.25}, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		sentences[s.Prompts[0].Sentence]++
		for _, k := range s.Prompts[0].Tokens {
			positions[k]++
		}
	}
	within := func(what string, count int, share float64) {
		if deviation := math.Abs(float64(count) - seeds*share); deviation > 4*math.Sqrt(seeds*share*(1-share)) {
			t.Errorf("%s: %d times of %d, want a share of %.2f", what, count, seeds, share)
		}
	}
	for k, count := range positions {
		within(fmt.Sprint("position ", k), count, 0.25)
	}
	for k := range 10 {
		within(fmt.Sprint("sentence ", k), sentences[k], 0.1)
	}
}

// More sentences, or another check, leave the masks of a sentence as they were.
func TestMasksHangOnSeedAndSentenceOnly(t *testing.T) {
	c, err := Read("novel", "testdata/novel.5k.txt", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	masks := func(o SelectOptions) map[string]string {
		s, err := c.Select(o)
		if err != nil {
			t.Fatal(err)
		}
		m := make(map[string]string)
		for _, p := range s.Prompts {
			m[p.Text] = p.Template
		}
		return m
	}
	few, many, other := masks(DLP(3, 1)), masks(DLP(6, 1)), masks(DLP(6, 2))
	different := 0
	for text, template := range few {
		if many[text] != template {
			t.Errorf("%q: %q among few, %q among many", text, template, many[text])
		}
	}
	for text, template := range many {
		if other[text] != "" && other[text] != template {
			different++
		}
	}
	if different == 0 {
		t.Error("another seed masks every sentence alike")
	}
}

func TestDISCSProtocol(t *testing.T) {
	c, err := Read("novel", "testdata/novel.5k.txt", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Select(DISCSProtocol(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	// The only sentence of 15 to 25 tokens.
	if p := s.Prompts[0]; p.Line != 7 || len(p.Tokens) != 4 || p.Tokens[0] == 0 || p.Tokens[3] == 16 ||
		strings.Count(p.Template, " [MASK] ") == 0 {
		t.Errorf("%+v", p)
	}
	if _, err := c.Select(DISCSProtocol(2, 1)); err == nil ||
		!strings.Contains(err.Error(), "1 of the 2 sentences wanted are there (of 8: 7 × too short") {
		t.Errorf("two sentences: %v", err)
	}
}

func TestSelectRefusesBadOptions(t *testing.T) {
	c := &Corpus{Name: "own", Sentences: []Sentence{{1, "a b c"}}}
	for want, o := range map[string]SelectOptions{
		"0 sentences":            {Mask: Mask{Count: 1}},
		"must not be negative":   {Sentences: 1, MinimumTokens: -1, Mask: Mask{Count: 1}},
		"at least 5 and at most": {Sentences: 1, MinimumTokens: 5, MaximumTokens: 4, Mask: Mask{Count: 1}},
		"nothing to mask":        {Sentences: 1},
		"not both":               {Sentences: 1, Mask: Mask{Count: 1, Fraction: 0.5}},
		"-1 slots":               {Sentences: 1, Mask: Mask{Count: -1}},
		"mask fraction 1.5":      {Sentences: 1, Mask: Mask{Fraction: 1.5}},
		"mask fraction -0.1":     {Sentences: 1, Mask: Mask{Fraction: -0.1}},
		"mask fraction NaN":      {Sentences: 1, Mask: Mask{Fraction: math.NaN()}},
	} {
		if _, err := c.Select(o); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "corpus own: ") {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// Any bytes are read or refused, and what is read can be masked.
func FuzzRead(f *testing.F) {
	f.Add("a.txt", []byte("b c . D e ?\n\n = A = \nf\xff\n"))
	f.Add("wiki.x.tokens", []byte("\xff\xfea\x00b\x00"))
	f.Add("x", []byte("\ufeff\x00"))
	f.Fuzz(func(t *testing.T, path string, text []byte) {
		c, err := Read("own", path, strings.NewReader(string(text)), "")
		if err != nil {
			return
		}
		for _, s := range c.Sentences {
			if s.Raw == "" || s.Line < 1 || s.Line > c.Lines {
				t.Fatalf("%+v of %d lines", s, c.Lines)
			}
		}
		if _, err := c.Select(DLP(1, 1)); err != nil && !strings.Contains(err.Error(), "sentences wanted") {
			t.Fatal(err)
		}
	})
}

// TestReadCorpus opens a missing file, and tells what is left out.
func TestReadCorpus(t *testing.T) {
	if _, err := Read("tbc", "testdata/missing.txt", nil, ""); !errors.Is(err, os.ErrNotExist) ||
		!strings.Contains(err.Error(), "corpus tbc: ") {
		t.Errorf("missing file: %v", err)
	}
	c, err := Read("own", "own.txt", strings.NewReader(" = A = \none two\nb\x01d\n"), "")
	if err != nil || len(c.Sentences) != 1 || c.Path != "own.txt" ||
		fmt.Sprint(c.LeftOut()) != "[left out: 1 × control character (such as line 3)]" {
		t.Errorf("%+v, left out %q, %v", c, c.LeftOut(), err)
	}
}

// TestSpecialTokens: a sentence with a special token is a reference, and no template.
func TestSpecialTokens(t *testing.T) {
	c := read(t, "a.txt", "the cat sat here\nthe [MASK] sat on it\n[SEP] the dog ran\n")
	o := DLP(1, 1)
	o.MinimumTokens = 1
	s, err := c.Select(o)
	if err != nil || len(s.Prompts) != 1 || len(c.Raw()) != 3 {
		t.Errorf("%+v, %v", s, err)
	}
}
