package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"infill/internal/option"
	"infill/internal/rawjson"
)

type bodyInput struct {
	RawBody []byte `contentType:"application/json"`
}

type output[T any] struct{ Body T }

// parse reads the body of a request. Every door of the server reads JSON here,
// and nothing reads the same bytes again with another decoder. Its errors are
// Problems: 400 for what is not JSON, 422 for JSON that says something twice.
func parse(text []byte) (rawjson.Value, error) {
	err := rawjson.Whole(text)
	if err != nil {
		return nil, &Problem{status: http.StatusBadRequest, Message: fmt.Sprintf("the request %s", err)}
	}
	v, err := rawjson.Read(text)
	if errors.Is(err, rawjson.ErrSyntax) {
		return nil, &Problem{status: http.StatusBadRequest, Message: fmt.Sprintf("the request %s", err)}
	}
	if err != nil {
		return nil, unfit("the request %s", err)
	}
	return v, nil
}

// register adds an operation that reads its body by parse; body documents it.
func register[I, O any](api huma.API, o huma.Operation, body reflect.Type,
	handler func(context.Context, *I) (*O, error)) {
	o.SkipValidateBody = true
	o.RequestBody = &huma.RequestBody{Required: true}
	huma.Register(api, o, handler)
	// Package huma describes a body that it does not read as a string of bytes.
	schema := api.OpenAPI().Components.Schemas.Schema(body, true, "")
	o.RequestBody.Content["application/json"] = &huma.MediaType{Schema: schema}
}

// keys reads the values of an object, each by the function of its key.
type keys map[string]func(rawjson.Value) error

// take reads an object. A key with null is as if absent. An error names a missing key.
func (k keys) take(v rawjson.Value, needed ...string) error {
	return k.takeWith(option.Of(), &struct{}{}, v, "", needed...)
}

// takeWith does what take does, for an object whose further keys are options of *to. An
// error names the key, behind path, as in "parameters.".
func (k keys) takeWith(options *option.Set, to any, v rawjson.Value, path string, needed ...string) error {
	if !v.IsObject() {
		return unfit("%s: expected an object", cmp.Or(strings.TrimSuffix(path, "."), "the request"))
	}
	names := slices.Collect(maps.Keys(k))
	for _, o := range options.Options() {
		names = append(names, strings.ReplaceAll(o.Name, "-", "_"))
	}
	slices.Sort(names)
	own := func(key string) bool { return k[key] != nil }
	given, rest, err := options.Read(v.Object(), own)
	if err != nil {
		return unfit("%s%s", path, err)
	}
	option.Assign(to, given)
	for _, name := range needed {
		if rawjson.Object(rest).Given(name) == nil {
			return unfit("no %q: write {%q: ...}", path+name, name)
		}
	}
	for _, field := range rest {
		read := k[field.Key]
		if read == nil {
			return unfit("%.80s: there is no such key: there are %s", path+field.Key, strings.Join(names, ", "))
		}
		if field.Value.IsNull() {
			continue
		}
		err := read(field.Value)
		var known *Problem
		if errors.As(err, &known) {
			return err
		}
		if err != nil {
			return unfit("%s: %s", path+field.Key, err)
		}
	}
	return nil
}

// bodySchema describes a body whose keys are options, and others of its own.
func bodySchema(options []option.Option, own map[string]*huma.Schema, required ...string) *huma.Schema {
	properties := maps.Clone(own)
	for _, o := range options {
		s := &huma.Schema{Description: o.Help, Type: o.JSON}
		if o.Closed && o.Word != "" {
			s.Description += "; one of " + strings.Join(o.Values, ", ")
		}
		if o.JSON == huma.TypeArray {
			s.Items = &huma.Schema{Type: huma.TypeString}
		}
		properties[strings.ReplaceAll(o.Name, "-", "_")] = s
	}
	return &huma.Schema{Type: huma.TypeObject, Properties: properties, Required: required, AdditionalProperties: false}
}

func modelKey() *huma.Schema {
	return &huma.Schema{Type: huma.TypeString,
		Description: "The name of a model that is served; the default model where none is named."}
}

func text(to *string) func(rawjson.Value) error {
	return func(v rawjson.Value) error {
		text, err := v.Text()
		if err != nil {
			return errors.New("expected a text")
		}
		*to = text
		return nil
	}
}

func texts(to *[]string) func(rawjson.Value) error {
	return func(v rawjson.Value) error {
		if !v.IsList() {
			return errors.New("expected a list of texts")
		}
		*to = []string{}
		for _, item := range v.List() {
			text, err := item.Text()
			if err != nil {
				return errors.New("expected a list of texts")
			}
			*to = append(*to, text)
		}
		return nil
	}
}

func oneOrMore(to *several[string]) func(rawjson.Value) error {
	return func(v rawjson.Value) error {
		to.list = v.IsList()
		if to.list {
			return texts(&to.items)(v)
		}
		one, err := v.Text()
		if err != nil {
			return errors.New("expected one, or a list, of texts")
		}
		if isListText(one) {
			return errors.New("the text is a JSON list itself: send the list without quotation marks around it")
		}
		to.items = []string{one}
		return nil
	}
}

// isListText reports whether a text is a JSON list, as some clients send it.
func isListText(text string) bool {
	v, err := rawjson.Read([]byte(text))
	if err != nil || !v.IsList() {
		return false
	}
	noText := func(item rawjson.Value) bool {
		_, err := item.Text()
		return err != nil
	}
	return !slices.ContainsFunc(v.List(), noText)
}
