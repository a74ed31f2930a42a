//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/tokenize"
)

// process is a running `infill`: signals and pipes need a real one.
type process struct {
	*exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stdout io.ReadCloser
	errors *watched
}

// watched gathers standard error and tells when it holds a text.
type watched struct {
	bytes.Buffer
	lines chan string
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	cmd := exec.Command("infill", args...)
	p := &process{Cmd: cmd, errors: &watched{lines: make(chan string, 64)}}
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if p.stdout, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(p.stdout)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	go func() {
		defer close(p.errors.lines)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			p.errors.lines <- lines.Text()
		}
	}()
	return p
}

// await reads standard error up to a line with the given start.
func (p *process) await(t *testing.T, prefix string) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		select {
		case line, open := <-p.errors.lines:
			if !open {
				t.Fatalf("standard error ended without %q: %q", prefix, p.errors.String())
			}
			fmt.Fprintln(p.errors, line)
			if strings.HasPrefix(line, prefix) {
				return
			}
		case <-deadline:
			t.Fatalf("no %q on standard error: %q", prefix, p.errors.String())
		}
	}
}

// end waits for the process and returns its exit code and standard error.
func (p *process) end(t *testing.T) (code int, stderr string) {
	t.Helper()
	for line := range p.errors.lines {
		fmt.Fprintln(p.errors, line)
	}
	err := p.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.ProcessState.ExitCode(), p.errors.String()
}

// TestInterrupt: Ctrl-C and SIGTERM in mid-run give exit code 130 and one line, no
// trace, and end a running model call.
func TestInterrupt(t *testing.T) {
	// So many steps that the run cannot end by itself.
	const forever = "1000000"
	interrupted := regexp.MustCompile(`\ninfill: interrupted\n$`)
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			p := start(t, "-v", "--device", "cpu", "--sampler", "dmala", "--steps", forever, "--candidates", "0",
				"he had not , after all , [MASK] me the chance but [MASK] abandoned me [MASK] .")
			p.await(t, "infill: model ")
			// The chains are on their way by then, or the model is being loaded.
			time.Sleep(300 * time.Millisecond)
			if err := p.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			code, stderr := p.end(t)
			if code != cli.ExitInterrupted || !interrupted.MatchString(stderr) ||
				strings.Contains(stderr, "goroutine") {
				t.Errorf("exit code %d, standard error %q", code, stderr)
			}
		})
	}
	t.Run("of the default, in JSON", func(t *testing.T) {
		// So large a budget that the run cannot end by itself.
		p := start(t, "--device", "cpu", "--seed", "1", "--format", "json", "--budget", "100000000", "--top", "10000",
			"the [MASK] and the [MASK] went to the [MASK] .")
		time.Sleep(1500 * time.Millisecond)
		if err := p.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		out, err := io.ReadAll(p.out)
		if err != nil {
			t.Fatal(err)
		}
		code, stderr := p.end(t)
		if code != cli.ExitInterrupted || !strings.HasSuffix(stderr, "infill: interrupted\n") ||
			len(out) > 0 && !(json.Valid(out) && strings.Contains(string(out), `"unfinished": true`)) {
			t.Errorf("exit code %d, standard error %q, output %s", code, stderr, out)
		}
	})
	t.Run("waiting for a line", func(t *testing.T) {
		p := start(t, "--format", "jsonl", "--sampler", "dmala", "-n", "2", "--steps", "2", "-k", "1")
		if _, err := io.WriteString(p.in, "he had [MASK] me\n"); err != nil {
			t.Fatal(err)
		}
		// The answer comes before the input ends.
		line, err := p.out.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, `{"format":5,"template":"he had [MASK] me"`) {
			t.Fatalf("got %q, %v", line, err)
		}
		if err := p.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		code, stderr := p.end(t)
		if code != cli.ExitInterrupted || stderr != "infill: interrupted\n" {
			t.Errorf("exit code %d, standard error %q", code, stderr)
		}
	})
}

// TestInterruptAtWork: a signal ends what answers lines, also while it works at several
// that would take a minute, with exit code 130.
func TestInterruptAtWork(t *testing.T) {
	const template = `{"template":"the [MASK] [MASK] [MASK] [MASK] [MASK] [MASK] .","budget":20000}`
	begin := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}` + "\n"
	for _, c := range []struct{ command, begin, line string }{
		{"mcp", begin, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"fill","arguments":` + template +
			"}}\n"},
		{"serve --pipe", `{"id":0,"path":"/v1/models","method":"GET"}` + "\n", `{"id":%d,"path":"/v1/fill","body":` +
			template + "}\n"},
	} {
		t.Run(c.command, func(t *testing.T) {
			p := start(t, append(strings.Fields(c.command), "--device", "cpu")...)
			_, err := io.WriteString(p.in, c.begin)
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.out.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			for i := range 20 {
				fmt.Fprintf(p.in, c.line, i+1)
			}
			time.Sleep(time.Second)
			began := time.Now()
			err = p.Process.Signal(syscall.SIGTERM)
			if err != nil {
				t.Fatal(err)
			}
			code, stderr := p.end(t)
			if code != cli.ExitInterrupted || stderr != "infill: interrupted\n" || time.Since(began) > 10*time.Second {
				t.Errorf("after %v exit code %d, standard error %q", time.Since(began), code, stderr)
			}
		})
	}
}

