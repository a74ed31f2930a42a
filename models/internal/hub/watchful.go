package hub

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// What ends a connection: silence, and a list of files that is not whole in time.
var (
	errStalled = errors.New("the connection went silent")
	errSlow    = errors.New("the answer came too slowly")
)

// watchful gives up a body that has been silent for stall, whoever reads it: net/http and retryablehttp themselves read
// the rest of answers that they throw away. Headers have the transport's own limit.
type watchful struct {
	*http.Transport
	stall time.Duration
}

func (w *watchful) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	response, err := w.Transport.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	silence := time.AfterFunc(w.stall, func() { cancel(errStalled) })
	response.Body = &watchedBody{response.Body, ctx, cancel, silence, w.stall}
	return response, nil
}

type watchedBody struct {
	io.ReadCloser
	ctx     context.Context
	cancel  context.CancelCauseFunc
	silence *time.Timer
	stall   time.Duration
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.silence.Reset(b.stall)
	if cause := context.Cause(b.ctx); cause != nil && err != nil && err != io.EOF {
		err = cause
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.silence.Stop()
	b.cancel(nil)
	return b.ReadCloser.Close()
}
