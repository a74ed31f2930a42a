package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/eval"
	"infill/cmd/infill/internal/fill"
	"infill/cmd/infill/internal/metrics"
	"infill/cmd/infill/internal/models"
	"infill/cmd/infill/internal/run"
	"infill/cmd/infill/internal/score"
	"infill/cmd/infill/internal/serve"
	"infill/cmd/infill/internal/terminal"
	"infill/cmd/infill/internal/tui"
)

// Main runs the program on the given streams and arguments, without the program's name, and returns its exit code.
// Interrupt, termination and hangup signals cancel it.
func Main(ctx context.Context, streams *terminal.Streams, args []string) int {
	ctx, stop := signal.NotifyContext(ctx, cli.Stops()...)
	defer stop()
	// A second signal ends the process at once, if the first has no effect.
	defer context.AfterFunc(ctx, stop)()
	// If nothing took this signal, a write to a closed standard output would end the process before it could tidy up.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)

	s := *streams
	out := &cli.Output{Writer: streams.Out}
	s.Out = out
	root := newRoot(&s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = out.Err
	}
	return cli.Report(s.Err, err)
}

// newRoot makes the whole tree of commands. The root itself fills templates.
func newRoot(s *terminal.Streams) *cobra.Command {
	root := fill.NewCmd(s)
	root.AddCommand(
		run.NewCmd(s),
		run.NewCmdAugment(s),
		score.NewCmd(s),
		metrics.NewCmd(s),
		eval.NewCmd(s),
		models.NewCmd(s),
		newSetupCmd(s),
		newVersionCmd(s),
		tui.NewCmd(s),
		serve.NewCmd(s),
		serve.NewCmdMCP(s),
	)
	describe(root)
	for _, topic := range helpTopics(root) {
		root.AddCommand(topic)
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	// Only cli.Report prints errors.
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return cli.FlagError(cmd.CommandPath(), err)
	})
	setUsage(root)
	root.Version = versionLine()
	root.SetVersionTemplate("{{.Version}}\n")
	return root
}
