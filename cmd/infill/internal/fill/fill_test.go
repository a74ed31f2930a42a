package fill

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/clitest"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
)

func fillDefaults(change func(o *fillOptions)) fillOptions {
	o := fillOptions{show: "table",
		InputOptions: cli.InputOptions{Key: "template", Texts: []string{"a [MASK]"}, Input: "lines", Format: "text"},
		Options:      infill.DefaultOptions(),
		ModelOptions: cli.ModelOptions{Device: "auto"},
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
		{line: `"a [MASK]" "b [MASK]"`, change: func(o *fillOptions) { o.Texts = []string{"a [MASK]", "b [MASK]"} }},
		{line: ``, change: func(o *fillOptions) { o.Texts = nil }},
		{line: `-`, change: func(o *fillOptions) { o.Texts = nil }},
		{line: `-- "a [MASK]"`},
		{line: `-m DIR -n 3 -k 2 -q "a [MASK]"`,
			change: func(o *fillOptions) { o.Model, o.Samples, o.Top, o.Quiet = "DIR", 3, 2, true }},
		{line: `--sampler gibbs --steps 9 --warm-up 4 "a [MASK]"`, change: chains("gibbs", func(c *infill.Chains) {
			c.Steps, c.WarmUp = 9, 4
		})},
		{line: `--steps 9 --warm-up half --sampler gwg "a [MASK]"`,
			change: chains("gwg", func(c *infill.Chains) { c.Steps = 9 })},
		{line: `--sampler dmala --step-size 0.25 --balance 0.5 --candidates 0 "a [MASK]"`,
			change: chains("dmala", func(c *infill.Chains) { c.StepSize, c.Balance, c.Candidates = 0.25, "0.5", 0 })},
		{line: `--sampler dmala --step-size auto --balance auto --gradient auto "a [MASK]"`,
			change: chains("dmala", func(*infill.Chains) {})},
		{line: `--sampler dmala --balance ratio --energy filled --gradient full --initial random "a [MASK]"`,
			change: chains("dmala", func(c *infill.Chains) {
				c.Balance, c.Energy, c.Gradient, c.Initial.Kind = "ratio", "filled", "full", "random"
			})},
		{line: `--temperature 1.5 -n 2 --rank final "a [MASK]"`,
			change: func(o *fillOptions) { o.Temperature, o.Samples, o.Rank = 1.5, 2, "final" }},
		{line: `--seed 0 "a [MASK]"`, change: func(o *fillOptions) { o.seedGiven = true }},
		{line: `--seed 18446744073709551615 "a [MASK]"`,
			change: func(o *fillOptions) { o.Seed, o.seedGiven = 1<<64-1, true }},
		{line: `--device cuda:1 --threads 2 "a [MASK]"`,
			change: func(o *fillOptions) { o.Device, o.Threads = "cuda:1", 2 }},
		{line: `--input jsonl --format csv -v`,
			change: func(o *fillOptions) { o.Texts, o.Input, o.Format, o.Verbose = nil, "jsonl", "csv", true }},
		{line: `--slot 2=red,green --slot "1=dark blue" "a [MASK]"`, change: func(o *fillOptions) {
			o.Slots = infill.Lists{1: {"dark blue"}, 2: {"red", "green"}}
		}},
		{line: `--ban red,green --ban blue --fill tokens "a [MASK]"`, change: func(o *fillOptions) {
			o.Ban, o.Fill = []string{"red", "green", "blue"}, "tokens"
		}},
		{line: `--sampler gibbs --initial "fill:dark blue,sky" "a [MASK]"`,
			change: chains("gibbs", func(c *infill.Chains) {
				c.Initial = infill.Start{Kind: "fill", Fill: []string{"dark blue", "sky"}}
			})},

		{line: `--slot red`,
			want: `--slot: "red" is not a blank's number and all words it may take, as in 1=red,dark blue`},
		{line: `--slot 0=red`,
			want: `--slot: "0=red" is not a blank's number and all words it may take, as in 1=red,dark blue`},
		{line: `--slot 1=red,,blue`,
			want: `--slot: "1=red,,blue" is not a blank's number and all words it may take, as in 1=red,dark blue`},
		{line: `--slot 1=red --slot 1=blue`,
			want: `--slot: "1=blue" is not the only list of its blank: put all its words into one, as in 1=red,blue`},
		{line: `--ban ,`, want: `--ban: "," is not a list of words, as in red,blue`},

		{line: `--sampler mh "a"`,
			want: `--sampler: "mh" is not one of ` + strings.Join(infill.Samplers(), ", ")},
		{line: `--energy x`, want: `--energy: "x" is not one of pll, filled`},
		{line: `--gradient x`, want: `--gradient: "x" is not one of auto, local, full, stochastic`},
		{line: `--initial x`, want: `--initial: "x" is not fill:WORD,..., or one of model, random, shared, mask`},
		{line: `--rank x`, want: `--rank: "x" is not one of distinct, final`},
		{line: `--format yaml`, want: `--format: "yaml" is not one of text, json, jsonl, csv`},
		{line: `--input csv`, want: `--input: "csv" is not one of lines, jsonl`},
		{line: `--device gpu`,
			want: `--device: "gpu" is not one of auto, cpu, cuda, or cuda:N with the number of a GPU`},
		{line: `--device cuda:`,
			want: `--device: "cuda:" is not one of auto, cpu, cuda, or cuda:N with the number of a GPU`},
		{line: `--device cuda:-1`,
			want: `--device: "cuda:-1" is not one of auto, cpu, cuda, or cuda:N with the number of a GPU`},
		{line: `--balance x`,
			want: `--balance: "x" is not one of auto, sqrt, ratio, min, max, or a number from 0.5 to 1`},
		{line: `--balance 0.4`,
			want: `--balance: "0.4" is not one of auto, sqrt, ratio, min, max, or a number from 0.5 to 1`},
		{line: `-n many`, want: `--samples: "many" is not auto, or a whole number from 1 to 65536`},
		{line: `-n 0`, want: `--samples: "0" is not auto, or a whole number from 1 to 65536`},
		{line: `-k 0`, want: `--top: "0" is not a whole number from 1 to 65536`},
		{line: `--steps -1`, want: `--steps: "-1" is not a whole number from 0 to 16777216`},
		{line: `--sampler gwg --steps 4 --warm-up 5`, want: `--warm-up: 5 is not a whole number from 0 to the number of steps, 4`},
		{line: `--warm-up -1`, want: `--warm-up: "-1" is not a whole number of 0 or more, or half`},
		{line: `--step-size x`, want: `--step-size: "x" is not a number above 0, or auto`},
		{line: `--step-size 0`, want: `--step-size: "0" is not a number above 0, or auto`},
		{line: `--step-size -1`, want: `--step-size: "-1" is not a number above 0, or auto`},
		{line: `--step-size 1 --sampler gibbs`, want: `--step-size: gibbs has none: leave it out`},
		{line: `--candidates -1`, want: `--candidates: "-1" is not a whole number of 0 (the whole vocabulary) or more`},
		{line: `--candidates 20 "a [MASK]"`,
			want: `--candidates: it is an option of samplers: name one with --sampler, as in --sampler dmala`},
		{line: `--temperature 2 "a [MASK]"`,
			want: `--temperature: it shapes draws and chains: add --samples N or --sampler NAME`},
		{line: `--temperature hot`, want: `--temperature: "hot" is not a number above 0`},
		{line: `--temperature 0`, want: `--temperature: "0" is not a number above 0`},
		{line: `--temperature nan`, want: `--temperature: "nan" is not a number above 0`},
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
			cmd := NewCmd(&terminal.Streams{}, func(_ context.Context, o *fillOptions) error { got = o; return nil })
			err := clitest.Parse(t, cmd, test.line)
			if test.want != "" {
				clitest.CheckUsage(t, err, test.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			clitest.CompareOptions(t, fillDefaults(test.change), *got)
		})
	}
}

