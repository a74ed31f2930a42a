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
	"slices"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/internal/lines"
	"infill/internal/parallel"
	"infill/internal/rawjson"
	"infill/internal/serve"
)

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
	server, err := serve.Tools(ctx,
		serve.Options{Models: models, Default: name, Limits: serve.DefaultLimits(),
			Log: func(message string) { cli.Warn(s, false, "%s", message) }})
	if err != nil {
		return err
	}
	err = server.Run(ctx, converse(s.In, s.Out))
	return cmp.Or(ctx.Err(), err) // a signal has ended it, or the agent
}

// conversation is an MCP transport with a message on each line. The library's
// own transport stops at a line that is no message, and rounds large ids. This
// one passes the library the text of the agent's id as the id of a call.
type conversation struct {
	in    *bufio.Reader
	ended context.Context
	end   context.CancelCauseFunc // with the error of a write; nil for none
	open  sync.Map                // ids of calls without an answer
	calls sync.WaitGroup          // counts the ids in open
	lock  sync.Mutex              // guards out
	out   io.Writer
}

func converse(in io.Reader, out io.Writer) *conversation {
	c := &conversation{in: bufio.NewReaderSize(in, mcp.DefaultMaxLineLength), out: out}
	c.ended, c.end = context.WithCancelCause(context.Background())
	return c
}

func (c *conversation) Connect(context.Context) (mcp.Connection, error) { return c, nil }
func (c *conversation) SessionID() string                               { return "" }
func (c *conversation) Close() error                                    { c.end(nil); return nil }

// Read returns the next message, and itself answers lines that are not
// messages. It returns the end of the input only after all calls are answered,
// because the library writes no answers after that.
func (c *conversation) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		line, err := parallel.Interruptible(c.ended, func() ([]byte, error) {
			line, err := c.in.ReadSlice('\n')
			if len(line) == 0 {
				c.calls.Wait()
				return nil, err
			}
			line = bytes.TrimPrefix(line, []byte(lines.ByteOrderMark))
			return bytes.TrimSpace(line), nil // also a part of a long line
		})
		switch {
		case c.ended.Err() != nil:
			return nil, context.Cause(c.ended)
		case err == io.EOF:
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("read the agent's messages: %w", err)
		}
		request, err := c.request(line)
		if err == nil && request.Method != "" {
			return request, nil
		}
		if err != nil && len(line) > 0 {
			wrong := &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
			if errors.Is(err, rawjson.ErrSyntax) {
				wrong.Code = jsonrpc.CodeParseError
			}
			err = c.Write(ctx, &jsonrpc.Response{ID: request.ID, Error: wrong})
			if err != nil {
				return nil, err
			}
		}
	}
}

// request reads a line. An answer gives no method, as the agent is asked
// nothing. With an error, the request has the id to answer to, if there is one.
func (c *conversation) request(line []byte) (*jsonrpc.Request, error) {
	request := &jsonrpc.Request{}
	fields, wrong := rawjson.Parse(line)
	if fields.Get("result") != nil || fields.Get("error") != nil {
		return request, nil // an error must not be answered by an error, without end
	}
	version, _ := fields.Text("jsonrpc")
	method, _ := fields.Text("method")
	if wrong == nil && (version != "2.0" || method == "") {
		return request, errors.New(`the line is no request of JSON-RPC 2.0: write {"jsonrpc":"2.0","method":"...",...}`)
	}
	own := fields.Get("id")
	if own != nil {
		err := c.begin(own)
		if err != nil {
			return request, cmp.Or(wrong, err)
		}
		request.ID, _ = jsonrpc.MakeID(string(own)) // MakeID never fails for a string
	}
	if wrong != nil {
		return request, wrong
	}
	request.Method = method
	request.Params = json.RawMessage(fields.Given("params"))
	if own == nil && method == "notifications/cancelled" {
		id := string(rawjson.Value(request.Params).Object().Get("requestId"))
		_, open := c.open.LoadAndDelete(id)
		if open {
			c.calls.Done()
		}
		params, err := rawjson.Encode(mcp.CancelledParams{RequestID: id})
		if err != nil {
			return request, err
		}
		request.Params = json.RawMessage(params)
	}
	return request, nil
}

// begin notes the id of a call, to which an answer is due.
func (c *conversation) begin(id rawjson.Value) error {
	number, err := strconv.ParseFloat(string(id), 64)
	if !id.IsText() && (err != nil || number != math.Trunc(number)) {
		return errors.New("an id is a string or a whole number")
	}
	_, twice := c.open.LoadOrStore(string(id), true)
	if twice {
		return fmt.Errorf("the id %.80s is that of a call at work", id)
	}
	c.calls.Add(1)
	return nil
}

// Write writes an answer with the agent's own id, or null if there is none. A
// cancelled call gets no answer.
func (c *conversation) Write(_ context.Context, message jsonrpc.Message) error {
	answer, ok := message.(*jsonrpc.Response)
	if !ok {
		return c.write(nil, message)
	}
	own, _ := answer.ID.Raw().(string)
	_, open := c.open.LoadAndDelete(own)
	if open {
		defer c.calls.Done()
	}
	cancelled := answer.ID.IsValid() && !open
	if cancelled {
		return nil
	}
	var known *jsonrpc.Error
	if answer.Error != nil && !errors.As(answer.Error, &known) {
		// The library gives a call before initialize no code.
		answer.Error = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: answer.Error.Error()}
	}
	if known != nil {
		known.Message = lines.Short(known.Message) // the library repeats what was sent
	}
	answer.ID = jsonrpc.ID{}
	return c.write(json.RawMessage(cmp.Or(own, "null")), answer)
}

// write writes a message with an id, or without one if id is nil.
func (c *conversation) write(id json.RawMessage, message jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return err
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	if id != nil {
		text = slices.Concat([]byte(`{"id":`), id, []byte(","), text[1:])
	}
	_, err = c.out.Write(append(text, '\n'))
	if err != nil {
		c.end(err)
	}
	return err
}
