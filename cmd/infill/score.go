package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
)

// scoreOptions are the flags and arguments of scoring.
type scoreOptions struct {
	inputOptions
	method infill.ScoreMethod
	modelOptions
}

func newCmdScore(s *terminal.Streams, run func(context.Context, *scoreOptions) error) *cobra.Command {
	o := &scoreOptions{inputOptions: inputOptions{streams: s, key: "text"}, method: infill.WordScore}
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
			o.texts = args
			if err := cmp.Or(o.modelOptions.validate(), o.inputOptions.validate(`infill score "he had never seen the sea .", or infill score --help`)); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().SortFlags = false
	addChoice(cmd, (*string)(&o.method), "method", "", texts([]infill.ScoreMethod{infill.WordScore, infill.PieceScore}), "what is masked beside a token")
	o.inputOptions.register(cmd)
	o.modelOptions.register(cmd)
	return cmd
}

func scoreRun(ctx context.Context, o *scoreOptions) (err error) {
	f, err := o.open(o.streams)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	p := &printer[*infill.Score]{form: scoreForm(), format: o.format, streams: o.streams}
	check := func(text string) *usageError {
		if _, err := f.Plain(text); err != nil {
			return &usageError{err, ""}
		}
		return nil
	}
	return o.each(ctx, o.quiet, check, p.end, func(e entry) error {
		score, err := f.Score(ctx, e.text, o.method)
		if err != nil {
			return err
		}
		o.note(o.streams, "signature %s", score.Signature)
		return p.print(e.id, score)
	})
}

// scoreForm writes a row of CSV for each token.
func scoreForm() form[*infill.Score] {
	return form[*infill.Score]{
		header: []string{"id", "text", "position", "token", "token_id", "log_prob", "log_likelihood", "method", "signature"},
		rows: func(id string, s *infill.Score) (rows [][]string) {
			for i, t := range s.Tokens {
				rows = append(rows, []string{id, s.Text, strconv.Itoa(i + 1), t.Token, strconv.Itoa(t.ID), allDigits(t.LogProb), allDigits(s.LogLikelihood), string(s.Method), s.Signature})
			}
			return rows
		},
		text: func(s *infill.Score, width int) string {
			var rows [][]string
			for _, t := range s.Tokens {
				rows = append(rows, []string{t.Token, fmt.Sprintf("%.2f", t.LogProb)})
			}
			rows = append(rows, []string{"sum", fmt.Sprintf("%.2f", s.LogLikelihood)})
			return wrap(mark(s.Text, nil), width, "") + "\n\n" + renderTable(width, []string{"token", "log-probability"}, rows, 0) + "\n" +
				notes(width, fmt.Sprintf("%s, method %s, pseudo-perplexity %.4g", counted(len(s.Tokens), "token"), s.Method, s.PseudoPerplexity))
		},
	}
}
