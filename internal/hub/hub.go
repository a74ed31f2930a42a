// Package hub fetches files from the Hugging Face hub, or from a server that
// speaks its protocol.
//
// It checks the content of every file: of a large file, by the SHA-256 that the
// hub keeps; of a small file, by its git object name (SHA-1 over "blob SIZE\0"
// and content). If a connection breaks, the package keeps the bytes so far, and
// the next attempt, in this process or a later one, asks for the rest.
package hub

import (
	"cmp"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"infill/internal/regular"
)

// These variables, which the hub's own clients read, appear in errors.
const (
	endpointVariable = "HF_ENDPOINT" // address of a mirror to use instead of the public hub
	tokenVariable    = "HF_TOKEN"    // token for private and gated models
)

// Options say from which server to fetch, by default the public hub.
type Options struct {
	Endpoint string // address of a mirror; "" for the public hub
	Token    string // for private and gated models; sent to Endpoint only, never to a server that it redirects to
	// TokenFrom names the variable or the file that has the token.
	TokenFrom string
	Offline   bool   // whether to use only files that are already stored
	Cache     string // folder in which the hub's own clients keep models, of which files are copied; "" for none
	Progress  Progress

	Attempts int           // attempts in a row without progress before giving up; default 5
	WaitMin  time.Duration // wait before the second attempt, doubled for each further one; default 1 s
	// Stall is the longest time without data, and for a whole list of files. In
	// each such time, a file grows by leastRate at least. Default 60 s.
	Stall time.Duration
}

// FromEnvironment reads what the hub's own clients read, in their order.
func FromEnvironment() Options {
	home, _ := os.UserHomeDir() // without one, its files are not there
	caches := cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache"))
	root := cmp.Or(os.Getenv("HF_HOME"), filepath.Join(caches, "huggingface"))
	o := Options{
		Endpoint: os.Getenv(endpointVariable),
		Offline:  isTrue(cmp.Or(os.Getenv("HF_HUB_OFFLINE"), os.Getenv("TRANSFORMERS_OFFLINE"))),
		Cache: cmp.Or(os.Getenv("HF_HUB_CACHE"), os.Getenv("HUGGINGFACE_HUB_CACHE"),
			filepath.Join(root, "hub")),
	}
	if isTrue(os.Getenv("HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
		return o
	}
	for _, name := range []string{tokenVariable, "HUGGING_FACE_HUB_TOKEN"} {
		o.Token = strings.TrimSpace(os.Getenv(name))
		o.TokenFrom = name
		if o.Token != "" {
			return o
		}
	}
	o.TokenFrom = cmp.Or(os.Getenv("HF_TOKEN_PATH"), filepath.Join(root, "token"))
	content, _ := os.ReadFile(o.TokenFrom) // without a readable file, there is no token
	o.Token = strings.TrimSpace(string(content))
	if o.Token == "" {
		o.TokenFrom = ""
	}
	return o
}

// isTrue reads a variable as the hub's own clients do.
func isTrue(value string) bool {
	return slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(value))
}

// Progress observes downloads, as models.PullProgress says.
type Progress = interface {
	Begin(name string, have, total int64)
	Advance(bytes int64)
	Waiting(reason error, wait time.Duration)
}

// Silent is a Progress that does nothing.
type Silent struct{}

func (Silent) Begin(string, int64, int64)   {}
func (Silent) Advance(int64)                {}
func (Silent) Waiting(error, time.Duration) {}

// Repository is a model on the hub, at one revision.
type Repository struct {
	Address string // the page for people
	Commit  string
	Licence string
	Files   []File

	client *client
	stem   string   // address of a file, up to its name
	cached []string // folders of the hub's own clients that may have the files
}

type File struct {
	Name string `json:"rfilename"`
	Size int64  `json:"size"`
	// Blob is the git object name; of a large file, that of a pointer alone.
	Blob  string `json:"blobId"`
	Large *struct {
		SHA256 string `json:"sha256"`
		Size   int64  `json:"size"`
	} `json:"lfs"`
}

const maxInfoBytes = 16 << 20 // largest size of an answer about a repository

