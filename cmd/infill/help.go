package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

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
			if err != nil || len(rest) > 0 {
				return &usageError{fmt.Errorf("no help on %q", strings.Join(args, " ")), "see infill --help for the commands and topics"}
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			if len(args) == 0 {
				for _, c := range cmd.Root().Commands() {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// helpTopics are commands without an action: `infill help TOPIC` prints them.
func helpTopics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "environment", Short: "Environment variables that change what infill does", Long: helpEnvironment},
		{Use: "exit-codes", Short: "What the exit codes say", Long: helpExitCodes},
		{Use: "formats", Short: "The forms of the result", Long: helpFormats},
		{Use: "samplers", Short: "The samplers, what they draw from and what they cost", Long: helpSamplers()},
	}
}

const helpEnvironment = `Environment variables:

  INFILL_ONNXRUNTIME  path of the onnxruntime shared library; otherwise it is
                      looked for beside the program, in the cache folder and on
                      the system, and fetched into the cache folder once
  INFILL_CACHE        folder of the cache; otherwise infill in the user's cache
                      folder (XDG_CACHE_HOME is honoured)
  HF_ENDPOINT         address of a mirror of the Hugging Face hub, from which
                      infill models pull fetches instead
  HF_TOKEN            token for private and gated models; otherwise the one that
                      the hub's own programs keep is taken: HF_TOKEN_PATH, or
                      token in HF_HOME (~/.cache/huggingface)
  HF_HUB_OFFLINE      1: never use the network for models
  NO_COLOR            any value: no colours
  CLICOLOR_FORCE      any value but 0: colours also where the output is no
                      terminal; NO_COLOR wins
  GOMAXPROCS          how many cores the program uses, where --threads does not
                      say so`

const helpExitCodes = `Exit codes:

  0    done, also when the reader of standard output closed it early
  1    failed; what was printed before stands. Lines of standard input that
       could not be filled are reported, the others are filled, and the code is 1
  2    wrong usage: a flag, an argument or a template among the arguments;
       nothing was printed to standard output
  130  interrupted (Ctrl-C, SIGTERM)`

const helpFormats = `Forms of the result, --format:

  text   for people: slots in colour on a terminal, long texts wrapped
  json   an array with one object for each template
  jsonl  an object a line, written as soon as its template is done
  csv    a row for each fill, with a head line; lists are JSON

An object of json and jsonl:

  id          the own "id" of the template, where --input jsonl gave one
  template    the text as given
  model       name and sha256 of the bundle
  signature   everything that the numbers hang on, in one line
  seed        with --seed it gives the same result again, on the same machine
              and number of threads
  samples     the fills, the best first:
    rank, text
    fills           one for each [MASK...] as typed, in order, as it reads in
                    the text
    spans           where each fill stands in the text, in bytes
    token_ids       of the slots, of which [MASK:3] has three
    log_likelihood  in nats; --temperature does not enter
    count           how often the fill was drawn; frequency is its share of all
                    draws, with a standard error between chains
    final_count     how many chains ended with it
  stats       sampler, chains, steps, step_size; acceptance_rate (null where a
              sampler accepts always); changed_slots_per_step; warm_up, which
              the others leave out; draws, distinct_fills, mean_log_likelihood;
              energy_evaluations, gradient_evaluations, model_rows; seconds
  warnings    sentences about the result

A draw is the state of a chain after a step behind the warm-up, so 25 chains of
50 steps with a warm-up of 25 give 625. With --rank final only the final states
of the chains are drawn, one each, and the fills may repeat, as in the papers.

An object of infill score: id, text, log_likelihood, method, tokens (token, id,
log_prob, span), pseudo_perplexity, model, signature.`

// helpSamplers writes the registry down.
func helpSamplers() string {
	var b strings.Builder
	b.WriteString("Samplers, --sampler; the first is the default:\n")
	for _, name := range infill.Samplers() {
		for _, d := range samplers.Descriptions() {
			if d.Name != name {
				continue
			}
			b.WriteString("\n  " + d.Name + ": " + d.Title + "\n")
			b.WriteString("    draws from  " + d.Target + "\n")
			b.WriteString("    a step      " + d.Cost + " of each chain\n")
			b.WriteString("    paper       " + d.Paper + "\n")
		}
	}
	return b.String()
}
