package infill

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/internal/lmtest"
	"infill/tokenize"
)

// checkLaw compares the frequencies of a template's fills with the exact law over
// all combinations of fillable tokens that the oracle allows, at the options'
// temperature. The oracle sees the tokens of the slots as the vocabulary has them.
func checkLaw(t *testing.T, f *Filler, model *lmtest.Model, template string, slots int, o asked,
	allowed func(tokens []string) bool) *Result {
	t.Helper()
	target := model
	law, total := map[string]float64{}, 0.0
	ids := make([]int, slots)
	var visit func(slot int)
	visit = func(slot int) {
		if slot < slots {
			for _, id := range f.vocabulary.fillable {
				ids[slot] = id
				visit(slot + 1)
			}
			return
		}
		tokens := make([]string, slots)
		for i, id := range ids {
			tokens[i] = f.tokenizer.Token(id)
		}
		if allowed(tokens) {
			law[fmt.Sprint(ids)] = math.Exp(target.U(ids) / max(1, o.Temperature))
			total += law[fmt.Sprint(ids)]
		}
	}
	visit(0)
	o.Top, o.Chains.Candidates = 10000, 0
	result := fill(t, f, template, o)
	found, distance := 0.0, 0.0
	for _, s := range result.Fills {
		p, ok := law[fmt.Sprint(s.TokenIDs)]
		if !ok {
			t.Errorf("%v is not allowed", s.Values)
			continue
		}
		p /= total
		found += p
		distance += math.Abs(p-*s.Share) / 2
		// A fill that few chains saw has no error to speak of.
		if e := drawError(s); p > 0.005 && math.Abs(*s.Share-p) > 5*e {
			t.Errorf("%v: drawn %.4f ± %.4f, exact %.4f", s.Values, *s.Share, e, p)
		}
		if u := target.U(s.TokenIDs); math.Abs(u-s.LogLikelihood) > 1e-9 {
			t.Errorf("%v: log-likelihood %v, want %v", s.Values, s.LogLikelihood, u)
		}
	}
	distance += (1 - found) / 2
	if distance > 0.05 {
		t.Errorf("total variation %.3f from the exact law of %d fills", distance, len(law))
	}
	return result
}

