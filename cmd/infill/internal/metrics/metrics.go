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
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
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
	streams      *terminal.Streams
	file         string // "-" is standard input
	references   cli.Named
	against      string
	preset       string
	tokenisation string
	smoothing    string
	format       string
	quiet        bool
	form         cli.ByCorpus
	encoding     cli.ByCorpus
	metrics.Options
}

// The named settings, of which none leaves every flag to itself, and the forms of the result.
var presets, formats = []string{"none", "bert-gen"}, []string{"text", "json", "csv"}

// NewCmd makes infill metrics.
func NewCmd(s *terminal.Streams) *cobra.Command {
	o := &metricsOptions{
		streams: s, preset: presets[0], tokenisation: string(metrics.WhiteSpace),
		smoothing: metrics.Smoothing{}.String(), format: formats[0],
		form:     cli.ByCorpus{Choices: cli.Texts(corpus.Forms()), What: "FORM"},
		encoding: cli.ByCorpus{Choices: cli.Texts(corpus.Encodings()), What: "ENCODING"},
		Options:  metrics.DefaultOptions(),
	}
	o.Version = infill.Version()
	cmd := &cobra.Command{
		Use:   "metrics FILE [-r NAME=FILE...]",
		Short: "Score generated text: BLEU, self-BLEU, unique n-grams",
		Long: `Score generated text, one sentence a line: self-BLEU and repetition, which tell
how alike the sentences are, and corpus BLEU and n-grams not found in references.
Every score has an interval, by the jackknife, and a signature that holds all that changes
it. FILE may be -, standard input.

A FILE whose name ends in .jsonl or .json is what infill prints with --format jsonl
or json: the samples of all its templates are scored, with the mean and best
log-likelihood U, and self-BLEU and repetition within each template as well. Of a
table (.csv, .tsv) the column text is scored. Files may be compressed (.gz, .zst).

References are read as infill eval reads corpora: WikiText's own files and text
with a sentence a line are told apart, --corpus-form prose is for running text.

Definitions are those of NLTK and nyu-dl/bert-gen: no smoothing, the closest
reference length, the references of a sentence's self-BLEU are all the others.
Sentences are taken as white-space tokenised; --preset bert-gen is the protocol of
its notebook: it lower-cases both sides, replaces @@UNKNOWN@@ by [UNK] and the two
quote marks by ", and takes the first 2,500 sentences of each reference for all of
them together.

--against FILE scores a second text as well and tests each score for a difference,
line by line: approximate randomisation and paired bootstrap. A pair of which one
line is blank is left out of both texts. The p-values are of
single tests; who looks at many must correct for that.`,
		Example: `  $ infill metrics fills.txt -r tbc=tbc.txt -r wiki=wiki.txt --preset bert-gen
  $ infill metrics fills.txt --format json
  $ infill --format jsonl < templates.txt > fills.jsonl && infill metrics fills.jsonl
  $ infill metrics first.txt --against second.txt -r tbc=tbc.txt`,
		Args: cli.OneArgument("one file is scored",
			"infill metrics FILE; a second text is named by --against, references by -r NAME=FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.file = args[0]
			if err := o.settle(cmd.Flags()); err != nil {
				return err
			}
			return metricsRun(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.VarP(&o.references, "reference", "r", "a text to compare with; may be given several times")
	flags.Var(&o.form, "corpus-form",
		"what a line of a reference is, of all or of one: "+strings.Join(o.form.Choices, ", "))
	cli.Complete(cmd, "corpus-form", o.form.Choices)
	flags.Var(&o.encoding, "encoding", "of all references or of one: "+strings.Join(o.encoding.Choices, ", "))
	cli.Complete(cmd, "encoding", o.encoding.Choices)
	flags.StringVar(&o.against, "against", "", "a second text to test for differences, line by line")
	cli.AddChoice(cmd, &o.preset, "preset", "", presets,
		"bert-gen: --tokenisation bert-gen --union-first 2500")
	cli.AddChoice(cmd, &o.tokenisation, "tokenisation", "", cli.Texts(metrics.WhiteSpace.Values()),
		"how a line becomes tokens")
	flags.Var(cli.Whole{Value: &o.Order}, "order", "longest n-gram of BLEU")
	flags.StringVar(&o.smoothing, "smoothing", o.smoothing, "of BLEU: none, epsilon[=E], add-k[=K] or exp")
	flags.Var(wholes{&o.UniqueOrders}, "ngrams", "lengths for unique and distinct n-grams")
	flags.VarP(cli.Whole{Value: &o.Top}, "top", "k",
		"repetition among the N likeliest of each template as well, for JSONL; 0 is not")
	flags.Var(cli.Whole{Value: &o.UnionFirst}, "union-first", "limit the union of the references to the first N "+
		"sentences of each; 0 is all; --preset bert-gen takes 2500 where this is not given")
	flags.Var(cli.Whole{Value: &o.Resamples}, "resamples",
		"samples and exchanges of the paired tests; -1 is no intervals")
	flags.Var(cli.Decimal{Value: &o.Confidence, Kind: "C"}, "confidence", "of the intervals, between 0 and 1")
	flags.Var(cli.Seed{Value: &o.Seed}, "seed", "start of the random numbers of the resampling; 0 when not given")
	cli.AddChoice(cmd, &o.format, "format", "", formats, "form of the result")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "no warnings")
	return cmd
}

// settle applies the preset and reads what the flags alone cannot.
func (o *metricsOptions) settle(flags *pflag.FlagSet) (err error) {
	o.Tokenisation = metrics.Tokenisation(o.tokenisation)
	if o.preset == "bert-gen" {
		if flags.Changed("tokenisation") && o.Tokenisation != metrics.BertGen {
			return cli.Usagef("--preset bert-gen and --tokenisation %s exclude each other: give one", o.tokenisation)
		}
		o.Tokenisation = metrics.BertGen
		if !flags.Changed("union-first") {
			o.UnionFirst = 2500
		}
	}
	if o.Smoothing, err = metrics.ParseSmoothing(o.smoothing); err != nil {
		return cli.Usagef("--smoothing: %w", err)
	}
	for flag, value := range map[string]*cli.ByCorpus{"--corpus-form": &o.form, "--encoding": &o.encoding} {
		for _, name := range value.Names() {
			if !slices.ContainsFunc(o.references.List, func(c cli.NamedFile) bool { return c.Name == name }) {
				return cli.Usagef("%s: no reference is called %q", flag, name)
			}
		}
	}
	switch {
	case o.Order < 1 || o.Order > metrics.MaximumOrder:
		return cli.Usagef("--order: %d is not a whole number from 1 to %d", o.Order, metrics.MaximumOrder)
	case o.Top < 0:
		return cli.Usagef("--top: %d is not a whole number of 0 or more", o.Top)
	case o.Top > 0 && !printed(o.file):
		return cli.Usagef("--top needs log-likelihoods: give a .jsonl file that infill --format jsonl printed")
	case o.UnionFirst < 0:
		return cli.Usagef("--union-first: %d is not a whole number of 0 (all) or more", o.UnionFirst)
	case o.Resamples == 0 || o.Resamples < -1:
		return cli.Usagef("--resamples: %d is not a whole number of 1 or more, or -1 for no intervals", o.Resamples)
	case !(o.Confidence > 0 && o.Confidence < 1):
		return cli.Usagef("--confidence: %v is not a number between 0 and 1", o.Confidence)
	case o.against != "" && o.Resamples < 0:
		return cli.Usagef("--against needs resamples: leave out --resamples -1")
	}
	return nil
}

func metricsRun(ctx context.Context, o *metricsOptions) error {
	readers := []string{o.file, o.against}
	for _, r := range o.references.List {
		readers = append(readers, r.File)
	}
	if n := len(readers) - len(
		slices.DeleteFunc(slices.Clone(readers), func(f string) bool { return f == "-" })); n > 1 {
		return cli.Usagef("standard input (-) is named more than once: it can be read once")
	}
	in, err := cli.Interruptible(ctx, o.readAll)
	if err != nil {
		return err
	}
	report, err := metrics.Evaluate(ctx, *in.hypotheses, in.references, o.Options)
	if err != nil {
		return err
	}
	result := metricsResult{Report: report}
	if in.other != nil {
		if result.Comparison, err = metrics.CompareMethods(ctx, *in.hypotheses, *in.other, in.references,
			o.Options); err != nil {
			return err
		}
	}
	for _, w := range report.Warnings {
		cli.Warn(o.streams, o.quiet, "%s", strings.TrimPrefix(w.Score+": "+w.Message, ": "))
	}
	return result.print(o)
}

// metricsTexts are what is measured: a text, one that it is compared with, nil for none, and references.
type metricsTexts struct {
	hypotheses, other *metrics.Hypotheses
	references        []metrics.Reference
}

func (o *metricsOptions) readAll() (in metricsTexts, err error) {
	var blank []int
	if in.hypotheses, blank, err = o.read("text", o.file); err != nil {
		return in, err
	}
	if o.against != "" {
		if in.other, err = o.readAgainst(in.hypotheses, blank); err != nil {
			return in, err
		}
	}
	for _, r := range o.references.List {
		text, err := o.reference(r)
		if err != nil {
			return in, err
		}
		in.references = append(in.references, metrics.Reference{Name: r.Name, Sentences: text})
	}
	return in, nil
}

// readAgainst reads the second text, and leaves out of both what has no partner: a
// line is compared with the line of the same number.
func (o *metricsOptions) readAgainst(first *metrics.Hypotheses, blank []int) (*metrics.Hypotheses, error) {
	second, blankSecond, err := o.read("second text", o.against)
	if err != nil {
		return nil, err
	}
	if (first.Prompts == nil) != (second.Prompts == nil) {
		return nil, cli.Usagef("--against: only one of the two texts is JSONL: give both in the same form")
	}
	what, a, b := "sentence", first.Sentences, second.Sentences
	if first.Prompts == nil {
		what, a, b = "line", byLine(a, blank), byLine(b, blankSecond)
	}
	if len(a) != len(b) {
		return nil, cli.Usagef("--against: %s has %s, %s has %s: they are compared line by line", nameOf(o.against),
			cli.Counted(len(b), what), nameOf(o.file), cli.Counted(len(a), what))
	}
	if first.Prompts != nil {
		return second, nil
	}
	first.Sentences, second.Sentences = nil, nil
	for i := range a {
		if a[i] != "" && b[i] != "" {
			first.Sentences, second.Sentences = append(first.Sentences, a[i]), append(second.Sentences, b[i])
			continue
		}
		empty, other := o.against, o.file
		if a[i] == "" {
			empty, other = other, empty
		}
		if a[i] != b[i] {
			cli.Warn(o.streams, o.quiet, "line %d is blank in %s: it is left out of %s too", i+1, nameOf(empty),
				nameOf(other))
		}
	}
	if len(first.Sentences) == 0 {
		return nil, cli.Usagef("--against: no line has a sentence in both texts")
	}
	return second, nil
}

// byLine puts sentences back to their lines; blank lines are "", those at the end are left out.
func byLine(sentences []string, blank []int) []string {
	lines := make([]string, 0, len(sentences)+len(blank))
	for _, s := range sentences {
		for len(blank) > 0 && blank[0] == len(lines)+1 {
			lines, blank = append(lines, ""), blank[1:]
		}
		lines = append(lines, s)
	}
	return lines
}

// read reads one text and tells of its blank lines.
func (o *metricsOptions) read(what, file string) (h *metrics.Hypotheses, blank []int, err error) {
	in, done, err := o.open(what, file)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	if printed(file) {
		h, err := readResults(in)
		if err != nil {
			return nil, nil,
				&cli.UsageError{Err: fmt.Errorf("%s (%s): %w", what, nameOf(file), err),
					Hint: "a file whose name ends in .jsonl or .json is what infill prints with --format jsonl or json"}
		}
		return h, nil, nil
	}
	sentences, blank, err := metrics.ReadSentences(in)
	if err != nil {
		return nil, nil, cli.Usagef("%s (%s): %w", what, nameOf(file), err)
	}
	if len(blank) > 0 {
		cli.Warn(o.streams, o.quiet, "%s (%s): %s left out, the first is line %d", what, nameOf(file),
			cli.Counted(len(blank), "blank line"), blank[0])
	}
	return &metrics.Hypotheses{Sentences: sentences}, blank, nil
}

// ending is the end of a file's name that tells its form.
func ending(file string) string {
	return filepath.Ext(strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(file), ".gz"), ".zst"))
}

