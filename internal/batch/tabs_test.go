package batch

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"infill/internal/check"
)

func init() { check.SameDraws() }

// readTabs reads a text as TSV: its records, the lines of each, and the note.
func readTabs(t rapid.TB, text string) (records [][]string, note string) {
	s := NewReader(strings.NewReader(text), formTSV, "text")
	err := s.readHeader()
	if err != nil {
		t.Skip(err)
	}
	for {
		r, err := s.split()
		if err == io.EOF {
			return records, s.Note()
		}
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r.cells)
	}
}

// TestQuotesAreCharacters: lines that are rows alone are rows, whatever quotes they have.
func TestQuotesAreCharacters(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       [][]string
		note       string
	}{
		{"quotes that a later line closes",
			"text\tlabel\n\"i am not sure .\tneg\nit was late .\tpos\nbut i think so .\"\tneg\nthe end .\tpos\n",
			[][]string{{`"i am not sure .`, "neg"}, {"it was late .", "pos"}, {`but i think so ."`, "neg"},
				{"the end .", "pos"}}, ""},
		{"a row of two cells between quotes", "good\tbad\n\"He is here .\tHe are here .\"\n",
			[][]string{{`"He is here .`, `He are here ."`}}, ""},
		{"a cell with a tab", "a\tb\n\"x\ty\"\tz\n", [][]string{{"x\ty", "z"}}, ""},
		{"a cell of two lines", "a\tb\n\"x\ny\"\tz\n1\t2\n", [][]string{{"x\ny", "z"}, {"1", "2"}},
			": lines 2 to 3 are one cell in quotes"},
		{"the last cell of two lines", "a\tb\nz\t\"x\r\ny\"\r\n1\t2\r\n", [][]string{{"z", "x\r\ny"}, {"1", "2"}},
			": lines 2 to 3 are one cell in quotes"},
		{"two cells of two lines", "a\tb\tc\n\"x\ny\"\tz\t\"p\nq\"\n1\t2\t3\n",
			[][]string{{"x\ny", "z", "p\nq"}, {"1", "2", "3"}}, ": lines 2 to 4 are one cell in quotes"},
		{"a cell in each record", "a\tb\n\"x\ny\"\tz\n\"x\n\n\ny\"\tz\n", [][]string{{"x\ny", "z"}, {"x\n\n\ny", "z"}},
			": 2 cells in quotes have several lines, the first lines 2 to 3, the longest lines 4 to 7"},
		{"one column", "text\n\"a\nb\"\nc\n", [][]string{{"a\nb"}, {"c"}}, ": lines 2 to 3 are one cell in quotes"},
		{"a header in quotes", "\"a\"\t\"b\"\n\"x\"\t\"1\n2\"\n\"y\t\"\t2\n", [][]string{{"x", "1\n2"},
			{"y\t", "2"}}, ""},
		{"backslashes before the end of a cell",
			"\"a\"\t\"b\"\n\"x\"\t\"C:\\d\\\"\n\"C:\\\"\t\"1\"\n\"a \\\"\"q\"\"\"\t2\n",
			[][]string{{"x", `C:\d\`}, {`C:\`, "1"}, {`a \"q"`, "2"}}, ""},
		{"quotes as R writes them", "\"a\"\t\"b\"\n\"say \\\"hi\\\"\"\t\"x \\\"y\\\" z\"\n",
			[][]string{{`say "hi"`, `x "y" z`}}, ""},
		{"rows in declared quotes", "\"a\"\t\"b\"\n\"x\t1\ny\t2\nz\"\t3\nw\t4\n", [][]string{{"x\t1\ny\t2\nz", "3"},
			{"w", "4"}}, ": lines 2 to 4 are one cell in quotes"},
	} {
		got, note := readTabs(t, c.text)
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) || note != c.note {
			t.Errorf("%s: %q, note %q", c.name, got, note)
		}
	}
}

// TestPlainRows: of rows that no cell in quotes explains, none is lost, in any table of
// two columns or more.
func TestPlainRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(2, 4).Draw(t, "columns")
		cell := rapid.StringMatching(`"?[ab ,]{0,3}"?`)
		var want []string
		text := strings.Join([]string{"h1", "h2", "h3", "h4"}[:columns], "\t")
		for range rapid.IntRange(1, 12).Draw(t, "rows") {
			row := strings.Join(rapid.SliceOfN(cell, columns, columns).Draw(t, "row"), "\t")
			want = append(want, row)
			text += "\n" + row
		}
		got, _ := readTabs(t, text)
		if len(got) != len(want) {
			t.Fatalf("%q: %d rows of %d", text, len(got), len(want))
		}
		for i, cells := range got {
			if strings.Contains(want[i], `""`) {
				continue // quotes within quotes
			}
			if strings.Join(cells, "\t") != want[i] {
				t.Fatalf("row %q is read as %q", want[i], cells)
			}
		}
	})
}

// TestWritten: cells of several lines, with tabs and quotes, come back from what pandas
// writes: a cell with a tab, a line break or a quote stands in quotes, which are doubled.
func TestWritten(t *testing.T) {
	quoted := strings.NewReplacer(`"`, `""`)
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(1, 3).Draw(t, "columns")
		cell := rapid.StringMatching(`[ab]{1,2}(\n[ab"]{0,3}){0,3}`)
		var want [][]string
		text := strings.Join([]string{"h1", "h2", "h3"}[:columns], "\t") + "\n"
		for range rapid.IntRange(1, 6).Draw(t, "rows") {
			row := rapid.SliceOfN(cell, columns, columns).Draw(t, "row")
			want = append(want, row)
			for i, c := range row {
				if strings.ContainsAny(c, "\t\n\"") {
					c = `"` + quoted.Replace(c) + `"`
				}
				text += c + []string{"\n", "\t"}[min(1, columns-1-i)]
			}
		}
		got, _ := readTabs(t, text)
		if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
			t.Fatalf("%q is read as %q, want %q", text, got, want)
		}
	})
}

