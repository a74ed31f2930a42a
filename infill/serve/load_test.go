package serve_test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"infill/infill/serve"
	"infill/lm"
	"infill/models"
)

var load = flag.Duration("load", 0,
	"how long each number of clients asks in TestLoad: 1m writes the table of docs/measured/serving.md")

// asked holds the times and failures that clients saw.
type asked struct {
	took    []time.Duration // of answers
	refused []time.Duration
	failed  atomic.Int64
}

// clients ask over and over, each when it has its answer.
func clients(t *testing.T, url string, n int, length time.Duration) *asked {
	t.Helper()
	a, end := &asked{}, time.Now().Add(length)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}
	defer client.CloseIdleConnections()
	var lock sync.Mutex
	var group sync.WaitGroup
	words := strings.Fields("river letter answer garden window morning story road house table")
	for c := range n {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := c; time.Now().Before(end); i++ {
				body := fmt.Sprintf(`{"inputs": "the %s was [MASK] by the %s ."}`, words[i%10], words[i/10%10])
				start := time.Now()
				answer, err := client.Post(url+"/", "application/json", strings.NewReader(body))
				if err != nil {
					a.failed.Add(1)
					continue
				}
				io.Copy(io.Discard, answer.Body) //nolint:errcheck // what counts is that it ends
				answer.Body.Close()
				took := time.Since(start)
				lock.Lock()
				switch answer.StatusCode {
				case http.StatusOK:
					a.took = append(a.took, took)
				case http.StatusTooManyRequests:
					a.refused = append(a.refused, took)
				default:
					a.failed.Add(1)
				}
				lock.Unlock()
			}
		}()
	}
	group.Wait()
	return a
}

func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[int(q*float64(len(d)-1))]
}

// Nobody's request fails under load; with -load it prints the table of docs/measured/serving.md.
func TestLoad(t *testing.T) {
	length, sizes := *load, []int{1, 16, 64, 256}
	if length == 0 {
		length, sizes = 300*time.Millisecond, []int{1, 16}
	}
	o := options(t)
	o.Limits.Wait = time.Minute
	url := started(t, o)
	clients(t, url, 2, length/10)
	table := "| clients | answers a second | half took less than | 99 % took less than | rows a call | processor " +
		"time an answer |\n| --- | --- | --- | --- | --- | --- |\n"
	rate := map[int]float64{}
	for _, n := range sizes {
		calls, rows := o.Models[name].Calls()
		before := processorTime(t)
		a := clients(t, url, n, length)
		spent := processorTime(t) - before
		calls2, rows2 := o.Models[name].Calls()
		if a.failed.Load() > 0 || len(a.refused) > 0 || len(a.took) == 0 {
			t.Errorf("%d clients: %d answers, %d refused, %d failed", n, len(a.took), len(a.refused), a.failed.Load())
		}
		rate[n] = float64(len(a.took)) / length.Seconds()
		table += fmt.Sprintf("| %d | %.0f | %.1f ms | %.1f ms | %.1f | %.2f ms |\n", n, rate[n],
			milliseconds(quantile(a.took, .5)), milliseconds(quantile(a.took, .99)),
			float64(rows2-rows)/float64(max(1, calls2-calls)), milliseconds(spent)/float64(max(1, len(a.took))))
	}
	t.Logf("for docs/measured/serving.md, %s of each on %d processors:\n\n%s\n%s", length, runtime.GOMAXPROCS(0), table,
		bound(t, min(length, 10*time.Second), rate))
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }

// bound tells the rate of the model alone, at one row a call and at 64, at the length of the texts that clients send:
// serving can be no faster.
func bound(t *testing.T, length time.Duration, rate map[int]float64) string {
	bundle, err := models.Open("")
	if err != nil {
		t.Fatal(err)
	}
	tokenizer := options(t).Models[name].Tokenizer()
	m, err := lm.Open(t.Context(), bundle, lm.Options{Device: "cpu", MaskID: tokenizer.MaskID()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	text, err := tokenizer.Encode("the river was told by the letter .")
	if err != nil {
		t.Fatal(err)
	}
	alone := func(rows int) (perSecond, processor float64) {
		queries := slices.Repeat([]lm.Query{{Position: 4}}, rows)
		done, start, before := 0, time.Now(), processorTime(t)
		for ; time.Since(start) < length || done == 0; done += rows {
			if _, err := m.Score(t.Context(), text.IDs, queries); err != nil {
				t.Fatal(err)
			}
		}
		took, spent := time.Since(start), processorTime(t)-before
		return float64(done) / took.Seconds(), milliseconds(spent) / float64(done)
	}
	alone(1) // the session is made
	one, oneTime := alone(1)
	many, manyTime := alone(64)
	told := fmt.Sprintf("The model alone, without server and clients, runs %.0f such rows a second one a call and "+
		"%.0f of them 64 a call (%.1f and %.1f ms of processor time a row): %.1f times as many.",
		one, many, oneTime, manyTime, many/one)
	if rate[64] > 0 {
		told += fmt.Sprintf("\n64 clients get %.1f times the answers of one.", rate[64]/rate[1])
	}
	return told
}

// With more clients than places, those turned away hear it at once, and memory stays.
func TestOverload(t *testing.T) {
	length := max(*load/4, 400*time.Millisecond)
	url := start(t, func(o *serve.Options) { o.Limits.Requests, o.Limits.Queue, o.Limits.Wait = 4, 4, time.Second })
	clients(t, url, 8, length/2)
	before := resident()
	a := clients(t, url, 32, length)
	if a.failed.Load() > 0 || len(a.took) == 0 || len(a.refused) == 0 {
		t.Errorf("%d answers, %d refused, %d failed", len(a.took), len(a.refused), a.failed.Load())
	}
	t.Logf("for docs/measured/serving.md:\n\nWith 32 clients for 4 places and 4 that wait, %d requests were answered "+
		"and %d turned away, half of those within %.1f ms and 99 %% within %.1f ms; "+
		"the memory went from %d to %d MiB.", len(a.took), len(a.refused), milliseconds(quantile(a.refused, .5)),
		milliseconds(quantile(a.refused, .99)), before>>20, resident()>>20)
}

// resident is this process's memory in bytes, 0 where it is not told.
func resident() int64 {
	var size, pages int64
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	runtime.GC()
	fmt.Sscan(string(text), &size, &pages) //nolint:errcheck // 0 is what is then told
	return pages * int64(os.Getpagesize())
}
