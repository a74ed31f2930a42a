package tui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/tui"
)

func TestTUIArguments(t *testing.T) {
	folder := t.TempDir()
	tests := []struct {
		args             []string
		template, folder string
		options          func(o *infill.Options) // nil for the defaults
		fault            string
	}{
		{args: nil},
		{args: []string{"he had [MASK] me"}, template: "he had [MASK] me"},
		{args: []string{folder}, folder: folder},
		{args: []string{"and/or [MASK] it"}, template: "and/or [MASK] it"},
		{args: []string{"runs/typo"}, fault: "no folder runs/typo"},
		{args: []string{"typo"}, fault: "no folder typo"},
		{args: []string{"he", "had"}, fault: "2 arguments"},
		{args: []string{"--steps", "-1", "x"}, fault: "steps"},
		{args: []string{"--sampler", "dmala", "-n", "1000", "--steps", "100000", "x"},
			fault: "chains × steps is above 2000000"},
		{args: []string{"--steps", "10", "x"}, fault: "name one with --sampler"},
		{args: []string{"--sampler", "guess", "x"}, fault: "one of dmala, gibbs"},
		{args: []string{"he had ___ me"}, template: "he had ___ me"},
		{args: []string{"<mask>"}, template: "<mask>"},
		{args: []string{"--blank", "@@", "@@"}, template: "@@", options: func(o *infill.Options) { o.Blank = "@@" }},
		{args: []string{"--slot", "1=red,blue", "--ban", "grey", "-k", "7", "a [MASK] door"}, template: "a [MASK] door",
			options: func(o *infill.Options) {
				o.Slots, o.Ban, o.Top = infill.Lists{1: {"red", "blue"}}, []string{"grey"}, 7
			}},
		{args: []string{"--theme", "pink"}, fault: "one of auto, dark, light"},
		{args: []string{"--format", "csv"}, fault: "one of text, jsonl"},
	}
	for _, test := range tests {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			var got *tuiOptions
			cmd := NewCmd(&terminal.Streams{}, func(_ context.Context, o *tuiOptions) error { got = o; return nil })
			cmd.SetArgs(test.args)
			cmd.SetErr(io.Discard)
			cmd.SetOut(io.Discard)
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			err := cmd.Execute()
			switch {
			case test.fault != "":
				if err == nil || !strings.Contains(err.Error(), test.fault) {
					t.Errorf("got %v, want %q", err, test.fault)
				}
			case err != nil:
				t.Error(err)
			case got.template != test.template || got.folder != test.folder:
				t.Errorf("template %q, folder %q", got.template, got.folder)
			default:
				want := infill.DefaultOptions()
				want.Top = listed
				if test.options != nil {
					test.options(&want)
				}
				if !reflect.DeepEqual(got.Options, want) {
					t.Errorf("options %+v, want %+v", got.Options, want)
				}
			}
		})
	}
}

// TestTUIPiped: one line of standard input is the template.
func TestTUIPiped(t *testing.T) {
	for _, test := range []struct {
		in, template, fault string
		args                []string
	}{
		{in: "he had [MASK] me\n", template: "he had [MASK] me"},
		{in: "\nhe had [MASK] me", template: "he had [MASK] me"},
		{in: ""},
		{in: "a [MASK]\nb [MASK]\n", fault: "line 2: the screen takes one template"},
		{in: "a [MASK]\n", args: []string{"b [MASK]"}, template: "b [MASK]"},
	} {
		var got *tuiOptions
		cmd := NewCmd(&terminal.Streams{In: strings.NewReader(test.in)},
			func(_ context.Context, o *tuiOptions) error { got = o; return nil })
		cmd.SetArgs(append([]string{}, test.args...))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(t.Context())
		switch {
		case test.fault != "":
			if err == nil || !strings.Contains(err.Error(), test.fault) {
				t.Errorf("%q: got %v, want %q", test.in, err, test.fault)
			}
		case err != nil || got.template != test.template:
			t.Errorf("%q: %v, want the template %q", test.in, err, test.template)
		}
	}
}

// TestTUIResult checks what comes to standard output, with a screen that picks at
// once.
func TestTUIResult(t *testing.T) {
	result := &infill.Result{Format: 4, Template: "a [MASK] .", Fills: []infill.Fill{{Text: "a dog ."}},
		Warnings: []string{}}
	tests := []struct {
		name, format string
		picked       *tui.Picked
		err          error
		out          string
	}{
		{"text", "text", &tui.Picked{Text: "a\ndog .", Result: result}, nil, "a; dog .\n"},
		{"jsonl", "jsonl", &tui.Picked{Text: "a dog .", Result: result}, nil, `{"format":4,"template":"a [MASK] .",`},
		{"nothing picked", "text", nil, nil, ""},
		{"cancelled", "text", nil, context.Canceled, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			o := &tuiOptions{streams: &terminal.Streams{Out: &out, Err: io.Discard}, format: test.format, theme: "dark",
				Options: infill.DefaultOptions(),
				prepare: func(context.Context, *tuiOptions) error { return nil },
				show:    func(context.Context, tui.Config) (*tui.Picked, error) { return test.picked, test.err },
				console: func(*terminal.Streams) (io.Reader, io.Writer, func(), error) {
					return strings.NewReader(""), io.Discard, func() {}, nil
				}}
			if err := Run(t.Context(), o); !errors.Is(err, test.err) {
				t.Errorf("got %v, want %v", err, test.err)
			}
			if !strings.HasPrefix(out.String(), test.out) || test.out == "" && out.Len() > 0 {
				t.Errorf("printed %q, want %q", out.String(), test.out)
			}
		})
	}
}
