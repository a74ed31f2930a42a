package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// Client asks one endpoint for the files of one repository.
type Client struct {
	Options
	name     string
	endpoint *url.URL
	http     *retryablehttp.Client
	begun    bool // Progress.Begin has been called
}

const (
	maxInfoBytes = 16 << 20    // of the answer about a repository
	maxWait      = time.Minute // between attempts, also when the hub asks for more
)

// New is a client for a model's repository, "org/name".
func New(name string, o Options) (*Client, error) {
	o = o.withDefaults()
	endpoint, err := url.Parse(o.Endpoint)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
		return nil, fmt.Errorf("%s=%.100q is not the address of a hub: it must begin with https:// or http://",
			EndpointVariable, o.Endpoint)
	}
	c := &Client{Options: o, name: name, endpoint: endpoint, http: retryablehttp.NewClient()}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = o.Stall
	c.http.HTTPClient = &http.Client{Transport: &watchful{transport, o.Stall}, CheckRedirect: c.checkRedirect}
	c.http.Logger = nil
	c.http.RetryMax = o.Attempts - 1
	c.http.CheckRetry = func(ctx context.Context, response *http.Response, err error) (bool, error) {
		if errors.Is(err, errRedirect) {
			return false, err
		}
		if response != nil && retryAfter(response) > maxWait {
			return false, nil
		}
		return retryablehttp.DefaultRetryPolicy(ctx, response, err)
	}
	c.http.Backoff = func(_, _ time.Duration, attempt int, response *http.Response) time.Duration {
		wait, reason := c.wait(attempt), errors.New("the hub cannot be reached")
		if response != nil {
			wait, reason = max(wait, retryAfter(response)), fmt.Errorf("the hub answers %s", response.Status)
		}
		c.Progress.Waiting(reason, wait)
		return wait
	}
	// The last answer is wanted even when it is an error: its status says what to do.
	c.http.ErrorHandler = retryablehttp.PassthroughErrorHandler
	return c, nil
}

// Close lets go of idle connections.
func (c *Client) Close() { c.http.HTTPClient.CloseIdleConnections() }

// wait is how long to wait after attempt, counted from 0.
func (c *Client) wait(attempt int) time.Duration { return min(c.WaitMin<<min(attempt, 20), maxWait) }

// retryAfter is the wait that an answer asks for, 0 when it asks for none.
func retryAfter(response *http.Response) time.Duration {
	value := response.Header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return time.Until(date)
	}
	return 0
}

// get asks for an address, from byte offset on when that is not 0. Any answer but 200 and 206 is a *statusError.
func (c *Client) get(ctx context.Context, address string, offset int64) (*http.Response, error) {
	request, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "infill")
	// Sizes and ranges are those of the stored bytes.
	request.Header.Set("Accept-Encoding", "identity")
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if offset > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	response, err := c.http.Do(request)
	if err != nil {
		var address *url.Error
		if errors.As(err, &address) {
			err = address.Err // it would repeat the address, which may carry a signature
		}
		if errors.Is(err, errRedirect) {
			return nil, err
		}
		return nil, fmt.Errorf("cannot reach %s: %w; check the connection, or set %s to a mirror", c.endpoint.Host, err,
			EndpointVariable)
	}
	if response.StatusCode == http.StatusOK || response.StatusCode == http.StatusPartialContent {
		return response, nil
	}
	response.Body.Close()
	return nil, c.statusError(response)
}

// statusError is the error for an answer that is not a success.
type statusError struct {
	status  int
	message string
}

func (e *statusError) Error() string { return e.message }

func (c *Client) statusError(response *http.Response) error {
	var message string
	// The hub says in a header which of several things is missing.
	switch code := response.Header.Get("X-Error-Code"); {
	case code == "GatedRepo":
		message = fmt.Sprintf("access to this model has to be granted: ask for it on %s, then set %s to your token",
			c.Address(), TokenVariable)
	case code == "RevisionNotFound":
		message = "the model has no such revision"
	case response.StatusCode == http.StatusUnauthorized && c.Token == "":
		message = fmt.Sprintf("there is no such model, or it is private (401): check the name, or set %s to a token "+
			"that may read it", TokenVariable)
	case response.StatusCode == http.StatusUnauthorized:
		message = "the hub does not accept the token (401): check " + TokenVariable + ", and the name of the model"
	case response.StatusCode == http.StatusForbidden:
		message = "the hub refuses access (403): the token in " + TokenVariable + " may not read this model"
	case response.StatusCode == http.StatusNotFound:
		message = "the hub has no such model or file (404): check the name on " + c.endpoint.Redacted()
	case response.StatusCode == http.StatusTooManyRequests:
		message = "the hub limits requests (429): try again later"
		if wait := retryAfter(response); wait > 0 {
			message = "the hub limits requests (429): try again in " + wait.Round(time.Second).String()
		}
	case response.StatusCode >= 500:
		message = fmt.Sprintf("the hub is out of order (%s), after %d attempts: try again later, or set %s to a mirror",
			response.Status, c.Attempts, EndpointVariable)
	default:
		message = "unexpected answer of the hub: " + response.Status
	}
	return &statusError{response.StatusCode, message}
}