// TestConstraints: every constraint, alone and together, gives the law of the
// energy on the fills that an independent judge lets pass.
func TestConstraints(t *testing.T) {
	piece := func(token string) bool { return strings.HasPrefix(token, "##") }
	// what may stand behind the letters of a word
	beside := func(token string) bool { return piece(token) || token == "." }
	tests := []struct {
		name, template string
		slots          int
		sampler        string
		constraints    asked
		allowed        func(tokens []string) bool
	}{
		{"list", "the [MASK] [MASK] .", 2, "dmala",
			asked{Slots: Lists{2: {"cat", "Dog", "cat", "rug"}}},
			func(w []string) bool { return slices.Contains([]string{"cat", "dog", "rug"}, w[1]) }},
		{"list and Gibbs", "the [MASK] [MASK] .", 2, "gibbs",
			asked{Slots: Lists{1: {"cat"}, 2: {"ran", "##seen"}}},
			func(w []string) bool { return w[0] == "cat" && (w[1] == "ran" || w[1] == "##seen") }},
		{"ban", "the [MASK] [MASK] .", 2, "gwg", asked{Ban: []string{"cat", "SAT", "zebra"}},
			func(w []string) bool { return !slices.Contains(w, "cat") && !slices.Contains(w, "sat") }},
		{"banned word of two pieces", "the [MASK:2] .", 2, "dmala", asked{Ban: []string{"unseen", "mat"}},
			func(w []string) bool {
				return !slices.Contains(w, "mat") && !(w[0] == "un" && w[1] == "##seen")
			}},
		{"whole words", "the [MASK] [MASK] .", 2, "dmala", asked{},
			func(w []string) bool { return !piece(w[0]) && !piece(w[1]) }},
		{"whole words of two pieces", "the [MASK:2] .", 2, "dmala", asked{},
			func(w []string) bool { return !piece(w[0]) }},
		{"a word goes on", "un[MASK] [MASK]", 2, "dmala", asked{}, func(w []string) bool { return beside(w[0]) }},
		{"a word goes on, whole", "un[MASK] [MASK]", 2, "gibbs", asked{},
			func(w []string) bool { return beside(w[0]) && !piece(w[1]) }},
		{"a word goes on in two pieces", "the un[MASK:2]", 2, "dmala", asked{},
			func(w []string) bool { return beside(w[0]) }},
		{"a list for a word that goes on", "un[MASK] [MASK]", 2, "dmala",
			asked{Slots: Lists{1: {"seen", "##known"}}},
			func(w []string) bool { return piece(w[0]) }},
		{"a ban in a word that goes on", "un[MASK] [MASK]", 2, "dmala", asked{Ban: []string{"seen"}},
			func(w []string) bool { return beside(w[0]) && w[0] != "##seen" && w[1] != "seen" }},
		{"a ban in a list for a word that goes on", "un[MASK] [MASK]", 2, "dmala",
			asked{Slots: Lists{1: {"seen", "known"}}, Ban: []string{"seen"}},
			func(w []string) bool { return w[0] == "##known" && w[1] != "seen" }},
		{"words of two pieces", "the [MASK:2] [MASK] .", 3, "dmala",
			asked{Slots: Lists{1: {"unseen", "unknown", "the cat", "mat rug"}}},
			func(w []string) bool {
				return slices.Contains([]string{"un##seen", "un##known", "thecat", "matrug"}, w[0]+w[1])
			}},
		{"words of two pieces by GWG", "the [MASK] [MASK] .", 3, "gwg",
			asked{Slots: Lists{1: {"unseen", "unknown", "the cat", "mat rug"}}},
			func(w []string) bool {
				return slices.Contains([]string{"un##seen", "un##known", "thecat", "matrug"}, w[0]+w[1])
			}},
		{"words and a name", "the [MASK=x] on [MASK=x] .", 4, "gwg",
			asked{Slots: Lists{2: {"unseen", "mat rug", "dog cat"}}},
			func(w []string) bool {
				return w[0] == w[2] && w[1] == w[3] &&
					slices.Contains([]string{"un##seen", "matrug", "dogcat"}, w[0]+w[1])
			}},
		{"words and limits", "the [MASK] [MASK:2] .", 3, "dmala",
			asked{Slots: Lists{1: {"cat"}, 2: {"unseen", "the cat", "mat rug"}}, Ban: []string{"mat"}},
			func(w []string) bool {
				return w[0] == "cat" && slices.Contains([]string{"un##seen", "thecat"}, w[1]+w[2])
			}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, model := newFake(t)
			o := chainOptions()
			if o.Fill = FillAny; strings.Contains(test.name, "whole") {
				o.Fill = FillTokens
			}
			o.Chains.Sampler, o.Slots, o.Ban, o.Distinct = test.sampler, test.constraints.Slots, test.constraints.Ban,
				test.constraints.Distinct
			o.Samples, o.Chains.Steps, o.Seed = followed(150), 400, 5
			checkLaw(t, f, model, test.template, test.slots, o, test.allowed)
		})
	}
}

