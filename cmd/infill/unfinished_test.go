package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/models"
	"infill/tokenize"
)

// An interrupted run shows the likeliest fills that it met, each once, and says that it is unfinished.
func TestUnfinished(t *testing.T) {
	bundle, err := models.Open("")
	if err != nil {
		t.Fatal(err)
	}
	tokenizer, err := tokenize.Load(bundle.FS())
	if err != nil {
		t.Fatal(err)
	}
	const text = "he had [MASK] me"
	ids := func(word string) int {
		e, err := tokenizer.Encode(word)
		if err != nil {
			t.Fatal(err)
		}
		return e.IDs[1]
	}
	u := &unfinished{}
	u.observe(infill.Progress{Template: text, Step: 0, Steps: 50, Pieces: []int{1}, TokenIDs: []int{ids("seen"), ids("told")}, LogLikelihoods: []float64{-3, -1.5}})
	u.observe(infill.Progress{Template: text, Step: 1, Steps: 50, Pieces: []int{1}, TokenIDs: []int{ids("told"), ids("left")}, LogLikelihoods: []float64{-1.5, math.NaN()}})
	var out bytes.Buffer
	if err := u.print(&terminal.Streams{Out: &out}, tokenizer, text, 5); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	told, seen := strings.Index(got, "he had told me"), strings.Index(got, "he had seen me")
	if told < 0 || seen < told || strings.Count(got, "told") != 1 || strings.Contains(got, "left") || !strings.Contains(got, "unfinished: interrupted at step 1 of 50") {
		t.Errorf("%s", got)
	}
	out.Reset()
	if err := (&unfinished{}).print(&terminal.Streams{Out: &out}, tokenizer, text, 5); err != nil || out.Len() > 0 {
		t.Errorf("of nothing: %q, %v", out.String(), err)
	}
}

// An interrupted fill of the default prints the best by then in every format, marked as unfinished, and JSON stays whole.
func TestInterruptedFormats(t *testing.T) {
	p := 0.25
	u := &unfinished{}
	u.observe(infill.Progress{Step: 1, Steps: 2, Answer: func() *infill.Result {
		return &infill.Result{Format: 2, Template: "a [MASK]", Method: infill.MethodImportance, Blanks: [][2]int{{2, 8}},
			Fills: []infill.Fill{{Rank: 1, Text: "a cat", Values: []string{"cat"}, Spans: [][2]int{{2, 5}}, Probability: &p}}}
	}})
	r := u.result()
	for format, want := range map[string]string{"json": `"unfinished": true`, "jsonl": `"unfinished":true`, "csv": ",true,cat"} {
		var out bytes.Buffer
		printer := &resultPrinter{printer[*infill.Result]{form: resultForm(1, false), format: format, streams: &terminal.Streams{Out: &out}}}
		if err := errors.Join(printer.room(r, format), printer.print(nil, r), printer.end()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) || format != "csv" && !json.Valid(out.Bytes()) {
			t.Errorf("%s: %s", format, out.String())
		}
	}
	if (&unfinished{}).result() != nil {
		t.Error("a result of nothing")
	}
}
