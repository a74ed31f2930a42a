// Package metrics is infill metrics.
package metrics

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/infill/batch"
	"infill/internal/eval/corpus"
	"infill/metrics"
)

// metricsOptions are the flags and arguments of scoring generated text.
type metricsOptions struct {
	streams    *terminal.Streams
	file       string // "-" is standard input
	references cli.CorpusList
	against    string
	preset     string
	format     string
	quiet      bool
	metrics.Options
}

// The named settings, of which none leaves every flag to itself, and the forms of the result.
var presets, formats = []string{"none", "bert-gen"}, []string{"text", "json", "csv"}

// NewCmd makes infill metrics.
func NewCmd(s *terminal.Streams) *cobra.Command {
	o := &metricsOptions{
		streams: s, preset: presets[0], format: formats[0], Options: metrics.DefaultOptions(),
	}
	o.Version = infill.Version()
	cmd := &cobra.Command{
		Use:   "metrics FILE [-r NAME=FILE...]",
		Short: "Score generated text: BLEU, self-BLEU, unique n-grams",
		Args: cli.OneArgument("one file is scored",
			"infill metrics FILE; a second text is named by --against, references by -r NAME=FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.file = args[0]
			if err := o.settle(cmd.Flags()); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.VarP(&o.references, "reference", "r", "a text to compare with; may be given several times")
	flags.StringVar(&o.against, "against", "", "a second text to test for differences, line by line")
	cli.AddChoice(cmd, &o.preset, "preset", "", presets,
		"bert-gen: --tokenisation bert-gen --union-first 2500")
	cli.AddChoice(cmd, (*string)(&o.Tokenisation), "tokenisation", "", cli.Texts(metrics.WhiteSpace.Values()),
		"how a line becomes tokens")
	flags.StringVar((*string)(&o.Smoothing), "smoothing", string(o.Smoothing),
		"of BLEU: none, epsilon[=E], add-k[=K] or exp")
	cli.Bind(cmd, &o.Options)
	cli.AddChoice(cmd, &o.format, "format", "", formats, "form of the result")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "no warnings")
	return cmd
}

// settle applies the preset and refuses options that do not go together.
func (o *metricsOptions) settle(flags *pflag.FlagSet) error {
	if o.preset == "bert-gen" {
		if flags.Changed("tokenisation") && o.Tokenisation != metrics.BertGen {
			return cli.Usagef("--preset bert-gen and --tokenisation %s exclude each other: give one", o.Tokenisation)
		}
		o.Tokenisation = metrics.BertGen
		if !flags.Changed("union-first") {
			o.UnionFirst = 2500
		}
	}
	if err := cli.OptionError(o.Validate()); err != nil {
		return err
	}
	switch {
	case o.Top > 0 && !printed(o.file):
		return cli.Usagef("--top needs log-likelihoods: give a .jsonl file that infill --format jsonl printed")
	case o.Order == 0:
		return cli.Usagef("--order: 0 is not a whole number from 1 to %d", metrics.MaximumOrder)
	case o.Confidence == 0:
		return cli.Usagef("--confidence: 0 is not a number between 0 and 1")
	case o.Resamples == 0 || o.Resamples < -1:
		return cli.Usagef("--resamples: %d is not a whole number of 1 or more, or -1 for no intervals", o.Resamples)
	case o.against != "" && o.Resamples < 0:
		return cli.Usagef("--against needs resamples: leave out --resamples -1")
	}
	return nil
}

func run(ctx context.Context, o *metricsOptions) error {
	stdin := 0
	for _, c := range append([]cli.Corpus{{File: o.file}, {File: o.against}}, o.references.List...) {
		if c.File == "-" {
			stdin++
		}
	}
	if stdin > 1 {
		return cli.Usagef("standard input (-) is named more than once: it can be read once")
	}
	in, err := cli.Interruptible(ctx, o.readAll)
	if err != nil {
		return err
	}
	report, err := metrics.Evaluate(ctx, in.first, in.references, o.Options)
	if err != nil {
		return err
	}
	result := metricsResult{Report: report}
	if o.against != "" {
		if result.Comparison, err = metrics.CompareMethods(ctx, in.first, in.second, in.references,
			o.Options); err != nil {
			return err
		}
	}
	for _, w := range report.Warnings {
		cli.Warn(o.streams, o.quiet, "%s", strings.TrimPrefix(w.Score+": "+w.Message, ": "))
	}
	return result.print(o)
}

// texts holds the text to measure, perhaps a second one to compare it with, and the references.
type texts struct {
	first, second metrics.Hypotheses
	references    []metrics.Reference
}

func (o *metricsOptions) readAll() (in texts, err error) {
	if in.first, err = o.read("text", o.file); err != nil {
		return in, err
	}
	if o.against != "" {
		if in.second, err = o.read("second text", o.against); err != nil {
			return in, err
		}
		if err := o.pair(&in.first, &in.second); err != nil {
			return in, err
		}
	}
	in.first.Sentences = slices.DeleteFunc(in.first.Sentences, func(line string) bool { return line == "" })
	for _, r := range o.references.List {
		text, err := o.reference(r)
		if err != nil {
			return in, err
		}
		in.references = append(in.references, metrics.Reference{Name: r.Name, Sentences: text})
	}
	return in, nil
}

// pair leaves out of both texts the lines that have no partner: a line is compared with the line of the same number.
func (o *metricsOptions) pair(first, second *metrics.Hypotheses) error {
	if (first.Prompts == nil) != (second.Prompts == nil) {
		return cli.Usagef("--against: only one of the two texts is JSONL: give both in the same form")
	}
	what := "line"
	if first.Prompts != nil {
		what = "sentence"
	}
	a, b := first.Sentences, second.Sentences
	if len(a) != len(b) {
		return cli.Usagef("--against: %s has %s, %s has %s: they are compared line by line", nameOf(o.against),
			cli.Counted(len(b), what), nameOf(o.file), cli.Counted(len(a), what))
	}
	if first.Prompts != nil {
		return nil
	}
	first.Sentences, second.Sentences = nil, nil
	for i := range a {
		switch empty, other := o.against, o.file; {
		case a[i] != "" && b[i] != "":
			first.Sentences, second.Sentences = append(first.Sentences, a[i]), append(second.Sentences, b[i])
		case a[i] != b[i]:
			if a[i] == "" {
				empty, other = other, empty
			}
			cli.Warn(o.streams, o.quiet, "line %d is blank in %s: it is left out of %s too", i+1, nameOf(empty),
				nameOf(other))
		}
	}
	if len(first.Sentences) == 0 {
		return cli.Usagef("--against: no line has a sentence in both texts")
	}
	return nil
}

// read reads one text: results that infill printed, or a sentence a line, "" for a blank one.
func (o *metricsOptions) read(what, file string) (h metrics.Hypotheses, err error) {
	in, err := o.open(what, file)
	if err != nil {
		return h, err
	}
	defer in.Close()
	if printed(file) {
		if h, err = readResults(in); err != nil {
			return h, &cli.UsageError{Err: fmt.Errorf("%s (%s): %w", what, nameOf(file), err),
				Hint: "a file whose name ends in .jsonl or .json is what infill prints with --format jsonl or json"}
		}
		return h, nil
	}
	wrong := func(err error) error { return cli.Usagef("%s (%s): %w", what, nameOf(file), err) }
	count, blank, first := 0, 0, int64(0)
	for lines := batch.NewReader(in, "text", "text"); ; {
		line, err := lines.Next()
		if err == nil {
			err = line.Err
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return h, wrong(fmt.Errorf("line %d: %w", len(h.Sentences)+1, err))
		}
		text := ""
		if line.Blank {
			if blank++; blank == 1 {
				first = line.Line
			}
		} else if text, err = line.Object.Text("text"); err != nil {
			return h, wrong(err)
		}
		if h.Sentences = append(h.Sentences, text); text != "" {
			count = len(h.Sentences)
		}
	}
	if count == 0 {
		return h, wrong(errors.New("no sentence: the text is empty"))
	}
	h.Sentences = h.Sentences[:count] // blank lines at the end have no partners
	if blank > 0 {
		cli.Warn(o.streams, o.quiet, "%s (%s): %s left out, the first is line %d", what, nameOf(file),
			cli.Counted(blank, "blank line"), first)
	}
	return h, nil
}

// ending is the end of a file's name that tells its form.
func ending(file string) string {
	return filepath.Ext(strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(file), ".gz"), ".zst"))
}

