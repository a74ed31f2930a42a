package batch

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"infill/internal/phrase"
)

// mostLines is the largest number of lines of a cell in quotes.
const mostLines = 1000

// tabs reads records of TSV. The format has no standard for quotes, so a record
// is read as literally as the header allows:
//
//   - If the header has all its names in quotes, as R writes it, quotes are
//     declared: a cell in quotes ends where they do. A backslash makes a quote
//     text, as R writes it, unless the line has the header's number of cells if
//     it does not.
//   - A cell in quotes that holds quotes, which are then doubled, or a tab stands
//     in them if the line has the header's number of cells so.
//   - A cell in quotes has several lines only if these do not make rows: if one of
//     them alone has another number of cells than the header, and the record that
//     they make together has that number. A table of one column has no such sign,
//     and takes the cell.
//
// All other quotes are characters.
type tabs struct {
	next     func() (string, error) // the next line, or io.EOF
	columns  int                    // of the header; 0 while it is read
	quoted   bool                   // whether the header declares quotes
	unquoted *strings.Replacer      // of a cell in quotes
	wrapped  wrapped

	ahead []*tabLine // lines that are read and not yet returned
	err   error      // of the line behind them
	first int        // how many lines are returned
	// No line behind the first of ahead and before closing ends a cell in quotes, and
	// each from the first to the one before misfit has the header's number of cells.
	// They count from the beginning of the file, so that no line is asked twice.
	closing, misfit int
	looks           int // how often a line of ahead was looked at, for tests
}

type tabLine struct {
	raw, text string   // text has no CR at its end
	cells     []string // of the line alone
	cr        bool     // whether a CR stands in a cell without quotes
	opens     int      // where a cell in quotes begins that does not end in the line; -1 if none does
	before    int      // number of cells before it
	closes    int      // where a cell in quotes ends that began in a line before; -1 if it goes on
}

// wrapped counts the cells of several lines, by the reading of quotes.
type wrapped struct {
	cells, most     int // number of cells, and of lines of the longest
	first, firstEnd int // lines of the first, from 1
	at              int // first line of the longest
}

func (w *wrapped) add(from, n int) {
	w.cells++
	if w.cells == 1 {
		w.first = from
		w.firstEnd = from + n - 1
	}
	if n > w.most {
		w.most = n
		w.at = from
	}
}

// String says how many lines were read as one cell, and where; "" if none were.
func (w *wrapped) String() string {
	if w.cells == 0 {
		return ""
	}
	text := fmt.Sprintf("lines %d to %d are one cell in quotes", w.first, w.firstEnd)
	if w.cells > 1 {
		text = fmt.Sprintf("%s in quotes have several lines, the first lines %d to %d, the longest lines %d to %d",
			phrase.Counted(w.cells, "cell"), w.first, w.firstEnd, w.at, w.at+w.most-1)
	}
	return text
}

// record returns the cells of the next record, the number of its lines, and
// whether a CR stands in a cell without quotes.
func (t *tabs) record() (cells []string, n int, cr bool, err error) {
	line, err := t.line(0)
	if err != nil {
		return nil, 0, false, err
	}
	if line.opens >= 0 && t.columns > 0 {
		cells, n, cr, err = t.joined()
		if err != nil {
			return nil, 0, false, err
		}
	}
	if n == 0 {
		cells = line.cells
		cr = line.cr
		n = 1
	} else if !t.quoted || t.columns > 1 && t.allFit(n) {
		t.wrapped.add(t.first+1, n)
	}
	t.ahead = t.ahead[n:]
	t.first += n
	return cells, n, cr, nil
}

// line returns line i of ahead, which it reads if needed.
func (t *tabs) line(i int) (*tabLine, error) {
	t.looks++
	for len(t.ahead) <= i {
		if t.err != nil {
			return nil, t.err
		}
		raw, err := t.next()
		if err != nil {
			t.err = err
			return nil, err
		}
		t.ahead = append(t.ahead, t.parse(raw))
	}
	return t.ahead[i], nil
}

func (t *tabs) parse(raw string) *tabLine {
	l := &tabLine{raw: raw, text: strings.TrimSuffix(raw, "\r")}
	l.cells, l.before, l.opens, l.cr = t.cut(l.text, false)
	l.closes = t.end(l.text, false)
	if t.quoted && len(l.cells) != t.columns {
		l.cells, l.before, l.opens, l.cr = t.cut(l.text, true)
	}
	if t.quoted || len(l.cells) == t.columns || t.columns == 0 {
		return l
	}
	literal := strings.Split(l.text, "\t")
	if len(literal) == t.columns {
		l.cells = literal
		l.cr = strings.Contains(l.text, "\r")
	}
	return l
}

// end returns where the quote stands that ends a cell whose text, behind its
// first quote, goes on in text; -1 if it does not end there. escapes says whether
// a quote behind a backslash is text also where a cell could end.
func (t *tabs) end(text string, escapes bool) int {
	for i := 0; i < len(text); i++ {
		if t.quoted && strings.HasPrefix(text[i:], `\"`) {
			last := ended(text[i+2:])
			doubled := strings.HasPrefix(text[i+1:], `""`) && !ended(text[i+3:])
			if escapes || !last && !doubled {
				i++
			}
			continue
		}
		if strings.HasPrefix(text[i:], `""`) {
			i++
			continue
		}
		if text[i] == '"' {
			return i
		}
	}
	return -1
}

