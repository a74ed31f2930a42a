//go:build unix

package main

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"infill/cmd/infill/internal/cli"
)

// killedRun is a run that takes a second or two: long enough to be killed in.
func killedRun(t *testing.T, dir string) []string {
	t.Helper()
	texts := t.TempDir()
	garden := "the roses in the garden need water every evening .\na blackbird sang on the wall before the rain came " +
		".\nmy aunt planted beans along the southern fence .\nnobody had opened the old gate for many years .\n"
	if err := os.WriteFile(filepath.Join(texts, "garden.txt"), []byte(garden), 0o666); err != nil {
		t.Fatal(err)
	}
	return []string{
		"eval", "-q", "--device", "cpu", "--corpus", "garden=" + filepath.Join(texts, "garden.txt"), "--sentences", "3",
		"--samplers", "gibbs,gwg,dmala", "-n", "5", "-k", "3", "--steps", "8", "-o", dir,
	}
}

// TestKill: a process that is killed without a word, again and again, at moments
// drawn with a seed, comes to the same metrics.json as one that is left alone.
func TestKill(t *testing.T) {
	alone := t.TempDir()
	if out, err := exec.Command("infill", killedRun(t, alone)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want, err := os.ReadFile(filepath.Join(alone, "metrics.json"))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(20, 26))
	dir := t.TempDir()
	args := killedRun(t, dir)
	kills, most := 0, 0
	for done := false; !done; {
		cmd := exec.Command("infill", args...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Later and later, so that every moment has its turn and the end is
		// reached on a slow machine too.
		wait := time.Duration(random.IntN(400*(kills+1))) * time.Millisecond
		killer := time.AfterFunc(wait, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		killer.Stop()
		var exit *exec.ExitError
		switch {
		case err == nil:
			done = true
		case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
			kills++
		default:
			t.Fatalf("after %d kills: %v: %s", kills, err, out.String())
		}
		if samples, err := os.ReadFile(filepath.Join(dir, "samples.jsonl")); err == nil {
			lines := bytes.Count(samples, []byte("\n"))
			if lines < most {
				t.Fatalf("%d samples, %d were there", lines, most)
			}
			most = lines
		}
		if kills > 200 {
			t.Fatal("killed 200 times, and no end")
		}
	}
	if kills == 0 {
		t.Fatal("the process ended before it could be killed: nothing was tested")
	}
	got, err := os.ReadFile(filepath.Join(dir, "metrics.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("after %d kills metrics.json differs", kills)
	}
	t.Logf("killed %d times", kills)
}

// TestInterruptedEval: Ctrl-C gives exit code 130 and leaves a folder that goes on.
func TestInterruptedEval(t *testing.T) {
	dir := t.TempDir()
	args := append(killedRun(t, dir), "--steps", "100000")
	args[1] = "-v"
	p := start(t, args...)
	p.await(t, "infill: model ")
	time.Sleep(200 * time.Millisecond)
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	code, stderr := p.end(t)
	if code != cli.ExitInterrupted ||
		!strings.Contains(stderr, "the same command goes on with it\ninfill: interrupted\n") {
		t.Errorf("exit code %d, standard error %q", code, stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "run.json")); err != nil {
		t.Error(err)
	}
}
