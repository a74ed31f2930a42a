package serve

import (
	"context"
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"infill/infill"
)

// Tools returns a server of tools that agents call by the Model Context Protocol: fill and score, with the limits of
// HTTP requests.
func Tools(o Options) (*mcp.Server, error) {
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	server := mcp.NewServer(
		&mcp.Implementation{Name: "infill", Title: "infill: fill the blanks of a text", Version: infill.Version()},
		// The tools never change, so clients need not listen for changes.
		&mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(bool)}
	mcp.AddTool(server, &mcp.Tool{Name: "fill", Title: "Fill blanks", Annotations: reads, InputSchema: fillSchema(),
		OutputSchema: schemaOf[fillAnswer](),
		Description: "Fill the blanks of an English text, each written [MASK], several of them jointly. Gives the " +
			"likeliest fills, the best first."}, s.fillTool)
	mcp.AddTool(server, &mcp.Tool{Name: "score", Title: "Score texts", Annotations: reads,
		InputSchema: schemaOf[textsArguments](), OutputSchema: schemaOf[scoreAnswer](),
		Description: "How likely is each text? Gives its pseudo-log-likelihood in nats (higher is likelier) and its " +
			"pseudo-perplexity (lower is likelier, comparable across lengths)."}, s.scoreTool)
	return server, nil
}

// fillSchema returns the schema of the arguments of the tool fill, the same keys that POST /v1/fill takes.
func fillSchema() *jsonschema.Schema {
	properties := map[string]*jsonschema.Schema{}
	for name, k := range fillKeys() {
		properties[name] = &jsonschema.Schema{Description: k.help, Type: k.kind}
	}
	properties["ban"].Items = &jsonschema.Schema{Type: "string"}
	// no closed schema: ParseRequest names an unknown key
	return &jsonschema.Schema{Type: "object", Properties: properties, Required: []string{"template"}}
}

// schemaOf returns the schema of T, with one JSON type for each value, because not all clients know ["null", "array"].
func schemaOf[T any]() *jsonschema.Schema {
	s, _ := jsonschema.For[T](nil) // every type of this package has a schema
	return plain(s)
}

func plain(s *jsonschema.Schema) *jsonschema.Schema {
	if s == nil {
		return nil
	}
	if len(s.Types) > 0 {
		s.Type, s.Types = s.Types[len(s.Types)-1], nil
	}
	for name := range s.Properties {
		plain(s.Properties[name])
	}
	plain(s.Items)
	return s
}

type toolFill struct {
	Text          string   `json:"text"`
	Values        []string `json:"values" jsonschema:"what each blank holds"`
	LogLikelihood float64  `json:"log_likelihood" jsonschema:"in nats"`
	Probability   *float64 `json:"probability,omitempty" jsonschema:"the model's own, of all blanks together"`
	Share         *float64 `json:"share,omitempty" jsonschema:"among all fills of the lists, or of a sampler's draws"`
}

type fillAnswer struct {
	ID       string     `json:"id,omitempty" jsonschema:"that of the request"`
	Fills    []toolFill `json:"fills"`
	Seed     *uint64    `json:"seed,omitempty"`
	Warnings []string   `json:"warnings"`
}

func (s *Server) fillTool(ctx context.Context, request *mcp.CallToolRequest,
	_ any) (*mcp.CallToolResult, *fillAnswer, error) {
	var q fillRequest
	if err := plainJSON.Unmarshal(request.Params.Arguments, &q); err != nil {
		return nil, nil, err
	}
	plans, bytes, err := s.plans([]fillRequest{q})
	if err != nil {
		return nil, nil, s.logFailure(problem(ctx, err))
	}
	if plans[0].Options.Seed >= 1<<53 {
		return nil, nil, &infill.OptionError{Option: "seed", Reason: "not below 2^53, up to which numbers come " +
			"through this protocol whole"}
	}
	found, err := answers(ctx, s, 1, 1, bytes,
		func(ctx context.Context, _ int) (*infill.Result, error) { return plans[0].Fill(ctx, nil) })
	if err != nil {
		return nil, nil, err
	}
	r := found[0]
	answer := &fillAnswer{Fills: []toolFill{}, Seed: r.Seed, Warnings: r.Warnings}
	_ = json.Unmarshal(plans[0].ID, &answer.ID) // the schema asks for a string; other ids are dropped
	for _, fill := range r.Fills {
		answer.Fills = append(answer.Fills, toolFill{fill.Text, fill.Values, fill.LogLikelihood, fill.Probability,
			fill.Share})
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

func (s *Server) scoreTool(ctx context.Context, request *mcp.CallToolRequest,
	a textsArguments) (*mcp.CallToolResult, *scoreAnswer, error) {
	if err := plainJSON.Unmarshal(request.Params.Arguments, &a); err != nil {
		return nil, nil, err
	}
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
