package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/charmbracelet/x/ansi"

	"infill/cmd/infill/internal/terminal"
	"infill/internal/batch"
	"infill/internal/lines"
	"infill/internal/rawjson"
)

func Formats() []string { return []string{"text", "json", "jsonl", "csv"} }

// Style says how to write results as CSV, and as text for width columns.
type Style[T any] struct {
	// Add adds the lines of one result to a table, whose columns Layout gives at the end.
	Add    func(table *batch.Sheet, v T) error
	Layout func(copied []string) batch.Layout
	Text   func(v T, width int) string
	// Heading stands above results of one line each; "" for longer ones.
	Heading string
	// Lines returns the lines of the formats lines and words, or is nil.
	Lines func(v T) []string
}

// Printer writes results one by one, in the given format. Each result is one
// write, so that a reader never sees half a result. CSV waits for the last
// result, whose columns the first line has to name.
type Printer[T any] struct {
	Style[T]
	Format  string
	Streams *terminal.Streams
	Results int
	table   *batch.Sheet // the lines of CSV
	ended   bool
}

func (p *Printer[T]) Print(v T) (err error) {
	p.Results++
	first := p.Results == 1
	switch p.Format {
	case "json":
		text, err := rawjson.EncodeIndent(v, "  ", "  ")
		if err != nil {
			return err
		}
		separator := ",\n  "
		if first {
			separator = "[\n  "
		}
		_, err = p.Streams.Out.Write(append([]byte(separator), text...))
		return err
	case "jsonl":
		return rawjson.WriteLine(p.Streams.Out, v)
	case "csv":
		if first {
			p.table, err = batch.NewSheet()
			if err != nil {
				return err
			}
		}
		return p.Add(p.table, v)
	case "lines", "words":
		for _, line := range p.Lines(v) {
			if _, err := fmt.Fprintln(p.Streams.Out, lines.One(line)); err != nil {
				return err
			}
		}
		return nil
	}
	text := p.Text(v, p.Streams.Width)
	switch {
	case first:
		text = p.Heading + text
	case p.Heading == "":
		text = "\n" + text
	}
	_, err = io.WriteString(p.Streams.Styled(), text)
	return err
}

// Whole returns err, before which it ends the output of earlier results.
func (p *Printer[T]) Whole(err error) error {
	if err != nil && p.Results > 0 {
		_ = p.End() // err matters more than an error of End
	}
	return err
}

func (p *Printer[T]) End() error {
	if p.ended {
		return nil
	}
	p.ended = true
	if p.table != nil {
		return p.table.Write(p.Streams.Out, p.Layout)
	}
	if p.Format != "json" {
		return nil
	}
	text := "\n]\n"
	if p.Results == 0 {
		text = "[]\n"
	}
	_, err := io.WriteString(p.Streams.Out, text)
	return err
}

