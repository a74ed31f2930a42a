package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/eval"
	"infill/cmd/infill/internal/fill"
	"infill/cmd/infill/internal/metrics"
	"infill/cmd/infill/internal/models"
	"infill/cmd/infill/internal/run"
	"infill/cmd/infill/internal/score"
	"infill/cmd/infill/internal/serve"
	"infill/cmd/infill/internal/setup"
	"infill/cmd/infill/internal/terminal"
	"infill/cmd/infill/internal/tui"
	"infill/cmd/infill/internal/version"
)

// Main runs the program on the given streams and arguments, the program's name
// not among them, and returns its exit code. Interrupt, termination and
// hangup signals cancel it.
func Main(ctx context.Context, streams *terminal.Streams, args []string) int {
	ctx, stop := signal.NotifyContext(ctx, cli.Stops()...)
	defer stop()
	// A second signal ends the process at once, should the first be without effect.
	defer context.AfterFunc(ctx, stop)()
	// Without a taker of the signal, a write to a closed standard output would
	// end the process before it could tidy up.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)

	s := *streams
	out := &cli.Output{Writer: streams.Out}
	s.Out = out
	root := newRoot(&s)
	root.SetArgs(args)
	err := unknownCommand(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err == nil {
		err = out.Err
	}
	return cli.Report(s.Err, err)
}

// unknownCommand refuses a word that names no command of a group: cobra would print the group's help as if the user had
// asked for it.
func unknownCommand(root *cobra.Command, args []string) error {
	cmd, rest, err := root.Find(args)
	if err != nil || cmd == root || !cmd.HasAvailableSubCommands() || len(rest) == 0 ||
		strings.HasPrefix(rest[0], "-") {
		return nil // cobra's to tell
	}
	if cmd.Runnable() && !slices.Contains(rest, "--help") && !slices.Contains(rest, "-h") {
		return nil // an argument
	}
	return &cli.UsageError{Err: fmt.Errorf("%s has no command %q", cmd.CommandPath(), rest[0]),
		Hint: "see " + cmd.CommandPath() + " --help"}
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
		setup.NewCmd(s),
		version.NewCmd(s),
		tui.NewCmd(s),
		serve.NewCmd(s),
		serve.NewCmdMCP(s),
	)
	describe(root)
	for _, topic := range helpTopics() {
		root.AddCommand(topic)
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	// Errors are printed by report alone.
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return cli.FlagError(cmd.CommandPath(), cli.MeantFlag(cmd, err))
	})
	root.SetUsageTemplate(
		strings.Replace(root.UsageTemplate(), "Flags:\n{{.LocalFlags.FlagUsages |", "{{groupedFlags . |", 1))
	printHelp := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if slices.Contains(args, "all") {
			cmd.Annotations = map[string]string{wholeHelp: ""}
		}
		var text strings.Builder
		cmd.SetOut(&text)
		printHelp(cmd, args)
		cmd.SetOut(s.Out)
		written := text.String()
		if s.Width > 0 {
			written = reflow(written, s.Width)
		}
		fmt.Fprint(s.Out, written)
	})
	root.InitDefaultCompletionCmd()
	refuseUnknownTopics(root)
	root.Version = version.Line()
	root.SetVersionTemplate("{{.Version}}\n")
	return root
}

func init() { cobra.AddTemplateFunc("groupedFlags", groupedFlags) }

const (
	helpWidth = 100         // where no terminal tells another
	wholeHelp = "wholeHelp" // the annotation of a command of which all flags are asked for
)

// groupedFlags writes the flags: of a command with groups the first group, or with "all" each below its title;
// those of no group, and of commands without any, as "Flags".
func groupedFlags(cmd *cobra.Command) string {
	_, whole := cmd.Annotations[wholeHelp]
	var titles []string
	sets := map[string]*pflag.FlagSet{}
	ungrouped := pflag.NewFlagSet("", pflag.ContinueOnError)
	ungrouped.SortFlags = cmd.Flags().SortFlags
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		in := flag.Annotations[cli.GroupOf]
		if in == nil {
			ungrouped.AddFlag(flag)
			return
		}
		at, _ := strconv.Atoi(in[0])
		for len(titles) <= at {
			titles = append(titles, "")
		}
		if titles[at] = in[1]; sets[in[1]] == nil {
			sets[in[1]] = pflag.NewFlagSet("", pflag.ContinueOnError)
			sets[in[1]].SortFlags = false
		}
		sets[in[1]].AddFlag(flag)
	})
	var b strings.Builder
	for i, title := range titles {
		if i == 0 || whole {
			fmt.Fprintf(&b, "%s:\n%s\n", title, sets[title].FlagUsagesWrapped(helpWidth))
		}
	}
	switch {
	case titles == nil:
		fmt.Fprintf(&b, "Flags:\n%s", ungrouped.FlagUsagesWrapped(helpWidth))
	case whole:
		fmt.Fprintf(&b, "Other flags:\n%s", ungrouped.FlagUsagesWrapped(helpWidth))
	default:
		fmt.Fprintf(&b, "%s --help all lists every flag.\n", cmd.CommandPath())
	}
	return b.String()
}