// printed reports whether a file is what infill prints as JSON.
func printed(file string) bool {
	return slices.Contains([]string{".jsonl", ".ndjson", ".json"}, ending(file))
}

// open opens a text, a sentence a line, or what infill printed.
func (o *metricsOptions) open(what, file string) (in io.Reader, done func(), err error) {
	if file == "-" {
		return o.streams.In, func() {}, nil
	}
	if batch.IsFile(file) && !printed(file) && !slices.Contains([]string{".txt", ".text"}, ending(file)) {
		rows, err := batch.Columns(batch.File{Path: file}, "text")
		if err != nil {
			return nil, nil, cli.Usagef("%s: %w", what, err)
		}
		var lines strings.Builder
		for _, row := range rows {
			lines.WriteString(strings.NewReplacer("\n", " ", "\r", " ").Replace(row[0]) + "\n")
		}
		return strings.NewReader(lines.String()), func() {}, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, cli.Usagef("%s: %w", what, err)
	}
	in = f
	switch strings.ToLower(filepath.Ext(file)) {
	case ".gz":
		in, err = gzip.NewReader(f)
	case ".zst":
		in, err = zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
	}
	if err != nil {
		f.Close()
		return nil, nil, cli.Usagef("%s: %s cannot be unpacked (%w): get it again", what, nameOf(file), err)
	}
	return in, func() { f.Close() }, nil
}

