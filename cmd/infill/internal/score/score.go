// Package score is infill score.
package score

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/infill/batch"
	"infill/internal/object"
	"infill/metrics"
)

// command holds the flags and arguments of scoring.
type command struct {
	streams *terminal.Streams
	input   cli.InputOptions
	model   cli.ModelOptions
	method  infill.ScoreMethod
	tokens  bool
	rank    bool
	pairs   bool
	columns []string // the column of a file with the text; for pairs those with the better text and the other
	others  []string // further columns of the first text
}

// NewCmd makes infill score.
func NewCmd(s *terminal.Streams) *cobra.Command {
	c := &command{streams: s, method: infill.WordScore, input: cli.InputOptions{Streams: s, Key: "text",
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
			if c.pairs && (c.tokens || c.rank) {
				return cli.Usagef("--pairs excludes --tokens and --rank: a pair has one row, in its place")
			}
			if err := c.readFiles(); err != nil {
				return err
			}
			return c.run(cmd.Context())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	cli.AddChoice(cmd, (*string)(&c.method), "method", "",
		cli.Texts([]infill.ScoreMethod{infill.WordScore, infill.PieceScore}), "what is masked beside a token")
	flags.BoolVar(&c.tokens, "tokens", false, "a row for each token, not for each text")
	flags.BoolVar(&c.rank, "rank", false, "the likeliest text first, when all are scored")
	flags.BoolVar(&c.pairs, "pairs", false,
		"a line has two texts, the better one first and a tab between: tell which is likelier")
	flags.StringSliceVar(&c.columns, "column", nil,
		"`NAME` of the column of a file with the text (default text), or of --pairs NAME,NAME, of the better text and "+
			"the other (default first,second)")
	c.input.Register(cmd)
	c.model.Register(cmd)
	return cmd
}

// readFiles replaces the names of files by their records.
func (c *command) readFiles() error {
	names, wanted := []string{"text"}, "one name"
	if c.pairs {
		names, wanted = []string{"first", "second"}, "two names with a comma between them"
	}
	if c.columns == nil {
		c.columns = names
	}
	if len(c.columns) != len(names) || slices.Contains(c.columns, "") {
		return cli.Usagef("--column: %q is not %s", strings.Join(c.columns, ","), wanted)
	}
	var entries []cli.Entry
	for _, argument := range c.input.Texts {
		if strings.ContainsAny(argument.Text, " \t") || !batch.IsFile(argument.Text) {
			entries = append(entries, argument)
			continue
		}
		records, err := batch.Records(batch.File{Path: argument.Text}, c.columns...)
		if err != nil {
			hint := "name the column by --column"
			switch {
			case errors.Is(err, fs.ErrNotExist):
				hint = ""
			case c.pairs:
				hint += "; give a file of tabs without a head line as standard input: infill score --pairs < FILE"
			}
			return &cli.UsageError{Err: err, Hint: hint}
		}
		if len(records) == 0 {
			return cli.Usagef("%s: no text in it", argument.Text)
		}
		for _, r := range records {
			var texts []string
			for _, name := range c.columns {
				texts = append(texts, strings.ReplaceAll(object.Plain(r.Object.Get(name)), "\t", " "))
			}
			entries = append(entries, cli.Entry{Text: strings.Join(texts, "\t"), Of: r.Object, ID: r.Object.Get("id"),
				File: argument.Text, Line: int(r.Line), Err: r.Err})
		}
	}
	c.input.Texts = entries
	return nil
}

// run scores the texts, or the pairs of texts.
func (c *command) run(ctx context.Context) (err error) {
	f, err := c.model.Open(c.streams)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	form := c.scoreForm()
	if c.pairs {
		form = c.pairForm()
	}
	p := &cli.Printer[row]{Form: form, Format: c.input.Format, Streams: c.streams}
	var rows []row
	right := 0
	tell := func(r row) error {
		if r.right() {
			right++
		}
		if c.rank {
			rows = append(rows, r)
			return nil
		}
		return c.print(p, r)
	}
	end := func() error {
		slices.SortStableFunc(rows, func(a, b row) int {
			return cmp.Compare(b.scores[0].LogLikelihood, a.scores[0].LogLikelihood)
		})
		for _, r := range rows {
			if err := c.print(p, r); err != nil {
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

// row is the score of a text, or of both of a pair.
type row struct {
	id     json.RawMessage
	scores []*infill.Score
	name   string        // the name of the text's column
	beside object.Object // the other columns of the user
}

// right reports whether the first text of a pair is the likelier, in sum.
func (r row) right() bool {
	return len(r.scores) == 2 && r.scores[0].LogLikelihood > r.scores[1].LogLikelihood
}

// MarshalJSON implements json.Marshaler.
func (r row) MarshalJSON() ([]byte, error) {
	if len(r.scores) == 2 {
		o, err := object.Of(struct {
			First  *infill.Score `json:"first"`
			Second *infill.Score `json:"second"`
			Right  bool          `json:"right"`
		}{r.scores[0], r.scores[1], r.right()})
		return append(o, r.beside...).Append(nil), err
	}
	o, err := object.Of(r.scores[0])
	return append(o.Rename("text", r.name), r.beside...).Append(nil), err
}

// print prints a row. The first row decides the columns of CSV.
func (c *command) print(p *cli.Printer[row], r row) error {
	if p.Results == 0 {
		if !c.pairs {
			p.Header[1] = r.name
		}
		for _, f := range r.beside {
			c.others = append(c.others, f.Key)
		}
		p.Header = append(p.Header, c.others...)
		c.model.Note(c.streams, "signature %s", r.scores[0].Signature)
	}
	for _, f := range r.beside {
		if c.input.Format == "csv" && !slices.Contains(c.others, f.Key) {
			return &cli.MisfitError{Err: fmt.Errorf("the CSV has no column %q, which the first text does not have: "+
				"take --format jsonl", f.Key)}
		}
	}
	return p.Print(r.id, r)
}

// each scores each text, or both texts of each pair.
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
	small := func([]string) bool { return false }
	return cli.Each(ctx, &c.input, c.model.Quiet, read, small, end,
		func(ctx context.Context, e cli.Entry, texts []string) (func() error, error) {
			r := c.rowOf(e)
			for _, text := range texts {
				score, err := f.Score(ctx, text, c.method)
				if err != nil {
					return nil, err
				}
				r.scores = append(r.scores, score)
			}
			return func() error {
				for _, s := range r.scores {
					for _, warning := range s.Warnings {
						c.model.Warn(c.streams, "%s", warning)
					}
				}
				return tell(r)
			}, nil
		})
}

// rowOf returns the row of a text, without scores.
func (c *command) rowOf(e cli.Entry) row {
	texts := c.columns
	if e.File == "" {
		texts = []string{c.input.Key} // the text's key in lines of JSON
	}
	taken := append(object.Keys[infill.Score](), c.scoreForm().Header...)
	if c.pairs {
		taken = c.pairForm().Header
	}
	// The text keeps the name of its column.
	columns := append(e.Of.Without(append(texts, "id")...), object.Field{Key: texts[0]})
	columns = object.Beside(columns, func(name string) bool { return name != "text" && slices.Contains(taken, name) })
	last := len(columns) - 1
	return row{id: e.ID, name: columns[last].Key, beside: columns[:last]}
}

// tellVerdict prints the number of pairs whose first text is the likelier, with the 95 % interval of the share. CSV and
// a list of JSON have no place for it.
func (c *command) tellVerdict(right, pairs int) (err error) {
	share := float64(right) / float64(pairs)
	low, high := metrics.Wilson(share, float64(pairs), 0.95)
	line := fmt.Sprintf("the first text is the likelier in %d of %s, %.1f %%, 95 %% interval %.1f to %.1f %%", right,
		cli.Counted(pairs, "pair"), 100*share, 100*low, 100*high)
	switch {
	case c.input.Format == "text":
		_, err = fmt.Fprintln(c.streams.Out, "\n"+line)
	case c.input.Format == "jsonl":
		err = object.WriteLine(c.streams.Out, struct {
			Right    int        `json:"pairs_right"`
			Pairs    int        `json:"pairs"`
			Interval [2]float64 `json:"interval"`
		}{right, pairs, [2]float64{low, high}})
	case !c.model.Quiet:
		fmt.Fprintln(c.streams.Err, "infill: "+line)
	}
	return err
}

// cells appends the other columns of the user to each row of CSV.
func (c *command) cells(r row, rows ...[]string) ([][]string, error) {
	for i := range rows {
		for _, name := range c.others {
			rows[i] = append(rows[i], object.Plain(r.beside.Get(name)))
		}
	}
	return rows, nil
}

func (c *command) pairForm() cli.Form[row] {
	return cli.Form[row]{
		Header: []string{"id", "first", "second", "first_sequence_score", "second_sequence_score", "right"},
		Rows: func(id string, r row) ([][]string, error) {
			first, second := r.scores[0], r.scores[1]
			return c.cells(r, []string{id, first.Text, second.Text, fmt.Sprint(first.LogLikelihood),
				fmt.Sprint(second.LogLikelihood), strconv.FormatBool(r.right())})
		},
		Text: func(r row, width int) string {
			var rows [][]string
			for _, s := range r.scores {
				rows = append(rows, []string{cli.Mark(s.Text, nil), fmt.Sprintf("%.2f", s.LogLikelihood)})
			}
			verdict := "the first is not likelier"
			if r.right() {
				verdict = "the first is likelier"
			}
			return cli.RenderTable(width, []string{"text", "log-likelihood"}, rows, 0) + cli.Notes(width, verdict)
		},
	}
}

// scoreForm writes a row for each text, or for each token. Columns have the names of minicons where it has them:
// sequence_score, token_score, PLL_metric.
func (c *command) scoreForm() cli.Form[row] {
	metric := map[infill.ScoreMethod]string{infill.WordScore: "within_word_l2r", infill.PieceScore: "original"}
	if !c.tokens {
		return cli.Form[row]{
			Header:  []string{"id", "text", "sequence_score", "tokens", "pseudo_perplexity", "PLL_metric"},
			Heading: "log-likelihood  tokens  pseudo-perplexity  text\n",
			Rows: func(id string, r row) ([][]string, error) {
				s := r.scores[0]
				return c.cells(r, []string{id, s.Text, fmt.Sprint(s.LogLikelihood), strconv.Itoa(len(s.Tokens)),
					fmt.Sprint(s.PseudoPerplexity), metric[s.Method]})
			},
			Text: func(r row, _ int) string {
				s := r.scores[0]
				return fmt.Sprintf("%14.2f  %6d  %17.4g  %s\n", s.LogLikelihood, len(s.Tokens), s.PseudoPerplexity,
					cli.OneLine(batch.OneLine(s.Text)))
			},
		}
	}
	return cli.Form[row]{
		Header: []string{"id", "text", "position", "token", "token_id", "token_score", "sequence_score", "PLL_metric"},
		Rows: func(id string, r row) ([][]string, error) {
			var rows [][]string
			s := r.scores[0]
			for i, t := range s.Tokens {
				rows = append(rows, []string{id, s.Text, strconv.Itoa(i + 1), t.Token, strconv.Itoa(t.ID),
					fmt.Sprint(t.LogProb), fmt.Sprint(s.LogLikelihood), metric[s.Method]})
			}
			return c.cells(r, rows...)
		},
		Text: func(r row, width int) string {
			s := r.scores[0]
			var rows [][]string
			for _, t := range s.Tokens {
				rows = append(rows, []string{cli.OneLine(t.Token), fmt.Sprintf("%.2f", t.LogProb)})
			}
			rows = append(rows, []string{"sum", fmt.Sprintf("%.2f", s.LogLikelihood)})
			return cli.Wrap(cli.Mark(s.Text, nil), width, "") + "\n\n" +
				cli.RenderTable(width, []string{"token", "log-probability"}, rows, 0) + "\n" +
				cli.Notes(width,
					fmt.Sprintf("%s, method %s, pseudo-perplexity %.4g", cli.Counted(len(s.Tokens), "token"), s.Method,
						s.PseudoPerplexity))
		},
	}
}
