package metrics

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// ReadSentences reads a text with one sentence a line, UTF-8, with line feeds or carriage return and line feed, and
// with or without a byte order mark. It leaves out lines of white space; blank has their numbers, from 1.
func ReadSentences(r io.Reader) (sentences []string, blank []int, err error) {
	reader := bufio.NewReaderSize(r, 1<<16)
	for number := 1; ; number++ {
		line, err := reader.ReadString('\n')
		if err != nil && err != io.EOF {
			return nil, nil, fmt.Errorf("line %d: %w", number, err)
		}
		last := err == io.EOF
		if number == 1 {
			if strings.HasPrefix(line, "\xff\xfe") || strings.HasPrefix(line, "\xfe\xff") {
				return nil, nil, errors.New("line 1: the text is UTF-16: convert it to UTF-8")
			}
			line = strings.TrimPrefix(line, "\ufeff")
		}
		if last && line == "" {
			break
		}
		if !utf8.ValidString(line) {
			return nil, nil, fmt.Errorf("line %d is not UTF-8: convert the text to UTF-8", number)
		}
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if len(split(line)) == 0 {
			blank = append(blank, number)
		} else {
			sentences = append(sentences, line)
		}
		if last {
			break
		}
	}
	if len(sentences) == 0 {
		return nil, blank, errors.New("no sentence: the text is empty")
	}
	return sentences, blank, nil
}
