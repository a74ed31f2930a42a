package infill

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checkLaw compares the frequencies of a template's fills with the exact law over
// all combinations of fillable tokens that the oracle allows, at the options'
// temperature. The oracle sees the tokens of the slots as the vocabulary has them.
func checkLaw(t *testing.T, f *Filler, model *fakeModel, template string, slots int, o Options,
	allowed func(tokens []string) bool) *Result {
	t.Helper()
	target := &fakeTarget{model: model}
	law, total := map[string]float64{}, 0.0
	ids := make([]int, slots)
	var visit func(slot int)
	visit = func(slot int) {
		if slot < slots {
			for _, id := range f.fillable {
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
			law[fmt.Sprint(ids)] = math.Exp(target.energyOf(ids) / o.Temperature)
			total += law[fmt.Sprint(ids)]
		}
	}
	visit(0)
	o.Top, o.Candidates = 10000, 0
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
		distance += math.Abs(p-s.Frequency) / 2
		// A fill that few chains saw has no error to speak of.
		if e := drawError(s); p > 0.005 && math.Abs(s.Frequency-p) > 5*e {
			t.Errorf("%v: drawn %.4f ± %.4f, exact %.4f", s.Values, s.Frequency, e, p)
		}
		if u := target.energyOf(s.TokenIDs); math.Abs(u-s.LogLikelihood) > 1e-9 {
			t.Errorf("%v: log-likelihood %v, want %v", s.Values, s.LogLikelihood, u)
		}
	}
	distance += (1 - found) / 2
	if distance > 0.05 {
		t.Errorf("total variation %.3f from the exact law of %d fills", distance, len(law))
	}
	return result
}

// readable is a token without its mark.
func readable(token string) string { return strings.TrimPrefix(token, "##") }

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
		constraints    Constraints
		allowed        func(tokens []string) bool
	}{
		{"list", "the [MASK] [MASK] .", 2, "dmala",
			Constraints{Words: map[int][]string{2: {"cat", "Dog", "cat", "rug"}}},
			func(w []string) bool { return slices.Contains([]string{"cat", "dog", "rug"}, w[1]) }},
		{"list and Gibbs", "the [MASK] [MASK] .", 2, "gibbs",
			Constraints{Words: map[int][]string{1: {"cat"}, 2: {"ran", "##seen"}}},
			func(w []string) bool { return w[0] == "cat" && (w[1] == "ran" || w[1] == "##seen") }},
		{"ban", "the [MASK] [MASK] .", 2, "gwg", Constraints{Ban: []string{"cat", "SAT", "zebra"}},
			func(w []string) bool { return !slices.Contains(w, "cat") && !slices.Contains(w, "sat") }},
		{"banned word of two pieces", "the [MASK:2] .", 2, "dmala", Constraints{Ban: []string{"unseen", "mat"}},
			func(w []string) bool {
				return !slices.Contains(w, "mat") && !(w[0] == "un" && w[1] == "##seen")
			}},
		{"whole words", "the [MASK] [MASK] .", 2, "dmala", Constraints{},
			func(w []string) bool { return !piece(w[0]) && !piece(w[1]) }},
		{"whole words of two pieces", "the [MASK:2] .", 2, "dmala", Constraints{},
			func(w []string) bool { return !piece(w[0]) }},
		{"a word goes on", "un[MASK] [MASK]", 2, "dmala", Constraints{}, func(w []string) bool { return beside(w[0]) }},
		{"a word goes on, whole", "un[MASK] [MASK]", 2, "gibbs", Constraints{},
			func(w []string) bool { return beside(w[0]) && !piece(w[1]) }},
		{"a word goes on in two pieces", "the un[MASK:2]", 2, "dmala", Constraints{},
			func(w []string) bool { return beside(w[0]) }},
		{"a list for a word that goes on", "un[MASK] [MASK]", 2, "dmala",
			Constraints{Words: map[int][]string{1: {"seen", "##known"}}},
			func(w []string) bool { return piece(w[0]) }},
		{"a ban in a word that goes on", "un[MASK] [MASK]", 2, "dmala", Constraints{Ban: []string{"seen"}},
			func(w []string) bool { return beside(w[0]) && w[0] != "##seen" && w[1] != "seen" }},
		{"a ban in a list for a word that goes on", "un[MASK] [MASK]", 2, "dmala",
			Constraints{Words: map[int][]string{1: {"seen", "known"}}, Ban: []string{"seen"}},
			func(w []string) bool { return w[0] == "##known" && w[1] != "seen" }},
		{"characters", "the [MASK] [MASK] .", 2, "dmala", Constraints{MinCharacters: 2, MaxCharacters: 3},
			func(w []string) bool {
				a, b := len(readable(w[0])), len(readable(w[1]))
				return 2 <= a && a <= 3 && 2 <= b && b <= 3
			}},
		{"characters of two pieces", "the [MASK:2] .", 2, "dmala", Constraints{MinCharacters: 5, MaxCharacters: 6},
			func(w []string) bool {
				n := len(readable(w[0])) + len(readable(w[1]))
				return 5 <= n && n <= 6
			}},
		{"exact differences under limits", "the [MASK:2] .", 2, "lb-1", Constraints{MinCharacters: 7},
			func(w []string) bool { return len(readable(w[0]))+len(readable(w[1])) >= 7 }},
		{"words of two pieces", "the [MASK:2] [MASK] .", 3, "dmala",
			Constraints{Words: map[int][]string{1: {"unseen", "unknown", "the cat", "mat rug"}}},
			func(w []string) bool {
				return slices.Contains([]string{"un##seen", "un##known", "thecat", "matrug"}, w[0]+w[1])
			}},
		{"words of two pieces by GWG", "the [MASK] [MASK] .", 3, "gwg",
			Constraints{Words: map[int][]string{1: {"unseen", "unknown", "the cat", "mat rug"}}},
			func(w []string) bool {
				return slices.Contains([]string{"un##seen", "un##known", "thecat", "matrug"}, w[0]+w[1])
			}},
		{"words and a name", "the [MASK=x] on [MASK=x] .", 4, "gwg",
			Constraints{Words: map[int][]string{2: {"unseen", "mat rug", "dog cat"}}},
			func(w []string) bool {
				return w[0] == w[2] && w[1] == w[3] &&
					slices.Contains([]string{"un##seen", "matrug", "dogcat"}, w[0]+w[1])
			}},
		{"words and limits", "the [MASK] [MASK:2] .", 3, "dmala",
			Constraints{Words: map[int][]string{1: {"cat"}, 2: {"unseen", "the cat", "mat rug"}}, MaxCharacters: 6,
				Ban: []string{"mat"}},
			func(w []string) bool {
				return w[0] == "cat" && slices.Contains([]string{"un##seen", "thecat"}, w[1]+w[2])
			}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, model := newFake(t)
			o := chainOptions()
			if o.Fill = FillAny; strings.Contains(test.name, "whole") {
				o.Fill = fillTokens
			}
			o.Sampler, o.Constraints = test.sampler, test.constraints
			o.Chains, o.Steps, o.Seed = followed(150), 400, 5
			checkLaw(t, f, model, test.template, test.slots, o, test.allowed)
		})
	}
}

