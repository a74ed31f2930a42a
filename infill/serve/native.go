package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/sync/errgroup"

	"infill/infill"
)

// one or several of a thing: a client that sends a list gets a list.
type several[T any] struct {
	items []T
	list  bool
}

func (s *several[T]) UnmarshalJSON(text []byte) error {
	if strings.HasPrefix(strings.TrimLeft(string(text), " \t\r\n"), "[") {
		s.list = true
		return json.Unmarshal(text, &s.items)
	}
	s.items = make([]T, 1)
	return json.Unmarshal(text, &s.items[0])
}

// Schema implements huma.SchemaProvider.
func (s several[T]) Schema(r huma.Registry) *huma.Schema {
	item := r.Schema(reflect.TypeFor[T](), true, "")
	return &huma.Schema{OneOf: []*huma.Schema{item, {Type: huma.TypeArray, Items: item}}}
}

// fillRequest is a template with its options, by the names of the command's flags, with
// - or _.
type fillRequest struct {
	model    string
	template string
	options  map[string]json.RawMessage
}

func (q *fillRequest) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &q.options); err != nil || q.options == nil {
		return errors.New(`a request is an object, {"template": "..."}, or a list of them`)
	}
	for key, value := range map[string]*string{"template": &q.template, "model": &q.model} {
		if err := json.Unmarshal(orEmpty(q.options[key]), value); err != nil {
			return fmt.Errorf("%q is not a string", key)
		}
		delete(q.options, key)
	}
	return nil
}

func orEmpty(value json.RawMessage) json.RawMessage {
	if value == nil {
		return json.RawMessage(`""`)
	}
	return value
}

// Schema implements huma.SchemaProvider: the table of options.
func (fillRequest) Schema(r huma.Registry) *huma.Schema {
	properties := map[string]*huma.Schema{
		"template": {Type: huma.TypeString, Description: "The text; each [MASK] is a blank.", Examples: []any{"he had [MASK] me"}},
		"model":    {Type: huma.TypeString, Description: "The name of a model that is served; the default model where none is named."},
	}
	for _, option := range infill.Table() {
		s := &huma.Schema{Description: option.Help}
		if option.Closed && len(option.Values) > 0 && option.Kind != "" {
			s.Description += "; one of " + strings.Join(option.Values, ", ")
		}
		properties[strings.ReplaceAll(option.Name, "-", "_")] = s
	}
	s := &huma.Schema{Type: huma.TypeObject, Properties: properties, Required: []string{"template"}, AdditionalProperties: false}
	s.PrecomputeMessages()
	return s
}

// read gives the options of the request.
func (q *fillRequest) read(o infill.Options) (infill.Options, error) {
	var err error
	if o.Seed, err = infill.NewSeed(); err != nil {
		return o, err
	}
	for key, value := range q.options {
		known, err := o.SetJSON(key, value)
		if err != nil {
			return o, err
		}
		if !known {
			return o, &infill.OptionError{Option: key, Reason: "there is no such option"}
		}
	}
	return o, o.Validate()
}

type fillInput struct {
	Accept string `header:"Accept" doc:"text/event-stream sends what is known while it sharpens: events progress, then result or error."`
	Body   several[fillRequest]
}

type scoreInput struct {
	Body struct {
		Texts  several[string] `json:"texts" doc:"A text, or a list of texts."`
		Method string          `json:"method,omitempty" enum:"l2r,original" default:"l2r" doc:"What is masked beside a token: the rest of its word to the right, or nothing."`
		Model  string          `json:"model,omitempty" doc:"The name of a model that is served."`
	}
}

type scoreOutput struct {
	Body []*infill.Score
}

// bodyTime is how long the body of a request may take to come.
const bodyTime = 15 * time.Second

// operation is what all operations share.
func (s *Server) operation(o huma.Operation) huma.Operation {
	o.MaxBodyBytes, o.BodyReadTimeout = s.Limits.Body, bodyTime
	if s.Token != "" {
		o.Security = []map[string][]string{{"token": {}}}
	}
	if o.Method == http.MethodPost {
		o.Errors = []int{400, 401, 404, 413, 415, 422, 429, 500, 503}
	}
	return o
}

