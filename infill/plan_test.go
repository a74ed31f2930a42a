package infill

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"infill/tokenize"
)

// TestReads: a template is read once for one fill, and a further text once; of a long text
// the whole, the part of each window, and the whole again with the fills of the windows before.
func TestReads(t *testing.T) {
	filler := strings.Repeat("the cat sat on the mat. ", 8)
	for name, test := range map[string]struct {
		template string
		change   func(*Options)
		want     int
	}{
		"search":         {twoSlots, func(*Options) {}, 1},
		"a word":         {"the [MASK] ran", func(*Options) {}, 1},
		"lengths":        {"the [MASK:1-2] ran", func(*Options) {}, 1},
		"draws":          {twoSlots, func(o *Options) { o.Chains = 3 }, 1},
		"weighted draws": {twoSlots, func(o *Options) { o.Joint = JointPLL }, 1},
		"chains":         {twoSlots, func(o *Options) { o.Sampler = "dmala" }, 1},
		"together":       {"the [MASK] sat", func(o *Options) { o.Together = []string{"the [MASK] ran"} }, 2},
		"ten":            {"the" + strings.Repeat(" [MASK]", 11), func(o *Options) { o.Budget.Rows = 50 }, 1},
		"a window":       {filler + "the dog [MASK] on the mat.", func(*Options) {}, 2},
		"windows": {"the [MASK] ran. " + filler + "the [MASK] sat. " + filler + "the [MASK]", func(*Options) {},
			1 + 1 + 2 + 2},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newFake(t)
			read, reads := f.read, 0
			f.read = func(text string) (*tokenize.Template, error) {
				reads++
				return read(text)
			}
			o := DefaultOptions()
			test.change(&o)
			plan, err := f.Plan(Request{Template: test.template, Options: o})
			if err != nil {
				t.Fatal(err)
			}
			if plan.Slots() < strings.Count(test.template, "[MASK") || plan.MaxRows() < 1 {
				t.Errorf("%d slots, %d rows", plan.Slots(), plan.MaxRows())
			}
			result, err := plan.Fill(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if reads != test.want {
				t.Errorf("texts were read %d times, want %d", reads, test.want)
			}
			// A plan can be filled again.
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
	fields := func(pairs ...string) (list []Field) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, Field{Key: pairs[i], Value: json.RawMessage(pairs[i+1])})
		}
		return list
	}
	defaults := DefaultOptions()
	defaults.Top, defaults.Seed = 9, 3
	r, err := ParseRequest(
		fields("note", `[1]`, "template", `"a [MASK]"`, "id", `7`, "seed", `18446744073709551615`, "step_size", `0.1`,
			"top", `""`, "window", `null`,
			"slots", `{"1":["a, b","c"],"2":"d,e"}`, "ban", `["x"]`, "together", `["b [MASK]"]`, "ladder", `[1,2]`,
			"distinct", `true`, "order", `[2,1]`, "samples", `"3"`), "template", defaults)
	if err != nil {
		t.Fatal(err)
	}
	o := r.Options
	if r.Template != "a [MASK]" || string(r.ID) != "7" || len(r.Extra) != 1 || r.Extra[0].Key != "note" || o.Top != 9 ||
		o.Seed != 1<<64-1 || o.StepSize != 0.1 ||
		!slices.Equal(o.Words[1], []string{"a, b", "c"}) || !slices.Equal(o.Words[2], []string{"d", "e"}) ||
		!slices.Equal(o.Ban, []string{"x"}) ||
		len(o.Together) != 1 || !slices.Equal(o.Ladder, []float64{1, 2}) || !o.Distinct || o.Order != "2,1" ||
		o.Chains != 3 {
		t.Errorf("got %+v", r)
	}
	r, err = ParseRequest(fields("id", `7`, "seed", `"x"`, "text", `"a [MASK]"`), "text", defaults, "id", "seed")
	if err != nil || r.ID != nil || len(r.Extra) != 2 || r.Options.Seed != 3 {
		t.Errorf("kept keys: %v, %+v", err, r)
	}
	for key, value := range map[string]string{"top": `"x"`, "steps": `[3]`, "slot": `{"0":"a"}`,
		"slots": `{"1":[["a"]]}`, "ban": `[[]]`, "seed": `-1`, "mode": `{}`, "ladder": `["a"]`} {
		_, err := ParseRequest(fields("template", `"a [MASK]"`, key, value), "template", defaults)
		var option *OptionError
		if !errors.As(err, &option) || option.Option != key || !strings.Contains(option.Reason, "is not ") {
			t.Errorf("%s %s: %v", key, value, err)
		}
	}
	for _, pairs := range [][]string{{"top", "3"}, {"template", "7"}, {"template", "null"}} {
		if _, err := ParseRequest(fields(pairs...), "template", defaults); err == nil ||
			!strings.Contains(err.Error(), `write {"template": "..."}`) {
			t.Errorf("%v: %v", pairs, err)
		}
	}
}
