// Package score has the command infill score.
package score

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/infill/batch"
	"infill/internal/lines"
	"infill/internal/object"
	"infill/internal/option"
	"infill/metrics"
)

// command holds the flags and arguments of infill score.
type command struct {
	streams *terminal.Streams
	input   cli.InputOptions
	model   cli.ModelOptions
	given   []infill.Given
	request infill.ScoreRequest // without a text
	keep    []string            // columns that are copied, though they have an option's name
	words   bool
	base    string // one of bases
	tokens  bool
	rank    string // one of ranks
	pairs   bool
	columns []string   // columns of a file with the text, or with the better and the other text of a pair
	from    batch.Form // of files whose names do not say it; "" if all do
}

var ranks = []string{"input", "sum", "perplexity"}

// contextColumn is the column, or key, of the text that stands before a text.
const contextColumn = "context"

// NewCmd returns the command infill score.
func NewCmd(s *terminal.Streams) *cobra.Command {
	c := &command{streams: s, input: cli.InputOptions{Streams: s, Key: "text",
		Reads: func(string) bool { return true }}}
	cmd := &cobra.Command{
		Use:   "score [TEXT... | FILE]",
		Short: "Rate whole texts by their pseudo-log-likelihood",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(c.model.Validate(),
				c.input.Take(args, `infill score "he had never seen the sea .", or infill score --help`)); err != nil {
				return err
			}
			option.Assign(&c.request, c.given)
			err := c.exclusive(cmd.Flags())
			if err != nil {
				return err
			}
			err = c.readFiles(cmd.Context(), cmd.ArgsLenAtDash())
			if err != nil {
				return err
			}
			return c.run(cmd.Context())
		},
		ValidArgsFunction: cli.CompleteFiles,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	cli.AddOptionsOf(cmd, infill.ScoreOptions, &c.given, "method")
	cli.AddOptionsOf(cmd, infill.ScoreOptions, &c.given, contextColumn)
	flags.Lookup(contextColumn).Usage += "; a column context gives each its own"
	flags.BoolVar(&c.words, "words", false, "a row for each word, with its surprisal")
	c.base = bases[0]
	cli.AddChoice(cmd, &c.base, "base", "", bases, "of the logarithm of --words: bits, nats, or bans")
	flags.BoolVar(&c.tokens, "tokens", false, "a row for each token, not for each text")
	c.rank = ranks[0]
	cli.AddChoice(cmd, &c.rank, "rank", "", ranks, "order of the rows: as given, or the likeliest first, "+
		"by the sum, or by the pseudo-perplexity, which is per token")
	flags.BoolVar(&c.pairs, "pairs", false,
		"each line has the better text, a tab, and the other text: say which is likelier")
	flags.Var((*cli.List)(&c.columns), "column",
		"`NAME` of a file's column of texts (default text); with --pairs NAME,NAME, the better text and the other "+
			"(default first,second)")
	cli.AddChoice(cmd, (*string)(&c.from), "from", "", cli.Texts(batch.Forms()), "format of the files, if their "+
		"names do not say")
	flags.Var((*cli.List)(&c.keep), "keep", "`LIST` of columns to copy, though they have an option's name")
	c.input.Register(cmd)
	c.model.Register(cmd)
	return cmd
}

// exclusive returns an error for flags that exclude each other.
func (c *command) exclusive(flags *pflag.FlagSet) error {
	switch {
	case c.pairs && (c.tokens || c.words || c.rank != ranks[0]):
		return cli.Usagef("--pairs excludes --words, --tokens and --rank: a pair has one row, in its place")
	case c.tokens && c.words:
		return cli.Usagef("--tokens and --words exclude each other: give one")
	case flags.Changed("base") && !c.words:
		return cli.Usagef("--base: it is that of surprisals: give --words")
	}
	return nil
}

