package score

import (
	"context"
	"encoding/json"
	"testing"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/clitest"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
)

func TestScoreFlags(t *testing.T) {
	defaults := scoreOptions{method: "l2r", columns: []string{"first", "second"},
		InputOptions: cli.InputOptions{Key: "text", Input: "lines", Format: "text"},
		ModelOptions: cli.ModelOptions{Device: "auto"}}
	tests := []struct {
		line   string
		change func(o *scoreOptions)
		want   string
	}{
		{line: `"a text"`,
			change: func(o *scoreOptions) { o.Texts = []string{"a text"} }},
		{line: `--method original --format json --input jsonl -m DIR`,
			change: func(o *scoreOptions) {
				o.method, o.Format, o.Input, o.Model = "original", "json", "jsonl",
					"DIR"
			}},
		{line: `--pairs --columns a "x\ty"`, want: `--columns: "a" is not two names with a comma between them`},
		{line: `--method salazar`,
			want: `--method: "salazar" is not one of l2r, original`},
		{line: `--format yaml`, want: `--format: "yaml" is not one of text, json, jsonl, csv`},
		{line: `--seed 1`, want: `unknown flag: --seed`},
	}
	for _, test := range tests {
		t.Run(test.line, func(t *testing.T) {
			var got *scoreOptions
			cmd := NewCmd(&terminal.Streams{}, func(_ context.Context, o *scoreOptions) error { got = o; return nil })
			err := clitest.Parse(t, cmd, test.line)
			if test.want != "" {
				clitest.CheckUsage(t, err, test.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := defaults
			test.change(&want)
			clitest.CompareOptions(t, want, *got)
		})
	}
}

func scores() []*infill.Score {
	return []*infill.Score{{
		Text: "Hello 日本 !", LogLikelihood: -12.5, Method: "l2r", PseudoPerplexity: 64.5, Signature: "method:l2r",
		Model: infill.Model{Name: "toy", SHA256: "abc"},
		Tokens: []infill.TokenScore{{Token: "hello", ID: 7592, LogProb: -6.125, Span: [2]int{0, 5}},
			{Token: "日", ID: 5, LogProb: -6, Span: [2]int{6, 9}},
			{Token: "[UNK]", ID: 1, LogProb: -0.375, Span: [2]int{9, 12}}},
	}}
}

func TestScoreGoldens(t *testing.T) {
	clitest.Goldens(t, "score", scoreForm(true), scores(), func(int) json.RawMessage { return json.RawMessage(`7`) })
}
