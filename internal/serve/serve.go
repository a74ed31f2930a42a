// Package serve answers HTTP requests with one or several models. It offers
// Hugging Face's fill-mask protocol, the command's own features (/v1), and a
// page for browsers. A request waits for its turn at the gate (gate.go), and
// running requests share model calls in the engine of package lm. The
// package also offers fills and scores as tools of the Model Context
// Protocol (tools.go).
package serve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"infill/infill"
	"infill/internal/ask"
	"infill/internal/parallel"
	"infill/internal/rawjson"
	"infill/lm"
	"infill/tokenize"
)

// Limits bound requests. A request beyond a limit gets the status 413 (Body),
// 429 (Queue, Wait), 503 (Time) or else 422. The server estimates the memory of
// a request before running it, and waits until that memory is free.
type Limits struct {
	Body       int64         `option:"max-body" help:"bytes of a request"`
	Texts      int           `option:"max-texts" help:"texts of a request"`
	Blanks     int           `option:"max-blanks" help:"tokens to fill in a text"`
	Rows       int           `option:"max-rows" help:"model rows that one text may need"`
	Top        int           `option:"max-top" help:"fills of one text"`
	Samples    int           `option:"max-samples" help:"chains, or draws, of one text"`
	Candidates int           `option:"max-candidates" help:"candidates of a token, where chains move, and words of targets"`
	Memory     int64         `option:"max-memory" help:"bytes that all running requests may hold together; others wait"`
	Answer     int64         `option:"max-answer" help:"bytes of an answer, by what is asked for"`
	Time       time.Duration `option:"max-time" help:"how long a request may run"`
	Requests   int           `option:"max-requests" help:"requests that may run at the same time"`
	Queue      int           `option:"max-queue" help:"requests that may wait for their turn; further ones are refused"`
	Wait       time.Duration `option:"max-wait" help:"how long a request waits for its turn"`
}

// DefaultLimits returns limits for a small machine.
func DefaultLimits() Limits {
	return Limits{Body: 1 << 20, Texts: 128, Blanks: 16, Rows: 20000, Top: 1000, Samples: 1000, Candidates: 2000,
		Memory: 2 << 30, Answer: 16 << 20, Time: 60 * time.Second, Requests: 128, Queue: 256, Wait: 10 * time.Second}
}

// leastMemory is enough memory for a fill of one blank that costs one model row.
const leastMemory = 256 << 10

// leastTime is enough for a row of the smallest model.
const leastTime = 10 * time.Millisecond

// Check returns an *infill.OptionError if a limit refuses every request.
func (l Limits) Check() error {
	v := reflect.ValueOf(l)
	for i := range v.NumField() {
		least := int64(1)
		switch v.Type().Field(i).Name {
		case "Memory":
			least = leastMemory
		case "Queue":
			least = 0
		case "Time", "Wait":
			least = int64(leastTime)
		}
		if v.Field(i).Int() < least {
			value := reflect.ValueOf(least).Convert(v.Field(i).Type())
			return &infill.OptionError{Option: v.Type().Field(i).Tag.Get("option"),
				Reason: fmt.Sprintf("the bound is too small for any request: give %v or more", value)}
		}
	}
	return nil
}

// Options say which models a server offers, with which limits, and to which clients.
type Options struct {
	// Models holds fillers by name; Default names that of other requests.
	Models  map[string]*infill.Filler
	Default string
	Limits  Limits
	// Token, if not "", must be in the header "Authorization: Bearer TOKEN" of
	// requests, but of those for pages, openapi.json and health.
	Token string
	// Hosts are the host names that a request may use for this server; nil
	// allows every name. Hosts keeps pages of other sites from reaching a
	// server on the loopback by DNS rebinding.
	Hosts []string
	// Origin is the only other site whose scripts may read answers, in a form
	// that ParseOrigin takes; "" allows no other site.
	Origin string
	// Log, if not nil, is called with internal errors, at the same time.
	Log func(message string)
}

type Server struct {
	Options
	working atomic.Int64 // requests that run
	waiting atomic.Int64 // requests that wait for their turn
	gate    *gate
	turns   *gate // where requests of many rows wait before they come to gate
	long    *gate // where requests wait that have turned out longer than is likely
	book    *book // of the requests that come to turns
	reading *gate // lets only one request at a time read long texts
	handler http.Handler
	ending  context.Context // ends when the server takes no more requests
	end     context.CancelFunc
}

var _ http.Handler = (*Server)(nil)