// readFiles replaces each argument that names a file by the records of the file, and a
// dash by the lines of standard input. From argument dash on all are texts, if it is
// not below 0.
func (c *command) readFiles(ctx context.Context, dash int) error {
	names := []string{"text"}
	wanted := "one name"
	if c.pairs {
		names = []string{"first", "second"}
		wanted = "two names with a comma between them"
	}
	if c.columns == nil {
		c.columns = names
	}
	if len(c.columns) != len(names) || slices.Contains(c.columns, "") {
		return cli.Usagef("--column: %q is not %s", strings.Join(c.columns, ","), wanted)
	}
	var entries []cli.Entry
	for i, argument := range c.input.Texts {
		after := dash >= 0 && i >= dash
		if argument.Text == "-" && !after {
			lines, err := c.input.Lines(ctx)
			if err != nil {
				return err
			}
			entries = append(entries, lines...)
			continue
		}
		file, err := cli.IsFile(argument.Text, after)
		if err != nil {
			return err
		}
		if !file {
			entries = append(entries, argument)
			continue
		}
		records, err := batch.Records(batch.File{Path: argument.Text, Form: c.from}, c.columns...)
		if err != nil {
			usage := &cli.UsageError{Err: cli.Describe(err)}
			var missing *infill.OptionError
			if c.pairs && errors.As(err, &missing) {
				usage.Hint = "a file of tabs without a head line is read as standard input: infill score --pairs < FILE"
			}
			return usage
		}
		if !slices.ContainsFunc(records, func(r batch.Record) bool { return !r.Blank }) {
			return cli.Usagef("%s: no text in it", argument.Text)
		}
		for _, name := range c.keep {
			if !slices.ContainsFunc(records, func(r batch.Record) bool { return r.Object.Get(name) != nil }) {
				return cli.Usagef("--keep: %s has no column %q", argument.Text, name)
			}
		}
		for _, r := range records {
			var texts []string
			for _, name := range c.columns {
				texts = append(texts, strings.ReplaceAll(object.Plain(r.Object.Get(name)), "\t", " "))
			}
			id := json.RawMessage(r.Object.Given("id"))
			entries = append(entries, cli.Entry{Text: strings.Join(texts, "\t"), Of: r.Object, ID: id,
				File: argument.Text, Line: int(r.Line), Err: r.Err, Blank: r.Blank})
		}
	}
	c.input.Texts = entries
	return nil
}

// run scores the texts, or the pairs of texts, and prints the scores.
func (c *command) run(ctx context.Context) (err error) {
	f, err := c.model.Open(c.streams)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	p := &cli.Printer[row]{Form: c.form(), Format: c.input.Format, Streams: c.streams}
	var rows []row
	right := 0
	contexts := false // whether it is said that a column is read
	tell := func(r row) error {
		if r.ownContext && !contexts {
			contexts = true
			c.model.Report(c.streams, "columns read as options: context; --keep context copies one instead")
		}
		c.model.Note(c.streams, "signature %s", r.scores[0].Signature)
		if r.right() {
			right++
		}
		if c.rank != ranks[0] {
			rows = append(rows, r)
			return nil
		}
		return c.print(p, r)
	}
	end := func() error {
		slices.SortStableFunc(rows, func(a, b row) int {
			if c.rank == "perplexity" {
				return cmp.Compare(a.scores[0].PseudoPerplexity, b.scores[0].PseudoPerplexity)
			}
			return cmp.Compare(b.scores[0].LogLikelihood, a.scores[0].LogLikelihood)
		})
		for _, r := range rows {
			err := c.print(p, r)
			if err != nil {
				return err
			}
		}
		return p.End()
	}
	if err = p.Whole(c.each(ctx, f, end, tell)); c.pairs && p.Results > 0 {
		err = errors.Join(err, c.tellVerdict(right, p.Results))
	}
	return err
}

// print prints a row or, of a text whose words are wanted, a row for each.
func (c *command) print(p *cli.Printer[row], r row) error {
	if !c.words || c.input.Format == "text" {
		return p.Print(r)
	}
	for i := range r.scores[0].Words {
		r.word = i + 1
		err := p.Print(r)
		if err != nil {
			return err
		}
	}
	return nil
}

// row is the score of a text or of a word of it, or the two scores of a pair.
type row struct {
	id     json.RawMessage
	scores []*infill.Score
	word   int    // its number, from 1; 0 for a text
	base   string // of the word's surprisal
	column string // name of the column of the text
	// ownContext is whether the context is from the user's columns.
	ownContext bool
	others     object.Object // further columns of the user
}