// printed reports whether a file holds results that infill printed as JSON.
func printed(file string) bool {
	return slices.Contains([]string{".jsonl", ".ndjson", ".json"}, ending(file))
}

// open opens a text, a sentence a line, or results that infill printed.
func (o *metricsOptions) open(what, file string) (in io.ReadCloser, err error) {
	switch {
	case file == "-":
		return io.NopCloser(o.streams.In), nil
	case batch.IsFile(file) && !printed(file) && !slices.Contains([]string{".txt", ".text"}, ending(file)):
		rows, err := batch.Columns(batch.File{Path: file}, "text")
		if err != nil {
			return nil, cli.Usagef("%s: %w", what, err)
		}
		var lines strings.Builder
		for _, row := range rows {
			lines.WriteString(strings.NewReplacer("\n", " ", "\r", " ").Replace(row[0]) + "\n")
		}
		return io.NopCloser(strings.NewReader(lines.String())), nil
	}
	if in, err = batch.Open(file); err != nil {
		return nil, cli.Usagef("%s: %w", what, err)
	}
	return in, nil
}

// printedResult has the fields of a result that this command reads.
type printedResult struct {
	Fills []struct {
		Text          *string  `json:"text"`
		LogLikelihood *float64 `json:"log_likelihood"`
	} `json:"fills"`
}

