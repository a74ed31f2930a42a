package modelstest

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"infill/models/hub"
)

// Hub is a server on loopback that behaves like the Hugging Face hub: an interface for lists of files, small files
// served directly, large ones by a redirect to another host, with the headers, codes and checksums that the hub gives.
type Hub struct {
	*httptest.Server // of the interface and of small files
	cdn              *httptest.Server

	mu       sync.Mutex
	requests []request

	Token   string                       // opens the model when it is private
	First   string                       // the commit that the model's branch main is at
	Second  string                       // a commit that AddSecond adds
	Commits map[string]map[string][]byte // commit to files
	Refs    map[string]string            // branch to commit
	Private bool                         // asks for the token
	Gated   bool                         // refuses files until access is granted
	Bare    bool                         // tells neither sizes nor checksums in the list of files
	// intercept may answer in place of the server: it reports whether it did.
	intercept func(w http.ResponseWriter, r *http.Request) bool
	// sent counts the bytes of bodies by the name of the file.
	sent map[string]int64
}

// request is what the server was asked for.
type request struct {
	Method, Host, Path, Bytes, Authorization string
}

// NewHub starts a server that holds the model org/tiny. It stops with the test.
func NewHub(t testing.TB) *Hub {
	first := strings.Repeat("1", 40)
	s := &Hub{
		Token: "hf_letmein", First: first, Second: strings.Repeat("2", 40), sent: map[string]int64{},
		Commits: map[string]map[string][]byte{first: hubFiles(t, 1)}, Refs: map[string]string{"main": first},
	}
	s.cdn = httptest.NewServer(s.logged(s.serveContent))
	s.Server = httptest.NewServer(s.logged(s.serveHub))
	t.Cleanup(func() {
		s.Server.CloseClientConnections()
		s.cdn.CloseClientConnections()
		s.Server.Close()
		s.cdn.Close()
	})
	return s
}

// AddSecond adds the commit Second, with other weights.
func (s *Hub) AddSecond(t testing.TB) { s.Hold(s.Second, hubFiles(t, 2)) }

// hubFiles makes the files of a model. Its weights take 17 kB.
func hubFiles(t testing.TB, seed uint64) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	if err := Write(dir, Tiny, Options{DType: "F16", Seed: seed}); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{
		"README.md": []byte("# a card\n"), ".gitattributes": []byte("*.safetensors filter=lfs\n"),
		"tf_model.h5": bytes.Repeat([]byte("h5"), 1000), "onnx/model.onnx": []byte("onnx"),
		"empty/added_tokens.json": nil,
	}
	for _, name := range []string{"config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = content
	}
	return files
}

func (s *Hub) logged(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests,
			request{r.Method, r.Host, r.URL.Path, r.Header.Get("Range"), r.Header.Get("Authorization")})
		intercept := s.intercept
		s.mu.Unlock()
		if intercept == nil || !intercept(w, r) {
			next(w, r)
		}
	}
}

// Hold puts files in place of those of a commit.
func (s *Hub) Hold(commit string, files map[string][]byte) {
	s.mu.Lock() // requests of other processes are ordered by nothing else
	defer s.mu.Unlock()
	s.Commits[commit] = files
}

// Answer sets what may answer in place of the server.
func (s *Hub) Answer(intercept func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = intercept
}

// Seen gives the requests whose path ends with suffix, and forgets nothing.
func (s *Hub) Seen(suffix string) []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.requests),
		func(r request) bool { return !strings.HasSuffix(r.Path, suffix) })
}

func (s *Hub) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
	clear(s.sent)
}

// large reports whether the hub keeps a file of this name apart, as it does with weights.
func large(name string) bool {
	return slices.Contains([]string{".safetensors", ".h5", ".onnx", ".bin"}, filepath.Ext(name))
}

// blobID is the name of a git object with this content.
func blobID(content []byte) string {
	return fmt.Sprintf("%x", sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(content)), content...)))
}

func fail(w http.ResponseWriter, status int, code string) {
	if code != "" {
		w.Header().Set("X-Error-Code", code)
	}
	http.Error(w, `{"error":"`+code+`"}`, status)
}