// right reports whether the log-likelihood of the first text of a pair is the larger.
func (r row) right() bool {
	return len(r.scores) == 2 && r.scores[0].LogLikelihood > r.scores[1].LogLikelihood
}

// beside adds the user's columns to o. It gives the text the name that it had
// in the user's data.
func (r row) beside(o object.Object) object.Object {
	taken := func(name string) bool { return name != "text" && o.Get(name) != nil }
	others, name := object.Beside(r.others, r.column, taken)
	return append(o.Rename("text", name), others...)
}

// MarshalJSON implements json.Marshaler. The user's id comes first.
func (r row) MarshalJSON() ([]byte, error) {
	if r.ownContext && r.word == 0 { // the score has it
		r.others = r.others.Without(contextColumn)
	}
	var o object.Object
	var err error
	switch {
	case r.word > 0:
		o, err = object.Pairs(r.wordColumns()...)
	case len(r.scores) == 1:
		o, err = object.Of(r.scores[0])
	default:
		o, err = object.Pairs("first", r.scores[0], "second", r.scores[1], "right", r.right())
	}
	o = r.beside(o)
	if r.id != nil {
		o = append(object.Object{{Key: "id", Value: object.Value(r.id)}}, o...)
	}
	return o.Append(nil), err
}

// each scores each text, or both texts of each pair, and passes the scores to tell.
func (c *command) each(ctx context.Context, f *infill.Filler, end func() error, tell func(row) error) error {
	read := func(e cli.Entry) ([]string, error) {
		texts := []string{e.Text}
		if c.pairs {
			texts = strings.Split(e.Text, "\t")
		}
		if c.pairs && len(texts) != 2 {
			return nil, &cli.MisfitError{Err: errors.New("a pair is two texts with a tab between them")}
		}
		for _, text := range texts {
			if _, err := f.Plain(text); err != nil {
				return nil, err
			}
		}
		return texts, nil
	}
	return cli.Each(ctx, &c.input, &c.model, read, end,
		func(ctx context.Context, e cli.Entry, texts []string) (func() error, error) {
			columns := c.columns
			if e.File == "" {
				columns = []string{c.input.Key} // the only text column of JSON lines
			}
			r := row{id: e.ID, base: c.base, column: columns[0], others: e.Of.Without(append(columns, "id")...)}
			before, own, err := c.before(e.Of.Without(columns...))
			if err != nil {
				return nil, err
			}
			r.ownContext = own
			for _, text := range texts {
				own := c.request
				own.Text, own.Context = text, before
				score, err := f.Score(ctx, own)
				if err != nil {
					return nil, cli.DescribeLine(e.Of, err)
				}
				r.scores = append(r.scores, score)
			}
			return func() error {
				for _, s := range r.scores {
					c.model.WarnOf(c.streams, e, s.Warnings)
				}
				return tell(r)
			}, nil
		})
}

// before returns the context of a record: its own, if it has a column for it,
// or the flag's.
func (c *command) before(of object.Object) (text string, own bool, err error) {
	value := of.Given(contextColumn)
	if value == nil || slices.Contains(c.keep, contextColumn) { // nor is a column of texts a context
		return c.request.Context, false, nil
	}
	text, err = of.Text(contextColumn)
	if err != nil {
		return "", false, &cli.MisfitError{Err: fmt.Errorf("%w, or copy it by --keep context", err)}
	}
	if strings.TrimSpace(text) == "" { // an empty cell
		return c.request.Context, false, nil
	}
	return text, true, nil
}

