// Package score is infill score.
package score

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	pairs   bool
	columns []string // of a file: the text; of pairs the better text, and the other
}

// NewCmd makes infill score.
func NewCmd(s *terminal.Streams) *cobra.Command {
	c := &command{streams: s, method: infill.WordScore, input: cli.InputOptions{Streams: s, Key: "text",
		Reads: func(string) bool { return false }}}
	cmd := &cobra.Command{
		Use:   "score [TEXT... | FILE]",
		Short: "Rate whole texts by their pseudo-log-likelihood, per token",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(c.model.Validate(),
				c.input.Take(args, `infill score "he had never seen the sea .", or infill score --help`)); err != nil {
				return err
			}
			if c.pairs && c.tokens {
				return cli.Usagef("--pairs and --tokens exclude each other: a pair has one row")
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
	flags.BoolVar(&c.tokens, "tokens", false, "a row of CSV for each token, not for each text")
	flags.BoolVar(&c.pairs, "pairs", false,
		"a line has two texts, the better one first and a tab between: tell which is likelier")
	flags.StringSliceVar(&c.columns, "columns", nil,
		"`NAME` of the column of a file with the text (default text), or of --pairs NAME,NAME, of the better text and "+
			"the other (default first,second)")
	c.input.Register(cmd)
	c.model.Register(cmd)
	return cmd
}

// readFiles puts the texts of files, or their pairs, in the places of their names.
func (c *command) readFiles() error {
	names, wanted := []string{"text"}, "one name"
	if c.pairs {
		names, wanted = []string{"first", "second"}, "two names with a comma between them"
	}
	if c.columns == nil {
		c.columns = names
	}
	if len(c.columns) != len(names) || slices.Contains(c.columns, "") {
		return cli.Usagef("--columns: %q is not %s", strings.Join(c.columns, ","), wanted)
	}
	var texts []string
	for _, argument := range c.input.Texts {
		if strings.ContainsAny(argument, " \t") || !batch.IsFile(argument) {
			texts = append(texts, argument)
			continue
		}
		rows, err := batch.Columns(batch.File{Path: argument}, c.columns...)
		if err != nil {
			return &cli.UsageError{Err: err, Hint: "name the columns by --columns; give a file of tabs without a " +
				"head line as standard input: infill score --pairs < FILE"}
		}
		if len(rows) == 0 {
			return cli.Usagef("%s: no text in it", argument)
		}
		for _, row := range rows {
			for i, text := range row {
				row[i] = strings.ReplaceAll(text, "\t", " ")
			}
			texts = append(texts, strings.Join(row, "\t"))
		}
	}
	c.input.Texts = texts
	return nil
}

// run scores the texts, or the pairs of texts.
func (c *command) run(ctx context.Context) (err error) {
	f, err := c.model.Open(c.streams)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if !c.pairs {
		p := &cli.Printer[*infill.Score]{Form: scoreForm(c.tokens), Format: c.input.Format, Streams: c.streams}
		return p.Whole(c.each(ctx, f, p.End, func(id json.RawMessage, scores []*infill.Score) error {
			c.model.Note(c.streams, "signature %s", scores[0].Signature)
			return p.Print(id, scores[0])
		}))
	}
	p := &cli.Printer[pair]{Form: pairForm(), Format: c.input.Format, Streams: c.streams}
	right := 0
	err = p.Whole(c.each(ctx, f, p.End, func(id json.RawMessage, scores []*infill.Score) error {
		v := pair{scores[0], scores[1], scores[0].LogLikelihood > scores[1].LogLikelihood}
		if v.Right {
			right++
		}
		return p.Print(id, v)
	}))
	if p.Results > 0 {
		err = errors.Join(err, c.tellVerdict(right, p.Results))
	}
	return err
}

// each scores each text, or both of each pair.
func (c *command) each(ctx context.Context, f *infill.Filler, end func() error,
	tell func(id json.RawMessage, scores []*infill.Score) error) error {
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
			scores := make([]*infill.Score, len(texts))
			for i, text := range texts {
				var err error
				if scores[i], err = f.Score(ctx, text, c.method); err != nil {
					return nil, err
				}
			}
			return func() error {
				for _, s := range scores {
					for _, warning := range s.Warnings {
						c.model.Warn(c.streams, "%s", warning)
					}
				}
				return tell(e.ID, scores)
			}, nil
		})
}

// tellVerdict says of how many pairs the first text is the likelier, with the 95 % interval of the share. CSV and a
// list of JSON have no place for it.
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

// pair is the score of two texts, of which the first should be the likelier.
type pair struct {
	First  *infill.Score `json:"first"`
	Second *infill.Score `json:"second"`
	// Right reports whether the first is the likelier, in sum.
	Right bool `json:"right"`
}

func pairForm() cli.Form[pair] {
	return cli.Form[pair]{
		Header: []string{"id", "first", "second", "first_sequence_score", "second_sequence_score", "right"},
		Rows: func(id string, v pair) [][]string {
			return [][]string{{id, v.First.Text, v.Second.Text, fmt.Sprint(v.First.LogLikelihood),
				fmt.Sprint(v.Second.LogLikelihood), strconv.FormatBool(v.Right)}}
		},
		Text: func(v pair, width int) string {
			var rows [][]string
			for _, s := range []*infill.Score{v.First, v.Second} {
				rows = append(rows, []string{cli.Mark(s.Text, nil), fmt.Sprintf("%.2f", s.LogLikelihood)})
			}
			verdict := "the first is not likelier"
			if v.Right {
				verdict = "the first is likelier"
			}
			return cli.RenderTable(width, []string{"text", "log-likelihood"}, rows, 0) + cli.Notes(width, verdict)
		},
	}
}

// scoreForm writes a row of CSV for each text, or for each token. Columns that
// minicons has a name for bear it: sequence_score, token_score, PLL_metric.
func scoreForm(tokens bool) cli.Form[*infill.Score] {
	header := []string{"id", "text", "sequence_score", "tokens", "pseudo_perplexity", "PLL_metric"}
	if tokens {
		header = []string{"id", "text", "position", "token", "token_id", "token_score", "sequence_score", "PLL_metric"}
	}
	metric := map[infill.ScoreMethod]string{infill.WordScore: "within_word_l2r", infill.PieceScore: "original"}
	return cli.Form[*infill.Score]{
		Header: header,
		Rows: func(id string, s *infill.Score) (rows [][]string) {
			sum := fmt.Sprint(s.LogLikelihood)
			if !tokens {
				return [][]string{{id, s.Text, sum, strconv.Itoa(len(s.Tokens)), fmt.Sprint(s.PseudoPerplexity),
					metric[s.Method]}}
			}
			for i, t := range s.Tokens {
				rows = append(rows, []string{id, s.Text, strconv.Itoa(i + 1), t.Token, strconv.Itoa(t.ID),
					fmt.Sprint(t.LogProb), sum, metric[s.Method]})
			}
			return rows
		},
		Text: func(s *infill.Score, width int) string {
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
