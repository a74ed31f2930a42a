package setup

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/clitest"
	"infill/cmd/infill/internal/terminal"
	"infill/lm"
)

func TestSetupFlags(t *testing.T) {
	var got *setupOptions
	keep := func(_ context.Context, o *setupOptions) error { got = o; return nil }
	if err := clitest.Parse(t, NewCmd(&terminal.Streams{}, keep), "--cuda -q"); err != nil {
		t.Fatal(err)
	}
	clitest.CompareOptions(t, setupOptions{cuda: true, quiet: true}, *got)
	if err := clitest.Parse(t, NewCmd(&terminal.Streams{}, keep), "--cuda --force"); err != nil || !got.force {
		t.Errorf("--force: %v", err)
	}
	// A large download for a machine that cannot use it is refused, with the reason.
	if lm.FindGPU() != nil {
		var failed *cli.Failure
		err := Run(t.Context(),
			&setupOptions{streams: &terminal.Streams{Out: io.Discard, Err: io.Discard}, cuda: true, quiet: true})
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), "was not fetched (250 MB)") ||
			!strings.Contains(failed.Hint, "--force") {
			t.Errorf("without a GPU: %v", err)
		}
	}
	clitest.CheckUsage(t, clitest.Parse(t, NewCmd(&terminal.Streams{}, keep), "now"), `unexpected argument "now"`)
}
