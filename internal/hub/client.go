package hub

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const maxWait = time.Minute // longest wait between attempts; try gives up if the server asks for a longer one

// client sends requests to one server, and to servers to which it redirects.
type client struct {
	Options
	endpoint   *url.URL
	repository string // address of the model's page; "" if the server is no hub
	http       *http.Client
	begun      bool // whether Progress.Begin has been called
}

func newClient(o Options, endpoint *url.URL) *client {
	o.Progress = cmp.Or[Progress](o.Progress, Silent{})
	o.TokenFrom = cmp.Or(o.TokenFrom, tokenVariable)
	o.Attempts = cmp.Or(max(o.Attempts, 0), 5)
	o.WaitMin = cmp.Or(max(o.WaitMin, 0), time.Second)
	o.Stall = cmp.Or(max(o.Stall, 0), time.Minute)
	c := &client{Options: o, endpoint: endpoint}
	c.http = &http.Client{Transport: transport, CheckRedirect: c.checkRedirect}
	return c
}

// transport connects within ten seconds, by the proxies of the environment.
var transport = func() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	return t
}()

// advance reports fetched bytes to Progress, once Begin has been called.
func (c *client) advance(bytes int64) {
	if c.begun && bytes != 0 {
		c.Progress.Advance(bytes)
	}
}

var errRedirect = errors.New("refused a redirect")

// checkRedirect keeps the token at c.endpoint, and the connection encrypted.
func (c *client) checkRedirect(request *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return fmt.Errorf("%w: more than 10 in a row", errRedirect)
	}
	if request.URL.Scheme != "https" && request.URL.Scheme != "http" {
		return fmt.Errorf("%w to an address that begins with %.20q: files come over https or http alone",
			errRedirect, request.URL.Scheme+":")
	}
	if via[len(via)-1].URL.Scheme == "https" && request.URL.Scheme != "https" {
		return fmt.Errorf("%w from https to %s://%s", errRedirect, request.URL.Scheme, request.URL.Host)
	}
	// For another port or a subdomain, net/http would keep the token.
	if request.URL.Scheme != c.endpoint.Scheme || request.URL.Host != c.endpoint.Host {
		request.Header.Del("Authorization")
	}
	return nil
}

