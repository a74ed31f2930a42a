package ask

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"infill/infill"
	"infill/internal/rawjson"
)

// TestReadRecord: options of an object come before the defaults, values have the forms of
// JSON, and what is no option is handed on.
func TestReadRecord(t *testing.T) {
	fields := func(pairs ...string) (list []rawjson.Field) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, rawjson.Field{Key: pairs[i], Value: rawjson.Value(pairs[i+1])})
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
	c := r.Method.(infill.Chains)
	if r.Template != "a [MASK]" || string(record.ID) != "7" || len(record.Extra) != 1 ||
		record.Extra[0].Key != "note" || r.Top != 9 || r.Seed != 1<<64-1 || c.StepSize != 0.1 ||
		c.Sampler.Describe().Name != "gwg" || c.Steps != 7 ||
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
	if err != nil || record.ID != nil || len(record.Extra) != 2 || r.Seed != 3 ||
		r.Method.(infill.Search).Order != "2,1" {
		t.Errorf("kept keys: %v, %+v", err, r)
	}
	for key, value := range map[string]string{"top": `"x"`, "steps": `[3]`, "slot": `{"x":"a"}`,
		"slots": `{"1":[["a"]]}`, "ban": `[[]]`, "seed": `-1`, "fill": `{}`, "order": `["a"]`,
		"pos": `["nouns"]`, "initial": `{}`, "step_size": `[]`} {
		_, err := ReadRecord(fields("template", `"a [MASK]"`, key, value), "template")
		var option *infill.OptionError
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
	if err != nil || !reflect.DeepEqual(r.Fit.Speech, infill.Parts{1: {"noun", "verb"}}) ||
		!reflect.DeepEqual(r.Fit.Slots, infill.Lists{1: {"red", "blue"}, 2: {"a,b"}}) {
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