func (s *Server) registerNative(api huma.API) {
	result := api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[infill.Result](), true, "Result")
	huma.Register(api, s.operation(huma.Operation{
		OperationID: "fill", Method: http.MethodPost, Path: "/v1/fill", Tags: []string{"infill"}, SkipValidateBody: true, // its own reader names the option
		Summary:     "Fill the blanks of a text jointly",
		Description: "The body is what a line of `infill --input jsonl` is, or a list of such objects; the answer is what the command prints as JSON, or a list.",
		Responses: map[string]*huma.Response{"200": {Description: "The fills", Content: map[string]*huma.MediaType{
			"application/json":  {Schema: &huma.Schema{OneOf: []*huma.Schema{result, {Type: huma.TypeArray, Items: result}}}},
			"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}},
		}}},
	}), s.fill)
	huma.Register(api, s.operation(huma.Operation{
		OperationID: "score", Method: http.MethodPost, Path: "/v1/score", Tags: []string{"infill"},
		Summary:     "Pseudo-log-likelihood of texts, token by token",
		Description: "The answer is a list, in the order of the texts, of what `infill score` prints as JSON.",
	}), s.score)
}

// job is a fill that can be worked at.
type job struct {
	filler   *infill.Filler
	template string
	options  infill.Options
}

// jobs reads and checks requests without running a model.
func (s *Server) jobs(requests []fillRequest) (jobs []job, bytes float64, err error) {
	if err := s.checkTexts(len(requests)); err != nil {
		return nil, 0, err
	}
	size := 0.0
	for i, q := range requests {
		f, _, err := s.model(q.model)
		if err != nil {
			return nil, 0, err
		}
		o, err := q.read(s.Fill)
		held := 0.0
		if err == nil {
			held, err = s.check(f, q.template, o)
		}
		if err != nil {
			if len(requests) > 1 {
				err = fmt.Errorf("text %d: %w", i+1, err)
			}
			return nil, 0, err
		}
		if o.Budget.Seconds > 0 { // a fast machine would hold more
			o.Budget.Rows = s.Limits.Rows
		}
		jobs, bytes = append(jobs, job{f, q.template, o}), max(bytes, held)
		size += float64(o.Top) * sizeOfFill(q.template)
	}
	return jobs, together(bytes, len(jobs)), s.checkAnswer(size)
}

// sizeOfFill is about how many bytes a fill of a template has in an answer.
func sizeOfFill(template string) float64 { return float64(len(template)) + 400 }

// checkAnswer holds the bytes of an answer, as many as there may be, against the limit:
// a short request can ask for many copies of its text.
func (s *Server) checkAnswer(size float64) error {
	if size <= float64(s.Limits.Answer) {
		return nil
	}
	return &Problem{status: http.StatusUnprocessableEntity, Message: fmt.Sprintf("the answer could have %.3g MB, this server gives %.3g: ask for a smaller top, or send several requests", size/1e6, float64(s.Limits.Answer)/1e6)}
}

func (s *Server) checkTexts(n int) error {
	switch {
	case n == 0:
		return &Problem{status: http.StatusUnprocessableEntity, Message: "no text: send at least one"}
	case n > s.Limits.Texts:
		return &Problem{status: http.StatusUnprocessableEntity, Message: fmt.Sprintf("%d texts in one request, this server takes %d: send several requests", n, s.Limits.Texts)}
	}
	return nil
}

