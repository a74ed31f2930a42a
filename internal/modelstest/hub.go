package modelstest

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"infill/internal/check"
	"infill/models"
)

// Hub is a server on loopback that behaves like the Hugging Face hub. It serves
// lists of files, small files directly and large files by a redirect to another
// host, with the headers, codes and checksums of the hub.
type Hub struct {
	URL     string
	Token   string                       // token that a private model needs
	First   string                       // commit of the branch main
	Second  string                       // a commit with other weights, which no branch has
	Commits map[string]map[string][]byte // files of each commit
	// Sizes has those of the sizes in the list of files that are not true.
	Sizes   map[string]int64
	Refs    map[string]string // commit of each branch
	Private bool              // whether the model needs Token
	Gated   bool              // whether the server refuses to send files

	server   *httptest.Server
	mu       sync.Mutex
	requests []Request
	answer   Answer // if not nil, asked first for an answer
	// sent has, by file name, the number of bytes sent in bodies.
	sent map[string]int64
}

// Request describes a request that the server got.
type Request struct {
	Host, Path, Bytes, Authorization string
}

// Answer answers a request, or returns false to let the server answer.
type Answer func(w http.ResponseWriter, r *http.Request) bool

// NewHub starts a server that has the model org/tiny, until the test ends.
func NewHub(t testing.TB) *Hub {
	first := strings.Repeat("1", 40)
	second := strings.Repeat("2", 40)
	s := &Hub{
		Token: "hf_letmein", First: first, Second: second, Refs: map[string]string{"main": first},
		Commits: map[string]map[string][]byte{first: hubFiles(t, 1), second: hubFiles(t, 2)}, sent: map[string]int64{},
	}
	s.server = httptest.NewServer(s)
	s.URL = s.server.URL
	t.Cleanup(s.Close)
	return s
}

// Close stops the server.
func (s *Hub) Close() {
	s.server.CloseClientConnections()
	s.server.Close()
}

// hubFiles makes the files of a model with 17 kB of weights.
func hubFiles(t testing.TB, seed uint64) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	check.OK(t, Write(dir, Tiny, Options{DType: "F16", Seed: seed}))
	files := map[string][]byte{
		"README.md": []byte("# a card\n"), ".gitattributes": []byte("*.safetensors filter=lfs\n"),
		"tf_model.h5": bytes.Repeat([]byte("h5"), 1000), "onnx/model.onnx": []byte("onnx"),
		"empty/added_tokens.json": nil,
	}
	for _, name := range []string{"config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors"} {
		files[name] = check.Must(os.ReadFile(filepath.Join(dir, name)))(t)
	}
	return files
}

// ServeHTTP answers a request as the hub does.
func (s *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	authorization := r.Header.Get("Authorization")
	s.requests = append(s.requests, Request{r.Host, r.URL.Path, r.Header.Get("Range"), authorization})
	answer := s.answer
	s.mu.Unlock()
	if answer != nil && answer(w, r) {
		return
	}
	list, isList := strings.CutPrefix(r.URL.EscapedPath(), "/api/models/org/tiny/revision/")
	file, isFile := strings.CutPrefix(r.URL.Path, "/org/tiny/resolve/")
	commit, name, _ := strings.Cut(file, "/")
	_, held := s.Commits[commit][name]
	switch {
	case strings.HasPrefix(r.URL.Path, "/blobs/"):
		s.serveBlob(w, r, math.MaxInt, nil)
	case s.Private && authorization != "Bearer "+s.Token:
		// Without the token, the hub does not say whether a private model exists.
		fail(w, http.StatusUnauthorized, "")
	case isList:
		s.serveList(w, list, r.URL.Query().Get("blobs") == "true")
	case !isFile:
		fail(w, http.StatusNotFound, "RepoNotFound")
	case s.Gated:
		fail(w, http.StatusForbidden, "GatedRepo")
	case !held:
		fail(w, http.StatusNotFound, "EntryNotFound")
	case large(name):
		// For a client, another name of the same machine is another host.
		http.Redirect(w, r, fmt.Sprintf("http://%s/blobs/%s/%s?Signature=secret",
			strings.Replace(r.Host, "127.0.0.1", "localhost", 1), commit, name), http.StatusFound)
	default:
		s.serveFile(w, r, commit+"/"+name, math.MaxInt, nil)
	}
}

