package serve

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"infill/infill"
	"infill/internal/ask"
	"infill/internal/rawjson"
	"infill/lm"
)

type gapsRequest struct {
	infill infill.GapsRequest
	model  string
	filler *infill.Filler // of the model
}

func (gapsRequest) Schema(huma.Registry) *huma.Schema {
	return bodySchema(ask.GapsOptions.Options(), map[string]*huma.Schema{"model": modelKey(),
		"text": {Type: huma.TypeString,
			Description: "A text. Without every, pos and words its gaps stand in brackets."},
	}, "text")
}

func (s *Server) gaps(ctx context.Context, in *bodyInput) (*output[*infill.Exercise], error) {
	q, e, err := read(ctx, s, in.RawBody,
		func(_ context.Context, v rawjson.Value, e *effort) (*gapsRequest, error) {
			q := &gapsRequest{infill: infill.GapsRequest{Seed: 1}}
			own := keys{"text": text(&q.infill.Text), "model": text(&q.model)}
			err := own.takeWith(ask.GapsOptions, &q.infill, v, "", "text")
			if err != nil {
				return nil, err
			}
			q.filler, err = s.model(q.model)
			if err != nil {
				return nil, err
			}
			cost, err := q.filler.GapsCost(q.infill)
			if err != nil {
				return nil, err
			}
			if cost.Rows > s.Limits.Rows {
				return nil, unfit("the text may need %d model rows, and this server takes %d: split it", cost.Rows,
					s.Limits.Rows)
			}
			e.add(q.filler, cost.Tokens, cost.Tokens)
			gaps := float64(cost.Rows / 2) // at most, each with its warning
			e.answer = 2000 + 4*float64(len(q.infill.Text)) + gaps*float64(300+30*q.infill.Options)
			e.bytes = cost.Bytes
			return q, nil
		})
	if err != nil {
		return nil, err
	}
	out := &output[*infill.Exercise]{}
	return out, s.work(ctx, e, func(ctx context.Context, c *lm.Caller) (err error) {
		out.Body, err = q.filler.For(c).Gaps(ctx, q.infill)
		return err
	})
}
