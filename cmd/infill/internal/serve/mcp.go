package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/infill/batch"
	"infill/infill/serve"
	"infill/internal/object"
)

type mcpOptions struct {
	streams *terminal.Streams
	cli.ModelOptions
}

// NewCmdMCP makes infill mcp.
func NewCmdMCP(s *terminal.Streams) *cobra.Command {
	o := &mcpOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Offer fills and scores to an agent, by the Model Context Protocol",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			return runMCP(cmd.Context(), o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().SortFlags = false
	o.ModelOptions.Register(cmd)
	return cmd
}

// runMCP offers the tools until the agent ends it.
func runMCP(ctx context.Context, o *mcpOptions) (err error) {
	opened, name, err := openAll(ctx, &o.ModelOptions, o.streams, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(opened)) }()
	server, err := serve.Tools(
		serve.Options{Models: opened, Default: name, Fill: infill.DefaultOptions(), Limits: serve.DefaultLimits(),
			Log: func(message string) { cli.Warn(o.streams, false, "%s", message) }})
	if err != nil {
		return err
	}
	err = server.Run(ctx, messages(o.streams))
	if ctx.Err() != nil {
		return nil // a signal is how an agent ends it
	}
	return err
}

// messages is the transport over standard input and output. The library's own ends the conversation at the first line
// that it cannot read: such lines are answered here and do not reach it.
func messages(s *terminal.Streams) mcp.Transport {
	out := &answers{Writer: s.Out}
	// Lines are bounded by their reader.
	return answering{&mcp.IOTransport{Reader: &requests{lines: batch.NewReader(s.In, "", ""), out: out}, Writer: out,
		MaxLineLength: -1}}
}

// answering is a transport whose input ends when all calls are answered: after its end the library writes no answers.
type answering struct{ mcp.Transport }

func (a answering) Connect(ctx context.Context) (mcp.Connection, error) {
	connection, err := a.Transport.Connect(ctx)
	return &calls{Connection: connection, changed: sync.NewCond(new(sync.Mutex)), open: map[jsonrpc.ID]bool{}}, err
}

// calls are those of a connection that have no answer yet.
type calls struct {
	mcp.Connection
	changed *sync.Cond
	open    map[jsonrpc.ID]bool
}

func (c *calls) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	c.changed.L.Lock()
	defer c.changed.L.Unlock()
	if call, ok := message.(*jsonrpc.Request); ok && call.IsCall() {
		c.open[call.ID] = true
	}
	for err != nil && len(c.open) > 0 {
		c.changed.Wait()
	}
	return message, err
}

func (c *calls) Write(ctx context.Context, message jsonrpc.Message) error {
	answer, ok := message.(*jsonrpc.Response)
	if !ok {
		return c.Connection.Write(ctx, message)
	}
	defer c.end(func(id jsonrpc.ID, _ bool) bool { return id == answer.ID })
	// The library tells of its types in Go.
	if answer.Error != nil && strings.Contains(answer.Error.Error(), "unmarshaling ") || bytes.Contains(answer.Result,
		[]byte(`"text":"validating \"arguments\": unmarshaling arguments: `)) {
		answer = &jsonrpc.Response{ID: answer.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
			Message: `"params" has not the form of this method; that of tools/call is {"name": "score", "arguments": {...}}`}}
	}
	return c.Connection.Write(ctx, answer)
}

func (c *calls) Close() error {
	c.end(func(jsonrpc.ID, bool) bool { return true })
	return c.Connection.Close()
}

// end takes calls for answered.
func (c *calls) end(which func(jsonrpc.ID, bool) bool) {
	c.changed.L.Lock()
	defer c.changed.L.Unlock()
	maps.DeleteFunc(c.open, which)
	c.changed.Broadcast()
}

// answers is standard output, which both the library and requests write to, a message at a time.
type answers struct {
	mutex sync.Mutex
	io.Writer
}

func (a *answers) Write(p []byte) (int, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.Writer.Write(p)
}

// Close does nothing: the stream is not the server's to close.
func (*answers) Close() error { return nil }

// requests reads the lines that hold a message, and answers the others.
type requests struct {
	lines *batch.Reader
	rest  []byte // of the line that is being read
	out   io.Writer
}

// Close does nothing: the stream is not the server's to close.
func (*requests) Close() error { return nil }

func (r *requests) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		line, err := r.lines.Next()
		if err != nil {
			return 0, err
		}
		if line.Blank {
			continue
		}
		if answer := refuse(line.Raw, line.Err); answer != nil {
			if _, err := r.out.Write(answer); err != nil {
				return 0, err
			}
			continue
		}
		r.rest = append(line.Raw, '\n')
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// refuse is the answer to a line that holds no message, nil if it holds one.
func refuse(line []byte, long error) []byte {
	var raw json.RawMessage
	answer := struct {
		Version string        `json:"jsonrpc"`
		ID      any           `json:"id"` // null if the line tells none
		Error   jsonrpc.Error `json:"error"`
	}{Version: "2.0", Error: jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest}}
	if long != nil {
		answer.Error.Message = long.Error()
	} else if err := json.Unmarshal(line, &raw); err != nil {
		answer.Error = jsonrpc.Error{Code: jsonrpc.CodeParseError,
			Message: fmt.Sprintf("the line is not JSON: %v; send one message a line", err)}
	} else {
		_, wrong := jsonrpc.DecodeMessage(line)
		halved := object.CheckPairs("the line", line)
		if wrong == nil && halved == nil {
			return nil
		}
		answer.Error.Message = `the line is no message of JSON-RPC 2.0: send one object a line, {"jsonrpc": "2.0", "id": ..., "method": "..."}, not a batch`
		if wrong == nil {
			answer.Error.Message = halved.Error()
		}
		var object struct {
			ID any `json:"id"`
		}
		if json.Unmarshal(line, &object) == nil {
			if id, err := jsonrpc.MakeID(object.ID); err == nil {
				answer.ID = id.Raw()
			}
		}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err) // strings and numbers alone
	}
	return append(text, '\n')
}
