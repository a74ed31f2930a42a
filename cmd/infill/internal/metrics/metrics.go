// Package metrics has the command infill metrics.
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
	"infill/internal/batch"
	"infill/internal/eval/corpus"
	"infill/internal/lines"
	"infill/internal/parallel"
	"infill/internal/phrase"
	"infill/internal/rawjson"
	"infill/metrics"
)

type command struct {
	streams    *terminal.Streams
	file       string     // "-" for standard input
	from       batch.Form // form of file; "" for the one that its name tells
	spooled    string     // what standard input holds, if it is no plain text
	column     string     // the column of a table with the text
	references cli.CorpusList
	preset     string
	format     string
	quiet      bool
	options    metrics.Options
}

// presets lists the presets, of which "none" changes no flag. formats lists the
// formats of the result.
var presets, formats = []string{"none", "bert-gen"}, []string{"text", "json", "csv"}

func NewCmd(s *terminal.Streams) *cobra.Command {
	c := &command{streams: s, preset: presets[0], format: formats[0], options: metrics.DefaultOptions()}
	c.options.Version = infill.Version()
	cmd := &cobra.Command{
		Use:   "metrics FILE [-r NAME=FILE...]",
		Short: "Score generated text: BLEU, self-BLEU, unique n-grams",
		Args: cli.OneArgument("one file is scored",
			"infill metrics FILE; references are named by -r NAME=FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.file = args[0]
			if err := c.settle(cmd.Flags()); err != nil {
				return err
			}
			return c.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	cli.AddChoice(cmd, (*string)(&c.from), "from", "", cli.Texts(batch.Forms()), "format of FILE, if its name does "+
		"not say, as of standard input")
	flags.StringVar(&c.column, "column", "text", "`NAME` of the column of a table with the text")
	flags.VarP(&c.references, "reference", "r", "a text to compare with; may be given several times")
	cli.AddChoice(cmd, &c.preset, "preset", "", presets, "bert-gen: --tokenisation bert-gen --union-first 2500")
	cli.AddChoice(cmd, (*string)(&c.options.Tokenisation), "tokenisation", "",
		cli.Texts(metrics.WhiteSpace.Values()), "how a line becomes tokens")
	flags.StringVar((*string)(&c.options.Smoothing), "smoothing", string(c.options.Smoothing),
		"`FORM` of BLEU: none, epsilon[=E], add-k[=K] or exp")
	cli.Bind(cmd, &c.options)
	cli.AddChoice(cmd, &c.format, "format", "", formats, "form of the result")
	flags.BoolVarP(&c.quiet, "quiet", "q", false, "no warnings")
	return cmd
}

// settle applies the preset. It returns an error for options that do not fit together.
func (c *command) settle(flags *pflag.FlagSet) error {
	o := &c.options
	if c.preset == "bert-gen" {
		if flags.Changed("tokenisation") && o.Tokenisation != metrics.BertGen {
			return cli.Usagef("--preset bert-gen and --tokenisation %s exclude each other: give one", o.Tokenisation)
		}
		o.Tokenisation = metrics.BertGen
		if !flags.Changed("union-first") {
			o.UnionFirst = 2500
		}
	}
	if err := cli.Describe(o.Validate()); err != nil {
		return err
	}
	stdin := 0
	for _, of := range append([]cli.Corpus{{File: c.file}}, c.references.List...) {
		if of.File == "-" {
			stdin++
		}
	}
	switch {
	case o.Top > 0 && c.form(c.file) != "jsonl":
		return cli.Usagef("--top needs log-likelihoods: give a .jsonl file that infill --format jsonl printed")
	case o.Order == 0:
		return cli.Usagef("--order: 0 is not a whole number from 1 to %d", metrics.MaximumOrder)
	case o.Confidence == 0:
		return cli.Usagef("--confidence: 0 is not a number between 0 and 1")
	case stdin > 1:
		return cli.Usagef("standard input (-) is named more than once: it can be read once")
	}
	return nil
}

func (c *command) run(ctx context.Context) error {
	if c.file == "-" && c.form(c.file) != "text" {
		path, remove, err := cli.Spool(c.streams.In)
		if err != nil {
			return err
		}
		defer remove() //nolint:errcheck // a temporary file
		c.spooled = path
	}
	in, err := parallel.Interruptible(ctx, c.readAll)
	if err != nil {
		return err
	}
	report, err := metrics.Evaluate(ctx, in.text, in.references, c.options)
	if err != nil {
		return cli.Describe(err)
	}
	of := map[string]string{} // the scores to which each message applies
	for _, w := range report.Warnings {
		of[w.Message] = strings.TrimPrefix(of[w.Message]+", "+w.Score, ", ")
	}
	for _, w := range report.Warnings {
		names, ok := of[w.Message]
		if ok {
			cli.Warn(c.streams, c.quiet, "%s", strings.TrimPrefix(names+": "+w.Message, ": "))
			delete(of, w.Message)
		}
	}
	switch c.format {
	case "json":
		return cli.WriteJSON(c.streams.Out, report)
	case "csv":
		return printCSV(c.streams.Out, report)
	}
	return c.printText(report)
}

type texts struct {
	text       metrics.Hypotheses
	references []metrics.Reference
}

func (c *command) readAll() (in texts, err error) {
	in.text, err = c.read()
	if err != nil {
		return in, err
	}
	for _, r := range c.references.List {
		read, err := c.readSentences("reference "+r.Name, r.File, "")
		if err != nil {
			return in, err
		}
		in.references = append(in.references, metrics.Reference{Name: r.Name, Sentences: read.Sentences})
	}
	return in, nil
}

// read reads the text to measure: results that infill printed, or one sentence a line.
func (c *command) read() (h metrics.Hypotheses, err error) {
	if c.form(c.file) != "jsonl" {
		return c.readSentences("text", c.file, corpus.Lines)
	}
	in, err := batch.Open(cmp.Or(c.spooled, c.file))
	if err != nil {
		return h, cli.Usagef("text: %w", err)
	}
	defer in.Close()
	h, err = readResults(in)
	if errors.Is(err, errRows) && ending(c.file) != ".json" {
		return c.readSentences("text", c.file, corpus.Lines)
	}
	if err != nil {
		return h, &cli.UsageError{Err: cli.Usagef("text (%s): %w", nameOf(c.file), err),
			Hint: "a file whose name ends in .jsonl or .json is what infill prints with --format jsonl or json"}
	}
	return h, nil
}

// readSentences reads the sentences of a text or a reference: one from each line or
// record, or those of WikiText. what names the text in errors. form "" is found; a table
// has its sentences in rows.
func (c *command) readSentences(what, file string, form corpus.Kind) (h metrics.Hypotheses, err error) {
	in, err := c.open(what, file)
	if err != nil {
		return h, err
	}
	defer in.Close()
	if c.form(file) != "text" {
		form = corpus.Lines
	}
	read, err := corpus.Read(what, nameOf(file), in, form)
	if err != nil {
		return h, cli.Usagef("%s", strings.TrimPrefix(err.Error(), "corpus "))
	}
	for _, line := range read.LeftOut() {
		cli.Warn(c.streams, c.quiet, "%s (%s): %s", what, nameOf(file), line)
	}
	if read.Blank > 0 && read.Form == corpus.Lines {
		cli.Warn(c.streams, c.quiet, "%s (%s): %s left out", what, nameOf(file),
			phrase.Counted(read.Blank, "blank line"))
	}
	h.Sentences = read.Raw()
	return h, nil
}

// ending returns the ending of a file's name, without .gz or .zst, in lower case.
func ending(file string) string {
	return filepath.Ext(strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(file), ".gz"), ".zst"))
}