// check holds a fill against the limits, reads its template, and tells what the fill may hold
// of memory.
func (s *Server) check(f *infill.Filler, template string, o infill.Options) (bytes float64, err error) {
	if err := f.Check(template, o); err != nil {
		return 0, err
	}
	t, err := f.Tokenizer().Shortest(template)
	if err != nil {
		return 0, err
	}
	slots := 0
	for _, b := range t.Blanks {
		most := max(b.Slots, b.High)
		if b.High == 0 { // it has no length of its own
			most = max(most, o.MaxPieces)
		}
		slots += most
	}
	refuse := func(format string, args ...any) (float64, error) {
		return 0, &Problem{status: http.StatusUnprocessableEntity, Message: fmt.Sprintf(format, args...)}
	}
	switch l := &s.Limits; {
	case slots > l.Blanks:
		return refuse("%d slots in one text, this server takes %d: split the text", slots, l.Blanks)
	case o.Budget.Seconds > l.Time.Seconds():
		return refuse("a budget of %gs, this server works %gs at a request: ask for a smaller budget", o.Budget.Seconds, l.Time.Seconds())
	case o.Top > l.Top:
		return refuse("top: %d fills, this server gives %d of a text: ask for fewer", o.Top, l.Top)
	case o.Chains > l.Samples:
		return refuse("samples: %d, this server makes %d of a text: ask for fewer", o.Chains, l.Samples)
	case o.Candidates > l.Candidates:
		return refuse("candidates: %d of a slot, this server takes %d: ask for fewer", o.Candidates, l.Candidates)
	case o.Candidates == 0 && f.Tokenizer().VocabularySize() > l.Candidates:
		return refuse("candidates: 0 is the whole vocabulary of %d, this server takes %d of a slot: ask for fewer", f.Tokenizer().VocabularySize(), l.Candidates)
	}
	rows := o.MostRows(slots)
	if rows > s.Limits.Rows {
		return refuse("up to %d model rows would be needed, this server takes %d a text: ask for fewer samples or steps, or a smaller budget", rows, s.Limits.Rows)
	}
	if rows == 0 { // seconds bound it
		rows = s.Limits.Rows
	}
	return o.MostBytes(slots, rows, f.Tokenizer().VocabularySize()) + float64(o.Top)*sizeOfFill(template), nil
}

// together is what texts hold at once that hold at most so many bytes each.
func together(bytes float64, texts int) float64 { return bytes * float64(min(texts, textsAtOnce)) }

func (s *Server) fill(ctx context.Context, in *fillInput) (*huma.StreamResponse, error) {
	jobs, bytes, err := s.jobs(in.Body.items)
	if err != nil {
		return nil, problem(ctx, err)
	}
	if strings.Contains(in.Accept, "text/event-stream") {
		if len(jobs) > 1 || in.Body.list {
			return nil, &Problem{status: http.StatusUnprocessableEntity, Message: "events are of one text: send an object, not a list"}
		}
		return &huma.StreamResponse{Body: func(c huma.Context) { s.stream(c, jobs[0], bytes) }}, nil
	}
	results := make([]*infill.Result, len(jobs))
	err = s.work(ctx, bytes, func(ctx context.Context) error {
		return each(ctx, len(jobs), func(ctx context.Context, i int) (err error) {
			results[i], err = jobs[i].filler.Fill(ctx, jobs[i].template, jobs[i].options, nil)
			return err
		})
	})
	if err != nil {
		return nil, s.told(err)
	}
	s.numbers.texts.Add(float64(len(results)))
	var answer any = results
	if !in.Body.list {
		answer = results[0]
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		c.SetHeader("Content-Type", "application/json")
		plainJSON.Marshal(c.BodyWriter(), answer) //nolint:errcheck // a client that left wants no answer
	}}, nil
}

// told lets who runs the server hear what the client does not.
func (s *Server) told(err error) error {
	var p *Problem
	if errors.As(err, &p) && p.cause != nil && s.Log != nil {
		s.Log(p.cause.Error())
	}
	return err
}

// textsAtOnce is how many texts of a request are worked at at once: as many as fill the
// model's calls.
const textsAtOnce = 16

// each works at n texts.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(textsAtOnce)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// progress is what an event tells before the result, with what is known so far where
// there is an answer yet.
type progress struct {
	Step              int      `json:"step"`
	Steps             int      `json:"steps"`
	MeanLogLikelihood *float64 `json:"mean_log_likelihood,omitempty"`
	*infill.Result
}

