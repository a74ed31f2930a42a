package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/infill/serve"
)

// NewCmdMCP makes infill mcp.
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

// runMCP offers the tools until the agent ends it.
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
	err = server.Run(ctx, answering{&mcp.IOTransport{Reader: io.NopCloser(s.In), Writer: unclosed{s.Out}}})
	if ctx.Err() != nil { // a signal is how an agent ends it
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the agent's messages: %w", err)
	}
	return nil
}

// answering is a transport whose input ends when all calls are answered: after its end the library writes no answers.
type answering struct{ mcp.Transport }

func (a answering) Connect(ctx context.Context) (mcp.Connection, error) {
	connection, err := a.Transport.Connect(ctx)
	return &calls{Connection: connection, changed: sync.NewCond(new(sync.Mutex)), open: map[jsonrpc.ID]bool{}}, err
}

// calls are the calls of a connection that have no answer yet.
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

// unclosed is standard output, which is not the server's to close.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
