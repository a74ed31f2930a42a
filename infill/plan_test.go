package infill

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"infill/internal/object"
)

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
			plan, err := f.Plan(o.request(test.template))
			if err != nil {
				t.Fatal(err)
			}
			most, bytes := plan.Cost()
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

// TestReadRecord: options of an object come before the defaults, values have the forms of
// JSON, and what is no option is handed on.
func TestReadRecord(t *testing.T) {
	fields := func(pairs ...string) (list []object.Field) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, object.Field{Key: pairs[i], Value: object.Value(pairs[i+1])})
		}
		return list
	}
	defaults := []Given{MustGive("top", "9"), MustGive("seed", "3")}
	record, err := ReadRecord(
		fields("note", `[1]`, "template", `"a [MASK]"`, "id", `7`, "seed", `18446744073709551615`, "step_size", `0.1`,
			"top", `""`, "context", `null`, "sampler", `"gwg"`,
			"slots", `{"1":["a, b","c"],"2":"d,e"}`, "ban", `["x"]`,
			"distinct", `true`, "samples", `"3"`, "steps", `7.0`), "template")
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Request(defaults)
	if err != nil {
		t.Fatal(err)
	}
	c := r.Method.(Chains)
	if r.Template != "a [MASK]" || string(record.ID) != "7" || len(record.Extra) != 1 ||
		record.Extra[0].Key != "note" || r.Top != 9 || r.Seed != 1<<64-1 || c.StepSize != 0.1 ||
		c.Sampler.Spec.Name != "gwg" || c.Steps != 7 ||
		!slices.Equal(r.Fit.Slots[1], []string{"a, b", "c"}) || !slices.Equal(r.Fit.Slots[2], []string{"d", "e"}) ||
		!slices.Equal(r.Fit.Ban, []string{"x"}) || !bool(r.Fit.Distinct) || c.Samples != 3 {
		t.Errorf("got %+v", r)
	}
	record, err = ReadRecord(fields("id", `7`, "seed", `"x"`, "text", `"a [MASK]"`, "order", `[2,1]`), "text", "id",
		"seed")
	if err != nil {
		t.Fatal(err)
	}
	r, err = record.Request(defaults)
	if err != nil || record.ID != nil || len(record.Extra) != 2 || r.Seed != 3 || r.Method.(Search).Order != "2,1" {
		t.Errorf("kept keys: %v, %+v", err, r)
	}
	for key, value := range map[string]string{"top": `"x"`, "steps": `[3]`, "slot": `{"x":"a"}`,
		"slots": `{"1":[["a"]]}`, "ban": `[[]]`, "seed": `-1`, "fill": `{}`, "order": `["a"]`,
		"pos": `["nouns"]`, "initial": `{}`, "step_size": `[]`} {
		_, err := ReadRecord(fields("template", `"a [MASK]"`, key, value), "template")
		var option *OptionError
		if !errors.As(err, &option) || option.Option != key || !strings.Contains(err.Error(), " is not ") {
			t.Errorf("%s %s: %v", key, value, err)
		}
	}
	record, err = ReadRecord(fields("template", `"a [MASK] [MASK]"`, "pos", `{"1":["noun","verb"],"2":null}`, "slots",
		`["1=red,blue","2=\"a,b\""]`, "ban", `["red"]`), "template")
	if err != nil {
		t.Fatal(err)
	}
	r, err = record.Request(nil)
	if err != nil || !reflect.DeepEqual(r.Fit.Speech, Parts{1: {"noun", "verb"}}) ||
		!reflect.DeepEqual(r.Fit.Slots, Lists{1: {"red", "blue"}, 2: {"a,b"}}) {
		t.Errorf("lists in JSON: %+v, error %v", r.Fit, err)
	}
	for _, test := range []struct{ key, value, want string }{
		{"ban", `"\ud800"`, "ban: the value has half of a surrogate pair"},
		{"ban", "\"\xff\"", "ban: the value is not valid UTF-8"},
		{"slots", `{"1":"\"a\"\nb"}`, "a list of all words"},
		{"slots", `["1=\"a\"\nb"]`, "a list of all words"},
		{"slots", `["1=a","1=b"]`, "a list of all words"},
		{"sizes", `1`, ""},
	} {
		_, err := ReadRecord(fields("template", `"a [MASK]"`, test.key, test.value), "template")
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %s: %v, want %q", test.key, test.value, err, test.want)
		}
	}
	_, err = ReadRecord(fields("template", `"a [MASK]"`, "slot", `"1=a"`, "slots", `"1=b"`), "template")
	if err == nil || err.Error() != "slots: it is the same as slot: give one of them" {
		t.Errorf("an option twice: %v", err)
	}
	_, err = ReadRecord(fields("text", `"a [MASK]"`), "template")
	if err == nil {
		t.Error("no template, and no error")
	}
}

// TestLeastRows: a search whose budget is used up goes on to its first fill, and
// its plan tells just so many rows.
func TestLeastRows(t *testing.T) {
	for blanks := range 6 {
		f, _ := newFake(t)
		o := asked{Budget: Budget{Rows: 1}}
		plan, err := f.Plan(o.request("the" + strings.Repeat(" [MASK]", blanks+1) + " sat"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := plan.Fill(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		most, _ := plan.Cost()
		if int64(most) != r.Stats.ModelRows {
			t.Errorf("%d blanks: %d rows, and %d were told", blanks+1, r.Stats.ModelRows, most)
		}
	}
}

// TestRowsOfChains: chains may need a row of each slot for every state, the
// first included.
func TestRowsOfChains(t *testing.T) {
	f, _ := newFake(t)
	chains := newAskedChains("dmala")
	chains.Steps = 4
	plan, err := f.Plan(asked{Samples: 3, Chains: &chains}.request(twoSlots))
	if err != nil {
		t.Fatal(err)
	}
	rows, _ := plan.Cost()
	const want = 1 + 3*(4+1)*2
	if rows != want {
		t.Errorf("%d rows, want %d", rows, want)
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
	_, err = f.Plan(asked{}.request("the [MASK:2~cat.*] sat"))
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
		plan, err := f.Plan(test.o.request(test.template))
		if err != nil {
			t.Fatal(err)
		}
		likely, most := plan.Effort()
		if tokens := float64(test.tokens); likely.Tokens != test.likely*tokens || most.Tokens != test.most*tokens {
			t.Errorf("%s, %+v: %v rows of %v", test.template, test.o, likely.Tokens/tokens, most.Tokens/tokens)
		}
		if _, bytes := plan.Cost(); most.Bytes != bytes || likely.Bytes > bytes || likely.Bytes <= 0 {
			t.Errorf("%s, %+v: %v bytes of %v, Cost has %v", test.template, test.o, likely.Bytes, most.Bytes, bytes)
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
		plan, err := f.Plan(Request{Template: strings.Repeat("cat ", test.words) + "[MASK]"})
		if err != nil || (plan.TooLong() == nil) != test.whole {
			t.Errorf("%d words in %d positions: %q, error %v", test.words, model.Limit, plan.TooLong(), err)
		}
	}
}
