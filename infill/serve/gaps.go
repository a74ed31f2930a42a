package serve

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"infill/infill"
	"infill/internal/object"
)

// GapsRequest is the body of a request for an exercise.
type GapsRequest struct {
	Text    string   `json:"text" doc:"A text. Without every, pos and words its gaps stand in brackets."`
	Every   int      `json:"every,omitempty" doc:"Each N-th word is a gap."`
	Pos     string   `json:"pos,omitempty" enum:"noun,verb,adjective,adverb" doc:"Part of speech of the gaps."`
	Words   []string `json:"words,omitempty" doc:"Words that become gaps."`
	Options int      `json:"options,omitempty" doc:"Answers to choose from at each gap."`
	Below   float64  `json:"below,omitempty" doc:"The largest probability of a wrong answer."`
	Clear   bool     `json:"clear,omitempty" doc:"Leave out gaps where another word is nearly as likely."`
	Seed    int      `json:"seed,omitempty" doc:"Start of all random numbers."`
	Model   string   `json:"model,omitempty" doc:"The name of a model that is served."`
}

func readGaps(v object.Value) (*GapsRequest, error) {
	q := &GapsRequest{Seed: 1}
	return q, keys{"text": text(&q.Text), "every": whole(&q.Every, 1),
		"pos": choice(&q.Pos, infill.PartsOfSpeech()...), "words": texts(&q.Words), "options": whole(&q.Options, 2),
		"below": number(&q.Below), "clear": truth(&q.Clear), "seed": whole(&q.Seed, 0),
		"model": text(&q.Model)}.take(v, "", "text")
}

// number returns a function that reads a number.
func number(to *float64) func(object.Value) error {
	return func(v object.Value) error {
		x, err := strconv.ParseFloat(string(v), 64)
		if err != nil { // JSON has no number that strconv cannot read, but for too large ones
			return errors.New("expected a number")
		}
		*to = x
		return nil
	}
}

// truth returns a function that reads true or false.
func truth(to *bool) func(object.Value) error {
	return func(v object.Value) error {
		if string(v) != "true" && string(v) != "false" {
			return errors.New("expected true or false")
		}
		*to = string(v) == "true"
		return nil
	}
}

type gapsInput struct {
	RawBody []byte `contentType:"application/json"`
}

type gapsOutput struct {
	Body *infill.Exercise
}

func (s *Server) registerGaps(api huma.API) {
	register(api, s.operation(huma.Operation{
		OperationID: "gaps", Method: http.MethodPost, Path: "/v1/gaps", Tags: []string{"infill"},
		Summary:     "An exercise: a text with gaps, answers to choose from, and a key",
		Description: "The answer is what `infill gaps --format json` prints.",
	}), reflect.TypeFor[GapsRequest](), s.gaps)
}

func (s *Server) gaps(ctx context.Context, in *gapsInput) (*gapsOutput, error) {
	body, err := parse(in.RawBody)
	if err != nil {
		return nil, err
	}
	q, err := readGaps(body)
	if err != nil {
		return nil, err
	}
	f, err := s.model(q.Model)
	if err != nil {
		return nil, err
	}
	e := effort{bytes: sizeOfGap}
	err = s.read(ctx, len(q.Text), func() error {
		encoding, err := f.Plain(q.Text)
		if err != nil {
			return err
		}
		// A gap needs two rows, and a word is a token at least.
		if 2*len(encoding.IDs) > s.Limits.Rows {
			return unfit("%d tokens may need %d model rows, and this server takes %d: split the text",
				len(encoding.IDs), 2*len(encoding.IDs), s.Limits.Rows)
		}
		tokens := 2 * float64(len(encoding.IDs)) * float64(len(encoding.IDs))
		e.add(f, tokens, tokens)
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := &gapsOutput{}
	err = s.work(ctx, e, func(ctx context.Context) error {
		out.Body, err = f.Gaps(ctx, infill.GapsRequest{Text: q.Text, Every: q.Every, Part: q.Pos, Words: q.Words,
			Options: q.Options, Below: q.Below, Clear: q.Clear, Seed: uint64(q.Seed)})
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// sizeOfGap is the memory for a gap: two rows over the vocabulary, and what the
// model needs for a window.
const sizeOfGap = 8 << 20