// TestTabsAreLinear: ten times the lines take at most fifteen times the looks at a line,
// also where each line opens a cell that no line, or a far one, may close.
func TestTabsAreLinear(t *testing.T) {
	for name, line := range map[string]string{"no end": "\"a\n", "rows": "\"a\tb\"\n",
		"an end that fits nowhere": "\"a\"b\n",
		"chains":                   "x\"\t\"y\n", "too many": "\"a\tb\tc\td\n"} {
		looks := func(n int) int {
			text := "h1\th2\n" + strings.Repeat(line, n)
			s := NewReader(strings.NewReader(text), formTSV, "text")
			err := s.readHeader()
			for err == nil {
				_, err = s.split()
			}
			return s.tabs.looks
		}
		few, many := looks(300), looks(3000)
		if few < 300 || many > 15*few {
			t.Errorf("%s: %d looks at 300 lines, %d at 3000", name, few, many)
		}
	}
}

// TestEmptyLinesOfCSV: an empty line is counted, as in every other form, and the
// lines behind it keep their numbers.
func TestEmptyLinesOfCSV(t *testing.T) {
	for text, want := range map[string]string{
		"text\na\n\nb\n":                   "2 a, 3, 4 b",
		"\n\ntext\n\na\n":                  "4, 5 a",
		"text\n\"a\nb\"\n\nc\n\n\n":        "2 a\nb, 4, 5 c, 6, 7",
		"text\r\na\r\n\r\nb":               "2 a, 3, 4 b",
		"text\n\n":                         "2",
		"text,n\na,1\n\"\",\n":             "2 a1, 3",
		"text\n\"a \"\"q\"\"\r\n\"\n\nb\n": "2 a \"q\"\r\n, 4, 5 b",
	} {
		s := NewReader(strings.NewReader(text), formCSV, "text")
		err := s.readHeader()
		var got []string
		for {
			r, err := s.Next()
			if err != nil {
				break
			}
			if number := int64(len(got) + 1); r.Number != number {
				t.Errorf("%q: record %d has number %d", text, number, r.Number)
			}
			got = append(got, strings.TrimSpace(fmt.Sprint(r.Line, " ", strings.Join(r.cells, ""))))
		}
		want = strings.TrimSpace(want)
		if err != nil || strings.Join(got, ", ") != strings.ReplaceAll(want, "\r\n,", ",") {
			t.Errorf("%q: %q, want %q, error %v", text, got, want, err)
		}
	}
}
