package models_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"infill/internal/check"
	"infill/internal/hub"
	"infill/internal/modelstest"
	"infill/models"
)

// What a modelstest.Hub has in First, Second and Token.
var firstCommit, secondCommit = strings.Repeat("1", 40), strings.Repeat("2", 40)

const hubToken = "hf_letmein"

func newStore(t testing.TB) *models.Store {
	return &models.Store{Dir: filepath.Join(t.TempDir(), "models")}
}

// pull expects success.
func pull(t testing.TB, store *models.Store, name string, o models.PullOptions) *models.Bundle {
	t.Helper()
	b := check.Must(store.Pull(t.Context(), name, o))(t)
	return b
}

// refused expects an error of one line with all parts.
func refused(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error; want one that says %q", parts)
		return
	}
	if strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "pull ") {
		t.Errorf("error %q is not one line that begins with what was asked for", err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
	for _, secret := range []string{"Signature", hubToken} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("error %q gives away %q", err, secret)
		}
	}
}

func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	entries := check.Must(os.ReadDir(dir))(t)
	found := map[string]string{}
	for _, e := range entries {
		content := check.Must(os.ReadFile(filepath.Join(dir, e.Name())))(t)
		found[e.Name()] = string(content)
	}
	return found
}

// observed gives the hub's options with an observer of the pull.
func observed(s *modelstest.Hub) (models.PullOptions, *observer) {
	o, seen := s.Options(), &observer{}
	o.Progress = seen
	return o, seen
}

// blobs has the requests for weights, behind the hub's redirect, answered by answer.
func blobs(answer func(w http.ResponseWriter, r *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		return strings.HasPrefix(r.URL.Path, "/blobs/") && answer(w, r)
	}
}

// once answers the first request alone.
func once(answer func(w http.ResponseWriter, r *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	var later atomic.Bool
	return func(w http.ResponseWriter, r *http.Request) bool { return !later.Swap(true) && answer(w, r) }
}

// says answers with a status, headers and a body.
func says(status int, body string, headers ...string) func(*modelstest.Hub) {
	return func(s *modelstest.Hub) {
		s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
			return true
		})
	}
}

func TestPull(t *testing.T) {
	s := modelstest.NewHub(t)
	s.Commits[firstCommit]["pytorch_model.bin"] = []byte("not to be fetched beside safetensors")
	store := newStore(t)
	o, seen := observed(s)
	o.Token = hubToken
	b := pull(t, store, "org/tiny", o)
	want := map[string]string{}
	for _, name := range []string{"config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors",
		"README.md"} {
		want[name] = string(s.Commits[firstCommit][name])
	}
	found := files(t, b.Dir)
	delete(found, "manifest.json")
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("stored files (-want +found):\n%s", diff)
	}
	if b.Dir != filepath.Join(store.Dir, "org--tiny", firstCommit) {
		t.Errorf("stored in %s", b.Dir)
	}
	m := *b.Manifest
	m.Files = nil
	if diff := cmp.Diff(
		models.Manifest{Schema: 1, Name: "org/tiny", Family: "bert", Licence: "apache-2.0", Source: s.URL + "/org/tiny",
			Revision: firstCommit, Ref: "main"}, m); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	if err := b.Manifest.Verify(b.Dir); err != nil {
		t.Error(err)
	}
	for _, r := range s.Seen("") {
		stranger := strings.HasPrefix(r.Host, "localhost")
		if stranger != (r.Authorization == "") {
			t.Errorf("%s on %s carried %q", r.Path, r.Host, r.Authorization)
		}
	}
	if len(s.Seen("/model.safetensors")) != 2 { // the hub's redirect and the content
		t.Errorf("requests for the weights: %v", s.Seen("/model.safetensors"))
	}
	if seen.Begun != 1 || seen.Done != seen.Total || seen.Total == 0 || seen.Have != 0 || len(seen.Waits) != 0 ||
		seen.File != "model.safetensors" {
		t.Errorf("progress %+v", seen)
	}

	opened := check.Must(store.Open("org/tiny"))(t)
	if opened.SHA256 != b.SHA256 || opened.Name != "org/tiny" || opened.Config.VocabularySize != 64 {
		t.Errorf("opened %+v", opened)
	}

	t.Run("again", func(t *testing.T) {
		s.Forget()
		pull(t, store, "org/tiny", o)
		if r := s.Seen(""); len(r) != 1 {
			t.Errorf("%d requests, want the one for the list of files: %v", len(r), r)
		}
	})
	t.Run("again by commit", func(t *testing.T) {
		s.Forget()
		if again := pull(t, store, "org/tiny@"+firstCommit, o); again.Name != "org/tiny" || again.Dir != b.Dir {
			t.Errorf("pulled %s in %s", again.Name, again.Dir)
		}
		if r := s.Seen(""); len(r) != 0 {
			t.Errorf("requests for a commit that is stored: %v", r)
		}
	})
	t.Run("damaged", func(t *testing.T) {
		check.OK(t, os.Truncate(filepath.Join(b.Dir, "model.safetensors"), 100))
		_, err := store.Open("org/tiny")
		check.Says(t, err, "model.safetensors: damaged: expected",
			"infill models pull org/tiny@"+firstCommit+" fetches what is damaged")
		s.Forget()
		mended := pull(t, store, "org/tiny", o)
		if err := mended.Manifest.Verify(mended.Dir); err != nil {
			t.Error(err)
		}
		if len(s.Seen("/vocab.txt")) != 0 || len(s.Seen("/model.safetensors")) != 2 {
			t.Errorf("want the weights fetched alone: %v", s.Seen(""))
		}
	})
}

