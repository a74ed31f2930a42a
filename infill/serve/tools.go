package serve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"infill/infill"
)

// Tools are what an agent calls by the Model Context Protocol: fill, score and rank,
// with the same limits as requests over HTTP.
func Tools(o Options) (*mcp.Server, error) {
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "infill", Title: "infill: fill the blanks of a text", Version: infill.Version()}, nil)
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(bool)}
	mcp.AddTool(server, &mcp.Tool{Name: "fill", Title: "Fill blanks", Annotations: reads,
		Description: "Fill the blanks of an English text, each written [MASK], several of them jointly. Gives the likeliest fills, the best first."}, s.fillTool)
	mcp.AddTool(server, &mcp.Tool{Name: "score", Title: "Score texts", Annotations: reads,
		Description: "How likely is each text? Gives its pseudo-log-likelihood in nats (higher is likelier) and its pseudo-perplexity (lower is likelier, comparable across lengths)."}, s.scoreTool)
	mcp.AddTool(server, &mcp.Tool{Name: "rank", Title: "Rank texts", Annotations: reads,
		Description: "Order variants of a text by how likely each is, the likeliest first."}, s.rankTool)
	return server, nil
}

type fillArguments struct {
	Template string              `json:"template" jsonschema:"the text; each blank is written [MASK]"`
	Top      int                 `json:"top,omitempty" jsonschema:"how many fills; 5 when left out"`
	Slots    map[string][]string `json:"slots,omitempty" jsonschema:"for the number of a blank, from 1, the only words that it may take"`
	Ban      []string            `json:"ban,omitempty" jsonschema:"words that no blank may take"`
	Seed     *uint64             `json:"seed,omitempty" jsonschema:"the same seed, below 2^53, gives the same fills"`
}

type toolFill struct {
	Text          string   `json:"text"`
	Fills         []string `json:"fills" jsonschema:"what each blank holds"`
	LogLikelihood float64  `json:"log_likelihood" jsonschema:"in nats"`
	Probability   *float64 `json:"probability,omitempty" jsonschema:"of all blanks together"`
}

type fillAnswer struct {
	Fills    []toolFill `json:"fills"`
	Seed     *uint64    `json:"seed,omitempty"`
	Warnings []string   `json:"warnings"`
}

func (s *Server) fillTool(ctx context.Context, _ *mcp.CallToolRequest, a fillArguments) (*mcp.CallToolResult, *fillAnswer, error) {
	o, err := s.Fill, error(nil)
	if a.Seed != nil {
		// The protocol's library takes numbers through float64.
		if o.Seed = *a.Seed; o.Seed >= 1<<53 {
			return nil, nil, &infill.OptionError{Option: "seed", Reason: "not below 2^53, up to which numbers come through this protocol whole"}
		}
	} else if o.Seed, err = infill.NewSeed(); err != nil {
		return nil, nil, s.told(problem(ctx, err))
	}
	if a.Top != 0 {
		o.Top = a.Top
	}
	f := s.Models[s.Default]
	if err := setWords(&o, a); err != nil {
		return nil, nil, err
	}
	bytes, err := s.check(f, a.Template, o)
	if err != nil {
		return nil, nil, problem(ctx, err)
	}
	if err := s.checkAnswer(float64(o.Top) * sizeOfFill(a.Template)); err != nil {
		return nil, nil, err
	}
	var r *infill.Result
	if err := s.work(ctx, bytes, func(ctx context.Context) (err error) {
		r, err = f.Fill(ctx, a.Template, o, nil)
		return err
	}); err != nil {
		return nil, nil, s.told(err)
	}
	answer := &fillAnswer{Fills: []toolFill{}, Seed: r.Seed, Warnings: r.Warnings}
	for _, fill := range r.Fills {
		answer.Fills = append(answer.Fills, toolFill{fill.Text, fill.Values, fill.LogLikelihood, fill.Probability})
	}
	return nil, answer, nil
}

type textsArguments struct {
	Texts []string `json:"texts" jsonschema:"the texts"`
}

type toolScore struct {
	Text             string  `json:"text"`
	LogLikelihood    float64 `json:"log_likelihood" jsonschema:"in nats"`
	PseudoPerplexity float64 `json:"pseudo_perplexity"`
}

type scoreAnswer struct {
	Scores []toolScore `json:"scores"`
}

func (s *Server) scoreTool(ctx context.Context, _ *mcp.CallToolRequest, a textsArguments) (*mcp.CallToolResult, *scoreAnswer, error) {
	in := &scoreInput{}
	in.Body.Texts.items, in.Body.Method = a.Texts, string(infill.WordScore)
	out, err := s.score(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	answer := &scoreAnswer{Scores: []toolScore{}}
	for _, score := range out.Body {
		answer.Scores = append(answer.Scores, toolScore{score.Text, score.LogLikelihood, score.PseudoPerplexity})
	}
	return nil, answer, nil
}

// rankTool orders texts by the sum: those that are compared mean the same, and a mean
// over tokens would favour the longer one.
func (s *Server) rankTool(ctx context.Context, request *mcp.CallToolRequest, a textsArguments) (*mcp.CallToolResult, *scoreAnswer, error) {
	_, answer, err := s.scoreTool(ctx, request, a)
	if err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(answer.Scores, func(a, b toolScore) int { return cmp.Compare(b.LogLikelihood, a.LogLikelihood) })
	return nil, answer, nil
}

// setWords sets what blanks may hold.
func setWords(o *infill.Options, a fillArguments) error {
	o.Ban = a.Ban
	for blank, words := range a.Slots {
		n, err := strconv.Atoi(blank)
		if err != nil || n < 1 || len(words) == 0 {
			return &infill.OptionError{Option: "slots", Reason: fmt.Sprintf("%.40q is not the number of a blank, from 1, with all words that it may take", blank)}
		}
		if o.Words == nil {
			o.Words = map[int][]string{}
		}
		o.Words[n] = words
	}
	return nil
}
