package lines

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// kindsOfFile are the first bytes of files that are no text, and a remedy.
var kindsOfFile = []struct{ start, says string }{
	{"\xff\xfe\x00\x00", "the text is in UTF-32: save it as UTF-8"},
	{"\x00\x00\xfe\xff", "the text is in UTF-32: save it as UTF-8"},
	{"\xff\xfe", "the text is in UTF-16: save it as UTF-8"},
	{"\xfe\xff", "the text is in UTF-16: save it as UTF-8"},
	{"\x1f\x8b", "this is gzip: let the file's name end in .gz, or unpack it (gzip -d)"},
	{"\x28\xb5\x2f\xfd", "this is zstd: let the file's name end in .zst, or unpack it (zstd -d)"},
	{"BZh", "this is bzip2: unpack it (bunzip2); packed, gzip (.gz) and zstd (.zst) are read"},
	{"\xfd7zXZ\x00", "this is xz: unpack it (unxz); packed, gzip (.gz) and zstd (.zst) are read"},
	{"PK\x03\x04", "this is a zip archive, as a spreadsheet is: save its sheet as CSV, or unpack it"},
	{"PAR1\x15", "this is Parquet: in Python, Infill().run reads it"},
}

// CheckStart returns an error if a file that begins so is no text in UTF-8.
func CheckStart(start []byte) error {
	for _, kind := range kindsOfFile {
		if kind.start == "BZh" && (len(start) < 10 || string(start[4:10]) != "1AY&SY") {
			continue // a text may begin so
		}
		if strings.HasPrefix(string(start), kind.start) {
			return errors.New(kind.says)
		}
	}
	// UTF-16 without a mark: of an ASCII letter, one of two bytes is zero.
	if len(start) >= 2 && (start[0] == 0) != (start[1] == 0) {
		return fmt.Errorf("the text has NUL characters, as UTF-16 looks: save it as UTF-8")
	}
	return nil
}

// Text returns a reader of a text, which refuses what is no text as soon as it
// comes. It waits for no more bytes than r has.
func Text(r io.Reader) io.Reader { return &text{from: r} }

type text struct {
	from  io.Reader
	begun bool
	wrong error
}

func (t *text) Read(p []byte) (int, error) {
	if t.wrong != nil {
		return 0, t.wrong
	}
	n, err := t.from.Read(p)
	if n > 0 && !t.begun {
		t.begun = true
		t.wrong = CheckStart(p[:n])
	}
	if t.wrong != nil {
		return 0, t.wrong
	}
	return n, err
}