// Revision is what the hub tells about a revision of a repository.
type Revision struct {
	Commit   string   `json:"sha"`
	Files    []File   `json:"siblings"`
	Tags     []string `json:"tags"`
	CardData struct {
		Licence any `json:"license"` // text, or a list of texts
	} `json:"cardData"`
}

// File is one file of a repository.
type File struct {
	Name string `json:"rfilename"`
	Size int64  `json:"size"`
	// Blob is the git object name. Of a large file it names a pointer and says nothing of the content.
	Blob  string `json:"blobId"`
	Large *struct {
		SHA256 string `json:"sha256"`
		Size   int64  `json:"size"`
	} `json:"lfs"`
}

// Revision asks for the files of a branch, a tag or a commit.
func (c *Client) Revision(ctx context.Context, revision string) (*Revision, error) {
	address := c.Endpoint + "/api/models/" + c.name + "/revision/" + url.PathEscape(revision) + "?blobs=true"
	content, err := c.list(ctx, address)
	var broken brokenError
	for attempt := 1; errors.As(err, &broken); attempt++ {
		if attempt >= c.Attempts {
			return nil, fmt.Errorf("the list of files did not come whole in %d attempts: %w; try again later, or set "+
				"%s to a mirror", attempt, err, EndpointVariable)
		}
		if err := c.pause(ctx, attempt, err); err != nil {
			return nil, err
		}
		content, err = c.list(ctx, address)
	}
	var status *statusError
	if errors.As(err, &status) && status.status == http.StatusNotFound {
		return nil, fmt.Errorf("revision %q: %w", revision, err)
	}
	if err != nil {
		return nil, err
	}
	var r Revision
	if err = json.Unmarshal(content, &r); err == nil && !isHex(r.Commit, 40) {
		err = fmt.Errorf("%.60q is not a commit", r.Commit)
	}
	if err != nil { // an error of JSON repeats a number, however long it is
		return nil, fmt.Errorf("%s does not answer like a hub: the list of files: %.200v; check %s",
			c.endpoint.Redacted(), err, EndpointVariable)
	}
	for i, f := range r.Files {
		if f.Large != nil {
			r.Files[i].Size = f.Large.Size
		}
	}
	return &r, nil
}

// list reads the answer about a repository. It has to be whole within Stall: a list is short, and one that drips would
// never be silent.
func (c *Client) list(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	response, err := c.get(ctx, address, 0)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	slow := time.AfterFunc(c.Stall, func() { cancel(errSlow) })
	defer slow.Stop()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxInfoBytes+1))
	if err != nil {
		return nil, brokenError{cmp.Or(context.Cause(ctx), err)}
	}
	if len(content) > maxInfoBytes {
		return nil, fmt.Errorf("the list of files is longer than %d bytes", maxInfoBytes)
	}
	return content, nil
}

// pause waits before the next attempt and tells why.
func (c *Client) pause(ctx context.Context, attempt int, reason error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	wait := c.wait(attempt - 1)
	c.Progress.Waiting(reason, wait)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

// Licence is the licence on the model's card, or that in its tags.
func (r *Revision) Licence() string {
	switch l := r.CardData.Licence.(type) {
	case string:
		return l
	case []any:
		var all []string
		for _, one := range l {
			all = append(all, fmt.Sprint(one))
		}
		return strings.Join(all, ", ")
	}
	for _, tag := range r.Tags {
		if l, ok := strings.CutPrefix(tag, "license:"); ok {
			return l
		}
	}
	return ""
}

// Find finds a file by its name.
func (r *Revision) Find(name string) (File, bool) {
	i := slices.IndexFunc(r.Files, func(f File) bool { return f.Name == name })
	if i < 0 {
		return File{}, false
	}
	return r.Files[i], true
}

func isHex(s string, digits int) bool {
	return len(s) == digits && strings.Trim(s, "0123456789abcdef") == ""
}