// readResults reads the objects that infill prints, a line each or all as one list. Every one is a
// prompt of its own: its samples are not independent of each other.
func readResults(in io.Reader) (h metrics.Hypotheses, err error) {
	h.Prompts = []string{}
	text := bufio.NewReader(in)
	objects := json.NewDecoder(text)
	first, _ := text.Peek(1)
	list := string(first) == "["
	if list {
		if _, err := objects.Token(); err != nil {
			return h, err
		}
	}
	number := 1
	for ; objects.More(); number++ {
		var r printedResult
		if err := objects.Decode(&r); err != nil {
			return h, fmt.Errorf("object %d: %w", number, err)
		}
		if len(r.Fills) == 0 {
			return h, fmt.Errorf("object %d holds no fills", number)
		}
		for i, s := range r.Fills {
			if s.Text == nil || s.LogLikelihood == nil {
				return h, fmt.Errorf("object %d, fill %d: text or log_likelihood is missing", number, i+1)
			}
			h.Sentences = append(h.Sentences, *s.Text)
			h.Prompts = append(h.Prompts, strconv.Itoa(number))
			h.LogLikelihoods = append(h.LogLikelihoods, *s.LogLikelihood)
		}
	}
	switch end, err := objects.Token(); {
	case list && err == io.EOF:
		return h, io.ErrUnexpectedEOF
	case list && end != json.Delim(']'), !list && err != io.EOF:
		return h, fmt.Errorf("object %d: %w", number, err)
	case number == 1:
		return h, errors.New("no sentence: the text is empty")
	}
	return h, nil
}

// reference reads a text to compare with, as an evaluation does.
func (o *metricsOptions) reference(r cli.Corpus) ([]string, error) {
	what := "reference " + r.Name
	in, err := o.open(what, r.File)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	c, err := corpus.Read(r.Name, nameOf(r.File), in)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	for _, line := range c.LeftOut() {
		cli.Warn(o.streams, o.quiet, "%s (%s): %s", what, nameOf(r.File), line)
	}
	return c.Raw(), nil
}

func nameOf(file string) string {
	if file == "-" {
		return "standard input"
	}
	return filepath.Base(file)
}