// New returns a server. The caller closes the fillers when no request runs any more.
func New(o Options) (*Server, error) {
	if o.Models[o.Default] == nil {
		return nil, fmt.Errorf("the default model %q is not among those served: %s", o.Default,
			strings.Join(slices.Sorted(maps.Keys(o.Models)), ", "))
	}
	if err := o.Limits.Check(); err != nil {
		return nil, err
	}
	if o.Origin != "" {
		origin, err := ParseOrigin(o.Origin)
		if err != nil {
			return nil, fmt.Errorf("the origin: %w", err)
		}
		o.Origin = origin
	}
	s := &Server{Options: o}
	s.ending, s.end = context.WithCancel(context.Background())
	s.gate = newGate(o.Limits, &s.waiting)
	s.turns = newTurns(o.Limits, &s.waiting)
	s.long = newTurns(o.Limits, &s.waiting)
	s.book = &book{limit: o.Limits.Time}
	oneReader := o.Limits
	oneReader.Requests = 1
	s.reading = newGate(oneReader, &s.waiting)
	mux := http.NewServeMux()
	config := huma.DefaultConfig("infill", infill.Version())
	config.Info.Description = "Fill the blanks of a text, several of them jointly, with a masked language model."
	// The pages that huma offers load scripts of others; docs.html none.
	config.DocsPath = ""
	config.SchemasPath = ""
	config.CreateHooks = nil // they would add $schema and a header Link to every answer
	config.Formats = map[string]huma.Format{"application/json": plainJSON}
	config.DefaultFormat = "application/json"
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}
	api := humago.New(mux, config)
	s.registerNative(api)
	s.registerHuggingFace(api)
	s.registerModels(api)
	s.registerHealth(api)
	mux.Handle("GET /{$}", file("text/html; charset=utf-8", page))
	mux.Handle("GET /docs", file("text/html; charset=utf-8", docs))
	mux.HandleFunc(elsewhere, func(w http.ResponseWriter, r *http.Request) { refuseMethod(mux, w, r) })
	s.handler = s.guarded(mux)
	return s, nil
}

// elsewhere is the pattern of requests that no other pattern matches.
const elsewhere = "/"

// refuseMethod answers a request for which mux has no handler: 405 with the
// methods of its path, or 404 where no method has the path.
func refuseMethod(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	missing := func(method string) bool {
		_, pattern := mux.Handler(&http.Request{Method: method, Host: r.Host, URL: r.URL})
		return pattern == elsewhere
	}
	methods := slices.DeleteFunc([]string{http.MethodGet, http.MethodHead, http.MethodPost}, missing)
	if len(methods) == 0 {
		writeProblem(w, &Problem{status: http.StatusNotFound,
			Message: "there is nothing here: GET /docs lists what is"})
		return
	}
	allowed := strings.Join(methods, ", ")
	w.Header().Set("Allow", allowed)
	writeProblem(w, &Problem{status: http.StatusMethodNotAllowed,
		Message: fmt.Sprintf("%.20q is not a method of this path: send %s", r.Method, allowed)})
}

type ServedModel struct {
	Name    string `json:"name" doc:"What a request calls it."`
	SHA256  string `json:"sha256" doc:"Of its bundle."`
	Default bool   `json:"default" doc:"Whether requests that name no model get it."`
	Mask    string `json:"mask" doc:"The text of its own mask, which is a blank beside [MASK], ___ and <mask>."`
	MaskID  int    `json:"mask_id" doc:"The number of its mask in the vocabulary."`
	Cased   bool   `json:"cased" doc:"Whether it keeps capitals."`
	Device  string `json:"device,omitempty" doc:"Where it runs, once it is loaded: cpu, or cuda:N."`
}

func (s *Server) registerModels(api huma.API) {
	huma.Register(api, s.operation(huma.Operation{OperationID: "models", Method: http.MethodGet, Path: "/v1/models",
		Summary: "The models that are served", Tags: []string{"infill"}}),
		func(context.Context, *struct{}) (*output[[]ServedModel], error) {
			answer := &output[[]ServedModel]{}
			for _, name := range slices.Sorted(maps.Keys(s.Models)) {
				f := s.Models[name]
				m := f.Model()
				mask := f.Tokenizer().MaskID()
				answer.Body = append(answer.Body, ServedModel{Name: name, SHA256: m.SHA256, Cased: m.Cased,
					Default: name == s.Default, Mask: f.Tokenizer().Token(mask), MaskID: mask, Device: m.Device})
			}
			return answer, nil
		})
}

type healthOutput struct {
	Body struct {
		AtWork  int64 `json:"at_work" doc:"Requests that are read or run."`
		Waiting int64 `json:"waiting" doc:"Requests that wait for their turn."`
	}
}