// TestClosedOutput: a reader that has seen enough, as `infill | head -1`, ends the
// command quietly.
func TestClosedOutput(t *testing.T) {
	p := start(t, "-q", "--format", "jsonl", "--sampler", "dmala", "-n", "2", "--steps", "2")
	go func() {
		defer p.in.Close()
		for range 10000 {
			if _, err := io.WriteString(p.in, "he had [MASK] me\n"); err != nil {
				return // the command has ended
			}
		}
	}()
	if _, err := p.out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := p.stdout.Close(); err != nil {
		t.Fatal(err)
	}
	if code, stderr := p.end(t); code != cli.ExitDone || stderr != "" {
		t.Errorf("exit code %d, standard error %q", code, stderr)
	}
}

// TestBadInput is the list of issue 2 as far as it concerns texts: one line, exit
// code 2, nothing on standard output, and onnxruntime never looked for.
func TestBadInput(t *testing.T) {
	t.Setenv("INFILL_ONNXRUNTIME", "/nonexistent/so-that-a-use-fails")
	ownModels(t)
	tests := []struct{ name, template, want string }{
		{"no slot", "he had told me", "infill: no blank in the template: write [MASK] or ___ where a word is wanted\n"},
		{"lower case", "he had [mask] me", "infill: no blank in the template: \"[mask]\" at byte offset 7 is not " +
			"one; write [MASK] or ___ where a word is wanted, or give --blank \"[mask]\"\n"},
		{"only slots", "[MASK] [MASK]",
			"infill: nothing but blanks in the template: add at least one word around them\n"},
		{"empty", "", "infill: no text: the text is empty or only white space\n"},
		{"blank", " \t\n", "infill: no text: the text is empty or only white space\n"},
		{"too long", strings.Repeat("the ", 300000) + "[MASK]",
			"infill: text too long: 1200006 bytes, at most 1048576 are taken; give one chapter at a time\n"},
		{"a megabyte", strings.Repeat("a", 1<<20) + " [MASK]", fmt.Sprintf("infill: text too long: 1048583 bytes, at "+
			"most %d are taken; give one chapter at a time\n", tokenize.MaxText)},
		{"invalid UTF-8", "he \xff [MASK]",
			"infill: text is not valid UTF-8 at byte offset 3: byte 0xff; convert the text to UTF-8\n"},
		{"control character", "he \x1b[2J [MASK]",
			"infill: control character in the text at byte offset 3: U+001B; take it out\n"},
		{"NUL", "he \x00 [MASK]", "infill: control character in the text at byte offset 3: U+0000, as text in UTF-16 " +
			"has; save it as UTF-8\n"},
		{"separator", "he [SEP] had [MASK]", "infill: special token in the text at byte offset 3: [SEP] is added by " +
			"the program where the model needs it; take it out, or write \\[SEP] for the text\n"},
		{"classifier", "[CLS] he had [MASK]", "infill: special token in the text at byte offset 0: [CLS] is added by " +
			"the program where the model needs it; take it out, or write \\[CLS] for the text\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code, stdout, stderr := call(t, strings.NewReader(""), test.template)
			if code != cli.ExitUsage || stdout != "" {
				t.Errorf("exit code %d, want 2; standard output %q", code, stdout)
			}
			if diff := cmp.Diff(test.want, stderr); diff != "" {
				t.Error(diff)
			}
			// With another one: nothing is printed although the first is fine.
			code, stdout, stderr = call(t, strings.NewReader(""), "he had [MASK] me", test.template)
			if code != cli.ExitUsage || stdout != "" ||
				stderr != strings.Replace(test.want, "infill: ", "infill: template 2: ", 1) {
				t.Errorf("as the second: exit code %d, standard output %q, error %q", code, stdout, stderr)
			}
			// On standard input, where a line cannot hold a line end: reported
			// with its number.
			if strings.Contains(test.template, "\n") || test.template == "" {
				return
			}
			code, stdout, stderr = call(t, strings.NewReader(test.template+"\n"))
			if code != cli.ExitFailed || stdout != "" || !strings.HasPrefix(stderr, "infill: line 1: ") ||
				strings.Count(stderr, "\n") != 1 {
				t.Errorf("on standard input: exit code %d, standard output %q, error %q", code, stdout, stderr)
			}
		})
	}
}

// TestNoTemplate: a terminal is not waited for.
func TestNoTemplate(t *testing.T) {
	for _, args := range [][]string{{}, {"score"}} {
		var out, err bytes.Buffer
		streams := &terminal.Streams{In: iotest.ErrReader(errors.New("must not be read")), Out: &out, Err: &err,
			InTerminal: true}
		if code := Main(t.Context(), streams, args); code != cli.ExitUsage || out.Len() > 0 ||
			strings.Count(err.String(), "\n") != 2 || !strings.Contains(err.String(), "hint: infill ") {
			t.Errorf("%v: exit code %d, standard output %q, error %q", args, code, &out, &err)
		}
	}
}

// TestAsking: a program that sends a line and waits has an answer to each
// before it sends the next.
func TestAsking(t *testing.T) {
	in, lines := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		streams := &terminal.Streams{In: in, Out: out, Err: io.Discard}
		ended <- Main(t.Context(), streams, strings.Fields("--input jsonl --format jsonl --seed 1 -k 1"))
		out.Close()
	}()
	read := bufio.NewReader(answers)
	for i, template := range []string{"he had [MASK] me", "it was a [MASK] day"} {
		fmt.Fprintf(lines, `{"id": %d, "template": %q}`+"\n", i, template)
		answer, err := read.ReadString('\n')
		if err != nil || !strings.HasPrefix(answer, fmt.Sprintf(`{"id":%d,`, i)) {
			t.Fatalf("%q: %s, %v", template, answer, err)
		}
	}
	lines.Close()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
}
