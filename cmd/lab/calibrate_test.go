package main

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
)

const calibrationText = `the old man opened the door of his house and went in .
she said that it was too late to go home by the last train .
they came to the river , and the boat was not there .
he gave her the book , and she read it in the garden .
it is @@UNKNOWN@@
we had a good time at the party in the house of my father .
`

// Over two blanks every joint sums to one, the chain rule is what the model's rows
// say, and the whole vocabulary's nats are its own.
func TestJointsOfTwoBlanks(t *testing.T) {
	ctx := context.Background()
	model, err := openLanguage(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	masked, err := model.maskings("tales", calibrationText, 5, rand.New(rand.NewPCG(1, 0)))
	if err != nil {
		t.Fatal(err)
	}
	if want := 5 * len(maskingKinds()); len(masked) != want {
		t.Fatalf("%d maskings, want %d", len(masked), want)
	}
	kinds := len(maskingKinds())
	o := calibrateOptions{candidates: 30, drawings: 16, seed: 1}
	var all []*cell
	for at := 0; at < len(masked); at += kinds {
		cells, err := model.cells(ctx, masked[at:at+kinds], o)
		if err != nil {
			t.Fatal(err)
		}
		if n := cells[0].Nats; math.Abs(n[0]-n[1]) > 1e-4 || math.Abs(n[1]-n[2]) > 1e-4 || math.Abs(n[3]-n[1]) > 1e-4 {
			t.Errorf("one blank has the nats %v", n)
		}
		m := masked[at+1]
		if m.slots[1] != m.slots[0]+1 {
			t.Errorf("side by side: slots %v", m.slots)
		}
		// Left to right: the first with both masked, the second with the first there.
		both, err := model.MaskedLogProbabilities(ctx, m.ids, m.slots)
		if err != nil {
			t.Fatal(err)
		}
		last, err := model.MaskedLogProbabilities(ctx, m.ids, m.slots[1:])
		if err != nil {
			t.Fatal(err)
		}
		want := -float64(both[0][m.ids[m.slots[0]]]) - float64(last[0][m.ids[m.slots[1]]])
		if math.Abs(cells[1].Nats[1]-want) > 1e-3 {
			t.Errorf("left to right %v nats, want %v", cells[1].Nats[1], want)
		}
		for _, c := range cells[1:] {
			if c.Scored.Truth >= 0 {
				all = append(all, c)
			}
		}
	}
	if !slices.ContainsFunc(all, func(c *cell) bool { return c.Scored.exact() }) ||
		!slices.ContainsFunc(all, func(c *cell) bool { return !c.Scored.exact() }) {
		t.Fatalf("%d maskings have true words among the candidates", len(all))
	}
	for _, c := range all {
		s := c.Scored
		if s.exact() && len(s.Energy) != 900 {
			t.Errorf("%d fills of 30² were scored", len(s.Energy))
		}
		for _, j := range joints(all) {
			logp := j.logp(s)
			if logp == nil {
				if s.exact() {
					t.Errorf("%s has no probabilities", j.name)
				}
				continue
			}
			for _, l := range logp {
				if math.IsNaN(l) {
					t.Fatalf("%s: NaN", j.name)
				}
			}
			if total := floats.LogSumExp(logp); s.exact() && math.Abs(total) > 1e-6 {
				t.Errorf("%s sums to %v", j.name, math.Exp(total))
			}
		}
	}
	if _, err := model.maskings("tales", calibrationText, 6, rand.New(rand.NewPCG(1, 0))); err == nil {
		t.Error("6 sentences were asked for, and 5 can be taken")
	}
}

// The whole command, small; wrong calls are reported.
func TestCalibrate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tales.txt")
	if err := os.WriteFile(path, []byte(calibrationText), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, messages strings.Builder
	cells := filepath.Join(t.TempDir(), "cells")
	args := []string{"calibrate", "--corpus", "tales=" + path, "--sentences", "5", "--candidates", "12", "--draws", "4",
		"--cells", cells}
	if code := run(t.Context(), args, &out, &messages); code != 0 {
		t.Fatalf("exit %d: %s", code, messages.String())
	}
	// What a kill leaves is gone on from, and gives the same.
	kept, err := filepath.Glob(filepath.Join(cells, "cells", "*.json"))
	if err != nil || len(kept) != 5 {
		t.Fatal(kept, err)
	}
	want, err := os.ReadFile(kept[4])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(kept[4]); err != nil {
		t.Fatal(err)
	}
	var again strings.Builder
	if code := run(t.Context(), args, &again, &messages); code != 0 || again.String() != out.String() {
		t.Errorf("exit %d: %s\n%s\ninstead of\n%s", code, messages.String(), again.String(), out.String())
	}
	if after, err := os.ReadFile(kept[4]); err != nil || !slices.Equal(after, want) {
		t.Errorf("%v: %d bytes were kept, and %d the first time", err, len(after), len(want))
	}
	for _, want := range []string{"| tales | 5 |", "| tales | 2, side by side |", "pll, T = ", "## Calibration",
		"Signature: `lab:calibrate|model:", "|corpus:tales@"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	for want, args := range map[string][]string{
		"give --corpus":       {"calibrate"},
		"write NAME=FILE":     {"calibrate", "--corpus", "tales"},
		"more than one model": {"calibrate", "a", "b", "--corpus", "tales=" + path},
		"whole number from 2": {"calibrate", "--corpus", "tales=" + path, "--draws", "1"},
		"another experiment":  {"calibrate", "--corpus", "tales=" + path, "--sentences", "5", "--cells", cells},
		"5 sentences have":    {"calibrate", "--corpus", "tales=" + path},
	} {
		messages.Reset()
		if code := run(t.Context(), args, &out, &messages); code == 0 || !strings.Contains(messages.String(), want) {
			t.Errorf("%v: exit %d, %q", args, code, messages.String())
		}
	}
}