// serveHub answers a request as the hub does.
func (s *Hub) serveHub(w http.ResponseWriter, r *http.Request) {
	if auth := r.Header.Get("Authorization"); s.Private && auth != "Bearer "+s.Token {
		// The hub does not tell a stranger whether a private model exists.
		fail(w, http.StatusUnauthorized, "")
		return
	}
	if rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/api/models/org/tiny/revision/"); ok {
		revision, _ := url.PathUnescape(rest)
		s.serveList(w, revision, r.URL.Query().Get("blobs") == "true")
		return
	}
	rest, ok := strings.CutPrefix(r.URL.Path, "/org/tiny/resolve/")
	if !ok {
		fail(w, http.StatusNotFound, "RepoNotFound")
		return
	}
	if s.Gated {
		fail(w, http.StatusForbidden, "GatedRepo")
		return
	}
	commit, name, _ := strings.Cut(rest, "/")
	content, ok := s.Commits[commit][name]
	if !ok {
		fail(w, http.StatusNotFound, "EntryNotFound")
		return
	}
	if !large(name) {
		s.serveBytes(w, r, name, content)
		return
	}
	// Another name of the same machine: to a client, another host.
	address, _ := url.Parse(s.cdn.URL)
	http.Redirect(w, r, fmt.Sprintf("http://localhost:%s/blobs/%s/%s?Signature=secret", address.Port(), commit, name),
		http.StatusFound)
}

func (s *Hub) serveList(w http.ResponseWriter, revision string, blobs bool) {
	commit, ok := s.Refs[revision]
	if !ok {
		commit = revision
	}
	files, ok := s.Commits[commit]
	if !ok {
		fail(w, http.StatusNotFound, "RevisionNotFound")
		return
	}
	var siblings []map[string]any
	for name, content := range files {
		entry := map[string]any{"rfilename": name}
		if blobs && !s.Bare {
			entry["size"], entry["blobId"] = len(content), blobID(content)
			if large(name) {
				entry["blobId"] = blobID([]byte("version https://git-lfs..."))
				entry["lfs"] = map[string]any{"sha256": fmt.Sprintf("%x", sha256.Sum256(content)), "size": len(content),
					"pointerSize": 130}
			}
		}
		siblings = append(siblings, entry)
	}
	json.NewEncoder(w).Encode(map[string]any{
		"id": "org/tiny", "sha": commit, "siblings": siblings, "tags": []string{"fill-mask", "license:mit"},
		"cardData": map[string]any{"license": "apache-2.0"}, "private": s.Private, "gated": s.Gated,
	})
}

func (s *Hub) serveContent(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("Signature") != "secret" {
		fail(w, http.StatusForbidden, "")
		return
	}
	commit, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/blobs/"), "/")
	s.serveBytes(w, r, name, s.Commits[commit][name])
}

func (s *Hub) serveBytes(w http.ResponseWriter, r *http.Request, name string, content []byte) {
	http.ServeContent(&counting{w, s, name}, r, "", time.Time{}, bytes.NewReader(content))
}

type counting struct {
	http.ResponseWriter
	s    *Hub
	name string
}

// Write counts first: by the time that the client has the bytes they are counted.
func (c *counting) Write(p []byte) (int, error) {
	c.s.count(c.name, len(p))
	return c.ResponseWriter.Write(p)
}

func (s *Hub) count(name string, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[name] += int64(bytes)
}

// SentOf is the number of bytes sent of a file since the last Forget.
func (s *Hub) SentOf(name string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[name]
}

// Cut serves the weights and breaks the connection after n bytes of each answer.
func (s *Hub) Cut(n int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/blobs/") {
			return false
		}
		answer := httptest.NewRecorder()
		s.serveContent(answer, r)
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		body := answer.Body.Bytes()
		if len(body) < n {
			w.Write(body)
			return true
		}
		s.count(path.Base(r.URL.Path), n-len(body))
		w.Write(body[:n])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// Hang sends n bytes of the weights and then nothing, until the client goes.
func (s *Hub) Hang(n int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/blobs/") {
			return false
		}
		content := s.Commits[s.First]["model.safetensors"]
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		w.Write(content[:n])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	}
}

// Options are those of a client in a hurry.
func (s *Hub) Options() hub.Options {
	return hub.Options{Endpoint: s.URL, Attempts: 3, WaitMin: time.Millisecond, Stall: 10 * time.Second}
}