func WriteJSON(w io.Writer, v any) error {
	text, err := rawjson.EncodeIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// These are lengths in characters: the longest text that is shown whole, and
// how much of a longer text is shown on either side of a blank.
const (
	shownWhole = 300
	shownSide  = 60
)

// Mark styles the given ranges of characters of a text. It shortens a long text to the
// parts near these, with "…" for all others. The text is checked input, or
// comes from the tokenizer: its only control characters are white space, and
// characters that reorder text, which inOrder escapes. Line breaks stay.
func Mark(text string, spans [][2]int) string {
	spans = lines.Bytes(text, spans)
	long := len(spans) > 0 && utf8.RuneCountInString(text) > shownWhole
	var b strings.Builder
	rest := func(part string, first, last int) {
		if long {
			part = shortened(part, first, last)
		}
		b.WriteString(inOrder(part))
	}
	from := 0
	for i, span := range spans {
		rest(text[from:span[0]], min(i, 1)*shownSide, shownSide)
		b.WriteString(ansi.NewStyle(ansi.AttrBold, ansi.AttrCyanForegroundColor).Styled(inOrder(text[span[0]:span[1]])))
		from = span[1]
	}
	rest(text[from:], shownSide, 0)
	return strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", " ").Replace(b.String())
}

// shortened cuts text between words to its first and last characters.
func shortened(text string, first, last int) string {
	runes := []rune(text)
	if len(runes) <= first+last {
		return text
	}
	head := string(runes[:first])
	tail := string(runes[len(runes)-last:])
	at := strings.LastIndexFunc(head, unicode.IsSpace)
	if at > 0 {
		head = head[:at] + " "
	}
	if at := strings.IndexFunc(tail, unicode.IsSpace); at >= 0 {
		tail = tail[at:]
	}
	if last == 0 {
		return head + "…"
	}
	return head + "… " + strings.TrimLeftFunc(tail, unicode.IsSpace)
}

// Wrap breaks text at spaces, and after breaks, to a width, unless it is 0.
func Wrap(text string, width int, breaks string) string {
	if width == 0 {
		return text
	}
	return ansi.Wrap(text, width, breaks)
}

func Notes(width int, lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		for part := range strings.SplitSeq(Wrap(OneLine(line), width, "|"), "\n") {
			b.WriteString(ansi.NewStyle(ansi.AttrFaint).Styled(part) + "\n")
		}
	}
	return b.String()
}

// RenderTable formats a table. The column with the index text is aligned to the
// left, and wrapped on a narrow terminal; all others hold numbers, to the
// right. If text is negative, all are to the left. A cell may have several
// lines. Text from right to left is isolated, in the caller's rows.
func RenderTable(width int, headers []string, rows [][]string, text int) string {
	const gap = 2
	for _, row := range rows {
		for i := range row {
			row[i] = inOrder(row[i])
		}
	}
	var widths []int
	total := 0
	for column, header := range headers {
		widest := lipgloss.Width(header)
		for _, row := range rows {
			widest = max(widest, lipgloss.Width(row[column]))
		}
		widths = append(widths, widest+gap)
		total += widest + gap
	}
	if text >= 0 && width > 0 && total > width {
		// With less room, text would be broken into letters.
		widths[text] = min(widths[text], max(widths[text]-total+width, 12))
	}
	t := table.New().Border(lipgloss.HiddenBorder()).
		BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).BorderColumn(false).BorderHeader(
		false).
		Headers(headers...).Rows(rows...).Wrap(true).
		StyleFunc(func(_, column int) lipgloss.Style {
			style := lipgloss.NewStyle().Width(widths[column])
			switch {
			case text < 0:
				return style.PaddingRight(gap)
			case column != text:
				style = style.Align(lipgloss.Right)
			}
			return style.PaddingLeft(gap)
		})
	// The padding at the end of a line is useless.
	lines := strings.Split(t.Render(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

type OutputError struct{ err error }

func (e *OutputError) Error() string { return "write the result: " + e.err.Error() }
func (e *OutputError) Unwrap() error { return e.err }

// Output makes errors OutputErrors. It keeps the first: cobra's help drops it.
type Output struct {
	io.Writer
	Err error
}

func (o *Output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil {
		err = &OutputError{err}
		if o.Err == nil {
			o.Err = err
		}
	}
	return n, err
}

// OneLine returns text in a form that is safe to print on one line of a terminal.
func OneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	return inOrder(strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, text))
}

// inOrder escapes characters that would make a terminal reorder the text after
// them (UAX #9: embeddings, overrides, isolates).
func inOrder(text string) string { return reordering.Replace(text) }

var reordering = strings.NewReplacer("\u202a", `\u202a`, "\u202b", `\u202b`, "\u202c", `\u202c`, "\u202d", `\u202d`,
	"\u202e", `\u202e`, "\u2066", `\u2066`, "\u2067", `\u2067`, "\u2068", `\u2068`, "\u2069", `\u2069`)
