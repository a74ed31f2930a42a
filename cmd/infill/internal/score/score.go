// Package score has the command infill score.
package score

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/ask"
	"infill/internal/batch"
	"infill/internal/lines"
	"infill/internal/option"
	"infill/internal/phrase"
	"infill/internal/rawjson"
	"infill/metrics"
)

type command struct {
	streams  *terminal.Streams
	input    cli.InputOptions
	model    cli.ModelOptions
	given    []ask.Given
	request  infill.ScoreRequest // without a text
	models   models
	right    int  // pairs whose first text is the likelier
	contexts bool // whether it is said that a column is read
	columns  []string
	keep     []string // columns that are copied, though they have an option's name

	Words  bool       `option:"words" help:"a row for each word, with its surprisal"`
	Base   string     `option:"base" enum:"2,e,10" help:"of the logarithm of --words: bits, nats, or bans"`
	Target string     `option:"target" word:"NAME" help:"NAME of a file's column with a word of the text: --words tells in from_target how many positions each word stands behind it"`
	Tokens bool       `option:"tokens" help:"a row for each token, not for each text"`
	Rank   string     `option:"rank" enum:"input,sum,perplexity" help:"order of the rows: as given, or the likeliest first, by the sum, or by the pseudo-perplexity, which is per token"`
	Pairs  bool       `option:"pairs" help:"each line has the better text, a tab, and the other text: say which is likelier"`
	from   batch.Form // of files whose names do not say it; "" if all do
}

// contextColumn is the column, or key, of the text that stands before a text.
const contextColumn = "context"

func NewCmd(s *terminal.Streams) *cobra.Command {
	c := &command{streams: s, input: cli.InputOptions{Streams: s, Key: "text",
		Reads: func(string) bool { return true }}, Base: "2", Rank: "input"}
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
	cli.AddOptionsOf(cmd, ask.ScoreOptions, &c.given, "method")
	cli.AddOptionsOf(cmd, ask.ScoreOptions, &c.given, contextColumn)
	flags.Lookup(contextColumn).Usage += "; a column context gives each its own"
	cli.Bind(cmd, c)
	flags.Var((*cli.List)(&c.columns), "column",
		"`NAME` of a file's column of texts (default text); with --pairs NAME,NAME, the better text and the other "+
			"(default first,second)")
	cli.AddChoice(cmd, (*string)(&c.from), "from", "", cli.Texts(batch.Forms()), "format of the files, if their "+
		"names do not say")
	flags.Var((*cli.List)(&c.keep), "keep", "`LIST` of columns to copy, though they have an option's name")
	c.input.Register(cmd)
	c.model.Register(cmd)
	flags.Lookup("model").Value = &c.models
	flags.Lookup("model").Usage += "; several --model run one after the other, and a column model names them"
	return cmd
}

// models is a flag that takes several models, as typed.
type models []string

func (m *models) String() string { return strings.Join(*m, ",") }
func (m *models) Type() string   { return "string" }

func (m *models) Set(name string) error {
	if slices.Contains(*m, name) {
		return errors.New("another model than those before")
	}
	*m = append(*m, name)
	return nil
}

