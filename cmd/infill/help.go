package main

import (
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

// helpTopics are commands without an action: `infill help TOPIC` prints them.
func helpTopics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "environment", Short: "Environment variables that change what infill does", Long: helpEnvironment},
		{Use: "exit-codes", Short: "What the exit codes say", Long: helpExitCodes},
		{Use: "formats", Short: "The forms of the result", Long: helpFormats},
		{Use: "templates", Short: "How blanks are written, and what narrows what they take", Long: helpTemplates},
		{Use: "samplers", Short: "The samplers, what they draw from and what they cost", Long: helpSamplers()},
	}
}

const helpEnvironment = `Environment variables:

  INFILL_ONNXRUNTIME  path of the onnxruntime shared library; otherwise it is
                      looked for beside the program, in the cache folder and on
                      the system, and fetched into the cache folder once
  INFILL_CACHE        folder of the cache; otherwise infill in the user's cache
                      folder (XDG_CACHE_HOME is honoured)
  INFILL_MODEL        the model where --model names none; it wins over infill models
                      use
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
  3    infill run or augment is done, and wrong lines were left out of its result
  130  interrupted (Ctrl-C, SIGTERM, SIGHUP)`

const helpTemplates = `Blanks, as they stand in a template:

  [MASK]        one piece of the vocabulary, mostly a word; where it is the only
                blank and stands by itself, a word of up to three pieces
  [MASK:3]      three pieces in a row; one fill
  [MASK:1-3]    one to three pieces, see lengths below
  [MASK=name]   the same fill wherever the name stands; [MASK:2=name],
                [MASK:1-3=name]
  [MASK~st..d]  a word of these letters, a regular expression as in Go that the
                whole word has to match: gaps in damaged texts. It may have up to
                three pieces, those that exist first (--lexicon), or as
                many as stand before it, as in [MASK:1-4~.{3,5}ing] and
                [MASK:2=name~anti.*]. Of two or three such blanks a word has up to
                two pieces, of more one. Samplers and --joint pll try the 250
                likeliest words of several pieces
  \[MASK]       no blank, but this text; the backslash goes
  high[MASK]    a blank that touches a letter or digit on its left goes on with
                the word: it begins with a piece that continues one (##way)
  [MASK]ing     the fill and the text beside it read as one word: the model sees
                a word and ##ing, with --fill tokens and any a word and ing

--blank '<mask>' or --blank ___ reads that as [MASK] as well; a line of underscores
is one blank.

What they take, the blanks counted from 1 in the order of the text; all of it
narrows the fills that there are, and changes no fill's log-likelihood. A list
says that one of its words is right, so probabilities are then among the lists;
whatever else narrows the fills leaves their probabilities as they are:

  --slot 1=red,dark blue   only these, one word or several, each cut into as many
                           pieces as it needs; once for each blank. A blank with
                           a length keeps it and refuses words of another; a list
                           for one blank holds for all of its name
  --slot 1=@words.txt      the words of a file, one a line; --ban @words.txt too
  --pos 1=noun,verb        English words that can be one of these: noun, verb,
                           adjective, adverb; without 1= in every blank. A word
                           may be several parts of speech, and nothing is tagged
  --ban sky,blue sky       no blank holds these words, also not as a part of a
                           fill of several
  --fill words             words, letters and digits alone (the default);
                           high[MASK] goes on with its word, every other blank
                           begins one of its own
  --fill tokens            punctuation too
  --fill any               everything the model can put there, pieces that go on
                           with the word on the left included, as the papers do
  --characters 3-8         letters and other characters of each fill, the spaces
                           between its words not counted; 3-, -8 and 3 as well
  --distinct               no two blanks hold the same, but for those of one name
  --pieces 1-3             what [MASK] stands for: [MASK:1-3]; bounds the words of
                           --slot too. --pieces 1 leaves words of several out

Several texts, one fill. --together TEMPLATE, once for each further text, finds
fills that suit all of them, as a name and the grammar around it:

  infill "I [MASK] it ." --together "they [MASK] that ."

The log-likelihood of a fill is the sum of those in the texts, and its probability
goes with it: the texts are taken for independent. [MASK=name] answers to the
blanks of that name in the others, blanks without a name to each other in their
order; --slot 1 is the first text's blank 1. A fill has to suit the blanks of all
texts (high[MASK] and [MASK] share none). JSON has the other texts under
"together"; in files for infill run, and for the server, that is a list.

Context. --context TEXT is read before the template, as a pair of texts is: the
sentence before, a definition, or the original of which a word is to be replaced.
At most half of --window may be context.

Where the model would rather have what was left out, a line says so.

Long texts. The model sees at most --window tokens around the blanks, whole
sentences where it can; auto is 192, or the model's own limit where that is less:
time grows with the tokens. Blanks that are too far apart for one window are filled
one window after the other, from left to right, the likeliest fill of each staying
for the next; the log-likelihoods of the windows add up. A line says so. The text
comes back whole. A text may have a megabyte; the terminal UI takes 32 KB.

Capitals. A model without capitals gives none, so infill does, --case auto: to the
first letter of a sentence and of names (London, New York, Monday), and to all
letters where the words around a blank are in capitals. Texts without any get none,
but I, and the first word of a text that is a blank and ends in a full stop. A word
of a list keeps the capitals it was written with. --case keep leaves the model's
letters.

Words are cut and, for models without capitals, lowered as the text is. Under
samplers and --joint pll a list replaces --candidates, which takes the likely
tokens from what is left otherwise.
Words of several pieces, blanks of one name, and --characters or a --ban of
several pieces over longer blanks move several pieces at once. Samplers that draw
one piece from the model (gibbs, mlm-mh) or measure distances between pieces
(p-ncg, gwl), --mode decode and --initial mask refuse them.

Lengths. A template whose blanks may have several has at most 64 combinations of
lengths. By the chain rule, the default, the fills of all of them are ranked
together by probability, each combination being taken for as likely as the others.

Samplers and other joints fill the template once for each combination, and their
log-likelihoods do not compare: in a longer blank the pieces see, and give away,
each other. So fills are ranked by score, in nats a word: the mean over the words
in the blanks of the word's log-probability from left to right, the sum over its
pieces of the log-probability of the piece while it and the rest of its blank are
masked. A fill gains nothing by being cut into more pieces or by having fewer
words. --length-score word-l2r masks the rest of the word only (PLL-word-l2r; Kauf
and Ivanova, ACL 2023): words that go together then give each other away. Of each
length the likeliest fills are scored, four times as many as --top asks for, but
at least 50. Probabilities, and how often chains drew a fill, are within its length.

An only blank that stands by itself takes one word: those of one, two and three
pieces are ranked together by probability, in which a prior of the number of pieces
enters, and whether --lexicon has the word (docs/explanation/probabilities.md).
--samples, samplers, --joint pll, --together and --fill tokens or any take one
piece.

What is done, --mode:

  sample   the likeliest fills with their probabilities, proven; with --samples
           independent draws; with --sampler what its chains draw
  best     the likeliest fills: by the chain rule as sample has them. With
           --sampler or another joint, chains search for them while the
           temperature falls from 2 to 0.1 (simulated annealing); all fills they
           saw are ranked, with --rank final the best of each chain
  decode   no chains: all slots are predicted at once, and the least sure ones
           again, in as many rounds as there are slots or --steps if that is less
           (mask-predict). The first of --samples decodings takes the most
           probable token each time, the others draw at --temperature

The fills of decode, and of best by chains, follow no known law, so they have no
probabilities.

  --ladder 1,2,4   parallel tempering: each chain has a hotter replica for every
                   temperature after the first, and neighbours swap. Only the
                   first, which is --temperature, is drawn from. The step size
                   adapts to it, and the replicas take the same. Costs a step of
                   the sampler for each temperature`

