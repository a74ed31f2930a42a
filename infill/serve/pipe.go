package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// pipeRequest is a line that [Server.Pipe] reads.
type pipeRequest struct {
	ID   json.RawMessage `json:"id"`
	Path string          `json:"path"`
	Body json.RawMessage `json:"body"`
}

// pipeAnswer is a line that [Server.Pipe] writes.
type pipeAnswer struct {
	ID     json.RawMessage `json:"id"` // null if the line told none
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body"`
}

// Pipe answers requests that are a JSON object a line, {"id": ..., "path": "/v1/fill", "body": {...}}, as a POST
// to the path: {"id": ..., "status": 200, "body": ...}, each as soon as it is done. It returns when in has ended
// and all answers are written.
func (s *Server) Pipe(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, int(s.Limits.Body))
	var mutex sync.Mutex
	write := func(a pipeAnswer) error {
		line, err := json.Marshal(a)
		if err != nil {
			return err
		}
		mutex.Lock()
		defer mutex.Unlock()
		_, err = out.Write(append(line, '\n'))
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.Limits.Requests)
	read := make(chan []byte)
	go func() { // reading does not end with ctx
		defer close(read)
		for lines.Scan() {
			select {
			case read <- bytes.Clone(lines.Bytes()):
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		var line []byte
		open := false
		select {
		case line, open = <-read:
		case <-ctx.Done():
			return group.Wait()
		}
		if !open {
			break
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var q pipeRequest
		if err := json.Unmarshal(line, &q); err != nil || !strings.HasPrefix(q.Path, "/") {
			body, err := json.Marshal(
				Problem{Message: `the line is no request: write {"id": ..., "path": "/v1/fill", "body": {...}}`})
			if err := errors.Join(err, write(pipeAnswer{q.ID, http.StatusBadRequest, body})); err != nil {
				return err
			}
			continue
		}
		group.Go(func() error {
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+q.Path,
				bytes.NewReader(q.Body))
			if err != nil {
				return err
			}
			request.Header.Set("Content-Type", "application/json")
			answer := &bufferedResponse{header: http.Header{}, status: http.StatusOK}
			s.ServeHTTP(answer, request)
			body := answer.body.Bytes()
			if !json.Valid(body) {
				body, _ = json.Marshal(string(body)) // a string always has JSON
			}
			return write(pipeAnswer{q.ID, answer.status, body})
		})
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("a line has more than %d bytes: send less at once, or raise --max-body", s.Limits.Body)
	}
	return errors.Join(err, group.Wait())
}

// bufferedResponse is a response that is kept.
type bufferedResponse struct {
	header http.Header
	status int
	body   bytes.Buffer
}

var _ http.ResponseWriter = (*bufferedResponse)(nil)

func (r *bufferedResponse) Header() http.Header         { return r.header }
func (r *bufferedResponse) WriteHeader(status int)      { r.status = status }
func (r *bufferedResponse) Write(p []byte) (int, error) { return r.body.Write(p) }
