package infill

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"infill/internal/object"
)

// TestPlanAgain: a plan can be filled again, with the same result.
func TestPlanAgain(t *testing.T) {
	for name, test := range map[string]struct {
		template string
		change   func(*Options)
	}{
		"search":  {twoSlots, func(*Options) {}},
		"lengths": {"the [MASK:1-2] ran", func(*Options) {}},
		"draws":   {twoSlots, func(o *Options) { o.Samples = 3 }},
		"chains":  {twoSlots, func(o *Options) { c := DefaultChains("dmala"); o.Chains = &c }},
		"ten":     {"the" + strings.Repeat(" [MASK]", 11), func(o *Options) { o.Budget.Rows = 50 }},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newFake(t)
			o := DefaultOptions()
			test.change(&o)
			plan, err := f.Plan(Request{Template: test.template, Options: o})
			if err != nil {
				t.Fatal(err)
			}
			if plan.Slots() < strings.Count(test.template, "[MASK") || plan.MaxRows() < 1 || plan.MaxBytes(100) < 1 {
				t.Errorf("%d slots, %d rows", plan.Slots(), plan.MaxRows())
			}
			result, err := plan.Fill(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if rows := int(result.Stats.ModelRows); rows > plan.MaxRows() {
				t.Errorf("%d rows, at most %d were told", rows, plan.MaxRows())
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

// TestParseRequest: options of an object come before the defaults, values have the forms of
// JSON, and what is no option is handed on.
func TestParseRequest(t *testing.T) {
	fields := func(pairs ...string) (list []object.Field) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, object.Field{Key: pairs[i], Value: object.Value(pairs[i+1])})
		}
		return list
	}
	defaults := DefaultOptions()
	defaults.Top, defaults.Seed = 9, 3
	r, err := ParseRequest(
		fields("note", `[1]`, "template", `"a [MASK]"`, "id", `7`, "seed", `18446744073709551615`, "step_size", `0.1`,
			"top", `""`, "context", `null`, "sampler", `"gwg"`,
			"slots", `{"1":["a, b","c"],"2":"d,e"}`, "ban", `["x"]`,
			"distinct", `true`, "order", `[2,1]`, "samples", `"3"`), "template", defaults)
	if err != nil {
		t.Fatal(err)
	}
	o := r.Options
	if r.Template != "a [MASK]" || string(r.ID) != "7" || len(r.Extra) != 1 || r.Extra[0].Key != "note" || o.Top != 9 ||
		o.Seed != 1<<64-1 || o.Chains.StepSize != 0.1 || o.Chains.Sampler != "gwg" ||
		!slices.Equal(o.Slots[1], []string{"a, b", "c"}) || !slices.Equal(o.Slots[2], []string{"d", "e"}) ||
		!slices.Equal(o.Ban, []string{"x"}) || !o.Distinct || o.Order != "2,1" || o.Samples != 3 {
		t.Errorf("got %+v", r)
	}
	r, err = ParseRequest(fields("id", `7`, "seed", `"x"`, "text", `"a [MASK]"`), "text", defaults, "id", "seed")
	if err != nil || r.ID != nil || len(r.Extra) != 2 || r.Options.Seed != 3 {
		t.Errorf("kept keys: %v, %+v", err, r)
	}
	for key, value := range map[string]string{"top": `"x"`, "steps": `[3]`, "slot": `{"x":"a"}`,
		"slots": `{"1":[["a"]]}`, "ban": `[[]]`, "seed": `-1`, "fill": `{}`, "order": `["a"]`} {
		_, err := ParseRequest(fields("template", `"a [MASK]"`, key, value), "template", defaults)
		var option *OptionError
		if !errors.As(err, &option) || option.Option != key || !strings.Contains(err.Error(), " is not ") {
			t.Errorf("%s %s: %v", key, value, err)
		}
	}
}