func TestConstraintErrors(t *testing.T) {
	f, _ := newFake(t)
	one := func(words ...string) Constraints { return Constraints{Words: map[int][]string{1: words}} }
	tests := []struct {
		template string
		change   func(*Options)
		want     string
		misfit   bool // others templates may do
	}{
		{twoSlots, func(o *Options) { o.Constraints = Constraints{Words: map[int][]string{0: {"cat"}}} },
			`slot: "0=cat" is not a blank's number and all words it may take`, false},
		{twoSlots, func(o *Options) { o.Constraints = one("cat", " ") },
			`slot: "1=cat, " is not a blank's number and all words it may take`, false},
		{twoSlots, func(o *Options) { o.Constraints = Constraints{Ban: []string{"cat", ""}} },
			`ban: "cat," is not a list of words, as in red,blue`, false},
		{twoSlots, func(o *Options) { o.Constraints = Constraints{MinCharacters: 4, MaxCharacters: 3} },
			`characters: "4-3" is not a number or a range from 1 to 65536, as in 3, 3-8, 3- or -8`, false},
		{twoSlots, func(o *Options) { o.Constraints = Constraints{MinPieces: 1, MaxPieces: 17} },
			`pieces: "1-17" is not a number or a range from 1 to 16, as in 2 or 1-3`, false},
		{twoSlots, func(o *Options) { o.Constraints = Constraints{Words: map[int][]string{3: {"cat"}}} },
			"slot: there is no blank 3: the template has 2", true},
		{twoSlots, func(o *Options) { o.Constraints = one("zebra") },
			`slot: blank 1 cannot take "zebra": word outside the vocabulary`, true},
		{twoSlots, func(o *Options) { o.Constraints = one("[MASK]") },
			`slot: blank 1 cannot take "[MASK]": blank in a whole text`, true},
		{"the [MASK:1]", func(o *Options) { o.Constraints = one("cat", "unseen") },
			`slot: blank 1 cannot take "unseen": it has 2 pieces, [MASK:1] has 1`, true},
		{"the [MASK:2-3]", func(o *Options) { o.Constraints = one("cat") },
			`slot: blank 1 cannot take "cat": it has 1 piece, [MASK:2-3] has 2-3`, true},
		{"un[MASK]", func(o *Options) { o.Constraints = one("cat") },
			`slot: blank 1 cannot take "cat": the vocabulary has no pieces that continue a word with it`, true},
		{twoSlots, func(o *Options) { o.Constraints = one("cat"); o.Ban = []string{"cat"} },
			"slot: the other constraints leave blank 1 no word of its list", true},
		{twoSlots, func(o *Options) { o.Constraints = Constraints{MinCharacters: 40} },
			"constraints: nothing is left for blank 1: loosen them", true},
		{"the [MASK:2]", func(o *Options) { o.Constraints = Constraints{MinCharacters: 40} },
			"initial: none of 1000 starts that model draws keeps to the constraints", true},
		{"the [MASK=x] and un[MASK=x]", nil,
			"slot: blanks 1 and 2 have one name, but only one of them continues a word", true},
		{"the [MASK=x] and [MASK=x]", func(o *Options) {
			o.Constraints = Constraints{Words: map[int][]string{1: {"cat"}, 2: {"dog"}}}
		}, "slot: blanks 1 and 2 have one name and different lists", true},
		{"the [MASK]", func(o *Options) { o.Sampler, o.Constraints = "gibbs", one("unseen", "the cat") },
			"sampler: gibbs cannot move slots together, which words of several pieces need: take dmala", true},
		{"the [MASK:2]", func(o *Options) { o.Sampler, o.Constraints = "mlm-mh", Constraints{MinCharacters: 4} },
			"sampler: mlm-mh cannot move slots together, which limits on several slots together need: take dmala",
			true},
		{"the [MASK=x] and [MASK=x]", func(o *Options) { o.Mode, o.Sampler = ModeDecode, Auto },
			"mode: decode fills slot by slot, and blanks of one name need several at once: take sample or best", true},
		{"the [MASK=x] and [MASK=x]", func(o *Options) { o.Initial = Start{Kind: StartMask} },
			"initial: mask fills slot by slot, and blanks of one name need several at once: take model or random",
			true},
	}
	for _, test := range tests {
		t.Run(test.want, func(t *testing.T) {
			o := chainOptions()
			if test.change != nil {
				test.change(&o)
			}
			_, err := f.Fill(t.Context(), test.template, o, nil)
			var option *OptionError
			if !errors.As(err, &option) || !strings.Contains(err.Error(), test.want) ||
				strings.Contains(err.Error(), "\n") {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if option.Misfit != test.misfit {
				t.Errorf("%q: is it of this template alone? want %t", err, test.misfit)
			}
			if err := check(f, test.template, o); err == nil && option.Option != "initial" {
				t.Error("Check finds nothing wrong")
			}
		})
	}
}

func TestConstraintSignature(t *testing.T) {
	f, _ := newFake(t)
	o := chainOptions()
	o.Constraints = Constraints{
		Words: map[int][]string{2: {"cat", "dog"}, 1: {"mat"}}, Ban: []string{"rug", "ran"}, MinCharacters: 2,
		MinPieces: 1, MaxPieces: 1,
	}
	_, got, _ := strings.Cut(fill(t, f, twoSlots, o).Signature, "|seed:0|")
	got, _, _ = strings.Cut(got, "|model:")
	if diff := cmp.Diff("slot:1=mat|slot:2=cat,dog|ban:rug,ran|fill:words|characters:2-|pieces:1", got); diff != "" {
		t.Error(diff)
	}
}

// TestPinnedWords: a pinned piece keeps the words that have it.
func TestPinnedWords(t *testing.T) {
	f, _ := newFake(t)
	id := func(token string) int { id, _ := f.tokenizer.ID(token); return id }
	o := chainOptions()
	o.Constraints = Constraints{Words: map[int][]string{1: {"unseen", "unknown", "the cat"}}}
	o.Pins = []int{id("un"), Free, Free}
	_, err := f.Fill(t.Context(), "a [MASK:2] [MASK]", o, func(p Progress) {
		for at := 0; at < len(p.TokenIDs); at += 3 {
			if w := p.TokenIDs[at : at+2]; !slices.Equal(w, []int{id("un"), id("##seen")}) &&
				!slices.Equal(w, []int{id("un"), id("##known")}) {
				t.Fatalf("step %d: the pinned blank holds %v", p.Step, w)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Pins = []int{id("cat"), Free, Free}
	if _, err = f.Fill(t.Context(), "a [MASK:2] [MASK]", o, nil); err == nil ||
		!strings.Contains(err.Error(), "nothing is left for blank 1") {
		t.Errorf("got %v", err)
	}
	o = chainOptions()
	o.Pins = []int{id("cat"), Free}
	if _, err = f.Fill(t.Context(), "a [MASK:1-2] [MASK]", o, nil); err == nil ||
		!strings.Contains(err.Error(), "pins: the template has 2 combinations of lengths") {
		t.Errorf("got %v", err)
	}
}
