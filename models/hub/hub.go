// Package hub fetches models from the Hugging Face hub, or from a server that speaks its protocol, into a store.
//
// It stands on net/http and on hashicorp/go-retryablehttp for what is tried again. The one Go library for the hub that
// is released and kept, gomlx/go-huggingface (read at v0.3.1), starts a broken download from nothing, checks no
// content, cannot be cancelled while it asks for a repository's files, has no offline mode and does not try again when
// the hub asks to wait; each of these is needed here.
//
// Weights are fetched as safetensors; where a repository has none, as pytorch_model.bin, which is converted once.
//
// Every file is checked by content: large ones by the SHA-256 that the hub keeps for them, small ones by their git
// object name (SHA-1 over "blob SIZE\0" and content). What was fetched before a connection broke is kept, and the next
// attempt, in this process or a later one, asks for the rest.
package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"infill/models"
	"infill/models/cache"
)

// DefaultEndpoint is the public hub.
const DefaultEndpoint = "https://huggingface.co"

// The environment variables are those of the hub's own clients.
const (
	EndpointVariable = "HF_ENDPOINT"    // a mirror to be used instead of the public hub
	TokenVariable    = "HF_TOKEN"       // for private and gated models
	OfflineVariable  = "HF_HUB_OFFLINE" // 1: do not use the network
	homeVariable     = "HF_HOME"
	tokenPath        = "HF_TOKEN_PATH"
)

// Options say where from and how to fetch.
type Options struct {
	Endpoint string // default DefaultEndpoint
	Token    string // sent to the endpoint alone, never to where it redirects
	Offline  bool
	Progress Progress // may be nil

	Attempts int           // without any progress, before giving up; default 5
	WaitMin  time.Duration // before the second attempt, doubled from one to the next; default 1 s
	WaitMax  time.Duration // longest wait, also when the hub asks for more; default 60 s
	Stall    time.Duration // a connection that yields nothing for so long is given up; default 60 s
}

// Progress observes a pull. Calls come from one goroutine.
type Progress interface {
	// Begin is called at most once: files in all, bytes already on disk, bytes in all. A model that is stored already
	// and one that is refused for its config need none.
	Begin(files int, have, total int64)
	// File is called before each file that is fetched.
	File(name string)
	// Advance tells bytes fetched; they are negative when bytes told before are thrown away.
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

var _ Progress = silent{}

// OptionsFromEnvironment reads HF_ENDPOINT, HF_TOKEN (or the file that the hub's command line leaves the token in) and
// HF_HUB_OFFLINE.
func OptionsFromEnvironment() Options {
	o := Options{Endpoint: os.Getenv(EndpointVariable), Token: strings.TrimSpace(os.Getenv(TokenVariable))}
	switch strings.ToLower(os.Getenv(OfflineVariable)) {
	case "1", "true", "yes", "on":
		o.Offline = true
	}
	if o.Token == "" {
		o.Token = storedToken()
	}
	return o
}

// storedToken reads the token file; without a readable one there is no token.
func storedToken() string {
	path := os.Getenv(tokenPath)
	if path == "" {
		home := os.Getenv(homeVariable)
		if home == "" {
			user, err := os.UserHomeDir()
			if err != nil {
				return ""
			}
			home = filepath.Join(user, ".cache", "huggingface")
		}
		path = filepath.Join(home, "token")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

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

// ErrOffline reports that a model would have to be fetched, and that this was not allowed.
var ErrOffline = errors.New("the network may not be used (offline)")

// Pull makes sure that the store has a model, "org/name" or "org/name@revision", whole and verified, and opens it. The
// revision is a branch, a tag or a commit of the model's repository; without one it is "main". A commit that is stored
// already is not asked for again, and a pull that broke off goes on where it stopped.
//
// Each failure is one line that tells what was asked for, what came back and what to do.
func Pull(ctx context.Context, store *models.Store, name string, o Options) (*models.Bundle, error) {
	base, revision, err := models.SplitName(name)
	if err != nil {
		return nil, err
	}
	if slices.Contains(models.BuiltIn(), base) {
		return nil, fmt.Errorf("pull %s: the model is part of the program: there is nothing to fetch", base)
	}
	if revision == "" {
		revision = models.DefaultRef
	}
	o = o.withDefaults()
	c, err := newClient(base, o)
	if err != nil {
		return nil, err
	}
	defer c.close()
	b, err := c.pull(ctx, store, revision)
	if err != nil {
		if ctx.Err() != nil {
			// The request's own error tells only where it was interrupted.
			return nil, fmt.Errorf("pull %s: %w; what was fetched is kept, and the next pull goes on with it", base, context.Cause(ctx))
		}
		return nil, fmt.Errorf("pull %s: %w", base, err)
	}
	return b, nil
}

func (c *client) pull(ctx context.Context, store *models.Store, revision string) (*models.Bundle, error) {
	stored, err := store.Find(c.name + "@" + revision)
	if err == nil && (c.Offline || stored.Revision == revision) {
		var b *models.Bundle
		if b, err = store.Open(c.name + "@" + stored.Revision); err == nil {
			return b, nil
		}
	}
	if c.Offline {
		return nil, fmt.Errorf("%w, and %w", err, ErrOffline)
	}
	info, err := c.repository(ctx, revision)
	if err != nil {
		return nil, err
	}
	placement, err := store.Begin(ctx, c.name, info.Commit)
	if err != nil {
		return nil, roomError(store.Dir(), err)
	}
	defer placement.Close()
	ref := revision
	if ref == info.Commit {
		ref = ""
	}
	manifest := models.Manifest{Licence: info.licence(), Source: c.endpoint.Redacted() + "/" + c.name}
	if placement.Placed() {
		return placement.Commit(manifest, ref)
	}
	names, err := c.fetchAll(ctx, info, placement.Dir())
	if err != nil {
		return nil, roomError(store.Dir(), err)
	}
	if models.Convertible(names) {
		c.Progress.Converting()
	}
	if names, manifest.ConvertedFrom, err = placement.Convert(ctx, names); err != nil {
		return nil, roomError(store.Dir(), err)
	}
	b, err := placement.Commit(manifest, ref, names...)
	if err != nil {
		return nil, roomError(store.Dir(), err)
	}
	return b, nil
}

// writeError marks an error of the disk, as against one of the network.
type writeError struct{ error }

func (e writeError) Unwrap() error { return e.error }

// roomError adds what to do when the store cannot be written.
func roomError(dir string, err error) error {
	var write writeError
	var path *os.PathError
	if errors.As(err, &write) || errors.As(err, &path) {
		return fmt.Errorf("%w; make room in %s, or set %s to a folder that can be written", err, dir, cache.Variable)
	}
	return err
}

// fileURL is the address of a file at a commit.
func (c *client) fileURL(commit, name string) string {
	return c.Endpoint + "/" + c.name + "/resolve/" + commit + "/" + url.PathEscape(name)
}

var errRedirect = errors.New("refused a redirect")

// checkRedirect keeps the token with the endpoint and refuses to leave an encrypted connection.
func (c *client) checkRedirect(request *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return fmt.Errorf("%w: more than 10 in a row", errRedirect)
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
