package batch

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"infill/infill"
)

// free is the work of a model that costs nothing: each record has the same five fills.
type free struct {
	*Fill
	result *infill.Result
}

var _ work = (*free)(nil)

func (w *free) settings(context.Context) (map[string]string, error) { return map[string]string{}, nil }

func (w *free) do(_ context.Context, r Record, form Form) (Rows, error) {
	_, err := w.Request(r.Object)
	if err != nil {
		return Rows{}, err
	}
	return w.rows(r.Object, w.result, form)
}

// BenchmarkFiles says how many lines a second files let through: a run whose fills cost
// nothing, from its input to its output.
func BenchmarkFiles(b *testing.B) {
	f, _ := newFake(b, 0)
	result, err := f.Fill(b.Context(), infill.Request{Template: "the man [MASK] the sea"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	result.Warnings = []string{}
	for _, c := range []struct{ input, output string }{{"jsonl", "jsonl"}, {"csv", "csv"}, {"txt", "txt"}} {
		b.Run(c.input, func(b *testing.B) {
			const records = 5000
			line := "he had [MASK] me since the day that we met"
			text := strings.Repeat(line+"\n", records)
			switch c.input {
			case "csv":
				text = "template,label\n" + strings.Repeat(line+",a\n", records)
			case "jsonl":
				text = strings.Repeat(fmt.Sprintf("{\"template\":%q,\"label\":\"a\"}\n", line), records)
			}
			in := put(b, b.TempDir(), "in."+c.input, text)
			for b.Loop() {
				out := filepath.Join(b.TempDir(), "out."+c.output)
				_, err := Run(b.Context(), Job{Input: File{Path: in}, Output: File{Path: out},
					Work: &free{&Fill{Key: "template"}, result}})
				if err != nil {
					b.Fatal(err)
				}
			}
			each := b.Elapsed().Seconds() / float64(b.N) / records
			b.ReportMetric(1/each, "lines/s")
			b.ReportMetric(1e6*each, "µs/line")
		})
	}
}