// printedResult is what is read of a result.
type printedResult struct {
	Fills []struct {
		Text          *string  `json:"text"`
		LogLikelihood *float64 `json:"log_likelihood"`
	} `json:"fills"`
}

// readResults reads the objects that infill prints, a line each or all as one list. Every one is a
// prompt of its own: its samples are not independent of each other.
func readResults(in io.Reader) (*metrics.Hypotheses, error) {
	h := &metrics.Hypotheses{Prompts: []string{}}
	text := bufio.NewReader(in)
	objects := json.NewDecoder(text)
	first, _ := text.Peek(1)
	list := string(first) == "["
	if list {
		if _, err := objects.Token(); err != nil {
			return nil, err
		}
	}
	number := 1
	for ; objects.More(); number++ {
		var r printedResult
		if err := objects.Decode(&r); err != nil {
			return nil, fmt.Errorf("object %d: %w", number, err)
		}
		if len(r.Fills) == 0 {
			return nil, fmt.Errorf("object %d holds no fills", number)
		}
		for i, s := range r.Fills {
			if s.Text == nil || s.LogLikelihood == nil {
				return nil, fmt.Errorf("object %d, fill %d: text or log_likelihood is missing", number, i+1)
			}
			h.Sentences = append(h.Sentences, *s.Text)
			h.Prompts = append(h.Prompts, strconv.Itoa(number))
			h.LogLikelihoods = append(h.LogLikelihoods, *s.LogLikelihood)
		}
	}
	switch end, err := objects.Token(); {
	case list && err == io.EOF:
		return nil, io.ErrUnexpectedEOF
	case list && end != json.Delim(']'), !list && err != io.EOF:
		return nil, fmt.Errorf("object %d: %w", number, err)
	case number == 1:
		return nil, errors.New("no sentence: the text is empty")
	}
	return h, nil
}

