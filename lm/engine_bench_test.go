//go:build unix

package lm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"testing"

	"infill/models"
)

// processorSeconds is what the process has used: on a machine that others use too, a steadier measure than the clock.
func processorSeconds(b *testing.B) float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

// BenchmarkInFlight is one-blank texts a second over the lengths of real sentences, by how many are in flight.
func BenchmarkInFlight(b *testing.B) {
	bundle := builtIn(b)
	if dir := os.Getenv("INFILL_MODEL"); dir != "" {
		var err error
		if bundle, err = models.Open(dir); err != nil {
			b.Fatal(err)
		}
	}
	m := engineModel(b, bundle, Options{Device: "cpu"})
	rng := rand.New(rand.NewPCG(1, 2))
	texts := make([]*batch, 512)
	for i := range texts {
		c := &batch{}
		// About as long as the sentences of stories: 14 tokens on average, 4 at least.
		tokens := 4 + int(5*(rng.ExpFloat64()+rng.ExpFloat64()))
		c.reset(tokens, 1, 0, true)
		for range tokens {
			c.ids = append(c.ids, int64(1000+rng.IntN(20000)))
		}
		c.queries, c.targets = []int64{int64(rng.IntN(tokens))}, []int64{0}
		texts[i] = c
	}
	for _, workers := range []int{1, 2} {
		for _, flight := range []int{1, 4, 16, 64, 256} {
			b.Run(fmt.Sprintf("workers=%d/flight=%d", workers, flight), func(b *testing.B) {
				m.engine.workers = workers
				calls, rows, before := m.engine.calls.Load(), m.engine.rows.Load(), processorSeconds(b)
				for b.Loop() {
					var wait sync.WaitGroup
					next := make(chan *batch)
					for range flight {
						wait.Go(func() {
							for c := range next {
								mine := *c
								mine.vocabulary, mine.target, mine.candidate = nil, nil, nil
								if err := m.run(b.Context(), &mine); err != nil {
									b.Error(err)
								}
							}
						})
					}
					for _, c := range texts {
						next <- c
					}
					close(next)
					wait.Wait()
				}
				b.ReportMetric(float64(len(texts)*b.N)/b.Elapsed().Seconds(), "texts/s")
				b.ReportMetric((processorSeconds(b)-before)*1000/float64(len(texts)*b.N), "cpu-ms/text")
				b.ReportMetric(float64(m.engine.rows.Load()-rows)/float64(m.engine.calls.Load()-calls), "rows/call")
			})
		}
	}
}
