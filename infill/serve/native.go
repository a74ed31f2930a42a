package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"infill/infill"
	"infill/internal/object"
	"infill/internal/parallel"
)

// several holds one value or a list of values of a request. list tells which: a
// client that sends a list gets a list.
type several[T any] struct {
	items []T
	list  bool
}

// Schema implements huma.SchemaProvider.
func (s several[T]) Schema(r huma.Registry) *huma.Schema {
	item := r.Schema(reflect.TypeFor[T](), true, "")
	return &huma.Schema{OneOf: []*huma.Schema{item, {Type: huma.TypeArray, Items: item}}}
}

// fillRequest holds the fields that infill.ReadRecord reads, and the name of a
// model.
type fillRequest struct {
	model  string
	fields object.Object
	size   int // bytes of the request
}

// readFills reads a request or a list of requests.
func readFills(v object.Value) (several[fillRequest], error) {
	all := several[fillRequest]{list: v.IsList()}
	items := v.List()
	if !all.list {
		items = []object.Value{v}
	}
	for _, item := range items {
		q, err := readFill(item)
		if err != nil {
			return all, err
		}
		all.items = append(all.items, q)
	}
	return all, nil
}

func readFill(v object.Value) (fillRequest, error) {
	q := fillRequest{size: len(v)}
	if !v.IsObject() {
		return q, unfit(`a request is an object, {"template": "..."}, or a list of them`)
	}
	q.fields = v.Object().Without("model")
	if v.Object().Given("model") == nil {
		return q, nil
	}
	var err error
	q.model, err = v.Object().Text("model")
	if err != nil {
		return q, unfit("%s", err)
	}
	return q, nil
}

// Schema implements huma.SchemaProvider.
func (fillRequest) Schema(huma.Registry) *huma.Schema {
	return bodySchema(infill.Options(), map[string]*huma.Schema{
		"template": {Type: huma.TypeString, Description: "The text; each [MASK] is a blank.",
			Examples: []any{"he had [MASK] me"}},
		"id":    {Description: "A name of the request, which comes again in its answer."}, // any JSON
		"model": modelKey(),
	}, "template")
}

type fillInput struct {
	Accept  string `header:"Accept" doc:"If text/event-stream weighs more than application/json, what is known comes while it sharpens: events progress, then result or error."`
	RawBody []byte `contentType:"application/json"`
}

// scoreRequest is the body of a request for scores.
type scoreRequest struct {
	infill infill.ScoreRequest // without a text
	texts  several[string]
	model  string
}

// Schema implements huma.SchemaProvider.
func (scoreRequest) Schema(r huma.Registry) *huma.Schema {
	texts := several[string]{}.Schema(r)
	texts.Description = "A text, or a list of texts."
	own := map[string]*huma.Schema{"model": modelKey(), "texts": texts}
	return bodySchema(infill.ScoreOptions.Options(), own, "texts")
}

// ofText names the text of several, counted from 0, that has an error.
func ofText(err error, i, texts int) error {
	if texts == 1 {
		return err
	}
	return fmt.Errorf("text %d: %w", i+1, err)
}

func readScore(v object.Value) (*scoreRequest, error) {
	q := &scoreRequest{}
	return q, keys{"texts": oneOrMore(&q.texts), "model": text(&q.model)}.takeWith(infill.ScoreOptions, &q.infill, v,
		"", "texts")
}

type scoreInput struct {
	RawBody []byte `contentType:"application/json"`
}

type scoreOutput struct {
	Body []*infill.Score
}

// bodyTime is the longest time that the body of a request may take to arrive.
const bodyTime = 15 * time.Second

// operation adds to o the limits, the security and the errors that all operations share.
func (s *Server) operation(o huma.Operation) huma.Operation {
	o.MaxBodyBytes = -1 // wholeBody bounds them
	o.BodyReadTimeout = bodyTime
	if s.Token != "" {
		o.Security = []map[string][]string{{"token": {}}}
	}
	if o.Method == http.MethodPost {
		o.Errors = []int{400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503}
	}
	return o
}

