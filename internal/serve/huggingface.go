package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"infill/infill"
	"infill/internal/option"
	"infill/internal/rawjson"
	"infill/lm"
	"infill/tokenize"
)

// This file serves Hugging Face's fill-mask, as huggingface_hub's client sends
// it and transformers' pipeline answers it: a list for one blank, lists for
// several, and a list of answers for several texts. Scores are probabilities
// while all blanks are masked.

type maskRequest struct {
	Inputs     several[string] `json:"inputs" doc:"A text, or a list of texts; each [MASK], or mask token of the model, is a blank."`
	Parameters maskParameters  `json:"parameters,omitempty"`
	Options    json.RawMessage `json:"options,omitempty" doc:"Read and left alone, as hosted services had options of their own."`
}

type maskParameters struct {
	Targets    several[string]
	TopK       int  `option:"top-k" default:"5" minimum:"1" word:"N" help:"How many candidates."`
	OwnMask    bool `option:"own-mask" help:"Whether only the model's own mask is a blank, as in transformers; see /v1/models."`
	Truncation bool `option:"truncation" help:"Whether a text that is too long is cut at the right, as in transformers. Else the model reads a window around the blanks, with a header Warning."`
}

var maskOptions = option.Of(option.Owner{Zero: maskParameters{}})

func (maskParameters) Schema(r huma.Registry) *huma.Schema {
	targets := several[string]{}.Schema(r)
	targets.Description = "Only these tokens are rated, one or a list. Of a word of several, the first is, with a " +
		"header Warning."
	return bodySchema(maskOptions.Options(), map[string]*huma.Schema{"targets": targets})
}

type Candidate struct {
	Score    float64 `json:"score" doc:"Its probability."`
	Token    int     `json:"token" doc:"Its number in the vocabulary."`
	Text     string  `json:"token_str" doc:"The token."`
	Sequence string  `json:"sequence" doc:"The text with the token in its place."`
}

func readMask(v rawjson.Value) (*maskRequest, error) {
	q := &maskRequest{}
	targets := keys{"targets": oneOrMore(&q.Parameters.Targets)}
	parameters := func(v rawjson.Value) error { return targets.takeWith(maskOptions, &q.Parameters, v, "parameters.") }
	ignored := func(rawjson.Value) error { return nil }
	err := keys{"inputs": oneOrMore(&q.Inputs), "options": ignored, "parameters": parameters}.take(v, "inputs")
	maskOptions.Settle(&q.Parameters)
	return q, err
}

type namedMaskInput struct {
	Model   string `path:"model" doc:"The name of a model that is served."`
	RawBody []byte `contentType:"application/json"`
}

type maskOutput struct {
	Warning []string `header:"Warning" doc:"What was rated in the place of a target, and how much of a text that is too long."`
	Body    any
}

func (s *Server) registerHuggingFace(api huma.API) {
	schema := func(of reflect.Type) *huma.Schema { return huma.SchemaFromType(api.OpenAPI().Components.Schemas, of) }
	answer := map[string]*huma.Response{"200": {Description: "Candidates of each blank, the likeliest first: a list " +
		"of them, a list of lists where a text has several blanks, and a list of answers where several texts " +
		"were sent.",
		Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{OneOf: []*huma.Schema{
			schema(reflect.TypeFor[[]Candidate]()), schema(reflect.TypeFor[[][]Candidate]()),
			schema(reflect.TypeFor[[][][]Candidate]())}}}}}}
	operation := func(id, path string) huma.Operation {
		return s.operation(
			huma.Operation{OperationID: id, Method: http.MethodPost, Path: path, Tags: []string{"Hugging Face"},
				Summary: "Fill-mask, as Hugging Face's clients ask for it", Responses: answer})
	}
	body := reflect.TypeFor[maskRequest]()
	register(api, operation("fill-mask", "/{$}"), body, func(ctx context.Context, in *bodyInput) (*maskOutput, error) {
		return s.fillMask(ctx, "", in.RawBody)
	})
	register(api, operation("fill-mask-of-model", "/models/{model...}"), body,
		func(ctx context.Context, in *namedMaskInput) (*maskOutput, error) {
			return s.fillMask(ctx, in.Model, in.RawBody)
		})
	// OpenAPI cannot write wildcards for several segments, or for the end of a path.
	paths := api.OpenAPI().Paths
	for path, plain := range map[string]string{"/{$}": "/", "/models/{model...}": "/models/{model}"} {
		paths[plain] = paths[path]
		delete(paths, path)
	}
}