// heartbeat is the least time between two events.
const heartbeat = 200 * time.Millisecond

// unread is how long an event waits for a client to read it.
const unread = 10 * time.Second

// stream answers with server-sent events.
func (s *Server) stream(c huma.Context, j job, bytes float64) {
	w := c.BodyWriter().(http.ResponseWriter)
	connection := http.NewResponseController(w)
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	var lock sync.Mutex
	begun := false
	send := func(event string, data any) {
		lock.Lock()
		defer lock.Unlock()
		if !begun {
			begun = true
			c.SetHeader("Content-Type", "text/event-stream")
			c.SetHeader("Cache-Control", "no-store")
		}
		// Not every writer has deadlines; those of tests need none. That of an event does
		// not bound the wait for the next one.
		connection.SetWriteDeadline(time.Now().Add(unread)) //nolint:errcheck // as said
		if event == "progress" {
			defer connection.SetWriteDeadline(time.Time{}) //nolint:errcheck // as said
		}
		fmt.Fprintf(w, "event: %s\ndata: ", event)
		plainJSON.Marshal(w, data) //nolint:errcheck // Flush tells
		fmt.Fprint(w, "\n")
		if connection.Flush() != nil {
			cancel() // who does not read keeps no place
		}
	}
	var result *infill.Result
	var next time.Time
	err := s.work(ctx, bytes, func(ctx context.Context) (err error) {
		result, err = j.filler.Fill(ctx, j.template, j.options, func(p infill.Progress) {
			began := time.Now()
			if began.Before(next) {
				return
			}
			send("progress", progressOf(p))
			next = time.Now().Add(max(heartbeat, 9*time.Since(began))) // telling takes a tenth of the time at most
		})
		return err
	})
	if err != nil {
		var p *Problem
		if errors.As(s.told(err), &p); begun {
			send("error", p)
		} else {
			writeProblem(w, p)
		}
		return
	}
	s.numbers.texts.Inc()
	send("result", result)
}

func progressOf(p infill.Progress) progress {
	answer := progress{Step: p.Step, Steps: p.Steps}
	if p.Answer != nil {
		answer.Result = p.Answer()
	}
	sum := 0.0
	for _, u := range p.LogLikelihoods {
		sum += u
	}
	if mean := sum / float64(len(p.LogLikelihoods)); mean-mean == 0 { // neither NaN nor infinite
		answer.MeanLogLikelihood = &mean
	}
	return answer
}

func (s *Server) score(ctx context.Context, in *scoreInput) (*scoreOutput, error) {
	texts := in.Body.Texts.items
	if err := s.checkTexts(len(texts)); err != nil {
		return nil, err
	}
	f, _, err := s.model(in.Body.Model)
	if err != nil {
		return nil, err
	}
	for i, text := range texts {
		encoding, err := f.Plain(text)
		if err == nil {
			if rows := len(encoding.IDs) - 2; rows > s.Limits.Rows { // without [CLS] and [SEP]
				err = &Problem{status: http.StatusUnprocessableEntity, Message: fmt.Sprintf("%d tokens, each of which needs a model row, this server takes %d a text: split the text", rows, s.Limits.Rows)}
			}
		}
		if err != nil {
			return nil, problem(ctx, fmt.Errorf("text %d: %w", i+1, err))
		}
	}
	out := &scoreOutput{Body: make([]*infill.Score, len(texts))}
	err = s.work(ctx, 0, func(ctx context.Context) error {
		return each(ctx, len(texts), func(ctx context.Context, i int) (err error) {
			out.Body[i], err = f.Score(ctx, texts[i], infill.ScoreMethod(in.Body.Method))
			return err
		})
	})
	if err != nil {
		return nil, s.told(err)
	}
	s.numbers.texts.Add(float64(len(texts)))
	return out, nil
}
