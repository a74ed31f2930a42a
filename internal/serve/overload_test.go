package serve_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var overload = flag.Duration("overload", 0,
	"how long each number of large requests asks in TestOverload: 1m writes the table of docs/measured/serving.md")

// large asks over and over for fills that need as many rows as the budget has.
// After a 429 it waits as long as Retry-After says.
func large(t *testing.T, client *http.Client, url string, budget int, end time.Time,
	count func(code int, unfinished bool)) {
	body := fmt.Sprintf(`{"template": "the [MASK] [MASK] [MASK] [MASK] .", "budget": %d}`, budget)
	for time.Now().Before(end) {
		answer, err := client.Post(url+"/v1/fill", "application/json", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			t.Error(err)
		}
		count(answer.StatusCode, strings.Contains(string(text), `"unfinished":true`))
		if answer.StatusCode == http.StatusTooManyRequests {
			wait, err := strconv.Atoi(answer.Header.Get("Retry-After"))
			if err != nil || wait < 1 {
				t.Errorf("Retry-After is %q", answer.Header.Get("Retry-After"))
			}
			time.Sleep(min(time.Duration(wait)*time.Second, time.Until(end)))
		}
	}
}

// TestOverload: beside any number of large requests, small ones are answered
// soon, and large ones one after another. With -overload it prints the table of
// docs/measured/serving.md.
func TestOverload(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: large requests take seconds")
	}
	length, budget, sizes := *overload, 4000, []int{1, 4, 70, 500}
	if length == 0 {
		// More than work at once, of more tokens than lm.MostLight; TestComeAgain has 70.
		length, budget, sizes = 2*time.Second, 200, []int{5}
	}
	table := "| large clients | large answers a minute | unfinished | refused (429) | small answers | " +
		"half took less than | 99 % took less than | the longest |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"
	for _, n := range sizes {
		url := start(t, nil)
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n + 1}}
		end := time.Now().Add(length)
		codes := map[int]int{}
		unfinished := 0
		var lock sync.Mutex
		var group sync.WaitGroup
		for range n {
			group.Go(func() {
				large(t, client, url, budget, end, func(code int, cut bool) {
					lock.Lock()
					defer lock.Unlock()
					if time.Now().After(end) {
						return
					}
					codes[code]++
					if cut {
						unfinished++
					}
				})
			})
		}
		var took []time.Duration
		for i := 0; time.Now().Before(end); i++ {
			began := time.Now()
			body := fmt.Sprintf(`{"template": "he had [MASK] %d of them"}`, i)
			answer, err := client.Post(url+"/v1/fill", "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, answer.Body) //nolint:errcheck // what counts is that it ends
			answer.Body.Close()
			took = append(took, time.Since(began))
			if answer.StatusCode != 200 {
				t.Errorf("beside %d large requests a small one gets %d", n, answer.StatusCode)
			}
			time.Sleep(100 * time.Millisecond)
		}
		group.Wait()
		client.CloseIdleConnections()
		slices.Sort(took)
		table += fmt.Sprintf("| %d | %.1f | %d | %d | %d | %.0f ms | %.0f ms | %.0f ms |\n", n,
			float64(codes[200])/length.Minutes(), unfinished, codes[429], len(took), took[len(took)/2].Seconds()*1e3,
			took[len(took)*99/100].Seconds()*1e3, took[len(took)-1].Seconds()*1e3)
		if half := took[len(took)/2]; *overload > 0 && half > time.Second {
			t.Errorf("beside %d large requests half of the small ones take more than %v", n, half)
		}
		for code := range codes {
			if code != 200 && code != 429 {
				t.Errorf("%d large requests: statuses %v", n, codes)
			}
		}
	}
	t.Logf("%s each:\n\n%s", length, table)
}