func TestConstraintErrors(t *testing.T) {
	f, _ := newFake(t)
	one := func(words ...string) Lists { return Lists{1: words} }
	tests := []struct {
		template string
		change   func(*asked)
		want     string
		misfit   bool // others templates may do
	}{
		{twoSlots, func(o *asked) { o.Slots = Lists{-1: {"cat"}} }, `slot: "-1=cat" is not a list of all words that each blank, or that one may take`, false},
		{twoSlots, func(o *asked) { o.Slots = one("cat", "") },
			`slot: "1=cat," is not a list of all words that each blank, or that one may take`, false},
		{twoSlots, func(o *asked) { o.Ban = []string{"cat", ""} }, `ban: "cat," is not a list of words, as in red,blue`,
			false},
		{twoSlots, func(o *asked) { o.Speech = Parts{1: {"pronoun"}} },
			`pos: "1=pronoun" is not a list of noun, verb, adjective, adverb`, false},
		{twoSlots, func(o *asked) { o.Slots = Lists{3: {"cat"}} }, "slot: there is no blank 3: the template has 2",
			true},
		{twoSlots, func(o *asked) { o.Slots = one("zebra") },
			`slot: blank 1 cannot take "zebra": word outside the vocabulary`, true},
		{twoSlots, func(o *asked) { o.Slots = one("[MASK]") },
			`slot: blank 1 cannot take "[MASK]": blank in a whole text`, true},
		{"the [MASK:1]", func(o *asked) { o.Slots = one("unseen") },
			`slot: blank 1 takes no word of its list: "unseen" has 2 tokens, and the blank is [MASK:1]`, true},
		{"the [MASK:2-3]", func(o *asked) { o.Slots = one("cat") },
			`slot: blank 1 takes no word of its list: "cat" has 1 token, and the blank is [MASK:2-3]`, true},
		{"un[MASK]", func(o *asked) { o.Slots = one("cat") },
			`slot: blank 1 cannot take "cat": the vocabulary has no tokens that continue a word with it`, true},
		{twoSlots, func(o *asked) { o.Slots = one("cat"); o.Ban = []string{"cat"} },
			"slot: the other constraints leave blank 1 no word of its list", true},
		{"the [MASK~.at]", func(o *asked) { o.Slots = one("dog", "ran") },
			"slot: the other constraints leave blank 1 no word of its list", true},
		{"the [MASK=x] and un[MASK=x]", func(*asked) {},
			"slot: blanks 1 and 2 have one name, but only one of them continues a word", true},
		{"the [MASK=x] and [MASK=x]", func(o *asked) { o.Slots = Lists{1: {"cat"}, 2: {"dog"}} },
			"slot: blanks 1 and 2 have one name and different lists", true},
		{"a [MASK=x] , [MASK=x] , [MASK=x]", func(o *asked) { o.Slots = Lists{2: {"cat"}, 3: {"dog"}} },
			"slot: blanks 2 and 3 have one name and different lists", true},
		{"a [MASK=x] , [MASK=x~c.*] , [MASK=x~d.*]", func(*asked) {},
			"blanks 2 and 3 have one name and different patterns", true},
		{"the [MASK:2~.*]", func(*asked) {}, "blank 1: a pattern is for words of one token", true},
		{"the [MASK]", func(o *asked) { o.Chains.Sampler, o.Slots = "gibbs", one("unseen", "the cat") },
			"sampler: gibbs cannot move slots together, which words of several tokens need: take dmala", true},
		{"the [MASK:2]", func(o *asked) { o.Chains.Sampler, o.Ban = "mlm-mh", []string{"unseen"} },
			"sampler: mlm-mh cannot move slots together, which limits on several slots together need: take dmala",
			true},
		{"the [MASK:1-2]", func(*asked) {}, "sampler: chains move blanks of one length", true},
		{"the [MASK=x] and [MASK=x]", func(o *asked) { o.Chains.Initial = Start{Kind: StartMask} },
			"initial: mask fills slot by slot, and blanks of one name need several at once: take model or random",
			true},
	}
	for _, test := range tests {
		t.Run(test.want, func(t *testing.T) {
			o := chainOptions()
			if test.change != nil {
				test.change(&o)
			}
			_, err := f.Fill(t.Context(), o.request(test.template), nil)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			var option *OptionError
			known := errors.As(err, &option)
			var constraint *ConstraintError
			var input *tokenize.InputError
			if !known && !errors.As(err, &constraint) && !errors.As(err, &input) ||
				(!known || option.Misfit) != test.misfit {
				t.Errorf("%q: is it of this template alone? want %t", err, test.misfit)
			}
			if err := planned(t, f, test.template, o); err == nil && !strings.HasPrefix(test.want, "initial: ") {
				t.Error("Check finds nothing wrong")
			}
		})
	}
}

