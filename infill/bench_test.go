package infill_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"infill/infill"
	"infill/samplers"
)

// residentMiB is the memory that the process holds, in MiB.
func residentMiB(b *testing.B) float64 {
	b.Helper()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip("resident memory is read from /proc, which is not here")
	}
	pages, err := strconv.Atoi(string(bytes.Fields(statm)[1]))
	if err != nil {
		b.Fatal(err)
	}
	return float64(pages*os.Getpagesize()) / (1 << 20)
}

// BenchmarkThousandFills fills 1,000 different templates in one process, with
// small runs, and reports resident memory after the first 200 and what the
// other 800 added.
func BenchmarkThousandFills(b *testing.B) {
	f, err := infill.Open(infill.OpenOptions{Device: "cpu"})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	chains := infill.Chains{Sampler: samplers.DMALA{}}
	chains.Samples, chains.Steps = 5, 4
	var early, late float64
	for b.Loop() {
		for i := range 1000 {
			template := fmt.Sprintf("the %d men [MASK] the house and [MASK] for %s .", i, "the "+string(rune('a'+i%26)))
			if _, err := f.Fill(context.Background(), infill.Request{Template: template, Method: chains},
				nil); err != nil {
				b.Fatal(err)
			}
			if i == 199 {
				runtime.GC()
				early = residentMiB(b)
			}
		}
		runtime.GC()
		late = residentMiB(b)
	}
	b.ReportMetric(early, "MiB-after-200")
	b.ReportMetric(late-early, "MiB-more-after-1000")
}

// BenchmarkFill is a whole fill with the defaults, by the number of slots.
func BenchmarkFill(b *testing.B) {
	f, err := infill.Open(infill.OpenOptions{Device: "cpu"})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for _, template := range []string{
		"he had [MASK] me",
		"he took his [MASK] , opened the [MASK] , and [MASK] out into the rain .",
		"in the [MASK] the [MASK] were [MASK] , but the [MASK] of the [MASK] remained .",
	} {
		b.Run(fmt.Sprintf("slots=%d", strings.Count(template, "[MASK]")), func(b *testing.B) {
			dmala := infill.Chains{Sampler: samplers.DMALA{}}
			o, rows := infill.Request{Template: template, Method: dmala}, int64(0)
			for b.Loop() {
				o.Seed++
				result, err := f.Fill(context.Background(), o, nil)
				if err != nil {
					b.Fatal(err)
				}
				rows += result.Stats.ModelRows
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(rows)/float64(b.N), "rows/fill")
		})
	}
}
