package main

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/eval"
	"infill/cmd/infill/internal/fill"
	"infill/cmd/infill/internal/gaps"
	"infill/cmd/infill/internal/metrics"
	"infill/cmd/infill/internal/models"
	"infill/cmd/infill/internal/run"
	"infill/cmd/infill/internal/score"
	"infill/cmd/infill/internal/serve"
	"infill/cmd/infill/internal/terminal"
	"infill/cmd/infill/internal/tui"
)

// Main runs the program with arguments, without its name, and returns the exit
// code. Interrupt, termination and hangup signals cancel it.
func Main(ctx context.Context, streams *terminal.Streams, args []string) int {
	ctx, stop := signal.NotifyContext(ctx, cli.Stops()...)
	defer stop()
	// The default handling is back after a signal: a second one kills.
	defer context.AfterFunc(ctx, stop)()
	// Else a write to a closed standard output would end the process at once.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)

	s := *streams
	out := &cli.Output{Writer: streams.Out}
	s.Out = out
	root := newRoot(&s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	return cli.Report(s.Err, cmp.Or(err, out.Err))
}

// newRoot returns the root command, which fills templates, with all its subcommands.
func newRoot(s *terminal.Streams) *cobra.Command {
	root := fill.NewCmd(s)
	root.AddCommand(
		run.NewCmd(s),
		run.NewCmdAugment(s),
		score.NewCmd(s),
		gaps.NewCmd(s),
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
	// cobra prints no errors, as cli.Report prints them.
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return cli.FlagError(cmd, err)
	})
	setUsage(root)
	refuseUnknownHelp(root)
	refuseUnknownShell(root)
	root.Version = versionLine()
	root.SetVersionTemplate("{{.Version}}\n")
	return root
}