type failure struct {
	err    error         // what the user sees if no attempt follows
	reason error         // what the user sees while waiting for another attempt; nil if that would be useless
	status int           // status code of the answer, which for an incomplete answer is that of a success
	wait   time.Duration // how long the server asks to wait
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

type brokenError struct{ error }

// try calls do until it succeeds, fails for good, or fails Attempts times in a
// row and brought too little together. do returns how many bytes it brought.
func (c *client) try(ctx context.Context, do func() (further int64, err error)) error {
	var came int64
	start := time.Now()
	for attempt := 1; ; attempt++ {
		further, err := do()
		var failed *failure
		if !errors.As(err, &failed) || failed.reason == nil || failed.wait > maxWait || ctx.Err() != nil {
			return err
		}
		came += further
		if came > 0 && enough(came, time.Since(start)) {
			attempt = 1
			came = 0
			start = time.Now()
		}
		if attempt >= c.Attempts {
			return err
		}
		wait := max(failed.wait, min(c.WaitMin<<min(attempt-1, 20), maxWait))
		c.Progress.Waiting(failed.reason, wait)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

var errStalled = errors.New("the connection went silent, or is too slow")

// leastRate is the number of bytes that each second has to bring. Slower
// transfers end, because a server could keep them going for ever.
const leastRate = 1000

// enough reports whether bytes are as many as a time has to bring.
func enough(bytes int64, time time.Duration) bool { return float64(bytes) >= leastRate*time.Seconds() }

// get requests address, from byte offset on, and passes the answer to read. The
// connection ends after Stall, unless read has passed enough bytes to alive.
// Other statuses than 200 and 206, and incomplete answers, are *failures.
func (c *client) get(ctx context.Context, address string, offset int64,
	read func(response *http.Response, alive func(bytes int)) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(c.Stall, func() { cancel(errStalled) })
	defer silence.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "infill")
	// Without compression, sizes and ranges count the stored bytes.
	request.Header.Set("Accept-Encoding", "identity")
	if c.Token != "" && c.repository != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if offset > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	response, err := c.http.Do(request)
	if err != nil {
		return c.unreachable(cmp.Or(context.Cause(ctx), err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusPartialContent {
		return c.refusal(response)
	}
	silence.Reset(c.Stall)
	came := int64(0)
	err = read(response, func(bytes int) {
		came += int64(bytes)
		if enough(came, c.Stall) {
			silence.Reset(c.Stall)
			came = 0
		}
	})
	if broken := new(brokenError); errors.As(err, broken) {
		err = cmp.Or(context.Cause(ctx), broken.error)
		return &failure{err: err, reason: err, status: response.StatusCode}
	}
	return err
}

func (c *client) unreachable(err error) error {
	if address := new(url.Error); errors.As(err, &address) {
		err = address.Err // drop the address, which may carry a signature
	}
	if errors.Is(err, errRedirect) {
		return err
	}
	remedy := "check the connection"
	if c.repository != "" {
		remedy += ", or set " + endpointVariable + " to a mirror"
	}
	certificate := new(tls.CertificateVerificationError)
	final := fmt.Errorf("cannot reach %s: %w; %s", c.endpoint.Host, err, remedy)
	if errors.As(err, &certificate) {
		return final
	}
	return &failure{err: final, reason: fmt.Errorf("%s cannot be reached", c.endpoint.Host)}
}

// refusal returns the error for an answer that is not a success. The hub's
// header X-Error-Code says what exactly is missing.
func (c *client) refusal(response *http.Response) error {
	status := response.StatusCode
	wait := retryAfter(response)
	message := ""
	switch code := response.Header.Get("X-Error-Code"); {
	case c.repository == "":
		message = "the server answers " + response.Status
	case code == "GatedRepo":
		message = fmt.Sprintf("access to this model has to be granted: ask for it on %s, then set %s to your token",
			c.repository, tokenVariable)
	case code == "RevisionNotFound":
		message = "the model has no such revision"
	case status == http.StatusUnauthorized && c.Token == "":
		message = fmt.Sprintf("there is no such model, or it is private (401): check the name, or set %s to a token "+
			"that may read it", tokenVariable)
	case status == http.StatusUnauthorized:
		message = "the hub does not accept the token (401): check " + c.TokenFrom + ", and the name of the model"
	case status == http.StatusForbidden && c.Token != "":
		message = "the hub refuses access (403): the token in " + c.TokenFrom + " may not read this model"
	case status == http.StatusForbidden:
		message = "the hub refuses access (403): set " + tokenVariable + " to a token that may read this model"
	case status == http.StatusNotFound:
		message = "the hub has no such model or file (404): check the name on " + c.endpoint.Redacted()
	case status == http.StatusTooManyRequests && wait > 0:
		message = "the hub limits requests (429): try again in " + wait.Round(time.Second).String()
	case status == http.StatusTooManyRequests:
		message = "the hub limits requests (429): try again later"
	case status >= 500:
		message = fmt.Sprintf("the hub is out of order (%s), after %d attempts: try again later, or set %s to a mirror",
			response.Status, c.Attempts, endpointVariable)
	default:
		message = "unexpected answer of the hub: " + response.Status
	}
	f := &failure{err: errors.New(message), status: status, wait: wait}
	if status == http.StatusTooManyRequests || status >= 500 && status != http.StatusNotImplemented {
		f.reason = fmt.Errorf("%s answers %s", c.endpoint.Host, response.Status)
	}
	return f
}

// retryAfter returns how long an answer asks to wait, or 0 if it does not ask.
func retryAfter(response *http.Response) time.Duration {
	value := response.Header.Get("Retry-After")
	seconds, notSeconds := strconv.ParseInt(value, 10, 32)
	if notSeconds == nil {
		return time.Duration(seconds) * time.Second
	}
	date, notDate := http.ParseTime(value)
	if notDate != nil {
		return 0
	}
	return time.Until(date)
}