// Open asks which files "org/name" has at a branch, tag or commit.
func Open(ctx context.Context, name, revision string, o Options) (*Repository, error) {
	base := strings.TrimRight(cmp.Or(o.Endpoint, "https://huggingface.co"), "/")
	endpoint, err := url.Parse(base)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
		return nil, fmt.Errorf("%s=%.100q is not the address of a hub: it must begin with https:// or http://",
			endpointVariable, o.Endpoint)
	}
	r := &Repository{client: newClient(o, endpoint), Address: endpoint.Redacted() + "/" + name}
	r.client.repository = r.Address
	// A client of package http would call such a token a failure of the network.
	if strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fmt.Errorf("the token in %s has a space, a control character or a letter outside ASCII: it is one "+
			"word, such as hf_abc", r.client.TokenFrom)
	}
	content, err := r.client.listAnyway(ctx, base+"/api/models/"+name+"/revision/"+url.PathEscape(revision)+
		"?blobs=true")
	var failed *failure
	switch {
	case errors.As(err, &failed) && failed.status == http.StatusNotFound:
		return nil, fmt.Errorf("revision %q: %w", revision, err)
	case errors.As(err, &failed) && failed.status == http.StatusOK:
		return nil, fmt.Errorf("the list of files did not come whole in %d attempts: %w; try again later, or set %s "+
			"to a mirror", r.client.Attempts, err, endpointVariable)
	case err != nil:
		return nil, err
	}
	var answer struct {
		ID       string   `json:"id"`
		Commit   string   `json:"sha"`
		Files    []File   `json:"siblings"`
		Tags     []string `json:"tags"`
		CardData struct {
			Licence any `json:"license"` // a string or a list of strings
		} `json:"cardData"`
	}
	if err = json.Unmarshal(content, &answer); err == nil && !isHex(answer.Commit, 40) {
		err = fmt.Errorf("%.60q is not a commit", answer.Commit)
	}
	if err != nil { // %.200v shortens an error of JSON, which may repeat a long number
		return nil, fmt.Errorf("%s does not answer like a hub: the list of files: %.200v; check %s",
			endpoint.Redacted(), err, endpointVariable)
	}
	r.Commit = answer.Commit
	r.Files = answer.Files
	r.Licence = licence(answer.CardData.Licence, answer.Tags)
	for _, known := range []string{name, answer.ID} {
		if o.Cache != "" && fullName.MatchString(known) {
			r.cached = append(r.cached, filepath.Join(o.Cache, "models--"+strings.ReplaceAll(known, "/", "--"),
				"snapshots", r.Commit))
		}
	}
	if fullName.MatchString(answer.ID) { // the hub has moved the model, or has completed a short name
		name = answer.ID
		r.Address = endpoint.Redacted() + "/" + name
		r.client.repository = r.Address
	}
	r.stem = base + "/" + name + "/resolve/" + r.Commit + "/"
	for i, f := range r.Files {
		if f.Large != nil {
			r.Files[i].Size = f.Large.Size
		}
	}
	return r, nil
}

// Cached returns the folder in which one of the hub's own clients keeps a
// revision of the model "org/name", or of "name" by any organisation. If the
// client does not say which revision is a branch, others are all its folders.
func (o Options) Cached(name, revision string) (folder string, others []string) {
	if o.Cache == "" || !fullName.MatchString(name) {
		return "", nil
	}
	repository := "models--" + strings.ReplaceAll(name, "/", "--")
	places := []string{filepath.Join(o.Cache, repository)}
	if !strings.Contains(name, "/") {
		owned, _ := filepath.Glob(filepath.Join(o.Cache, "models--*--"+name)) // the pattern is a valid one
		places = append(places, owned...)
	}
	for _, place := range places {
		commit, err := os.ReadFile(filepath.Join(place, "refs", filepath.FromSlash(revision)))
		if err != nil {
			commit = []byte(revision)
		}
		wanted := strings.TrimSpace(string(commit))
		snapshots := filepath.Join(place, "snapshots")
		_, unnamed := os.Stat(filepath.Join(place, "refs"))
		found, _ := os.ReadDir(snapshots)
		for _, f := range found {
			folder := filepath.Join(snapshots, f.Name())
			_, err := os.Stat(filepath.Join(folder, "config.json"))
			switch {
			case err == nil && f.Name() == wanted:
				return folder, nil
			case err == nil && unnamed != nil:
				others = append(others, folder)
			}
		}
	}
	return "", others
}

// fullName is the form of the hub's own names of models.
var fullName = regexp.MustCompile(`^[\w-][\w.-]*(/[\w-][\w.-]*)?$`)

// listAnyway is list. The hub refuses a token that has expired for public
// models, too, which it lists without one.
func (c *client) listAnyway(ctx context.Context, address string) ([]byte, error) {
	content, err := c.list(ctx, address)
	var failed *failure
	if !errors.As(err, &failed) || failed.status != http.StatusUnauthorized || c.Token == "" {
		return content, err
	}
	c.Progress.Waiting(fmt.Errorf("%s does not accept the token in %s and is asked without one", c.endpoint.Host,
		c.TokenFrom), 0)
	c.Token = ""
	content, without := c.list(ctx, address)
	if errors.As(without, &failed) && failed.status == http.StatusUnauthorized {
		return nil, err
	}
	return content, without
}