// chains changes the chains of a sampler.
func chains(sampler string, change func(c *infill.Chains)) func(o *fillOptions) {
	return func(o *fillOptions) {
		c := infill.DefaultChains(sampler)
		change(&c)
		o.Chains = &c
	}
}

func pointer(x float64) *float64 { return &x }

func seedOf(n uint64) *uint64 { return &n }

// results are what the printers are tried on: wide runes, a fill at the very
// start, one of two words, a text longer than a terminal, a sampler without
// acceptance, a single chain.
func results() []*infill.Result {
	long := "日本語 [MASK] and then, after a very long while that nobody had thought possible, they [MASK:2] the old " +
		"house near the river"
	fill := func(a, b string) (string, [][2]int) {
		before, rest, _ := strings.Cut(long, "[MASK]")
		middle, after, _ := strings.Cut(rest, "[MASK:2]")
		text := before + a + middle + b + after
		return text, [][2]int{{len(before), len(before) + len(a)},
			{len(before + a + middle), len(before + a + middle + b)}}
	}
	first, firstSpans := fill("waited", "left behind")
	second, secondSpans := fill("東京", "sold off")
	model, proven, unproven := infill.Model{Name: "toy", SHA256: "abc"}, true, false
	return []*infill.Result{
		{
			Template: "[MASK] had\n[MASK] me", Blanks: [][2]int{{0, 6}, {11, 17}}, Model: model,
			Signature: "sampler:dmala|seed:7", Seed: seedOf(7),
			Fills: []infill.Fill{
				{Rank: 1, Text: "He had\ntold me", Values: []string{"He", "told"}, Spans: [][2]int{{0, 2}, {7, 11}},
					TokenIDs:      []int{1, 2},
					LogLikelihood: -1.5, Count: 312, Share: pointer(0.4992), ShareError: pointer(0.0171),
					FinalCount: 13},
				{Rank: 2, Text: "She had\n<&>\"'; me", Values: []string{"She", "<&>\"';"},
					Spans: [][2]int{{0, 3}, {8, 14}}, TokenIDs: []int{3, 4},
					LogLikelihood: -11.25, Count: 1, Share: pointer(0.0016), ShareError: pointer(0.0016),
					FinalCount: 0},
			},
			Method: "dmala",
			Stats: infill.Stats{Slots: 2, Draws: 625, DistinctFills: 2, ModelRows: 2551, Device: "cpu", Seconds: 0.4217,
				Chains: &infill.ChainStats{Sampler: "dmala", Energy: "pll", Chains: 25, Steps: 50,
					StepSize:       pointer(4.25),
					AcceptanceRate: pointer(0.684), AcceptanceStandardError: pointer(0.0204), ChangedSlotsPerStep: 1.7,
					WarmUp:            infill.WarmUp{Steps: 25, AcceptanceRate: pointer(0.5), ChangedSlotsPerStep: 1.5},
					MeanLogLikelihood: -3.25, MeanLogLikelihoodStandardError: pointer(0.125), EnergyEvaluations: 1275,
					GradientEvaluations: 1275}},
			Warnings: []string{},
		},
		{
			Template: long, Blanks: [][2]int{{10, 16},
				{strings.Index(long, "[MASK:2]"), strings.Index(long, "[MASK:2]") + 8}}, Model: model,
			Signature: "sampler:gibbs|seed:8", Seed: seedOf(8),
			Fills: []infill.Fill{
				{Rank: 1, Text: first, Values: []string{"waited", "left behind"}, Spans: firstSpans,
					TokenIDs: []int{5, 6, 7}, LogLikelihood: -20, Count: 1, Share: pointer(1), FinalCount: 1},
				{Rank: 10, Text: second, Values: []string{"東京", "sold off"}, Spans: secondSpans,
					TokenIDs: []int{8, 9, 10}, LogLikelihood: -120.123, Count: 1, Share: pointer(1), FinalCount: 1},
			},
			Method: "gibbs",
			Stats: infill.Stats{Slots: 3, Draws: 1, DistinctFills: 1, ModelRows: 4, Device: "cpu", Seconds: 0.01,
				Chains: &infill.ChainStats{Sampler: "gibbs", Energy: "pll", Chains: 1, MeanLogLikelihood: -20}},
			Warnings: []string{"1 fill was asked for"},
		},
		{
			Template: "a [MASK] house", Blanks: [][2]int{{2, 8}}, Model: model, Signature: "method:search",
			Method: infill.MethodSearch,
			Proven: &proven, LeftOutAtMost: pointer(0.0625),
			Fills: []infill.Fill{
				{Rank: 1, Text: "a big house", Values: []string{"big"}, Spans: [][2]int{{2, 5}}, TokenIDs: []int{15},
					LogLikelihood: -1.5, Probability: pointer(0.25), Share: pointer(0.75), Pieces: []int{1}},
				{Rank: 2, Text: "a farm house", Values: []string{"farm"}, Spans: [][2]int{{2, 6}},
					TokenIDs: []int{16, 17}, LogLikelihood: -2.25, Probability: pointer(0.125),
					Share: pointer(0.25), Pieces: []int{2}},
			},
			Alone:    [][]infill.Value{{{Text: "big", TokenID: 15, Probability: 0.25}}},
			Stats:    infill.Stats{Slots: 1, DistinctFills: 3, ModelRows: 9, Device: "cpu", Seconds: 0.25},
			Warnings: []string{},
		},
		{
			Template: "a [MASK]", Blanks: [][2]int{{2, 8}}, Model: model, Signature: "method:draws|seed:4",
			Seed: seedOf(4), Method: infill.MethodDraws,
			Fills: []infill.Fill{{Rank: 1, Text: "a cat", Values: []string{"cat"}, Spans: [][2]int{{2, 5}},
				TokenIDs: []int{14}, LogLikelihood: -1.5, Count: 2, Probability: pointer(0.25)}},
			Stats:    infill.Stats{Slots: 1, Draws: 2, DistinctFills: 1, ModelRows: 1, Device: "cpu", Seconds: 0.1},
			Warnings: []string{},
		},
		{ // tiny probabilities, of a search that was interrupted
			Template: "a [MASK]", Blanks: [][2]int{{2, 8}}, Model: model, Signature: "method:search",
			Method: infill.MethodSearch, Unfinished: true, Proven: &unproven, LeftOutAtMost: pointer(1),
			Fills: []infill.Fill{{Rank: 1, Text: "a cat", Values: []string{"cat"}, Spans: [][2]int{{2, 5}},
				TokenIDs: []int{14}, LogLikelihood: -550, Probability: pointer(2.6e-242)}},
			Alone: [][]infill.Value{{{Text: "cat", Probability: 0.5}}, {{Text: "dog", Probability: 0.25},
				{Text: "cow", Probability: 0.125}}},
			Stats:    infill.Stats{Slots: 1, DistinctFills: 1, ModelRows: 1, Device: "cpu", Seconds: 0.1},
			Warnings: []string{"unfinished: interrupted before the end: nothing left out has more than 1"},
		},
	}
}

func TestFillGoldens(t *testing.T) {
	clitest.Goldens(t, "fill", resultForm(2, true), results(), func(i int) json.RawMessage {
		if i != 1 {
			return nil
		}
		return json.RawMessage(`"my own, id"`)
	})
}

func TestMisspelt(t *testing.T) {
	root := &cobra.Command{Use: "infill", SuggestionsMinimumDistance: 2}
	for _, name := range []string{"score", "doctor", "help"} {
		root.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	for template, want := range map[string]string{
		"scroe":            "did you mean infill score?",
		"docter":           "did you mean infill doctor?",
		"hello":            "",
		"":                 "",
		"he had told me":   "",
		"a score of [UNK]": "",
	} {
		if got := misspelt(root, template); got != want {
			t.Errorf("%q: got %q, want %q", template, got, want)
		}
	}
}
