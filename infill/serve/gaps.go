package serve

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"infill/infill"
	"infill/internal/object"
)

// gapsRequest is the body of a request for an exercise.
type gapsRequest struct {
	infill infill.GapsRequest
	model  string
}

func readGaps(v object.Value) (*gapsRequest, error) {
	q := &gapsRequest{infill: infill.GapsRequest{Seed: 1}}
	own := keys{"text": text(&q.infill.Text), "model": text(&q.model)}
	return q, own.takeWith(infill.GapsOptions, &q.infill, v, "", "text")
}

// Schema implements huma.SchemaProvider.
func (gapsRequest) Schema(huma.Registry) *huma.Schema {
	return bodySchema(infill.GapsOptions.Options(), map[string]*huma.Schema{"model": modelKey(),
		"text": {Type: huma.TypeString,
			Description: "A text. Without every, pos and words its gaps stand in brackets."},
	}, "text")
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
	}), reflect.TypeFor[gapsRequest](), s.gaps)
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
	f, err := s.model(q.model)
	if err != nil {
		return nil, err
	}
	e := effort{bytes: sizeOfGap}
	err = s.read(ctx, len(q.infill.Text), &e, func() error {
		rows, tokens, err := f.GapsEffort(q.infill)
		if err != nil {
			return err
		}
		if rows > s.Limits.Rows {
			return unfit("the text may need %d model rows, and this server takes %d: split it", rows, s.Limits.Rows)
		}
		e.add(f, tokens, tokens)
		gaps := float64(rows / 2) // at most, each with its warning
		e.answer = 2000 + 4*float64(len(q.infill.Text)) + gaps*float64(300+30*q.infill.Options)
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := &gapsOutput{}
	err = s.work(ctx, e, func(ctx context.Context) error {
		out.Body, err = f.Gaps(ctx, q.infill)
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