// reference reads a text to compare with, as an evaluation does.
func (o *metricsOptions) reference(r cli.NamedFile) ([]string, error) {
	what := "reference " + r.Name
	in, done, err := o.open(what, r.File)
	if err != nil {
		return nil, err
	}
	defer done()
	c, err := corpus.Read(r.Name, nameOf(r.File), in, corpus.Form(o.form.Of(r.Name)),
		corpus.Encoding(o.encoding.Of(r.Name)))
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

// metricsResult is what the command prints. Its JSON is that of the report, which
// is part of the command's contract, and the comparison beside it.
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
			s.Signature.String()}
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
	lines = append(lines, "signature "+r.Signature.String())
	_, err := io.WriteString(o.streams.Styled(),
		cli.RenderTable(o.streams.Width, headers, rows, 0)+"\n"+cli.Notes(o.streams.Width, lines...))
	return err
}

// wholes is a list of whole numbers of 1 or more.
type wholes struct{ values *[]int }

var _ pflag.Value = wholes{}

func (w wholes) Set(text string) error {
	var list []int
	for _, part := range strings.Split(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 || n > metrics.MaximumOrder {
			return fmt.Errorf("a list of whole numbers from 1 to %d, such as 2,3", metrics.MaximumOrder)
		}
		list = append(list, n)
	}
	*w.values = list
	return nil
}

func (w wholes) String() string {
	if w.values == nil {
		return ""
	}
	return cli.Joined(*w.values, "%d", ",")
}

func (w wholes) Type() string { return "N,..." }
