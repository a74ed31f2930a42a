package batch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
)

// This file keeps the ends of lines as they are. A line ends with LF or CR LF. A
// CR alone ends no line: old programs wrote such files, and would lose all rows.

// carriageReturn is the error of a CR outside quotes that no LF follows.
func carriageReturn(line int64) error {
	return fmt.Errorf("line %d has a carriage return (CR) that ends no line: save the file with line feeds (LF), or "+
		"put the text in quotes", line)
}

// scanWhole is bufio.ScanLines, except that a line keeps its CR.
func scanWhole(data []byte, atEOF bool) (advance int, token []byte, err error) {
	at := bytes.IndexByte(data, '\n')
	switch {
	case at >= 0:
		return at + 1, data[:at], nil
	case atEOF && len(data) > 0:
		return len(data), data, nil
	}
	return 0, nil, nil
}

// quotedEnds doubles each CR before an LF inside quotes of CSV. encoding/csv drops
// one CR there, so that the cell keeps the other. Outside quotes, quotedEnds
// refuses a CR that no LF follows.
type quotedEnds struct {
	from   *bufio.Reader
	quoted bool
	line   int64 // from 1
	twice  bool  // whether the next byte is a CR once more
}

func newQuotedEnds(r *bufio.Reader) *quotedEnds { return &quotedEnds{from: r, line: 1} }

// Read implements io.Reader.
func (q *quotedEnds) Read(p []byte) (n int, err error) {
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
				return n, carriageReturn(q.line)
			}
			q.twice = followed && q.quoted
		}
		p[n] = b
		n++
	}
	return n, nil
}

// members reads the members of a gzip file one after the other. Zeros may stand
// behind the last, as tapes and block devices leave them.
type members struct {
	from *bufio.Reader
	zip  *gzip.Reader
}

func newMembers(r io.Reader) (*members, error) {
	from := bufio.NewReaderSize(r, bufferSize)
	zip, err := gzip.NewReader(from)
	if err != nil {
		return nil, err
	}
	zip.Multistream(false)
	return &members{from: from, zip: zip}, nil
}

// Read implements io.Reader.
func (m *members) Read(p []byte) (int, error) {
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
