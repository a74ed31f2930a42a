package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/internal/ask"
	"infill/samplers"
)

// TestChoices: every enumerated flag has its values in usage and in completion,
// from the one list that its errors use.
func TestChoices(t *testing.T) {
	root := newRoot(&terminal.Streams{Out: new(bytes.Buffer), Err: new(bytes.Buffer)})
	tests := []struct {
		command string // "" is the root
		flag    string
		valid   []string
	}{
		{"", "sampler", ask.Samplers()},
		{"", "energy", []string{"pll", "filled"}},
		{"", "balance", samplers.Balance("").Values()},
		{"", "gradient", []string{"auto", "local", "full"}},
		{"", "initial", []string{"model", "random", "shared", "mask"}},
		{"", "rank", []string{"distinct", "final"}},
		{"", "input", cli.Inputs()},
		{"", "format", append(cli.Formats(), "lines", "words")},
		{"", "device", []string{"auto", "cpu", "cuda"}},
		{"score", "method", []string{"l2r", "within_word_l2r", "original"}},
		{"score", "format", cli.Formats()},
	}
	for _, test := range tests {
		t.Run(test.command+" "+test.flag, func(t *testing.T) {
			cmd, args := root, []string{"__complete"}
			if test.command != "" {
				var err error
				if cmd, _, err = root.Find([]string{test.command}); err != nil {
					t.Fatal(err)
				}
				args = append(args, test.command)
			}
			flag := cmd.Flags().Lookup(test.flag)
			usage := flag.Value.Type() + flag.Usage
			for _, v := range test.valid {
				if !strings.Contains(usage, v) {
					t.Errorf("usage %q lacks %s", usage, v)
				}
			}
			var out bytes.Buffer
			streams := &terminal.Streams{In: strings.NewReader(""), Out: &out, Err: new(bytes.Buffer)}
			if code := Main(t.Context(), streams, append(args, "--"+test.flag, "")); code != 0 {
				t.Fatalf("completion ended with %d", code)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if diff := cmp.Diff(test.valid, lines[:len(lines)-1]); diff != "" {
				t.Errorf("completion: %s", diff)
			}
		})
	}
}
