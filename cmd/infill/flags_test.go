package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/samplers"
)

// splitLine cuts a command line at blanks; quotes keep them.
func splitLine(line string) (args []string) {
	for i, quoted := range strings.Split(line, `"`) {
		if i%2 == 1 {
			args = append(args, quoted)
		} else {
			args = append(args, strings.Fields(quoted)...)
		}
	}
	return args
}

func fillDefaults(change func(o *fillOptions)) fillOptions {
	o := fillOptions{
		templates: []string{"a [MASK]"}, input: "lines", format: "text", Options: infill.DefaultOptions(),
		modelOptions: modelOptions{model: "mini-uncased", device: "auto", precision: "fp32"},
	}
	if change != nil {
		change(&o)
	}
	return o
}

// TestFillFlags: a command line gives the options, or the exact error.
func TestFillFlags(t *testing.T) {
	tests := []struct {
		line   string
		change func(o *fillOptions)
		want   string // the error
	}{
		{line: `"a [MASK]"`},
		{line: `"a [MASK]" "b [MASK]"`, change: func(o *fillOptions) { o.templates = []string{"a [MASK]", "b [MASK]"} }},
		{line: ``, change: func(o *fillOptions) { o.templates = nil }},
		{line: `-- "a [MASK]"`},
		{line: `-m DIR -n 3 -k 2 -q "a [MASK]"`, change: func(o *fillOptions) { o.model, o.Chains, o.Top, o.quiet = "DIR", 3, 2, true }},
		{line: `--sampler gibbs --steps 9 --warm-up 4 "a [MASK]"`, change: func(o *fillOptions) { o.Sampler, o.Steps, o.WarmUp = "gibbs", 9, 4 }},
		{line: `--steps 9 --warm-up half "a [MASK]"`, change: func(o *fillOptions) { o.Steps = 9 }},
		{line: `--step-size 0.25 --balance 0.5 --candidates 0 "a [MASK]"`, change: func(o *fillOptions) { o.StepSize, o.Balance, o.Candidates = 0.25, "0.5", 0 }},
		{line: `--step-size auto --balance auto --gradient auto "a [MASK]"`},
		{line: `--balance ratio --energy filled --gradient full "a [MASK]"`, change: func(o *fillOptions) { o.Balance, o.Energy, o.Gradient = "ratio", "filled", "full" }},
		{line: `--temperature 1.5 --initial random --rank final "a [MASK]"`, change: func(o *fillOptions) { o.Temperature, o.Initial.Kind, o.Rank = 1.5, "random", "final" }},
		{line: `--seed 0 "a [MASK]"`, change: func(o *fillOptions) { o.seedGiven = true }},
		{line: `--seed 18446744073709551615 "a [MASK]"`, change: func(o *fillOptions) { o.Seed, o.seedGiven = 1<<64-1, true }},
		{line: `--device cuda:1 --threads 2 --precision fp32 "a [MASK]"`, change: func(o *fillOptions) { o.device, o.threads = "cuda:1", 2 }},
		{line: `--input jsonl --format csv -v`, change: func(o *fillOptions) { o.templates, o.input, o.format, o.verbose = nil, "jsonl", "csv", true }},
		{line: `--slot 2=red,green --slot "1=dark blue" "a [MASK]"`, change: func(o *fillOptions) {
			o.Words = map[int][]string{1: {"dark blue"}, 2: {"red", "green"}}
		}},
		{line: `--ban red,green --ban blue --whole-words "a [MASK]"`, change: func(o *fillOptions) {
			o.Ban, o.WholeWords = []string{"red", "green", "blue"}, true
		}},
		{line: `--characters 3-8 --pieces 1-3 "a [MASK]"`, change: func(o *fillOptions) {
			o.MinCharacters, o.MaxCharacters, o.MinPieces, o.MaxPieces = 3, 8, 1, 3
		}},
		{line: `--characters 3- --pieces 2 "a [MASK]"`, change: func(o *fillOptions) {
			o.MinCharacters, o.MinPieces, o.MaxPieces = 3, 2, 2
		}},
		{line: `--characters=-8 "a [MASK]"`, change: func(o *fillOptions) { o.MaxCharacters = 8 }},
		{line: `--mode best "a [MASK]"`, change: func(o *fillOptions) { o.Mode = "best" }},
		{line: `--ladder 1,2,4 --initial mask "a [MASK]"`, change: func(o *fillOptions) { o.Ladder, o.Initial.Kind = []float64{1, 2, 4}, "mask" }},
		{line: `--initial "fill:dark blue,sky" "a [MASK]"`, change: func(o *fillOptions) {
			o.Initial = infill.Start{Kind: infill.StartGiven, Fill: []string{"dark blue", "sky"}}
		}},

		{line: `--slot red`, want: `--slot: "red" is not a blank's number and the words it may take, as in 1=red,dark blue`},
		{line: `--slot 0=red`, want: `--slot: "0=red" is not a blank's number and the words it may take, as in 1=red,dark blue`},
		{line: `--slot 1=red,,blue`, want: `--slot: "1=red,,blue" is not a blank's number and the words it may take, as in 1=red,dark blue`},
		{line: `--slot 1=red --slot 1=blue`, want: `--slot: "1=blue" is not the only list for blank 1: give all its words at once`},
		{line: `--ban ,`, want: `--ban: "," is not a list of words, as in red,blue`},
		{line: `--characters 0-3`, want: `--characters: "0-3" is not a number or a range of 1 or more, as in 3, 3-8, 3- or -8`},
		{line: `--characters -`, want: `--characters: "-" is not a number or a range of 1 or more, as in 3, 3-8, 3- or -8`},
		{line: `--characters 8-3`, want: `--characters: 8 to 3 runs backwards`},
		{line: `--pieces 2-`, want: `--pieces: "2-" is not a number or a range of 1 or more, as in 2 or 1-3`},
		{line: `--pieces 2-20`, want: `--pieces: 2 to 20 is not within 1 to 16`},
		{line: `--mode x`, want: `--mode: "x" is not one of sample, best, decode`},
		{line: `--mode best --warm-up 3`, want: `--warm-up: best has none: leave it out`},
		{line: `--ladder 2,4`, want: `--ladder: it begins with 2, and what is drawn from is temperature 1: begin with that`},
		{line: `--ladder ""`, want: `--ladder: "" is not a list of temperatures, as in 1,2,4`},
		{line: `--ladder 1,2 --sampler gibbs`, want: `--ladder: replicas swap by their energies, and gibbs moves without knowing any: take another sampler`},

		{line: `--sampler mh "a"`, want: `--sampler: "mh" is not one of ` + strings.Join(infill.Samplers(), ", ")},
		{line: `--energy x`, want: `--energy: "x" is not one of pll, filled`},
		{line: `--gradient x`, want: `--gradient: "x" is not one of auto, local, full, stochastic`},
		{line: `--initial x`, want: `--initial: "x" is not one of model, random, shared, mask, fill:WORD,...`},
		{line: `--rank x`, want: `--rank: "x" is not one of distinct, final`},
		{line: `--format yaml`, want: `--format: "yaml" is not one of text, json, jsonl, csv`},
		{line: `--input csv`, want: `--input: "csv" is not one of lines, jsonl`},
		{line: `--precision fp64`, want: `--precision: "fp64" is not one of fp32, fp16, int8`},
		{line: `--device gpu`, want: `--device: "gpu" is not one of auto, cpu, cuda, cuda:N with the number of a GPU`},
		{line: `--device cuda:`, want: `--device: "cuda:" is not one of auto, cpu, cuda, cuda:N with the number of a GPU`},
		{line: `--device cuda:-1`, want: `--device: "cuda:-1" is not one of auto, cpu, cuda, cuda:N with the number of a GPU`},
		{line: `--balance x`, want: `--balance: "x" is not one of auto, sqrt, ratio, min, max, or a number from 0.5 to 1`},
		{line: `--balance 0.4`, want: `--balance: "0.4" is not one of auto, sqrt, ratio, min, max, or a number from 0.5 to 1`},
		{line: `-n many`, want: `--samples: "many" is not a whole number`},
		{line: `-n 0`, want: `--samples: 0 is not a whole number from 1 to 65536`},
		{line: `-k 0`, want: `--top: 0 is not a whole number of 1 or more`},
		{line: `--steps -1`, want: `--steps: -1 is not a whole number from 0 to 16777216`},
		{line: `--steps 4 --warm-up 5`, want: `--warm-up: 5 is not a whole number from 0 to the number of steps, 4`},
		{line: `--warm-up -1`, want: `--warm-up: "-1" is not a whole number of 0 or more, or half`},
		{line: `--step-size x`, want: `--step-size: "x" is not a number or auto`},
		{line: `--step-size 0`, want: `--step-size: "0" is not a number above 0, or auto`},
		{line: `--step-size -1`, want: `--step-size: -1 is not a number above 0, or auto`},
		{line: `--step-size 1 --sampler gibbs`, want: `--step-size: gibbs has none: leave it out`},
		{line: `--candidates -1`, want: `--candidates: -1 is not a whole number of 0 (the whole vocabulary) or more`},
		{line: `--temperature hot`, want: `--temperature: "hot" is not a number`},
		{line: `--temperature 0`, want: `--temperature: 0 is not a number above 0`},
		{line: `--temperature nan`, want: `--temperature: NaN is not a number above 0`},
		{line: `--seed -1`, want: `--seed: "-1" is not a whole number of 0 or more, below 2^64`},
		{line: `--threads -1`, want: `--threads: -1 is not a whole number of 0 (one per core) or more`},
		{line: `-q -v`, want: `--quiet and --verbose exclude each other: give one`},
		{line: `--colour`, want: `unknown flag: --colour`},
		{line: `-z`, want: `unknown shorthand flag: 'z' in -z`},
		{line: `--samples`, want: `flag needs an argument: --samples`},
	}
	for _, test := range tests {
		t.Run(test.line, func(t *testing.T) {
			var got *fillOptions
			cmd := newCmdFill(&terminal.Streams{}, func(_ context.Context, o *fillOptions) error { got = o; return nil })
			err := parse(t, cmd, test.line)
			if test.want != "" {
				checkUsage(t, err, test.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			compareOptions(t, fillDefaults(test.change), *got)
		})
	}
}

// parse runs a command as the tree of commands would.
func parse(t *testing.T, cmd *cobra.Command, line string) error {
	t.Helper()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError("infill", err) })
	cmd.SetArgs(splitLine(line))
	cmd.SetOut(new(bytes.Buffer))
	return cmd.ExecuteContext(t.Context())
}

