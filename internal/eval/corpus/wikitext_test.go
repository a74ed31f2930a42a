package corpus

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"infill/models"
)

const commit = "1111111111111111111111111111111111111111"

// serve is the hub with one data set, on loopback.
func serve(t *testing.T, files map[string][]byte) (models.HubOptions, *[]string) {
	t.Helper()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		if r.URL.Path == "/api/datasets/"+wikiDataset+"/revision/main" {
			var siblings []map[string]any
			for name, content := range files {
				siblings = append(siblings, map[string]any{"rfilename": name, "size": len(content), "blobId": commit,
					"lfs": map[string]any{"sha256": fmt.Sprintf("%x", sha256.Sum256(content)), "size": len(content)}})
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"sha": commit, "siblings": siblings})
			return
		}
		name, ok := strings.CutPrefix(r.URL.Path, "/datasets/"+wikiDataset+"/resolve/"+commit+"/")
		content, there := files[name]
		if !ok || !there {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}))
	t.Cleanup(server.Close)
	return models.HubOptions{Endpoint: server.URL, Attempts: 2, WaitMin: time.Millisecond, Stall: 10 * time.Second},
		&asked
}

func table(t *testing.T, texts ...string) []byte {
	t.Helper()
	rows := make([]row, len(texts))
	for i, text := range texts {
		rows[i] = row{text}
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPullWikiText(t *testing.T) {
	files := map[string][]byte{
		"wikitext-103-v1/train-00000-of-00002.parquet": table(t, "", " = Kettles = \n", "",
			" The kettle is an old <unk> . It sings in every kitchen .\n"),
		"wikitext-103-v1/train-00001-of-00002.parquet": table(t,
			" The harbour froze in the winter of that year .\n"),
		"wikitext-103-raw-v1/train-00000-of-00001.parquet": table(t, "raw\n"),
		"wikitext-103-v1/test-00000-of-00001.parquet":      []byte("PAR1 this is none PAR1"),
		"wikitext-103-raw-v1/test-00000-of-00001.parquet":  table(t),
		"wikitext-2-v1/validation-00000-of-00001.parquet":  table(t, "small\n"),
	}
	options, asked := serve(t, files)
	dir := t.TempDir()
	path, err := PullWikiText(t.Context(), dir, "train", "tokens", options)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	want := "\n = Kettles = \n\n The kettle is an old <unk> . It sings in every kitchen .\n The harbour froze in the " +
		"winter of that year .\n"
	if err != nil || string(content) != want || filepath.Base(path) != "wiki.train.tokens" {
		t.Errorf("%s holds %q, %v", path, content, err)
	}
	// It is what the reader of corpora knows.
	c, err := openFile("wt103", path)
	if err != nil || c.Form != WikiText || len(c.Sentences) != 3 {
		t.Errorf("%+v, %v", c, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	before := len(*asked)
	if _, err := PullWikiText(t.Context(), dir, "train", "tokens", options); err != nil || len(*asked) != before {
		t.Errorf("a split that is there was asked for again: %v, %v", (*asked)[before:], err)
	}
	raw, err := PullWikiText(t.Context(), dir, "train", "raw", options)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(raw); err != nil || string(content) != "raw\n" {
		t.Errorf("%q, %v", content, err)
	}

	offline := options
	offline.Offline = true
	for name, test := range map[string]struct {
		split, variant string
		options        models.HubOptions
		want           string
	}{
		"no parquet":      {"test", "tokens", options, "test-00000-of-00001.parquet: "},
		"no text":         {"test", "raw", options, "the files hold no text"},
		"no such file":    {"validation", "tokens", options, "no file like wikitext-103-v1/validation-*.parquet"},
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
