package serve_test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"infill/infill/serve"
)

var load = flag.Duration("load", 0, "how long each number of clients asks in TestLoad: 1m writes the table of docs/serve.md")

// asked is what clients saw.
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

// Nobody's request fails under load; with -load it prints the table of docs/serve.md.
func TestLoad(t *testing.T) {
	length, sizes := *load, []int{1, 16, 64, 256}
	if length == 0 {
		length, sizes = 300*time.Millisecond, []int{1, 16}
	}
	o := options(t)
	o.Limits.Wait = time.Minute
	s, err := serve.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	defer server.Close()
	clients(t, server.URL, 2, length/10)
	table := "| clients | answers a second | half took less than | 99 % took less than | rows a call |\n| --- | --- | --- | --- | --- |\n"
	for _, n := range sizes {
		calls, rows := o.Models[name].Calls()
		a := clients(t, server.URL, n, length)
		calls2, rows2 := o.Models[name].Calls()
		if a.failed.Load() > 0 || len(a.refused) > 0 || len(a.took) == 0 {
			t.Errorf("%d clients: %d answers, %d refused, %d failed", n, len(a.took), len(a.refused), a.failed.Load())
		}
		table += fmt.Sprintf("| %d | %.0f | %.1f ms | %.1f ms | %.1f |\n", n, float64(len(a.took))/length.Seconds(),
			quantile(a.took, .5).Seconds()*1e3, quantile(a.took, .99).Seconds()*1e3, float64(rows2-rows)/float64(max(1, calls2-calls)))
	}
	t.Logf("%s of each\n%s", length, table)
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
	t.Logf("%d answers, %d refused, half of them within %v, 99 %% within %v; resident memory %d → %d MiB", len(a.took), len(a.refused),
		quantile(a.refused, .5), quantile(a.refused, .99), before>>20, resident()>>20)
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
