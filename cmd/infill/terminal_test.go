//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// screen is a real terminal, in tmux.
type screen struct {
	t      *testing.T
	socket string
	folder string
}

// newScreen runs a shell command in a terminal of the given size. Its folder is
// the session's.
func newScreen(t *testing.T, columns, rows int, command string) *screen {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed: a session in a real terminal cannot be had")
	}
	// The names of sockets are short, and test folders' are not.
	short, err := os.MkdirTemp("", "tui")
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t, filepath.Join(short, "s"), t.TempDir()}
	t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", s.socket, "kill-server").Run()
		os.RemoveAll(short)
	})
	s.tmux("-f", os.DevNull, "new-session", "-d", "-x", strconv.Itoa(columns), "-y", strconv.Itoa(rows), "-c", s.folder,
		"TERM=xterm-256color; COLORTERM=truecolor; export TERM COLORTERM; unset NO_COLOR CLICOLOR_FORCE; "+command+
			"; echo \"it ended with $?\"; exec cat")
	return s
}

func (s *screen) tmux(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

func (s *screen) text() string { return s.tmux("capture-pane", "-p") }

// await waits until the screen shows every text.
func (s *screen) await(texts ...string) {
	s.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		now := s.text()
		missing := ""
		for _, text := range texts {
			if !strings.Contains(now, text) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%q never came:\n%s", missing, now)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *screen) keys(keys ...string) {
	s.t.Helper()
	for _, key := range keys {
		s.tmux("send-keys", key)
	}
}

func (s *screen) typeText(text string) {
	s.t.Helper()
	s.tmux("send-keys", "-l", text)
}

func (s *screen) read(name string) string {
	s.t.Helper()
	content, err := os.ReadFile(filepath.Join(s.folder, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(content)
}

// TestTerminalSession is a session with the built-in model: type, pin, draw
// again, filter, and pick into a pipe.
func TestTerminalSession(t *testing.T) {
	s := newScreen(t, 100, 30, "infill tui --seed 3 --sampler dmala | cat > picked.txt")
	s.await("write a sentence, with _ where a word is wanted")
	s.typeText("she opened the _ and looked _ .")
	s.await("she opened the [MASK] and looked [MASK] .", "✓ 25 × 50 steps", "she opened the door and looked up .")
	s.keys("Tab", "p")
	s.await(" ▎ she opened the door and looked [MASK] .", "✓")
	s.keys("r")
	s.await("seed 4", "✓")
	if fills := regexp.MustCompile(`she opened the (\w+) and looked \w+ \.`).FindAllStringSubmatch(s.text(),
		-1); len(fills) < 10 {
		t.Errorf("only %d fills are listed:\n%s", len(fills), s.text())
	} else {
		for _, fill := range fills {
			if fill[1] != "door" {
				t.Errorf("%q with blank 1 pinned to door", fill[0])
			}
		}
	}
	s.keys("/")
	s.typeText("do")
	s.await("filter do", "found")
	s.keys("Enter", "2")
	s.await("pinned to door", "by itself")
	s.keys("3")
	s.await("R-hat", "last move")
	s.keys("1", "Enter")
	s.await("it ended with 0")
	if picked := s.read("picked.txt"); !regexp.MustCompile(`^she opened the door and looked \w+ \.\n$`).MatchString(picked) {
		t.Errorf("standard output got %q", picked)
	}
	// The screen was the alternate one: what was there before is back.
	if text := s.text(); strings.Contains(text, "Fills") {
		t.Errorf("the screen is left dirty:\n%s", text)
	}
}

// TestTerminalTypedAhead types before the program is there: no key is lost to what
// it asks the terminal.
func TestTerminalTypedAhead(t *testing.T) {
	s := newScreen(t, 100, 30, "echo up; while [ ! -e go ]; do sleep 0.02; done; infill tui --seed 3 --sampler dmala")
	s.await("up") // tmux may lose keys while it starts a shell
	s.typeText("she opened the _ and looked _ .")
	s.keys("Tab", "3")
	if err := os.WriteFile(filepath.Join(s.folder, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.await(" ▎ she opened the [MASK] and looked [MASK] .", "✓", "R-hat")
	s.keys("q")
	s.await("it ended with 0")
}

// TestTerminalInterrupt leaves with ctrl+c, which prints nothing.
func TestTerminalInterrupt(t *testing.T) {
	s := newScreen(t, 80, 24, "infill tui --seed 3 'he had [MASK] me .' > picked.txt")
	s.await("✓")
	s.keys("C-c")
	s.await("infill: interrupted", "it ended with 130")
	if picked := s.read("picked.txt"); picked != "" {
		t.Errorf("standard output got %q", picked)
	}
}

// TestTerminalColours looks at NO_COLOR on a real terminal: bold stays.
func TestTerminalColours(t *testing.T) {
	for name, want := range map[string]bool{"TERM=xterm-256color": true, "NO_COLOR=1": false} {
		t.Run(name, func(t *testing.T) {
			s := newScreen(t, 80, 24, name+" infill tui --seed 3 'he had [MASK] me .'")
			s.await("✓")
			frame := s.tmux("capture-pane", "-e", "-p")
			if got := regexp.MustCompile(`\x1b\[[0-9;]*(3[0-8]|9[0-7]|4[0-8])[;m]`).MatchString(frame); got != want {
				t.Errorf("colours: %t, want %t", got, want)
			}
			if !strings.Contains(frame, "\x1b[1m") && !strings.Contains(frame, "\x1b[1;") {
				t.Error("nothing is bold")
			}
		})
	}
}

// TestTerminalGone takes the terminal away while the chains run: the process ends
// by itself.
func TestTerminalGone(t *testing.T) {
	s := newScreen(t, 100, 30, "echo $$ > pid.txt; exec infill tui --seed 3 --sampler dmala --steps 100000 -n 20 "+
		"'she opened the [MASK] and looked [MASK] .'")
	s.await("q quit")
	pid, err := strconv.Atoi(strings.TrimSpace(s.read("pid.txt")))
	if err != nil {
		t.Fatal(err)
	}
	s.await("/100000")
	s.tmux("kill-session")
	deadline := time.Now().Add(30 * time.Second)
	for syscall.Kill(pid, 0) == nil {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the process lives on without its terminal")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestTUIWithoutTerminal runs it in a session of its own, which has no terminal.
func TestTUIWithoutTerminal(t *testing.T) {
	cmd := exec.Command("infill", "tui")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || out.Len() > 0 {
		t.Errorf("it ended with %v and printed %q", err, out.String())
	}
	want := "infill: the screen needs a terminal for standard input and standard error\n" +
		"hint: infill \"he had [MASK] me\" needs none\n"
	if errs.String() != want {
		t.Errorf("it said %q, want %q", errs.String(), want)
	}
}
