// Package serve has the commands infill serve and infill mcp.
package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/lines"
	"infill/internal/serve"
)

type command struct {
	streams *terminal.Streams
	model   cli.ModelOptions
	limits  serve.Limits
	token   string

	Listen      string   `option:"listen" word:"HOST:PORT" help:"HOST:PORT to listen at; port 0 takes a free one"`
	TokenFile   string   `option:"token-file" word:"FILE" help:"FILE with the token that requests must bring, else INFILL_TOKEN in the environment"`
	NoAuth      bool     `option:"no-auth" help:"let other machines ask without a token"`
	Certificate string   `option:"tls-cert" word:"FILE" help:"FILE of the certificate for https"`
	Key         string   `option:"tls-key" word:"FILE" help:"FILE of its key"`
	Origin      string   `option:"allow-origin" word:"ORIGIN" help:"ORIGIN whose pages may read answers, such as https://example.org"`
	Name        string   `option:"name" word:"NAME" help:"NAME that requests know the model by (default: its own)"`
	Also        []string `option:"also" word:"NAME" help:"NAME of a further model to serve; several with commas"`
	Pipe        bool     `option:"pipe" help:"listen nowhere: answer requests on standard input, a line each; limits hold where they are given"`
}

func NewCmd(s *terminal.Streams) *cobra.Command {
	c := &command{streams: s, limits: serve.DefaultLimits(), Listen: "127.0.0.1:8080"}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer requests over HTTP, and show a page to play with",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.validate(cmd.Context(), cmd.Flags()); err != nil {
				return err
			}
			return c.run(cmd.Context())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().SortFlags = false
	cli.Bind(cmd, c)
	cli.Bind(cmd, &c.limits)
	c.model.Register(cmd)
	return cmd
}

// lift removes all limits that the user did not set, because the user of a pipe
// also started the program. It keeps --max-requests, which only bounds memory.
func lift(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !strings.HasPrefix(f.Name, "max-") || f.Changed || f.Name == "max-requests" {
			return
		}
		value := strconv.Itoa(1 << 60)
		if f.Value.Type() == "duration" {
			value = "1000000h"
		}
		err = errors.Join(err, f.Value.Set(value))
	})
	return err
}

// loopback reports whether host is an address that only this machine can reach.
func loopback(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

func (c *command) validate(ctx context.Context, flags *pflag.FlagSet) error {
	if err := c.model.Validate(); err != nil {
		return err
	}
	if c.Pipe {
		for _, name := range strings.Fields("listen token-file no-auth tls-cert tls-key allow-origin") {
			if flags.Changed(name) {
				return cli.Usagef("--%s: --pipe listens nowhere: leave one out", name)
			}
		}
		if err := lift(flags); err != nil {
			return err
		}
		return cli.Describe(c.limits.Check()) // --pipe needs no token: its user started the program
	}
	host, err := listenHost(ctx, c.Listen)
	if err != nil {
		return err
	}
	if (c.Certificate == "") != (c.Key == "") {
		return cli.Usagef("--tls-cert and --tls-key go together: give both or none")
	}
	if c.Origin != "" {
		_, err := serve.ParseOrigin(c.Origin)
		if err != nil {
			return cli.Usagef("--allow-origin: %w", err)
		}
	}
	err = c.readToken(ctx)
	if err != nil {
		return err
	}
	if c.token != "" && c.NoAuth {
		return cli.Usagef("a token is given, and --no-auth: take one of them")
	}
	if !loopback(host) && c.token == "" && !c.NoAuth {
		return &cli.UsageError{Err: fmt.Errorf("--listen %s: other machines could ask without a token", c.Listen),
			Hint: "set INFILL_TOKEN or --token-file, or say --no-auth"}
	}
	return cli.Describe(c.limits.Check())
}

// listenHost returns the host of HOST:PORT.
func listenHost(ctx context.Context, address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.DefaultResolver.LookupPort(ctx, "tcp", port)
	}
	if err == nil {
		return host, nil
	}
	form := "write one such as 127.0.0.1:8080; sockets of Unix are not served"
	last := strings.LastIndex(address, ":")
	if strings.Count(address, ":") > 1 && net.ParseIP(address[:last]) != nil {
		form = fmt.Sprintf("write [%s]%s", address[:last], address[last:])
	}
	return "", cli.Usagef("--listen: %q is not HOST:PORT: %s", address, form)
}