// TestPlacesForSmall: requests of many rows that work or wait take no place from
// small ones, and those beyond the queue are refused with a time.
func TestPlacesForSmall(t *testing.T) {
	release := make(chan struct{})
	f, slow := newFaulty(t, func() error { <-release; return nil })
	slow.failAt.Store(1)
	o := optionsOf(f)
	o.Limits.Requests, o.Limits.Queue = 2, 1
	o.Limits.Wait = 100 * time.Millisecond
	url := started(t, o)
	const chains = `{"template": "the [MASK] sat on the [MASK]", "sampler": "gibbs", "samples": 20, "steps": 200}`
	var group sync.WaitGroup
	codes := make(chan int, 6)
	group.Go(func() { // takes a turn, and its first call of the model does not end
		code, _ := ask(t, url+"/v1/fill", chains)
		codes <- code
	})
	for slow.calls.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	health, err := http.Get(url + "/health")
	if err != nil {
		t.Fatal(err)
	}
	defer health.Body.Close()
	said, err := io.ReadAll(health.Body)
	if err != nil || string(said) != "{\"at_work\":1,\"waiting\":0}\n" {
		t.Errorf("beside one large request: %s, error %v", said, err)
	}
	for range 5 {
		group.Go(func() {
			answer, text := post(t, url+"/v1/fill", chains, "Content-Type", "application/json")
			if answer.StatusCode == 429 && answer.Header.Get("Retry-After") == "" {
				t.Errorf("no Retry-After: %s", text)
			}
			codes <- answer.StatusCode
		})
	}
	// The fake model reads 32 tokens at once, so long texts need no long rows.
	for path, body := range map[string]string{"/v1/fill": `{"template": "the [MASK] sat"}`,
		"/v1/score": `{"texts": "` + strings.Repeat("cat ", 31) + `"}`,
		"/":         `{"inputs": "the [MASK]` + strings.Repeat(" cat", 1100) + `"}`} {
		code, text := ask(t, url+path, body)
		if code != 200 {
			t.Errorf("%s: a small request beside large ones: %d %s", path, code, text)
		}
	}
	context := `{"texts": ["` + strings.Repeat("cat ", 20) + `", "` + strings.Repeat("dog ", 20) + `"], "context": "` +
		strings.Repeat("rug ", 10) + `"}` // 40 rows of 32 tokens
	code, text := ask(t, url+"/v1/score", context)
	if code != 429 {
		t.Errorf("a large request beside large ones: %d %s", code, text)
	}
	close(release)
	group.Wait()
	close(codes)
	got := map[int]int{}
	for code := range codes {
		got[code]++
	}
	if got[200] == 0 || got[429] == 0 || got[200]+got[429] != 6 {
		t.Errorf("statuses of large requests %v: some are answered, others refused", got)
	}
}

// TestNoPlace: a small request waits while others have all places, and is
// refused if it waits too long. The next one finds a place again.
func TestNoPlace(t *testing.T) {
	release := make(chan struct{})
	f, slow := newFaulty(t, func() error { <-release; return nil })
	slow.failAt.Store(1)
	o := optionsOf(f)
	o.Limits.Requests, o.Limits.Queue = 1, 1
	o.Limits.Wait = 100 * time.Millisecond
	url := started(t, o)
	small := map[string]string{"/v1/fill": `{"template": "the [MASK] sat"}`, "/v1/score": `{"texts": "the cat sat"}`,
		"/v1/gaps": `{"text": "the [cat] sat"}`, "/v1/tokens": `{"text": "the cat"}`, "/": `{"inputs": "the [MASK] sat"}`}
	var group sync.WaitGroup
	group.Go(func() { // has the place until its call of the model ends
		code, text := ask(t, url+"/v1/fill", small["/v1/fill"])
		if code != 200 {
			t.Errorf("the first request: %d %s", code, text)
		}
	})
	for slow.calls.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	for path, body := range small {
		code, text := ask(t, url+path, body)
		if code != 429 || !strings.Contains(text, "the request waited 100ms for its turn: try again later") {
			t.Errorf("%s without a place: %d %s", path, code, text)
		}
	}
	if calls := slow.calls.Load(); calls != 1 {
		t.Errorf("%d calls of the model without a place", calls-1)
	}
	close(release)
	group.Wait()
	for path, body := range small {
		code, text := ask(t, url+path, body)
		if code != 200 {
			t.Errorf("%s with a place: %d %s", path, code, text)
		}
	}
}

// TestPlaceIsLeft: a request that needs more rows than its kind does as a rule
// leaves its place to small ones, and goes on when the large ones are done, however
// long that takes: a request that runs does not wait for its turn.
func TestPlaceIsLeft(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a model has to run")
	}
	o := options(t)
	o.Limits.Wait = 200 * time.Millisecond
	o.Limits.Time = 15 * time.Second // too little for the large request, also on an idle machine
	url := started(t, o)
	const flat = `{"template": "the [MASK] [MASK] .", "top": 50}` // 230 rows, where two blanks take 11 as a rule
	code, text := ask(t, url+"/v1/fill", flat)
	if code != 200 || o.Models[name].Rate() == 0 {
		t.Fatalf("%d %s, %g tokens a second", code, text, o.Models[name].Rate())
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan struct{})
	go func() { // all turns, as its rows take longer than there is time
		defer close(ended)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/fill", strings.NewReader(
			`{"template": "the [MASK] sat on the [MASK] of the [MASK]", "sampler": "dmala", "samples": 6, "steps": 1000}`))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			answer.Body.Close()
		}
	}()
	calls, _ := o.Models[name].Calls()
	for now := calls; now < calls+5; now, _ = o.Models[name].Calls() {
		time.Sleep(time.Millisecond)
	}
	type answered struct {
		code int
		text string
	}
	waits := make(chan answered)
	go func() {
		code, text := ask(t, url+"/v1/fill", flat)
		waits <- answered{code, text}
	}()
	time.Sleep(5 * o.Limits.Wait)
	code, text = ask(t, url+"/v1/fill", `{"template": "he had [MASK] me"}`)
	if code != 200 {
		t.Errorf("a small request beside a large one: %d %s", code, text)
	}
	cancel()
	<-ended
	if got := <-waits; got.code != 200 || strings.Contains(got.text, `"unfinished":true`) {
		t.Errorf("it runs, and so does not wait for its turn: %d %s", got.code, got.text)
	}
}
