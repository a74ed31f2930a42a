package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"infill/internal/serve"
)

var (
	hostileFor  = flag.Duration("hostile", 2*time.Second, "how long TestHostileClients lets clients come")
	hostileSeed = flag.Uint64("hostile-seed", 0, "the seed of TestHostileClients; 0: of the clock")
)

// Clients that ask for as much as they may, send at a crawl, break off,
// or leave before their answer keep neither memory nor places: the heap
// stays within what requests may hold, and who asks afterwards is
// answered. No goroutine and no descriptor is left. The forty that once
// took 20 GB are among them.
func TestHostileClients(t *testing.T) {
	seed := *hostileSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	o := options(t)
	o.Limits.Memory, o.Limits.Time, o.Limits.Wait = 1<<30, 10*time.Second, time.Second
	o.Log = func(message string) { t.Errorf("the server failed: %s", message) }
	s, err := serve.New(o)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := s.HTTPServer()
	go server.Serve(listener) //nolint:errcheck // it ends with Close
	defer server.Close()
	address := listener.Addr().String()

	goroutines, files := runtime.NumGoroutine(), descriptors()
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	ctx, cancel := context.WithTimeout(t.Context(), *hostileFor)
	defer cancel()
	var clients sync.WaitGroup
	for i := range 40 {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		clients.Go(func() {
			for ctx.Err() == nil {
				hostileClient(ctx, address, random)
			}
		})
	}
	most := uint64(0)
	for ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
		runtime.ReadMemStats(&now)
		most = max(most, now.HeapAlloc)
	}
	clients.Wait()
	// The collector lets the heap grow to twice what is held.
	if grown := int64(most) - int64(before.HeapAlloc); grown > 2*o.Limits.Memory {
		t.Errorf("the heap grew by %d MB, and requests may hold %d", grown>>20, o.Limits.Memory>>20)
	} else {
		t.Logf("the heap grew by %d MB", grown>>20)
	}
	url := "http://" + address
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		answer, err := http.Get(url + "/health")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if string(text) == "{\"at_work\":0,\"waiting\":0}\n" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("requests whose clients have left are still at work")
		}
	}
	if code, text := ask(t, url+"/v1/fill", `{"template": "he had [MASK] me"}`); code != 200 {
		t.Errorf("afterwards: %d %s", code, text)
	}
	http.DefaultClient.CloseIdleConnections()
	for end := time.Now().Add(5 * time.Second); (runtime.NumGoroutine() > goroutines+8 || descriptors() > files+8) &&
		time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	if now, open := runtime.NumGoroutine(), descriptors(); now > goroutines+8 || open > files+8 {
		t.Errorf("goroutines %d before and %d after, descriptors %d and %d", goroutines, now, files, open)
	}
}

// descriptors are those that the process has open, 0 where that is not told.
func descriptors() int {
	names, _ := os.ReadDir("/proc/self/fd")
	return len(names)
}

// hostileClient is one connection.
func hostileClient(ctx context.Context, address string, random *rand.Rand) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	path, body := "/v1/fill", largeRequest(random)
	accept := []string{"application/json", "text/event-stream"}[random.IntN(2)]
	if random.IntN(4) == 0 {
		var broken []byte
		path, broken = malformed(random)
		body = string(broken)
	}
	length := len(body)
	if random.IntN(8) == 0 {
		length = []int{0, length / 2, length + 10, 1 << 40}[random.IntN(4)]
	}
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: "+
		"%s\r\nContent-Length: %d\r\n\r\n", path, accept, length)
	switch whole := head + body; random.IntN(5) {
	case 0: // a crawl, for a while
		for i := range min(len(whole), 20) {
			if _, err := c.Write([]byte{whole[i]}); err != nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		return
	case 1: // a part
		fmt.Fprint(c, whole[:random.IntN(len(whole))])
		return
	default:
		fmt.Fprint(c, whole)
	}
	wait := time.Duration(random.IntN(1500)) * time.Millisecond
	c.SetReadDeadline(time.Now().Add(wait)) //nolint:errcheck // a connection of our own
	if random.IntN(2) == 0 {
		io.Copy(io.Discard, bufio.NewReader(c)) //nolint:errcheck // it leaves
		return
	}
	select { // without reading
	case <-ctx.Done():
	case <-time.After(wait):
	}
}

// largeRequest asks for about as much as a server gives.
func largeRequest(random *rand.Rand) string {
	request := map[string]any{"template": "he [MASK] had [MASK] me [MASK] the [MASK] of [MASK] .", "budget": 20000}
	top := []int{5, 1000, 2000}[random.IntN(3)]
	switch random.IntN(5) {
	case 0:
		request["top"] = 2000
	case 1:
		request["top"], request["order"] = top, "l2r"
	case 2:
		request["template"], request["top"] = "he [MASK:1-3] had [MASK:1-2] me .", top
	case 3:
		request["samples"], request["budget"] = 1000, "10s"
	case 4:
		request["sampler"], request["samples"], request["steps"], request["candidates"] = "dmala", 40, 90, 2000
		delete(request, "budget")
	}
	text, _ := json.Marshal(request)
	return string(text)
}
