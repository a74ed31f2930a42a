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
	"infill/internal/ask"
	"infill/internal/parallel"
	"infill/internal/rawjson"
	"infill/lm"
	"infill/tokenize"
)

// several holds one value or a list; a client that sends a list gets one.
type several[T any] struct {
	items []T
	list  bool
}

func (s several[T]) Schema(r huma.Registry) *huma.Schema {
	item := r.Schema(reflect.TypeFor[T](), true, "")
	return &huma.Schema{OneOf: []*huma.Schema{item, {Type: huma.TypeArray, Items: item}}}
}

// fillRequest holds the fields of ask.ReadRecord, and a model's name.
type fillRequest struct {
	model  string
	fields rawjson.Object
}

func readFills(v rawjson.Value) (several[fillRequest], error) {
	all := several[fillRequest]{list: v.IsList()}
	items := v.List()
	if !all.list {
		items = []rawjson.Value{v}
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

func readFill(v rawjson.Value) (fillRequest, error) {
	q := fillRequest{}
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

func (fillRequest) Schema(huma.Registry) *huma.Schema {
	return bodySchema(ask.Options(), map[string]*huma.Schema{
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

type scoreRequest struct {
	infill infill.ScoreRequest // without a text
	texts  several[string]
	model  string
	filler *infill.Filler // of the model
	width  int            // how many texts are scored at once
}

// ofScored is the memory for a byte of a text whose score waits for the others.
const ofScored = 128

func (scoreRequest) Schema(r huma.Registry) *huma.Schema {
	texts := several[string]{}.Schema(r)
	texts.Description = "A text, or a list of texts."
	own := map[string]*huma.Schema{"model": modelKey(), "texts": texts}
	return bodySchema(ask.ScoreOptions.Options(), own, "texts")
}

// ofText names the text of several, counted from 0, that has an error.
func ofText(err error, i, texts int) error {
	if texts == 1 {
		return err
	}
	return fmt.Errorf("text %d: %w", i+1, err)
}

func readScore(v rawjson.Value) (*scoreRequest, error) {
	q := &scoreRequest{}
	return q, keys{"texts": oneOrMore(&q.texts), "model": text(&q.model)}.takeWith(ask.ScoreOptions, &q.infill, v,
		"", "texts")
}

type tokensRequest struct {
	text, model string
	filler      *infill.Filler // of the model
}

func (tokensRequest) Schema(huma.Registry) *huma.Schema {
	return bodySchema(nil, map[string]*huma.Schema{"model": modelKey(),
		"text": {Type: huma.TypeString, Description: "Any text."}}, "text")
}

// Tokens are those of a text, and their numbers in the vocabulary.
type Tokens struct {
	Tokens []string `json:"tokens"`
	IDs    []int    `json:"ids"`
}

// ofToken is a bound of the bytes of an answer for each byte of a text.
const ofToken = 24

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
	register(api, s.operation(huma.Operation{
		OperationID: "tokens", Method: http.MethodPost, Path: "/v1/tokens", Tags: []string{"infill"},
		Summary: "The tokens of a text",
		Description: "They are those of transformers. A special token in the text, as [MASK], is one, and none is " +
			"added.",
	}), reflect.TypeFor[tokensRequest](), s.tokens)
	register(api, s.operation(huma.Operation{
		OperationID: "gaps", Method: http.MethodPost, Path: "/v1/gaps", Tags: []string{"infill"},
		Summary:     "An exercise: a text with gaps, answers to choose from, and a key",
		Description: "The answer is what `infill gaps --format json` prints.",
	}), reflect.TypeFor[gapsRequest](), s.gaps)
}

type Result struct {
	ID json.RawMessage `json:"id,omitempty" doc:"That of the request."`
	*infill.Result
	Found string `json:"found" doc:"How the fills were found, and what that says about all others."`
}

func answerOf(id json.RawMessage, r *infill.Result) *Result {
	found := ask.Found(r)
	if divided := ask.Divided(r); divided != "" {
		found = divided + "; " + found
	}
	return &Result{ID: id, Result: r, Found: found}
}

// plans checks requests without a model. It adds to e what they need.
func (s *Server) plans(ctx context.Context, requests []fillRequest, e *effort) (plans []planned, err error) {
	if err := s.checkTexts(len(requests)); err != nil {
		return nil, err
	}
	usual := 0.0 // bytes of a fill and its answer, as a rule
	most := 0.0
	for i, q := range requests {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		p, err := s.plan(ctx, q)
		if err != nil {
			return nil, ofText(err, i, len(requests))
		}
		plans = append(plans, p)
		answer := sizeOfAnswer(p.plan)
		likely, bound := p.plan.Cost()
		e.add(p.filler, likely.Tokens, bound.Tokens)
		e.answer += answer
		usual = max(usual, likely.Bytes+answer)
		most = max(most, bound.Bytes+answer)
	}
	e.bytes = atOnce(usual, len(plans))
	e.later = atOnce(most, len(plans)) - e.bytes
	return plans, nil
}

// planned is a plan with the id of its request, and with the filler of its model.
type planned struct {
	plan   *infill.Plan
	id     json.RawMessage
	filler *infill.Filler
}

func (s *Server) plan(ctx context.Context, q fillRequest) (p planned, err error) {
	f, err := s.model(q.model)
	if err != nil {
		return p, err
	}
	record, err := ask.ReadRecord(q.fields, "template")
	var option *infill.OptionError
	switch {
	case errors.As(err, &option):
		return p, err
	case err != nil:
		return p, unfit("%s", err)
	case record.Extra != nil:
		return p, &infill.OptionError{Option: fmt.Sprintf("%.80s", record.Extra[0].Key),
			Reason: "there is no such option"}
	}
	r, err := record.Request(nil)
	if err != nil {
		return p, err
	}
	_, given := ask.Last(record.Given, "seed")
	if !given {
		r.Seed = infill.NewSeed()
	}
	p.id = record.ID
	p.filler = f
	p.plan, err = s.check(ctx, f, r)
	return p, err
}

// sizeOfAnswer estimates the bytes of the answer to a plan, by its fills and
// values of each blank. All else is about five of them.
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

func (s *Server) checkSlots(slots int) error {
	if slots > s.Limits.Blanks {
		return unfit("%d tokens to fill in one text, this server takes %d: split the text", slots, s.Limits.Blanks)
	}
	return nil
}

func (s *Server) check(ctx context.Context, f *infill.Filler, r infill.Request) (*infill.Plan, error) {
	err := s.bound(&r, f.Tokenizer().VocabularySize())
	if err != nil {
		return nil, err
	}
	// Too many are refused before it is found out what each may take.
	err = s.checkSlots(len(tokenize.BlankSpans(r.Template, r.Blank)))
	if err != nil {
		return nil, err
	}
	p, err := f.Plan(ctx, r)
	if err != nil {
		return nil, err
	}
	err = s.checkSlots(p.Slots())
	if err != nil {
		return nil, err
	}
	l := &s.Limits
	_, most := p.Cost()
	switch {
	case int(p.Request.Top) > l.Top:
		return nil, unfit("top: %d fills, this server gives %d of a text: ask for fewer", p.Request.Top, l.Top)
	case most.Rows > l.Rows:
		return nil, unfit("up to %d model rows would be needed, this server takes %d a text: ask for fewer samples "+
			"or steps, or a smaller budget", most.Rows, l.Rows)
	}
	return p, nil
}

// bound checks the method of a request against the limits. It bounds the rows of a
// budget in seconds, which alone do not bound the memory on a fast machine.
func (s *Server) bound(r *infill.Request, vocabulary int) error {
	l := &s.Limits
	var seconds float64
	var candidates, samples int
	switch m := r.Settled().Method.(type) {
	case infill.Search:
		seconds = m.Budget.Seconds
	case infill.Draws:
		seconds = m.Budget.Seconds
		samples = m.Samples
	case infill.Chains:
		candidates = m.Candidates
		samples = m.Samples
	}
	switch {
	case seconds > l.Time.Seconds():
		return unfit("a budget of %gs, this server works %gs at a request: ask for a smaller budget", seconds,
			l.Time.Seconds())
	case candidates > l.Candidates:
		return unfit("candidates: %d of a slot, this server takes %d: ask for fewer", candidates, l.Candidates)
	case candidates == infill.None && vocabulary > l.Candidates:
		return unfit("candidates: 0 is the whole vocabulary of %d, this server takes %d of a slot: ask for fewer",
			vocabulary, l.Candidates)
	case samples > l.Samples:
		return unfit("samples: %d, this server makes %d of a text: ask for fewer", samples, l.Samples)
	}
	switch m := r.Method.(type) {
	case infill.Search:
		m.Budget = within(m.Budget, l.Rows)
		r.Method = m
	case infill.Draws:
		m.Budget = within(m.Budget, l.Rows)
		r.Method = m
	}
	return nil
}

// within returns a budget with at most a number of rows, if it gives none.
func within(b infill.Budget, rows int) infill.Budget {
	if b == (infill.Budget{}) {
		b.Rows = min(infill.DefaultRows, rows)
	}
	if b.Seconds > 0 {
		b.Rows = rows
	}
	return b
}

// atOnce returns the bytes of those texts of a request that run at once.
func atOnce(bytes float64, texts int) float64 { return bytes * float64(min(texts, textsAtOnce)) }

func (s *Server) fill(ctx context.Context, in *fillInput) (*huma.StreamResponse, error) {
	asked, e, err := read(ctx, s, in.RawBody,
		func(ctx context.Context, v rawjson.Value, e *effort) (plans several[planned], err error) {
			requests, err := readFills(v)
			if err != nil {
				return plans, err
			}
			plans.list = requests.list
			plans.items, err = s.plans(ctx, requests.items, e)
			return plans, err
		})
	if err != nil {
		return nil, err
	}
	plans := asked.items
	if weight(in.Accept, "text/event-stream") > weight(in.Accept, "application/json") {
		if len(plans) > 1 || asked.list {
			return nil, unfit("events are of one text: send an object, not a list")
		}
		return &huma.StreamResponse{Body: func(c huma.Context) { s.stream(c, plans[0], e) }}, nil
	}
	results, err := answers(ctx, s, len(plans), textsAtOnce, e,
		func(ctx context.Context, c *lm.Caller, i int) (*Result, error) {
			result, err := filled(ctx, plans[i].plan.For(c), nil)
			if err != nil {
				return nil, err
			}
			return answerOf(plans[i].id, result), nil
		})
	if err != nil {
		return nil, err
	}
	var answer any = results
	if !asked.list {
		answer = results[0]
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		c.SetHeader("Content-Type", "application/json")
		plainJSON.Marshal(c.BodyWriter(), answer) //nolint:errcheck // a client that left wants no answer
	}}, nil
}

// textsAtOnce texts of a request run at once, to fill the model's calls.
const textsAtOnce = 16

// answers waits as work does. Then it calls do for each of n texts, width of
// them at once. If the time ends when each text has an answer, all is well.
func answers[T any](ctx context.Context, s *Server, n, width int, e effort,
	do func(ctx context.Context, c *lm.Caller, i int) (T, error)) ([]T, error) {
	list := make([]T, n)
	answered := make([]bool, n)
	return list, s.work(ctx, e, func(ctx context.Context, c *lm.Caller) error {
		err := parallel.All(ctx, width, n, func(ctx context.Context, i int) (err error) {
			list[i], err = do(ctx, c, i)
			answered[i] = err == nil
			return err
		})
		if errors.Is(context.Cause(ctx), errOutOfTime) && !slices.Contains(answered, false) {
			return nil
		}
		return err
	})
}

// progress is an event before the result: the step, and what is known.
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
	err := s.work(ctx, e, func(ctx context.Context, c *lm.Caller) (err error) {
		result, err = filled(ctx, p.plan.For(c), func(at infill.Progress) {
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

func (s *Server) scoreBody(ctx context.Context, in *bodyInput) (*output[[]*infill.Score], error) {
	scores, err := s.score(ctx, in.RawBody)
	return &output[[]*infill.Score]{scores}, err
}

func (s *Server) score(ctx context.Context, body []byte) ([]*infill.Score, error) {
	q, e, err := read(ctx, s, body, func(ctx context.Context, v rawjson.Value, e *effort) (*scoreRequest, error) {
		q, err := readScore(v)
		if err != nil {
			return nil, err
		}
		return q, s.scoring(ctx, q, e)
	})
	if err != nil {
		return nil, err
	}
	texts := q.texts.items
	return answers(ctx, s, len(texts), q.width, e,
		func(ctx context.Context, c *lm.Caller, i int) (*infill.Score, error) {
			own := q.infill
			own.Text = texts[i]
			return q.filler.For(c).Score(ctx, own)
		})
}

func (s *Server) tokens(ctx context.Context, in *bodyInput) (*output[Tokens], error) {
	q, e, err := read(ctx, s, in.RawBody, func(_ context.Context, v rawjson.Value, e *effort) (*tokensRequest, error) {
		q := &tokensRequest{}
		err := keys{"text": text(&q.text), "model": text(&q.model)}.take(v, "text")
		if err != nil {
			return nil, err
		}
		q.filler, err = s.model(q.model)
		e.answer = ofToken * float64(len(q.text))
		e.bytes = 3 * e.answer
		return q, err
	})
	if err != nil {
		return nil, err
	}
	out := &output[Tokens]{}
	return out, s.work(ctx, e, func(context.Context, *lm.Caller) error {
		encoding, err := q.filler.Tokenizer().Encode(q.text)
		if err != nil {
			return err
		}
		last := len(encoding.IDs) - 1 // [SEP]
		out.Body = Tokens{Tokens: encoding.Tokens[1:last], IDs: encoding.IDs[1:last]}
		return nil
	})
}

// scoring checks a request for scores, and adds to e what it needs.
func (s *Server) scoring(ctx context.Context, q *scoreRequest, e *effort) (err error) {
	texts := q.texts.items
	if err := s.checkTexts(len(texts)); err != nil {
		return err
	}
	q.filler, err = s.model(q.model)
	if err != nil {
		return err
	}
	longest := 1 // bytes of a text
	held := 0.0  // bytes of memory for one
	for i, text := range texts {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		own := q.infill
		own.Text = text
		cost, err := q.filler.ScoreCost(own)
		if err == nil && cost.Rows > s.Limits.Rows {
			err = unfit("%d tokens, each of which needs a model row, this server takes %d a text: split the text",
				cost.Rows, s.Limits.Rows)
		}
		if err != nil {
			return ofText(err, i, len(texts))
		}
		e.add(q.filler, cost.Tokens, cost.Tokens)
		e.answer += 2000 + float64(len(own.Context)+4*len(text)+180*cost.Rows) // of each token, and of its word
		e.bytes += ofScored * float64(len(text))
		longest = max(longest, len(text))
		held = max(held, cost.Bytes)
	}
	// A long text fills the model's calls by itself, all windows at once.
	q.width = max(1, min(textsAtOnce, len(texts), longTexts/longest))
	e.bytes += float64(q.width) * held
	return nil
}
