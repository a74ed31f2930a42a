package hub

import (
	"errors"
	"net/http"
	"net/url"
	"testing"
)

// An encrypted connection is not left, and the token stays with scheme, host
// and port of the endpoint.
func TestCheckRedirect(t *testing.T) {
	c := newClient(Options{}, &url.URL{Scheme: "https", Host: "hub.example"})
	for _, r := range []struct {
		from, to     string
		refused, has bool
	}{
		{"https://hub.example/a", "https://hub.example/b", false, true},
		{"https://hub.example/a", "https://cdn.example/b", false, false},
		{"https://hub.example/a", "https://cdn.hub.example/b", false, false},
		{"https://hub.example/a", "https://hub.example:444/b", false, false},
		{"https://hub.example/a", "http://hub.example/b", true, false},
		{"https://cdn.example/a", "http://cdn.example/b", true, false},
		{"https://hub.example/a", "file:///etc/passwd", true, false},
		{"http://hub.example/a", "file:///etc/passwd", true, false},
	} {
		from, _ := url.Parse(r.from)
		to, _ := url.Parse(r.to)
		request := &http.Request{URL: to, Header: http.Header{"Authorization": {"Bearer x"}}}
		err := c.checkRedirect(request, []*http.Request{{URL: from}})
		if errors.Is(err, errRedirect) != r.refused {
			t.Errorf("%s to %s: %v, want refused: %t", r.from, r.to, err, r.refused)
		}
		if has := request.Header.Get("Authorization") != ""; err == nil && has != r.has {
			t.Errorf("%s to %s: token sent: %t, want %t", r.from, r.to, has, r.has)
		}
	}
}