// The weights of a large model are in several files.
func TestPullShards(t *testing.T) {
	s := modelstest.NewHub(t)
	s.Commits[firstCommit] = maps.Clone(s.Commits[firstCommit])
	dir := shards(t)
	for name, content := range files(t, dir) {
		s.Commits[firstCommit][name] = []byte(content)
	}
	delete(s.Commits[firstCommit], "model.safetensors")
	o, seen := observed(s)
	store := newStore(t)
	b := pull(t, store, "org/tiny", o)
	if want := check.Must(models.Open(dir))(t); b.SHA256 != want.SHA256 || b.Manifest.Verify(b.Dir) != nil {
		t.Errorf("pulled %s, want %s", b.SHA256, want.SHA256)
	}
	if seen.Begun != 1 || seen.Done != seen.Total || seen.Total == 0 || seen.File != "model.safetensors" {
		t.Errorf("progress %+v", seen)
	}
	check.OK(t, os.Truncate(filepath.Join(b.Dir, "model-00002-of-00002.safetensors"), 100))
	s.Forget()
	pull(t, store, "org/tiny", o)
	if s.SentOf("model-00002-of-00002.safetensors") == 0 || s.SentOf("model-00001-of-00002.safetensors") != 0 {
		t.Errorf("want the damaged file fetched alone: %v", s.Seen(""))
	}
}

// One revision is kept: the last that was fetched.
func TestPullRevisions(t *testing.T) {
	s := modelstest.NewHub(t)
	s.Refs["refs/pr/1"] = secondCommit
	store := newStore(t)
	first := pull(t, store, "org/tiny", s.Options())
	opens := func(want *models.Bundle, names ...string) {
		t.Helper()
		for _, name := range append(names, "org/tiny") {
			if b, err := store.Open(name); err != nil || b.SHA256 != want.SHA256 {
				t.Errorf("%s opens %+v, %v", name, b, err)
			}
		}
	}
	opens(first, "org/tiny@main", "org/tiny@1111", "org/tiny@"+firstCommit)
	half := filepath.Join(store.Dir, "org--tiny", ".partial-"+strings.Repeat("3", 40))
	check.OK(t, os.Mkdir(half, 0o755))
	second := pull(t, store, "org/tiny@refs/pr/1", s.Options())
	if _, err := os.Stat(half); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an unfinished download of another commit is still there: %v", err)
	}
	if first.SHA256 == second.SHA256 {
		t.Fatal("two revisions are one bundle")
	}
	opens(second, "org/tiny@refs/pr/1", "org/tiny@22222222")
	for _, name := range []string{"org/tiny@main", "org/tiny@" + firstCommit, "org/tiny@222"} {
		_, err := store.Open(name)
		check.Says(t, err, name, "not in the cache (stored: "+secondCommit+" = refs/pr/1)")
	}
	// The branch moves on.
	s.Refs["main"] = secondCommit
	s.Forget()
	pull(t, store, "org/tiny", s.Options())
	opens(second, "org/tiny@main")
	if r := s.Seen(""); len(r) != 1 {
		t.Errorf("a stored commit was fetched again: %v", r)
	}
}

