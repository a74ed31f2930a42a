package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/charmbracelet/x/ansi"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
)

// resultPrinter writes results as they come. Each is one write, so that a reader
// never sees half of one.
type resultPrinter interface {
	print(id json.RawMessage, r *infill.Result) error
	end() error // after the last result; not called when the command fails
}

// newResultPrinter makes the printer of one of formats().
func newResultPrinter(format string, s *terminal.Streams) resultPrinter {
	switch format {
	case "json":
		return &jsonPrinter{array: jsonArray{out: s.Out}}
	case "jsonl":
		return &jsonPrinter{lines: true, array: jsonArray{out: s.Out}}
	case "csv":
		return &csvPrinter{out: s.Out}
	}
	return &textPrinter{out: s.Styled(), width: s.Width}
}

// identified is a value's JSON with the user's own id before its fields.
type identified[T any] struct {
	ID    json.RawMessage
	Value T
}

func (i identified[T]) MarshalJSON() ([]byte, error) {
	value, err := encode(i.Value, "", "")
	if err != nil || i.ID == nil {
		return value, err
	}
	return bytes.Join([][]byte{[]byte(`{"id":`), i.ID, []byte(","), value[1:]}, nil), nil
}

// encode is JSON without the escapes that are for HTML, and without a last
// line end.
func encode(v any, prefix, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, indent)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// jsonArray writes an array value by value.
type jsonArray struct {
	out    io.Writer
	values int
}

func (a *jsonArray) add(v any) error {
	text, err := encode(v, "  ", "  ")
	if err != nil {
		return err
	}
	separator := "[\n  "
	if a.values++; a.values > 1 {
		separator = ",\n  "
	}
	_, err = a.out.Write(append([]byte(separator), text...))
	return err
}

func (a *jsonArray) end() error {
	text := "\n]\n"
	if a.values == 0 {
		text = "[]\n"
	}
	_, err := io.WriteString(a.out, text)
	return err
}

// jsonPrinter writes an array, or an object a line.
type jsonPrinter struct {
	lines bool
	array jsonArray
}

func (p *jsonPrinter) print(id json.RawMessage, r *infill.Result) error {
	v := identified[*infill.Result]{id, r}
	if !p.lines {
		return p.array.add(v)
	}
	return writeLine(p.array.out, v)
}

func (p *jsonPrinter) end() error {
	if p.lines {
		return nil
	}
	return p.array.end()
}

