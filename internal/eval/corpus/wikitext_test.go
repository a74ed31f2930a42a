package corpus

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"infill/models/hub"
)

// serve puts archives of the authors' form on loopback, which break off after so many bytes once. The server may know
// no ranges, and send the whole each time.
func serve(t *testing.T, variant string, breakAt int, whole bool, files map[string]string) (asked *int) {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range files {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	asked = new(int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if *asked++; *asked == 1 && breakAt > 0 {
			w.Header().Set("Content-Length", fmt.Sprint(b.Len()))
			_, _ = w.Write(b.Bytes()[:breakAt])
			return
		}
		if whole {
			r.Header.Del("Range")
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b.Bytes()))
	}))
	t.Cleanup(server.Close)
	old := wikiArchives[variant]
	t.Cleanup(func() { wikiArchives[variant] = old })
	wikiArchives[variant] = wikiArchive{server.URL + "/" + variant + ".zip",
		fmt.Sprintf("%x", sha256.Sum256(b.Bytes()))}
	return asked
}

func TestPullWikiText(t *testing.T) {
	const want = " \n = Kettles = \n \n The kettle is an old <unk> . It sings in every kitchen .\n The harbour froze " +
		"in the winter of that year .\n"
	options := hub.Options{Attempts: 2, WaitMin: time.Millisecond}
	asked := serve(t, "tokens", 50, false, map[string]string{"wikitext-103/wiki.train.tokens": want})
	serve(t, "raw", 50, true, map[string]string{"wikitext-103-raw/wiki.train.raw": "raw\n"})
	dir := t.TempDir()
	path, err := PullWikiText(t.Context(), dir, "train", "tokens", options)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil || string(content) != want || filepath.Base(path) != "wiki.train.tokens" || *asked != 2 {
		t.Errorf("%s holds %q, %v, after %d requests", path, content, err, *asked)
	}
	// It is what the reader of corpora knows.
	c, err := Read("wt103", path, nil)
	if err != nil || c.Form != WikiText || len(c.Sentences) != 3 {
		t.Errorf("%+v, %v", c, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if _, err := PullWikiText(t.Context(), dir, "train", "tokens", options); err != nil || *asked != 2 {
		t.Errorf("a split that is there was asked for again: %v", err)
	}
	raw, err := PullWikiText(t.Context(), dir, "train", "raw", options)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(raw); err != nil || string(content) != "raw\n" {
		t.Errorf("%q, %v", content, err)
	}

	wikiArchives["raw"] = wikiArchive{wikiArchives["raw"].address, "00"}
	offline := options
	offline.Offline = true
	for name, test := range map[string]struct {
		split, variant string
		options        hub.Options
		want           string
	}{
		"another file":    {"test", "raw", options, "wrong content: expected SHA-256 00, found "},
		"no such file":    {"validation", "tokens", options, "it has no wiki.valid.tokens"},
		"offline":         {"validation", "tokens", offline, "the network may not be used"},
		"unknown split":   {"dev", "tokens", options, `split "dev" is not one of validation, test, train`},
		"unknown variant": {"test", "words", options, `variant "words" is not one of tokens, raw`},
	} {
		to := t.TempDir()
		if _, err := PullWikiText(t.Context(), to, test.split, test.variant, test.options); err == nil ||
			!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one that holds %q", name, err, test.want)
		}
		if left, _ := filepath.Glob(filepath.Join(to, "wiki.*")); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}