func checkUsage(t *testing.T, err error, want string) {
	t.Helper()
	var usage *usageError
	if !errors.As(err, &usage) || err.Error() != want {
		t.Errorf("got %v, want the usage error %q", err, want)
	}
}

func compareOptions[T any](t *testing.T, want, got T) {
	t.Helper()
	unexported := cmp.AllowUnexported(fillOptions{}, scoreOptions{}, modelOptions{}, setupOptions{}, doctorOptions{}, versionOptions{})
	ignored := cmpopts.IgnoreTypes(&terminal.Streams{}, &cobra.Command{})
	functions := cmp.FilterPath(func(p cmp.Path) bool {
		return p.Last().Type() != nil && p.Last().Type().Kind().String() == "func"
	}, cmp.Ignore())
	if diff := cmp.Diff(want, got, unexported, ignored, functions, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestScoreFlags(t *testing.T) {
	defaults := scoreOptions{method: "l2r", input: "lines", format: "text", modelOptions: modelOptions{model: "mini-uncased", device: "auto", precision: "fp32"}}
	tests := []struct {
		line   string
		change func(o *scoreOptions)
		want   string
	}{
		{line: `"a text"`, change: func(o *scoreOptions) { o.texts = []string{"a text"} }},
		{line: `--method original --format json --input jsonl -m DIR`, change: func(o *scoreOptions) { o.method, o.format, o.input, o.model = "original", "json", "jsonl", "DIR" }},
		{line: `--method salazar`, want: `--method: "salazar" is not one of l2r, original`},
		{line: `--format yaml`, want: `--format: "yaml" is not one of text, json, jsonl, csv`},
		{line: `--seed 1`, want: `unknown flag: --seed`},
	}
	for _, test := range tests {
		t.Run(test.line, func(t *testing.T) {
			var got *scoreOptions
			cmd := newCmdScore(&terminal.Streams{}, func(_ context.Context, o *scoreOptions) error { got = o; return nil })
			err := parse(t, cmd, test.line)
			if test.want != "" {
				checkUsage(t, err, test.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := defaults
			test.change(&want)
			compareOptions(t, want, *got)
		})
	}
}

func TestOtherFlags(t *testing.T) {
	var setup *setupOptions
	if err := parse(t, newCmdSetup(&terminal.Streams{}, func(_ context.Context, o *setupOptions) error { setup = o; return nil }), "--cuda -q"); err != nil {
		t.Fatal(err)
	}
	compareOptions(t, setupOptions{cuda: true, quiet: true}, *setup)
	var doctor *doctorOptions
	if err := parse(t, newCmdDoctor(&terminal.Streams{}, func(_ context.Context, o *doctorOptions) error { doctor = o; return nil }), "--format json -m DIR"); err != nil {
		t.Fatal(err)
	}
	compareOptions(t, doctorOptions{format: "json", model: "DIR"}, *doctor)
	var version *versionOptions
	if err := parse(t, newCmdVersion(&terminal.Streams{}, func(_ context.Context, o *versionOptions) error { version = o; return nil }), "--format json"); err != nil {
		t.Fatal(err)
	}
	compareOptions(t, versionOptions{format: "json"}, *version)

	checkUsage(t, parse(t, newCmdSetup(&terminal.Streams{}, nil), "now"), `unexpected argument "now"`)
	checkUsage(t, parse(t, newCmdDoctor(&terminal.Streams{}, nil), "who"), `unexpected argument "who"`)
	checkUsage(t, parse(t, newCmdDoctor(&terminal.Streams{}, nil), "--format csv"), `--format: "csv" is not one of text, json`)
}

// TestChoices: every enumerated flag has its values in usage and in completion,
// from the one list that its errors use.
func TestChoices(t *testing.T) {
	root := newRoot(&terminal.Streams{Out: new(bytes.Buffer), Err: new(bytes.Buffer)})
	tests := []struct {
		command string // "" is the root
		flag    string
		valid   []string
	}{
		{"", "sampler", infill.Samplers()},
		{"", "energy", []string{"pll", "filled"}},
		{"", "balance", append([]string{"auto"}, samplers.BalanceNames()...)},
		{"", "gradient", []string{"auto", "local", "full", "stochastic"}},
		{"", "initial", []string{"model", "random", "shared", "mask"}},
		{"", "mode", []string{"sample", "best", "decode"}},
		{"", "length-score", []string{"blank-l2r", "word-l2r"}},
		{"", "rank", []string{"distinct", "final"}},
		{"", "input", inputs()},
		{"", "format", formats()},
		{"", "device", devices()},
		{"", "precision", precisions()},
		{"score", "method", []string{"l2r", "original"}},
		{"score", "format", formats()},
		{"doctor", "format", []string{"text", "json"}},
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