// tellVerdict prints how often the first text of a pair is the likelier, with
// the 95 % interval of the share. For CSV and a list of JSON, whose form has no
// place for it, it prints to standard error.
func (c *command) tellVerdict(right, pairs int) (err error) {
	share := float64(right) / float64(pairs)
	low, high := metrics.Wilson(share, float64(pairs), 0.95)
	line := fmt.Sprintf("the first text is the likelier in %d of %s, %.1f %%, 95 %% interval %.1f to %.1f %%", right,
		infill.Counted(pairs, "pair"), 100*share, 100*low, 100*high)
	switch {
	case c.input.Format == "text":
		_, err = fmt.Fprintln(c.streams.Out, "\n"+line)
	case c.input.Format == "jsonl":
		err = object.WriteLine(c.streams.Out, struct {
			Right    int        `json:"pairs_right"`
			Pairs    int        `json:"pairs"`
			Interval [2]float64 `json:"interval"`
		}{right, pairs, [2]float64{low, high}})
	default:
		c.model.Report(c.streams, "%s", line)
	}
	return err
}

// add adds a line for a text or a pair, or for each token. Where minicons has a name for a
// column, the column has this name: sequence_score, token_score, PLL_metric.
func (c *command) add(table *batch.Sheet, r row) (err error) {
	add := func(pairs ...any) {
		line, failed := object.Pairs(append([]any{"id", r.id}, pairs...)...)
		err = cmp.Or(err, failed)
		if err == nil {
			err = table.Add(batch.Rows{Lines: []json.RawMessage{[]byte("[]")}}, r.beside(line))
		}
	}
	s := r.scores[0]
	switch {
	case r.word > 0:
		add(r.wordColumns()...)
	case c.pairs:
		add("first", s.Text, "second", r.scores[1].Text, "first_sequence_score", s.LogLikelihood,
			"second_sequence_score", r.scores[1].LogLikelihood, "right", r.right())
	case c.tokens:
		for i, t := range s.Tokens {
			add("text", s.Text, "position", i+1, "token", t.Token, "token_id", t.ID, "token_score", t.LogProb,
				"sequence_score", s.LogLikelihood, "PLL_metric", s.Method)
		}
	default:
		add("text", s.Text, "sequence_score", s.LogLikelihood, "tokens", len(s.Tokens),
			"pseudo_perplexity", s.PseudoPerplexity, "PLL_metric", s.Method)
	}
	return err
}

// form returns how to print scores.
func (c *command) form() cli.Form[row] {
	form := cli.Form[row]{Add: c.add,
		Layout: func(copied []string) batch.Layout { return batch.Layout{After: copied} }}
	switch {
	case c.pairs:
		form.Text = pairText
	case c.tokens:
		form.Text = tokensText
	case c.words:
		form.Text = c.wordsText
	default:
		form.Heading = "log-likelihood  tokens  pseudo-perplexity  text\n"
		form.Text = func(r row, _ int) string {
			s := r.scores[0]
			return fmt.Sprintf("%14.2f  %6d  %17.4g  %s\n", s.LogLikelihood, len(s.Tokens), s.PseudoPerplexity,
				cli.OneLine(lines.One(s.Text)))
		}
	}
	return form
}

// pairText returns a table of the two texts of a pair.
func pairText(r row, width int) string {
	var rows [][]string
	for _, s := range r.scores {
		rows = append(rows, []string{cli.Mark(s.Text, nil), fmt.Sprintf("%.2f", s.LogLikelihood)})
	}
	verdict := "the first is not likelier"
	if r.right() {
		verdict = "the first is likelier"
	}
	return cli.RenderTable(width, []string{"text", "log-likelihood"}, rows, 0) + cli.Notes(width, verdict)
}

// tokensText returns a table of the tokens of a text.
func tokensText(r row, width int) string {
	s := r.scores[0]
	var rows [][]string
	for _, t := range s.Tokens {
		rows = append(rows, []string{cli.OneLine(t.Token), fmt.Sprintf("%.2f", t.LogProb)})
	}
	rows = append(rows, []string{"sum", fmt.Sprintf("%.2f", s.LogLikelihood)})
	return cli.Wrap(cli.Mark(s.Text, nil), width, "") + "\n\n" +
		cli.RenderTable(width, []string{"token", "log-probability"}, rows, 0) + "\n" + cli.Notes(width,
		fmt.Sprintf("%s, method %s, pseudo-perplexity %.4g", infill.Counted(len(s.Tokens), "token"), s.Method,
			s.PseudoPerplexity))
}
