package batch

import (
	"bufio"
	"io"
	"slices"
)

// maxRecord is the longest record that is read, in bytes, far above what a model
// takes in. Longer ones are left out without holding them in memory.
const maxRecord = 1 << 20

// splitter cuts a stream into records, without reading what is in them.
type splitter struct {
	r      *bufio.Reader
	form   Form
	number int64
	line   int64 // number of lines taken
	offset int64
	// pending are lines that were read ahead for a cell over several lines that did
	// not end.
	pending []piece
}

// piece is a line with its end; of one that is too long only the size is kept.
type piece struct {
	bytes []byte
	size  int64
}

func newSplitter(r io.Reader, form Form) *splitter {
	return &splitter{r: bufio.NewReaderSize(r, bufferSize), form: form}
}

// next returns the next record without its content.
func (s *splitter) next() (Record, error) {
	line := s.line + 1
	first, err := s.take()
	if err != nil {
		return Record{}, err
	}
	lines := []piece{first}
	if s.form == formCSV && first.bytes != nil {
		var ahead []piece
		state, total := quotes(0, first.bytes), first.size
		for state == quotedCell {
			next, err := s.take()
			if err != nil && err != io.EOF {
				return Record{}, err
			}
			if err == nil {
				ahead, total, state = append(ahead, next), total+next.size, quotes(state, next.bytes)
			}
			if err == io.EOF || next.bytes == nil || total > maxRecord || state == wrongCell {
				// The quote has no end: the line is wrong alone, and takes none with it.
				s.pending, ahead = append(ahead, s.pending...), nil
				break
			}
		}
		lines = append(lines, ahead...)
	}
	s.number++
	r := Record{Number: s.number, Line: line}
	for _, l := range lines {
		s.line++
		s.offset += l.size
		if l.bytes == nil {
			r.Err = reject("longer than %d bytes: split it", maxRecord)
		}
		r.raw = append(r.raw, l.bytes...)
	}
	if r.Err == nil {
		r.raw = slices.Clip(trimEnd(r.raw))
	}
	return r, nil
}

// take returns a line that was read ahead, or reads one.
func (s *splitter) take() (piece, error) {
	if len(s.pending) > 0 {
		p := s.pending[0]
		s.pending = s.pending[1:]
		return p, nil
	}
	var p piece
	for {
		part, err := s.r.ReadSlice('\n')
		p.size += int64(len(part))
		if p.size <= maxRecord {
			p.bytes = append(p.bytes, part...)
		} else {
			p.bytes = nil
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && p.size == 0:
			return p, io.EOF
		case err != nil && err != io.EOF:
			return p, err
		}
		return p, nil
	}
}

func trimEnd(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line
}

// The states of reading CSV.
const (
	cellStart = iota
	plainCell
	quotedCell
	quoteInQuoted // the end of the cell, or the first of two that stand for one
	wrongCell     // it goes on behind its end
)

// quotes goes on from a state over more bytes. A quote within a cell that does not
// begin with one opens nothing: such a line is wrong alone.
func quotes(state int, line []byte) int {
	for _, c := range line {
		switch {
		case state == quotedCell:
			if c == '"' {
				state = quoteInQuoted
			}
		case state == wrongCell:
			return state
		case state == quoteInQuoted && c == '"':
			state = quotedCell
		case c == ',' || c == '\n':
			state = cellStart
		case state == cellStart && c == '"':
			state = quotedCell
		case state == quoteInQuoted:
			if c != '\r' {
				state = wrongCell
			}
		default:
			state = plainCell
		}
	}
	return state
}
