package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
)

// scoreOptions are the flags and arguments of scoring.
type scoreOptions struct {
	inputOptions
	method infill.ScoreMethod
	tokens bool // a row of CSV for each token
	pairs  bool
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
			if o.pairs && o.tokens {
				return &usageError{errors.New("--pairs and --tokens exclude each other: a pair has one row"), ""}
			}
			return run(cmd.Context(), o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().SortFlags = false
	addChoice(cmd, (*string)(&o.method), "method", "", texts([]infill.ScoreMethod{infill.WordScore, infill.PieceScore}), "what is masked beside a token")
	cmd.Flags().BoolVar(&o.tokens, "tokens", false, "a row of CSV for each token, not for each text")
	cmd.Flags().BoolVar(&o.pairs, "pairs", false, "each line has two texts with a tab between them, the better one first: tell which is likelier, and how often the first is")
	o.inputOptions.register(cmd)
	o.modelOptions.register(cmd)
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
	p := &printer[pair]{format: o.format, streams: o.streams, form: form[pair]{
		header: []string{"id", "first", "second", "first_sequence_score", "second_sequence_score", "right"},
		rows: func(id string, v pair) [][]string {
			return [][]string{{id, v.First.Text, v.Second.Text, allDigits(v.First.LogLikelihood), allDigits(v.Second.LogLikelihood), strconv.FormatBool(v.Right)}}
		},
		text: func(v pair, width int) string {
			rows := [][]string{{mark(v.First.Text, nil), fmt.Sprintf("%.2f", v.First.LogLikelihood)}, {mark(v.Second.Text, nil), fmt.Sprintf("%.2f", v.Second.LogLikelihood)}}
			return renderTable(width, []string{"text", "log-likelihood"}, rows, 0) + notes(width, map[bool]string{true: "the first is likelier", false: "the first is not likelier"}[v.Right])
		},
	}}
	right, all := 0, 0
	split := func(text string) (first, second string, err error) {
		first, second, found := strings.Cut(text, "\t")
		if !found || strings.Contains(second, "\t") {
			err = &misfitError{errors.New("a pair is two texts with a tab between them")}
		}
		return first, second, err
	}
	read := func(e entry) (texts [2]string, err error) {
		if texts[0], texts[1], err = split(e.text); err != nil {
			return texts, err
		}
		for _, text := range texts {
			if _, err := f.Plain(text); err != nil {
				return texts, err
			}
		}
		return texts, nil
	}
	err := p.whole(each(ctx, &o.inputOptions, o.quiet, read, p.end, func(ctx context.Context, e entry, texts [2]string) (_ func() error, err error) {
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
			return p.print(e.id, v)
		}, nil
	}))
	if all > 0 && !o.quiet {
		low, high := shareInterval(right, all)
		fmt.Fprintf(o.streams.Err, "infill: the first text is the likelier in %d of %s, %.1f %%, 95 %% interval %.1f to %.1f %%\n", right, counted(all, "pair"), 100*float64(right)/float64(all), 100*low, 100*high)
	}
	return err
}

// shareInterval is the 95 % interval of a share, which has a width also at none and all
// (Wilson, 1927, "Probable inference, the law of succession, and statistical inference").
func shareInterval(right, all int) (low, high float64) {
	const z = 1.959964
	n := float64(all)
	share := float64(right) / n
	middle, half := share+z*z/(2*n), z*math.Sqrt(share*(1-share)/n+z*z/(4*n*n))
	return max(0, (middle-half)/(1+z*z/n)), min(1, (middle+half)/(1+z*z/n))
}

func scoreRun(ctx context.Context, o *scoreOptions) (err error) {
	f, err := o.open(o.streams)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if o.pairs {
		return scorePairs(ctx, o, f)
	}
	p := &printer[*infill.Score]{form: scoreForm(o.tokens), format: o.format, streams: o.streams}
	read := func(e entry) (text string, err error) {
		if e.line == 0 { // a line is told of in its turn
			_, err = f.Plain(e.text)
		}
		return e.text, err
	}
	return p.whole(each(ctx, &o.inputOptions, o.quiet, read, p.end, func(ctx context.Context, e entry, text string) (func() error, error) {
		score, err := f.Score(ctx, text, o.method)
		if err != nil {
			return nil, err
		}
		return func() error {
			o.note(o.streams, "signature %s", score.Signature)
			return p.print(e.id, score)
		}, nil
	}))
}

// metric is what minicons calls a method.
func metric(m infill.ScoreMethod) string {
	return map[infill.ScoreMethod]string{infill.WordScore: "within_word_l2r", infill.PieceScore: "original"}[m]
}

// scoreForm writes a row of CSV for each text, or for each token. Columns that
// minicons has a name for bear it: sequence_score, token_score, PLL_metric.
func scoreForm(tokens bool) form[*infill.Score] {
	header := []string{"id", "text", "sequence_score", "tokens", "pseudo_perplexity", "PLL_metric"}
	if tokens {
		header = []string{"id", "text", "position", "token", "token_id", "token_score", "sequence_score", "PLL_metric"}
	}
	return form[*infill.Score]{
		header: header,
		rows: func(id string, s *infill.Score) (rows [][]string) {
			if !tokens {
				return [][]string{{id, s.Text, allDigits(s.LogLikelihood), strconv.Itoa(len(s.Tokens)), allDigits(s.PseudoPerplexity), metric(s.Method)}}
			}
			for i, t := range s.Tokens {
				rows = append(rows, []string{id, s.Text, strconv.Itoa(i + 1), t.Token, strconv.Itoa(t.ID), allDigits(t.LogProb), allDigits(s.LogLikelihood), metric(s.Method)})
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
