package serve

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/infill/serve"
	"infill/internal/object"
)

// NewCmdMCP returns the command infill mcp.
func NewCmdMCP(s *terminal.Streams) *cobra.Command {
	var model cli.ModelOptions
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Offer fills and scores to an agent, by the Model Context Protocol",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := model.Validate(); err != nil {
				return err
			}
			return runMCP(cmd.Context(), s, model)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().SortFlags = false
	model.Register(cmd)
	return cmd
}

// runMCP offers the tools to an agent until the agent ends the conversation.
func runMCP(ctx context.Context, s *terminal.Streams, model cli.ModelOptions) (err error) {
	models, name, err := openAll(ctx, model, s, "", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, models.close()) }()
	server, err := serve.Tools(
		serve.Options{Models: models, Default: name, Fill: infill.DefaultOptions(), Limits: serve.DefaultLimits(),
			Log: func(message string) { cli.Warn(s, false, "%s", message) }})
	if err != nil {
		return err
	}
	if err = server.Run(ctx, converse(s.In, s.Out)); err != nil && ctx.Err() == nil { // a signal may have ended it
		return fmt.Errorf("read the agent's messages: %w", err)
	}
	return nil
}

// conversation is an MCP transport with a message on each line. The library's own transport stops at a line that is no
// message, and rounds large ids. This one passes the library the text of the agent's id as the id of a call.
type conversation struct {
	in    *bufio.Reader
	ended context.Context
	end   context.CancelFunc
	open  sync.Map       // ids of calls without an answer
	calls sync.WaitGroup // counts the ids in open
	lock  sync.Mutex     // guards out
	out   io.Writer
}

func converse(in io.Reader, out io.Writer) *conversation {
	c := &conversation{in: bufio.NewReaderSize(in, mcp.DefaultMaxLineLength), out: out}
	c.ended, c.end = context.WithCancel(context.Background())
	return c
}

func (c *conversation) Connect(context.Context) (mcp.Connection, error) { return c, nil }
func (c *conversation) SessionID() string                               { return "" }
func (c *conversation) Close() error                                    { c.end(); return nil }

// Read returns the next message, and itself answers lines that are not messages. It returns the end of the input only
// after all calls are answered, because the library writes no answers after that.
func (c *conversation) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		line, err := cli.Interruptible(c.ended, func() ([]byte, error) {
			line, err := c.in.ReadSlice('\n')
			if len(line) == 0 {
				c.calls.Wait()
				return nil, err
			}
			return bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff"))), nil // also a part of a long line
		})
		if err != nil {
			return nil, err
		}
		request, err := c.request(line)
		if request != nil {
			return request, nil
		}
		if err != nil && len(line) > 0 {
			wrong := &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
			if !utf8.Valid(line) || !json.Valid(line) {
				wrong.Code = jsonrpc.CodeParseError
			}
			if err := c.Write(ctx, &jsonrpc.Response{Error: wrong}); err != nil {
				return nil, err
			}
		}
	}
}

// request parses a line. It returns nil for an answer, because the program asks the agent nothing.
func (c *conversation) request(line []byte) (*jsonrpc.Request, error) {
	fields, err := object.Parse(line)
	if err != nil {
		return nil, err
	}
	message, err := jsonrpc.DecodeMessage(line)
	request, ok := message.(*jsonrpc.Request)
	own, number := fields.Get("id"), 0.0
	_ = json.Unmarshal(own, &number)
	switch {
	case fields.Get("result") != nil || fields.Get("error") != nil:
		return nil, nil // an error must not be answered by an error, without end
	case err != nil || !ok:
		return nil, fmt.Errorf("the line is no request of JSON-RPC 2.0: %w", cmp.Or(err, errors.New("no method")))
	case string(own) == "null" || number != math.Trunc(number):
		return nil, errors.New("an id is a string or a whole number")
	case own != nil:
		if _, twice := c.open.LoadOrStore(string(own), true); twice {
			return nil, fmt.Errorf("the id %.80s is that of a call at work", own)
		}
		c.calls.Add(1)
		request.ID, _ = jsonrpc.MakeID(string(own)) // MakeID never fails for a string
	case request.Method == "notifications/cancelled":
		params, _ := object.Parse(request.Params) // without params, id is "", which no call has
		id := string(params.Get("requestId"))
		if _, open := c.open.LoadAndDelete(id); open {
			c.calls.Done()
		}
		request.Params, _ = object.Encode(mcp.CancelledParams{RequestID: id}) // never fails, as the value is one string
	}
	return request, nil
}

// Write writes an answer with the agent's own id, or null if there is none. A cancelled call gets no answer.
func (c *conversation) Write(_ context.Context, message jsonrpc.Message) error {
	var id json.RawMessage
	if answer, ok := message.(*jsonrpc.Response); ok {
		own, _ := answer.ID.Raw().(string)
		if _, open := c.open.LoadAndDelete(own); open {
			defer c.calls.Done()
		} else if answer.ID.IsValid() {
			return nil
		}
		id, answer.ID = json.RawMessage(cmp.Or(own, "null")), jsonrpc.ID{}
	}
	text, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return err
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	return object.WriteLine(c.out, object.Identified{ID: id, Value: json.RawMessage(text)})
}