// form returns the form of a file: the one that was given for the text, or that its
// name tells. "jsonl" is also one list of JSON, as infill prints it.
func (c *command) form(file string) batch.Form {
	if file == c.file && c.from != "" {
		return c.from
	}
	if ending(file) == ".json" {
		return "jsonl"
	}
	form, err := batch.FormOf(file)
	if err != nil {
		return "text"
	}
	return form
}

// open opens a file as lines of sentences. what names the text in errors.
func (c *command) open(what, file string) (in io.ReadCloser, err error) {
	form := c.form(file)
	switch {
	case form != "text":
		of := batch.File{Path: file, Form: form}
		if file == "-" {
			of = batch.File{Path: c.spooled, Name: nameOf(file), Form: form}
		}
		records, note, err := batch.Records(of, c.column)
		if err != nil {
			return nil, cli.Usagef("%s: %w", what, cli.Describe(err))
		}
		if note != "" {
			cli.Warn(c.streams, c.quiet, "%s", note)
		}
		var texts strings.Builder
		for _, r := range records {
			if r.Err != nil {
				return nil, cli.Usagef("%s: %s, line %d: %w", what, of, r.Line, r.Err)
			}
			texts.WriteString(lines.One(rawjson.Plain(r.Object.Get(c.column))) + "\n")
		}
		return io.NopCloser(strings.NewReader(texts.String())), nil
	case file == "-":
		return io.NopCloser(lines.Text(c.streams.In)), nil
	}
	in, err = batch.Open(file)
	if err != nil {
		return nil, cli.Usagef("%s: %w", what, err)
	}
	return in, nil
}

