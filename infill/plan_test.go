package infill

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestPlanContext: who ends the context reads no list of words to its end.
func TestPlanContext(t *testing.T) {
	f, _ := newFake(t)
	words := strings.Split(strings.Repeat("cat dog ", 1000), " ")[:2000]
	for name, fit := range map[string]Fit{"list": {Slots: Lists{1: words}}, "bans": {Ban: words}} {
		r := Request{Template: "the [MASK] sat", Fit: fit}
		ctx := &countdown{Context: t.Context(), left: 10}
		_, err := f.Plan(ctx, r)
		if err != context.Canceled {
			t.Errorf("%s: error %v", name, err)
		}
		_, err = f.Plan(&countdown{Context: t.Context(), left: 10 * len(words)}, r)
		if name == "list" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// countdown is a context that ends when it has been looked at so often.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	c.left--
	if c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestContextBytes: a context that must have too many tokens is not read.
func TestContextBytes(t *testing.T) {
	f, m := newFake(t)
	fits := strings.Repeat(" ", 64*m.Limit/2-3) + "cat"
	_, err := f.Plan(t.Context(), Request{Template: "the [MASK] sat", Context: fits})
	if err != nil {
		t.Error(err)
	}
	_, err = f.Plan(t.Context(), Request{Template: "the [MASK] sat", Context: " " + fits})
	if err == nil || !strings.Contains(err.Error(), "bytes are more than") {
		t.Errorf("a byte more: %v", err)
	}
}

// TestLongSpelling: a further spelling of a blank has a bound.
func TestLongSpelling(t *testing.T) {
	f, _ := newFake(t)
	spelling := strings.Repeat("x", 64)
	_, err := f.Plan(t.Context(), Request{Template: "the " + spelling + " sat", Blank: spelling})
	if err != nil {
		t.Error(err)
	}
	_, err = f.Plan(t.Context(), Request{Template: "the " + spelling + "x sat", Blank: spelling + "x"})
	if err == nil || !strings.Contains(err.Error(), "blank: 65 bytes, and a spelling of a blank has 64 at most") {
		t.Errorf("a byte more: %v", err)
	}
}

// TestPlanAgain: a plan can be filled again, with the same result.
func TestPlanAgain(t *testing.T) {
	for name, test := range map[string]struct {
		template string
		change   func(*asked)
	}{
		"search":  {twoSlots, func(*asked) {}},
		"lengths": {"the [MASK:1-2] ran", func(*asked) {}},
		"draws":   {twoSlots, func(o *asked) { o.Samples = 3 }},
		"chains":  {twoSlots, func(o *asked) { c := newAskedChains("dmala"); o.Chains = &c }},
		"ten":     {"the" + strings.Repeat(" [MASK]", 11), func(o *asked) { o.Budget.Rows = 50 }},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newFake(t)
			o := asked{}
			test.change(&o)
			plan, err := f.Plan(t.Context(), o.request(test.template))
			if err != nil {
				t.Fatal(err)
			}
			_, cost := plan.Cost()
			most, bytes := cost.Rows, cost.Bytes
			if plan.Slots() < strings.Count(test.template, "[MASK") || most < 1 || bytes < 1 {
				t.Errorf("%d slots, %d rows, %v bytes", plan.Slots(), most, bytes)
			}
			result, err := plan.Fill(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if rows := int(result.Stats.ModelRows); rows > most {
				t.Errorf("%d rows, at most %d were told", rows, most)
			}
			again, err := plan.Fill(t.Context(), nil)
			if err != nil ||
				!slices.EqualFunc(result.Fills, again.Fills,
					func(a, b Fill) bool { return a.Text == b.Text && a.LogLikelihood == b.LogLikelihood }) {
				t.Errorf("%v, or other fills the second time", err)
			}
		})
	}
}

// TestLeastRows: a search whose budget is used up goes on to its first fill, and
// its plan tells just so many rows.
func TestLeastRows(t *testing.T) {
	for blanks := range 6 {
		f, _ := newFake(t)
		o := asked{Budget: Budget{Rows: 1}}
		plan, err := f.Plan(t.Context(), o.request("the"+strings.Repeat(" [MASK]", blanks+1)+" sat"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := plan.Fill(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, most := plan.Cost()
		if int64(most.Rows) != r.Stats.ModelRows {
			t.Errorf("%d blanks: %d rows, and %d were told", blanks+1, r.Stats.ModelRows, most.Rows)
		}
	}
}

// TestRowsOfChains: chains may need a row of each slot for every state, the
// first included.
func TestRowsOfChains(t *testing.T) {
	f, _ := newFake(t)
	chains := newAskedChains("dmala")
	chains.Steps = 4
	plan, err := f.Plan(t.Context(), asked{Samples: 3, Chains: &chains}.request(twoSlots))
	if err != nil {
		t.Fatal(err)
	}
	_, most := plan.Cost()
	const want = 1 + 3*(4+1)*2
	if most.Rows != want {
		t.Errorf("%d rows, want %d", most.Rows, want)
	}
}

// TestEntropyExp compares with math.Exp, from certain to impossible tokens.
func TestEntropyExp(t *testing.T) {
	stream := rand.New(rand.NewPCG(1, 9))
	for _, scale := range []float64{0, 0.1, 1, 10, 100, 1000} {
		logp := make([]float32, 500)
		want := 0.0
		for i := range logp {
			logp[i] = float32(-scale * stream.ExpFloat64())
			x := float64(logp[i])
			want -= math.Exp(x) * x / math.Ln2
		}
		logp = append(logp, float32(math.Inf(-1)), float32(math.NaN()))
		got := entropy(logp)
		if math.Abs(got-want) > 1e-10*want {
			t.Errorf("scale %v: %v bits, want %v", scale, got, want)
		}
	}
}

// TestPatternOfList: a blank with a length may have a pattern if it has a list.
func TestPatternOfList(t *testing.T) {
	f, _ := newFake(t)
	o := asked{Slots: Lists{1: {"cat dog", "dog cat"}}}
	result, err := f.Fill(t.Context(), o.request("the [MASK:2~cat.*] sat"), nil)
	if err != nil || len(result.Fills) != 1 || result.Fills[0].Values[0] != "cat dog" {
		t.Errorf("%+v, %v", result, err)
	}
	_, err = f.Plan(t.Context(), asked{}.request("the [MASK:2~cat.*] sat"))
	var constraint *ConstraintError
	if !errors.As(err, &constraint) {
		t.Errorf("without a list: %v", err)
	}
}

// TestEffort: the rows that are likely are the means of docs/measured/proofs.md,
// at most those that the budget allows. A row has the tokens of the longest text.
func TestEffort(t *testing.T) {
	f, _ := newFake(t)
	list := Lists{1: {"cat", "dog"}}
	for _, test := range []struct {
		template     string
		o            asked
		likely, most float64 // rows
		tokens       int
	}{
		{"the [MASK] sat", asked{Budget: Budget{Rows: 9}}, 1, 1, 5},
		{"the [MASK] [MASK]", asked{Budget: Budget{Rows: 2000}}, 11, 2000, 5},
		{"the [MASK] [MASK] [MASK]", asked{Budget: Budget{Rows: 2000}}, 57, 2000, 6},
		{"the [MASK] [MASK] [MASK] [MASK]", asked{Budget: Budget{Rows: 2000}}, 280, 2000, 7},
		{"the [MASK] [MASK] [MASK] [MASK] [MASK]", asked{Budget: Budget{Rows: 2000}}, 490, 2000, 8},
		{"the [MASK] [MASK]", asked{Budget: Budget{Rows: 7}}, 7, 7, 5},
		{"the [MASK] [MASK]", asked{Budget: Budget{Seconds: 2}}, 0, 0, 5},
		{"the [MASK:1-3]", asked{Budget: Budget{Rows: 2000}}, 57 + 2, 2000, 6},
		{"the [MASK=x] [MASK=x]", asked{Budget: Budget{Rows: 2000}, Slots: list}, 2 + 1, 2000, 5},
		{"the [MASK] sat", asked{Samples: 5}, 1, 1, 5},
		{"the [MASK] [MASK] [MASK]", asked{Samples: 5, Budget: Budget{Rows: 2000}}, 1 + 5*2, 2000, 6},
		{"the [MASK] [MASK] [MASK]", asked{Samples: 5, Budget: Budget{Rows: 6}}, 6, 6, 6},
	} {
		plan, err := f.Plan(t.Context(), test.o.request(test.template))
		if err != nil {
			t.Fatal(err)
		}
		likely, most := plan.Cost()
		if tokens := float64(test.tokens); likely.Tokens != test.likely*tokens || most.Tokens != test.most*tokens {
			t.Errorf("%s, %+v: %v rows of %v", test.template, test.o, likely.Tokens/tokens, most.Tokens/tokens)
		}
		if likely.Bytes > most.Bytes || likely.Bytes <= 0 {
			t.Errorf("%s, %+v: %v bytes of %v", test.template, test.o, likely.Bytes, most.Bytes)
		}
	}
}

// TestWholeText: a plan knows whether the model sees all of its text.
func TestWholeText(t *testing.T) {
	f, model := newFake(t)
	for _, test := range []struct {
		words int
		whole bool
	}{{model.Limit - 3, true}, {model.Limit - 2, false}} {
		plan, err := f.Plan(t.Context(), Request{Template: strings.Repeat("cat ", test.words) + "[MASK]"})
		if err != nil || (plan.TooLong() == nil) != test.whole {
			t.Errorf("%d words in %d positions: %q, error %v", test.words, model.Limit, plan.TooLong(), err)
		}
	}
}