func (s *Server) registerHealth(api huma.API) {
	huma.Register(api, huma.Operation{OperationID: "health", Method: http.MethodGet, Path: "/health",
		Summary: "How many requests run and wait; it needs no token", Tags: []string{"infill"}, Errors: []int{403}},
		func(context.Context, *struct{}) (*healthOutput, error) {
			answer := &healthOutput{}
			answer.Body.AtWork = s.working.Load()
			answer.Body.Waiting = s.waiting.Load()
			return answer, nil
		})
}

// ServeHTTP implements http.Handler. A panic ends its own request, not the
// process: a pipe has nobody else who would catch it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := parallel.Safely(func() error {
		s.handler.ServeHTTP(w, r)
		return nil
	})
	fault, panicked := err.(*parallel.Panic)
	switch {
	case !panicked:
	case fault.Value == http.ErrAbortHandler:
		panic(http.ErrAbortHandler) // package http ends the connection by it
	default:
		writeProblem(w, s.failure(fault))
	}
}

// HTTPServer returns a server with limits for slow clients, yet to listen.
func (s *Server) HTTPServer() *http.Server {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      s.Limits.Wait + 2*s.Limits.Time + 30*time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(complaints{s}, "", 0),
	}
	server.RegisterOnShutdown(s.end)
	return server
}

// complaints writes to the server's log what package net/http reports about connections.
type complaints struct{ *Server }

func (c complaints) Write(p []byte) (int, error) {
	// Anybody who connects to the port can cause a TLS handshake error.
	text := strings.TrimSpace(string(p))
	if c.Log != nil && !strings.Contains(text, "TLS handshake error") {
		c.Log(text)
	}
	return len(p), nil
}

//go:embed page.html
var pageFile string

// page is pageFile with the expression of words.
var page = []byte(strings.Replace(pageFile, "WORD_SYNTAX", string(rawjson.Quote(tokenize.WordSyntax())), 1))

//go:embed docs.html
var docs []byte

func file(kind string, content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Cache-Control", "no-cache")
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "+
			"connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		w.Write(content) //nolint:errcheck // a client that left wants no answer
	}
}

// open reports whether a request needs no token: a request for a page (/ or
// /docs), for openapi.json, which the page /docs shows, or for /health.
func open(r *http.Request) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead}, r.Method) &&
		slices.Contains([]string{"/", "/docs", "/openapi.json", "/health"}, r.URL.Path)
}

