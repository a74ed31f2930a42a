package batch

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

var lineCount = flag.Int("lines", 10000, "how many lines TestMemory works through")

// TestMemory: what a run holds does not grow with its input. The heap is looked at while
// records are worked at, and while the output is written.
func TestMemory(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "in.jsonl")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(file)
	for i := range *lineCount {
		fmt.Fprintf(w, `{"text":"on day %d the old man sat by the fire and told a story","label":%d}`+"\n", i, i%7)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	file.Close()
	runtime.GC() // what other tests have left
	var m runtime.MemStats
	most, looked := uint64(0), int64(0)
	work := &shout{}
	s, err := Run(t.Context(),
		Job{Input: File{Path: path}, Output: File{Path: filepath.Join(dir, "out.jsonl")}, Work: work, InFlight: 64,
			Observe: func(p Progress) {
				if p.Done-looked > int64(*lineCount)/50 {
					looked = p.Done
					runtime.ReadMemStats(&m)
					most = max(most, m.HeapInuse)
				}
			}})
	if err != nil || s.Records != int64(*lineCount) {
		t.Fatal(s, err)
	}
	runtime.ReadMemStats(&m)
	most = max(most, m.HeapInuse)
	if t.Logf("%d lines, at most %.1f MiB of heap, %.1f MiB from the system", *lineCount, float64(most)/(1<<20),
		float64(m.Sys)/(1<<20)); most > 64<<20 {
		t.Errorf("%d bytes of heap for %d lines", most, *lineCount)
	}
}