// ended reports whether a cell has ended before rest.
func ended(rest string) bool { return rest == "" || rest[0] == '\t' }

// cut cuts a line, or the rest of one, at tabs. A cell stands in quotes only if it
// holds tabs or quotes, or if the header declares quotes. If a quote opens a cell
// that does not end in text, opens is its place and before the number of cells
// before it, and the quote is a character; else opens is -1. escapes is as in end.
func (t *tabs) cut(text string, escapes bool) (cells []string, before, opens int, cr bool) {
	opens = -1
	at := 0
	for {
		rest := text[at:]
		cell, _, more := strings.Cut(rest, "\t")
		end := -1
		if strings.HasPrefix(rest, `"`) {
			end = t.end(rest[1:], escapes)
			if end < 0 && opens < 0 {
				opens = at
				before = len(cells)
			}
		}
		length := len(cell)
		closed := end >= 0 && ended(rest[end+2:])
		if closed && (t.quoted || strings.ContainsAny(rest[1:end+1], "\t\r\"")) {
			cell = t.unquoted.Replace(rest[1 : end+1])
			length = end + 2
			more = length < len(rest)
		} else if strings.Contains(cell, "\r") {
			cr = true
		}
		cells = append(cells, cell)
		if !more {
			return cells, before, opens, cr
		}
		at += length + 1
	}
}

// span is a cell in quotes: from a place in a line of ahead to one in a later.
type span struct{ from, start, to, end int }

// joined returns the record of several lines that begins with the first of
// ahead, in which a cell opens. n is 0 if its quote is a character.
func (t *tabs) joined() (cells []string, n int, cr bool, err error) {
	first := t.ahead[0]
	cells = slices.Clone(first.cells[:first.before])
	open := span{start: first.opens + 1}
	var spans []span
	var places []int // of the spans among the cells
	for {
		open.to, err = t.closingAfter(open.from)
		if err != nil || open.to == 0 {
			return nil, 0, false, err
		}
		last := t.ahead[open.to]
		open.end = last.closes
		rest := last.text[open.end+1:]
		if rest != "" && rest[0] != '\t' {
			return nil, 0, false, nil
		}
		spans = append(spans, open)
		places = append(places, len(cells))
		cells = append(cells, "")
		if rest == "" {
			break
		}
		more, before, opens, hasCR := t.cut(rest[1:], true)
		cr = cr || hasCR
		if opens < 0 {
			cells = append(cells, more...)
			break
		}
		cells = append(cells, more[:before]...)
		if len(cells) >= t.columns {
			return nil, 0, false, nil
		}
		open = span{from: open.to, start: open.end + 2 + opens + 1}
	}
	n = open.to + 1
	rows := t.columns > 1 && !t.quoted && t.allFit(n)
	if len(cells) != t.columns || rows {
		return nil, 0, false, nil
	}
	for i, s := range spans {
		cells[places[i]] = t.unquoted.Replace(t.text(s))
	}
	return cells, n, cr, nil
}

// closingAfter returns the number of the first line of ahead behind line i in
// which a cell in quotes ends; 0 if the cell would have too many lines.
func (t *tabs) closingAfter(i int) (at int, err error) {
	at = i + 1
	if i == 0 {
		at = max(at, t.closing-t.first)
	}
	closes := false
	for !closes && at < mostLines {
		line, err := t.line(at)
		if err == io.EOF {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		closes = line.closes >= 0
		if !closes {
			at++
		}
	}
	if i == 0 {
		t.closing = t.first + at
	}
	if !closes {
		return 0, nil
	}
	return at, nil
}

// allFit reports whether each of the first n lines alone fits the header.
func (t *tabs) allFit(n int) bool {
	t.misfit = max(t.misfit, t.first)
	for t.misfit < t.first+n {
		line, _ := t.line(t.misfit - t.first) // it is read
		if len(line.cells) != t.columns {
			return false
		}
		t.misfit++
	}
	return true
}

// text returns the text of a span, with the line breaks as they are.
func (t *tabs) text(s span) string {
	var b strings.Builder
	b.WriteString(t.ahead[s.from].raw[s.start:])
	for i := s.from + 1; i < s.to; i++ {
		line, _ := t.line(i) // it is read
		b.WriteString("\n" + line.raw)
	}
	b.WriteString("\n" + t.ahead[s.to].raw[:s.end])
	return b.String()
}

// declareQuotes takes the quotes away from the names of a header that has all
// of them in quotes, and takes all quotes of the table as declared.
func (t *tabs) declareQuotes(names []string) {
	bare := func(name string) bool { return len(name) < 2 || name[0] != '"' || name[len(name)-1] != '"' }
	if slices.ContainsFunc(names, bare) {
		return
	}
	t.quoted = true
	// A quote behind a backslash and another is one that is doubled.
	t.unquoted = strings.NewReplacer(`\""`, `\"`, `""`, `"`, `\"`, `"`)
	for i, name := range names {
		names[i] = t.unquoted.Replace(name[1 : len(name)-1])
	}
}
