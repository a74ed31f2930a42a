package batch

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"infill/internal/object"
)

// TestWideTables: a table of eight times as many columns takes about eight times as long, not 64 times.
func TestWideTables(t *testing.T) {
	if testing.Short() {
		t.Skip("takes its time under the race detector")
	}
	const narrow, wide, rows = 500, 4000, 10
	for _, c := range []struct{ in, out string }{{"in.csv", "out.tsv"}, {"in.csv", "out.parquet"},
		{"in.parquet", "out.csv"}, {"in.jsonl", "out.jsonl"}} {
		t.Run(c.in+" to "+c.out, func(t *testing.T) {
			inputs := map[int]string{}
			for _, columns := range []int{narrow, wide} {
				text := "text"
				for i := range columns {
					text += fmt.Sprintf(",c%d", i)
				}
				text += "\n" + strings.Repeat("the kettle sang"+strings.Repeat(",7", columns)+"\n", rows)
				path := put(t, t.TempDir(), "in.csv", text)
				if c.in != "in.csv" {
					made := filepath.Join(t.TempDir(), c.in)
					if _, err := Run(t.Context(),
						Job{Input: File{Path: path}, Output: File{Path: made}, Work: &pass{}}); err != nil {
						t.Fatal(err)
					}
					path = made
				}
				inputs[columns] = path
			}
			took := func(columns int) time.Duration {
				var each []time.Duration
				for range 3 {
					start := time.Now()
					s, err := Run(t.Context(),
						Job{Input: File{Path: inputs[columns]}, Output: File{Path: filepath.Join(t.TempDir(), c.out)},
							Work: &shout{}})
					if err != nil || s.Records != rows || s.Rejected > 0 {
						t.Fatal(s, err)
					}
					each = append(each, time.Since(start))
				}
				return slices.Min(each)
			}
			few, many := took(narrow), took(wide)
			if t.Logf("%d columns %v, %d columns %v", narrow, few, wide, many); many > 3*wide/narrow*few {
				t.Errorf("%.1f times as long for %d times as many columns", float64(many)/float64(few), wide/narrow)
			}
		})
	}
}

// pass gives records as they are.
type pass struct{ shout }

func (*pass) lines(row Object) ([]Object, error) { return []Object{row}, nil }

func (*pass) Do(_ context.Context, r Record) ([]Object, error) { return []Object{r.Object}, nil }

// TestWideFills: so do the lines of fills.
func TestWideFills(t *testing.T) {
	if testing.Short() {
		t.Skip("takes its time under the race detector")
	}
	const narrow, wide = 8000, 64000
	took := func(columns int) time.Duration {
		row := Object{{Key: "samples", Value: []byte(`[{"rank": 1, "text": "a"}, {"rank": 2, "text": "b"}]`)}}
		for i := range columns {
			row = append(row, object.Field{Key: fmt.Sprintf("c%d", i), Value: []byte("7")})
		}
		var each []time.Duration
		for range 7 {
			start := time.Now()
			lines, err := (&Fill{}).lines(row)
			if err != nil || len(lines) != 2 || len(lines[1]) != columns+2 {
				t.Fatal(len(lines), err)
			}
			each = append(each, time.Since(start))
		}
		return slices.Min(each)
	}
	few, many := took(narrow), took(wide)
	if t.Logf("%d columns %v, %d columns %v", narrow, few, wide, many); many > 3*wide/narrow*few {
		t.Errorf("%.1f times as long for %d times as many columns", float64(many)/float64(few), wide/narrow)
	}
}
