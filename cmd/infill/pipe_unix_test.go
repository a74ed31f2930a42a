//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"infill/cmd/infill/internal/cli"
	"infill/models"
)

// A named pipe that nobody writes into keeps no command from ending at a
// signal; what reads its input twice refuses it.
func TestNamedPipes(t *testing.T) {
	dir := t.TempDir()
	pipe, text := filepath.Join(dir, "pipe.txt"), filepath.Join(dir, "text.txt")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(text, []byte("the cat sat\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ignoresHangup := ossignal.Ignored(unix.SIGHUP)
	for line, refused := range map[string]string{
		"run PIPE -o OUT":         "not a regular file: a named pipe",
		"augment PIPE -o OUT":     "not a regular file: a named pipe",
		"metrics PIPE":            "",
		"metrics TEXT -r a=PIPE":  "",
		"--slot 1=@PIPE a-[MASK]": "",
		"--ban @PIPE a-[MASK]":    "",
		"serve --token-file PIPE": "",
		"eval --tbc PIPE -o OUT":  "",
	} {
		for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGHUP} {
			t.Run(line+" "+signal.String(), func(t *testing.T) {
				t.Parallel()
				if signal == unix.SIGHUP && ignoresHangup {
					t.Skip("nohup keeps this signal away")
				}
				args := strings.Fields(
					strings.NewReplacer("PIPE", pipe, "TEXT", text, "OUT",
						filepath.Join(t.TempDir(), "out.jsonl")).Replace(line))
				cmd := exec.CommandContext(t.Context(), "infill", args...)
				cmd.Env = append(os.Environ(), models.CacheVariable+"="+userCache(t))
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() { ended <- cmd.Wait() }()
				// A signal that comes before the program takes it ends the
				// program by itself.
				var err error
				select {
				case err = <-ended:
				case <-time.After(time.Second):
					cmd.Process.Signal(signal)
					select {
					case err = <-ended:
					case <-time.After(20 * time.Second):
						cmd.Process.Kill()
						t.Fatal("deaf")
					}
				}
				var exit *exec.ExitError
				if refused != "" {
					if !errors.As(err, &exit) ||
						exit.ExitCode() != cli.ExitUsage && exit.ExitCode() != cli.ExitFailed ||
						!strings.Contains(stderr.String(), refused) {
						t.Errorf("%v, %s; want %q", err, &stderr, refused)
					}
				} else if !errors.As(err, &exit) || exit.ExitCode() != cli.ExitInterrupted ||
					stderr.String() != "infill: interrupted\n" {
					t.Errorf("%v, %s; want interrupted", err, &stderr)
				}
			})
		}
	}
}
