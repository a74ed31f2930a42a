package serve

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"infill/infill"
	"infill/internal/parallel"
	"infill/internal/rawjson"
	"infill/lm"
)

// Tools returns a server of the Model Context Protocol: fill and score, with
// the limits of HTTP requests. The end of ctx cancels all calls.
func Tools(ctx context.Context, o Options) (*mcp.Server, error) {
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, s.end)
	// One version demands that a server answers batches, which the SDK does not.
	versions := slices.DeleteFunc(mcp.SupportedProtocolVersions(), func(v string) bool { return v == "2025-03-26" })
	server := mcp.NewServer(
		&mcp.Implementation{Name: "infill", Title: "infill: fill the blanks of a text", Version: infill.Version()},
		// The tools never change, so clients need not listen for changes.
		&mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
			SupportedProtocolVersions: versions})
	server.AddReceivingMiddleware(declared)
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(bool)}
	server.AddTool(&mcp.Tool{Name: "fill", Title: "Fill blanks", Annotations: reads,
		InputSchema:  argumentsOf(fillRequest{}, "id", huma.Schema{Type: huma.TypeString}),
		OutputSchema: schemaOf[fillAnswer](),
		Description: "Fill the blanks of an English text, each written [MASK], several of them jointly. Gives the " +
			"likeliest fills, the best first."}, tool(s, s.fillTool))
	server.AddTool(&mcp.Tool{Name: "score", Title: "Score texts", Annotations: reads,
		InputSchema: argumentsOf(scoreRequest{}, "texts",
			huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}}),
		OutputSchema: schemaOf[scoreAnswer](),
		Description: "How likely is each text? Gives its pseudo-log-likelihood in nats (higher is likelier) and its " +
			"pseudo-perplexity (lower is likelier, comparable across lengths)."}, tool(s, s.scoreTool))
	return server, nil
}

// declared refuses capabilities that the SDK would answer with empty lists.
func declared(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		group, _, _ := strings.Cut(method, "/")
		if slices.Contains([]string{"resources", "prompts", "logging", "completion"}, group) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound,
				Message: method + ": this server has tools alone"}
		}
		return next(ctx, method, r)
	}
}

// argumentsOf returns the schema of a tool's arguments, which are the keys of a
// body. The one key whose value has several JSON types, or any, gets a schema of
// its own with one type, because not all clients know more. The schema is not
// closed: the reader of the arguments names an unknown key.
func argumentsOf(body huma.SchemaProvider, key string, own huma.Schema) *huma.Schema {
	s := body.Schema(huma.NewMapRegistry("", huma.DefaultSchemaNamer))
	own.Description = s.Properties[key].Description
	s.Properties[key] = &own
	s.AdditionalProperties = nil
	return s
}

// schemaOf gives each value one type: few clients know ["null", "array"].
func schemaOf[T any]() *jsonschema.Schema {
	s, _ := jsonschema.For[T](nil) // every type of this package has a schema
	return plain(s)
}

func plain(s *jsonschema.Schema) *jsonschema.Schema {
	if s == nil {
		return nil
	}
	if len(s.Types) > 0 {
		s.Type = s.Types[len(s.Types)-1]
		s.Types = nil
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

// tool makes a handler of a function that reads its arguments itself. The
// SDK's own way would decode them with another decoder, and refuse by the
// schema what every other door takes. The SDK catches no panic.
func tool[T any](s *Server, do func(ctx context.Context, arguments []byte) (T, error)) mcp.ToolHandler {
	return func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ctx, stop := s.untilEnd(ctx)
		defer stop()
		result := &mcp.CallToolResult{}
		var text rawjson.Value
		err := parallel.Safely(func() error {
			arguments := request.Params.Arguments
			if len(arguments) == 0 {
				arguments = json.RawMessage("{}")
			}
			answer, err := do(ctx, arguments)
			if err == nil {
				text, err = rawjson.Encode(answer)
			}
			return err
		})
		if err != nil {
			result.SetError(s.problem(ctx, err))
			return result, nil
		}
		result.StructuredContent = json.RawMessage(text)
		result.Content = []mcp.Content{&mcp.TextContent{Text: string(text)}}
		return result, nil
	}
}

func (s *Server) fillTool(ctx context.Context, arguments []byte) (*fillAnswer, error) {
	plans, e, err := read(ctx, s, arguments,
		func(ctx context.Context, v rawjson.Value, e *effort) ([]planned, error) {
			q, err := readFill(v)
			if err != nil {
				return nil, err
			}
			return s.plans(ctx, []fillRequest{q}, e)
		})
	if err != nil {
		return nil, err
	}
	if plans[0].plan.Request.Seed >= 1<<53 {
		return nil, &infill.OptionError{Option: "seed", Reason: "not below 2^53, up to which numbers come " +
			"through this protocol whole"}
	}
	found, err := answers(ctx, s, 1, 1, e,
		func(ctx context.Context, c *lm.Caller, _ int) (*infill.Result, error) {
			return filled(ctx, plans[0].plan.For(c), nil)
		})
	if err != nil {
		return nil, err
	}
	r := found[0]
	answer := &fillAnswer{Fills: []toolFill{}, Seed: r.Seed, Warnings: r.Warnings}
	answer.ID, _ = rawjson.Value(plans[0].id).Text() // the schema asks for a string; other ids are dropped
	for _, fill := range r.Fills {
		answer.Fills = append(answer.Fills, toolFill{fill.Text, fill.Values, fill.LogLikelihood, fill.Probability,
			fill.Share})
	}
	return answer, nil
}

type toolScore struct {
	Text             string   `json:"text"`
	LogLikelihood    float64  `json:"log_likelihood" jsonschema:"in nats"`
	PseudoPerplexity float64  `json:"pseudo_perplexity"`
	Warnings         []string `json:"warnings,omitempty"`
}

type scoreAnswer struct {
	Scores []toolScore `json:"scores"`
}

func (s *Server) scoreTool(ctx context.Context, arguments []byte) (*scoreAnswer, error) {
	scores, err := s.score(ctx, arguments)
	if err != nil {
		return nil, err
	}
	answer := &scoreAnswer{Scores: []toolScore{}}
	for _, score := range scores {
		answer.Scores = append(answer.Scores, toolScore{score.Text, score.LogLikelihood, score.PseudoPerplexity,
			score.Warnings})
	}
	return answer, nil
}
