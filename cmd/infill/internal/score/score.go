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
	"infill/metrics"
)

// scoreOptions are the flags and arguments of scoring.
type scoreOptions struct {
	cli.InputOptions
	method infill.ScoreMethod
	tokens bool // a row of CSV for each token
	pairs  bool
	cli.ModelOptions
}

// NewCmd makes infill score.
func NewCmd(s *terminal.Streams, run func(context.Context, *scoreOptions) error) *cobra.Command {
	o := &scoreOptions{InputOptions: cli.InputOptions{Streams: s, Key: "text"}, method: infill.WordScore}
	cmd := &cobra.Command{
		Use:   "score [TEXT...]",
		Short: "Rate whole texts by their pseudo-log-likelihood, per token",
		Long: `Rate whole texts by their pseudo-log-likelihood: the sum over tokens of the log
probability, in nats, that the model gives the token while it is masked.

--method l2r also masks the pieces to the right in the same word, so that a long
word does not give itself away; original masks one piece at a time. Scores of
texts of different lengths are not comparable as they stand: the pseudo-perplexity
beside them is per token.

A text that is longer than the model takes is read in windows, each half a window
after the one before it; a token is rated in the one whose middle it is nearest to.

Without a TEXT, texts are read from standard input, one a line, or one JSON object
a line with --input jsonl.`,
		Example: `  $ infill score "he had never seen the sea ."
  $ infill score --format jsonl < texts.txt`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Texts = args
			if err := cmp.Or(o.ModelOptions.Validate(), o.InputOptions.Validate(`infill score "he had never seen the sea .", or infill score --help`)); err != nil {
				return err
			}
			if o.pairs && o.tokens {
				return &cli.UsageError{Err: errors.New("--pairs and --tokens exclude each other: a pair has one row")}
			}
			return run(cmd.Context(), o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().SortFlags = false
	cli.AddChoice(cmd, (*string)(&o.method), "method", "", cli.Texts([]infill.ScoreMethod{infill.WordScore, infill.PieceScore}), "what is masked beside a token")
	cmd.Flags().BoolVar(&o.tokens, "tokens", false, "a row of CSV for each token, not for each text")
	cmd.Flags().BoolVar(&o.pairs, "pairs", false, "each line has two texts with a tab between them, the better one first: tell which is likelier, and how often the first is")
	o.InputOptions.Register(cmd)
	o.ModelOptions.Register(cmd)
	return cmd
}

// pair is the score of two texts, of which the first should be the likelier.
type pair struct {
	First  *infill.Score `json:"first"`
	Second *infill.Score `json:"second"`
	// Right tells whether the first is the likelier, in sum.
	Right bool `json:"right"`
}

// scorePairs rates pairs, and tells at the end of how many the first text is the likelier.
func scorePairs(ctx context.Context, o *scoreOptions, f *infill.Filler) error {
	p := &cli.Printer[pair]{Format: o.Format, Streams: o.Streams, Form: cli.Form[pair]{
		Header: []string{"id", "first", "second", "first_sequence_score", "second_sequence_score", "right"},
		Rows: func(id string, v pair) [][]string {
			return [][]string{{id, v.First.Text, v.Second.Text, cli.AllDigits(v.First.LogLikelihood), cli.AllDigits(v.Second.LogLikelihood), strconv.FormatBool(v.Right)}}
		},
		Text: func(v pair, width int) string {
			rows := [][]string{{cli.Mark(v.First.Text, nil), fmt.Sprintf("%.2f", v.First.LogLikelihood)}, {cli.Mark(v.Second.Text, nil), fmt.Sprintf("%.2f", v.Second.LogLikelihood)}}
			return cli.RenderTable(width, []string{"text", "log-likelihood"}, rows, 0) + cli.Notes(width, map[bool]string{true: "the first is likelier", false: "the first is not likelier"}[v.Right])
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
	err := p.Whole(cli.Each(ctx, &o.InputOptions, o.Quiet, read, p.End, func(ctx context.Context, e cli.Entry, texts [2]string) (_ func() error, err error) {
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
	if all > 0 && !o.Quiet {
		low, high := metrics.Wilson(float64(right)/float64(all), float64(all), 0.95)
		fmt.Fprintf(o.Streams.Err, "infill: the first text is the likelier in %d of %s, %.1f %%, 95 %% interval %.1f to %.1f %%\n", right, cli.Counted(all, "pair"), 100*float64(right)/float64(all), 100*low, 100*high)
	}
	return err
}

// Run scores the texts.
func Run(ctx context.Context, o *scoreOptions) (err error) {
	f, err := o.Open(o.Streams)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if o.pairs {
		return scorePairs(ctx, o, f)
	}
	p := &cli.Printer[*infill.Score]{Form: scoreForm(o.tokens), Format: o.Format, Streams: o.Streams}
	read := func(e cli.Entry) (text string, err error) {
		if e.Line == 0 { // a line is told of in its turn
			_, err = f.Plain(e.Text)
		}
		return e.Text, err
	}
	return p.Whole(cli.Each(ctx, &o.InputOptions, o.Quiet, read, p.End, func(ctx context.Context, e cli.Entry, text string) (func() error, error) {
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

// metric is what minicons calls a method.
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
				return [][]string{{id, s.Text, cli.AllDigits(s.LogLikelihood), strconv.Itoa(len(s.Tokens)), cli.AllDigits(s.PseudoPerplexity), metric(s.Method)}}
			}
			for i, t := range s.Tokens {
				rows = append(rows, []string{id, s.Text, strconv.Itoa(i + 1), t.Token, strconv.Itoa(t.ID), cli.AllDigits(t.LogProb), cli.AllDigits(s.LogLikelihood), metric(s.Method)})
			}
			return rows
		},
		Text: func(s *infill.Score, width int) string {
			var rows [][]string
			for _, t := range s.Tokens {
				rows = append(rows, []string{t.Token, fmt.Sprintf("%.2f", t.LogProb)})
			}
			rows = append(rows, []string{"sum", fmt.Sprintf("%.2f", s.LogLikelihood)})
			return cli.Wrap(cli.Mark(s.Text, nil), width, "") + "\n\n" + cli.RenderTable(width, []string{"token", "log-probability"}, rows, 0) + "\n" +
				cli.Notes(width, fmt.Sprintf("%s, method %s, pseudo-perplexity %.4g", cli.Counted(len(s.Tokens), "token"), s.Method, s.PseudoPerplexity))
		},
	}
}
