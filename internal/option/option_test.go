package option_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"infill/internal/option"
	"infill/internal/rawjson"
)

// request has an option of each kind.
type request struct {
	Count   int           `option:"count" default:"5" minimum:"1" maximum:"9" help:"how many"`
	Steps   int           `option:"steps" default:"50" minimum:"0" words:"0=-1,none=-1"`
	Half    int           `option:"half-of" default:"half" minimum:"0" words:"half=0,0=-1"`
	Seed    uint64        `option:"seed"`
	Rate    float64       `option:"rate" default:"0.5" exclusiveMinimum:"0" maximum:"1"`
	Size    float64       `option:"size" exclusiveMinimum:"0" words:"auto=0"`
	Kind    kind          `option:"kind" default:"red" enum:"red,green" word:"NAME" alias:"kinds"`
	Choice  string        `option:"choice" enum:"auto,full" words:"auto="`
	Text    string        `option:"text"`
	On      bool          `option:"on"`
	Wait    time.Duration `option:"wait"`
	Bytes   int64         `option:"bytes" minimum:"1"`
	Names   []string      `option:"names"`
	Numbers []int         `option:"numbers"`
	Other   int
}

type kind string

var set = option.Of(option.Owner{Zero: request{}})

// TestTexts: each text is a value, or is refused in words that complete a sentence, and
// a value prints as a text that is the same value.
func TestTexts(t *testing.T) {
	for _, c := range []struct {
		name, text, want string // want is the text of the value; "!" begins an error
	}{
		{"count", "3", "3"}, {"count", "3.0", "3"}, {"count", "0", "!a whole number from 1 to 9"},
		{"count", "10", "!a whole number from 1 to 9"}, {"count", "3.5", "!a whole number from 1 to 9"},
		{"steps", "0", "0"}, {"steps", "0.0", "0"}, {"steps", "none", "0"}, {"steps", "7", "7"},
		{"steps", "-1", "!a whole number of 0 or more, or none"},
		{"half-of", "half", "half"}, {"half_of", "0", "0"}, {"half-of", "2", "2"},
		{"seed", "18446744073709551615", "18446744073709551615"}, {"seed", "7.0", "7"},
		{"seed", "-1", "!a whole number of 0 or more, below 2^64"},
		{"rate", "1", "1"}, {"rate", "0", "!a number above 0 and at most 1"}, {"rate", "NaN", "!a number above 0"},
		{"rate", "1e-3", "0.001"}, {"size", "auto", "auto"}, {"size", "Inf", "!a number above 0, or auto"},
		{"size", "0", "!a number above 0, or auto"}, {"kind", "green", "green"}, {"kinds", "green", "green"},
		{"kind", "blue", "!one of red, green"}, {"choice", "auto", "auto"}, {"choice", "full", "full"},
		{"choice", "", "!one of auto, full"}, {"text", "a, b", "a, b"}, {"on", "1", "true"},
		{"on", "yes", "!one of false, true"},
		{"wait", "90s", "1m30s"}, {"wait", "5", "!a length of time, such as 90s or 5m"}, {"bytes", "5", "5"},
		{"bytes", "0", "!a whole number of 1 or more"}, {"names", `a,"b, c"`, `a,"b, c"`}, {"names", `said "hello`, `"said ""hello"`},
		{"numbers", "2,3", "2,3"}, {"numbers", "2,x", "!a list of whole numbers, such as 2,3"},
	} {
		o, ok := set.Find(c.name)
		if !ok {
			t.Fatalf("no option %s", c.name)
		}
		g, err := o.Given(c.text)
		want, wrong := strings.CutPrefix(c.want, "!")
		if wrong != (err != nil) || wrong && !strings.HasPrefix(err.Error(), want) || !wrong && g.Text() != want {
			t.Errorf("%s %q: %q, error %v, want %q", c.name, c.text, g.Text(), err, c.want)
			continue
		}
		if wrong {
			continue
		}
		again, err := o.Given(g.Text())
		if err != nil || !reflect.DeepEqual(again.Value(), g.Value()) {
			t.Errorf("%s %q: %v, then %v, error %v", c.name, c.text, g.Value(), again.Value(), err)
		}
		var to request
		option.Assign(&to, []option.Given{g})
		if err := set.Check(to); err != nil {
			t.Errorf("%s %q is read, and refused: %v", c.name, c.text, err)
		}
	}
}

