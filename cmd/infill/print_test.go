package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
)

func pointer(x float64) *float64 { return &x }

// results are what the printers are tried on: wide runes, a fill at the very
// start, one of two words, a text longer than a terminal, a sampler without
// acceptance, a single chain.
func results() []*infill.Result {
	long := "日本語 [MASK] and then, after a very long while that nobody had thought possible, they [MASK:2] the old house near the river"
	fill := func(a, b string) (string, [][2]int) {
		before, rest, _ := strings.Cut(long, "[MASK]")
		middle, after, _ := strings.Cut(rest, "[MASK:2]")
		text := before + a + middle + b + after
		return text, [][2]int{{len(before), len(before) + len(a)}, {len(before + a + middle), len(before + a + middle + b)}}
	}
	first, firstSpans := fill("waited", "left behind")
	second, secondSpans := fill("東京", "sold off")
	model := infill.ModelInfo{Name: "toy", SHA256: "abc"}
	return []*infill.Result{
		{
			Template: "[MASK] had\n[MASK] me", Blanks: [][2]int{{0, 6}, {11, 17}}, Model: model, Signature: "sampler:dmala|seed:7", Seed: 7,
			Fills: []infill.Fill{
				{Rank: 1, Text: "He had\ntold me", Values: []string{"He", "told"}, Spans: [][2]int{{0, 2}, {7, 11}}, TokenIDs: []int{1, 2},
					LogLikelihood: -1.5, Count: 312, Frequency: 0.4992, FrequencyStandardError: pointer(0.0171), FinalCount: 13},
				{Rank: 2, Text: "She had\n<&>\"'; me", Values: []string{"She", "<&>\"';"}, Spans: [][2]int{{0, 3}, {8, 14}}, TokenIDs: []int{3, 4},
					LogLikelihood: -11.25, Count: 1, Frequency: 0.0016, FrequencyStandardError: pointer(0.0016), FinalCount: 0},
			},
			Stats: infill.Stats{
				Sampler: "dmala", Slots: 2, Chains: 25, Steps: 50, StepSize: pointer(4.25), AcceptanceRate: pointer(0.684), AcceptanceStandardError: pointer(0.0204),
				ChangedSlotsPerStep: 1.7, WarmUp: infill.WarmUp{Steps: 25, AcceptanceRate: pointer(0.5), ChangedSlotsPerStep: 1.5}, Draws: 625, DistinctFills: 2,
				MeanLogLikelihood: -3.25, MeanLogLikelihoodStandardError: pointer(0.125), EnergyEvaluations: 1275, GradientEvaluations: 1275, ModelRows: 2551, Device: "cpu", Seconds: 0.4217,
			},
			Warnings: []string{},
		},
		{
			Template: long, Blanks: [][2]int{{10, 16}, {strings.Index(long, "[MASK:2]"), strings.Index(long, "[MASK:2]") + 8}}, Model: model, Signature: "sampler:gibbs|seed:8", Seed: 8,
			Fills: []infill.Fill{
				{Rank: 1, Text: first, Values: []string{"waited", "left behind"}, Spans: firstSpans, TokenIDs: []int{5, 6, 7}, LogLikelihood: -20, Count: 1, Frequency: 1, FinalCount: 1},
				{Rank: 10, Text: second, Values: []string{"東京", "sold off"}, Spans: secondSpans, TokenIDs: []int{8, 9, 10}, LogLikelihood: -120.123, Count: 1, Frequency: 1, FinalCount: 1},
			},
			Stats:    infill.Stats{Sampler: "gibbs", Slots: 3, Chains: 1, Steps: 0, Draws: 1, DistinctFills: 1, MeanLogLikelihood: -20, ModelRows: 4, Device: "cpu", Seconds: 0.01},
			Warnings: []string{"1 fill was asked for"},
		},
		{
			Template: "a [MASK:1-2] house", Blanks: [][2]int{{2, 12}}, Model: model, Signature: "lengths:word-l2r|sampler:dmala|seed:9", Seed: 9,
			Fills: []infill.Fill{
				{Rank: 1, Text: "a red house", Values: []string{"red"}, Spans: [][2]int{{2, 5}}, TokenIDs: []int{11}, LogLikelihood: -3.5, Pieces: []int{1}, Score: pointer(-3.5),
					Count: 50, Frequency: 0.5, FrequencyStandardError: pointer(0.02), FinalCount: 3},
				{Rank: 2, Text: "a dark blue house", Values: []string{"dark blue"}, Spans: [][2]int{{2, 11}}, TokenIDs: []int{12, 13}, LogLikelihood: -7.25, Pieces: []int{2}, Score: pointer(-3.625),
					Count: 25, Frequency: 0.25, FrequencyStandardError: pointer(0.01), FinalCount: 1},
			},
			Stats: infill.Stats{
				Mode: infill.ModeSample, Sampler: "dmala", Slots: 2, Chains: 4, Steps: 50, AcceptanceRate: pointer(0.5), AcceptanceStandardError: pointer(0.25),
				WarmUp: infill.WarmUp{Steps: 25}, Ladder: []float64{1, 2.5}, Draws: 200, DistinctFills: 9, MeanLogLikelihood: -6, ModelRows: 99, Device: "cpu", Seconds: 0.5,
				Lengths: []infill.LengthStats{
					{Pieces: []int{1}, StepSize: pointer(5), SwapRates: []float64{0.75}, Draws: 100, DistinctFills: 4, MeanLogLikelihood: -4},
					{Pieces: []int{2}, StepSize: pointer(2), SwapRates: []float64{0.5}, Draws: 100, DistinctFills: 5, MeanLogLikelihood: -8},
				},
			},
			Warnings: []string{},
		},
		{
			Template: "a [MASK]", Blanks: [][2]int{{2, 8}}, Model: model, Signature: "mode:best|sampler:gwg|seed:3", Seed: 3,
			Fills: []infill.Fill{{Rank: 1, Text: "a cat", Values: []string{"cat"}, Spans: [][2]int{{2, 5}}, TokenIDs: []int{14}, LogLikelihood: -1, Count: 7, FinalCount: 2}},
			Stats: infill.Stats{Mode: infill.ModeBest, Sampler: "gwg", Law: infill.NoLaw, Slots: 1, Chains: 2, Steps: 9, AcceptanceRate: pointer(0.5),
				ChangedSlotsPerStep: 0.5, Draws: 20, DistinctFills: 6, MeanLogLikelihood: -2, ModelRows: 1, Device: "cpu", Seconds: 0.1},
			Warnings: []string{},
		},
	}
}