func (s *Server) fillMask(ctx context.Context, model string, text []byte) (*maskOutput, error) {
	q, e, err := read(ctx, s, text, func(ctx context.Context, v rawjson.Value, e *effort) (*maskPlans, error) {
		q, err := readMask(v)
		if err != nil {
			return nil, err
		}
		return s.maskPlans(ctx, model, q, e)
	})
	if err != nil {
		return nil, err
	}
	found, err := answers(ctx, s, len(q.plans), textsAtOnce, e,
		func(ctx context.Context, c *lm.Caller, i int) (any, error) {
			return candidates(ctx, q.filler, q.plans[i].For(c), q.targets, q.top)
		})
	if err != nil {
		return nil, err
	}
	answer := &maskOutput{Body: found, Warning: headers(ctx, q.warnings)}
	if !q.list {
		answer.Body = found[0]
	}
	return answer, nil
}

// maskPlans are a checked request: the plans of its texts, and what is wanted of each.
type maskPlans struct {
	filler   *infill.Filler
	plans    []*infill.Plan
	list     bool  // whether the texts came as a list
	targets  []int // ids, ascending; nil for all
	top      int
	warnings []string
}

// maskPlans plans the texts of a request, and adds to e what they need.
func (s *Server) maskPlans(ctx context.Context, model string, q *maskRequest, e *effort) (p *maskPlans, err error) {
	p = &maskPlans{list: q.Inputs.list, top: q.Parameters.TopK}
	p.filler, err = s.model(model)
	if err != nil {
		return nil, err
	}
	texts := q.Inputs.items
	if err := s.checkTexts(len(texts)); err != nil {
		return nil, err
	}
	words := q.Parameters.Targets.items
	if len(words) > s.Limits.Candidates {
		return nil, unfit("targets: %d words, this server rates %d: ask for fewer", len(words), s.Limits.Candidates)
	}
	p.targets, p.warnings, err = targetIDs(p.filler.Tokenizer(), words)
	if err != nil {
		return nil, err
	}
	if p.targets != nil {
		p.top = min(p.top, len(p.targets))
	}
	if p.top > s.Limits.Top {
		return nil, unfit("top_k: %d, this server gives %d of a blank: ask for fewer", p.top, s.Limits.Top)
	}
	slots := 0
	for i, text := range texts {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		plan, err := s.maskPlan(ctx, p.filler, text, q.Parameters)
		if err != nil {
			return nil, ofText(err, i, len(texts))
		}
		p.plans = append(p.plans, plan)
		p.warnings = append(p.warnings, plan.TooLong()...)
		_, most := plan.Cost()
		row := most.Tokens / float64(most.Rows) // Alone asks one
		e.add(p.filler, row, row)
		slots = max(slots, plan.Slots())
		e.answer += float64(plan.Slots()) * float64(p.top) * (float64(len(text)) + 100)
	}
	logits := 4 * float64(slots) * float64(p.filler.Tokenizer().VocabularySize())
	e.bytes = atOnce(logits, len(texts)) + e.answer
	return p, nil
}

// warningCode begins a lasting warning (RFC 7234, section 5.5).
const warningCode = "299 infill "

// mostWarnings of an answer are headers: some clients refuse more than 100.
const mostWarnings = 8

// everyWarning marks requests over a pipe, which has room for every warning.
type everyWarning struct{}

