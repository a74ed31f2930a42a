package models_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"infill/internal/modelstest"
)

var (
	hostileFor  = flag.Duration("hostile", time.Second, "how long TestHostileHub makes hubs")
	hostileSeed = flag.Uint64("hostile-seed", 0,
		"the seed of the one hub that TestHostileHub makes; 0: of the clock, many")
)

// misbehaviour answers a request wrongly; content is what a right answer has,
// nil where that is unknown.
type misbehaviour struct {
	name   string
	answer func(w http.ResponseWriter, r *http.Request, content []byte, random *rand.Rand)
}

var misbehaviours = []misbehaviour{
	{"headers and silence", func(w http.ResponseWriter, r *http.Request, content []byte, _ *rand.Rand) {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)+1))
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}},
	{"a byte at a time", func(w http.ResponseWriter, r *http.Request, content []byte, _ *rand.Rand) {
		for _, b := range content {
			if _, err := w.Write([]byte{b}); err != nil || r.Context().Err() != nil {
				return
			}
			w.(http.Flusher).Flush()
			time.Sleep(2 * time.Millisecond)
		}
	}},
	{"reset at a tenth", func(w http.ResponseWriter, _ *http.Request, content []byte, random *rand.Rand) {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		w.Write(content[:len(content)*random.IntN(10)/10])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}},
	{"too short, without a length", func(w http.ResponseWriter, _ *http.Request, content []byte, random *rand.Rand) {
		w.(http.Flusher).Flush()
		w.Write(content[:len(content)*random.IntN(10)/10])
	}},
	{"too long", func(w http.ResponseWriter, _ *http.Request, content []byte, random *rand.Rand) {
		w.Write(append(content[:len(content):len(content)], make([]byte, 1+random.IntN(100000))...))
	}},
	{"no ranges", func(w http.ResponseWriter, _ *http.Request, content []byte, _ *rand.Rand) { w.Write(content) }},
	{"another range", func(w http.ResponseWriter, _ *http.Request, content []byte, random *rand.Rand) {
		from := random.IntN(len(content) + 1)
		w.Header().Set("Content-Range",
			fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)*(1+random.IntN(2))))
		w.WriteHeader(http.StatusPartialContent)
		w.Write(content[from:])
	}},
	{"a redirect", func(w http.ResponseWriter, r *http.Request, _ []byte, random *rand.Rand) {
		to := []string{r.URL.String(), "file:///etc/passwd", "//", "http://127.0.0.1:1/", "gopher://x", "../../..",
			"http://[::1", "\x7f"}
		w.Header().Set("Location", to[random.IntN(len(to))])
		w.WriteHeader([]int{301, 302, 303, 307, 308}[random.IntN(5)])
	}},
	{"another status", func(w http.ResponseWriter, _ *http.Request, _ []byte, random *rand.Rand) {
		w.Header().Set("Retry-After", []string{"0", "-1", "999999999999", "x"}[random.IntN(4)])
		w.WriteHeader([]int{204, 304, 401, 403, 404, 416, 418, 429, 500, 503, 599}[random.IntN(11)])
	}},
	{"names that lead out", func(w http.ResponseWriter, _ *http.Request, content []byte, random *rand.Rand) {
		names := []string{"../escaped", "/tmp/escaped", `..\\escaped`, "a/../../escaped", "", ".", "config.json/x",
			"CON", "\\u0000", "config.json"}
		name := names[random.IntN(len(names))]
		w.Write([]byte(strings.Replace(string(content), "vocab.txt", name, 1)))
	}},
	{"bytes that differ", func(w http.ResponseWriter, _ *http.Request, content []byte, random *rand.Rand) {
		other := []byte(string(content))
		for range 1 + random.IntN(4) {
			if len(other) > 0 {
				other[random.IntN(len(other))] = byte(random.IntN(256))
			}
		}
		w.Write(other)
	}},
}

// Whatever a hub does, a pull ends in time: with the model, or with one
// line and nothing placed outside of the store; and from an honest hub it
// then has every byte.
func TestHostileHub(t *testing.T) {
	if *hostileSeed > 0 {
		hostileHub(t, *hostileSeed)
		return
	}
	for i := range 4 { // pulls mostly wait
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			for end := time.Now().Add(*hostileFor); time.Now().Before(end); {
				seed := uint64(time.Now().UnixNano())
				if !t.Run(fmt.Sprint(seed), func(t *testing.T) { hostileHub(t, seed) }) {
					return
				}
			}
		})
	}
}

func hostileHub(t *testing.T, seed uint64) {
	whole := rand.New(rand.NewPCG(seed, 34))
	s := modelstest.NewHub(t)
	right := s.Commits[firstCommit]
	share := whole.Float64()
	var lock sync.Mutex
	var done []string
	faked := false // the list of files, which has the checksums
	s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		lock.Lock()
		random := rand.New(rand.NewPCG(whole.Uint64(), 34))
		lock.Unlock()
		if random.Float64() > share {
			return false
		}
		list := true
		content := []byte(
			fmt.Sprintf(`{"sha": %q, "siblings": [{"rfilename": "config.json"}, {"rfilename": "vocab.txt"}, {"rfilename": "model.safetensors"}]}`, firstCommit))
		for name, file := range right {
			if strings.HasSuffix(r.URL.Path, "/"+name) ||
				strings.HasPrefix(r.URL.Path, "/blobs/") && name == "model.safetensors" {
				content, list = file, false
			}
		}
		m := misbehaviours[random.IntN(len(misbehaviours))]
		lock.Lock()
		done, faked = append(done, r.URL.Path+": "+m.name), faked || list
		lock.Unlock()
		m.answer(w, r, content, random)
		return true
	})
	root := t.TempDir()
	store := newStore(t)
	store.Dir = filepath.Join(root, "deep", "store")
	o := s.Options()
	o.Attempts, o.Stall = 2, 50*time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	began := time.Now()
	_, err := store.Pull(ctx, "org/tiny", o)
	if took := time.Since(began); took > 30*time.Second { // a loaded machine is slow
		t.Errorf("it took %v: %q", took, done)
	}
	if err != nil && (strings.ContainsAny(err.Error(), "\n\r\x00\x1b") || len(err.Error()) > 2000) {
		t.Errorf("error %q after %q", err, done)
	}
	beside, readErr := os.ReadDir(root)
	under, _ := os.ReadDir(filepath.Join(root, "deep"))
	if readErr != nil || len(beside) > 1 || len(under) > 1 {
		t.Errorf("something lies beside the store after %q", done)
	}
	s.Answer(nil)
	lock.Lock()
	defer lock.Unlock()
	o.Stall = 10 * time.Second
	b := pull(t, store, "org/tiny", o)
	for _, name := range []string{"config.json", "vocab.txt", "model.safetensors"} {
		if found, err := os.ReadFile(filepath.Join(b.Dir, name)); err != nil ||
			!faked && string(found) != string(right[name]) {
			t.Errorf("%s differs after %q, %v", name, done, err)
		}
	}
}
