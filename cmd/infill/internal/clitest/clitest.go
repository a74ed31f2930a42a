// Package clitest helps to test commands: it parses command lines and compares with goldens.
package clitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
)

var Update = flag.Bool("update", false, "write the goldens and the scripts' expectations again")

// Golden compares with testdata/golden/NAME; -update writes it.
func Golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *Update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: go test -update writes it", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: %s", path, diff)
	}
}

// TerminalOf is a terminal of the given width, 0 for a pipe.
func TerminalOf(out *bytes.Buffer, width int) *terminal.Streams {
	return &terminal.Streams{Out: out, OutTerminal: width > 0, Width: width, Environment: []string{"TERM=xterm"}}
}

// checkShape holds every output to what is true whatever it shows: goldens are
// easily updated.
func checkShape(t *testing.T, text, format string, width int) {
	t.Helper()
	switch format {
	case "json":
		if !json.Valid([]byte(text)) {
			t.Error("not JSON")
		}
	case "text":
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if w := ansi.StringWidth(line); width > 0 && w > width {
				t.Errorf("%d columns on a terminal of %d: %q", w, width, line)
			}
			if strings.TrimRight(ansi.Strip(line), " ") != ansi.Strip(line) {
				t.Errorf("blanks at the end of %q", line)
			}
			if width == 0 && strings.ContainsRune(line, '\x1b') {
				t.Errorf("an escape sequence in a pipe: %q", line)
			}
		}
	}
}

// Failing is a writer on a full disk.
type Failing struct{}

func (Failing) Write([]byte) (int, error) { return 0, errors.New("no space") }

// Goldens compares results in every form with stored ones; id gives that of the
// ith.
func Goldens[T any](t *testing.T, command string, f cli.Form[T], results []T, id func(i int) json.RawMessage) {
	tests := []struct {
		name, format string
		width        int
	}{
		{"pipe.txt", "text", 0},
		{"terminal-40.txt", "text", 40},
		{"array.json", "json", 0},
		{"rows.csv", "csv", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			p := &cli.Printer[T]{Form: f, Format: test.format, Streams: TerminalOf(&out, test.width)}
			for i, r := range results {
				if err := p.Print(id(i), r); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.End(); err != nil {
				t.Fatal(err)
			}
			checkShape(t, out.String(), test.format, test.width)
			Golden(t, command+"-"+test.name, out.Bytes())
		})
	}
	// No form loses the error of its writer.
	for _, format := range cli.Formats() {
		if (&cli.Printer[T]{Form: f, Format: format, Streams: &terminal.Streams{Out: Failing{}}}).Print(nil,
			results[0]) == nil {
			t.Errorf("%s: no error", format)
		}
	}
}

// splitLine cuts a command line at blanks; quotes keep them.
func splitLine(line string) (args []string) {
	for i, quoted := range strings.Split(line, `"`) {
		if i%2 == 1 {
			args = append(args, quoted)
		} else {
			args = append(args, strings.Fields(quoted)...)
		}
	}
	return args
}

// Parse runs a command as the tree of commands would.
func Parse(t *testing.T, cmd *cobra.Command, line string) error {
	t.Helper()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return cli.FlagError("infill", err) })
	cmd.SetArgs(splitLine(line))
	cmd.SetOut(new(bytes.Buffer))
	return cmd.ExecuteContext(t.Context())
}

// CheckUsage wants a usage error with a text.
func CheckUsage(t *testing.T, err error, want string) {
	t.Helper()
	var usage *cli.UsageError
	if !errors.As(err, &usage) || err.Error() != want {
		t.Errorf("got %v, want the usage error %q", err, want)
	}
}

// CompareOptions compares the options that a command line gave, except for streams and functions.
func CompareOptions[T any](t *testing.T, want, got T) {
	t.Helper()
	unexported := cmp.Exporter(func(reflect.Type) bool { return true })
	ignored := cmpopts.IgnoreTypes(&terminal.Streams{}, &cobra.Command{})
	functions := cmp.FilterPath(func(p cmp.Path) bool {
		return p.Last().Type() != nil && p.Last().Type().Kind().String() == "func"
	}, cmp.Ignore())
	if diff := cmp.Diff(want, got, unexported, ignored, functions, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}