func scores() []*infill.Score {
	return []*infill.Score{{
		Text: "Hello 日本 !", LogLikelihood: -12.5, Method: "l2r", PseudoPerplexity: 64.5, Signature: "method:l2r", Model: infill.ModelInfo{Name: "toy", SHA256: "abc"},
		Tokens: []infill.TokenScore{{Token: "hello", ID: 7592, LogProb: -6.125, Span: [2]int{0, 5}}, {Token: "日", ID: 5, LogProb: -6, Span: [2]int{6, 9}}, {Token: "[UNK]", ID: 1, LogProb: -0.375, Span: [2]int{9, 12}}},
	}}
}

func findings() []finding {
	return []finding{
		{Check: "program", Status: statusGood, Detail: "infill 1.0"},
		{Check: "cache folder", Status: statusBad, Detail: "mkdir /x: read-only\nfile system", Mend: "set INFILL_CACHE"},
		{Check: "CUDA", Status: statusNote, Detail: "not usable: \x1b[2Jno driver"},
		{Check: "onnxruntime", Status: statusMissing, Detail: "none"},
	}
}

// golden compares with testdata/golden/NAME; -update writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: go test ./cmd/infill -update writes it", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: %s", path, diff)
	}
}

// terminalOf is a terminal of the given width, 0 for a pipe.
func terminalOf(out *bytes.Buffer, width int) *terminal.Streams {
	return &terminal.Streams{Out: out, OutTerminal: width > 0, Width: width, Environment: []string{"TERM=xterm"}}
}

