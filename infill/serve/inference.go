package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"infill/infill"
)

func slicesOf[T any]() reflect.Type { return reflect.TypeFor[[]T]() }

// The Open Inference Protocol, version 2, over JSON
// (kserve.github.io/open-inference-protocol): texts with blanks in, joint fills out.

type tensor struct {
	Name     string `json:"name"`
	Datatype string `json:"datatype"`
	Shape    []int  `json:"shape"`
	Data     any    `json:"data,omitempty"`
}

type inferRequest struct {
	ID         string          `json:"id,omitempty"`
	Parameters inferParameters `json:"parameters,omitempty"`
	Inputs     []inferInput    `json:"inputs" minItems:"1" maxItems:"1" doc:"One tensor of texts, datatype BYTES, named text."`
	Outputs    []inferOutput   `json:"outputs,omitempty"`
}

type inferParameters struct {
	Top  *int    `json:"top,omitempty" minimum:"1" doc:"Fills of each text; 5 where it is not said."`
	Seed *uint64 `json:"seed,omitempty"`
}

type inferInput struct {
	Name       string          `json:"name"`
	Datatype   string          `json:"datatype" enum:"BYTES"`
	Shape      []int           `json:"shape"`
	Data       json.RawMessage `json:"data"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
}

type inferOutput struct {
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
}

type inferResponse struct {
	ModelName string   `json:"model_name"`
	Version   string   `json:"model_version"`
	ID        string   `json:"id,omitempty"`
	Outputs   []tensor `json:"outputs"`
}

type modelMetadata struct {
	Name     string   `json:"name"`
	Versions []string `json:"versions"`
	Platform string   `json:"platform"`
	Inputs   []tensor `json:"inputs"`
	Outputs  []tensor `json:"outputs"`
}

type body[T any] struct {
	Body T
}

type inferBody struct {
	Model string `path:"model" doc:"The name of a model that is served."`
	Body  inferRequest
}

type modelInput struct {
	Model string `path:"model" doc:"The name of a model that is served."`
}

func (s *Server) registerInference(api huma.API) {
	get := func(id, path, summary string) huma.Operation {
		return s.operation(
			huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Summary: summary,
				Tags: []string{"Open Inference Protocol"}})
	}
	type live struct {
		Live bool `json:"live"`
	}
	type ready struct {
		Ready bool `json:"ready"`
	}
	type server struct {
		Name       string   `json:"name"`
		Version    string   `json:"version"`
		Extensions []string `json:"extensions"`
	}
	huma.Register(api, get("live", "/v2/health/live", "The server answers"),
		func(context.Context, *struct{}) (*body[live], error) {
			return &body[live]{live{true}}, nil
		})
	huma.Register(api, get("ready", "/v2/health/ready", "The server can fill: its models are opened before it listens"),
		func(context.Context, *struct{}) (*body[ready], error) {
			return &body[ready]{ready{true}}, nil
		})
	huma.Register(api, get("server", "/v2", "What serves"), func(context.Context, *struct{}) (*body[server], error) {
		return &body[server]{server{"infill", infill.Version(), []string{}}}, nil
	})
	// A wildcard of several segments stands last in a path, and a model's name may have
	// a slash, which clients write as %2F.
	huma.Register(api, get("model", "/v2/models/{model}", "What a model takes and gives"),
		func(_ context.Context, in *modelInput) (*body[modelMetadata], error) {
			f, name, err := s.served(in.Model)
			if err != nil {
				return nil, err
			}
			outputs := []tensor{{"text", "BYTES", []int{-1, -1}, nil}, {"probability", "FP64", []int{-1, -1}, nil},
				{"result", "BYTES", []int{-1}, nil}}
			return &body[modelMetadata]{modelMetadata{name, []string{f.Model().SHA256}, "infill_onnxruntime",
				[]tensor{{"text", "BYTES", []int{-1}, nil}}, outputs}}, nil
		})
	huma.Register(api, get("model-ready", "/v2/models/{model}/ready", "The model can fill"),
		func(_ context.Context, in *modelInput) (*body[ready], error) {
			_, _, err := s.served(in.Model)
			return &body[ready]{ready{true}}, err
		})
	huma.Register(api,
		s.operation(huma.Operation{OperationID: "infer", Method: http.MethodPost, Path: "/v2/models/{model}/infer",
			Tags:    []string{"Open Inference Protocol"},
			Summary: "Fill texts jointly", Description: "Outputs: text [texts × top], probability [texts × top], and " +
				"result [texts], each the JSON of POST /v1/fill. Where a text has fewer fills than top, the rest is " +
				"empty, and its probability 0."}),
		func(ctx context.Context, in *inferBody) (*body[inferResponse], error) {
			out, err := s.infer(ctx, in.Model, &in.Body)
			if err != nil {
				return nil, err
			}
			return &body[inferResponse]{*out}, nil
		})
}

func (s *Server) infer(ctx context.Context, model string, q *inferRequest) (*inferResponse, error) {
	wrong := func(format string, args ...any) error {
		return &Problem{status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
	}
	f, name, err := s.model(model)
	if err != nil {
		return nil, err
	}
	in := q.Inputs[0]
	var texts []string
	switch {
	case in.Name != "text":
		return nil, wrong("the input is called text, not %.60q", in.Name)
	case json.Unmarshal(in.Data, &texts) != nil:
		return nil, wrong("the data of input text is not a flat list of strings")
	case len(in.Shape) == 0 || len(in.Shape) > 2 || product(in.Shape) != len(texts):
		return nil, wrong("input text has %d strings and the shape %v: a shape is [texts] or [texts, 1]", len(texts),
			in.Shape)
	}
	if err := s.checkTexts(len(texts)); err != nil {
		return nil, err
	}
	o := s.Fill
	if q.Parameters.Top != nil {
		o.Top = *q.Parameters.Top
	}
	if q.Parameters.Seed != nil {
		o.Seed = *q.Parameters.Seed
	} else if o.Seed, err = infill.NewSeed(); err != nil {
		return nil, s.logFailure(problem(ctx, err))
	}
	size, bytes, plans := 0.0, 0.0, make([]*infill.Plan, len(texts))
	err = s.read(ctx, sizeOf(texts), func() error {
		for i, text := range texts {
			size += 2 * float64(o.Top) * sizeOfFill(text) // as a text, and in the result
			plan, held, err := s.check(f, infill.Request{Template: blanksOf(f, text), Options: o})
			if err != nil {
				return fmt.Errorf("text %d: %w", i+1, err)
			}
			plans[i], bytes = plan, max(bytes, held)
		}
		return s.checkAnswer(size)
	})
	if err != nil {
		return nil, err
	}
	n := len(texts)
	filled, probabilities, results := make([]string, n*o.Top), make([]float64, n*o.Top), make([]string, n)
	err = s.work(ctx, together(bytes, n), func(ctx context.Context) error {
		return s.each(ctx, textsAtOnce, n, func(ctx context.Context, i int) error {
			r, err := plans[i].Fill(ctx, nil)
			if err != nil {
				return err
			}
			for k, fill := range r.Fills {
				filled[i*o.Top+k] = fill.Text
				if fill.Probability != nil {
					probabilities[i*o.Top+k] = *fill.Probability
				}
			}
			whole, err := json.Marshal(r)
			results[i] = string(whole)
			return err
		})
	})
	if err != nil {
		return nil, s.logFailure(err)
	}
	s.numbers.texts.Add(float64(n))
	all := []tensor{{"text", "BYTES", []int{n, o.Top}, filled}, {"probability", "FP64", []int{n, o.Top}, probabilities},
		{"result", "BYTES", []int{n}, results}}
	answer := &inferResponse{ModelName: name, Version: f.Model().SHA256, ID: q.ID, Outputs: all}
	if len(q.Outputs) > 0 {
		answer.Outputs = nil
		for _, wanted := range q.Outputs {
			found := false
			for _, t := range all {
				if t.Name == wanted.Name {
					answer.Outputs, found = append(answer.Outputs, t), true
				}
			}
			if !found {
				return nil, wrong("there is no output %.60q: take text, probability or result", wanted.Name)
			}
		}
	}
	return answer, nil
}

// product is the number of items of a shape, -1 for an invalid shape.
func product(shape []int) int {
	p := 1
	for _, n := range shape {
		if n < 0 {
			return -1
		}
		p *= n
	}
	return p
}
