// Package hub fetches files from the Hugging Face hub, or from a server that speaks its protocol.
//
// It stands on net/http and hashicorp/go-retryablehttp: the one Go library for the hub that is kept, gomlx's, starts a
// broken download from nothing, checks no content and has no offline mode.
//
// Every file is checked by content: large ones by the SHA-256 that the hub keeps for them, small ones by their git
// object name (SHA-1 over "blob SIZE\0" and content). What was fetched before a connection broke is kept, and the next
// attempt, in this process or a later one, asks for the rest.
package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
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

// Options say where from and how to fetch. The zero value is the public hub.
type Options struct {
	Endpoint string // of a mirror; empty: the public hub
	Token    string // for private and gated models; sent to the endpoint alone, never to where it redirects
	Offline  bool   // only what is stored already
	Progress Progress

	Attempts int           // without any progress, before giving up; default 5
	WaitMin  time.Duration // before the second attempt, doubled from one to the next; default 1 s
	// Stall ends a connection that yields nothing for so long, and a list of files that is not whole by then; default
	// 60 s.
	Stall time.Duration
	// Total bounds all of it, waits and slow connections included; 0: DefaultTotal; negative: no bound.
	Total time.Duration
}

// DefaultTotal is how long a fetch may take in all. A server that sends a byte a second is never silent.
const DefaultTotal = 12 * time.Hour

// Bounded is ctx with an end at Total.
func (o Options) Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.Total < 0 {
		return context.WithCancel(ctx)
	}
	total := cmp.Or(o.Total, DefaultTotal)
	return context.WithTimeoutCause(ctx, total, fmt.Errorf("not all was fetched within %v (a longer --max-time, or 0 "+
		"for no bound, lets it take its time)", total))
}

// Progress observes what is fetched. Calls come from one goroutine.
type Progress interface {
	// Begin is called at most once: files in all, bytes already on disk, bytes in all. A model that is stored already
	// and one that is refused for its config need none.
	Begin(files int, have, total int64)
	// File is called before each file that is fetched.
	File(name string)
	// Advance reports bytes fetched; they are negative when bytes reported before are thrown away.
	Advance(bytes int64)
	// Waiting tells why and for how long nothing will happen; also before Begin.
	Waiting(reason error, wait time.Duration)
	// Converting is called when all is fetched and the weights are to be converted, which takes seconds.
	Converting()
}

// silent is the Progress of those who give none.
type silent struct{}

func (silent) Begin(int, int64, int64)      {}
func (silent) File(string)                  {}
func (silent) Advance(int64)                {}
func (silent) Waiting(error, time.Duration) {}
func (silent) Converting()                  {}

func (o Options) withDefaults() Options {
	o.Endpoint = strings.TrimRight(cmp.Or(o.Endpoint, DefaultEndpoint), "/")
	o.Progress = cmp.Or[Progress](o.Progress, silent{})
	o.Attempts = cmp.Or(max(o.Attempts, 0), 5)
	o.WaitMin = cmp.Or(max(o.WaitMin, 0), time.Second)
	o.Stall = cmp.Or(max(o.Stall, 0), time.Minute)
	return o
}

// Address is where people find the repository.
func (c *Client) Address() string { return c.endpoint.Redacted() + "/" + c.name }

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
