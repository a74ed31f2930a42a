package infill

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/internal/lmtest"
)

// TestRather: a warning names what the model would rather put into a blank, if
// the option fill alone keeps it out, and how to take it.
func TestRather(t *testing.T) {
	for _, test := range []struct {
		name, template string
		p              map[string]float64 // the others share the rest
		o              asked
		want           string // "" for no warning
	}{
		{"a sign", "the [MASK]", map[string]float64{".": 0.6}, asked{},
			`the model would rather put "." here (60 %): end the sentence, or take fill=tokens`},
		{"of two blanks", "the [MASK] [MASK]", map[string]float64{".": 0.6}, asked{},
			`rather put "." in blank 2 (60 %)`},
		{"a half and more is taken", "the [MASK]", map[string]float64{".": 0.45, "cat": 0.54}, asked{}, ""},
		{"a little less", "the [MASK]", map[string]float64{".": 0.55, "cat": 0.44}, asked{}, `rather put "."`},
		{"a tenth", "the [MASK]", map[string]float64{".": 0.1001, "[PAD]": 0.09, "[UNK]": 0.09, "[CLS]": 0.09,
			"[SEP]": 0.09, "[MASK]": 0.09, "[unused0]": 0.09, "##seen": 0.09, "##known": 0.09}, asked{},
			`rather put "."`},
		{"less than a tenth", "the [MASK]", map[string]float64{".": 0.0999, "[PAD]": 0.09, "[UNK]": 0.09, "[CLS]": 0.09,
			"[SEP]": 0.09, "[MASK]": 0.09, "[unused0]": 0.09, "##seen": 0.09, "##known": 0.09}, asked{}, ""},
		{"the likeliest, last", "the [MASK]", map[string]float64{".": 0.35, "##seen": 0.3}, asked{}, `rather put "."`},
		{"the likeliest, first", "the [MASK]", map[string]float64{".": 0.3, "##seen": 0.35}, asked{},
			`rather put "##seen" here (35 %): write the blank onto the word that it goes on with, or take fill=any`},
		{"a comma", "the [MASK]", map[string]float64{",": 0.6}, asked{},
			`rather put "," here (60 %): fill=tokens takes it`},
		{"the first token", "the [MASK]", map[string]float64{".": 0.3, "[PAD]": 0.35}, asked{},
			`rather put "[PAD]" here`},
		{"equal ones", "the [MASK]", map[string]float64{".": 0.3, "##seen": 0.3}, asked{}, `rather put "##seen"`},
		{"a word behind letters", "un[MASK] sat", map[string]float64{"cat": 0.6}, asked{},
			`rather put "cat" here (60 %): write a blank after the word on its left, or take fill=any`},
		{"signs are taken", "the [MASK]", map[string]float64{".": 0.6}, asked{Fill: FillTokens}, ""},
		{"all is taken", "the [MASK]", map[string]float64{"##seen": 0.6}, asked{Fill: FillAny}, ""},
		{"a banned word", "the [MASK]", map[string]float64{"cat": 0.6}, asked{Ban: Words{"cat"}}, ""},
		{"a list", "the [MASK]", map[string]float64{".": 0.6}, asked{Slots: Lists{1: {"cat", "dog"}}}, ""},
		{"a pattern", "the [MASK~.a.]", map[string]float64{".": 0.6}, asked{}, ""},
	} {
		words := append(fakeWords(), ",")
		tokenizer, err := lmtest.Tokenizer(words)
		if err != nil {
			t.Fatal(err)
		}
		model := lmtest.New(len(words), 16)
		model.Bond = 0
		f := New(model, tokenizer)
		rest := 1.0
		for _, p := range test.p {
			rest -= p
		}
		model.Weight = func(token int) float64 {
			p, given := test.p[words[token]]
			if !given {
				p = rest / float64(len(words)-len(test.p))
			}
			return math.Log(p)
		}
		o := test.o
		o.Top = 1
		got := strings.Join(slices.DeleteFunc(fill(t, f, test.template, o).Warnings,
			func(w string) bool { return !strings.Contains(w, "rather") }), "\n")
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestBesideBlanks: a warning says how a blank that touches letters becomes a
// whole word.
func TestBesideBlanks(t *testing.T) {
	f, _ := newFake(t)
	for _, test := range []struct{ template, want string }{
		{"the [MASK]seen sat",
			`"[MASK]seen" is read as a word with the text "seen" behind it: [MASK~.*seen] asks for one`},
		{"the un[MASK]seen sat",
			`"un[MASK]seen" is read as a word with the text "seen" behind it: [MASK~un.*seen] asks`},
		{"the s[MASK] on", `"s[MASK]" takes only tokens that go on with "s": [MASK~s.*] takes the words that the ` +
			`vocabulary has as one token (2)`}, // sat and seen
		{"the un[MASK] on", ""}, // no other word begins so
		{"the [MASK] on", ""},
		{"the [MASK]. on", ""},
		{"the [MASK~.*n]", ""},
	} {
		got := strings.Join(slices.DeleteFunc(fill(t, f, test.template, asked{Top: 1}).Warnings,
			func(w string) bool { return !strings.HasPrefix(w, `"`) }), "\n")
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", test.template, got, test.want)
		}
	}
}

// TestSmallLetters: a warning says that a pattern's capitals count as small
// letters, where only that lets a word match it.
func TestSmallLetters(t *testing.T) {
	f, _ := newFake(t)
	const said = " they count as small letters"
	for _, test := range []struct {
		template string
		o        asked
		want     string
	}{
		{"the [MASK~[A-Z][a-z]+] sat", asked{}, "no word of this model has capitals, so in [MASK~[A-Z][a-z]+]" + said},
		{"the [MASK~Cat] sat", asked{}, "in [MASK~Cat]" + said},
		{"the [MASK~Cat|dog] sat", asked{}, ""},
		{"the [MASK~\\S+] sat", asked{}, ""},
		{"the [MASK~\\p{Lu}.*] sat", asked{}, "in [MASK~\\p{Lu}.*]" + said},
		{"the [MASK~(?i)CAT] sat", asked{}, ""},
		{"the [MASK~c.t] sat", asked{}, ""},
		{"[MASK~[A-Z][a-z]+] sat", asked{}, ""},
		{"the cat sat. [MASK~[A-Z][a-z]+] sat", asked{}, ""},
		{"the [MASK~[A-Z][a-z]+] sat", asked{Slots: Lists{1: {"Cat", "Dog"}}}, ""},
	} {
		test.o.Top = 1
		got := strings.Join(slices.DeleteFunc(fill(t, f, test.template, test.o).Warnings,
			func(w string) bool { return !strings.Contains(w, "capitals") }), "\n")
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", test.template, got, test.want)
		}
	}
}

