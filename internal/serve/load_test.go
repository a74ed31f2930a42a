package serve_test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

var load = flag.Duration("load", 0,
	"how long each number of clients asks in TestLoad: 1m writes the table of docs/measured/serving.md")

// clients ask over and over, each when it has its answer. It returns how long
// each answer took, in order.
func clients(t *testing.T, url string, n int, length time.Duration) (took []time.Duration) {
	t.Helper()
	end, times := time.Now().Add(length), make([][]time.Duration, n)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}
	defer client.CloseIdleConnections()
	var group errgroup.Group
	words := strings.Fields("river letter answer garden window morning story road house table")
	for c := range n {
		group.Go(func() error {
			for i := c; time.Now().Before(end); i++ {
				body := fmt.Sprintf(`{"inputs": "the %s was [MASK] by the %s ."}`, words[i%10], words[i/10%10])
				start := time.Now()
				answer, err := client.Post(url+"/", "application/json", strings.NewReader(body))
				if err != nil {
					return err
				}
				io.Copy(io.Discard, answer.Body) //nolint:errcheck // what counts is that it ends
				answer.Body.Close()
				if times[c] = append(times[c], time.Since(start)); answer.StatusCode != http.StatusOK {
					return fmt.Errorf("status %d", answer.StatusCode)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Errorf("%d clients: %v", n, err)
	}
	took = slices.Concat(times...)
	slices.Sort(took)
	return took
}

// Nobody's request fails under load; with -load it prints the table of
// docs/measured/serving.md.
func TestLoad(t *testing.T) {
	length, sizes := *load, []int{1, 16, 64, 256}
	if length == 0 {
		length, sizes = 300*time.Millisecond, []int{1, 16}
	}
	o := options(t)
	o.Limits.Wait = time.Minute
	url := started(t, o)
	clients(t, url, 2, length/10)
	table := "| clients | answers a second | half took less than | 99 % took less than | rows a call |\n" +
		"| --- | --- | --- | --- | --- |\n"
	for _, n := range sizes {
		calls, rows := o.Models[name].Calls()
		took := clients(t, url, n, length)
		calls2, rows2 := o.Models[name].Calls()
		if len(took) == 0 {
			t.Fatal("no answer")
		}
		table += fmt.Sprintf("| %d | %.0f | %.1f ms | %.1f ms | %.1f |\n", n, float64(len(took))/length.Seconds(),
			took[len(took)/2].Seconds()*1e3, took[len(took)*99/100].Seconds()*1e3,
			float64(rows2-rows)/float64(max(1, calls2-calls)))
	}
	t.Logf("for docs/measured/serving.md, %s of each on %d processors:\n\n%s", length, runtime.GOMAXPROCS(0), table)
}
