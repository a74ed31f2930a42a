package main

import (
	"embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"infill/cmd/infill/internal/cli"
	"infill/internal/ask"
	"infill/samplers"
)

// helpTexts has the texts of the help. A command's text says what it does,
// with examples. A topic's file has a line that names the topic, a blank
// line, and the text.
//
//go:embed help
var helpTexts embed.FS

func helpText(kind, name string) string {
	text, _ := helpTexts.ReadFile("help/" + kind + "/" + name + ".txt") // a missing text fails TestEveryCommandHasUsage
	return strings.TrimSpace(string(text))
}

func describe(cmd *cobra.Command) {
	name := strings.TrimPrefix(strings.ReplaceAll(cmd.CommandPath(), " ", "-"), "infill-")
	text := helpText("commands", name)
	if text != "" {
		long, examples, _ := strings.Cut(text, "Examples:\n")
		cmd.Long = strings.TrimSpace(long)
		cmd.Example = strings.TrimRight(examples, "\n")
	}
	for _, c := range cmd.Commands() {
		describe(c)
	}
}

// helpTopics returns commands that `infill help TOPIC` prints the text of.
func helpTopics(root *cobra.Command) (topics []*cobra.Command) {
	files, _ := helpTexts.ReadDir("help/topics") // never fails, as the folder is embedded in the program
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".txt")
		short, long, _ := strings.Cut(helpText("topics", name), "\n\n")
		switch name {
		case "samplers":
			long += "\n" + listSamplers()
		case "options":
			options, others := cli.SplitFlags(root)
			long += "\n\n" + options.FlagUsagesWrapped(usageWidth) + "\n" + others.FlagUsagesWrapped(usageWidth)
		}
		topics = append(topics, &cobra.Command{Use: name, Short: short, Long: long})
	}
	return topics
}

const usageWidth = 100

// setUsage shows the root's own text alone, and the flags of others.
func setUsage(root *cobra.Command) {
	// Cobra's own template prints each flag on one line, however long that is.
	cobra.AddTemplateFunc("own", func(cmd *cobra.Command) string {
		options, others := cli.SplitFlags(cmd)
		own := others.FlagUsagesWrapped(usageWidth)
		if options.HasFlags() {
			own += "\nOf the options of a fill (infill help options):"
			column := 0
			options.VisitAll(func(f *pflag.Flag) {
				name := "--" + f.Name
				if column == 0 || column+len(name) > 80 {
					own += "\n "
					column = 0
				}
				own += " " + name
				column += 1 + len(name)
			})
			own += "\n"
		}
		return own
	})
	template := strings.ReplaceAll(root.UsageTemplate(), ".LocalFlags.FlagUsages ", "own . ")
	for _, cmd := range root.Commands() {
		cmd.SetUsageTemplate(template)
	}
	root.SetUsageTemplate("Usage:\n  {{.UseLine}}\n")
}

// refuseUnknownHelp makes `infill help NAME` an error where nothing has that
// name. Cobra takes the name for a template, and prints the root's help.
func refuseUnknownHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"}) // it is there now
	help.Args = func(_ *cobra.Command, names []string) error {
		_, left, err := root.Find(names)
		if err == nil && len(left) == 0 {
			return nil
		}
		hint := "infill help lists what has a help"
		similar := root.SuggestionsFor(names[0])
		if len(similar) > 0 {
			hint = "did you mean infill help " + similar[0] + "?"
		}
		return &cli.UsageError{Err: fmt.Errorf("no help on %q", strings.Join(names, " ")), Hint: hint}
	}
	help.ValidArgsFunction = func(_ *cobra.Command, names []string, typed string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		var offers []cobra.Completion
		of, _, err := root.Find(names)
		if err == nil {
			offers = helpOf(of, typed)
		}
		return offers, cobra.ShellCompDirectiveNoFileComp
	}
}

// helpOf returns the commands and topics below a command that begin as typed.
func helpOf(of *cobra.Command, typed string) (offers []cobra.Completion) {
	for _, cmd := range of.Commands() {
		known := cmd.IsAvailableCommand() || cmd.IsAdditionalHelpTopicCommand()
		if known && strings.HasPrefix(cmd.Name(), typed) {
			offers = append(offers, cobra.CompletionWithDesc(cmd.Name(), cmd.Short))
		}
	}
	return offers
}

// refuseUnknownShell refuses shells for which Cobra would print a help.
func refuseUnknownShell(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"}) // it is there now
	var shells []string
	for _, shell := range completion.Commands() {
		shells = append(shells, shell.Name())
	}
	completion.Long = "Print the script with which a shell completes what you type: " +
		strings.Join(shells, ", ") + ".\n" +
		"How to load it stands in the help of each, such as infill completion bash --help."
	completion.Args = cobra.ArbitraryArgs
	completion.RunE = func(cmd *cobra.Command, names []string) error {
		if len(names) == 0 {
			return cmd.Help()
		}
		return &cli.UsageError{Err: fmt.Errorf("%q is not one of %s", strings.Join(names, " "),
			strings.Join(shells, ", ")), Hint: "see infill help completion"}
	}
}

func listSamplers() string {
	var b strings.Builder
	for _, name := range ask.Samplers() {
		s, err := samplers.Parse(name)
		if err != nil {
			panic(err) // only a bug in the program leads here
		}
		d := s.Describe()
		fmt.Fprintf(&b, "\n  %s: %s\n", d.Name, d.Title)
		fmt.Fprintf(&b, "    draws from  %s\n    a step      %s of each chain\n    paper       %s\n", d.Target, d.Cost,
			d.Paper)
		settings := samplers.Settings(s)
		if settings != nil {
			b.WriteString("    settings    " + strings.Join(settings, ", ") + "\n")
		}
	}
	return b.String()
}