// resume pulls from a hub that prepare has changed, and expects progress to end
// where it should.
func resume(t *testing.T, prepare func(s *modelstest.Hub, store *models.Store)) (*modelstest.Hub, *observer) {
	t.Helper()
	s, store := modelstest.NewHub(t), newStore(t)
	prepare(s, store)
	o, seen := observed(s)
	o.Stall = 500 * time.Millisecond
	if b := pull(t, store, "org/tiny", o); b.Manifest.Verify(b.Dir) != nil || seen.Done != seen.Total {
		t.Errorf("progress %+v", seen)
	}
	return s, seen
}

func size(s *modelstest.Hub) int64 { return int64(len(s.Commits[firstCommit]["model.safetensors"])) }

func TestPullResumes(t *testing.T) {
	s, seen := resume(t, func(s *modelstest.Hub, _ *models.Store) { s.Answer(s.Cut(6000)) })
	var ranges []string
	for _, r := range s.Seen("/model.safetensors") {
		if strings.HasPrefix(r.Path, "/blobs/") {
			ranges = append(ranges, r.Bytes)
		}
	}
	if want := []string{"", "bytes=6000-", "bytes=12000-"}; !slices.Equal(ranges, want) {
		t.Errorf("ranges %q, want %q", ranges, want)
	}
	if s.SentOf("model.safetensors") != size(s) {
		t.Errorf("%d bytes were sent of a file of %d", s.SentOf("model.safetensors"), size(s))
	}
	if len(seen.Waits) != 2 || !strings.Contains(seen.Waits[0], "unexpected EOF") {
		t.Errorf("waits %q", seen.Waits)
	}
	_, seen = resume(t, func(s *modelstest.Hub, _ *models.Store) { s.Answer(blobs(once(s.Hang(4000)))) })
	if len(seen.Waits) != 1 || seen.Waits[0] != "the connection went silent, or is too slow" {
		t.Errorf("waits %q", seen.Waits)
	}
	resume(t, func(s *modelstest.Hub, _ *models.Store) {
		cut := once(s.Cut(5000))
		s.Answer(blobs(func(w http.ResponseWriter, r *http.Request) bool {
			r.Header.Del("Range") // the server knows none
			return cut(w, r)
		}))
	})
	s, seen = resume(t, func(s *modelstest.Hub, store *models.Store) {
		cut := once(s.Cut(5000))
		s.Answer(blobs(func(w http.ResponseWriter, r *http.Request) bool {
			if !cut(w, r) {
				panic(http.ErrAbortHandler) // nothing more comes
			}
			return true
		}))
		_, err := store.Pull(t.Context(), "org/tiny", s.Options())
		refused(t, err, "cannot reach ", "check the connection")
		if _, err := store.Open("org/tiny"); !errors.Is(err, models.ErrNotStored) {
			t.Errorf("half a model opens: %v", err)
		}
		s.Answer(nil)
		s.Forget()
	})
	if s.SentOf("model.safetensors") != size(s)-5000 || s.SentOf("vocab.txt") != 0 || seen.Have < 5000 {
		t.Errorf("sent again: %d, want the weights from byte 5000 on", s.SentOf("model.safetensors"))
	}
	kept := int64(0)
	s, _ = resume(t, func(s *modelstest.Hub, store *models.Store) {
		ctx, cancel := context.WithCancel(t.Context())
		s.Answer(s.Hang(4000))
		o := s.Options()
		o.Progress = &canceller{cancel: cancel}
		_, err := store.Pull(ctx, "org/tiny", o)
		refused(t, err, "pull org/tiny: context canceled; what was fetched is kept")
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v is not that of the context", err)
		}
		s.Answer(nil)
		s.Forget()
		part := read(t, filepath.Join(store.Dir, "org--tiny", ".partial-"+firstCommit), "model.safetensors.part")
		if kept = int64(len(part)); kept == 0 {
			t.Error("nothing was kept")
		}
	})
	if s.SentOf("model.safetensors") != size(s)-kept {
		t.Errorf("%d bytes were sent, want those after %d", s.SentOf("model.safetensors"), kept)
	}
	// What lies on the disk from an earlier attempt need not be right.
	for _, part := range []func(content []byte) []byte{
		func([]byte) []byte { return bytes.Repeat([]byte("x"), 5000) },
		func(c []byte) []byte { return bytes.Repeat([]byte("x"), len(c)) },
		func(c []byte) []byte { return append(slices.Clone(c), 'x') },
		func(c []byte) []byte { return c },
	} {
		resume(t, func(s *modelstest.Hub, store *models.Store) {
			dir := filepath.Join(store.Dir, "org--tiny", ".partial-"+firstCommit)
			check.OK(t, os.MkdirAll(dir, 0o755))
			write(t, dir, "model.safetensors.part", part(s.Commits[firstCommit]["model.safetensors"]))
		})
	}
}