const helpFormats = `Forms of the result, --format:

  text   for people: fills in colour on a terminal, long texts wrapped
  json   an array with one object for each template
  jsonl  an object a line, written as soon as its template is done
  csv    a row for each fill, with a head line and a column for each blank

An object of json and jsonl:

  id          the own "id" of the template, where --input jsonl gave one
  template    the text as given
  model       name and sha256 of the bundle
  signature   everything that the numbers depend on, in one line
  seed        with --seed it gives the same result again, on the same machine
              and number of threads; left out where nothing random happened
  method      search, draws (of --samples), exact or importance (of --joint pll
              and others), or the sampler's name
  proven      of a search: no fill that the blanks may take is likelier than those
              listed; false where the budget ended first
  left_out_at_most   of a search: no other fill has a higher probability
  unfinished  true where the run was interrupted: the likeliest fills by then
  samples     the fills, the best first:
    rank, text
    fills           one for each [MASK...] as typed, in order, as it reads in
                    the text
    spans           where each fill stands in the text, in bytes
    token_ids       of the slots, of which [MASK:3] has three
    log_likelihood  in nats
    probability     the model's own, among all that it could write, and with lists
                    of words among these; of --joint pll and others among the
                    fills of the candidates. probability_error is its standard
                    error, 0 where it has none. Of a named sampler they are its
                    frequency and that error
    count           of draws, and of a named sampler: how often the fill was drawn;
                    a sampler's frequency is its share of all draws, with a
                    standard error between chains, which is null where one or two
                    chains alone met it; --mode best and decode give none
    frequency_interval   holds the fill's probability in 95 % of cases where the
                    chains have converged
    split_r_hat, effective_draws   of the frequency: near 1 where the chains
                    agree, and how many independent draws they are worth
    pieces, score   where blanks have several lengths: the number of pieces of
                    each blank, and what fills of different lengths are ranked
                    by, see infill help templates; a search has no score: it
                    ranks all lengths by probability
    final_count     how many chains ended with it
  stats       mode, sampler, chains, steps, step_size; acceptance_rate (null where a
              sampler accepts always); changed_slots_per_step; warm_up, which
              the others leave out; draws, distinct_fills, mean_log_likelihood;
              split_r_hat and effective_draws of the log-likelihood;
              energy_evaluations, gradient_evaluations, model_rows;
              seconds on the clock, with other lines of standard input beside;
              law ("none known") with --mode best and decode; ladder and
              swap_rates with --ladder; lengths, the numbers of each, where
              blanks have several; listed_probability, that of the fills listed
              together; of --joint pll and others candidates,
              candidates_probability (what part of the model's own they have), and
              of weighted draws effective_draws and pareto_k
  marginals   for each blank its likeliest values, with text, token_ids,
              probability, probability_error; of a search, which follows only
              what may be likely, probability is what it has followed, and
              probability_at_most the most that it can be; of all lengths that
              blanks may have. Named samplers have none, and other joints
              none where blanks have several lengths
  format      3, the version of this form
  warnings    sentences about the result

A draw is the state of a chain after a step behind the warm-up, so 25 chains of
50 steps with a warm-up of 25 give 625. With --rank final only the final states
of the chains are drawn, one each, and the fills may repeat, as in the papers.

CSV of infill score has a row for each text, with --tokens for each token, and
with --pairs for each pair. Columns are named as minicons, a Python package for
scores of texts, names them: sequence_score, the sum of the log-probabilities in
nats; token_score, that of one token; PLL_metric, within_word_l2r for --method l2r,
or original. With --mutants a row has mutant, score (nats) and method.

An object of infill score: id, text, log_likelihood, method, tokens (token, id,
log_prob, span), pseudo_perplexity, model, signature.`

// helpSamplers writes the registry down.
func helpSamplers() string {
	var b strings.Builder
	b.WriteString(`Acceptance is the share of proposed moves that a chain took: near 0 the chains stand
still, and near 1 the steps may be too small to lead anywhere. Draws of a chain
resemble each other: effective draws are how many independent ones they are worth,
and errors shrink with the square root of that number.

`)
	b.WriteString(`The default of --sampler, auto, moves none: by the chain rule it finds the
likeliest fills and proves that nothing is more probable, and with --samples it
makes independent draws. Of other joints it goes through all fills where that takes
few model rows, and weighs draws of the chain rule where not; chains move only where
the weights say too little. A name moves chains, and so does an option that chains alone
have, such as --steps: then the first of the list, unless one is named. As the papers
do: their energy, the square root as balance, the best final states:

  $ infill --sampler dmala --joint pll --balance sqrt --gradient full --candidates 0 \
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
