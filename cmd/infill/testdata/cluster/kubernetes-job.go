//go:build ignore

// Writes kubernetes-job.schema.json: the fields of a Job as k8s.io/api v0.37.2 (Kubernetes 1.37) has them, the types
// that the published OpenAPI schema is made of. In an empty module: go get k8s.io/api@v0.37.2 && go run
// kubernetes-job.go > kubernetes-job.schema.json
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	batch "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type object = map[string]any

var defs = object{}

func of(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString]():
		return object{"type": []string{"string", "number"}}
	case reflect.TypeFor[meta.Time](), reflect.TypeFor[meta.MicroTime]():
		return object{"type": []string{"string", "null"}}
	case reflect.TypeFor[meta.FieldsV1]():
		return object{"type": "object"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return of(t.Elem())
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string"}
		}
		return object{"type": "array", "items": of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": of(t.Elem())}
	case reflect.Struct:
		name := t.Name()
		if _, done := defs[name]; !done {
			def := object{"type": "object", "additionalProperties": false}
			defs[name] = def
			properties, required := object{}, []string{}
			fields(t, properties, &required)
			def["properties"] = properties
			if len(required) > 0 {
				def["required"] = required
			}
		}
		return object{"$ref": "#/$defs/" + name}
	}
	panic(t.String())
}

func fields(t reflect.Type, properties object, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			fields(f.Type, properties, required)
			continue
		}
		if name == "-" || name == "" {
			continue
		}
		properties[name] = of(f.Type)
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
	}
}

func main() {
	root := of(reflect.TypeFor[batch.Job]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$defs"] = defs
	// Values that the types leave to words.
	put := func(def, field string, values ...string) {
		defs[def].(object)["properties"].(object)[field] = object{"type": "string", "enum": values}
	}
	put("Job", "apiVersion", "batch/v1")
	put("Job", "kind", "Job")
	put("JobSpec", "completionMode", string(batch.IndexedCompletion), string(batch.NonIndexedCompletion))
	put("PodSpec", "restartPolicy", "Always", "OnFailure", "Never")
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", " ")
	if err := e.Encode(root); err != nil {
		panic(err)
	}
}
