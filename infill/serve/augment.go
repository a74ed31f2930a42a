package serve

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"infill/infill"
	"infill/infill/batch"
	"infill/internal/object"
)

type augmentInput struct {
	Body augmentRequest
}

// augmentRequest is what `infill augment` takes; what is left out is as there.
type augmentRequest struct {
	Records        []json.RawMessage `json:"records" doc:"Objects with a text and any other keys, labels among them, which are kept." minItems:"1"`
	Key            string            `json:"key,omitempty" default:"text" doc:"The key of the text."`
	Variants       int               `json:"variants,omitempty" default:"1" minimum:"1" doc:"Variants of each text."`
	Rate           float64           `json:"rate,omitempty" default:"0.15" doc:"The share of words that are masked, at least one."`
	Blanks         int               `json:"blanks,omitempty" doc:"Their number instead."`
	Protect        []string          `json:"protect,omitempty" doc:"Words that stay."`
	KeepStopWords  bool              `json:"keep_stop_words,omitempty" doc:"Leave the words that hold sentences together."`
	NotOriginal    bool              `json:"not_original,omitempty" doc:"No blank takes a word that was masked."`
	Context        string            `json:"context,omitempty" enum:"none,original" doc:"What the model reads before the text; original keeps the meaning, and masked words out of the blanks."`
	MinProbability float64           `json:"min_probability,omitempty" doc:"The least that the model gives to every fill."`
	Distinct       bool              `json:"distinct,omitempty" doc:"The variants of a text differ."`
	WithOriginal   bool              `json:"with_original,omitempty" doc:"The text itself stands before its variants."`
	Seed           *uint64           `json:"seed,omitempty"`
	Model          string            `json:"model,omitempty" doc:"The name of a model that is served."`
}

type augmentOutput struct {
	Body []batch.Object
}

func (s *Server) registerAugment(api huma.API) {
	rows := &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}}
	huma.Register(api, s.operation(huma.Operation{
		OperationID: "augment", Method: http.MethodPost, Path: "/v1/augment", Tags: []string{"infill"},
		Summary: "Variants of texts, their labels kept",
		Description: "The rows are those of `infill augment`: a record's own keys, then variant, original, masked, " +
			"fills and log_likelihood.",
		Responses: map[string]*huma.Response{"200": {Description: "The rows, in the order of the records",
			Content: map[string]*huma.MediaType{"application/json": {Schema: rows}}}},
	}), s.augment)
}

func (s *Server) augment(ctx context.Context, in *augmentInput) (*augmentOutput, error) {
	q := &in.Body
	f, err := s.model(q.Model)
	if err != nil {
		return nil, err
	}
	if err := s.checkTexts(len(q.Records)); err != nil {
		return nil, err
	}
	if most := 8 * s.Limits.Texts; q.Variants > most/len(q.Records) {
		return nil, unfit("%d variants of each of %d "+
			"texts, this server makes %d in one request: send several requests", q.Variants, len(q.Records), most)
	}
	work := &batch.Augment{Filler: f, Options: batch.AugmentOptions(), Key: q.Key, Variants: q.Variants, Rate: q.Rate,
		Blanks: q.Blanks, MinSpan: 1, MaxSpan: 1,
		Protect: q.Protect, KeepStopWords: q.KeepStopWords, NotOriginal: q.NotOriginal, Context: q.Context,
		MinProbability: q.MinProbability, Distinct: q.Distinct, WithOriginal: q.WithOriginal}
	if q.Seed != nil {
		work.Options.Seed = *q.Seed
	} else if work.Options.Seed, err = infill.NewSeed(); err != nil {
		return nil, s.logFailure(problem(ctx, err))
	}
	if err := work.Check(); err != nil {
		return nil, problem(ctx, err)
	}
	records, held := make([]batch.Record, len(q.Records)), 0.0
	for i, text := range q.Records {
		object, err := object.Parse(text)
		if err != nil {
			return nil, unfit("record %d: %v", i+1, err)
		}
		records[i] = batch.Record{Number: int64(i + 1), Object: object}
		// What a draw may remember of each of its slots; a word has two bytes or more.
		slots := float64(max(q.Blanks, 1+int(q.Rate*float64(len(text)/2))))
		held = max(held, float64(q.Variants)*(float64(len(text))+2*slots*(512+8*slots)))
	}
	rows := make([][]batch.Object, len(records))
	err = s.work(ctx, together(held, len(records)), func(ctx context.Context) error {
		return s.each(ctx, textsAtOnce, len(records), func(ctx context.Context, i int) (err error) {
			rows[i], err = work.Do(ctx, records[i])
			var wrong *batch.RejectError
			if errors.As(err, &wrong) {
				return unfit("record %d: %v", i+1, wrong)
			}
			return err
		})
	})
	if err != nil {
		return nil, s.logFailure(err)
	}
	s.numbers.texts.Add(float64(len(records)))
	out := &augmentOutput{Body: []batch.Object{}}
	for _, r := range rows {
		out.Body = append(out.Body, r...)
	}
	return out, nil
}