// headers returns different warnings as headers, the first of many.
func headers(ctx context.Context, warnings []string) (list []string) {
	seen := map[string]bool{}
	for _, warning := range warnings {
		if !seen[warning] {
			seen[warning] = true
			list = append(list, warningCode+strconv.QuoteToASCII(warning))
		}
	}
	more := len(list) - mostWarnings
	if more > 0 && ctx.Value(everyWarning{}) == nil {
		list = append(list[:mostWarnings], fmt.Sprintf("%s\"and %d more\"", warningCode, more))
	}
	return list
}

// maskPlan plans a text, and refuses what the answer's format cannot tell.
func (s *Server) maskPlan(ctx context.Context, f *infill.Filler, text string, o maskParameters) (*infill.Plan, error) {
	var err error
	if o.OwnMask {
		text, err = f.Tokenizer().OnlyMask(text)
	}
	if err == nil && o.Truncation {
		text, err = f.Cut(text)
	}
	if err != nil {
		return nil, err
	}
	err = s.checkSlots(len(tokenize.BlankSpans(text, "")))
	if err != nil {
		return nil, err
	}
	p, err := f.Plan(ctx, infill.Request{Template: text, Fit: infill.Fit{Fill: infill.FillAny}})
	if err != nil {
		return nil, err
	}
	t := p.Template()
	for i, b := range t.Blanks {
		if b.High > b.Low {
			return nil, unfit("blank %d may have several lengths, which this answer cannot tell: send it to "+
				"POST /v1/fill", i+1)
		}
	}
	for _, group := range t.Groups {
		if len(group) > 1 {
			return nil, unfit("two blanks are called %s, and this answer has each blank by itself: send it to "+
				"POST /v1/fill", t.Blanks[group[0]].Name)
		}
	}
	return p, s.checkSlots(p.Slots())
}

// targetIDs returns the token ids of words, ascending. Of a word that is no token,
// it takes the first piece and warns, as the pipeline of transformers does.
func targetIDs(t *tokenize.Tokenizer, words []string) (ids []int, warnings []string, err error) {
	if words != nil && len(words) == 0 {
		return nil, nil, unfit("targets: at least one must be given")
	}
	for _, word := range words {
		id, ok := t.ID(word)
		if ok {
			ids = append(ids, id)
			continue
		}
		encoding, err := t.Encode(word)
		if err != nil {
			return nil, nil, err
		}
		const missing = "The specified target token `%.60s` does not exist in the model vocabulary. "
		pieces := encoding.IDs[1 : len(encoding.IDs)-1]
		if len(pieces) == 0 {
			warnings = append(warnings, fmt.Sprintf(missing+"It is ignored.", word))
			continue
		}
		warnings = append(warnings, fmt.Sprintf(missing+"Replacing with `%s`.", word, t.Token(pieces[0])))
		ids = append(ids, pieces[0])
	}
	if len(words) > 0 && len(ids) == 0 {
		return nil, nil, unfit("targets: none of them is a token of the model: give one that is")
	}
	slices.Sort(ids)
	return slices.Compact(ids), warnings, nil
}

// candidates returns the answer for a text: a list, or one for each slot.
func candidates(ctx context.Context, f *infill.Filler, p *infill.Plan, targets []int, top int) (any, error) {
	alone, err := p.Alone(ctx, top, targets)
	if err != nil {
		return nil, err
	}
	t := f.Tokenizer()
	slots := make([][]Candidate, len(alone))
	for slot, values := range alone {
		slots[slot] = []Candidate{}
		for _, v := range values {
			text := cmp.Or(t.Decode([]int{v.TokenID}), t.Token(v.TokenID))
			slots[slot] = append(slots[slot], Candidate{Score: v.Probability, Token: v.TokenID, Text: text,
				Sequence: p.Written(slot, v.TokenID)})
		}
	}
	if len(slots) == 1 {
		return slots[0], nil
	}
	return slots, nil
}