// guarded checks host, origin, token and type before the body is read.
func (s *Server) guarded(next http.Handler) http.Handler {
	token := sha256.Sum256([]byte(s.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse := func(status int, message string) { writeProblem(w, &Problem{status: status, Message: message}) }
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		if s.Origin != "" {
			h.Set("Vary", "Origin") // also of answers without one, which a cache could give to others
		}
		host := strings.TrimSuffix((&url.URL{Host: r.Host}).Hostname(), ".") // a full host name may end in a dot
		own := func(name string) bool { return strings.EqualFold(name, host) }
		if s.Hosts != nil && !slices.ContainsFunc(s.Hosts, own) {
			refuse(http.StatusForbidden, fmt.Sprintf("this server is not reached by the name %.80q: use its address, "+
				"or start it with a token, and any name will do", host))
			return
		}
		if s.Origin != "" && r.Header.Get("Origin") == s.Origin {
			h.Set("Access-Control-Allow-Origin", s.Origin)
			h.Set("Access-Control-Expose-Headers", "Retry-After, Warning")
			if r.Method == http.MethodOptions {
				h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept")
				h.Set("Access-Control-Allow-Methods", "GET, POST")
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		if s.Token != "" && !open(r) {
			scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			sum := sha256.Sum256([]byte(given))
			if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(sum[:], token[:]) != 1 {
				h.Set("WWW-Authenticate", "Bearer")
				refuse(http.StatusUnauthorized, "a token is needed: Authorization: Bearer TOKEN")
				return
			}
		}
		if r.Method == http.MethodPost && !deliberate(r.Header) {
			refuse(http.StatusUnsupportedMediaType, "send JSON, with the header Content-Type: application/json")
			return
		}
		r.Header.Set("Content-Type", "application/json")                      // huma knows it only in lower case
		r.Header.Set("Accept", strings.Join(r.Header.Values("Accept"), ", ")) // huma reads only one line of it
		if len(r.TransferEncoding) > 0 {
			// Such a request may have had a Content-Length, too, of which package
			// http does not tell. Then RFC 9112, section 6.1, ends the connection.
			h.Set("Connection", "close")
		}
		if r.ContentLength > s.Limits.Body {
			h.Set("Connection", "close") // what follows is not read
			writeProblem(w, tooLarge(s.Limits.Body))
			return
		}
		coding := r.Header.Get("Content-Encoding")
		if coding != "" && !strings.EqualFold(coding, "identity") {
			refuse(http.StatusUnsupportedMediaType,
				fmt.Sprintf("Content-Encoding %q is not read: send the JSON as it is", coding))
			return
		}
		// A body that still comes when the server ends is not waited for. Once it is
		// there, nothing must end its connection.
		connection := http.NewResponseController(w)
		hurry := func() {
			connection.SetReadDeadline(time.Now()) //nolint:errcheck // writers of tests have none
		}
		read := context.AfterFunc(s.ending, hurry)
		defer read()
		r.Body = wholeBody{http.MaxBytesReader(w, r.Body, s.Limits.Body), h, hurry, read, s.ending}
		next.ServeHTTP(w, r)
	})
}

// deliberate reports whether the content type of a request is JSON. A page of
// another site cannot send this type without the browser's permission.
func deliberate(h http.Header) bool {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json")
}

// wholeBody reports a body that is cut off or too long as the client's fault,
// which package huma would report as the server's. It also ends the connection,
// because the bytes that follow are not a request.
type wholeBody struct {
	io.ReadCloser
	answer http.Header
	hurry  func()      // ends reads that wait
	read   func() bool // called when the body is read
	ending context.Context
}

func (b wholeBody) Read(p []byte) (int, error) {
	if b.ending.Err() != nil { // package huma may have set a later deadline meanwhile
		b.hurry()
	}
	n, err := b.ReadCloser.Read(p)
	if err == nil {
		return n, nil
	}
	b.read()
	if err == io.EOF {
		return n, err
	}
	b.answer.Set("Connection", "close")
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		return n, tooLarge(long.Limit)
	}
	slow := net.Error(nil)
	if errors.As(err, &slow) && slow.Timeout() && b.ending.Err() != nil {
		return n, serverEnds()
	}
	if errors.As(err, &slow) && slow.Timeout() {
		return n, err
	}
	return n, &Problem{status: http.StatusBadRequest,
		Message: "the body of the request is cut off, or its chunks are broken: send it whole", cause: err}
}

func serverEnds() *Problem {
	return &Problem{status: http.StatusServiceUnavailable, Message: "the server ends: ask again later"}
}

func tooLarge(most int64) *Problem {
	return &Problem{status: http.StatusRequestEntityTooLarge,
		Message: fmt.Sprintf("a request may have %d bytes: send fewer texts at once", most)}
}

func (s *Server) model(name string) (*infill.Filler, error) {
	f := s.Models[cmp.Or(name, s.Default)]
	if f != nil {
		return f, nil
	}
	return nil, &Problem{status: http.StatusNotFound, Message: fmt.Sprintf("no model %.80q is served here; there "+
		"are: %s", name, strings.Join(slices.Sorted(maps.Keys(s.Models)), ", "))}
}

// work waits for a turn, if the request needs many rows, and for its memory.
// Then it runs do within the time limit, with who asks the models. A request that turns out longer than is
// likely waits again, while it runs. One whose answer may be too long is refused:
// even a short request can ask for many copies of its text.
func (s *Server) work(ctx context.Context, e effort, do func(ctx context.Context, c *lm.Caller) error) error {
	if e.answer > float64(s.Limits.Answer) {
		return unfit("the answer could have %.3g MB, this server gives %.3g: ask for fewer fills, or send several "+
			"requests with less text", e.answer/1e6, float64(s.Limits.Answer)/1e6)
	}
	err := s.gate.fits(e.bytes + e.later)
	if err != nil {
		return err
	}
	turn, place, long, further := none, none, none, none
	defer func() {
		turn()
		place()
		long()
		further()
	}()
	waiting, stop := s.untilEnd(ctx)
	defer stop()
	many := e.likely > lm.MostLight || e.bytes > float64(s.gate.share)
	if many {
		turn, err = s.turn(waiting, &e)
		if err != nil {
			return s.problem(waiting, err)
		}
	}
	place, err = s.gate.enter(waiting, e.bytes, &e)
	if err != nil {
		return s.problem(waiting, err)
	}
	s.working.Add(1)
	defer s.working.Add(-1)
	// Nobody reads an unfinished result after the client left.
	own, done := infill.Unwanted(ctx)
	defer done()
	own, cancel := s.timed(own, e)
	defer cancel()
	limit := max(int(e.likely), lm.MostLight)
	caller := &lm.Caller{Heavy: many, Limit: limit, Admit: func(ctx context.Context) (err error) {
		if !many { // it leaves its place to small requests
			place()
			place = none
			turn, err = s.turns.again(ctx, 0)
			if err != nil {
				return err
			}
		}
		long, err = s.long.again(ctx, s.longer(e))
		if err != nil {
			return err
		}
		if !many {
			place, err = s.gate.again(ctx, e.bytes)
		}
		if err == nil && e.later > 0 {
			further, err = s.gate.again(ctx, e.later)
		}
		return err
	}}
	return s.problem(own, parallel.Safely(func() error { return do(own, caller) }))
}

// filled fills a plan. What the end of time left unfinished is a result.
func filled(ctx context.Context, p *infill.Plan, observe func(infill.Progress)) (*infill.Result, error) {
	result, err := p.Fill(ctx, observe)
	if result != nil && errors.Is(context.Cause(ctx), errOutOfTime) {
		return result, nil
	}
	return result, err
}

// timed returns a context that ends with the time that a request has left.
func (s *Server) timed(ctx context.Context, e effort) (own context.Context, done func()) {
	return context.WithTimeoutCause(ctx, s.Limits.Time-e.ran, errOutOfTime)
}

// untilEnd returns a context that ends when the server takes no more requests.
func (s *Server) untilEnd(ctx context.Context) (own context.Context, stop func()) {
	own, end := context.WithCancelCause(ctx)
	forget := context.AfterFunc(s.ending, func() { end(errEnding) })
	return own, func() {
		forget()
		end(nil)
	}
}

// longTexts are the bytes from which bodies are read one at a time.
const longTexts = 32 << 10

// read reads the body of a request by do, which also tells its effort, before the
// gate, which bounds memory, sees it. Long bodies take turns, so that they occupy
// neither much memory nor all processors. Short ones do not wait. If the time ends,
// the client leaves, or the server ends, then read returns at once, while do may go on.
// So do changes nothing but what it returns, and looks at its context before each text.
func read[T any](ctx context.Context, s *Server, body []byte,
	do func(ctx context.Context, v rawjson.Value, e *effort) (T, error)) (found T, e effort, err error) {
	e.body = body
	leave := none
	if len(body) >= longTexts {
		waiting, stop := s.untilEnd(ctx)
		defer stop()
		leave, err = s.reading.enter(waiting, 0, &e)
		if err != nil {
			return found, e, s.problem(waiting, err)
		}
	}
	// Reading may go on after the answer, when huma uses the bytes again.
	text, start := bytes.Clone(body), e
	began := time.Now()
	ctx, cancel := s.timed(ctx, e)
	defer cancel()
	ctx, stop := s.untilEnd(ctx)
	defer stop()
	type reading struct {
		found T
		e     effort
	}
	r, err := parallel.Interruptible(ctx, func() (r reading, err error) {
		s.working.Add(1)
		defer func() {
			s.working.Add(-1)
			leave()
		}()
		r.e = start
		v, err := parse(text)
		if err == nil {
			r.found, err = do(ctx, v, &r.e)
		}
		return r, err
	})
	r.e.ran = time.Since(began)
	return r.found, r.e, s.problem(ctx, err)
}

var (
	errOutOfTime = errors.New("out of time")
	errEnding    = errors.New("the server ends")
)

func (s *Server) problem(ctx context.Context, err error) error {
	var own *Problem
	blame, line := ask.Describe(err, ask.Keys)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own): // err may also say which text is at fault
		return &Problem{status: own.status, Message: err.Error(), retry: own.retry, cause: own.cause}
	case errors.Is(context.Cause(ctx), errOutOfTime):
		return &Problem{status: http.StatusServiceUnavailable, Message: "the request took longer than this server " +
			"allows: ask for less, with fewer blanks, texts or a smaller budget"}
	case errors.Is(context.Cause(ctx), errEnding):
		return serverEnds()
	case ctx.Err() != nil:
		return &Problem{status: statusGone, Message: "the client left"}
	case blame != ask.BlameProgram:
		return unfit("%s", line)
	}
	return s.failure(err)
}

// failure writes an error that the client cannot mend to the server's log, and
// returns a Problem that hides the text of the error, which may name files.
func (s *Server) failure(err error) *Problem {
	if s.Log != nil {
		s.Log(err.Error())
	}
	return &Problem{status: http.StatusInternalServerError, Message: "the server failed at this request", cause: err}
}

// statusGone is nginx's status for a client that left before the answer.
const statusGone = 499