// A server that ignores ranges and breaks at the same place each time brings
// nothing new, with a length or without.
func TestPullWithoutProgress(t *testing.T) {
	for _, length := range []bool{true, false} {
		s := modelstest.NewHub(t)
		s.Answer(blobs(func(w http.ResponseWriter, r *http.Request) bool {
			r.Header.Del("Range")
			if length {
				return s.Cut(5000)(w, r)
			}
			w.(http.Flusher).Flush()
			w.Write(s.Commits[firstCommit]["model.safetensors"][:5000])
			return true
		}))
		_, err := newStore(t).Pull(t.Context(), "org/tiny", s.Options())
		refused(t, err, "model.safetensors: the connection broke 3 times and brought too little, after "+
			"5000 of ", "pull again")
	}
}

// A server that sends a byte for each connection, or one now and then, ends the
// pull.
func TestPullFromASlowServer(t *testing.T) {
	for name, send := range map[string]func(w http.ResponseWriter, r *http.Request){
		"a byte for each connection": func(http.ResponseWriter, *http.Request) {},
		"a byte now and then": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				time.Sleep(20 * time.Millisecond)
				w.Write([]byte("x"))
				w.(http.Flusher).Flush()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits
			s := modelstest.NewHub(t)
			s.Answer(blobs(func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Content-Length", fmt.Sprint(1000))
				if r.Header.Get("Range") != "" {
					w.WriteHeader(http.StatusPartialContent)
				}
				w.Write([]byte("x"))
				w.(http.Flusher).Flush()
				send(w, r)
				panic(http.ErrAbortHandler)
			}))
			o := s.Options()
			o.Stall = 200 * time.Millisecond
			o.WaitMin = 20 * time.Millisecond
			_, err := newStore(t).Pull(t.Context(), "org/tiny", o)
			refused(t, err, "model.safetensors: the connection broke 3 times and brought too little, after ")
		})
	}
}

// A list of files that stalls or drips is asked for again, and given up
// after a few attempts.
func TestPullListStalls(t *testing.T) {
	silent := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	drips := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			w.Write([]byte(" "))
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	}
	for _, c := range []struct {
		name, reason string
		times        int32
		body         func(http.ResponseWriter, *http.Request)
	}{
		{"silent once", "", 1, silent},
		{"drips once", "", 1, drips},
		{"silent for ever", "the connection went silent, or is too slow", 3, silent},
		{"drips for ever", "the connection went silent, or is too slow", 3, drips},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // it waits
			s := modelstest.NewHub(t)
			var asked atomic.Int32
			s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasPrefix(r.URL.Path, "/api/") || asked.Add(1) > c.times {
					return false
				}
				w.Write([]byte("{"))
				w.(http.Flusher).Flush()
				c.body(w, r)
				return true
			})
			o := s.Options()
			o.Stall = 200 * time.Millisecond
			_, err := newStore(t).Pull(t.Context(), "org/tiny", o)
			if c.reason == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			refused(t, err, "the list of files did not come whole in 3 attempts", "HF_ENDPOINT")
			if asked.Load() != c.times {
				t.Errorf("%d attempts, want %d", asked.Load(), c.times)
			}
		})
	}
}

// The rest of an answer that is thrown away, a redirect's, may stall as well.
func TestPullRedirectStalls(t *testing.T) {
	s := modelstest.NewHub(t)
	s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/config.json") {
			return false
		}
		w.Header().Set("Location", s.URL+"/elsewhere")
		w.WriteHeader(http.StatusFound)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	})
	o := s.Options()
	o.Stall = 100 * time.Millisecond
	_, err := newStore(t).Pull(t.Context(), "org/tiny", o)
	refused(t, err, "config.json: cannot reach ", "the connection went silent, or is too slow")
}

