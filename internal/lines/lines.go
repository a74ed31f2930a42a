// Package lines reads lines of text files without a change to their bytes. A
// line ends with LF or CR LF. A CR alone ends no line: old programs wrote such
// files, and a reader that took one for a long line would lose all its texts.
package lines

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// ErrCarriageReturn is the error of a CR outside quotes that no LF follows.
var ErrCarriageReturn = errors.New("a carriage return (CR) ends no line: save the file with line feeds (LF); " +
	"quotes of CSV and TSV keep it as text")

// ByteOrderMark is how some programs begin a text in UTF-8. It is no part of the text.
const ByteOrderMark = "\ufeff"

// Scan is bufio.ScanLines, except that a line keeps its CR.
func Scan(data []byte, atEOF bool) (advance int, token []byte, err error) {
	at := bytes.IndexByte(data, '\n')
	switch {
	case at >= 0:
		return at + 1, data[:at], nil
	case atEOF && len(data) > 0:
		return len(data), data, nil
	}
	return 0, nil, nil
}

// One replaces each line break in a text by a space.
func One(text string) string { return breaks.Replace(text) }

var breaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ")

// Short returns a message in which a long value in quotes is cut to its two ends, and so
// is what is very long altogether, because a message may quote a text of any length.
func Short(message string) string {
	const mostQuoted, most = 200, 1500 // bytes
	var short strings.Builder
	for len(message) > mostQuoted {
		at := strings.IndexByte(message, '"')
		if at < 0 {
			break
		}
		quoted, err := strconv.QuotedPrefix(message[at:])
		// A quotation mark behind a letter ends no value that begins before it.
		if err != nil || at > 0 && !strings.ContainsRune(" ([{:,=", rune(message[at-1])) {
			quoted = message[at : at+1]
		}
		short.WriteString(message[:at])
		message = message[at+len(quoted):]
		value, _ := strconv.Unquote(quoted) // "" for a quotation mark alone
		if len(value) > mostQuoted {
			quoted = strconv.Quote(ends(value, mostQuoted))
		}
		short.WriteString(quoted)
	}
	short.WriteString(message)
	return ends(short.String(), most)
}

// ends returns a text of at most most bytes, whose middle is left out if need be.
func ends(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const middle = " … "
	end := (most - len(middle)) / 2
	return strings.ToValidUTF8(text[:end], "") + middle + strings.ToValidUTF8(text[len(text)-end:], "")
}

// ShortAll cuts each of some messages as Short does.
func ShortAll(messages []string) []string {
	for i, message := range messages {
		messages[i] = Short(message)
	}
	return messages
}

// CSV passes CSV on to encoding/csv, which drops a CR before an LF in quotes:
// CSV doubles it. Outside quotes, it refuses a CR that no LF follows.
type CSV struct {
	from   *bufio.Reader
	quoted bool
	line   int64 // from 1
	twice  bool  // whether the next byte is a CR once more
}

// NewCSV returns a reader of the text of r.
func NewCSV(r *bufio.Reader) *CSV { return &CSV{from: r, line: 1} }

func (q *CSV) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if q.twice {
			q.twice = false
			p[n] = '\r'
			n++
			continue
		}
		b, err := q.from.ReadByte()
		if err != nil {
			if n > 0 {
				return n, nil // the next call has the error again
			}
			return 0, err
		}
		switch b {
		case '"':
			q.quoted = !q.quoted
		case '\n':
			q.line++
		case '\r':
			next, _ := q.from.Peek(1)
			followed := string(next) == "\n"
			if !followed && !q.quoted {
				return n, fmt.Errorf("line %d: %w", q.line, ErrCarriageReturn)
			}
			q.twice = followed && q.quoted
		}
		p[n] = b
		n++
	}
	return n, nil
}

// gzipped reads the members of a gzip file one after the other. Zeros may stand
// behind the last, as tapes and block devices leave them.
type gzipped struct {
	from *bufio.Reader
	zip  *gzip.Reader
}

func newGzip(from *bufio.Reader) (*gzipped, error) {
	zip, err := gzip.NewReader(from)
	if err != nil {
		return nil, err
	}
	zip.Multistream(false)
	return &gzipped{from: from, zip: zip}, nil
}

func (m *gzipped) Read(p []byte) (int, error) {
	n, err := m.zip.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	zeros := false
	for {
		next, err := m.from.Peek(1)
		if err != nil {
			return n, err
		}
		if next[0] != 0 {
			break
		}
		zeros = true
		m.from.Discard(1) //nolint:errcheck // Peek has this byte
	}
	if zeros {
		return n, gzip.ErrHeader
	}
	err = m.zip.Reset(m.from)
	if err != nil {
		return n, err
	}
	m.zip.Multistream(false)
	return n, nil
}
