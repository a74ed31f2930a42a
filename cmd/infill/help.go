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

// refuseUnknownTopics makes an unknown topic of cobra's help command an error.
func refuseUnknownTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		panic(err) // it was just made
	}
	help.Use, help.Short = "help [COMMAND | TOPIC]", "Tell about a command or a topic"
	help.Long = "Tell about a command or a topic; infill --help lists them."
	help.Run, help.RunE = nil, func(cmd *cobra.Command, args []string) error {
		about, rest, err := cmd.Root().Find(args)
		if err != nil || len(rest) > 0 && !slices.Equal(rest, []string{"all"}) {
			return &cli.UsageError{Err: fmt.Errorf("no help on %q", strings.Join(args, " ")),
				Hint: "see infill --help for the commands and topics"}
		}
		about.InitDefaultHelpFlag()
		about.InitDefaultVersionFlag()
		about.HelpFunc()(about, rest)
		return nil
	}
	help.ValidArgsFunction = nil // which leaves topics out
	for _, c := range root.Commands() {
		if !c.Hidden {
			help.ValidArgs = append(help.ValidArgs, cobra.CompletionWithDesc(c.Name(), c.Short))
		}
	}
}

// The texts of the help. A command's text says what it does, with examples. A topic's has a line that names it, a blank
// line, and the text.
//
//go:embed help
var helpTexts embed.FS

func helpText(kind, name string) string {
	text, _ := helpTexts.ReadFile("help/" + kind + "/" + name + ".txt") // TestEveryCommandHasUsage misses none
	return strings.TrimSpace(string(text))
}

// describe gives a command and those below it their texts, and the numbers of their flags a word.
func describe(cmd *cobra.Command) {
	name := strings.TrimPrefix(strings.ReplaceAll(cmd.CommandPath(), " ", "-"), "infill-")
	if text := helpText("commands", name); text != "" {
		long, examples, _ := strings.Cut(text, "Examples:\n")
		cmd.Long, cmd.Example = strings.TrimSpace(long), strings.TrimRight(examples, "\n")
	}
	cli.NameValues(cmd.Flags())
	for _, c := range cmd.Commands() {
		describe(c)
	}
}

// helpTopics are commands without an action: `infill help TOPIC` prints them.
func helpTopics() (topics []*cobra.Command) {
	files, _ := helpTexts.ReadDir("help/topics") // it is in the program
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".txt")
		short, long, _ := strings.Cut(helpText("topics", name), "\n\n")
		if name == "samplers" {
			long += "\n" + listSamplers()
		}
		topics = append(topics, &cobra.Command{Use: name, Short: short, Long: long})
	}
	return topics
}

// listSamplers writes the registry down.
func listSamplers() string {
	var b strings.Builder
	for _, name := range infill.Samplers() {
		d := samplers.Describe(name)
		fmt.Fprintf(&b, "\n  %s: %s\n", d.Name, d.Title)
		fmt.Fprintf(&b, "    draws from  %s\n    a step      %s of each chain\n    paper       %s\n", d.Target, d.Cost,
			d.Paper)
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
