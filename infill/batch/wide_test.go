package batch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"infill/internal/object"
)

// wideTable writes a table of so many columns beside the text, and ten rows, in the form of name.
func wideTable(t testing.TB, name string, columns int) string {
	t.Helper()
	text := "text"
	for i := range columns {
		text += fmt.Sprintf(",c%d", i)
	}
	text += "\n" + strings.Repeat("the kettle sang"+strings.Repeat(",7", columns)+"\n", 10)
	path := filepath.Join(t.TempDir(), "in.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if name != "in.csv" {
		made := filepath.Join(t.TempDir(), name)
		job := Job{Input: File{Path: path}, Output: File{Path: made}, Work: &pass{}}
		if _, err := Run(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		path = made
	}
	return path
}

// wideForms are inputs and outputs of wide tables.
var wideForms = []struct{ in, out string }{{"in.csv", "out.tsv"}, {"in.jsonl", "out.jsonl"}}

// copyWide runs a wide table through a work that keeps its columns.
func copyWide(t testing.TB, in, out string) {
	t.Helper()
	s, err := Run(t.Context(), Job{Input: File{Path: in}, Output: File{Path: filepath.Join(t.TempDir(), out)},
		Work: &shout{}})
	if err != nil || s.Records != 10 || s.Rejected > 0 {
		t.Fatal(s, err)
	}
}

// Tables of thousands of columns go through every form.
func TestWideTables(t *testing.T) {
	for _, c := range wideForms {
		copyWide(t, wideTable(t, c.in, 4000), c.out)
	}
}

// BenchmarkWideTables: eight times as many columns take about eight times as long, not 64 times.
func BenchmarkWideTables(b *testing.B) {
	for _, c := range wideForms {
		for _, columns := range []int{500, 4000} {
			b.Run(fmt.Sprintf("%s to %s/columns=%d", c.in, c.out, columns), func(b *testing.B) {
				in := wideTable(b, c.in, columns)
				for b.Loop() {
					copyWide(b, in, c.out)
				}
			})
		}
	}
}

// pass gives records as they are.
type pass struct{ shout }

func (*pass) lines(row object.Object) ([]object.Object, error) { return []object.Object{row}, nil }

func (*pass) Do(_ context.Context, r Record) ([]object.Object, error) {
	return []object.Object{r.Object}, nil
}

// wideResult is the result of a text with two fills, beside so many columns.
func wideResult(columns int) object.Object {
	row := object.Object{{Key: "fills", Value: []byte(`[{"rank": 1, "text": "a"}, {"rank": 2, "text": "b"}]`)}}
	for i := range columns {
		row = append(row, object.Field{Key: fmt.Sprintf("c%d", i), Value: []byte("7")})
	}
	return row
}

// A line for each fill keeps all columns.
func TestWideFills(t *testing.T) {
	const columns = 64000
	lines, err := (&Fill{}).lines(wideResult(columns))
	if err != nil || len(lines) != 2 || len(lines[1]) != columns+2 {
		t.Fatal(len(lines), err)
	}
}

// BenchmarkWideFills: eight times as many columns take about eight times as long.
func BenchmarkWideFills(b *testing.B) {
	for _, columns := range []int{8000, 64000} {
		b.Run(fmt.Sprintf("columns=%d", columns), func(b *testing.B) {
			for row := wideResult(columns); b.Loop(); {
				if _, err := (&Fill{}).lines(row); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