// errRows is the error of a file of rows, each with its text, in place of
// results, each with its fills.
var errRows = errors.New("object 1 holds no fills")

// addFills adds the fills of a result, the object with the given number, to h.
func addFills(h *metrics.Hypotheses, result []byte, number int) error {
	v, err := rawjson.Read(result)
	if err != nil {
		return fmt.Errorf("object %d %w", number, err)
	}
	given := v.Object().Get("fills")
	list := given.List()
	words := len(list) > 0 && list[0].Object() == nil // as augment prints them
	if number == 1 && (given == nil || words) {
		return errRows
	}
	if len(list) == 0 {
		return fmt.Errorf("object %d holds no fills", number)
	}
	for i, fill := range list {
		fields := fill.Object()
		text, wrong := fields.Get("text").Text()
		logLikelihood, invalid := strconv.ParseFloat(string(fields.Get("log_likelihood")), 64)
		if wrong != nil || invalid != nil {
			return fmt.Errorf("object %d, fill %d: text or log_likelihood is missing", number, i+1)
		}
		h.Sentences = append(h.Sentences, text)
		h.Prompts = append(h.Prompts, strconv.Itoa(number))
		h.LogLikelihoods = append(h.LogLikelihoods, logLikelihood)
	}
	return nil
}

// readResults reads the results that infill prints as JSON, one a line or all
// in one list. It counts each result as a prompt, because the samples of one
// result depend on each other.
func readResults(in io.Reader) (h metrics.Hypotheses, err error) {
	h.Prompts = []string{}
	text := bufio.NewReader(in)
	mark, _ := text.Peek(len(lines.ByteOrderMark))
	if string(mark) == lines.ByteOrderMark {
		_, err = text.Discard(len(lines.ByteOrderMark))
		if err != nil {
			return h, err
		}
	}
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
		var result json.RawMessage
		err := objects.Decode(&result)
		if err != nil {
			return h, fmt.Errorf("object %d: %w", number, err)
		}
		err = addFills(&h, result, number)
		if err != nil {
			return h, err
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

func nameOf(file string) string {
	if file == "-" {
		return "standard input"
	}
	return filepath.Base(file)
}

// decimalText formats a number for a table: with all digits if digits is
// negative, and as "" if it is undefined.
func decimalText(v metrics.Value, digits int) string {
	if !v.Defined() {
		return ""
	}
	if digits < 0 {
		return fmt.Sprint(float64(v))
	}
	return strconv.FormatFloat(float64(v), 'f', digits, 64)
}

func printCSV(out io.Writer, r *metrics.Report) error {
	rows := [][]string{{"metric", "reference", "n", "unit", "value", "low", "high", "signature"}}
	for _, s := range r.Scores {
		n := ""
		low := ""
		high := ""
		if s.N > 0 {
			n = strconv.Itoa(s.N)
		}
		if s.Interval != nil {
			low, high = decimalText(s.Interval.Low, -1), decimalText(s.Interval.High, -1)
		}
		rows = append(rows, []string{s.Metric, s.Reference, n, s.Unit, decimalText(s.Value, -1), low, high,
			s.Signature})
	}
	return batch.WriteCSV(out, rows...)
}

func (c *command) printText(r *metrics.Report) error {
	headers := []string{"score", "%"}
	intervals := slices.ContainsFunc(r.Scores, func(s metrics.Score) bool { return s.Interval != nil })
	if intervals {
		headers = append(headers, fmt.Sprintf("%g %% interval", 100*c.options.Confidence))
	}
	var rows [][]string
	for _, s := range r.Scores {
		row := []string{s.Title(), cmp.Or(decimalText(s.Value, 2), "not defined")}
		if intervals {
			text := ""
			i := s.Interval
			if i != nil && i.Low.Defined() {
				text = decimalText(i.Low, 2) + " to " + decimalText(i.High, 2)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	lines := []string{fmt.Sprintf("%s, %s", phrase.Counted(r.Sentences, "sentence"), phrase.Counted(r.Tokens, "token"))}
	for _, ref := range r.References {
		if ref.Name != metrics.Union {
			lines = append(lines,
				fmt.Sprintf("%s: %s, %s", ref.Name, phrase.Counted(ref.Sentences, "sentence"),
					phrase.Counted(ref.Tokens, "token")))
		}
	}
	lines = append(lines, "signature "+r.Signature)
	_, err := io.WriteString(c.streams.Styled(),
		cli.RenderTable(c.streams.Width, headers, rows, 0)+"\n"+cli.Notes(c.streams.Width, lines...))
	return err
}
