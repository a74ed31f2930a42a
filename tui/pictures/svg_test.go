package main

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	screen := "a <b> & \x1b[1;38;5;117mbold\x1b[0m 日本\n\x1b[48;2;1;2;3m\x1b[7m▆━╸\x1b[m \x1b[4mé\x1b[24m\x1b["
	var b strings.Builder
	write(&b, screen, false)
	got := b.String()
	decoder := xml.NewDecoder(strings.NewReader(got))
	for {
		_, err := decoder.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("the picture is no XML: %v\n%s", err, got)
		}
	}
	for _, want := range []string{
		`>a &lt;b&gt; &amp; </text>`,
		`textLength="33.6" lengthAdjust="spacingAndGlyphs" xml:space="preserve" fill="#87d7ff" font-weight="bold">bold</text>`,
		// A wide character is a run of its own, two cells wide.
		`x="125.2" y="29.5" textLength="16.8"`,
		// Reversed: the cell is drawn in the foreground's colour, the block in the background's.
		`<rect x="16.0" y="34.0" width="8.4" height="18.0" fill="#d5daea"/>`,
		`<rect x="16.00" y="38.50" width="8.40" height="13.50" fill="#010203"/>`,
		`viewBox="0 0 174.8 68.0"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
}
