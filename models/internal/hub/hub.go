// Package hub fetches files from the Hugging Face hub, or from a server that speaks its protocol.
//
// It stands on net/http and on hashicorp/go-retryablehttp for what is tried again. The one Go library for the hub that
// is released and kept, gomlx/go-huggingface (read at v0.3.1), starts a broken download from nothing, checks no
// content, cannot be cancelled while it asks for a repository's files, has no offline mode and does not try again when
// the hub asks to wait; each of these is needed here.
//
// Every file is checked by content: large ones by the SHA-256 that the hub keeps for them, small ones by their git
// object name (SHA-1 over "blob SIZE\0" and content). What was fetched before a connection broke is kept, and the next
// attempt, in this process or a later one, asks for the rest.
package hub

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// DefaultEndpoint is the public hub.
const DefaultEndpoint = "https://huggingface.co"

// The environment variables that errors name: those of the hub's own clients.
const (
	EndpointVariable = "HF_ENDPOINT" // a mirror to be used instead of the public hub
	TokenVariable    = "HF_TOKEN"    // for private and gated models
)

// Options say where from and how to fetch.
type Options struct {
	Endpoint string   // default DefaultEndpoint
	Token    string   // sent to the endpoint alone, never to where it redirects
	Progress Progress // may be nil

	Attempts int           // without any progress, before giving up; default 5
	WaitMin  time.Duration // before the second attempt, doubled from one to the next; default 1 s
	WaitMax  time.Duration // longest wait, also when the hub asks for more; default 60 s
	// a connection that yields nothing for so long is given up, and a list of files that is not whole by then; default
	// 60 s
	Stall time.Duration
}

// Progress observes what is fetched: see models.Progress.
type Progress interface {
	Begin(files int, have, total int64)
	File(name string)
	Advance(bytes int64)
	Waiting(reason error, wait time.Duration)
}

// silent is the Progress of those who give none.
type silent struct{}

func (silent) Begin(int, int64, int64)      {}
func (silent) File(string)                  {}
func (silent) Advance(int64)                {}
func (silent) Waiting(error, time.Duration) {}

var _ Progress = silent{}

func (o Options) withDefaults() Options {
	if o.Endpoint == "" {
		o.Endpoint = DefaultEndpoint
	}
	o.Endpoint = strings.TrimRight(o.Endpoint, "/")
	if o.Progress == nil {
		o.Progress = silent{}
	}
	if o.Attempts <= 0 {
		o.Attempts = 5
	}
	if o.WaitMin <= 0 {
		o.WaitMin = time.Second
	}
	if o.WaitMax <= 0 {
		o.WaitMax = time.Minute
	}
	if o.Stall <= 0 {
		o.Stall = time.Minute
	}
	return o
}

// Address is where people find the repository.
func (c *Client) Address() string { return c.endpoint.Redacted() + "/" + c.name }

// fileURL is the address of a file at a commit.
func (c *Client) fileURL(commit, name string) string {
	return c.Endpoint + "/" + c.name + "/resolve/" + commit + "/" + url.PathEscape(name)
}

var errRedirect = errors.New("refused a redirect")

// checkRedirect keeps the token with the endpoint and refuses to leave an encrypted connection.
func (c *Client) checkRedirect(request *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return fmt.Errorf("%w: more than 10 in a row", errRedirect)
	}
	if request.URL.Scheme != "https" && request.URL.Scheme != "http" {
		return fmt.Errorf("%w to an address that begins with %.20q: files come over https or http alone; set %s to "+
			"another mirror", errRedirect, request.URL.Scheme+":", EndpointVariable)
	}
	if via[len(via)-1].URL.Scheme == "https" && request.URL.Scheme != "https" {
		return fmt.Errorf("%w from https to %s://%s", errRedirect, request.URL.Scheme, request.URL.Host)
	}
	// net/http would keep it for another port and for subdomains.
	if request.URL.Scheme != c.endpoint.Scheme || request.URL.Host != c.endpoint.Host {
		request.Header.Del("Authorization")
	}
	return nil
}
