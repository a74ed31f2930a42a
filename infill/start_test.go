package infill

import (
	"errors"
	"strings"
	"testing"
)

// TestMaskedStart: the fake's conditionals are those of its energy, so slots that
// are drawn one by one from masks have its law already, in any order.
func TestMaskedStart(t *testing.T) {
	f, model := newFake(t)
	o := chainOptions()
	o.Fill = FillAny
	o.Chains.Initial.Kind, o.Chains.Steps, o.Samples, o.Seed = StartMask, 0, followed(20000), 6
	checkLaw(t, f, model, twoSlots, 2, o, func([]string) bool { return true })
	// Drawn independently they have not.
	o.Chains.Initial.Kind = StartModel
	o.Top, o.Chains.Candidates = 1000, 0
	mean := fill(t, f, twoSlots, o).Stats.Chains.MeanLogLikelihood
	o.Chains.Initial.Kind = StartMask
	if m := fill(t, f, twoSlots, o).Stats.Chains.MeanLogLikelihood; m < mean+0.1 {
		t.Errorf("mean U %v from masks, %v from independent draws: the slots do not see each other", m, mean)
	}
}

func TestGivenStart(t *testing.T) {
	f, _ := newFake(t)
	tests := []struct {
		template, initial string
		change            func(*asked)
		want              []string // tokens
		err               string
	}{
		{template: twoSlots, initial: "fill:Cat,mat", want: []string{"cat", "mat"}},
		{template: "the [MASK:2] and [MASK]", initial: "fill:unseen,dog", want: []string{"un", "##seen", "dog"}},
		{template: "un[MASK] and [MASK]", initial: "fill:known,dog", want: []string{"##known", "dog"}},
		{template: "the [MASK=x] and [MASK=x]", initial: "fill:cat,cat", want: []string{"cat", "cat"}},
		{template: "the [MASK:2]", initial: "fill:the cat",
			change: func(o *asked) { o.Slots = Lists{1: {"the cat", "unseen"}} },
			want:   []string{"the", "cat"}},
		{template: twoSlots, initial: "fill:cat", err: "initial: 1 fills given, the template has 2 blanks"},
		{template: twoSlots, initial: "fill:cat,", err: `initial: blank 2 cannot take "": no text`},
		{template: twoSlots, initial: "fill:cat,unseen", err: `initial: "unseen" has 2 tokens, blank 2 has 1`},
		{template: twoSlots, initial: "fill:cat,mat", change: func(o *asked) { o.Chains.Candidates = 1 },
			err: `is not among the 1 candidates of its blank: raise candidates`},
		{template: "the [MASK=x] and [MASK=x]", initial: "fill:cat,dog", err: `is not among`},
		{template: "un[MASK]", initial: "fill:cat",
			err: "initial: blank 1 cannot take \"cat\": the vocabulary has no tokens that continue a word with it"},
		{template: "the [MASK:2]", initial: "fill:unseen",
			change: func(o *asked) { o.Ban = []string{"unseen"} },
			err:    `initial: the constraints forbid "unseen"`},
	}
	for _, test := range tests {
		t.Run(test.template+" "+test.initial, func(t *testing.T) {
			o := chainOptions()
			o.Samples, o.Chains.Steps, o.Chains.Candidates = 3, 2, 0
			err := o.Chains.Initial.UnmarshalText([]byte(test.initial))
			if err != nil {
				t.Fatal(err)
			}
			if test.change != nil {
				test.change(&o)
			}
			_, err = f.Fill(t.Context(), o.request(test.template), func(p Progress) {
				if p.Step > 0 {
					return
				}
				for i, id := range p.TokenIDs {
					if got, want := f.tokenizer.Token(id), test.want[i%len(test.want)]; got != want {
						t.Errorf("slot %d starts at %s, want %s", i%len(test.want)+1, got, want)
					}
				}
			})
			var option *OptionError
			switch {
			case test.err == "" && err != nil:
				t.Error(err)
			case test.err != "" &&
				(!errors.As(err, &option) || !option.Misfit || !strings.Contains(err.Error(), test.err)):
				t.Errorf("got %v, want %q", err, test.err)
			}
		})
	}
}

// TestMaskOfUnequalSlots: chains start from masks where slots have different numbers
// of candidates.
func TestMaskOfUnequalSlots(t *testing.T) {
	f, _ := newFake(t)
	o := chainOptions()
	o.Slots = Lists{1: {"cat", "dog"}, 2: {"mat", "rug", "sat", "ran", "on"}}
	o.Chains.Sampler, o.Chains.Initial = "gibbs", Start{Kind: StartMask}
	seen := map[string]bool{}
	for _, fill := range fill(t, f, twoSlots, o).Fills {
		seen[fill.Values[1]] = true
	}
	if len(seen) < 3 {
		t.Errorf("the second blank holds %v", seen)
	}
}

// TestCostOfCandidates: chains over more candidates need more memory, and over all of
// them that of the vocabulary.
func TestCostOfCandidates(t *testing.T) {
	f, _ := newFake(t)
	bytes := func(candidates int) float64 {
		o := chainOptions()
		o.Chains.Candidates = candidates
		plan, err := f.Plan(t.Context(), o.request(twoSlots))
		if err != nil {
			t.Fatal(err)
		}
		_, most := plan.Cost()
		return most.Bytes
	}
	few, more, all := bytes(2), bytes(12), bytes(0)
	if few >= more || more >= all {
		t.Errorf("2 candidates %v bytes, 12 %v, all %v", few, more, all)
	}
}

// Half of a step is no warm-up, which a settled request says as a given 0 does.
func TestNoWarmUp(t *testing.T) {
	for _, steps := range []int{None, 1} {
		settled := Request{Method: Chains{Steps: steps}}.Settled()
		if c, _ := settled.Chains(); c.WarmUp != None {
			t.Errorf("%d steps have the warm-up %d", steps, c.WarmUp)
		}
	}
}
