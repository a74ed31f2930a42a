package fill

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/batch"
	"infill/internal/lines"
	"infill/internal/rawjson"
)

var update = flag.Bool("update", false, "write the goldens again")

func pointer(x float64) *float64 { return &x }

func seedOf(n uint64) *uint64 { return &n }

// results are examples for the printers: wide runes, a fill at the very start,
// one of two words, a text longer than a terminal, a sampler without
// acceptance, a single chain.
func results() []*infill.Result {
	long := "日本語 [MASK] and then, after a very long while that nobody had thought possible, they [MASK:2] the old " +
		"house near the river"
	fill := func(a, b string) (string, [][2]int) {
		before, rest, _ := strings.Cut(long, "[MASK]")
		middle, after, _ := strings.Cut(rest, "[MASK:2]")
		text := before + a + middle + b + after
		return text, lines.Characters(text, [][2]int{{len(before), len(before) + len(a)},
			{len(before + a + middle), len(before + a + middle + b)}})
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
					TokenIDs: []int{1, 2}, Tokens: []int{1, 1},
					LogLikelihood: -1.5, Count: 312, Share: pointer(0.4992), ShareError: pointer(0.0171),
					FinalCount: 13},
				{Rank: 2, Text: "She had\n<&>\"'; me", Values: []string{"She", "<&>\"';"},
					Spans: [][2]int{{0, 3}, {8, 14}}, TokenIDs: []int{3, 4}, Tokens: []int{1, 1},
					LogLikelihood: -11.25, Count: 1, Share: pointer(0.0016), ShareError: pointer(0.0016),
					FinalCount: 0},
			},
			Method: "dmala",
			Stats: infill.Stats{Slots: 2, Draws: 625, DistinctFills: 2, ModelRows: 2551, Device: "cpu", Seconds: 0.4217,
				Chains: &infill.ChainStats{Sampler: "dmala", Energy: "pll", Chains: 25, Steps: 50,
					StepSize:       pointer(4.25),
					AcceptanceRate: pointer(0.684), AcceptanceStandardError: pointer(0.0204), ChangedSlotsPerStep: 1.7,
					WarmUp: infill.WarmUpStats{Steps: 25, AcceptanceRate: pointer(0.5),
						ChangedSlotsPerStep: 1.5},
					MeanLogLikelihood: -3.25, MeanLogLikelihoodStandardError: pointer(0.125), EnergyEvaluations: 1275,
					GradientEvaluations: 1275}},
			Warnings: []string{},
		},
		{
			Template: long, Blanks: lines.Characters(long, [][2]int{{10, 16},
				{strings.Index(long, "[MASK:2]"), strings.Index(long, "[MASK:2]") + 8}}), Model: model,
			Signature: "sampler:gibbs|seed:8", Seed: seedOf(8),
			Fills: []infill.Fill{
				{Rank: 1, Text: first, Values: []string{"waited", "left behind"}, Spans: firstSpans,
					TokenIDs: []int{5, 6, 7}, Tokens: []int{1, 2},
					LogLikelihood: -20, Count: 1, Share: pointer(1), FinalCount: 1},
				{Rank: 10, Text: second, Values: []string{"東京", "sold off"}, Spans: secondSpans,
					TokenIDs: []int{8, 9, 10}, Tokens: []int{1, 2},
					LogLikelihood: -120.123, Count: 1, Share: pointer(1), FinalCount: 1},
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
					LogLikelihood: -1.5, Probability: pointer(0.25), Share: pointer(0.75), Tokens: []int{1}},
				{Rank: 2, Text: "a farm house", Values: []string{"farm"}, Spans: [][2]int{{2, 6}},
					TokenIDs: []int{16, 17}, LogLikelihood: -2.25, Probability: pointer(0.125),
					Share: pointer(0.25), Tokens: []int{2}},
			},
			Alone:    [][]infill.Value{{{Text: "big", TokenID: 15, Probability: 0.25}}},
			Stats:    infill.Stats{Slots: 1, Lengths: 2, DistinctFills: 3, ModelRows: 9, Device: "cpu", Seconds: 0.25},
			Warnings: []string{},
		},
		{
			Template: "a [MASK]", Blanks: [][2]int{{2, 8}}, Model: model, Signature: "method:draws|seed:4",
			Seed: seedOf(4), Method: infill.MethodDraws,
			Fills: []infill.Fill{{Rank: 1, Text: "a cat", Values: []string{"cat"}, Spans: [][2]int{{2, 5}},
				TokenIDs: []int{14}, Tokens: []int{1}, LogLikelihood: -1.5, Count: 2, Probability: pointer(0.25)}},
			Stats:    infill.Stats{Slots: 1, Draws: 2, DistinctFills: 1, ModelRows: 1, Device: "cpu", Seconds: 0.1},
			Warnings: []string{},
		},
		{ // tiny probabilities, of a search that was interrupted
			Template: "a [MASK]", Blanks: [][2]int{{2, 8}}, Model: model, Signature: "method:search",
			Method: infill.MethodSearch, Unfinished: true, Proven: &unproven, LeftOutAtMost: pointer(1),
			Fills: []infill.Fill{{Rank: 1, Text: "a cat", Values: []string{"cat"}, Spans: [][2]int{{2, 5}},
				TokenIDs: []int{14}, Tokens: []int{1}, LogLikelihood: -550, Probability: pointer(2.6e-242)}},
			Alone: [][]infill.Value{{{Text: "cat", Probability: 0.5}}, {{Text: "dog", Probability: 0.25},
				{Text: "cow", Probability: 0.125}}},
			Stats:    infill.Stats{Slots: 1, DistinctFills: 1, ModelRows: 1, Device: "cpu", Seconds: 0.1},
			Place:    "before the end",
			Warnings: []string{"unfinished: interrupted before the end: nothing left out has more than 1"},
		},
	}
}

// TestFillGoldens compares results in every form with stored ones, also on a
// narrow terminal; -update writes them.
func TestFillGoldens(t *testing.T) {
	for _, c := range []struct {
		name, format string
		width        int
	}{{"pipe.txt", "text", 0}, {"terminal-40.txt", "text", 40}, {"array.json", "json", 0}, {"rows.csv", "csv", 0}} {
		var out bytes.Buffer
		command := &command{work: batch.Fill{Key: "template"}, model: cli.ModelOptions{Verbose: true}}
		p := &cli.Printer[answer]{Style: command.style(), Format: c.format, Streams: &terminal.Streams{
			Out: &out, OutTerminal: c.width > 0, Width: c.width, Environment: []string{"TERM=xterm"}}}
		for i, r := range results() {
			var of rawjson.Object
			if i == 1 {
				of = rawjson.Object{{Key: "id", Value: rawjson.Quote("my own, id")}}
			}
			copied := command.work.Copied(of, batch.Form(c.format))
			if err := p.Print(answer{result: r, work: &command.work, copied: copied}); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.End(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "golden", "fill-"+c.name)
		if *update {
			if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if diff := cmp.Diff(string(want), out.String()); err != nil || diff != "" {
			t.Errorf("%s: %v, %s", path, err, diff)
		}
		for line := range strings.Lines(out.String()) {
			if w := ansi.StringWidth(line); c.width > 0 && w > c.width {
				t.Errorf("%d columns on a terminal of %d: %q", w, c.width, line)
			}
		}
	}
}
