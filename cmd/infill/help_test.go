package main

import (
	"bytes"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
)

// TestEveryCommandHasUsage walks the tree, so that a new command is held to it too.
func TestEveryCommandHasUsage(t *testing.T) {
	root := newRoot(&terminal.Streams{Out: new(bytes.Buffer), Err: new(bytes.Buffer)})
	for _, cmd := range append(root.Commands(), root) {
		if cmd.Short == "" || cmd.Long == "" {
			t.Errorf("%s has no description", cmd.CommandPath())
		}
		if strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: a short description has no full stop", cmd.CommandPath())
		}
	}
}

// The help fits a screen, and what it shows is there.
func TestHelpFits(t *testing.T) {
	for topic, most := range map[string]int{"": 40, "templates": 25} {
		var out bytes.Buffer
		root := newRoot(&terminal.Streams{Out: &out, Err: &out})
		root.SetArgs(append([]string{"help"}, strings.Fields(topic)...))
		if err := root.Execute(); err != nil || strings.Count(out.String(), "\n") > most {
			t.Errorf("help %s: %v, more than %d lines:\n%s", topic, err, most, out.String())
		}
		for line := range strings.Lines(out.String()) {
			words, infill := strings.CutPrefix(line, "  infill ")
			if !infill || topic != "" {
				continue
			}
			cmd, _, _ := root.Find(strings.Fields(words)[:1])
			for word := range strings.FieldsSeq(words) {
				if name, flag := strings.CutPrefix(word, "--"); flag && cmd.Flags().Lookup(name) == nil {
					t.Errorf("%s has no --%s", cmd.CommandPath(), name)
				}
			}
		}
	}
}

func TestHelpScripts(t *testing.T) { scripts(t, "help", "version") }

// TestFormatsHelp: help formats names each field of results and scores.
func TestFormatsHelp(t *testing.T) {
	topic := helpText("topics", "formats")
	names := fieldNames(reflect.TypeFor[infill.Result]())
	for _, name := range append(names, fieldNames(reflect.TypeFor[infill.Score]())...) {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(topic) {
			t.Errorf("help formats does not say what %s is", name)
		}
	}
}

// fieldNames returns the names in the JSON of a type, with those of all that it holds.
func fieldNames(of reflect.Type) (names []string) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return nil
	}
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names = append(names, name)
			names = append(names, fieldNames(of.Field(i).Type)...)
		}
	}
	return names
}
