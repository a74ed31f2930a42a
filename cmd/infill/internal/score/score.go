// Package score is infill score.
package score

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// scoreOptions are the flags and arguments of scoring.
type scoreOptions struct {
	cli.InputOptions
	method infill.ScoreMethod
	Tokens bool `flag:"tokens" help:"a row of CSV for each token, not for each text"`
	Pairs  bool `flag:"pairs" help:"a line has two texts, the better one first and a tab between: tell which is likelier"`
	// Columns are the better text, and the other.
	Columns []string `flag:"columns" value:"NAME,NAME" help:"NAME,NAME of the columns of a file of --pairs: the better text, and the other"`
	cli.ModelOptions
}

// NewCmd makes infill score.
func NewCmd(s *terminal.Streams) *cobra.Command {
	o := &scoreOptions{InputOptions: cli.InputOptions{Streams: s, Key: "text",
		Reads: func(string) bool { return false }}, method: infill.WordScore,
		Columns: []string{"first", "second"}}
	cmd := &cobra.Command{
		Use:   "score [TEXT...]",
		Short: "Rate whole texts by their pseudo-log-likelihood, per token",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(o.ModelOptions.Validate(),
				o.Take(args, `infill score "he had never seen the sea .", or infill score --help`)); err != nil {
				return err
			}
			if o.Pairs && o.Tokens {
				return cli.Usagef("--pairs and --tokens exclude each other: a pair has one row")
			}
			if o.Pairs {
				if err := o.readPairs(); err != nil {
					return err
				}
			} else if cmd.Flags().Changed("columns") {
				return cli.Usagef("--columns are those of a file of --pairs")
			}
			return run(cmd.Context(), o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().SortFlags = false
	cli.AddChoice(cmd, (*string)(&o.method), "method", "",
		cli.Texts([]infill.ScoreMethod{infill.WordScore, infill.PieceScore}), "what is masked beside a token")
	cli.Bind(cmd, o)
	o.InputOptions.Register(cmd)
	o.ModelOptions.Register(cmd)
	return cmd
}

// readPairs puts the pairs of files in the places of their names.
func (o *scoreOptions) readPairs() error {
	if len(o.Columns) != 2 || o.Columns[0] == "" || o.Columns[1] == "" {
		return cli.Usagef("--columns: %q is not two names with a comma between them", strings.Join(o.Columns, ","))
	}
	var texts []string
	for _, argument := range o.Texts {
		if strings.Contains(argument, "\t") || !batch.IsFile(argument) {
			texts = append(texts, argument)
			continue
		}
		pairs, err := batch.Columns(batch.File{Path: argument}, o.Columns...)
		if err != nil {
			return &cli.UsageError{Err: err,
				Hint: "name the columns of the better and of the other text by --columns NAME,NAME; give a file of " +
					"tabs without a head line as standard input: infill score --pairs < FILE"}
		}
		if len(pairs) == 0 {
			return cli.Usagef("%s: no pair in it", argument)
		}
		for _, pair := range pairs {
			texts = append(texts, strings.ReplaceAll(pair[0], "\t", " ")+"\t"+strings.ReplaceAll(pair[1], "\t", " "))
		}
	}
	o.Texts = texts
	return nil
}

// verdict is of how many pairs the first text is the likelier, with the 95 % interval of the share.
type verdict struct {
	Right    int        `json:"pairs_right"`
	Pairs    int        `json:"pairs"`
	Interval [2]float64 `json:"interval"`
}

// tell writes the verdict behind the pairs; CSV has no place for it.
func (v verdict) tell(o *scoreOptions) error {
	share := float64(v.Right) / float64(v.Pairs)
	v.Interval[0], v.Interval[1] = metrics.Wilson(share, float64(v.Pairs), 0.95)
	line := fmt.Sprintf("the first text is the likelier in %d of %s, %.1f %%, 95 %% interval %.1f to %.1f %%", v.Right,
		cli.Counted(v.Pairs, "pair"), 100*share, 100*v.Interval[0], 100*v.Interval[1])
	var err error
	switch {
	case o.Format == "text":
		_, err = fmt.Fprintln(o.Streams.Out, "\n"+line)
	case o.Format == "jsonl":
		err = object.WriteLine(o.Streams.Out, v)
	case !o.Quiet:
		fmt.Fprintln(o.Streams.Err, "infill: "+line)
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

// scorePairs rates pairs, and tells at the end of how many the first text is the likelier.
func scorePairs(ctx context.Context, o *scoreOptions, f *infill.Filler) error {
	p := &cli.Printer[pair]{Format: o.Format, Streams: o.Streams, Form: cli.Form[pair]{
		Header: []string{"id", "first", "second", "first_sequence_score", "second_sequence_score", "right"},
		Rows: func(id string, v pair) [][]string {
			return [][]string{{id, v.First.Text, v.Second.Text, cli.AllDigits(v.First.LogLikelihood),
				cli.AllDigits(v.Second.LogLikelihood), strconv.FormatBool(v.Right)}}
		},
		Text: func(v pair, width int) string {
			rows := [][]string{{cli.Mark(v.First.Text, nil), fmt.Sprintf("%.2f", v.First.LogLikelihood)},
				{cli.Mark(v.Second.Text, nil), fmt.Sprintf("%.2f", v.Second.LogLikelihood)}}
			return cli.RenderTable(width, []string{"text", "log-likelihood"}, rows, 0) + cli.Notes(width,
				map[bool]string{true: "the first is likelier", false: "the first is not likelier"}[v.Right])
		},
	}}
	right, all := 0, 0
	split := func(text string) (first, second string, err error) {
		first, second, found := strings.Cut(text, "\t")
		if !found || strings.Contains(second, "\t") {
			err = &cli.MisfitError{Err: errors.New("a pair is two texts with a tab between them")}
		}
		return first, second, err
	}
	read := func(e cli.Entry) (texts [2]string, err error) {
		if texts[0], texts[1], err = split(e.Text); err != nil {
			return texts, err
		}
		for _, text := range texts {
			if _, err := f.Plain(text); err != nil {
				return texts, err
			}
		}
		return texts, nil
	}
	err := p.Whole(cli.Each(ctx, &o.InputOptions, o.Quiet, read, never, p.End,
		func(ctx context.Context, e cli.Entry, texts [2]string) (_ func() error, err error) {
			var v pair
			if v.First, err = f.Score(ctx, texts[0], o.method); err != nil {
				return nil, err
			}
			if v.Second, err = f.Score(ctx, texts[1], o.method); err != nil {
				return nil, err
			}
			v.Right = v.First.LogLikelihood > v.Second.LogLikelihood
			return func() error {
				if all++; v.Right {
					right++
				}
				return p.Print(e.ID, v)
			}, nil
		}))
	if all > 0 {
		err = errors.Join(err, verdict{Right: right, Pairs: all}.tell(o))
	}
	return err
}

// run scores the texts.
func run(ctx context.Context, o *scoreOptions) (err error) {
	f, err := o.Open(o.Streams)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if o.Pairs {
		return scorePairs(ctx, o, f)
	}
	p := &cli.Printer[*infill.Score]{Form: scoreForm(o.Tokens), Format: o.Format, Streams: o.Streams}
	read := func(e cli.Entry) (text string, err error) {
		if e.Line == 0 { // the error of a line is reported in its turn
			_, err = f.Plain(e.Text)
		}
		return e.Text, err
	}
	return p.Whole(cli.Each(ctx, &o.InputOptions, o.Quiet, read, never, p.End,
		func(ctx context.Context, e cli.Entry, text string) (func() error, error) {
			score, err := f.Score(ctx, text, o.method)
			if err != nil {
				return nil, err
			}
			return func() error {
				o.Note(o.Streams, "signature %s", score.Signature)
				return p.Print(e.ID, score)
			}, nil
		}))
}

// never says that no text fills the model's calls by itself.
func never[T any](T) bool { return false }

// metric returns minicons' name of a method.
func metric(m infill.ScoreMethod) string {
	return map[infill.ScoreMethod]string{infill.WordScore: "within_word_l2r", infill.PieceScore: "original"}[m]
}

// scoreForm writes a row of CSV for each text, or for each token. Columns that
// minicons has a name for bear it: sequence_score, token_score, PLL_metric.
func scoreForm(tokens bool) cli.Form[*infill.Score] {
	header := []string{"id", "text", "sequence_score", "tokens", "pseudo_perplexity", "PLL_metric"}
	if tokens {
		header = []string{"id", "text", "position", "token", "token_id", "token_score", "sequence_score", "PLL_metric"}
	}
	return cli.Form[*infill.Score]{
		Header: header,
		Rows: func(id string, s *infill.Score) (rows [][]string) {
			if !tokens {
				return [][]string{{id, s.Text, cli.AllDigits(s.LogLikelihood), strconv.Itoa(len(s.Tokens)),
					cli.AllDigits(s.PseudoPerplexity), metric(s.Method)}}
			}
			for i, t := range s.Tokens {
				rows = append(rows,
					[]string{id, s.Text, strconv.Itoa(i + 1), t.Token, strconv.Itoa(t.ID), cli.AllDigits(t.LogProb),
						cli.AllDigits(s.LogLikelihood), metric(s.Method)})
			}
			return rows
		},
		Text: func(s *infill.Score, width int) string {
			var rows [][]string
			for _, t := range s.Tokens {
				rows = append(rows, []string{t.Token, fmt.Sprintf("%.2f", t.LogProb)})
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