// Hold replaces the files of a commit.
func (s *Hub) Hold(commit string, files map[string][]byte) {
	s.mu.Lock() // nothing else orders this before requests of other processes
	defer s.mu.Unlock()
	s.Commits[commit] = files
}

// Answer sets the function that is asked first for an answer; nil removes it.
func (s *Hub) Answer(answer Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// Seen returns the requests whose path ends with suffix, and keeps them.
func (s *Hub) Seen(suffix string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.requests),
		func(r Request) bool { return !strings.HasSuffix(r.Path, suffix) })
}

// Forget clears the list of requests and the counts of sent bytes.
func (s *Hub) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
	clear(s.sent)
}

// large reports whether the hub treats a file of this name as large, as it does weights.
func large(name string) bool {
	return slices.Contains([]string{".safetensors", ".h5", ".onnx", ".bin"}, filepath.Ext(name))
}

func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("X-Error-Code", code)
	http.Error(w, `{"error":"`+code+`"}`, status)
}

func (s *Hub) serveList(w http.ResponseWriter, escaped string, blobs bool) {
	commit, _ := url.PathUnescape(escaped)
	at, ok := s.Refs[commit]
	if ok {
		commit = at
	}
	files, ok := s.Commits[commit]
	if !ok {
		fail(w, http.StatusNotFound, "RevisionNotFound")
		return
	}
	var siblings []map[string]any
	for name, content := range files {
		entry := map[string]any{"rfilename": name}
		if blobs {
			size := cmp.Or(s.Sizes[name], int64(len(content)))
			entry["size"] = size
			entry["blobId"] = fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content)))
			if large(name) {
				entry["blobId"] = strings.Repeat("a", 40) // as for the id of a pointer
				entry["lfs"] = map[string]any{"sha256": fmt.Sprintf("%x", sha256.Sum256(content)), "size": size,
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

// serveBlob serves a large file, as serveFile serves any file.
func (s *Hub) serveBlob(w http.ResponseWriter, r *http.Request, left int, then func()) {
	if r.URL.Query().Get("Signature") != "secret" {
		fail(w, http.StatusForbidden, "")
		return
	}
	s.serveFile(w, r, strings.TrimPrefix(r.URL.Path, "/blobs/"), left, then)
}

// serveFile serves COMMIT/NAME; after left bytes, then and a break.
func (s *Hub) serveFile(w http.ResponseWriter, r *http.Request, path string, left int, then func()) {
	commit, name, _ := strings.Cut(path, "/")
	http.ServeContent(&body{w, s, name, left, then}, r, "", time.Time{}, bytes.NewReader(s.Commits[commit][name]))
}

// body is a response body that counts the bytes of a file, and ends after left bytes.
type body struct {
	http.ResponseWriter
	hub  *Hub
	name string
	left int
	then func()
}

// Write counts bytes before it sends them, so that the count is never below
// what the client has received.
func (b *body) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.hub.mu.Lock()
	b.hub.sent[b.name] += int64(n)
	b.hub.mu.Unlock()
	b.left -= n
	written, err := b.ResponseWriter.Write(p[:n])
	if n == len(p) {
		return written, err
	}
	b.ResponseWriter.(http.Flusher).Flush()
	b.then()
	panic(http.ErrAbortHandler)
}

// SentOf returns the number of bytes of the named file sent since the last Forget.
func (s *Hub) SentOf(name string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[name]
}

// Cut returns an Answer that breaks the connection after n bytes of weights.
func (s *Hub) Cut(n int) Answer { return s.stop(n, func(*http.Request) {}) }

// Hang returns an Answer that is silent after n bytes, until the client leaves.
func (s *Hub) Hang(n int) Answer { return s.stop(n, func(r *http.Request) { <-r.Context().Done() }) }

func (s *Hub) stop(n int, then func(*http.Request)) Answer {
	return func(w http.ResponseWriter, r *http.Request) bool {
		blob := strings.HasPrefix(r.URL.Path, "/blobs/")
		if blob {
			s.serveBlob(w, r, n, func() { then(r) })
		}
		return blob
	}
}

// Options returns options with which a client soon gives up.
func (s *Hub) Options() models.PullOptions {
	return models.PullOptions{Endpoint: s.URL, Attempts: 3, WaitMin: time.Millisecond, Stall: 10 * time.Second}
}
