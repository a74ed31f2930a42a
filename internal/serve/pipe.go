package serve

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	pathpkg "path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"infill/internal/rawjson"
)

type pipeAnswer struct {
	ID     json.RawMessage `json:"id"` // null if the request's line has no id
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body"`
	// Warnings are the texts of the headers Warning.
	Warnings []string `json:"warnings,omitempty"`
}

// lookout is the time between two looks whether somebody still reads.
const lookout = 3 * time.Second

// Pipe reads one request a line, as {"id": ..., "path": "/v1/fill", "body":
// {...}}, and treats it as a POST to the path, or as a GET if it has "method":
// "GET". It writes each answer as soon as it is done, as {"id": ..., "status":
// 200, "body": ...}, perhaps with "warnings", a list of texts. Pipe returns after
// the end of in when all answers are written, or when a write fails because
// nobody reads out any more. The end of ctx cancels all requests, and is an error.
func (s *Server) Pipe(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, int(s.Limits.Body))
	var mutex sync.Mutex
	write := func(text []byte) error {
		mutex.Lock()
		defer mutex.Unlock()
		_, err := out.Write(text)
		return err
	}
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.Limits.Requests)
	var asked atomic.Int64 // lines without an answer
	read := make(chan []byte)
	go func() { // a blocked read does not end when ctx ends, so the reader is a goroutine of its own
		defer close(read)
		for lines.Scan() {
			select {
			case read <- bytes.Clone(lines.Bytes()):
			case <-ctx.Done():
				return
			}
		}
	}()
	go func() { // writes a space now and then, which JSON allows: only a failing write shows that nobody reads
		for ctx.Err() == nil {
			time.Sleep(lookout)
			if ctx.Err() == nil && asked.Load() > 0 && write([]byte(" ")) != nil {
				cancel()
			}
		}
	}()
	for {
		select {
		case line, open := <-read:
			if !open {
				err := lines.Err()
				if errors.Is(err, bufio.ErrTooLong) {
					err = fmt.Errorf("a line has more than %d bytes: send less at once, or raise --max-body",
						s.Limits.Body)
				}
				return errors.Join(err, group.Wait())
			}
			if len(bytes.TrimSpace(line)) > 0 {
				asked.Add(1)
				group.Go(func() error {
					defer asked.Add(-1)
					return write(s.answerLine(ctx, line))
				})
			}
		case <-ctx.Done(): // by the caller, or because nobody reads
			return cmp.Or(group.Wait(), outer.Err())
		}
	}
}

// answerLine serves the request in a line of a pipe, and returns the answer as a line.
func (s *Server) answerLine(ctx context.Context, line []byte) []byte {
	answer := &bufferedResponse{header: http.Header{}, status: http.StatusOK}
	fields, err := rawjson.Parse(line)
	id := json.RawMessage(fields.Given("id"))
	request, wrong := lineRequest(ctx, fields, err)
	if wrong != nil {
		writeProblem(answer, wrong)
	} else {
		s.ServeHTTP(answer, request)
	}
	body := answer.body.Bytes()
	if !json.Valid(body) {
		body, _ = json.Marshal(string(body)) // a string can always be encoded
	}
	told := pipeAnswer{ID: id, Status: answer.status, Body: body}
	for _, warning := range answer.header.Values("Warning") {
		text, _ := strconv.Unquote(strings.TrimPrefix(warning, warningCode)) // fillMask has quoted it
		told.Warnings = append(told.Warnings, text)
	}
	text, _ := json.Marshal(told) // cannot fail: its parts are JSON
	return append(text, '\n')
}

// lineRequest makes the request of a line, of which fields and err were read.
func lineRequest(ctx context.Context, fields rawjson.Object, err error) (*http.Request, *Problem) {
	const form = `write {"id": ..., "path": "/v1/fill", "body": {...}}`
	malformed := func(reason string) *Problem {
		return &Problem{status: http.StatusBadRequest, Message: reason + ": " + form}
	}
	if errors.Is(err, rawjson.ErrSyntax) || errors.Is(err, rawjson.ErrNone) {
		return nil, malformed(err.Error())
	}
	if err != nil {
		return nil, unfit("%s", err)
	}
	path, err := fields.Text("path")
	if err != nil || !strings.HasPrefix(path, "/") {
		return nil, malformed("the line is no request")
	}
	for _, field := range fields.Without("id", "method", "path", "body") {
		return nil, unfit("%.80s: there is no such key: %s", field.Key, form)
	}
	method := http.MethodPost
	if fields.Given("method") != nil {
		method, err = fields.Text("method")
	}
	if err != nil || method != http.MethodPost && method != http.MethodGet {
		return nil, unfit("method: it is not one of GET, POST")
	}
	ctx = context.WithValue(ctx, everyWarning{}, true)
	request, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path,
		bytes.NewReader(fields.Given("body")))
	if err != nil {
		return nil, malformed("the line is no request")
	}
	clean := pathpkg.Clean(request.URL.Path)
	if clean != request.URL.Path {
		return nil, unfit("path: %.80s is another writing of %.80s", request.URL.Path, clean)
	}
	request.Header.Set("Content-Type", "application/json")
	return request, nil
}

// bufferedResponse is an http.ResponseWriter that keeps a response in memory.
type bufferedResponse struct {
	header http.Header
	status int
	body   bytes.Buffer
}

var _ http.ResponseWriter = (*bufferedResponse)(nil)

func (r *bufferedResponse) Header() http.Header         { return r.header }
func (r *bufferedResponse) WriteHeader(status int)      { r.status = status }
func (r *bufferedResponse) Write(p []byte) (int, error) { return r.body.Write(p) }