// canceller stops a pull when the first bytes of the weights are there.
type canceller struct {
	observer
	cancel context.CancelFunc
}

func (c *canceller) Advance(n int64) {
	c.observer.Advance(n)
	c.cancel()
}

func TestPullTellsWhatTheHubSays(t *testing.T) {
	for want, change := range map[string]func(*modelstest.Hub){
		"(403): set HF_TOKEN to a token that may read this model":              says(403, ""),
		"limits requests (429): try again in 1h0m0s":                           says(429, "", "Retry-After", "3600"),
		"limits requests (429): try again later":                               says(429, ""),
		"out of order (502 Bad Gateway), after 3 attempts":                     says(502, ""),
		"unexpected answer of the hub: 418":                                    says(418, ""),
		"does not answer like a hub: the list of files: invalid character '<'": says(200, "<html>sign in</html>"),
		`"../../x" is not a commit; check HF_ENDPOINT`:                         says(200, `{"sha":"../../x"}`),
		"refused a redirect: more than 10 in a row":                            says(302, "", "Location", "/again"),
		`refused a redirect to an address that begins with "file:": files come over https or http alone`: says(302, "",
			"Location", "file:///etc/passwd"),
		"the list of files: json: cannot unmarshal number": says(200, `{"siblings": [{"rfilename": 5}]}`),
		"cannot unmarshal number 10000000": says(200,
			`{"siblings": [{"size": 1`+strings.Repeat("0", 5000)+`}]}`),
		"config.json: the hub lists no checksum, so what it sends could not be verified; set HF_ENDPOINT": func(
			s *modelstest.Hub) {
			s.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
				r.URL.RawQuery = "" // which asks for checksums
				return false
			})
		},
	} {
		s := modelstest.NewHub(t)
		change(s)
		store := newStore(t)
		_, err := store.Pull(t.Context(), "org/tiny", s.Options())
		refused(t, err, want)
		if len(err.Error()) > 500 {
			t.Errorf("error %q is too long", err)
		}
		if found, err := store.List(); err != nil || len(found) != 1 {
			t.Errorf("the store lists %v, %v; want the built-in model alone", found, err)
		}
	}
	_, err := newStore(t).Pull(t.Context(), "small-uncased", models.PullOptions{})
	refused(t, err, "part of the program")
	for _, status := range []int{429, 500, 503} {
		t.Run(fmt.Sprintf("%d once", status), func(t *testing.T) {
			t.Parallel() // it waits a second
			s := modelstest.NewHub(t)
			failed := map[string]bool{}
			var mu sync.Mutex
			s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
				mu.Lock()
				defer mu.Unlock()
				if failed[r.URL.Path] {
					return false
				}
				failed[r.URL.Path] = true
				if strings.HasSuffix(r.URL.Path, "main") {
					w.Header().Set("Retry-After", "1")
				}
				http.Error(w, "wait", status)
				return true
			})
			o, seen := observed(s)
			pull(t, newStore(t), "org/tiny", o)
			if len(seen.Waits) < 6 || !strings.Contains(seen.Waits[0], fmt.Sprint(status)) {
				t.Errorf("waits %q", seen.Waits)
			}
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		s := modelstest.NewHub(t)
		s.Close()
		_, err := newStore(t).Pull(t.Context(), "org/tiny", s.Options())
		refused(t, err, "cannot reach 127.0.0.1:", "connection refused", "or set HF_ENDPOINT to a mirror")
	})
	t.Run("password of a mirror", func(t *testing.T) {
		s := modelstest.NewHub(t)
		o := s.Options()
		o.Endpoint = strings.Replace(s.URL, "http://", "http://user:"+hubToken+"@", 1)
		_, err := newStore(t).Pull(t.Context(), "org/other", o)
		refused(t, err, "has no such model")
		if b := pull(t, newStore(t), "org/tiny", o); strings.Contains(string(b.Manifest.Encode()), hubToken) {
			t.Error("the manifest gives the password away")
		}
	})
	for _, endpoint := range []string{"huggingface.co", "ftp://x", "https://", "http://\x00"} {
		o := models.PullOptions{Endpoint: endpoint}
		if _, err := newStore(t).Pull(t.Context(), "org/tiny", o); err == nil ||
			!strings.Contains(err.Error(), "is not the address of a hub") {
			t.Errorf("endpoint %q: error %v", endpoint, err)
		}
	}
}

