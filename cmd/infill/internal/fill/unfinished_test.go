package fill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/batch"
)

// A command that ends early leaves the JSON of what it printed whole, and
// prints nothing where it printed nothing.
func TestWhole(t *testing.T) {
	var out bytes.Buffer
	p := &cli.Printer[int]{Format: "json", Streams: &terminal.Streams{Out: &out}}
	if err := p.Whole(context.Canceled); err != context.Canceled || out.Len() > 0 {
		t.Fatal(err, out.String())
	}
	if err := errors.Join(p.Print(1), p.Print(2)); err != nil {
		t.Fatal(err)
	}
	if err := p.Whole(context.Canceled); err != context.Canceled || !json.Valid(out.Bytes()) {
		t.Error(err, out.String())
	}
	whole := out.String()
	if err := p.Whole(p.End()); err != nil || out.String() != whole {
		t.Error(err, out.String())
	}
}

// An interrupted fill prints what was found by then in every format, marked as
// unfinished, and JSON stays whole: of the default with probabilities or
// without, and of chains.
func TestInterruptedFormats(t *testing.T) {
	p := 0.25
	const why = "unfinished: interrupted at step 3 of 50"
	for name, r := range map[string]*infill.Result{
		"found": {Method: infill.MethodSearch, Proven: new(bool), LeftOutAtMost: &p,
			Fills: []infill.Fill{{Probability: &p}}},
		"chains": {Method: "dmala", Fills: []infill.Fill{{Share: &p}},
			Stats: infill.Stats{Chains: &infill.ChainStats{Sampler: "dmala", Steps: 3}}},
	} {
		r.Format, r.Template, r.Unfinished, r.Blanks, r.Warnings = 5, "a [MASK]", true, [][2]int{{2, 8}},
			[]string{"all of it", why}
		r.Fills[0].Rank, r.Fills[0].Text, r.Fills[0].Values, r.Fills[0].Spans = 1, "a cat", []string{"cat"},
			[][2]int{{2, 5}}
		r.Place = "at step 3 of 50"
		for format, want := range map[string]string{"json": `"unfinished": true`, "jsonl": `"unfinished":true`,
			"csv": ",true,\"[", "text": "\n" + why + "\n"} {
			var out bytes.Buffer
			command := &command{work: batch.Fill{Key: "template"}}
			printer := &cli.Printer[answer]{Style: command.style(), Format: format,
				Streams: &terminal.Streams{Out: &out}}
			a := answer{result: r, work: &command.work, copied: command.work.Copied(nil, batch.Form(format))}
			if err := errors.Join(printer.Print(a), printer.End()); err != nil {
				t.Fatal(err)
			}
			got := out.String()
			if !strings.Contains(got, want) || !strings.Contains(got, "a cat") ||
				strings.HasPrefix(format, "json") && !json.Valid(out.Bytes()) {
				t.Errorf("%s, %s: %s", name, format, got)
			}
			if format == "text" && strings.Contains(got, "probability") != (name == "found") {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}