// list reads the answer about a repository, which is short and must arrive
// within Stall: get would wait for a byte now and then.
func (c *client) list(ctx context.Context, address string) (content []byte, err error) {
	err = c.try(ctx, func() (int64, error) {
		return 0, c.get(ctx, address, 0, func(response *http.Response, _ func(int)) error {
			content, err = io.ReadAll(io.LimitReader(response.Body, maxInfoBytes+1))
			if err != nil {
				return brokenError{err}
			}
			if len(content) > maxInfoBytes {
				return fmt.Errorf("the list of files is longer than %d bytes", maxInfoBytes)
			}
			return nil
		})
	})
	return content, err
}

// licence returns that of the model's card, or the first in its tags.
func licence(card any, tags []string) string {
	if l, ok := card.(string); ok {
		return l
	}
	for _, tag := range tags {
		if l, ok := strings.CutPrefix(tag, "license:"); ok {
			return l
		}
	}
	return ""
}

func (r *Repository) Find(name string) (File, bool) {
	i := slices.IndexFunc(r.Files, func(f File) bool { return f.Name == name })
	if i < 0 {
		return File{}, false
	}
	return r.Files[i], true
}

// FetchWeights fetches the files of the weights as Fetch does. As this takes
// long, it reports progress, under the name weights.
func (r *Repository) FetchWeights(ctx context.Context, weights string, files []File, dir string) error {
	for _, f := range files {
		r.copyCached(f, filepath.Join(dir, f.Name))
	}
	err := room(files, dir)
	if err != nil {
		return err
	}
	var have, total int64
	for _, f := range files {
		have += f.onDisk(dir)
		total += f.Size
	}
	r.client.begun = true
	r.client.Progress.Begin(weights, have, total)
	for _, f := range files {
		err := r.Fetch(ctx, f, dir)
		if err != nil {
			return err
		}
	}
	return nil
}

func (f File) onDisk(dir string) int64 {
	at := filepath.Join(dir, f.Name)
	return min(f.Size, max(sizeOf(at), sizeOf(at+partSuffix)))
}

// room returns an error if the disk of dir lacks room for the files.
func room(files []File, dir string) error {
	free, known := freeBytes(dir)
	if !known {
		return nil
	}
	need := uint64(0)
	for _, f := range files {
		missing := uint64(max(f.Size, 0) - f.onDisk(dir))
		need += min(missing, math.MaxUint64-need)
	}
	if need <= free {
		return nil
	}
	return &fs.PathError{Op: "write", Path: dir,
		Err: fmt.Errorf("the files take %d bytes, and the disk has %d free", need, free)}
}

// Fetch downloads f into dir, unless it is there with the right checksum.
func (r *Repository) Fetch(ctx context.Context, f File, dir string) error {
	d := &download{client: r.client, address: r.stem + url.PathEscape(f.Name), name: f.Name,
		path: filepath.Join(dir, f.Name), size: f.Size, again: "pull again to go on from there"}
	switch {
	case f.Size < 0:
	case f.Large != nil && isHex(f.Large.SHA256, 2*sha256.Size):
		d.kind = "SHA-256"
		d.hash = sha256.New()
		d.sum = f.Large.SHA256
	case f.Large == nil && isHex(f.Blob, 2*sha1.Size):
		d.kind = "git object"
		d.hash = sha1.New()
		d.sum = f.Blob
		d.prefix = fmt.Sprintf("blob %d\x00", f.Size)
	}
	r.copyCached(f, d.path)
	if d.hash == nil {
		return fmt.Errorf("%s: the hub lists no checksum, so what it sends could not be verified; set %s to another "+
			"mirror", f.Name, endpointVariable)
	}
	err := room([]File{f}, dir)
	if err != nil {
		return err
	}
	return d.run(ctx)
}

// copyCached copies a file that one of the hub's own clients has fetched, as if
// a download had broken off after its last byte. A copy that fails is the
// beginning of a download. The download checks the content.
func (r *Repository) copyCached(f File, at string) {
	if sizeOf(at) > 0 || sizeOf(at+partSuffix) > 0 {
		return
	}
	for _, folder := range r.cached {
		from := filepath.Join(folder, f.Name)
		if sizeOf(from) != f.Size {
			continue
		}
		err := regular.Copy(from, at+partSuffix)
		if err == nil {
			return
		}
	}
}

func isHex(s string, digits int) bool {
	return len(s) == digits && strings.Trim(s, "0123456789abcdef") == ""
}
