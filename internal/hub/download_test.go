package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"infill/internal/check"
)

// A file of known or unknown size arrives whole, also over a connection that
// breaks.
func TestDownload(t *testing.T) {
	content := strings.Repeat("infill ", 100_000)
	sum := sha256.Sum256([]byte(content))
	digest := hex.EncodeToString(sum[:])
	breaks := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := 0
		if r.Header.Get("Range") != "" {
			_, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
			check.OK(t, err)
			w.WriteHeader(http.StatusPartialContent)
		}
		to := len(content)
		if breaks > 0 {
			breaks--
			to = (from + len(content)) / 2
		}
		_, _ = w.Write([]byte(content[from:to]))
		if to < len(content) {
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	o := Options{WaitMin: time.Millisecond}
	for _, f := range []Plain{
		{Size: int64(len(content)), SHA256: digest},
		{SHA256: digest},
		{},
	} {
		f.Address = server.URL + "/file"
		for _, breaks = range []int{0, 3} {
			path := filepath.Join(t.TempDir(), "file")
			check.OK(t, Download(t.Context(), f, path, o))
			got, err := os.ReadFile(path)
			if err != nil || string(got) != content {
				t.Errorf("%+v: %d bytes, %v", f, len(got), err)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "file")
	err := Download(t.Context(), Plain{Address: server.URL, SHA256: strings.Repeat("0", 64)}, path, o)
	check.Says(t, err, "expected SHA-256 0000", "found "+digest)
	err = Download(t.Context(), Plain{Address: "ftp://127.0.0.1/file"}, path, o)
	check.Says(t, err, "not an address that begins with https://")
	server.Close()
	o.Attempts = 2
	err = Download(t.Context(), Plain{Address: server.URL}, path, o)
	check.Says(t, err, "cannot reach 127.0.0.1", "connection refused")
}

// A list of files is read up to 16 MiB: a hub that never ends one takes no more
// memory. The bound itself is still read.
func TestListIsBounded(t *testing.T) {
	length := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		list := `{"sha":"` + strings.Repeat("1", 40) + `"}`
		_, _ = w.Write([]byte(list + strings.Repeat(" ", length-len(list))))
	}))
	defer server.Close()
	for _, c := range []struct {
		length int
		want   string
	}{{16 << 20, ""}, {16<<20 + 1, "the list of files is longer than 16777216 bytes"}} {
		length = c.length
		_, err := Open(t.Context(), "org/tiny", "main", Options{Endpoint: server.URL})
		if c.want == "" {
			check.OK(t, err)
		} else {
			check.Says(t, err, c.want)
		}
	}
}