func TestPullVerifies(t *testing.T) {
	for _, name := range []string{"model.safetensors", "vocab.txt", "config.json"} {
		t.Run(name, func(t *testing.T) {
			s := modelstest.NewHub(t)
			store := newStore(t)
			good := s.Commits[firstCommit][name]
			bad := slices.Clone(good)
			bad[len(bad)/2] ^= 1
			s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, name) ||
					(filepath.Ext(name) == ".safetensors" && !strings.HasPrefix(r.URL.Path, "/blobs/")) {
					return false
				}
				w.Write(bad)
				return true
			})
			_, err := store.Pull(t.Context(), "org/tiny", s.Options())
			refused(t, err, name+": wrong content: expected ", ", found ")
			if _, err := store.Open("org/tiny"); !errors.Is(err, models.ErrNotStored) {
				t.Errorf("it opens: %v", err)
			}
			// What was wrong is gone, so the next pull is a clean one.
			s.Answer(nil)
			pull(t, store, "org/tiny", s.Options())
		})
	}
	t.Run("other length", func(t *testing.T) {
		s := modelstest.NewHub(t)
		s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "vocab.txt") {
				return false
			}
			fmt.Fprint(w, "short")
			return true
		})
		_, err := newStore(t).Pull(t.Context(), "org/tiny", s.Options())
		refused(t, err, "vocab.txt: the connection broke 3 times and brought too little, after 5 of ")
	})
	t.Run("another part than asked for", func(t *testing.T) {
		s := modelstest.NewHub(t)
		cut := once(s.Cut(5000))
		s.Answer(blobs(func(w http.ResponseWriter, r *http.Request) bool {
			if cut(w, r) {
				return true
			}
			r.Header.Set("Range", "bytes=4000-")
			return false
		}))
		_, err := newStore(t).Pull(t.Context(), "org/tiny", s.Options())
		refused(t, err, "model.safetensors: wrong content: it is longer than ")
	})
}