func writeLine(w io.Writer, v any) error {
	text, err := encode(v, "", "")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// csvPrinter writes a row for each fill.
type csvPrinter struct {
	out    io.Writer
	headed bool
}

func (p *csvPrinter) print(id json.RawMessage, r *infill.Result) error {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	rows := [][]string{}
	if !p.headed {
		p.headed = true
		rows = append(rows, []string{"id", "template", "rank", "text", "fills", "token_ids", "log_likelihood", "count", "frequency", "seed", "signature", "pieces", "score"})
	}
	for _, s := range r.Fills {
		// A fill may hold any character, so lists are JSON.
		fills, err := encode(s.Values, "", "")
		if err != nil {
			return err
		}
		ids, err := encode(s.TokenIDs, "", "")
		if err != nil {
			return err
		}
		pieces, frequency, score := "", strconv.FormatFloat(s.Frequency, 'g', -1, 64), ""
		if r.Stats.Law != "" {
			frequency = ""
		}
		if s.Score != nil {
			text, err := encode(s.Pieces, "", "")
			if err != nil {
				return err
			}
			pieces, score = string(text), strconv.FormatFloat(*s.Score, 'g', -1, 64)
		}
		rows = append(rows, []string{
			plainID(id), r.Template, strconv.Itoa(s.Rank), s.Text, string(fills), string(ids),
			strconv.FormatFloat(s.LogLikelihood, 'g', -1, 64), strconv.Itoa(s.Count), frequency,
			strconv.FormatUint(r.Seed, 10), r.Signature, pieces, score,
		})
	}
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	_, err := p.out.Write(b.Bytes())
	return err
}

func (p *csvPrinter) end() error { return nil }

// plainID is a string id without its quotes, and any other as it is.
func plainID(id json.RawMessage) string {
	var text string
	if json.Unmarshal(id, &text) == nil {
		return text
	}
	return string(id)
}

// textPrinter writes for people.
type textPrinter struct {
	out     io.Writer // takes styles
	width   int       // columns of the terminal, 0 for none
	results int
}

// The styles: of slots and fills, and of what is not the result itself.
func slotStyle() ansi.Style { return ansi.NewStyle(ansi.AttrBold, ansi.AttrCyanForegroundColor) }
func restStyle() ansi.Style { return ansi.NewStyle(ansi.AttrFaint) }

// mark styles byte ranges of a text. The text itself is checked input or made by
// the tokenizer, without control characters but white space, which becomes blanks.
func mark(text string, spans [][2]int) string {
	var b strings.Builder
	from := 0
	for _, span := range spans {
		b.WriteString(text[from:span[0]])
		b.WriteString(slotStyle().Styled(text[span[0]:span[1]]))
		from = span[1]
	}
	b.WriteString(text[from:])
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ").Replace(b.String())
}

func (p *textPrinter) print(_ json.RawMessage, r *infill.Result) error {
	var b strings.Builder
	if p.results++; p.results > 1 {
		b.WriteString("\n")
	}
	b.WriteString(p.wrap(mark(r.Template, r.Blanks)) + "\n\n")
	// The text needs the room of a narrow terminal more than the numbers do.
	narrow := p.width > 0 && p.width < 60
	headers := []string{"#", "fill"}
	if r.Stats.Lengths != nil {
		headers = append(headers, "pieces", "score")
	}
	likelihood := true
	switch {
	case narrow && r.Stats.Lengths != nil:
		likelihood = false // the score is what ranks
	case narrow:
		headers = append(headers, "log-lik.")
	default:
		headers = append(headers, "log-likelihood")
	}
	if r.Stats.Law == "" {
		headers = append(headers, "drawn")
	}
	rows := make([][]string, len(r.Fills))
	for i, s := range r.Fills {
		row := []string{strconv.Itoa(s.Rank), mark(s.Text, s.Spans)}
		if r.Stats.Lengths != nil {
			row = append(row, joined(s.Pieces), fmt.Sprintf("%.2f", *s.Score))
		}
		if likelihood {
			row = append(row, fmt.Sprintf("%.2f", s.LogLikelihood))
		}
		if r.Stats.Law == "" {
			row = append(row, share(s, !narrow))
		}
		rows[i] = row
	}
	b.WriteString(renderTable(p.width, headers, rows, 1))
	b.WriteString("\n")
	for _, line := range footer(r) {
		for _, wrapped := range strings.Split(p.wrap(line), "\n") {
			b.WriteString(restStyle().Styled(wrapped) + "\n")
		}
	}
	_, err := io.WriteString(p.out, b.String())
	return err
}

func (p *textPrinter) end() error { return nil }

// wrap breaks a text at words to fit the terminal.
func (p *textPrinter) wrap(text string) string {
	if p.width == 0 {
		return text
	}
	return ansi.Wrap(text, p.width, "")
}

// joined writes the pieces of the blanks, "1+2".
func joined(pieces []int) string {
	texts := make([]string, len(pieces))
	for i, n := range pieces {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, "+")
}

// share is how often a fill was drawn, with its standard error between chains
// where it is wanted and known.
func share(s infill.Fill, withError bool) string {
	if e := s.FrequencyStandardError; e != nil && withError {
		return fmt.Sprintf("%.1f ± %.1f %%", 100*s.Frequency, 100**e)
	}
	return fmt.Sprintf("%.1f %%", 100*s.Frequency)
}

// footer tells how a result was made.
func footer(r *infill.Result) []string {
	s := r.Stats
	how := fmt.Sprintf("%s, %s × %s", s.Sampler, counted(s.Chains, "chain"), counted(s.Steps, "step"))
	switch s.Mode {
	case infill.ModeBest:
		how = "annealing with " + how
	case infill.ModeDecode:
		how = fmt.Sprintf("%s, %s × %s", s.Sampler, counted(s.Chains, "decoding"), counted(s.Steps, "round"))
	}
	if s.WarmUp.Steps > 0 {
		how += fmt.Sprintf(" (%d warm-up)", s.WarmUp.Steps)
	}
	if s.StepSize != nil {
		how += fmt.Sprintf(", step size %.3g", *s.StepSize)
	}
	if s.Ladder != nil {
		temperatures := make([]string, len(s.Ladder))
		for i, t := range s.Ladder {
			temperatures[i] = strconv.FormatFloat(t, 'g', -1, 64)
		}
		how += ", temperatures " + strings.Join(temperatures, ", ")
		if s.SwapRates != nil {
			rates := make([]string, len(s.SwapRates))
			for i, r := range s.SwapRates {
				rates[i] = fmt.Sprintf("%.2f", r)
			}
			how += " (swapped " + strings.Join(rates, ", ") + ")"
		}
	}
	moves := []string{}
	if s.AcceptanceRate != nil {
		moves = append(moves, "acceptance "+withError("%.2f", *s.AcceptanceRate, s.AcceptanceStandardError))
	}
	if s.Steps > s.WarmUp.Steps && s.Mode != infill.ModeDecode {
		moves = append(moves, fmt.Sprintf("%.2f of %s changed per step", s.ChangedSlotsPerStep, counted(s.Slots, "slot")))
	}
	noun := "draw"
	if s.Law != "" {
		noun = "state"
	}
	moves = append(moves, fmt.Sprintf("%s in %s", counted(s.DistinctFills, "distinct fill"), counted(s.Draws, noun)))
	lines := []string{how}
	switch s.Mode {
	case infill.ModeBest, infill.ModeDecode:
		lines = append(lines, "the fills are finds, not draws: they follow no known law and have no frequencies")
	}
	if s.Lengths != nil {
		lines = append(lines, fmt.Sprintf("%s, score: nats a word; log-likelihoods compare, and draws are counted, within a length", counted(len(s.Lengths), "length")))
	}
	return append(lines,
		strings.Join(moves, ", "),
		fmt.Sprintf("mean log-likelihood %s, %s, %.2f s, seed %d",
			withError("%.2f", s.MeanLogLikelihood, s.MeanLogLikelihoodStandardError), counted(s.ModelRows, "model row"), s.Seconds, r.Seed),
	)
}

// counted is a number with its noun.
func counted[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// withError is a mean with its standard error, if there is one.
func withError(format string, mean float64, standardError *float64) string {
	text := fmt.Sprintf(format, mean)
	if standardError != nil {
		text += " ± " + fmt.Sprintf(format, *standardError)
	}
	return text
}

// renderTable aligns columns, the one numbered text to the left and wrapped
// where the terminal is too narrow, the others, which are numbers, to the right.
func renderTable(width int, headers []string, rows [][]string, text int) string {
	const gap = 2
	widths := make([]int, len(headers))
	total := 0
	for column, header := range headers {
		widths[column] = ansi.StringWidth(header)
		for _, row := range rows {
			widths[column] = max(widths[column], ansi.StringWidth(row[column]))
		}
		widths[column] += gap
		total += widths[column]
	}
	if width > 0 && total > width {
		// A text that gets no room at all would be broken into letters.
		widths[text] = min(widths[text], max(widths[text]-total+width, 12))
	}
	t := table.New().Border(lipgloss.HiddenBorder()).
		BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).BorderColumn(false).BorderHeader(false).
		Headers(headers...).Rows(rows...).Wrap(true).
		StyleFunc(func(_, column int) lipgloss.Style {
			style := lipgloss.NewStyle().PaddingLeft(gap).Width(widths[column])
			if column != text {
				style = style.Align(lipgloss.Right)
			}
			return style
		})
	// What comes after the last character is padding, of no use to anyone.
	lines := strings.Split(t.Render(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}