func (s *Server) registerNative(api huma.API) {
	result := api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Result](), true, "")
	register(api, s.operation(huma.Operation{
		OperationID: "fill", Method: http.MethodPost, Path: "/v1/fill", Tags: []string{"infill"},
		Summary: "Fill the blanks of a text jointly",
		Description: "The body is what a line of `infill --input jsonl` is, or a list of such objects; the " +
			"answer is what the command prints as JSON, and found, or a list of such.",
		Responses: map[string]*huma.Response{"200": {Description: "The fills", Content: map[string]*huma.MediaType{
			"application/json": {Schema: &huma.Schema{OneOf: []*huma.Schema{result,
				{Type: huma.TypeArray, Items: result}}}},
			"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}},
		}}},
	}), reflect.TypeFor[several[fillRequest]](), s.fill)
	register(api, s.operation(huma.Operation{
		OperationID: "score", Method: http.MethodPost, Path: "/v1/score", Tags: []string{"infill"},
		Summary:     "Pseudo-log-likelihood of texts, token by token",
		Description: "The answer is a list, in the order of the texts, of what `infill score` prints as JSON.",
	}), reflect.TypeFor[scoreRequest](), s.scoreBody)
	s.registerGaps(api)
}

// Result is the answer to a request for fills.
type Result struct {
	ID json.RawMessage `json:"id,omitempty" doc:"That of the request."`
	*infill.Result
	Found string `json:"found" doc:"How the fills were found, and what that says about all others."`
}

func answerOf(id json.RawMessage, r *infill.Result) *Result {
	found := r.Found()
	if divided := r.Divided(); divided != "" {
		found = divided + "; " + found
	}
	return &Result{ID: id, Result: r, Found: found}
}

// plans parses and checks requests without running a model. It adds to e what
// the plans need together.
func (s *Server) plans(requests []fillRequest, e *effort) (plans []planned, err error) {
	if err := s.checkTexts(len(requests)); err != nil {
		return nil, err
	}
	bytes := 0.0
	later := 0.0
	for i, q := range requests {
		p, held, err := s.plan(q)
		if err != nil {
			return nil, ofText(err, i, len(requests))
		}
		plans = append(plans, p)
		bytes = max(bytes, held)
		likely, most := p.plan.Effort()
		e.add(p.filler, likely.Tokens, most.Tokens)
		later = max(later, most.Bytes-likely.Bytes)
		e.answer += sizeOfAnswer(p.plan)
	}
	e.later = together(later, len(plans))
	e.bytes = together(bytes, len(plans)) - e.later
	return plans, nil
}

// planned is a plan with the id of its request, and with the filler of its model.
type planned struct {
	plan   *infill.Plan
	id     json.RawMessage
	filler *infill.Filler
}

// plan parses and checks a request. It also returns the bytes of memory that
// the fill may need.
func (s *Server) plan(q fillRequest) (p planned, bytes float64, err error) {
	f, err := s.model(q.model)
	if err != nil {
		return p, 0, err
	}
	record, err := infill.ReadRecord(q.fields, "template")
	var option *infill.OptionError
	switch {
	case errors.As(err, &option):
		return p, 0, err
	case err != nil:
		return p, 0, unfit("%s", err)
	case record.Extra != nil:
		return p, 0, &infill.OptionError{Option: record.Extra[0].Key, Reason: "there is no such option"}
	}
	r, err := record.Request(nil)
	if err != nil {
		return p, 0, err
	}
	_, given := infill.Last(record.Given, "seed")
	if !given {
		r.Seed = infill.NewSeed()
	}
	p.id = record.ID
	p.filler = f
	p.plan, bytes, err = s.check(f, r)
	return p, bytes, err
}

// sizeOfAnswer estimates how many bytes the answer to a plan has, by its fills,
// and as many values of each blank by itself. All else is about as long as five of
// them.
func sizeOfAnswer(p *infill.Plan) float64 {
	return float64(p.Request.Top+5) * (float64(len(p.Request.Template)) + 400 + 100*float64(len(p.Template().Blanks)))
}

func (s *Server) checkTexts(n int) error {
	switch {
	case n == 0:
		return unfit("no text: send at least one")
	case n > s.Limits.Texts:
		return unfit("%d texts in one request, this server takes %d: send several requests", n, s.Limits.Texts)
	}
	return nil
}

func (s *Server) checkSlots(p *infill.Plan) error {
	if p.Slots() > s.Limits.Blanks {
		return unfit("%d tokens to fill in one text, this server takes %d: split the text", p.Slots(), s.Limits.Blanks)
	}
	return nil
}