// metricsResult is the output of the command. Its JSON is that of the report, which is part of the command's contract,
// and the comparison beside it.
type metricsResult struct {
	*metrics.Report
	Comparison *metrics.Comparison `json:"comparison,omitempty"`
}

func (r metricsResult) print(o *metricsOptions) error {
	switch o.format {
	case "json":
		return cli.WriteJSON(o.streams.Out, r)
	case "csv":
		return r.csv(o.streams.Out)
	}
	return r.text(o)
}

// decimalText is a number for a table cell, all digits where digits is below 0, "" if there is none.
func decimalText(v metrics.Value, digits int) string {
	if !v.Defined() {
		return ""
	}
	if digits < 0 {
		return cli.AllDigits(float64(v))
	}
	return strconv.FormatFloat(float64(v), 'f', digits, 64)
}

func (r metricsResult) csv(out io.Writer) error {
	rows := [][]string{{"metric", "reference", "n", "unit", "value", "low", "high", "second", "difference",
		"difference_low", "difference_high", "randomisation_p", "bootstrap_p", "signature"}}
	for _, s := range r.Scores {
		row := []string{s.Metric, s.Reference, "", s.Unit, decimalText(s.Value, -1), "", "", "", "", "", "", "", "",
			s.Signature}
		if s.N > 0 {
			row[2] = strconv.Itoa(s.N)
		}
		if s.Interval != nil {
			row[5], row[6] = decimalText(s.Interval.Low, -1), decimalText(s.Interval.High, -1)
		}
		if r.Comparison != nil {
			if d, ok := r.Comparison.Score(s.Name()); ok {
				for i, v := range []metrics.Value{d.Second, d.Difference, d.Interval.Low, d.Interval.High,
					d.RandomisationP, d.BootstrapP} {
					row[7+i] = decimalText(v, -1)
				}
			}
		}
		rows = append(rows, row)
	}
	return cli.WriteCSV(out, rows)
}

// intervalText is "low to high", "" without an interval.
func intervalText(i *metrics.Interval, digits int) string {
	if i == nil || !i.Low.Defined() {
		return ""
	}
	return decimalText(i.Low, digits) + " to " + decimalText(i.High, digits)
}

func (r metricsResult) text(o *metricsOptions) error {
	headers := []string{"score", "%"}
	intervals := slices.ContainsFunc(r.Scores, func(s metrics.Score) bool { return s.Interval != nil })
	if intervals {
		headers = append(headers, fmt.Sprintf("%g %% interval", 100*o.Confidence))
	}
	if r.Comparison != nil {
		headers = append(headers, "second", "difference", "interval", "p")
	}
	var rows [][]string
	for _, s := range r.Scores {
		row := []string{s.Title(), cmp.Or(decimalText(s.Value, 2), "not defined")}
		if intervals {
			row = append(row, intervalText(s.Interval, 2))
		}
		if r.Comparison != nil {
			d, _ := r.Comparison.Score(s.Name())
			row = append(row, decimalText(d.Second, 2), decimalText(d.Difference, 2), intervalText(&d.Interval, 2),
				decimalText(d.RandomisationP, 3))
		}
		rows = append(rows, row)
	}
	lines := []string{fmt.Sprintf("%s, %s", cli.Counted(r.Sentences, "sentence"), cli.Counted(r.Tokens, "token"))}
	for _, ref := range r.References {
		if ref.Name != metrics.Union {
			lines = append(lines,
				fmt.Sprintf("%s: %s, %s", ref.Name, cli.Counted(ref.Sentences, "sentence"),
					cli.Counted(ref.Tokens, "token")))
		}
	}
	if r.Comparison != nil {
		lines = append(lines,
			"p: two-sided approximate randomisation, each of a single test, not corrected for their number")
	}
	lines = append(lines, "signature "+r.Signature)
	_, err := io.WriteString(o.streams.Styled(),
		cli.RenderTable(o.streams.Width, headers, rows, 0)+"\n"+cli.Notes(o.streams.Width, lines...))
	return err
}