func TestPrintGoldens(t *testing.T) {
	tests := []struct {
		name, format string
		width        int
	}{
		{"pipe.txt", "text", 0},
		{"terminal-40.txt", "text", 40},
		{"terminal-80.txt", "text", 80},
		{"terminal-200.txt", "text", 200},
		{"array.json", "json", 0},
		{"lines.jsonl", "jsonl", 0},
		{"rows.csv", "csv", 0},
	}
	for _, test := range tests {
		t.Run("fill "+test.name, func(t *testing.T) {
			var out bytes.Buffer
			p := newResultPrinter(test.format, terminalOf(&out, test.width))
			for i, r := range results() {
				id := json.RawMessage(nil)
				if i == 1 {
					id = json.RawMessage(`"my own, id"`)
				}
				if err := p.print(id, r); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.end(); err != nil {
				t.Fatal(err)
			}
			checkShape(t, out.String(), test.format, test.width)
			golden(t, "fill-"+test.name, out.Bytes())
		})
		t.Run("score "+test.name, func(t *testing.T) {
			var out bytes.Buffer
			p := newScorePrinter(test.format, terminalOf(&out, test.width))
			for _, s := range scores() {
				if err := p.print(json.RawMessage(`7`), s); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.end(); err != nil {
				t.Fatal(err)
			}
			checkShape(t, out.String(), test.format, test.width)
			golden(t, "score-"+test.name, out.Bytes())
		})
	}
	for _, test := range tests[:5] {
		if test.width == 40 || test.width == 200 {
			continue
		}
		t.Run("doctor "+test.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := printFindings(terminalOf(&out, test.width), test.format, findings()); err != nil {
				t.Fatal(err)
			}
			golden(t, "doctor-"+test.name, out.Bytes())
		})
	}
}

// checkShape holds every output to what is true whatever it shows: goldens are
// easily updated.
func checkShape(t *testing.T, text, format string, width int) {
	t.Helper()
	switch format {
	case "json":
		if !json.Valid([]byte(text)) {
			t.Error("not JSON")
		}
	case "jsonl":
		for line := range strings.Lines(text) {
			if !json.Valid([]byte(line)) {
				t.Errorf("not JSON: %s", line)
			}
		}
	case "text":
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if w := ansi.StringWidth(line); width > 0 && w > width {
				t.Errorf("%d columns on a terminal of %d: %q", w, width, line)
			}
			if strings.TrimRight(ansi.Strip(line), " ") != ansi.Strip(line) {
				t.Errorf("blanks at the end of %q", line)
			}
			if width == 0 && strings.ContainsRune(line, '\x1b') {
				t.Errorf("an escape sequence in a pipe: %q", line)
			}
		}
	}
}

func TestEmptyArray(t *testing.T) {
	var out bytes.Buffer
	if err := newResultPrinter("json", &terminal.Streams{Out: &out}).end(); err != nil || out.String() != "[]\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

// failing is a writer on a full disk.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space") }

// TestPrintersTellErrors: no printer loses the error of its writer.
func TestPrintersTellErrors(t *testing.T) {
	for _, format := range formats() {
		s := &terminal.Streams{Out: failing{}}
		if newResultPrinter(format, s).print(nil, results()[0]) == nil {
			t.Errorf("fill, %s: no error", format)
		}
		if newScorePrinter(format, s).print(nil, scores()[0]) == nil {
			t.Errorf("score, %s: no error", format)
		}
	}
	for _, format := range []string{"text", "json"} {
		if printFindings(&terminal.Streams{Out: failing{}}, format, findings()) == nil {
			t.Errorf("doctor, %s: no error", format)
		}
	}
}