// check plans a fill and checks it against the limits. It returns the bytes of
// memory that the fill may need.
func (s *Server) check(f *infill.Filler, r infill.Request) (*infill.Plan, float64, error) {
	err := s.bound(&r, f.Tokenizer().VocabularySize())
	if err != nil {
		return nil, 0, err
	}
	p, err := f.Plan(r)
	if err != nil {
		return nil, 0, err
	}
	err = s.checkSlots(p)
	if err != nil {
		return nil, 0, err
	}
	l := &s.Limits
	rows, bytes := p.Cost()
	switch {
	case int(p.Request.Top) > l.Top:
		return nil, 0, unfit("top: %d fills, this server gives %d of a text: ask for fewer", p.Request.Top, l.Top)
	case rows > l.Rows:
		return nil, 0, unfit("up to %d model rows would be needed, this server takes %d a text: ask for fewer samples "+
			"or steps, or a smaller budget", rows, l.Rows)
	}
	return p, bytes + sizeOfAnswer(p), nil
}

// bound checks the method of a request against the limits. It bounds the rows of a
// budget in seconds, which alone do not bound the memory on a fast machine.
func (s *Server) bound(r *infill.Request, vocabulary int) error {
	l := &s.Limits
	asked := r.Settled().Method.Asks()
	switch {
	case asked.Seconds > l.Time.Seconds():
		return unfit("a budget of %gs, this server works %gs at a request: ask for a smaller budget", asked.Seconds,
			l.Time.Seconds())
	case asked.Candidates > l.Candidates:
		return unfit("candidates: %d of a slot, this server takes %d: ask for fewer", asked.Candidates, l.Candidates)
	case asked.Candidates == infill.None && vocabulary > l.Candidates:
		return unfit("candidates: 0 is the whole vocabulary of %d, this server takes %d of a slot: ask for fewer",
			vocabulary, l.Candidates)
	case asked.Samples > l.Samples:
		return unfit("samples: %d, this server makes %d of a text: ask for fewer", asked.Samples, l.Samples)
	}
	if r.Method != nil {
		r.Method = r.Method.Within(l.Rows)
	}
	return nil
}

// together returns how many bytes a number of texts need at once, if each
// needs at most bytes.
func together(bytes float64, texts int) float64 { return bytes * float64(min(texts, textsAtOnce)) }

// planned makes the plans of requests, as one reading.
func (s *Server) planned(ctx context.Context, requests []fillRequest) (plans []planned, e effort, err error) {
	size := 0
	for _, q := range requests {
		size += q.size
	}
	err = s.read(ctx, size, &e, func() (err error) {
		plans, err = s.plans(requests, &e)
		return err
	})
	return plans, e, err
}

func (s *Server) fill(ctx context.Context, in *fillInput) (*huma.StreamResponse, error) {
	body, err := parse(in.RawBody)
	if err != nil {
		return nil, err
	}
	requests, err := readFills(body)
	if err != nil {
		return nil, err
	}
	plans, e, err := s.planned(ctx, requests.items)
	if err != nil {
		return nil, err
	}
	if wantsEvents(in.Accept) {
		if len(plans) > 1 || requests.list {
			return nil, unfit("events are of one text: send an object, not a list")
		}
		return &huma.StreamResponse{Body: func(c huma.Context) { s.stream(c, plans[0], e) }}, nil
	}
	results, err := answers(ctx, s, len(plans), textsAtOnce, e,
		func(ctx context.Context, i int) (*Result, error) {
			result, err := filled(ctx, plans[i].plan, nil)
			if err != nil {
				return nil, err
			}
			return answerOf(plans[i].id, result), nil
		})
	if err != nil {
		return nil, err
	}
	var answer any = results
	if !requests.list {
		answer = results[0]
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		c.SetHeader("Content-Type", "application/json")
		plainJSON.Marshal(c.BodyWriter(), answer) //nolint:errcheck // a client that left wants no answer
	}}, nil
}

// textsAtOnce is how many texts of a request are processed at once, enough to
// fill the model's calls.
const textsAtOnce = 16

