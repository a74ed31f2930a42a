package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

var kills = flag.Int("kills", 2, "how often TestRunKilled ends a run with SIGKILL")

// TestRunKilled: a run with the model that is ended by SIGKILL at random
// moments, over and over, loses nothing: its output has the bytes of a run that
// was left alone, and there is none before.
func TestRunKilled(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in.txt")
	var text bytes.Buffer
	for i := range 60 * max(1, *kills/4) {
		fmt.Fprintf(&text, "on day %d the [MASK] sat by the fire .\n", i)
	}
	if err := os.WriteFile(in, text.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	command := func(out string) *exec.Cmd {
		cmd := exec.Command("infill", "run", in, "-o", out, "--resume", "-q", "--device", "cpu", "--threads", "1",
			"--jobs", "8")
		cmd.Stderr = os.Stderr
		return cmd
	}
	alone, out := filepath.Join(dir, "alone.jsonl"), filepath.Join(dir, "out.jsonl")
	start := time.Now()
	if err := command(alone).Run(); err != nil {
		t.Fatal(err)
	}
	whole := time.Since(start)
	random := rand.New(rand.NewPCG(1, 2))
	lines := 0 // of the journal at the kills
	for range *kills {
		cmd := command(out)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.Int64N(int64(whole))))
		cmd.Process.Kill()
		cmd.Wait() // "signal: killed", or nil where it was done already
		journal, _ := os.ReadFile(filepath.Join(out+".parts", "00001-of-00001.jsonl"))
		lines = max(lines, bytes.Count(journal, []byte("\n")))
		if _, err := os.Stat(out); err == nil {
			same(t, out, alone)
			os.Remove(out) // done early: begin again
			os.RemoveAll(out + ".parts")
		}
	}
	if err := command(out).Run(); err != nil {
		t.Fatal(err)
	}
	same(t, out, alone)
	t.Logf("%d kills, %v for a run, at most %d lines were done at a kill", *kills, whole, lines)
}

// same tells whether two files have the same bytes, but for their own names.
func same(t *testing.T, path, as string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(as)
	if err != nil {
		t.Fatal(err)
	}
	if want = bytes.ReplaceAll(want, []byte("alone.jsonl"), []byte("out.jsonl")); !bytes.Equal(got, want) ||
		len(got) == 0 {
		t.Errorf("%s has %d bytes that are not the %d of a run left alone", filepath.Base(path), len(got), len(want))
	}
}
