package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/tokenize"
)

// scoreOptions are the flags and arguments of scoring.
type scoreOptions struct {
	streams *terminal.Streams
	texts   []string
	method  infill.ScoreMethod
	input   string
	format  string
	modelOptions

	// open gives the scorer; a test puts a fake in its place.
	open func(o *scoreOptions) (scorer, error)
}

// scorer is what scoring needs of an *infill.Filler.
type scorer interface {
	Plain(text string) (*tokenize.Encoding, error)
	Score(ctx context.Context, text string, method infill.ScoreMethod) (*infill.Score, error)
	Close() error
}

var _ scorer = (*infill.Filler)(nil)

func newCmdScore(s *terminal.Streams, runF func(context.Context, *scoreOptions) error) *cobra.Command {
	o := &scoreOptions{
		streams: s, method: infill.WordScore, input: inputs()[0], format: formats()[0],
		open: func(o *scoreOptions) (scorer, error) { return o.modelOptions.open(o.streams) },
	}
	cmd := &cobra.Command{
		Use:   "score [TEXT...]",
		Short: "Rate whole texts by their pseudo-log-likelihood, per token",
		Long: `Rate whole texts by their pseudo-log-likelihood: the sum over tokens of the log
probability, in nats, that the model gives the token while it is masked.

--method l2r also masks the pieces to the right in the same word, so that a long
word does not give itself away; original masks one piece at a time. Scores of
texts of different lengths are not comparable as they stand: the pseudo-perplexity
beside them is per token.

Without a TEXT, texts are read from standard input, one a line, or one JSON object
a line with --input jsonl.`,
		Example: `  $ infill score "he had never seen the sea ."
  $ infill score --format jsonl < texts.txt`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.texts = args
			if err := o.validate(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return scoreRun(cmd.Context(), o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().SortFlags = false
	addChoice(cmd, (*string)(&o.method), "method", "", texts([]infill.ScoreMethod{infill.WordScore, infill.PieceScore}), "what is masked beside a token")
	addChoice(cmd, &o.input, "input", "", inputs(), `form of standard input; jsonl: {"text": "...", "id": ...}`)
	addChoice(cmd, &o.format, "format", "", formats(), "form of the result")
	o.modelOptions.register(cmd)
	return cmd
}

func (o *scoreOptions) validate() error {
	if err := o.modelOptions.validate(); err != nil {
		return err
	}
	if len(o.texts) == 0 && o.streams.InTerminal {
		return &usageError{errors.New("no text: give one, or pipe texts to standard input"), `infill score "he had never seen the sea .", or infill score --help`}
	}
	return nil
}

// scoreRun treats wrong texts as fillRun treats wrong templates.
func scoreRun(ctx context.Context, o *scoreOptions) (err error) {
	f, err := o.open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()

	for i, text := range o.texts {
		if _, err := f.Plain(text); err != nil {
			if len(o.texts) > 1 {
				err = fmt.Errorf("text %d: %w", i+1, err)
			}
			return &usageError{err, ""}
		}
	}
	p := newScorePrinter(o.format, o.streams)
	print := func(e entry) error {
		score, err := f.Score(ctx, e.text, o.method)
		if err != nil {
			return err
		}
		o.note(o.streams, "signature %s", score.Signature)
		return p.print(e.id, score)
	}
	if len(o.texts) > 0 {
		for _, text := range o.texts {
			if err := print(entry{text: text}); err != nil {
				return err
			}
		}
		return p.end()
	}
	err = eachEntry(ctx, o.streams, o.input, "text", print)
	if err != nil && !errors.Is(err, errReported) {
		return err
	}
	return errors.Join(p.end(), err)
}

// scorePrinter writes scores as they come.
type scorePrinter interface {
	print(id json.RawMessage, s *infill.Score) error
	end() error
}

func newScorePrinter(format string, s *terminal.Streams) scorePrinter {
	switch format {
	case "json":
		return &jsonScorePrinter{array: jsonArray{out: s.Out}}
	case "jsonl":
		return &jsonScorePrinter{lines: true, array: jsonArray{out: s.Out}}
	case "csv":
		return &csvScorePrinter{out: s.Out}
	}
	return &textScorePrinter{out: s.Styled(), width: s.Width}
}

type jsonScorePrinter struct {
	lines bool
	array jsonArray
}

func (p *jsonScorePrinter) print(id json.RawMessage, s *infill.Score) error {
	v := identified[*infill.Score]{id, s}
	if !p.lines {
		return p.array.add(v)
	}
	return writeLine(p.array.out, v)
}

func (p *jsonScorePrinter) end() error {
	if p.lines {
		return nil
	}
	return p.array.end()
}

// csvScorePrinter writes a row for each token.
type csvScorePrinter struct {
	out    io.Writer
	headed bool
}

func (p *csvScorePrinter) print(id json.RawMessage, s *infill.Score) error {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	var rows [][]string
	if !p.headed {
		p.headed = true
		rows = append(rows, []string{"id", "text", "position", "token", "token_id", "log_prob", "log_likelihood", "method", "signature"})
	}
	for i, t := range s.Tokens {
		rows = append(rows, []string{
			plainID(id), s.Text, strconv.Itoa(i + 1), t.Token, strconv.Itoa(t.ID), strconv.FormatFloat(t.LogProb, 'g', -1, 64),
			strconv.FormatFloat(s.LogLikelihood, 'g', -1, 64), string(s.Method), s.Signature,
		})
	}
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	_, err := p.out.Write(b.Bytes())
	return err
}

func (p *csvScorePrinter) end() error { return nil }

// textScorePrinter writes for people.
type textScorePrinter struct {
	out    io.Writer
	width  int
	scores int
}

func (p *textScorePrinter) print(_ json.RawMessage, s *infill.Score) error {
	var b strings.Builder
	if p.scores++; p.scores > 1 {
		b.WriteString("\n")
	}
	text := mark(s.Text, nil)
	summary := fmt.Sprintf("%s, method %s, pseudo-perplexity %.4g", counted(len(s.Tokens), "token"), s.Method, s.PseudoPerplexity)
	if p.width > 0 {
		text, summary = ansi.Wrap(text, p.width, ""), ansi.Wrap(summary, p.width, "")
	}
	b.WriteString(text + "\n\n")
	rows := make([][]string, 0, len(s.Tokens)+1)
	for _, t := range s.Tokens {
		rows = append(rows, []string{t.Token, fmt.Sprintf("%.2f", t.LogProb)})
	}
	rows = append(rows, []string{"sum", fmt.Sprintf("%.2f", s.LogLikelihood)})
	b.WriteString(renderTable(p.width, []string{"token", "log-probability"}, rows, 0))
	b.WriteString("\n")
	for _, line := range strings.Split(summary, "\n") {
		b.WriteString(restStyle().Styled(line) + "\n")
	}
	_, err := io.WriteString(p.out, b.String())
	return err
}

func (p *textScorePrinter) end() error { return nil }