// TestOneListedWord: a list of one word of several pieces gets a warning, unless
// the blank has a length.
func TestOneListedWord(t *testing.T) {
	f, _ := newFake(t)
	const said = `"unseen" has 2 tokens in blank 1: its probability does not compare with that of a word of one token`
	for _, test := range []struct {
		template string
		list     []string
		want     string
	}{
		{"the [MASK] sat", []string{"unseen"}, said},
		{"the [MASK:2] sat", []string{"unseen"}, ""},
		{"the [MASK:1-2] sat", []string{"unseen"}, ""},
		{"the [MASK] sat", []string{"unseen", "cat"}, ""},
		{"the [MASK] sat", []string{"cat"}, ""},
	} {
		o := asked{Top: 1, Slots: Lists{1: test.list}}
		got := strings.Join(slices.DeleteFunc(fill(t, f, test.template, o).Warnings,
			func(w string) bool { return !strings.Contains(w, "compare") }), "\n")
		if got != test.want {
			t.Errorf("%s of %q: %q, want %q", test.template, test.list, got, test.want)
		}
	}
}

// TestStuckWarmUp: chains of which all steps are warm-up are not told that no
// slot changed after it.
func TestStuckWarmUp(t *testing.T) {
	f, _ := newFake(t)
	for warmUp, stuck := range map[int]bool{4: true, 5: false} {
		c := newAskedChains("gibbs")
		c.Candidates = 1
		c.Steps = 5
		c.WarmUp = warmUp
		w := strings.Join(fill(t, f, twoSlots, asked{Chains: &c, Samples: 2, Top: 1}).Warnings, "\n")
		if strings.Contains(w, "no slot changed after the warm-up") != stuck {
			t.Errorf("%d of 5 steps are warm-up: %q", warmUp, w)
		}
	}
}

// TestSpellingsOfPieces: a word of a part of speech is spelled by any pieces of
// the vocabulary, also by single letters.
func TestSpellingsOfPieces(t *testing.T) {
	words := append(fakeWords(), "c", "##a", "##t", "##at", "m", "d", "##o", "##g")
	tokenizer, err := lmtest.Tokenizer(words)
	if err != nil {
		t.Fatal(err)
	}
	f := New(lmtest.New(len(words), 16), tokenizer)
	for pieces, want := range map[string][]string{
		"[MASK:2]": {"c ##at", "m ##at"},
		"[MASK:3]": {"c ##a ##t", "d ##o ##g", "m ##a ##t"},
	} {
		r := fill(t, f, "the "+pieces+" sat .", asked{Speech: Parts{1: {"noun"}}, Top: 50})
		var got []string
		for _, fill := range r.Fills {
			var tokens []string
			for _, id := range fill.TokenIDs {
				tokens = append(tokens, words[id])
			}
			got = append(got, strings.Join(tokens, " "))
		}
		for _, spelled := range want {
			if !slices.Contains(got, spelled) {
				t.Errorf("%s: %q is not among %q", pieces, spelled, got)
			}
		}
	}
}

// TestTerse: a terse plan has the same fills, and nothing that only people read.
func TestTerse(t *testing.T) {
	f, _ := newFake(t)
	plan, err := f.Plan(t.Context(), Request{Template: "zebra un[MASK] ."})
	if err != nil {
		t.Fatal(err)
	}
	var results [2]*Result
	for i, terse := range []bool{false, true} {
		plan.Terse = terse
		results[i], err = plan.Fill(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	whole, bare := results[0], results[1]
	if whole.Signature == "" || len(whole.Warnings) == 0 {
		t.Errorf("by default: signature %q, warnings %q", whole.Signature, whole.Warnings)
	}
	if bare.Signature != "" || len(bare.Warnings) > 0 || bare.Warnings == nil {
		t.Errorf("terse: signature %q, warnings %q", bare.Signature, bare.Warnings)
	}
	if diff := cmp.Diff(whole.Fills, bare.Fills); diff != "" {
		t.Error(diff)
	}
}