// readToken takes the token of --token-file, else that of the environment.
func (c *command) readToken(ctx context.Context) error {
	from := "INFILL_TOKEN"
	text := c.streams.Getenv(from)
	if c.TokenFile != "" {
		from = "--token-file: " + c.TokenFile
		content, err := cli.ReadText(ctx, c.TokenFile)
		if err != nil {
			return cli.Usagef("--token-file: %w", err)
		}
		text = strings.TrimPrefix(string(content), lines.ByteOrderMark)
	}
	words := strings.Fields(text)
	if len(words) == 0 && c.TokenFile == "" {
		return nil
	}
	unfit := func(r rune) bool { return r <= ' ' || r > '~' } // for a header
	if len(words) != 1 || strings.ContainsFunc(words[0], unfit) {
		return cli.Usagef("%s holds no token: write one line of letters and digits", from)
	}
	c.token = words[0]
	return nil
}

// opened maps the names of models to the open models.
type opened map[string]*infill.Filler

// openAll opens the model o.Model, named by named if that is not "", and the
// models also. It returns all, and the name of the first. It runs each model
// once, so that the first request need not wait, and a broken model fails now.
func openAll(ctx context.Context, o cli.ModelOptions, s *terminal.Streams, named string,
	also []string) (opened, string, error) {
	all := opened{}
	first := ""
	for _, model := range append([]string{o.Model}, also...) {
		o.Model = model
		f, err := o.Open(s)
		if err != nil {
			return nil, "", errors.Join(err, all.close())
		}
		name := cmp.Or(named, f.Model().Name)
		first = cmp.Or(first, name)
		named = ""
		if all[name] != nil {
			return nil, "", errors.Join(cli.Usagef("two models are called %s: serve one of them", name), f.Close(),
				all.close())
		}
		all[name] = f
		_, err = f.Fill(ctx, infill.Request{Template: "a [MASK]", Fit: infill.Fit{Fill: infill.FillAny}, Top: 1}, nil)
		if err != nil {
			return nil, "", errors.Join(err, all.close())
		}
	}
	return all, first, nil
}

func (o opened) close() (err error) {
	for _, f := range o {
		err = errors.Join(err, f.Close())
	}
	return err
}

func (c *command) run(ctx context.Context) (err error) {
	models, name, err := openAll(ctx, c.model, c.streams, c.Name, c.Also)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, models.close()) }()
	options := serve.Options{Models: models, Default: name, Limits: c.limits,
		Token: c.token, Origin: c.Origin,
		Log: func(message string) { cli.Warn(c.streams, false, "%s", message) }}
	host, _, _ := net.SplitHostPort(c.Listen)
	if loopback(host) && !c.Pipe && c.token == "" { // keeps out pages of other sites, without a token
		options.Hosts = []string{"localhost", "127.0.0.1", "::1", host}
	}
	handler, err := serve.New(options)
	if err != nil {
		return err
	}
	if c.Pipe {
		return handler.Pipe(ctx, c.streams.In, c.streams.Out)
	}
	server := handler.HTTPServer()
	scheme := "http"
	accept := server.Serve
	if c.Certificate != "" {
		certificate, unread := cli.ReadText(ctx, c.Certificate)
		key, err := cli.ReadText(ctx, c.Key)
		if err := cmp.Or(unread, err); err != nil {
			return cli.Usagef("--tls-cert, --tls-key: %w", err)
		}
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return cli.Usagef("--tls-cert: %w", err)
		}
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
		scheme = "https"
		accept = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return &cli.Failure{Err: fmt.Errorf("listen: %w", err), Hint: "another port: infill serve --listen 127.0.0.1:0"}
	}
	c.model.Report(c.streams, "%s answers at %s://%s", name, scheme, listener.Addr())
	ended := make(chan error, 1)
	go func() { ended <- accept(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	// Requests that run get an answer first. A second signal ends the process at once.
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.limits.Time+5*time.Second)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		err = errors.Join(err, server.Close())
		return fmt.Errorf("running requests did not end in time and were cut off: %w; a shorter --max-time ends them",
			err)
	}
	return nil
}
