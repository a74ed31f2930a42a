package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"infill/cmd/infill/internal/terminal"
	"infill/internal/check"
)

// The commands that scripts have beside testscript's own.

// alter changes a file:
//
//	alter flip FILE OFFSET      another bit in one byte
//	alter high FILE OFFSET      the highest bit set, so that ASCII is no longer UTF-8
//	alter cut FILE LENGTH       keep the first bytes
//	alter replace FILE OLD NEW  every occurrence, of equal length
func alter(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: alter flip|cut|replace FILE ...")
	}
	path := ts.MkAbs(args[1])
	content, err := os.ReadFile(path)
	ts.Check(err)
	switch args[0] {
	case "flip":
		offset, err := strconv.Atoi(args[2])
		ts.Check(err)
		content[offset] ^= 1
	case "high":
		offset, err := strconv.Atoi(args[2])
		ts.Check(err)
		content[offset] |= 0x80
	case "cut":
		length, err := strconv.Atoi(args[2])
		ts.Check(err)
		content = content[:length]
	case "replace":
		old, replacement := []byte(args[2]), []byte(args[3])
		if len(old) != len(replacement) || !bytes.Contains(content, old) {
			ts.Fatalf("%s does not hold %q, or lengths differ", args[1], old)
		}
		content = bytes.ReplaceAll(content, old, replacement)
	default:
		ts.Fatalf("alter %s is not known", args[0])
	}
	ts.Check(os.Chmod(path, 0o644))
	ts.Check(os.WriteFile(path, content, 0o644))
}

// timing matches the numbers that no two runs share: seconds, in text and in JSON.
var timing = regexp.MustCompile(`("seconds": ?)[0-9.e+-]+|\b[0-9]+\.[0-9]+( s\b)`)

// untimed puts N for them.
func untimed(text string) string { return timing.ReplaceAllString(text, "${1}N${2}") }

// compare is cmp of two outputs but for their timing: compare FILE FILE.
func compare(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: compare FILE FILE")
	}
	a, b := untimed(ts.ReadFile(args[0])), untimed(ts.ReadFile(args[1]))
	if strings.TrimSpace(a) == "" {
		ts.Fatalf("%s is empty: nothing is compared", args[0])
	}
	if (a == b) == neg {
		ts.Fatalf("%s and %s, their timing apart: equal is %t\n%s\n%s", args[0], args[1], a == b, a, b)
	}
}

// near is cmp of an output with stored lines, whose numbers another processor may have written: near FILE FILE.
func near(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: near FILE FILE")
	}
	got, want := ts.ReadFile(args[0]), ts.ReadFile(args[1])
	if !check.SameNumbers(want, got) {
		ts.Fatalf("%s is not as %s\n%s\n%s", args[0], args[1], got, want)
	}
}

func TestFillScripts(t *testing.T) {
	scripts(t, "fill", "formats", "output", "reproducible", "samplers", "stdin", "templates", "terminal")
}

func TestMetricsScripts(t *testing.T) { scripts(t, "metrics") }

func TestEvalScripts(t *testing.T) { scripts(t, "eval") }

func TestRun(t *testing.T) { scripts(t, "run", "slurm") }

func TestAugment(t *testing.T) { scripts(t, "augment") }

func TestStrangers(t *testing.T) { scripts(t, "strangers") }

func TestLines(t *testing.T) { scripts(t, "lines", "tables", "files") }

func TestScoreScripts(t *testing.T) { scripts(t, "score", "gaps") }

func TestSetupScripts(t *testing.T) { scripts(t, "library") }

// called guards the folder of this process, which is that of the script whose command runs.
var called sync.Mutex

// mainOf calls Main in this process with the arguments of a script's command, in the script's
// folder. If the last two are < FILE, it is the standard input.
func mainOf(ts *testscript.TestScript, args []string) int {
	var stdin io.Reader = strings.NewReader("")
	if n := len(args) - 2; n > 0 && args[n] == "<" {
		stdin = strings.NewReader(ts.ReadFile(args[n+1]))
		args = args[:n]
	}
	if args[0] != "infill" {
		ts.Fatalf("%s is not infill: give exec", args[0])
	}
	called.Lock()
	defer called.Unlock()
	folder, err := os.Getwd()
	ts.Check(err)
	ts.Check(os.Chdir(ts.MkAbs(".")))
	defer os.Chdir(folder)
	streams := &terminal.Streams{In: stdin, Out: ts.Stdout(), Err: ts.Stderr()}
	for _, name := range []string{"CLICOLOR_FORCE", "NO_COLOR", "TERM"} {
		streams.Environment = append(streams.Environment, name+"="+ts.Getenv(name))
	}
	return Main(context.Background(), streams, args[1:])
}

// callMain is exec of infill without a process, so that the commands share an open
// model: call infill ARGUMENTS [< FILE].
func callMain(ts *testscript.TestScript, neg bool, args []string) {
	code := mainOf(ts, args)
	if (code != 0) != neg {
		ts.Fatalf("%q ends with code %d", args, code)
	}
}

// exits calls a command that ends with an exit code, as in "exits 2 infill run".
func exits(ts *testscript.TestScript, neg bool, args []string) {
	code := mainOf(ts, args[1:])
	if neg || strconv.Itoa(code) != args[0] {
		ts.Fatalf("%q ends with code %d, want %s", args[1:], code, args[0])
	}
}
