package library

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReleasePage(t *testing.T) {
	archive := []byte(strings.Repeat("the bytes of an archive ", 4000))
	digest := digestOf(archive)
	const asset = "onnxruntime-linux-x64-" + Version + ".tgz"
	mux := http.NewServeMux()
	serve := func(w http.ResponseWriter, _ *http.Request) { w.Write(archive) }
	mux.HandleFunc("/good/"+asset, serve)
	mux.HandleFunc("/storage", serve)
	mux.HandleFunc("/redirected/"+asset,
		func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/storage", http.StatusFound) })
	mux.HandleFunc("/loop/"+asset,
		func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) })
	mux.HandleFunc("/altered/"+asset,
		func(w http.ResponseWriter, _ *http.Request) { w.Write(append([]byte("x"), archive...)) })
	mux.HandleFunc("/forbidden/"+asset,
		func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) })
	mux.HandleFunc("/cut/"+asset, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(archive)))
		w.Write(archive[:1000])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("/huge/"+asset, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "99999999999")
		w.Write(archive)
	})
	mux.HandleFunc("/stalled/"+asset, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(archive)))
		w.Write(archive[:1000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	describe := func(path, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) })
	}
	describe("/tags/digest",
		`{"assets": [{"name": "other", "digest": "sha256:00"}, {"name": "`+asset+`", "digest": "sha256:`+
			strings.ToUpper(digest)+`"}]}`)
	describe("/tags/wrong", `{"assets": [{"name": "`+asset+`", "digest": "sha256:`+strings.Repeat("1", 64)+`"}]}`)
	describe("/tags/null", `{"assets": [{"name": "`+asset+`", "digest": null}]}`)
	describe("/tags/weak", `{"assets": [{"name": "`+asset+`", "digest": "md5:900150983cd24fb0d6963f7d28e17f72"}]}`)
	describe("/tags/elsewhere", `{"assets": []}`)
	describe("/tags/html", `<html>`)
	server := httptest.NewServer(mux)
	defer server.Close()

	for _, test := range []struct {
		name, assets, description string
		pinned                    string
		want                      []string // nil: it comes
	}{
		{"pinned", "good", "", digest, nil},
		{"redirected", "redirected", "", digest, nil},
		{"digest published", "good", "digest", "", nil},
		{"not found", "absent", "", digest, []string{"/absent/" + asset, "404"}},
		{"forbidden", "forbidden", "", digest, []string{"403"}},
		{"redirected for ever", "loop", "", digest, []string{"redirected more than 5 times"}},
		{"altered", "altered", "", digest, []string{asset + ": expected SHA-256 " + digest + ", found "}},
		{"connection cut", "cut", "", digest, []string{"after 1000 bytes", "unexpected EOF"}},
		{"too large", "huge", "", digest, []string{"99999999999 bytes announced"}},
		{"stalled", "stalled", "", digest, []string{"after 1000 bytes", "no data for 200ms"}},
		{"published digest differs", "good", "wrong", "", []string{"expected SHA-256 1111"}},
		{"digest missing", "good", "null", "", []string{"publishes no SHA-256 of " + asset}},
		{"digest of another kind", "good", "weak", "", []string{"publishes no SHA-256 of " + asset}},
		{"no such asset", "good", "elsewhere", "", []string{"has no asset " + asset}},
		{"description is no JSON", "good", "html", "", []string{"description cannot be read"}},
		{"no description", "good", "absent", "", []string{"/tags/absent", "404"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			page := newReleasePage(Version)
			page.assets, page.description = server.URL+"/"+test.assets, server.URL+"/tags/"+test.description
			page.stall = 200 * time.Millisecond
			folder := t.TempDir()
			got, err := page.bring(context.Background(), pin{name: asset, sha256: test.pinned}, folder,
				newProgress(nil))
			if test.want != nil {
				wantOneLine(t, err, test.want...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if data, err := os.ReadFile(got.path); err != nil || digestOf(data) != digest || got.sha256 != digest {
				t.Errorf("brought %+v, %v", got, err)
			}
		})
	}

	t.Run("stopped", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		page := newReleasePage(Version)
		page.assets = server.URL + "/stalled"
		page.stall = time.Hour
		o := Options{CacheDir: t.TempDir(), pins: []pin{{source: "release", name: asset, sha256: digest}},
			sources: map[string]source{"release": page}}
		// The download is under way when half of it lies in the temporary folder.
		go func() {
			for ctx.Err() == nil {
				if found, err := filepath.Glob(
					filepath.Join(o.CacheDir, "onnxruntime", Version, temporaryPrefix+"*", "download",
						asset)); err == nil && len(found) == 1 {
					cancel()
				}
				time.Sleep(time.Millisecond)
			}
		}()
		_, err := Fetch(ctx, o)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		wantNothingLeft(t, o.CacheDir)
	})

	t.Run("unreachable", func(t *testing.T) {
		gone := httptest.NewServer(http.NotFoundHandler())
		gone.Close()
		page := newReleasePage(Version)
		page.assets = gone.URL
		_, err := page.bring(context.Background(), pin{name: asset, sha256: digest}, t.TempDir(), newProgress(nil))
		wantOneLine(t, err, "connection refused")
	})
}

// The release page redirects to its storage; it must not lead out of encryption.
func TestRedirectOutOfEncryption(t *testing.T) {
	request := func(address string) *http.Request {
		r, err := http.NewRequest(http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	secure, plain := request("https://release.example/asset"), request("http://storage.example/asset")
	wantOneLine(t, checkRedirect(plain, []*http.Request{secure}), "not encrypted")
	if err := checkRedirect(request("https://storage.example/asset"), []*http.Request{secure}); err != nil {
		t.Error(err)
	}
}
