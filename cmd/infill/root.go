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

	"infill/cmd/infill/internal/terminal"
)

// Main runs the program on the given streams and arguments, the program's name
// not among them, and returns its exit code. Interrupt, termination and
// hangup signals cancel it.
func Main(ctx context.Context, streams *terminal.Streams, args []string) int {
	ctx, stop := signal.NotifyContext(ctx, stops()...)
	defer stop()
	// A second signal ends the process at once, should the first be without effect.
	defer context.AfterFunc(ctx, stop)()
	// Without a taker of the signal, a write to a closed standard output would
	// end the process before it could tidy up.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)

	s := *streams
	out := &output{Writer: streams.Out}
	s.Out = out
	root := newRoot(&s)
	root.SetArgs(args)
	err := unknownCommand(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err == nil {
		err = out.err
	}
	return report(s.Err, err)
}

// unknownCommand refuses what is no command of a group: cobra would print the
// group's help as if that had been asked for.
func unknownCommand(root *cobra.Command, args []string) error {
	cmd, rest, err := root.Find(args)
	if err != nil || cmd == root || !cmd.HasAvailableSubCommands() || len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return nil // cobra's to tell
	}
	if cmd.Runnable() && !slices.Contains(rest, "--help") && !slices.Contains(rest, "-h") {
		return nil // an argument
	}
	return &usageError{fmt.Errorf("%s has no command %q", cmd.CommandPath(), rest[0]), "see " + cmd.CommandPath() + " --help"}
}

// newRoot makes the whole tree of commands. The root itself fills templates.
func newRoot(s *terminal.Streams) *cobra.Command {
	root := newCmdFill(s, fillRun)
	root.AddCommand(
		newCmdRun(s, runRun),
		newCmdAugment(s, augmentRun),
		newCmdScore(s, scoreRun),
		newCmdMetrics(s),
		newCmdEval(s),
		newCmdData(s),
		newCmdModels(s),
		newCmdSetup(s, setupRun),
		newCmdDoctor(s, doctorRun),
		newCmdVersion(s, versionRun),
		newCmdTUI(s, tuiRun),
		newCmdServe(s, serveRun),
		newCmdMCP(s, mcpRun),
	)
	for _, topic := range helpTopics() {
		root.AddCommand(topic)
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	// Errors are printed by report alone.
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd.CommandPath(), meantFlag(cmd, err)) })
	root.SetUsageTemplate(usageTemplate(root, s.Width))
	root.InitDefaultCompletionCmd()
	root.SetHelpCommand(newCmdHelp())
	root.Version = versionLine()
	root.SetVersionTemplate("{{.Version}}\n")
	return root
}

func init() { cobra.AddTemplateFunc("groupedFlags", groupedFlags) }

// groupedFlags writes the flags below the titles of their groups; those of none, and
// commands without groups, come as "Flags".
func groupedFlags(cmd *cobra.Command, width int) string {
	var titles []string
	sets := map[string]*pflag.FlagSet{}
	ungrouped := pflag.NewFlagSet("", pflag.ContinueOnError)
	ungrouped.SortFlags = cmd.Flags().SortFlags
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		in := flag.Annotations[groupOf]
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
	for _, title := range titles {
		fmt.Fprintf(&b, "%s:\n%s\n", title, sets[title].FlagUsagesWrapped(width))
	}
	title := "Flags"
	if titles != nil {
		title = "Other flags"
	}
	if ungrouped.HasAvailableFlags() {
		fmt.Fprintf(&b, "%s:\n%s", title, ungrouped.FlagUsagesWrapped(width))
	}
	return b.String()
}

// usageTemplate is cobra's own with the flags in groups, and their descriptions
// wrapped to a width, of the terminal where it is known.
func usageTemplate(root *cobra.Command, width int) string {
	if width == 0 {
		width = 100
	}
	width = max(width, 60)
	local := fmt.Sprintf("{{groupedFlags . %d | trimTrailingWhitespaces}}", width)
	text := strings.Replace(root.UsageTemplate(), "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}", local, 1)
	return strings.ReplaceAll(text, ".FlagUsages |", fmt.Sprintf(".FlagUsagesWrapped %d |", width))
}