func TestPullRefusesRepositories(t *testing.T) {
	reconfigure := func(key string, value any) func(map[string][]byte) {
		return func(files map[string][]byte) {
			var config map[string]any
			check.OK(t, json.Unmarshal(files["config.json"], &config))
			config[key] = value
			files["config.json"], _ = json.Marshal(config)
		}
	}
	without := func(names ...string) func(map[string][]byte) {
		return func(f map[string][]byte) {
			maps.DeleteFunc(f, func(n string, _ []byte) bool { return slices.Contains(names, n) })
		}
	}
	for _, c := range []struct {
		name   string
		change func(files map[string][]byte)
		want   string
		weigh  bool // the weights have to be fetched to see it
	}{
		{"no config", without("config.json"), "not a model: it has no config.json", false},
		{"another family", reconfigure("model_type", "llama"), `config.json: model_type "llama" is not supported`,
			false},
		{"other weights only", without("model.safetensors"),
			"it has neither model.safetensors nor pytorch_model.bin (nor model.safetensors.index.json, with the " +
				"files that it names); a revision", false},
		{"index of no weights", func(f map[string][]byte) {
			delete(f, "model.safetensors")
			f["model.safetensors.index.json"] = []byte("{}")
		}, "model.safetensors.index.json: not an index of tensors: weight_map is missing or empty", false},
		{"index of a file elsewhere", func(f map[string][]byte) {
			delete(f, "model.safetensors")
			f["model.safetensors.index.json"] = []byte(`{"weight_map": {"x": "x.safetensors"}}`)
		}, "the repository has no x.safetensors, which is a part of the weights", false},
		{"no tokenizer", without("vocab.txt"), "for others, save it with transformers", false},
		{"config and weights disagree", reconfigure("vocab_size", 65),
			"has shape [64 16], config.json asks for [65 16]", true},
		{"weights are no safetensors", func(f map[string][]byte) {
			f["model.safetensors"] = []byte("PK\x03\x04 a zip archive")
		}, "not a safetensors file", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := modelstest.NewHub(t)
			c.change(s.Commits[firstCommit])
			store := newStore(t)
			_, err := store.Pull(t.Context(), "org/tiny", s.Options())
			refused(t, err, c.want)
			if weighed := len(s.Seen("model.safetensors")) > 0; weighed != c.weigh {
				t.Errorf("weights fetched: %t, want %t", weighed, c.weigh)
			}
			if _, err := store.Open("org/tiny"); !errors.Is(err, models.ErrNotStored) {
				t.Errorf("it opens: %v", err)
			}
			if left := check.Must(os.ReadDir(store.Dir))(t); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}

func TestPullOffline(t *testing.T) {
	s := modelstest.NewHub(t)
	store := newStore(t)
	o := s.Options()
	o.Offline = true
	_, err := store.Pull(t.Context(), "org/tiny", o)
	refused(t, err, "model org/tiny: not in the cache, and the network may not be used (offline)")
	if !errors.Is(err, models.ErrOffline) || len(s.Seen("")) != 0 {
		t.Errorf("error %v, requests %v", err, s.Seen(""))
	}
	b := pull(t, store, "org/tiny", s.Options())
	s.Forget()
	if again := pull(t, store, "org/tiny", o); again.SHA256 != b.SHA256 || len(s.Seen("")) != 0 {
		t.Errorf("offline gives %s with requests %v", again.SHA256, s.Seen(""))
	}
	_, err = store.Pull(t.Context(), "org/tiny@v2", o)
	refused(t, err, `revision "v2": not in the cache`, "offline")
	check.OK(t, os.WriteFile(filepath.Join(b.Dir, "vocab.txt"), nil, 0o644))
	_, err = store.Pull(t.Context(), "org/tiny", o)
	refused(t, err, "vocab.txt: damaged", "offline")
}

func TestPullAtOnce(t *testing.T) {
	s := modelstest.NewHub(t)
	store := newStore(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := store.Pull(context.Background(), "org/tiny", s.Options()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if sent := s.SentOf("model.safetensors"); sent != size(s) {
		t.Errorf("%d bytes of weights were sent, want them once, %d", sent, size(s))
	}
}

func TestPullWithoutRoom(t *testing.T) {
	t.Run("store under a file", func(t *testing.T) {
		s := modelstest.NewHub(t)
		dir := t.TempDir()
		check.OK(t, os.WriteFile(filepath.Join(dir, "cache"), nil, 0o644))
		_, err := (&models.Store{Dir: filepath.Join(dir, "cache", "models")}).Pull(t.Context(), "org/tiny", s.Options())
		refused(t, err, "not a directory", "or set INFILL_CACHE to a folder that can be written")
	})
	t.Run("more than the disk has free", func(t *testing.T) {
		s := modelstest.NewHub(t)
		s.Sizes = map[string]int64{"model.safetensors": 9e18}
		store := newStore(t)
		_, err := store.Pull(t.Context(), "org/tiny", s.Options())
		refused(t, err, "the files take 9000000000000000000 bytes, and the disk has ", " free; make room in "+store.Dir)
		if sent := s.SentOf("model.safetensors"); sent != 0 {
			t.Errorf("%d bytes were sent", sent)
		}
	})
	t.Run("full", func(t *testing.T) {
		s := modelstest.NewHub(t)
		store := newStore(t)
		err := modelstest.InLittleRoom(t, 8192, store.Dir, func(dir string) error {
			_, err := (&models.Store{Dir: dir}).Pull(t.Context(), "org/tiny", s.Options())
			return err
		})
		refused(t, err, "model.safetensors: write ", "file too large", "make room in "+store.Dir)
		// With room again, the pull goes on.
		s.Forget()
		pull(t, store, "org/tiny", s.Options())
		if sent := s.SentOf("model.safetensors"); sent != size(s)-8192 {
			t.Errorf("%d bytes were sent, want those after 8192", sent)
		}
	})
}

// A token that has expired keeps nobody from a public model, and the pull says
// where it comes from.
func TestPullWithAStaleToken(t *testing.T) {
	for _, private := range []bool{false, true} {
		s := modelstest.NewHub(t)
		s.Private = private
		s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			stale := r.Header.Get("Authorization") == "Bearer hf_old"
			if stale {
				w.WriteHeader(http.StatusUnauthorized)
			}
			return stale
		})
		o, seen := observed(s)
		o.Token = "hf_old"
		o.TokenFrom = "/home/me/token"
		_, err := newStore(t).Pull(t.Context(), "org/tiny", o)
		if private {
			refused(t, err, "does not accept the token (401): check /home/me/token, and the name of the model")
		} else if err != nil {
			t.Error(err)
		}
		if len(seen.Waits) != 1 ||
			!strings.Contains(seen.Waits[0], "does not accept the token in /home/me/token and is asked without one") {
			t.Errorf("waits %q", seen.Waits)
		}
	}
}

// A token that no request can carry is an error before any request.
func TestPullWithAnUnfitToken(t *testing.T) {
	for _, token := range []string{"hf_a\x00b", "hf_a\nb", "hf a", "hf_\x1b[0m", "hf_ä", "hf_a\x7f"} {
		s := modelstest.NewHub(t)
		o, seen := observed(s)
		o.Token = token
		o.TokenFrom = "/home/me/token"
		_, err := newStore(t).Pull(t.Context(), "org/tiny", o)
		refused(t, err, "the token in /home/me/token has a space, a control character or a letter outside ASCII")
		if len(s.Seen("")) > 0 || len(seen.Waits) > 0 {
			t.Errorf("%q: requests %v, waits %q", token, s.Seen(""), seen.Waits)
		}
	}
}

// The hub redirects from a short name, and from the old name of a model. The
// model can then be opened by the name that was asked for.
func TestPullByShortName(t *testing.T) {
	s := modelstest.NewHub(t)
	s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		rest, short := strings.CutPrefix(r.URL.Path, "/api/models/tiny/")
		if short {
			http.Redirect(w, r, "/api/models/org/tiny/"+rest+"?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
		}
		return short
	})
	store := newStore(t)
	b := pull(t, store, "tiny", s.Options())
	opened := check.Must(store.Open("tiny"))(t)
	if b.Name != "tiny" || b.Manifest.Source != s.URL+"/org/tiny" || opened.SHA256 != b.SHA256 {
		t.Errorf("pulled %s from %s", b.Name, b.Manifest.Source)
	}
}

// What the hub's own clients have fetched is copied, and only if its content is
// that of the hub.
func TestPullTakesTheClientsFiles(t *testing.T) {
	for _, c := range []struct {
		name, folder string
		spoil        bool
		sent         bool
	}{
		{"the full name", "models--org--tiny", false, false},
		{"another model", "models--org--other", false, true},
		{"other content", "models--org--tiny", true, true},
	} {
		s := modelstest.NewHub(t)
		cache := t.TempDir()
		folder := filepath.Join(cache, c.folder)
		snapshot := filepath.Join(folder, "snapshots", firstCommit)
		check.OK(t, os.MkdirAll(filepath.Join(folder, "blobs"), 0o755))
		check.OK(t, os.MkdirAll(snapshot, 0o755))
		for name, content := range s.Commits[firstCommit] {
			content = bytes.Clone(content)
			if c.spoil && len(content) > 0 {
				content[len(content)/2] ^= 1
			}
			blob := filepath.Join(folder, "blobs", strings.ReplaceAll(name, "/", "-"))
			check.OK(t, os.WriteFile(blob, content, 0o644))
			if !strings.Contains(name, "/") {
				check.OK(t, os.Symlink(blob, filepath.Join(snapshot, name)))
			}
		}
		o, seen := observed(s)
		o.Cache = cache
		b := pull(t, newStore(t), "org/tiny", o)
		want := int64(0)
		if c.sent {
			want = size(s)
		}
		if s.SentOf("model.safetensors") != want || seen.Done != seen.Total {
			t.Errorf("%s: %d bytes of weights were sent, want %d; progress %+v", c.name, s.SentOf("model.safetensors"),
				want, seen)
		}
		if got := files(t, b.Dir)["model.safetensors"]; got != string(s.Commits[firstCommit]["model.safetensors"]) {
			t.Errorf("%s: other weights are stored", c.name)
		}
	}
}

// observer records a pull.
type observer struct {
	Begun       int
	Have, Total int64
	Done        int64
	File        string
	Waits       []string
}

func (o *observer) Begin(file string, have, total int64) {
	o.Begun++
	o.File, o.Have, o.Total, o.Done = file, have, total, have
}
func (o *observer) Advance(n int64)                       { o.Done += n }
func (o *observer) Waiting(reason error, _ time.Duration) { o.Waits = append(o.Waits, reason.Error()) }

var _ hub.Progress = (*observer)(nil)
