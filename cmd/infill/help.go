package main

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/infill"
	"infill/samplers"
)

// newCmdHelp is cobra's help command, except that an unknown topic is an error.
func newCmdHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | TOPIC]",
		Short: "Tell about a command or a topic",
		Long:  "Tell about a command or a topic; infill --help lists them.",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 && !slices.Equal(rest, []string{"all"}) {
				return &cli.UsageError{Err: fmt.Errorf("no help on %q", strings.Join(args, " ")),
					Hint: "see infill --help for the commands and topics"}
			}
			about.InitDefaultHelpFlag()
			about.InitDefaultVersionFlag()
			about.HelpFunc()(about, rest)
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
			var names []cobra.Completion
			if len(args) == 0 {
				for _, c := range cmd.Root().Commands() {
					if c.Hidden || c.Name() == cobra.ShellCompRequestCmd ||
						c.Name() == cobra.ShellCompNoDescRequestCmd {
						continue // what shells ask
					}
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// The topics' texts: a line that says what each is about, and behind a blank line the text.
//
//go:embed help/*.txt
var topicTexts embed.FS

// helpTopics are commands without an action: `infill help TOPIC` prints them.
func helpTopics() []*cobra.Command {
	topics := []*cobra.Command{
		{Use: "samplers", Short: "The samplers, what they draw from and what they cost", Long: helpSamplers()},
	}
	files, _ := topicTexts.ReadDir("help") // it is in the program
	for _, f := range files {
		text, _ := topicTexts.ReadFile("help/" + f.Name())
		short, long, _ := strings.Cut(string(text), "\n\n")
		topics = append(topics,
			&cobra.Command{Use: strings.TrimSuffix(f.Name(), ".txt"), Short: short, Long: strings.TrimSpace(long)})
	}
	return topics
}

// helpSamplers writes the registry down.
func helpSamplers() string {
	var b strings.Builder
	b.WriteString(`Acceptance is the share of proposed moves that a chain took: near 0 the chains stand
still, and near 1 the steps may be too small to lead anywhere. Draws of a chain
resemble each other: effective draws are how many independent ones they are worth,
and errors shrink with the square root of that number.

`)
	b.WriteString(`Without --sampler no chain moves: the likeliest fills are found and proven, and
--samples makes independent draws. As the papers do: the square root as balance, the
best final states:

  $ infill --sampler dmala --balance sqrt --gradient full --candidates 0 \
      --fill any --rank final "she opened the [MASK] and looked [MASK] ."

Where chains start, --initial:

  model          each slot is drawn from the model while all are masked
  shared         the same, one draw for all chains
  mask           slot by slot in a random order, each seeing those before it
  random         each slot is drawn uniformly from its candidates
  fill:WORD,...  at this fill, a word for each blank, which has to be a candidate

Settings follow a colon, as in dmala:step-size=0.4,balance=sqrt:
`)
	for _, name := range infill.Samplers() {
		d := samplers.Describe(name)
		b.WriteString("\n  " + d.Name + ": " + d.Title + "\n")
		b.WriteString("    draws from  " + d.Target + "\n")
		b.WriteString("    a step      " + d.Cost + " of each chain\n")
		b.WriteString("    paper       " + d.Paper + "\n")
		var settings []string
		for _, s := range d.Settings {
			settings = append(settings, s.Name)
		}
		if settings != nil {
			b.WriteString("    settings    " + strings.Join(settings, ", ") + "\n")
		}
	}
	return b.String()
}
