package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"infill/infill"
)

func TestReport(t *testing.T) {
	tests := []struct {
		name string
		err  error
		code int
		want string
	}{
		{"nothing", nil, 0, ""},
		{"failure", errors.New("no luck"), 1, "infill: no luck\n"},
		{"failure with a hint", fmt.Errorf("open: %w", &Failure{errors.New("no luck"), "try again"}), 1,
			"infill: open: no luck\nhint: try again\n"},
		{"usage", &UsageError{errors.New("unknown flag: -z"), "see infill --help"}, 2,
			"infill: unknown flag: -z\nhint: see infill --help\n"},
		{"option", Describe(&infill.OptionError{Option: "steps", Reason: "-1 is not a number"}), 2,
			"infill: --steps: -1 is not a number\n"},
		{"interrupt", fmt.Errorf("step 3: %w", context.Canceled), 130, "infill: interrupted\n"},
		{"reported", ErrReported, 1, ""},
		{"reported and joined", errors.Join(nil, ErrReported), 1, ""},
		{"lines that were left out", fmt.Errorf("run: %w", ErrRejects), 3, ""},
		{"closed output", &OutputError{syscall.EPIPE}, 0, ""},
		{"full disk", &OutputError{syscall.ENOSPC}, 1, "infill: write the result: no space left on device\n"},
		{"a closed pipe elsewhere", fmt.Errorf("client: %w", syscall.EPIPE), 1, "infill: client: broken pipe\n"},
		{"a quote without end", errors.New(strings.Repeat("x", 1e6)), 1,
			"infill: " + strings.Repeat("x", 747) + " … " + strings.Repeat("x", 747) + "\n"},
		{"several lines and escapes", errors.New("first\nsecond\r\n\x1b[31mthird\u0085"), 1,
			"infill: first; second; \uFFFD[31mthird\uFFFD\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			if code := Report(&out, test.err); code != test.code || out.String() != test.want {
				t.Errorf("got %d and %q, want %d and %q", code, out.String(), test.code, test.want)
			}
		})
	}
}