func TestConstraintSignature(t *testing.T) {
	f, _ := newFake(t)
	o := chainOptions()
	o.Slots, o.Ban = Lists{2: {"cat", "dog"}, 1: {"mat"}}, []string{"rug", "ran"}
	_, got, _ := strings.Cut(fill(t, f, twoSlots, o).Signature, "|seed:0|")
	got, _, _ = strings.Cut(got, "|model:")
	if diff := cmp.Diff("slot:1=mat|slot:2=cat,dog|ban:rug,ran|fill:words", got); diff != "" {
		t.Error(diff)
	}
	var long []string
	for range 100 {
		long = append(long, "cat", "dog")
	}
	o.Slots = Lists{1: long}
	if got := fill(t, f, twoSlots, o).Signature; !strings.Contains(got, "|slot:1=200 words ") {
		t.Errorf("a long list: %s", got)
	}
}

// TestRulesOfName: the words of a list are those that every blank of its name may
// take.
func TestRulesOfName(t *testing.T) {
	f, _ := newFake(t)
	for _, test := range []struct {
		template string
		o        asked
	}{
		{"the [MASK=x] and [MASK=x~d.*]", asked{Slots: Lists{1: {"cat", "dog", "sat"}}}},
		{"the [MASK=x~d.*] and [MASK=x]", asked{Slots: Lists{2: {"cat", "dog", "sat"}}}},
		{"the [MASK=x] and [MASK=x]", asked{Slots: Lists{1: {"dog", "the"}}, Speech: Parts{2: {"noun"}}}},
		{"the [MASK=x] and [MASK=x]", asked{Slots: Lists{2: {"dog", "the"}}, Speech: Parts{1: {"noun"}}}},
	} {
		r := fill(t, f, test.template, test.o)
		if len(r.Fills) != 1 || r.Fills[0].Text != "the dog and dog" {
			t.Errorf("%s: %+v", test.template, r.Fills)
		}
	}
}

// TestGibbsWithBans: a sampler that moves one slot at a time takes every ban but
// those of pieces side by side.
func TestGibbsWithBans(t *testing.T) {
	f, _ := newFake(t)
	for _, test := range []struct {
		template string
		ban      string
		refused  bool
	}{
		{"the [MASK] and [MASK]", "cat", false},
		{"the [MASK] and [MASK]", "unseen", false}, // no blank has room for it
		{"the [MASK:2] sat", "cat", false},
		{"the [MASK:2] sat", "unseen", true},
	} {
		o := chainOptions()
		o.Chains.Sampler, o.Ban, o.Fill = "gibbs", []string{test.ban}, FillAny
		r, err := f.Fill(t.Context(), o.request(test.template), nil)
		if test.refused {
			if err == nil || !strings.Contains(err.Error(), "gibbs cannot move slots together") {
				t.Errorf("%s without %s: error %v", test.template, test.ban, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s without %s: %v", test.template, test.ban, err)
			continue
		}
		for _, fill := range r.Fills {
			if slices.Contains(fill.Values, test.ban) {
				t.Errorf("%s without %s: %q", test.template, test.ban, fill.Values)
			}
		}
	}
}

// TestListsMayChange: a list that its owner changes after a fill is read again.
func TestListsMayChange(t *testing.T) {
	f, _ := newFake(t)
	words := []string{"cat", "dog"}
	for _, word := range []string{"mat", "rug"} {
		words[0] = word
		r := fill(t, f, "the [MASK] sat", asked{Slots: Lists{1: words}})
		texts := r.Fills[0].Text + r.Fills[1].Text
		if !strings.Contains(texts, word) {
			t.Errorf("%v: the fills are %s", words, texts)
		}
	}
}