// TestDefaults: a zero is the default, and every other wrong value is found.
func TestDefaults(t *testing.T) {
	var r request
	if err := set.Check(r); err != nil {
		t.Errorf("zeros: %v", err)
	}
	set.Settle(&r)
	if want := (request{Count: 5, Steps: 50, Rate: 0.5, Kind: "red"}); !reflect.DeepEqual(r, want) {
		t.Errorf("%+v, want %+v", r, want)
	}
	facts := map[string]string{}
	for _, f := range set.Facts(r) {
		facts[f.Name] = f.Text
	}
	for name, want := range map[string]string{"count": "5", "steps": "50", "half-of": "half", "size": "auto",
		"kind": "red", "choice": "auto", "on": "false"} {
		o, _ := set.Find(name)
		if facts[name] != want || o.Default != want && o.Default != "" {
			t.Errorf("%s: %q, default %q, want %q", name, facts[name], o.Default, want)
		}
	}
	for name, wrong := range map[string]request{"count": {Count: 10}, "steps": {Steps: -2}, "rate": {Rate: 2},
		"kind": {Kind: "blue"}, "size": {Size: -1}, "bytes": {Bytes: -1}, "choice": {Choice: "half"}} {
		var said *option.Error
		if err := set.Check(&wrong); !errors.As(err, &said) || said.Key != name {
			t.Errorf("%+v: %v, want %s", wrong, err, name)
		}
	}
}

// TestJSON: a value has its text, or JSON of its own kind; null and "" say nothing.
func TestJSON(t *testing.T) {
	for text, want := range map[string]request{
		`{"count": 3, "steps": "0", "on": true, "kinds": "green"}`:    {Count: 3, Steps: -1, On: true, Kind: "green"},
		`{"count": "3", "rate": "0.25", "on": 1, "text": 5}`:          {Count: 3, Rate: 0.25, On: true, Text: "5"},
		`{"count": 3.0, "seed": 3e0, "half_of": "half", "size": 0.5}`: {Count: 3, Seed: 3, Size: 0.5},
		`{"count": null, "rate": "", "seed": "18446744073709551615"}`: {Seed: 1<<64 - 1},
		`{"kind": "", "kinds": "green"}`:                              {Kind: "green"},
	} {
		v, err := rawjson.Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		given, rest, err := set.Read(v.Object(), func(string) bool { return false })
		var got request
		option.Assign(&got, given)
		if err != nil || len(rest) > 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, rest %v, error %v", text, got, rest, err)
		}
	}
	for text, want := range map[string]string{
		`{"count": [3]}`:                    `count: "[3]" is not a whole number from 1 to 9`,
		`{"count": {"a": 3}}`:               `count: "{\"a\":3}" is not a whole number`,
		`{"text": ["a"]}`:                   `text: "[\"a\"]" is not a text`,
		`{"kind": "red", "kinds": "green"}`: `kinds: it is the same as kind: give one of them`,
	} {
		v, err := rawjson.Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = set.Read(v.Object(), func(string) bool { return false })
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	v, _ := rawjson.Read([]byte(`{"count": 3, "other": 4, "kind": "x"}`))
	given, rest, err := set.Read(v.Object(), func(key string) bool { return key == "kind" })
	if err != nil || len(given) != 1 || len(rest) != 2 {
		t.Errorf("%v, rest %v, error %v", given, rest, err)
	}
}
