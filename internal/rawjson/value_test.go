package rawjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"infill/internal/rawjson"
)

// TestRead: what is no JSON, and what says something twice or too deep, is
// refused with its place.
func TestRead(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`[`, n) + strings.Repeat(`]`, n) }
	for text, want := range map[string]string{
		`{"a": 1, "A": 2, "a ": 3}`:               "",
		"\ufeff" + ` {"a": [1, {"b": null}]} `:    "",
		`[{"a": 1}, {"a": 1}]`:                    "",
		deep(64):                                  "",
		deep(65):                                  "is nested more than 64 deep",
		`{"a": ` + deep(64) + `}`:                 "is nested more than 64 deep",
		`{"a": 1, "b": 2, "a": 1}`:                `has two keys "a"`,
		`{"a": {"b": 1, "b": 1}}`:                 `has two keys "a.b"`,
		`{"a": [{"c": 1}, {"b": 1, "b": 1}]}`:     `has two keys "a.b"`,
		`{"a": 1, "\u0061": 2}`:                   `has two keys "a"`,
		`{"a": {}, "x": ["a", "a"], "a": 2}`:      `has two keys "a"`,
		`{"k": "\"", "l": "{[\\", "l": "}]\\\""}`: `has two keys "l"`,
	} {
		v, err := rawjson.Read([]byte(text))
		if errors.Is(err, rawjson.ErrSyntax) || (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
		if err == nil && v[0] != strings.TrimLeft(text, "\ufeff ")[0] {
			t.Errorf("%.80s is read as %.80s", text, v)
		}
	}
	for text, want := range map[string]string{
		"":                       "is not JSON: unexpected end of JSON input",
		`{"a": 1} x`:             "is not JSON: invalid character 'x' after top-level value at byte 10",
		`{"a": 1}{}`:             "is not JSON: ",
		`{"a": 01}`:              "is not JSON: ",
		`{"a": 1,}`:              "is not JSON: ",
		`{a: 1}`:                 "is not JSON: ",
		"\ufeff\ufeff{}":         "is not JSON: ",
		"{\"a\": \"caf\xe9\"}":   "is not valid UTF-8",
		"{\"\xff\": 1, \"a\":1}": "is not valid UTF-8",
		`{"\ud83d": 1}`:          "has half of a surrogate pair",
	} {
		_, err := rawjson.Read([]byte(text))
		if !errors.Is(err, rawjson.ErrSyntax) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestValues: each kind of value is read as what it is, and as nothing else.
func TestValues(t *testing.T) {
	o, err := rawjson.Parse([]byte("{ \"text\" : \"a\\u00e9\\n\", \"half\": \"\\ud83d\", \"null\": null,\n" +
		"\"list\": [ 1 , \"b\" ,[ ], {\"c\" :[2]}\t], \"object\": {\"x\":1 , \"y\" : { } }, \"true\": true }"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := o.Text("text")
	if err != nil || text != "aé\n" {
		t.Errorf("text %q, %v", text, err)
	}
	for _, key := range []string{"list", "null", "true", "object", "nothing", "half"} {
		text, err := o.Text(key)
		if err == nil {
			t.Errorf("%s is the text %q", key, text)
		}
	}
	var list []string
	for _, v := range o.Get("list").List() {
		list = append(list, string(v))
	}
	if want := []string{"1", `"b"`, "[]", `{"c":[2]}`}; !reflect.DeepEqual(list, want) {
		t.Errorf("list %q", list)
	}
	inner := o.Get("object").Object()
	if len(inner) != 2 || inner[0].Key != "x" || string(inner[0].Value) != "1" || string(inner[1].Value) != "{}" {
		t.Errorf("object %q", inner)
	}
	if o.Given("null") != nil || o.Get("null") == nil || o.Given("true") == nil || o.Given("nothing") != nil {
		t.Error("null is given, or what is there is not")
	}
	if o.Get("text").List() != nil || o.Get("list").Object() != nil || o.Get("true").Object() != nil {
		t.Error("a value of one kind is read as another")
	}
	for text, want := range map[string]int{"3": 3, "3.0": 3, "3.000": 3, "30e-1": 3, "3e2": 300, "-0.0": 0, "-7": -7} {
		if n, ok := rawjson.Value(text).Whole(); !ok || n != want {
			t.Errorf("%s is %d, %v", text, n, ok)
		}
	}
	for _, text := range []string{"3.5", `"3"`, "null", "true", "[3]", "1e300", "9007199254740993", "1e999", ""} {
		if n, ok := rawjson.Value(text).Whole(); ok {
			t.Errorf("%s is %d", text, n)
		}
	}
}

// TestParseTellsTheID: a wrong object has its fields, so that an answer can
// have the object's id; what is no object has none.
func TestParseTellsTheID(t *testing.T) {
	for _, line := range []string{`{"id": 5, "a": {"b": 1, "b": 2}}`, "{\"id\": 5, \"a\": \"\xff\"}"} {
		o, err := rawjson.Parse([]byte(line))
		if err == nil || string(o.Get("id")) != "5" {
			t.Errorf("%q: %v, %v", line, o, err)
		}
	}
	o, _ := rawjson.Parse([]byte("{\"id\": \"\xff\", \"a\": 1}"))
	if len(o) != 1 || o[0].Key != "a" {
		t.Errorf("an id that cannot be told: %q", o)
	}
	for _, line := range []string{`{"id": 5`, `[{"id": 5}]`, `5`} {
		o, err := rawjson.Parse([]byte(line))
		if err == nil || o != nil {
			t.Errorf("%q: %v, %v", line, o, err)
		}
	}
}

// FuzzRead: what Read takes, it cuts as encoding/json does, to the last value.
func FuzzRead(f *testing.F) {
	for _, text := range []string{`{"a": [1, -2.5e3, "x\"y\\", {"b": {}}, []], "c": {"d": null, "e": true}}`,
		"\ufeff [ ]", `"\u00e9"`, ` 5 `, `{"a":{"b":"}"},"c":"]","d":"\\"}`, `[[[[]]],{"":""}]`, "{\"a\" \t:\r\n 1 ,\"b\":2}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := rawjson.Read(text)
		if err != nil {
			return
		}
		var want any
		d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
		d.UseNumber()
		err = d.Decode(&want)
		if err != nil {
			t.Fatalf("%q is read, and no JSON: %v", text, err)
		}
		if got := decoded(v); !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %v, encoding/json has %v", text, got, want)
		}
	})
}

// decoded reads a value by its methods alone.
func decoded(v rawjson.Value) any {
	switch {
	case v.IsObject():
		object := map[string]any{}
		for _, f := range v.Object() {
			object[f.Key] = decoded(f.Value)
		}
		return object
	case v.IsList():
		list := []any{}
		for _, item := range v.List() {
			list = append(list, decoded(item))
		}
		return list
	case v.IsText():
		text, err := v.Text()
		if err != nil {
			var loose string // half of a pair, which Text refuses
			_ = json.Unmarshal(v, &loose)
			return loose
		}
		return text
	case v.IsNull():
		return nil
	case string(v) == "true", string(v) == "false":
		return string(v) == "true"
	}
	return json.Number(v)
}

// TestTextWithoutKey: the error for a key that is not there names others, each
// shortened.
func TestTextWithoutKey(t *testing.T) {
	o := rawjson.Object{{Key: strings.Repeat("a", 1<<20)}}
	_, err := o.Text("template")
	if err == nil || len(err.Error()) > 200 || !strings.Contains(err.Error(), `among its keys "aaa`) {
		t.Errorf("%.300v", err)
	}
}