// exclusive returns an error for flags that exclude each other.
func (c *command) exclusive(flags *pflag.FlagSet) error {
	switch {
	case c.Pairs && (c.Tokens || c.Words || c.Rank != "input"):
		return cli.Usagef("--pairs excludes --words, --tokens and --rank: a pair has one row, in its place")
	case c.Tokens && c.Words:
		return cli.Usagef("--tokens and --words exclude each other: give one")
	case c.Pairs && len(c.models) > 1:
		return cli.Usagef("--pairs takes one --model")
	case c.Target != "" && !c.Words:
		return cli.Usagef("--target: it is a column of words: give --words")
	case c.Target != "" && c.input.Format == "text":
		return cli.Usagef("--target: text has no column for it: give --format csv, jsonl or json")
	case flags.Changed("base") && !c.Words:
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
	if c.Pairs {
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
		records, note, err := batch.Records(batch.File{Path: argument.Text, Form: c.from}, c.columns...)
		if err != nil {
			usage := &cli.UsageError{Err: cli.Describe(err)}
			var missing *infill.OptionError
			if c.Pairs && errors.As(err, &missing) {
				usage.Hint = "a file of tabs without a head line is read as standard input: infill score --pairs < FILE"
			}
			return usage
		}
		if note != "" {
			cli.Warn(c.streams, c.model.Quiet, "%s", note)
		}
		if !slices.ContainsFunc(records, func(r batch.Record) bool { return !r.Blank }) {
			return cli.Usagef("%s: no text in it", argument.Text)
		}
		has := func(name string) bool {
			return slices.ContainsFunc(records, func(r batch.Record) bool { return r.Object.Get(name) != nil })
		}
		for _, name := range c.keep {
			if !has(name) {
				return cli.Usagef("--keep: %s has no column %q", argument.Text, name)
			}
		}
		if c.Target != "" && !has(c.Target) {
			return cli.Usagef("--target: %s has no column %q", argument.Text, c.Target)
		}
		for _, r := range records {
			var texts []string
			for _, name := range c.columns {
				texts = append(texts, strings.ReplaceAll(rawjson.Plain(r.Object.Get(name)), "\t", " "))
			}
			id := json.RawMessage(r.Object.Given("id"))
			entries = append(entries, cli.Entry{Text: strings.Join(texts, "\t"), Of: r.Object, ID: id,
				File: argument.Text, Line: int(r.Line), Err: r.Err, Blank: r.Blank})
		}
	}
	columns := func(e cli.Entry) bool { return e.Of != nil }
	if c.Target != "" && c.input.Input == cli.Inputs()[0] && !slices.ContainsFunc(entries, columns) {
		return cli.Usagef("--target: a text alone has no columns: give a file, or --input jsonl")
	}
	c.input.Texts = entries
	return nil
}

// run scores the texts, or the pairs of texts, with one model after the other.
// It prints the scores and, of several models, how they compare.
func (c *command) run(ctx context.Context) (err error) {
	if len(c.models) > 1 && len(c.input.Texts) == 0 {
		c.input.Texts, err = c.input.Lines(ctx)
		if err != nil {
			return err
		}
	}
	var fillers []*infill.Filler // each loads its model when it first runs
	for i := range max(1, len(c.models)) {
		of := c.model
		if c.models != nil {
			of.Model = c.models[i]
		}
		f, err := of.Open(c.streams)
		if err != nil {
			return err
		}
		fillers = append(fillers, f)
	}
	p := &cli.Printer[row]{Style: c.style(), Format: c.input.Format, Streams: c.streams}
	var all []map[place]float64
	for i, f := range fillers {
		name := ""
		if len(fillers) > 1 {
			name = c.models[i]
		}
		values, wrong := c.pass(ctx, f, name, p)
		wrong = errors.Join(wrong, f.Close())
		all = append(all, values)
		err = cmp.Or(err, wrong)
		if wrong != nil && !errors.Is(wrong, cli.ErrReported) {
			return c.end(p, wrong)
		}
	}
	err = c.end(p, cmp.Or(p.End(), err))
	for i, values := range all[1:] {
		if !c.Tokens {
			c.model.Report(c.streams, "%s less %s: %s", c.models[i+1], c.models[0], c.compared(all[0], values))
		}
	}
	return err
}

// end ends the output, also where err is not nil, and returns err.
func (c *command) end(p *cli.Printer[row], err error) error {
	err = p.Whole(err)
	if c.Pairs && p.Results > 0 {
		err = errors.Join(err, c.tellVerdict(c.right, p.Results))
	}
	return err
}

// pass scores all texts with one model, and prints the scores. name is that of
// one of several models. It returns the values by which models are compared.
func (c *command) pass(ctx context.Context, f *infill.Filler, name string, p *cli.Printer[row]) (
	values map[place]float64, err error) {
	values = map[place]float64{}
	var rows []row
	tell := func(r row) error {
		if r.ownContext && !c.contexts {
			c.contexts = true
			c.model.Report(c.streams, "columns read as options: context; --keep context copies one instead")
		}
		c.model.Note(c.streams, "signature %s", r.scores[0].Signature)
		if r.right() {
			c.right++
		}
		if name != "" {
			maps.Copy(values, c.values(r))
		}
		if c.Rank != "input" {
			rows = append(rows, r)
			return nil
		}
		return c.print(p, r)
	}
	return values, c.each(ctx, f, name, func() error {
		slices.SortStableFunc(rows, func(a, b row) int {
			if c.Rank == "perplexity" {
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
		return nil
	}, tell)
}

// print prints a row or, of a text whose words are wanted, a row for each.
func (c *command) print(p *cli.Printer[row], r row) error {
	if !c.Words || c.input.Format == "text" {
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
	turn   int64  // number of the text
	model  string // of several; else ""
	scores []*infill.Score
	word   int    // its number, from 1; 0 for a text
	base   string // of the word's surprisal
	column string // name of the column of the text
	// counted is whether words are counted from target; 0 names none.
	counted bool
	target  int
	// ownContext is whether the context is from the user's columns.
	ownContext bool
	others     rawjson.Object // further columns of the user
}

// by returns ", model NAME" for one of several models.
func (r row) by() string {
	if r.model == "" {
		return ""
	}
	return ", model " + cli.OneLine(r.model)
}

// right reports whether the log-likelihood of the first text of a pair is the larger.
func (r row) right() bool {
	return len(r.scores) == 2 && r.scores[0].LogLikelihood > r.scores[1].LogLikelihood
}

// beside adds the user's columns to o. The text gets the user's name for it.
func (r row) beside(o rawjson.Object) rawjson.Object {
	if r.model != "" && o.Get("model") == nil { // the JSON of a text has it
		name, _ := json.Marshal(r.model) // a text can always be encoded
		o = append(o, rawjson.Field{Key: "model", Value: name})
	}
	taken := func(name string) bool { return name != "text" && o.Get(name) != nil }
	var columns []string
	for _, f := range r.others {
		columns = append(columns, f.Key)
	}
	names := rawjson.Beside(columns, r.column, taken)
	return append(o.Rename(map[string]string{"text": names[r.column]}), r.others.Rename(names)...)
}

// MarshalJSON implements json.Marshaler. The user's id comes first.
func (r row) MarshalJSON() ([]byte, error) {
	if r.ownContext && r.word == 0 { // the score has it
		r.others = r.others.Without(contextColumn)
	}
	var o rawjson.Object
	var err error
	switch {
	case r.word > 0:
		o, err = rawjson.Pairs(r.wordColumns()...)
	case len(r.scores) == 1:
		var score rawjson.Value
		score, err = rawjson.Encode(r.scores[0])
		o = score.Object()
	default:
		o, err = rawjson.Pairs("first", r.scores[0], "second", r.scores[1], "right", r.right())
	}
	o = r.beside(o)
	if r.id != nil {
		o = append(rawjson.Object{{Key: "id", Value: rawjson.Value(r.id)}}, o...)
	}
	return o.Append(nil), err
}

// each scores each text, or both texts of each pair, and passes the scores to tell.
func (c *command) each(ctx context.Context, f *infill.Filler, name string, end func() error,
	tell func(row) error) error {
	read := func(e cli.Entry) ([]string, error) {
		texts := []string{e.Text}
		if c.Pairs {
			texts = strings.Split(e.Text, "\t")
		}
		if c.Pairs && len(texts) != 2 {
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
			r := row{id: e.ID, turn: e.Caller.Turn, model: name, base: c.Base, column: columns[0],
				others: e.Of.Without(append(columns, "id")...)}
			before, own, err := c.before(e.Of.Without(columns...))
			if err != nil {
				return nil, err
			}
			r.ownContext = own
			for _, text := range texts {
				own := c.request
				own.Text, own.Context = text, before
				score, err := f.For(e.Caller).Score(ctx, own)
				if err != nil {
					return nil, cli.DescribeLine(e.Of, err)
				}
				r.scores = append(r.scores, score)
			}
			if c.Target != "" {
				r.counted = true
				r.target, err = r.find(rawjson.Plain(e.Of.Get(c.Target)))
				if err != nil {
					return nil, &cli.MisfitError{Err: fmt.Errorf("--target: %w", err)}
				}
			}
			return func() error {
				for _, s := range r.scores {
					c.model.WarnOf(c.streams, e, s.Warnings, s.Typed)
				}
				return tell(r)
			}, nil
		})
}

// before returns a record's own context, if it has one, or the flag's.
func (c *command) before(of rawjson.Object) (text string, own bool, err error) {
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

// tellVerdict prints how often the first text of a pair is likelier, with the
// 95 % interval; to standard error where CSV or JSON have no place.
func (c *command) tellVerdict(right, pairs int) (err error) {
	share := float64(right) / float64(pairs)
	low, high := metrics.Wilson(share, float64(pairs), 0.95)
	line := fmt.Sprintf("the first text is the likelier in %d of %s, %.1f %%, 95 %% interval %.1f to %.1f %%", right,
		phrase.Counted(pairs, "pair"), 100*share, 100*low, 100*high)
	switch {
	case c.input.Format == "text":
		_, err = fmt.Fprintln(c.streams.Out, "\n"+line)
	case c.input.Format == "jsonl":
		err = rawjson.WriteLine(c.streams.Out, struct {
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
		line, failed := rawjson.Pairs(append([]any{"id", r.id}, pairs...)...)
		err = cmp.Or(err, failed)
		if err == nil {
			err = table.Add(batch.Rows{Lines: []json.RawMessage{[]byte("[]")}}, r.beside(line))
		}
	}
	s := r.scores[0]
	switch {
	case r.word > 0:
		add(r.wordColumns()...)
	case c.Pairs:
		add("first", s.Text, "second", r.scores[1].Text, "first_sequence_score", s.LogLikelihood,
			"second_sequence_score", r.scores[1].LogLikelihood, "right", r.right())
	case c.Tokens:
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

func (c *command) style() cli.Style[row] {
	style := cli.Style[row]{Add: c.add,
		Layout: func(copied []string) batch.Layout { return batch.Layout{After: copied} }}
	switch {
	case c.Pairs:
		style.Text = pairText
	case c.Tokens:
		style.Text = tokensText
	case c.Words:
		style.Text = c.wordsText
	default:
		style.Heading = "log-likelihood  tokens  pseudo-perplexity  text\n"
		style.Text = func(r row, _ int) string {
			s := r.scores[0]
			text := cli.OneLine(lines.One(s.Text))
			if r.model != "" {
				text = cli.OneLine(r.model) + ": " + text
			}
			return fmt.Sprintf("%14.2f  %6d  %17.4g  %s\n", s.LogLikelihood, len(s.Tokens), s.PseudoPerplexity, text)
		}
	}
	return style
}

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

func tokensText(r row, width int) string {
	s := r.scores[0]
	var rows [][]string
	for _, t := range s.Tokens {
		rows = append(rows, []string{cli.OneLine(t.Token), fmt.Sprintf("%.2f", t.LogProb)})
	}
	rows = append(rows, []string{"sum", fmt.Sprintf("%.2f", s.LogLikelihood)})
	return cli.Wrap(cli.Mark(s.Text, nil), width, "") + "\n\n" +
		cli.RenderTable(width, []string{"token", "log-probability"}, rows, 0) + "\n" + cli.Notes(width,
		fmt.Sprintf("%s, method %s, pseudo-perplexity %.4g%s", phrase.Counted(len(s.Tokens), "token"), s.Method,
			s.PseudoPerplexity, r.by()))
}