// answers waits as work does. Then it calls do for each of n texts, width of
// them at once. If the time ends when each text has an answer, all is well.
func answers[T any](ctx context.Context, s *Server, n, width int, e effort,
	do func(ctx context.Context, i int) (T, error)) ([]T, error) {
	list := make([]T, n)
	answered := make([]bool, n)
	err := s.work(ctx, e, func(ctx context.Context) error {
		err := parallel.All(ctx, width, n, func(ctx context.Context, i int) (err error) {
			list[i], err = do(ctx, i)
			answered[i] = err == nil
			return err
		})
		if errors.Is(context.Cause(ctx), errOutOfTime) && !slices.Contains(answered, false) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// progress is an event that a stream sends before the result: the step, and the
// result so far, if any.
type progress struct {
	Step              int      `json:"step"`
	Steps             int      `json:"steps"`
	MeanLogLikelihood *float64 `json:"mean_log_likelihood,omitempty"`
	*Result
}

// heartbeat is the shortest time between two events of a stream.
const heartbeat = 200 * time.Millisecond

// unread is the longest time that a client may take to read an event.
const unread = 10 * time.Second

// stream sends the progress and the result of a fill as server-sent events.
func (s *Server) stream(c huma.Context, p planned, e effort) {
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
			c.SetHeader("X-Accel-Buffering", "no") // otherwise nginx holds events back until the end
		}
		// Not every writer supports deadlines (the writers of tests need none).
		// The deadline of an event does not bound the wait for the next event.
		connection.SetWriteDeadline(time.Now().Add(unread)) //nolint:errcheck // see above
		if event == "progress" {
			defer connection.SetWriteDeadline(time.Time{}) //nolint:errcheck // see above
		}
		fmt.Fprintf(w, "event: %s\ndata: ", event)
		plainJSON.Marshal(w, data) //nolint:errcheck // Flush returns the error
		fmt.Fprint(w, "\n")
		if connection.Flush() != nil {
			cancel() // the work of a client that does not read is cancelled
		}
	}
	var result *infill.Result
	var next time.Time
	err := s.work(ctx, e, func(ctx context.Context) (err error) {
		result, err = filled(ctx, p.plan, func(at infill.Progress) {
			began := time.Now()
			if began.Before(next) {
				return
			}
			send("progress", progressOf(at))
			next = time.Now().Add(max(heartbeat, 9*time.Since(began))) // events take at most a tenth of the time
		})
		return err
	})
	if err != nil {
		var wrong *Problem
		errors.As(err, &wrong)
		if begun {
			send("error", wrong)
		} else {
			writeProblem(w, wrong)
		}
		return
	}
	send("result", answerOf(p.id, result))
}

func progressOf(p infill.Progress) progress {
	answer := progress{Step: p.Step, Steps: p.Steps}
	if p.Method != infill.MethodChains { // for chains, the other fields are enough
		found := p.Result()
		if found != nil {
			answer.Result = answerOf(nil, found)
		}
	}
	sum := 0.0
	for _, u := range p.LogLikelihoods {
		sum += u
	}
	mean := sum / float64(len(p.LogLikelihoods))
	if mean-mean == 0 { // false for NaN and infinity
		answer.MeanLogLikelihood = &mean
	}
	return answer
}

func (s *Server) scoreBody(ctx context.Context, in *scoreInput) (*scoreOutput, error) {
	body, err := parse(in.RawBody)
	if err != nil {
		return nil, err
	}
	q, err := readScore(body)
	if err != nil {
		return nil, err
	}
	scores, err := s.score(ctx, q)
	if err != nil {
		return nil, err
	}
	return &scoreOutput{scores}, nil
}

func (s *Server) score(ctx context.Context, q *scoreRequest) ([]*infill.Score, error) {
	texts := q.texts.items
	if err := s.checkTexts(len(texts)); err != nil {
		return nil, err
	}
	f, err := s.model(q.model)
	if err != nil {
		return nil, err
	}
	size := 0
	longest := 0
	var e effort
	for _, text := range texts {
		size += len(text)
		longest = max(longest, len(text))
	}
	err = s.read(ctx, size, &e, func() error {
		for i, text := range texts {
			own := q.infill
			own.Text = text
			rows, tokens, err := f.ScoreEffort(own)
			if err == nil && rows > s.Limits.Rows {
				err = unfit("%d tokens, each of which needs a model row, this server takes %d a text: split the text",
					rows, s.Limits.Rows)
			}
			if err != nil {
				return ofText(err, i, len(texts))
			}
			e.add(f, tokens, tokens)
			e.answer += 2000 + float64(len(own.Context)+4*len(text)+180*rows) // of each token, and of its word
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// A long text fills the model's calls by itself: all rows of its
	// windows exist at once.
	const ofByte, ofWindow = 128, infill.AskedBytes
	width := max(1, min(textsAtOnce, len(texts), longTexts/max(1, longest)))
	e.bytes = ofByte*float64(size) +
		float64(width)*min(ofWindow, ofByte*float64(longest)+float64(longest)*float64(longest))
	return answers(ctx, s, len(texts), width, e, func(ctx context.Context, i int) (*infill.Score, error) {
		own := q.infill
		own.Text = texts[i]
		return f.Score(ctx, own)
	})
}
